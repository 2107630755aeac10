"""An interval covers as often as it promises."""

from __future__ import annotations

import random

import pytest

from steelyard.stats.intervals import mean_interval, wilson
from steelyard.stats.passk import pass_at_k

COUNTS = [0, 0, 1, 2, 5, 8, 9, 10, 10, 10]


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (0, 10, 0.0, 0.2775327999),
        (1, 10, 0.0178762131, 0.4041500268),
        (5, 10, 0.2365930905, 0.7634069095),
        (8, 10, 0.4901624715, 0.9433178485),
        (10, 10, 0.7224672001, 1.0),
        (95, 100, 0.8882495308, 0.9784563208),
    ],
)
def test_wilson_gives_the_published_values(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-11)


def test_wilson_ends_are_exact_where_everything_failed_or_succeeded() -> None:
    for trials in range(1, 200):
        none, every = wilson(0, trials), wilson(trials, trials)
        assert none is not None
        assert every is not None
        assert none.low == 0.0
        assert every.high == 1.0


def test_nothing_tried_has_no_interval() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5), (0, -1)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson(successes, trials)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_is_a_share(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        wilson(1, 2, level=level)
    with pytest.raises(ValueError, match="level"):
        mean_interval([0.1, 0.2], attempts=2, level=level)


def test_a_higher_level_is_wider() -> None:
    narrow, wide = mean_interval([0.2, 0.5, 0.9], attempts=30, level=0.8), mean_interval([0.2, 0.5, 0.9], attempts=30)
    assert narrow is not None
    assert wide is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_mean_of_the_worked_example_has_its_interval() -> None:
    values = [0.94] * 40 + [0.24] * 10  # mean 0.8, standard error 0.04
    assert mean_interval(values, attempts=500) == pytest.approx((0.708691904735, 0.868018273893), abs=1e-12)


@pytest.mark.parametrize(
    ("k", "low", "high"),
    [
        (1, 0.27039171479941, 0.80122646642336),
        (5, 0.40011569969502, 0.91433345509143),
        (10, 0.42701241497992, 0.95549549736138),
    ],
)
def test_pass_at_k_of_ten_cases_has_its_interval(k: int, low: float, high: float) -> None:
    values = [pass_at_k(10, count, k) or 0.0 for count in COUNTS]
    assert mean_interval(values, attempts=100) == pytest.approx((low, high), abs=1e-13)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_below_two_cases_there_is_no_interval(values: list[float]) -> None:
    assert mean_interval(values, attempts=10) is None


def test_cases_that_all_agree_count_once_each() -> None:
    fewer, more = mean_interval([1.0] * 5, attempts=5), mean_interval([1.0] * 5, attempts=500)
    assert fewer == more
    assert fewer is not None
    assert fewer.high == 1.0
    assert 0.3 < fewer.low < 0.5


def test_cases_that_nearly_agree_tell_no_more_than_their_attempts() -> None:
    fewer, more = mean_interval([0.5, 0.5001], attempts=4), mean_interval([0.5, 0.5001], attempts=400)
    assert fewer is not None
    assert more is not None
    assert fewer.low < more.low < 0.5 < more.high < fewer.high


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3])
def test_equal_values_are_equal_whatever_rounding_does_to_their_mean(value: float) -> None:
    assert mean_interval([value] * 3, attempts=3) == mean_interval([value] * 3, attempts=300)


def test_values_a_rounding_error_apart_are_no_trouble() -> None:
    assert mean_interval([0.5, 0.5 + 2**-53], attempts=4) is not None
    assert mean_interval([1e-200, 2e-200], attempts=4) is not None


@pytest.mark.parametrize("values", [[0.5, 1.5], [-0.1, 0.5], [float("nan"), 0.5]])
def test_values_outside_the_unit_interval_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        mean_interval(values, attempts=5)


def test_values_cannot_rest_on_fewer_attempts_than_there_are_values() -> None:
    with pytest.raises(ValueError, match="cannot rest on"):
        mean_interval([0.5, 0.6, 0.7], attempts=2)


def test_the_order_of_cases_does_not_matter() -> None:
    values = [random.Random(7).random() for _ in range(50)]
    assert mean_interval(values, attempts=50) == mean_interval(values[::-1], attempts=50)


@pytest.mark.parametrize(
    ("cases", "attempts", "k", "skill"),
    [(10, 1, 1, (0.5, 0.5)), (20, 5, 1, (9.0, 1.0)), (30, 10, 5, (0.5, 0.5)), (50, 5, 1, (0.3, 2.0))],
)
def test_the_interval_of_a_mean_covers(cases: int, attempts: int, k: int, skill: tuple[float, float]) -> None:
    chance = random.Random(20240607)
    alpha, beta = skill
    missed = 1.0  # the chance that all of k attempts fail, over all cases
    for step in range(k):
        missed *= (beta + step) / (alpha + beta + step)
    truth = 1 - missed
    runs = 600
    covered = 0
    for _ in range(runs):
        values = []
        for _ in range(cases):
            ability = chance.betavariate(alpha, beta)
            count = sum(chance.random() < ability for _ in range(attempts))
            values.append(pass_at_k(attempts, count, k) or 0.0)
        interval = mean_interval(values, attempts=cases * attempts)
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    assert covered / runs >= 0.92
