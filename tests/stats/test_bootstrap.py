"""Drawing cases together gives what drawing them one by one gives."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from steelyard.stats.bootstrap import bootstrap

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def median(values: Floats, weights: Counts) -> Floats:
    """The lower median of every replicate."""
    order = np.argsort(values)
    reached = weights[:, order].cumsum(axis=1) * 2 >= weights.sum(axis=1, keepdims=True)
    middle: Floats = values[order][reached.argmax(axis=1)]
    return middle


def enumerated(values: list[int], level: float) -> tuple[float, float]:
    """Both ends over all resamples, each as likely as any other."""
    means = Counter(Fraction(sum(drawn), len(values)) for drawn in product(values, repeat=len(values)))
    tail, every = Fraction(str(level)) / -2 + Fraction(1, 2), len(values) ** len(values)

    def end(means: list[tuple[Fraction, int]]) -> float:
        below = Fraction(0)
        for mean, ways in means:
            below += Fraction(ways, every)
            if below > tail:
                return float(mean)
        raise AssertionError("no end")

    ascending = sorted(means.items())
    return end(ascending), end(ascending[::-1])


@pytest.mark.parametrize("values", [[0, 1], [0, 1, 1], [0, 0, 1, 5], [1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 7]])
@pytest.mark.parametrize("level", [0.8, 0.9])
def test_of_tiny_suites_it_is_what_counting_all_resamples_gives(values: list[int], level: float) -> None:
    found = bootstrap([float(value) for value in values], replicates=200_000, seed=3, level=level)
    assert found == pytest.approx(enumerated(values, level), abs=1e-12)


@pytest.mark.parametrize("distinct", [3, 11, 150, 300])
def test_it_agrees_with_scipy(distinct: int) -> None:
    values = np.random.default_rng(distinct).integers(distinct, size=300) / distinct
    found = bootstrap(values, replicates=20_000, seed=5)
    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(6), batch=1000
    )
    error = float(theirs.standard_error)
    assert found is not None
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.08 * error)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.08 * error)


@pytest.mark.parametrize("cases", [15, 40])  # drawn case by case, and value by value
def test_both_ways_of_drawing_have_the_mean_and_variance_of_the_resampled_mean(cases: int) -> None:
    values = np.arange(cases) % 10 / 10
    seen: list[Floats] = []

    def mean(values: Floats, weights: Counts) -> Floats:
        assert (weights.sum(axis=1) == cases).all()
        seen.append(weights @ values / cases)
        return seen[-1]

    assert bootstrap(values, statistic=mean, replicates=100_000, seed=2) is not None
    means = np.concatenate(seen)
    assert means.mean() == pytest.approx(values.mean(), abs=4 * values.std() / math.sqrt(cases * 100_000))
    assert means.var() == pytest.approx(values.var() / cases, rel=0.03)


def test_counted_cases_have_the_interval_of_the_same_cases_in_a_list() -> None:
    values, counts = [0.0, 0.3, 0.7, 1.0], [5, 0, 20, 9]
    listed = [value for value, count in zip(values, counts, strict=True) for _ in range(count)]
    assert bootstrap(values, counts, seed=4) == bootstrap(listed, seed=4)


def test_the_seed_decides_everything() -> None:
    values = np.random.default_rng(1).random(60)
    assert bootstrap(values, seed=1) == bootstrap(values, seed=1)
    assert bootstrap(values, seed=1) != bootstrap(values, seed=2)


def test_a_median_has_its_interval() -> None:
    values = np.random.default_rng(9).random(201)
    found = bootstrap(values, statistic=median, seed=7)
    theirs = stats.bootstrap((values,), np.median, method="percentile", rng=np.random.default_rng(8))
    assert found is not None
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.02)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.02)


def test_a_ratio_may_be_infinite_at_one_end() -> None:
    def cost_of_pass(values: Floats, weights: Counts) -> Floats:
        with np.errstate(divide="ignore"):
            return np.float64(20.0) / (weights @ values)

    found = bootstrap([0.0, 1.0], [19, 1], statistic=cost_of_pass, seed=1)
    assert found is not None
    assert found.low == pytest.approx(20 / 3)
    assert found.high == math.inf


def test_a_replicate_without_a_value_leaves_no_interval() -> None:
    def undefined(values: Floats, weights: Counts) -> Floats:
        return np.full(len(weights), np.nan)

    assert bootstrap([0.0, 1.0], statistic=undefined, seed=1) is None


@pytest.mark.parametrize(("values", "counts"), [([], None), ([0.5], None), ([0.5, 0.7], [1, 0]), ([0.5], [1])])
def test_below_two_cases_there_is_no_interval(values: list[float], counts: list[int] | None) -> None:
    assert bootstrap(values, counts, seed=1) is None


def test_memory_does_not_grow_with_the_replicates() -> None:
    largest = 0

    def mean(values: Floats, weights: Counts) -> Floats:
        nonlocal largest
        largest = max(largest, weights.size)
        return weights @ values

    for cases, replicates in ((3, 3_000_000), (5000, 1000)):
        assert bootstrap(np.arange(float(cases)), statistic=mean, replicates=replicates, seed=1) is not None
    assert largest <= 1_000_000


def test_what_cannot_be_resampled_is_refused() -> None:
    with pytest.raises(ValueError, match="2 values cannot have 1 counts"):
        bootstrap([0.1, 0.2], [1], seed=1)
    with pytest.raises(ValueError, match="negative"):
        bootstrap([0.1, 0.2], [3, -1], seed=1)
    with pytest.raises(ValueError, match="finite"):
        bootstrap([0.1, math.nan], seed=1)
    with pytest.raises(ValueError, match="replicates"):
        bootstrap([0.1, 0.2], replicates=0, seed=1)
    with pytest.raises(ValueError, match="level"):
        bootstrap([0.1, 0.2], level=2.0, seed=1)
    with pytest.raises(ValueError, match="one number per replicate"):
        bootstrap([0.1, 0.2], statistic=lambda values, weights: values, seed=1)
