"""The summary as Markdown, and the attempts as CSV."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

import pytest

from steelyard.reports.exports.attempt_rows import ATTEMPT_CSV_COLUMNS, csv_report
from steelyard.reports.markdown import report as markdown_report
from steelyard.reports.tables import code, escaped
from steelyard.text import INVISIBLE_CHARACTER_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.summary import RunResults

GUARD = "\u200b"


def test_a_comment_reads_as_reviewed(results: RunResults, golden: Callable[[str, str], None]) -> None:
    golden("summary.md", markdown_report(results))


def outside_code(text: str) -> str:
    """What is left for Markdown to interpret: code spans and escaped characters gone."""
    spans = re.compile(r"(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)")
    return re.sub(r"\\[!-/:-@\[-`{-~]", "", spans.sub("", text))


def test_a_comment_holds_no_html_link_or_mention(results: RunResults) -> None:
    left = outside_code(markdown_report(results))
    assert not re.search(r"[<>&`]|\]\(|://|www\.", left)
    assert not re.search(r"(?<!pass)[@#]\w", left)


def test_every_row_of_a_table_has_as_many_cells_as_its_head(results: RunResults) -> None:
    rows = [row for row in markdown_report(results).splitlines() if row.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4, 5, 6}


def test_a_comment_has_no_invisible_characters_but_the_guards(results: RunResults) -> None:
    assert INVISIBLE_CHARACTER_PATTERN.search(markdown_report(results).replace(GUARD, "")) is None


@pytest.mark.parametrize("text", ["`", "``a", "a```b``", "`` ` ```"])
def test_a_code_span_outruns_the_backticks_inside(text: str) -> None:
    span = code(text)
    fence = re.match("`+", span)
    assert fence is not None
    inner = span[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in inner
    assert inner.strip(" ").count("`") == text.count("`")


def test_prose_that_looks_like_a_list_stays_prose() -> None:
    assert escaped("- a") == "\\- a"
    assert escaped("12. a") == "12\\. a"
    assert escaped("pass@1 is *fine*") == "pass@1 is \\*fine\\*"
    assert escaped("@team") == f"@{GUARD}team"


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_there_is_a_row_for_every_attempt(results: RunResults) -> None:
    rows = table(csv_report(results))
    assert tuple(rows[0]) == ATTEMPT_CSV_COLUMNS
    assert len(rows) == len(results.attempts) == len(csv_report(results).splitlines()) - 1


def test_facts_stand_in_their_columns_and_the_unknown_is_empty(results: RunResults) -> None:
    rows = table(csv_report(results))
    first, bare, broken, unjudged = rows[0], rows[3], rows[9], rows[11]
    assert (first["correct"], first["score"], first["tests_passed"], first["cost_usd"]) == (
        "true",
        "1.0",
        "2",
        "0.000246",
    )
    assert (first["input_tokens"], first["cached_tokens"], first["reasoning_tokens"]) == ("120", "20", "")
    assert (bare["correct"], bare["label"], bare["tests_passed"], bare["cost_usd"]) == ("false", "no code", "", "")
    assert (broken["correct"], broken["finish"], broken["failure_stage"]) == ("", "", "ask")
    assert (unjudged["model"], unjudged["finish"], unjudged["failure_stage"]) == ("evil/<b>=m`1|", "stop", "verify")


def test_a_forgery_and_a_disagreement_stand_in_columns_of_their_own(results: RunResults) -> None:
    rows = table(csv_report(results))
    honest, forged, unsteady = rows[0], rows[7], rows[8]
    assert (honest["tampered"], honest["rechecked"], honest["trust"], honest["isolation"]) == (
        "",
        "0",
        "isolated",
        "bubblewrap",
    )
    assert forged["tampered"].startswith("<script>")
    assert forged["correct"] == "false"
    assert (unsteady["rechecked"], unsteady["disagreed"]) == ("3", "2")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r", "\n=", "\x1b[31m=", "\uff1d"])
def test_no_text_starts_a_formula(results: RunResults, start: str) -> None:
    tried = results.attempts[0]
    harmful = tried._replace(model=start + "cmd")
    assert table(csv_report(results._replace(attempts=(harmful,))))[0]["model"].startswith("'")


def test_a_number_we_wrote_is_a_number_even_below_zero(results: RunResults) -> None:
    low = results.attempts[0]._replace(score=-0.5)
    assert table(csv_report(results._replace(attempts=(low,))))[0]["score"] == "-0.5"


def test_the_table_holds_nothing_a_terminal_obeys(results: RunResults) -> None:
    assert INVISIBLE_CHARACTER_PATTERN.search(csv_report(results)) is None
