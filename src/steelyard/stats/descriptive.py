"""What a handful of values looks like."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from steelyard.records import Record


class Statistics(Record, frozen=True, kw_only=True):
    """Descriptive statistics of some values; all but the count are None without values."""

    median: float | None
    mean: float | None
    mode: float | None
    """The most frequent value, the smallest of several."""
    min: float | None
    max: float | None
    std_dev: float | None
    """The population's: the values are all there are. None beside an infinite value."""
    count: int


def describe(values: Sequence[float]) -> Statistics:
    """The statistics that a tier reports of its runs.

    ProjectScylla, "Metrics Formulas Documentation", section "Aggregate Statistics". An infinite value, such as the cost
    of pass of a run that failed, makes the mean infinite and leaves the median finite while most are.

    >>> found = describe([0.9, 0.4, 0.4, 0.1, 0.2, 0.9])
    >>> found.median, found.mode, f"{found.mean:.10f}", f"{found.std_dev:.10f}"
    (0.4, 0.4, '0.4833333333', '0.3131382371')
    """
    spread = variance(values)
    ordered = sorted(values)
    if not ordered:
        return Statistics(median=None, mean=None, mode=None, min=None, max=None, std_dev=None, count=0)
    size = len(ordered)
    counted = Counter(ordered)
    often = max(counted.values())
    return Statistics(
        median=(ordered[(size - 1) // 2] + ordered[size // 2]) / 2,
        mean=_mean(ordered),
        # the values come in order, so the first of the most frequent is the smallest
        mode=next(value for value, times in counted.items() if times == often),
        min=ordered[0],
        max=ordered[-1],
        std_dev=None if spread is None else math.sqrt(spread),
        count=size,
    )


def variance(values: Sequence[float]) -> float | None:
    """The population variance: the mean squared distance from the mean; None without values or beside an infinite one.

    ProjectScylla, "Metrics Formulas Documentation", section "Standard Deviation".

    >>> f"{variance([0.70, 0.80, 0.85, 0.90]):.8f}"
    '0.00546875'
    """
    _check(values)
    if not values or math.inf in values:
        return None
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value that a share of them does not exceed, on a straight line between neighbours; None without values.

    Definition 7 of Hyndman and Fan 1996, "Sample quantiles in statistical packages", The American Statistician 50,
    361-365: the one numpy uses.

    >>> percentile([1, 2, 3, 10], 0.5), percentile([1, 2, 3, 10], 0.75)
    (2.5, 4.75)
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie in [0, 1], got {share}")
    _check(values)
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    low, high = ordered[below], ordered[math.ceil(place)]
    # the distance of an infinite value from itself is no number
    return low if low == high else low + (high - low) * (place - below)


def flip_rate(n: int, c: int) -> float | None:
    """How likely two attempts of n, c of them correct, are to disagree; None below 2 attempts.

    The share of pairs that disagree, an unbiased estimate of 2p(1-p): Gini's mean difference of a yes or no; David
    1968, "Gini's mean difference rediscovered", Biometrika 55, 573-575.

    >>> f"{flip_rate(10, 8):.10f}"
    '0.3555555556'
    """
    if not 0 <= c <= n:
        raise ValueError(f"the correct attempts must lie between 0 and all, got {c} of {n}")
    return None if n < 2 else 2 * c * (n - c) / (n * (n - 1))


def _check(values: Sequence[float]) -> None:
    for value in values:
        if math.isnan(value) or value == -math.inf:
            raise ValueError(f"a value is a number or infinity, got {value}")


def _mean(values: Sequence[float]) -> float:
    """The mean, which for equal values is the value itself and no neighbour of it."""
    return values[0] if min(values) == max(values) else math.fsum(values) / len(values)
