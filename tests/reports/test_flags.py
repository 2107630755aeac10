"""Cheats are counted apart from mistakes, wherever a run is summed up."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable

import pytest
from msgspec.structs import replace

from steelyard.analysis.attempts import attempt_table
from steelyard.analysis.summary import RunResults
from steelyard.comparison.sides import run_side
from steelyard.records import FLAG_BESIDE_TESTS, FLAG_CHANGED_TESTS, Case, Fact, Finding, RunInfo, Verdict, Verify
from steelyard.records import Test as CaseTest
from steelyard.reports import html, junit, markdown
from steelyard.reports.exports.attempt_rows import csv_report
from steelyard.reports.json import report as json_report
from steelyard.reports.terminal import summary_text
from support.suite_facts import attempt
from support.whole_results import run_results

CASE = Case(id="one", prompt="Write one().", language="python", verify=Verify(tests="assert one() == 1"))
RIGHT = Finding(tests=(CaseTest(name="t", outcome="passed"),), trust="in-process", isolation="full", controls=2)
WRONG = replace(RIGHT, tests=(CaseTest(name="t", outcome="failed"),), trust="isolated", controls=0)
FOUND = (
    RIGHT,
    WRONG,
    *(replace(RIGHT, tampered="it also passes tests that are false", label="tampered"),) * 3,
    *(replace(WRONG, flag=FLAG_BESIDE_TESTS, watched=True),) * 5,
    replace(WRONG, watched=False),
    replace(RIGHT, flag=FLAG_CHANGED_TESTS),
)


def judged(number: int, found: Finding) -> list[Fact]:
    reply, verdict = attempt(CASE, "pass", number)
    assert isinstance(verdict, Verdict)
    return [reply, replace(verdict, found=found)]


FACTS = [fact for number, found in enumerate(FOUND, 1) for fact in judged(number, found)]


@pytest.fixture(scope="module")
def results() -> RunResults:
    return run_results(
        RunInfo(id="r", started_at="2026-01-01T00:00:00Z", names=("m",), models=("m",), samples=len(FOUND)),
        [CASE],
        FACTS,
    )


def test_cheats_and_what_looks_like_them_are_counted_by_kind(results: RunResults) -> None:
    (model,) = results.summary.models
    assert (model.correct, model.attempts, model.tampered) == (2, 12, 3)
    assert model.flagged == {FLAG_BESIDE_TESTS: 5, FLAG_CHANGED_TESTS: 1}
    assert (model.watched, model.separated) == (5, 6)


SUMMED_UP: dict[str, Callable[[RunResults], str | Iterable[str]]] = {
    "terminal": lambda results: summary_text(
        results.summary, title="r", next_commands=[], width=300, color=False, details=True
    ),
    "markdown": markdown.report,
    "junit": junit.report,
    "html": html.report,
}


@pytest.mark.parametrize("report", SUMMED_UP)
def test_every_summary_says_how_many_there_are_and_what_a_plain_run_looked_at(results: RunResults, report: str) -> None:
    made = SUMMED_UP[report](results)
    text = made if isinstance(made, str) else "".join(made)
    assert "5 of 6 compared apart were run plainly, too" in text
    assert "3 tampered, 5 only beside their tests, 1 passed changed tests" in text


def test_a_comparison_says_it_of_the_side_that_has_them(results: RunResults) -> None:
    table = attempt_table(results.info, results.cases, FACTS)
    warnings = run_side("new", "code", results.info, results.cases, table).warnings
    assert [each.partition(";")[0] for each in warnings] == [
        "new: 3 tampered, 5 only beside their tests, 1 passed changed tests"
    ]
    honest = attempt_table(results.info, results.cases, FACTS[:4])
    assert run_side("new", "code", results.info, results.cases, honest).warnings == ()


def test_every_attempt_says_what_was_found_out_about_it(results: RunResults) -> None:
    rows = list(csv.DictReader("".join(csv_report(results)).splitlines()))
    assert (rows[0]["flag"], rows[0]["watched"], rows[0]["controls"]) == ("", "", "2")
    assert (rows[5]["flag"], rows[10]["watched"]) == (FLAG_BESIDE_TESTS, "false")
    attempts = json.loads("".join(json_report(results)))["results"]
    assert [each["flag"] for each in attempts] == [found.flag for found in FOUND]
    assert [each["controls"] for each in attempts] == [found.controls for found in FOUND]
