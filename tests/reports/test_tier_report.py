"""What tiers achieve and cost reads as reviewed, whatever a tier or a judge is called."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest
from markupsafe import escape

from steelyard.outcomes.experiments import experiment
from steelyard.reports.charts.svg import svg_file
from steelyard.reports.charts.tier_details import detail_charts
from steelyard.reports.charts.tiers import charts
from steelyard.reports.exports.tier_documents import html_page, latex_tables, latex_text
from steelyard.reports.tables import json_report
from steelyard.reports.tiers import TIER_ANALYSIS_FORMATS, addition_text, grade_text, json_document, text, tier_tables
from steelyard.text import INVISIBLE_CHARACTER_PATTERN
from steelyard.tiers.analysis import analyse_tiers
from steelyard.tiers.results import (
    CriterionRating,
    ExperimentAnalysis,
    JudgeIdentity,
    RunRating,
    RunSource,
    TierGrade,
    TierRun,
)
from steelyard.tiers.run_tables import RunTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOSTILE = "=cmd|'/c calc'!A1 <b>\x1b]0;x\x07@octocat\u202e"
TIERS = ("T0", "T1", f"T2 {HOSTILE}", "T10")
SOURCES = (RunSource(name="runs.csv", digest="0123456789abcdef"), RunSource(name=HOSTILE, digest="fedcba9876543210"))


def runs() -> list[TierRun]:
    """Ten cases, four runs of each: T10 never passes, T2 costs more than is known."""
    return [
        TierRun(
            experiment="e",
            model=HOSTILE,
            tier=tier,
            case=f"c{case}",
            number=number,
            passed=case + number < 5 + 4 * place and place < 3,
            impl_rate=round(0.4 + 0.05 * place + 0.04 * ((case * 7 + number * 3) % 10), 2),
            cost_usd=None if place == 2 and case == 3 else round(0.01 * (place + 1) + 0.001 * case, 4),
            duration_seconds=10.0 * (place + 1) + case,
        )
        for place, tier in enumerate(TIERS)
        for case in range(10)
        for number in range(4)
    ]


@cache
def found() -> ExperimentAnalysis:
    given = runs()
    ratings = [
        RunRating(
            run=run.identity,
            judge=judge,
            impl_rate=(run.impl_rate or 0.0) + shift,
            passed=run.passed,
            valid=run.number > 0,
        )
        for run in given
        for judge, shift in ((JudgeIdentity("anthropic/opus"), 0.1), (JudgeIdentity(HOSTILE), -0.1))
    ]
    claimed = [
        CriterionRating(
            run=given[1].identity, judge=JudgeIdentity("anthropic/opus"), criterion="works", achieved=1, max=10
        )
    ]
    return analyse_tiers(given, ratings, claimed, sources=SOURCES, replicates=200)


@cache
def example_3() -> ExperimentAnalysis:
    rates = {"T0": 0.4, "T1": 0.6, "T2": 0.7, "T3": 0.8}
    return analyse_tiers(
        [
            TierRun(model="m", tier=tier, case=f"c{c}", passed=True, impl_rate=rate, cost_usd=0.5)
            for tier, rate in rates.items()
            for c in range(8)
        ]
    )


def test_the_text_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("tiers.txt", TIER_ANALYSIS_FORMATS["text"](found()))


def test_the_comment_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("tiers.md", TIER_ANALYSIS_FORMATS["markdown"](found()))


def test_the_table_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("tiers.csv", TIER_ANALYSIS_FORMATS["csv"](found()))


def test_example_3_of_the_document_is_in_every_format() -> None:
    analysis = example_3()
    lines = TIER_ANALYSIS_FORMATS["text"](analysis).splitlines()
    rows = {line.split()[0]: line for line in lines[2:6]}
    for tier, median, letter, uplift in (
        ("T1", "0.800", "C", "+14.3%"),
        ("T2", "0.850", "B", "+21.4%"),
        ("T3", "0.900", "B", "+28.6%"),
    ):
        assert f"{median} [{median}, {median}]" in rows[tier]
        of_tier = " ".join(line for line in lines[: lines.index("Against T0, case by case")] if line.startswith(tier))
        assert {letter, uplift} <= set(of_tier.split())
        assert uplift in TIER_ANALYSIS_FORMATS["markdown"](analysis)
    assert "variance of the tiers' medians: pass rates 0, composites 0.005469, costs 0" in "\n".join(lines)
    table = list(csv.DictReader(io.StringIO(TIER_ANALYSIS_FORMATS["csv"](analysis))))
    assert [float(row["uplift"]) for row in table[1:]] == pytest.approx([1 / 7, 3 / 14, 2 / 7])
    told = json.loads(TIER_ANALYSIS_FORMATS["json"](analysis))["models"][0]
    assert told["composite_variance"] == pytest.approx(0.00546875)
    assert [tier["grade"]["letter"] for tier in told["tiers"]] == ["D", "C", "B", "B"]


def test_examples_1_and_2_of_the_document_come_from_a_table(tmp_path: Path) -> None:
    head = "experiment,agent_model,tier,subtest,run_number,passed,impl_rate,cost_usd"
    one = tmp_path / "one.csv"
    one.write_text(f"{head}\ne,m,T0,a,1,True,0.85,0.50\n")
    (row,) = csv.DictReader(io.StringIO(TIER_ANALYSIS_FORMATS["csv"](analyse_tiers(experiment(one).runs))))
    assert (float(row["pass_rate"]), float(row["impl_rate"]), float(row["cost_of_pass"])) == (1.0, 0.85, 0.5)
    assert float(row["composite"]) == pytest.approx(0.925)
    assert row["grade"] == "B"
    ten = tmp_path / "ten.csv"
    passes = [1, 1, 0, 1, 1, 1, 0, 1, 1, 1]
    ten.write_text("\n".join([head, *(f"e,m,T0,a,{n},{p},0.5,1" for n, p in enumerate(passes))]))
    (row,) = csv.DictReader(io.StringIO(TIER_ANALYSIS_FORMATS["csv"](analyse_tiers(experiment(ten).runs))))
    told = [float(row[f"pass_rate_{name}"]) for name in ("median", "mean", "mode", "min", "max", "std_dev", "count")]
    assert told == pytest.approx([1, 0.8, 1, 0, 1, 0.4, 10])


def test_a_program_gets_null_and_a_flag_for_what_is_infinite() -> None:
    told = json.loads(TIER_ANALYSIS_FORMATS["json"](found()), parse_constant=lambda name: pytest.fail(name))
    last = told["models"][0]["tiers"][3]
    assert last["cost_of_pass"]["value"] is None
    assert last["cost_of_pass"]["infinite"] is True
    assert last["statistics"]["cost_of_pass"]["median"] is None
    assert last["statistics"]["cost_of_pass"]["infinite"] == ["median", "mean", "mode", "min", "max"]
    unknown = told["models"][0]["tiers"][2]
    assert unknown["cost_of_pass"] == {"value": None}
    assert unknown["unpriced"] == 4
    assert [run for run in told["runs"] if run.get("cost_of_pass_infinite") and run["cost_of_pass"] is not None] == []


def test_a_program_gets_the_same_bytes_whatever_holds_the_runs() -> None:
    for analysis in (found(), analyse_tiers(RunTable.of(runs())), example_3()):
        assert json_document(analysis) == json_report(msgspec.structs.replace(analysis, runs=tuple(analysis.runs)))


def test_every_format_names_its_inputs_by_digest() -> None:
    for form in TIER_ANALYSIS_FORMATS.values():
        written = form(found())
        assert all(source.digest in written for source in SOURCES)


def test_a_spreadsheet_gets_a_row_per_tier_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(TIER_ANALYSIS_FORMATS["csv"](found()))))
    assert [row["tier"][:3].strip() for row in rows] == ["T0", "T1", "T2", "T10"]
    assert {row["model"][:3] for row in rows} == {"'=c"}
    assert [row["cost_of_pass_infinite"] for row in rows] == ["false", "false", "false", "true"]
    assert rows[2]["total_cost_usd"] == rows[2]["cost_of_pass"] == ""
    assert [row["tier_vs_predecessor"][:3].strip() for row in rows] == ["", "T0", "T1", "T2"]


def test_no_two_columns_have_one_name() -> None:
    head = next(csv.reader(io.StringIO(TIER_ANALYSIS_FORMATS["csv"](found()))))
    assert len(set(head)) == len(head)


def test_no_name_commands_a_terminal() -> None:
    for written in (text(found(), color=False), *(form(found()) for form in TIER_ANALYSIS_FORMATS.values())):
        assert INVISIBLE_CHARACTER_PATTERN.search(written.replace("@\u200b", "@")) is None


def test_colour_is_only_colour() -> None:
    coloured = text(found(), color=True)
    assert "\x1b[1m" in coloured
    assert coloured.replace("\x1b[1m", "").replace("\x1b[0m", "").split() == text(found()).split()


def test_a_single_run_needs_no_comparison() -> None:
    alone = analyse_tiers([TierRun(model="m", tier="T0", case="a", passed=True, impl_rate=0.85, cost_usd=0.5)])
    written = TIER_ANALYSIS_FORMATS["text"](alone)
    assert "Against" not in written
    assert "Holm" not in written
    assert "$0.500" in written


def test_a_baseline_of_zero_is_said_instead_of_an_uplift() -> None:
    given = [
        TierRun(model="m", tier=tier, case=case, passed=tier == "T1", impl_rate=float(tier == "T1"))
        for tier in ("T0", "T1")
        for case in "abcdefgh"
    ]
    assert "n/a, baseline is 0" in TIER_ANALYSIS_FORMATS["text"](analyse_tiers(given))


def test_what_cannot_be_told_is_said_first() -> None:
    given = [TierRun(model="m", tier="T0", case=f"c{n}", passed=None if n == 0 else True) for n in range(5)]
    assert TIER_ANALYSIS_FORMATS["text"](analyse_tiers(given)).startswith(
        "Cannot tell: more than 5% of the cases of some tier"
    )
    assert "**Cannot tell" in TIER_ANALYSIS_FORMATS["markdown"](analyse_tiers(given))


@pytest.mark.parametrize(
    ("letter", "could_be", "told"),
    [
        ("B", "", "B"),
        ("B", "A", "B, could be A"),
        ("B", "AC", "B, could be A or C"),
        ("A", "BCDF", "A, could be B to F"),
        ("F", "ABCD", "F, could be A to D"),
        (None, "", "-"),
    ],
)
def test_a_grade_is_told_with_its_doubt(letter: str | None, could_be: str, told: str) -> None:
    assert grade_text(TierGrade(letter=letter, could_be=tuple(could_be))) == told


def test_the_text_fits_100_columns_and_no_column_is_lost() -> None:
    written = text(found(), color=False)
    assert max(map(len, written.splitlines())) <= 100
    (whole, *_) = tier_tables(found())
    assert all(cell in written for cell in (*whole.head, *(cell for row in whole.rows for cell in row)))


def test_the_page_and_the_paper_have_every_table_and_run_nothing_of_what_they_show() -> None:
    page, paper = html_page(found()), latex_tables(found())
    for table in tier_tables(found()):
        assert str(escape(table.title)) in page
        assert latex_text(table.title) in paper
    assert "<script" not in page
    assert page.count("<svg") == len([*charts(found()), *detail_charts(found())])
    assert paper.count(r"\begin{table}") == sum(bool(t.head) for t in tier_tables(found()))
    assert paper.count(r"\begin{tabular}") == paper.count(r"\end{tabular}") > paper.count(r"\begin{table}")
    # what is too wide for a page goes on below, with every column
    plain = latex_tables(example_3())
    for tabular in re.findall(r"\\begin{tabular}.*?\n\\hline\n(.*?)\\end", plain, re.DOTALL):
        rows = [row.split(" & ") for row in tabular.splitlines() if " & " in row]
        assert sum(max(map(len, column)) + 3 for column in zip(*rows, strict=True)) <= 90
    (whole, *_) = tier_tables(found())
    assert all(latex_text(cell) in paper for cell in (*whole.head, *(cell for row in whole.rows for cell in row)))
    assert latex_text("\\input{x} 5% a_b & $1 #2 {~^}") == (
        r"\textbackslash{}input\{x\} 5\% a\_b \& \$1 \#2 \{\textasciitilde{}\textasciicircum{}\}"
    )


def test_many_categories_of_judges_are_a_table_with_their_runs() -> None:
    given = _two_tiers(4)
    judges = JudgeIdentity("one"), JudgeIdentity("two")
    ratings = [RunRating(run=run.identity, judge=judge, passed=True) for run in given for judge in judges]
    marks = [
        CriterionRating(run=run.identity, judge=judge, criterion=f"part {part}", achieved=(number + part) % 3, max=2)
        for number, run in enumerate(given)
        for judge in judges
        for part in range(5)
    ]
    tables = {table.title: table for table in tier_tables(analyse_tiers(given, ratings, marks, replicates=40))}
    table = tables["Krippendorff's alpha by category"]
    assert [row[:2] for row in table.rows] == [[f"part {part}", str(len(given))] for part in range(5)]
    assert "alpha by category" not in " ".join(tables["Judges"].sentences)


def test_an_addition_that_may_be_chance_is_said_to_buy_nothing() -> None:
    (model,) = analyse_tiers(_two_tiers(8)).models
    (each,) = model.ablation
    assert addition_text(each).startswith("T1 over T0 buys ")
    assert "points of pass rate" in addition_text(each)
    (model,) = analyse_tiers(_two_tiers(1)).models
    assert "buys nothing that can be distinguished from chance" in addition_text(model.ablation[0])


def test_the_heat_map_tells_tiers_and_cases_apart() -> None:
    (forest, cells) = detail_charts(analyse_tiers(_two_tiers(8)))
    assert (forest.name, cells.name) == ("differences", "tiers-and-cases")
    assert cells.head == ("case", "T0", "T1")
    assert cells.panels[0].x.title.startswith("case: 1 c0, 2 c1")
    assert cells.rows[0] == ("c0", "0%", "100%")
    assert cells.rows[-1] == ("c9", "0%", "0%")
    svg = svg_file(cells)
    assert svg.count('opacity="0.06"') == 12, "one faint cell for each case that a tier never passes"


def _two_tiers(better: int) -> list[TierRun]:
    """Ten cases of which the second tier passes some, and the first none."""
    return [
        TierRun(model="m", tier=tier, case=f"c{c}", number=n, passed=tier == "T1" and c < better, cost_usd=0.5)
        for tier in ("T0", "T1")
        for c in range(10)
        for n in (1, 2)
    ]
