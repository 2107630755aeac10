"""Which attempts of a large run are shown with their texts."""

from __future__ import annotations

from collections import Counter

from steelyard.analysis.summary import RunResults
from steelyard.reports.outlines import (
    MAX_SHOWN_FAILURES,
    MAX_SMALL_RUN_ATTEMPTS,
    MIN_SHOWN_PASSES,
    AttemptMetrics,
    attempt_metrics,
    even_sample,
    shown_attempts,
)


def attempts(cases: int, models: int, samples: int, correct: int) -> list[AttemptMetrics]:
    """Of each case under each model the first so many attempts are correct."""
    return [
        AttemptMetrics(f"c{case}", f"m{model}", "", number, number <= correct, 1.0, "", 1.0, None, None)
        for case in range(cases)
        for model in range(models)
        for number in range(1, samples + 1)
    ]


def test_all_texts_of_a_small_run_are_shown() -> None:
    every = attempts(10, 10, 10, 7)
    assert len(every) == MAX_SMALL_RUN_ATTEMPTS
    picked = shown_attempts(every)
    assert picked.places == {attempt.place for attempt in every}
    assert (picked.failed, picked.passed) == (300, 700)


def test_of_a_larger_run_all_failures_are_shown_and_some_passes_of_every_case_and_model() -> None:
    every = attempts(20, 10, 10, 9)
    picked = shown_attempts(every)
    shown = [attempt for attempt in every if attempt.place in picked.places]
    assert sum(not attempt.correct for attempt in shown) == picked.failed == 200
    passes = Counter(attempt[:3] for attempt in shown if attempt.correct)
    assert len(passes) == 200
    assert set(passes.values()) == {4}
    assert picked.passed == MAX_SMALL_RUN_ATTEMPTS - 200


def test_where_failures_are_too_many_they_are_spread_over_the_run() -> None:
    every = attempts(2_000, 2, 3, 1)
    picked = shown_attempts(every)
    assert (picked.failed, picked.passed) == (MAX_SHOWN_FAILURES, MIN_SHOWN_PASSES)
    cases = {place[0] for place in picked.places}
    assert "c0" in cases
    assert any(int(case[1:]) > 1_900 for case in cases)
    assert {place[1] for place in picked.places} == {"m0", "m1"}


def test_spreading_takes_one_of_each_before_it_takes_a_second() -> None:
    every = attempts(4, 1, 5, 0)
    assert Counter(attempt.case for attempt in even_sample(every, 6)) == {"c0": 2, "c1": 1, "c2": 2, "c3": 1}
    assert even_sample(every, 100) == every


def test_the_same_run_is_chosen_from_in_the_same_way() -> None:
    every = attempts(300, 2, 5, 2)
    assert shown_attempts(every) == shown_attempts(list(every))


def test_an_attempt_without_its_texts_keeps_its_numbers(results: RunResults) -> None:
    wrong, missing = attempt_metrics(results.attempts[4]), attempt_metrics(results.attempts[9])
    assert wrong[:6] == ("=HYPERLINK(1)", "openai/gpt-5", "", 1, False, 0.625)
    assert (wrong.failure, wrong.latency, wrong.cost_usd, wrong.tokens) == ("test failed", 1.25, 0.000246, 48)
    assert (missing.correct, missing.failure, missing.latency) == (None, "", None)
