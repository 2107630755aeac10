"""A page stays small: five megabytes for a thousand attempts, whatever they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from steelyard.analysis.summary import RunResults
from steelyard.records import Test as OneTest
from steelyard.reports import html
from steelyard.reports.html import html_report_data
from steelyard.reports.page import ATTEMPT_TEXT_CHARACTER_LIMITS, truncated_text

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTES = 1_000_000


@pytest.fixture
def run_of(results: RunResults) -> Callable[..., RunResults]:
    """A run of so many attempts at a hundred cases that all say the same."""

    def made(attempts: int, text: str, *, correct: int = 0, tests: int = 3) -> RunResults:
        cases = [replace(results.cases[2], id=f"case {number}", prompt=text[:3_000]) for number in range(100)]
        model = results.summary.models[0].model
        first = results.attempts[4]
        assert first.verdict is not None
        assert first.reply is not None
        said = replace(first.reply, answer=replace(first.reply.answer, text=text))
        judged = tuple(OneTest(name=text[:300], outcome="failed", message=text[:1_000]) for _ in range(tests))
        verdict = replace(first.verdict, found=replace(first.verdict.found, code=text, output=text, tests=judged))
        tried = tuple(
            first._replace(
                case=cases[number % 100],
                model=model,
                number=number // 100 + 1,
                reply=said,
                verdict=verdict,
                correct=number < correct,
            )
            for number in range(attempts)
        )
        ordered = tuple(sorted(tried, key=lambda each: (int(each.case.id[5:]), each.number)))
        counts = tuple(replace(results.summary.cases[2], case=case.id, model=model) for case in cases)
        summary = replace(results.summary, models=results.summary.models[:1], cases=counts)
        return results._replace(cases=tuple(cases), attempts=ordered, summary=summary)

    return made


def test_the_page_of_a_thousand_attempts_takes_less_than_five_megabytes(run_of: Callable[..., RunResults]) -> None:
    # what grows most: each character is written as four, and what highlights code finds a token in each
    page = html.page(html_report_data(run_of(1_000, "<" * 1_500)))
    assert len(page.encode()) < 5 * MEGABYTES
    assert page.count('<details class="attempt') == 1_000


def test_short_texts_leave_their_room_to_long_ones(run_of: Callable[..., RunResults]) -> None:
    results = run_of(600, "short")
    first = results.attempts[0]
    assert first.reply is not None
    long = "".join(f"line {number} of a long reply\n" for number in range(3_000))
    said = replace(first.reply, answer=replace(first.reply.answer, text=long))
    page = html.page(html_report_data(results._replace(attempts=(first._replace(reply=said), *results.attempts[1:]))))
    assert long in page


def test_what_is_left_out_of_a_text_is_said(run_of: Callable[..., RunResults]) -> None:
    page = html.page(html_report_data(run_of(3, "x" * 1_000_000)))
    assert f"{1_000_000 - ATTEMPT_TEXT_CHARACTER_LIMITS[0]:,} characters left out here" in page


def test_a_larger_run_keeps_the_texts_of_failures_and_some_others_and_says_so_first(
    run_of: Callable[..., RunResults],
) -> None:
    page = html.page(html_report_data(run_of(3_000, "a reply", correct=2_700)))
    assert "This run has 3,000 attempts." in page
    assert "texts of all 300 failures, and of 700 of 2,700 correct attempts" in page
    assert page.index("This run has") < page.index("<table")
    assert page.count('<details class="attempt wrong"') == 300
    assert page.count('<details class="attempt correct"') == 700
    assert "20 more attempts whose texts are not kept here: 20 correct" in page
    assert len(page.encode()) < 5 * MEGABYTES


def test_a_small_run_keeps_all_and_says_nothing(run_of: Callable[..., RunResults]) -> None:
    page = html.page(html_report_data(run_of(100, "a reply")))
    assert "This run has" not in page
    assert "not kept here" not in page


def test_very_many_tests_are_counted_rather_than_listed(run_of: Callable[..., RunResults]) -> None:
    page = html.page(html_report_data(run_of(1, "t", tests=5_000)))
    assert "and 4800 more" in page


@pytest.mark.parametrize(
    ("most", "head", "tail"), [(9, "abcdef", "xyz"), (3, "ab", "z"), (26, "abcdefghijklmnopqrstuvwxyz", "")]
)
def test_a_cut_keeps_the_beginning_and_the_end(most: int, head: str, tail: str) -> None:
    assert truncated_text("abcdefghijklmnopqrstuvwxyz", most) == (head, 26 - most, tail)


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        (10, "2,000 of 4,000 cases are shown: all where something failed among them"),
        (3_000, "2,000 of 4,000 cases are shown: the first of the 3,000 where something failed"),
    ],
)
def test_the_matrix_of_many_cases_has_those_first_where_something_failed_and_says_how_many_more_there_are(
    run_of: Callable[..., RunResults], failed: int, said: str
) -> None:
    few = run_of(3, "short")
    case, counted = few.cases[0], few.summary.cases[0]
    cases = tuple(replace(case, id=f"case {number}") for number in range(4_000))
    counts = tuple(
        replace(counted, case=case.id, attempts=1, correct=int(number < 4_000 - failed))
        for number, case in enumerate(cases)
    )
    page = html.page(html_report_data(few._replace(cases=cases, summary=replace(few.summary, cases=counts))))
    assert said in page
    assert page.count('<span class="cell') + page.count('<a class="cell') == 2_000
    assert f">case {4_000 - failed}<" in page, "the first that failed"
    assert ">case 3500<" not in page
