"""A handful of values is described as its document says."""

from __future__ import annotations

import math
import random
import statistics
from itertools import combinations

import numpy as np
import pytest

from steelyard.stats.descriptive import Statistics, describe, flip_rate, percentile, variance


def test_ten_pass_rates_are_described() -> None:
    found = describe([1, 1, 0, 1, 1, 1, 0, 1, 1, 1])
    assert (found.median, found.mean, found.mode, found.min, found.max, found.count) == (1, 0.8, 1, 0, 1, 10)
    assert found.std_dev == pytest.approx(0.4, rel=1e-15)


def test_ties_for_the_mode_go_to_the_smallest() -> None:
    for values in ([0.2, 0.4, 0.4, 0.9, 0.9, 0.1], [0.9, 0.4, 0.4, 0.1, 0.2, 0.9]):
        found = describe(values)
        assert (found.median, found.mode, found.min, found.max) == (0.4, 0.4, 0.1, 0.9)
        assert found.mean == pytest.approx(0.48333333333333334, rel=1e-14)
        assert found.std_dev == pytest.approx(0.3131382371342656, rel=1e-14)
    assert describe([3, 1, 2]).mode == 1


def test_an_odd_count_has_a_middle_and_an_even_one_two() -> None:
    assert describe([5, 1, 3]).median == 3
    assert describe([5, 1, 3, 4]).median == 3.5


def test_the_variance_divides_by_all_values() -> None:
    assert variance([0.70, 0.80, 0.85, 0.90]) == pytest.approx(0.00546875, rel=1e-14)
    assert describe([0.70, 0.80, 0.85, 0.90]).std_dev == pytest.approx(0.07395099728874521, rel=1e-14)
    assert variance([3.0]) == 0.0


def test_any_values_are_described_as_the_standard_library_does() -> None:
    chance = random.Random(1)
    for size in range(1, 60):
        values = [chance.choice([0.1, 0.5, chance.random()]) * 10 ** chance.randint(-3, 3) for _ in range(size)]
        found = describe(values)
        assert found.median == pytest.approx(statistics.median(values), rel=1e-15)
        assert found.mean == pytest.approx(statistics.fmean(values), rel=1e-15)
        assert found.mode == min(statistics.multimode(values))
        assert found.std_dev == pytest.approx(statistics.pstdev(values), rel=1e-14, abs=1e-15)
        assert (found.min, found.max, found.count) == (min(values), max(values), size)


def test_nothing_is_described_as_nothing_and_not_as_zero() -> None:
    assert describe([]) == Statistics(median=None, mean=None, mode=None, min=None, max=None, std_dev=None, count=0)
    assert variance([]) is None
    assert percentile([], 0.5) is None


def test_an_infinite_cost_leaves_the_median_and_no_deviation() -> None:
    found = describe([0.5, math.inf, 0.6, 0.4])
    assert (found.median, found.mean, found.min, found.max, found.std_dev) == (0.55, math.inf, 0.4, math.inf, None)
    found = describe([0.5, math.inf])
    assert (found.median, found.mode) == (math.inf, 0.5)
    found = describe([math.inf, math.inf])
    assert (found.median, found.mean, found.mode, found.min, found.std_dev) == (*[math.inf] * 4, None)
    assert variance([math.inf, 1.0]) is None


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_what_is_no_value_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="number or infinity"):
        describe([0.5, value])
    with pytest.raises(ValueError, match="number or infinity"):
        variance([0.5, value])
    with pytest.raises(ValueError, match="number or infinity"):
        percentile([0.5, value], 0.5)


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3])
def test_equal_values_have_that_mean_and_no_deviation(value: float) -> None:
    for size in range(1, 30):
        found = describe([value] * size)
        assert (found.mean, found.std_dev) == (value, 0.0)


def test_the_order_of_values_does_not_matter() -> None:
    values = [random.Random(5).random() for _ in range(200)]
    assert describe(values) == describe(values[::-1])


@pytest.mark.parametrize("share", [0.0, 0.05, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0])
def test_percentiles_are_those_of_numpy(share: float) -> None:
    chance = random.Random(6)
    for size in range(1, 40):
        values = [chance.expovariate(0.1) for _ in range(size)]
        assert percentile(values, share) == pytest.approx(float(np.quantile(values, share)), rel=1e-14)


def test_a_percentile_reaches_infinity_only_where_an_infinite_value_weighs_in() -> None:
    values = [1.0, 2.0, math.inf]
    assert [percentile(values, share) for share in (0, 0.5, 0.51, 0.9, 1)] == [1.0, 2.0, *[math.inf] * 3]
    assert percentile([math.inf] * 4, 0.4) == math.inf


@pytest.mark.parametrize("share", [-0.1, 1.1, 95, math.nan])
def test_a_percentile_is_asked_for_by_its_share(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        percentile([1.0], share)


def test_the_flip_rate_is_the_share_of_pairs_that_disagree() -> None:
    assert flip_rate(10, 8) == pytest.approx(16 / 45, rel=1e-15)
    for n in range(2, 9):
        for c in range(n + 1):
            pairs = [first != second for first, second in combinations([True] * c + [False] * (n - c), 2)]
            assert flip_rate(n, c) == pytest.approx(sum(pairs) / len(pairs), rel=1e-15)


def test_below_two_attempts_nothing_can_flip() -> None:
    assert flip_rate(0, 0) is None
    assert flip_rate(1, 1) is None


@pytest.mark.parametrize(("n", "c"), [(5, 6), (5, -1), (-1, 0)])
def test_impossible_attempts_are_refused(n: int, c: int) -> None:
    with pytest.raises(ValueError, match="correct attempts"):
        flip_rate(n, c)
