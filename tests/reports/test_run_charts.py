"""Charts of a run hold what the summary says, are valid, and say it in words as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from steelyard.analysis.attempts import attempt_table
from steelyard.analysis.summary import summarise_attempts
from steelyard.records import Answer, Case, Cost, Fact, Failure, Finding, Reply, RunInfo, Verdict
from steelyard.records import Test as OneTest
from steelyard.reports.charts.run import MAX_CHART_MODELS
from steelyard.reports.charts.run import charts as drawn
from steelyard.reports.charts.spec import Chart
from steelyard.reports.charts.svg import DARK_COLOURS, svg_element
from support.hostile_texts import TEXTS
from support.suite_facts import attempt, both, info, suite

if TYPE_CHECKING:
    from collections.abc import Sequence

CASES = tuple(Case(id=f"c{number}", prompt="p", language="python") for number in range(6))
LABELS = ("wrong answer", "time limit", "no code")


def facts(models: Sequence[str], samples: int = 4, *, priced: bool = True, tier: str = "") -> list[Fact]:
    """The first model is always right, every further one less often, and dearer; one attempt is missing."""
    found: list[Fact] = []
    for place, model in enumerate(models):
        for order, case in enumerate(CASES):
            for number in range(1, samples + 1):
                about: dict[str, Any] = {"at": "", "case": case.id, "model": model, "number": number, "tier": tier}
                key = f"{model}/{case.id}/{number}"
                answer = Answer(
                    text="x",
                    latency=0.5 + place + 0.1 * number,
                    output_tokens=100 * (place + 1),
                    cost=Cost(usd=0.01 * (place + 1), source="s") if priced else None,
                )
                found.append(Reply(key=key, answer=answer, asked="", **about))
                if place == 1 and order == 0 and number == 1:
                    found.append(Failure(key=key, stage="verify", message="no sandbox", **about))
                    continue
                is_right = (order + number) % (place + 1) == 0
                label = "" if is_right else LABELS[(order + number) % 3]
                tests = (OneTest(name="t", outcome="passed" if is_right else "failed"),)
                finding = Finding(code="x", compiled=True, tests=tests, label=label, reason=label)
                found.append(
                    Verdict(key=f"v{key}", ask=key, tests=case.tests_digest, verifier="v", found=finding, **about)
                )
    return found


def charts_of(cases: Sequence[Case], said: Sequence[Fact], about: RunInfo) -> dict[str, Chart]:
    table = attempt_table(about, cases, said)
    found = drawn(summarise_attempts(about, cases, table), cases, table)
    return {chart.name: chart for chart in found}


def run_charts(models: Sequence[str] = ("a", "b"), samples: int = 4, **how: Any) -> dict[str, Chart]:
    about = RunInfo(id="r", started_at="", names=tuple(models), models=tuple(models), samples=samples)
    return charts_of(CASES, facts(models, samples, **how), about)


def suite_charts() -> dict[str, Chart]:
    cases, said = both(suite("json", "pass", "refusal", "pass"), suite("maths", "fail", "failure", "pass"))
    return charts_of(cases, [*said, *attempt(cases[0], "pass", number=2, model="other")], info(names=("m", "other")))


ALL = {
    **{f"{name} of 2": chart for name, chart in run_charts().items()},
    **{f"{name} of 1": chart for name, chart in run_charts(["alone"]).items()},
    **{f"{name} of 9": chart for name, chart in run_charts([f"model {n}" for n in range(9)]).items()},
    **{f"{name} unpriced": chart for name, chart in run_charts(priced=False).items()},
    **{f"{name} many samples": chart for name, chart in run_charts(samples=60).items()},
    **{f"{name} of suites": chart for name, chart in suite_charts().items()},
    **{f"{name} hostile": chart for name, chart in run_charts(list(TEXTS.values())[:5]).items()},
}


def test_there_is_a_chart_of_everything_there_is() -> None:
    assert tuple(run_charts()) == ("pass-at-k", "scores", "cost-quality", "latency", "failures")
    assert tuple(run_charts(["alone"])) == ("pass-at-k", "scores", "latency")
    assert tuple(run_charts(samples=1)) == ("scores", "cost-quality", "latency", "failures")
    assert "suites" in suite_charts()
    assert charts_of(CASES, [], RunInfo(id="r", started_at="", names=("a",))) == {}


def test_every_k_is_drawn_that_there_are_attempts_for() -> None:
    chart = run_charts()["pass-at-k"]
    assert chart.head == ("k", "a", "b")
    assert [row[0] for row in chart.rows] == ["1", "2", "3", "4"]
    assert chart.rows[0][1].startswith("100.0% [")
    # one of six cases has fewer attempts, which is few enough
    assert chart.rows[3][2] != "-"
    ks = [int(row[0]) for row in ALL["pass-at-k many samples"].rows]
    assert ks[-1] == 50
    assert len(ks) < 16


def test_the_pareto_front_is_of_those_that_nobody_beats() -> None:
    chart = run_charts(["a", "b", "c"])["cost-quality"]
    assert [(row[0], row[3]) for row in chart.rows] == [("a", "yes"), ("b", "no"), ("c", "no")]
    assert chart.description.startswith("model a: cost of an attempt $0.010, pass@1 100.0% [")
    assert chart.rows[1][1] == "$0.020"


def test_tokens_stand_for_a_price_that_nobody_knows() -> None:
    chart = run_charts(priced=False)["cost-quality"]
    assert chart.title == "Tokens against quality"
    assert "no price is known" in chart.subtitle
    assert [row[1] for row in chart.rows] == ["100", "200"]


def test_kinds_of_failures_are_counted_and_a_missing_attempt_is_none_of_the_model_s() -> None:
    chart = run_charts()["failures"]
    rows = {row[0]: row[1:] for row in chart.rows}
    assert rows["missing: not the model's"] == ("0", "1")
    judged = sum(int(row[1]) for name, row in rows.items() if not name.startswith("missing"))
    assert judged == 24 - 1 - sum((order + number) % 2 == 0 for order in range(6) for number in range(1, 5))


def test_of_many_models_the_best_are_shown_and_that_is_said() -> None:
    for name in ("pass-at-k of 9", "scores of 9", "latency of 9"):
        assert f"the {MAX_CHART_MODELS} best of 9 models" in ALL[name].subtitle
    shown = {row[0] for row in ALL["latency of 9"].rows}
    assert "model 0" in shown
    assert len(shown) == MAX_CHART_MODELS


@pytest.mark.parametrize("name", ALL)
def test_a_chart_is_told_in_words_and_numbers(name: str) -> None:
    chart = ALL[name]
    assert chart.title
    assert chart.subtitle
    assert chart.description
    assert chart.rows
    assert {len(row) for row in chart.rows} == {len(chart.head)}
    assert chart.name.replace("-", "").isalpha()


@pytest.mark.parametrize("name", ALL)
def test_a_chart_is_drawn_in_colours_that_the_page_knows(name: str) -> None:
    drawing = str(svg_element(ALL[name]))
    used = {value.partition('"')[0] for part in ("fill", "stroke") for value in drawing.split(f' {part}="')[1:]}
    assert used <= {*DARK_COLOURS, "none"}
    assert drawing.count("<script") == 0
    if "hostile" not in name:
        # what is drawn is what the table says: each name of a series or a row stands in the drawing
        assert all(label in drawing for label in ALL[name].series[1:])
