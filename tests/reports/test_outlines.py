"""Which attempts of a large run are shown with their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.attempt_texts import table_of_texts
from steelyard.analysis.attempts import AttemptRow
from steelyard.analysis.summary import RunResults
from steelyard.reports.page import (
    MAX_SHOWN_FAILURES,
    MAX_SMALL_RUN_ATTEMPTS,
    MIN_SHOWN_PASSES,
    even_sample,
    shown_attempts,
)


def attempts(cases: int, models: int, samples: int, correct: int) -> list[AttemptRow]:
    """Of each case under each model the first attempts, as many as are given, are correct."""
    return [
        AttemptRow(
            case=case,
            column=model,
            number=number,
            outcome="correct" if number <= correct else "wrong",
            score=1.0,
            label="",
            reason="",
            finish="stop",
            latency=1.0,
            cost_usd=None,
            input_tokens=None,
            output_tokens=None,
            at="",
        )
        for case in range(cases)
        for model in range(models)
        for number in range(1, samples + 1)
    ]


def test_all_texts_of_a_small_run_are_shown() -> None:
    every = attempts(10, 10, 10, 7)
    assert len(every) == MAX_SMALL_RUN_ATTEMPTS
    picked = shown_attempts(every)
    assert list(picked.rows) == every
    assert (picked.failed, picked.passed) == (300, 700)


def test_of_a_larger_run_all_failures_are_shown_and_some_passes_of_every_case_and_model() -> None:
    picked = shown_attempts(attempts(20, 10, 10, 9))
    assert sum(not row.correct for row in picked.rows) == picked.failed == 200
    passes = Counter(row[:2] for row in picked.rows if row.correct)
    assert len(passes) == 200
    assert set(passes.values()) == {4}
    assert picked.passed == MAX_SMALL_RUN_ATTEMPTS - 200


def test_where_failures_are_too_many_they_are_spread_over_the_run() -> None:
    picked = shown_attempts(attempts(2_000, 2, 3, 1))
    assert (picked.failed, picked.passed) == (MAX_SHOWN_FAILURES, MIN_SHOWN_PASSES)
    cases = {row.case for row in picked.rows}
    assert 0 in cases
    assert any(case > 1_900 for case in cases)
    assert {row.column for row in picked.rows} == {0, 1}


class LiveRow(AttemptRow):
    """A row that counts how many of its kind there are."""

    live = most = 0

    def __del__(self) -> None:
        LiveRow.live -= 1


class RowsOnDisk(list[AttemptRow]):
    """Rows that are made again each time they are gone through."""

    def __iter__(self) -> Iterator[AttemptRow]:
        for row in super().__iter__():
            LiveRow.live += 1
            LiveRow.most = max(LiveRow.most, LiveRow.live)
            yield LiveRow(*row)


def test_choosing_what_a_page_shows_keeps_no_other_row() -> None:
    picked = shown_attempts(RowsOnDisk(attempts(600, 1, 10, 9)))
    assert (picked.failed, picked.passed) == (600, 400)
    assert LiveRow.live == 1000
    assert LiveRow.most <= 1002


def test_spreading_takes_one_of_each_before_it_takes_a_second() -> None:
    every = attempts(4, 1, 5, 0)
    assert Counter(row.case for row in even_sample(every, 6)) == {0: 2, 1: 1, 2: 2, 3: 1}
    assert even_sample(every, 100) == every


def test_the_same_run_is_chosen_from_in_the_same_way() -> None:
    every = attempts(300, 2, 5, 2)
    assert shown_attempts(every) == shown_attempts(list(every))


def test_an_attempt_without_its_texts_keeps_its_numbers(results: RunResults) -> None:
    table = table_of_texts(results.info, results.cases, results.attempts)
    rows = {(results.cases[row.case].id, table.columns[row.column].model, row.number): row for row in table.rows}
    wrong, missing = rows["=HYPERLINK(1)", "openai/gpt-5", 1], rows["borrow", "openai/gpt-5", 2]
    assert (wrong.correct, wrong.score) == (False, 0.625)
    assert (wrong.failure, wrong.latency, wrong.cost_usd, wrong.output_tokens) == ("test failed", 1.25, 0.000246, 48)
    assert (missing.correct, missing.failure, missing.latency) == (None, "", None)
