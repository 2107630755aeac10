"""The range of values that what was seen leaves plausible, by formula."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple

from steelyard.stats.special import beta_quantile, student_quantile

MIN_SPREAD_CARRYING_UNITS = 3
"""This many units (cases or groups) must carry the spread before the effective sample size may be twice the number of cases."""
ROUNDING_ONLY_SAMPLE_SIZE = 1e20
"""An effective sample size that no suite has: such units differ by rounding alone."""


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


def wilson(successes: int, trials: int, *, level: float = 0.95) -> Interval | None:
    """Wilson score interval for a proportion; None when nothing was tried.

    Wilson 1927, "Probable inference, the law of succession, and statistical inference", JASA 22, 209-212.

    >>> low, high = wilson(8, 10)
    >>> f"{low:.10f} {high:.10f}"
    '0.4901624715 0.9433178485'
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must be between 0 and the trials, got {successes} of {trials}")
    upper = upper_tail(level)
    if trials == 0:
        return None
    return score_interval(float(successes / trials), float(NormalDist().inv_cdf(upper) ** 2 / trials))


def independent_difference_interval(
    first: float, around_first: Interval, second: float, around_second: Interval
) -> Interval:
    """The interval of `second - first`, from the intervals of two independent estimates at the same level.

    Zou and Donner 2008, "Construction of confidence limits about effect measures: a general approach", Statistics in
    Medicine 27, 1693-1702; of two Wilson intervals it is Newcombe's tenth.

    >>> low, high = independent_difference_interval(48 / 80, wilson(48, 80), 56 / 70, wilson(56, 70))
    >>> f"{low:.4f} {high:.4f}"
    '0.0524 0.3339'
    """
    difference = second - first
    return Interval(
        difference - math.hypot(second - around_second.low, around_first.high - first),
        difference + math.hypot(around_second.high - second, first - around_first.low),
    )


def standard_error(values: Sequence[float], *, groups: Sequence[Hashable] | None = None) -> float | None:
    """Standard error of the mean over cases like these; None below 2 cases, or 2 groups where cases have one.

    Cases of one group may err together: the sampling unit is then the group, and the error is the cluster-robust one
    with the factor C / (C - 1) for C groups (Miller 2024, "Adding Error Bars to Evals", arXiv 2411.00640;
    Cameron and Miller 2015, "A practitioner's guide to cluster-robust inference", Journal of Human Resources 50).

    >>> values = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1]
    >>> f"{standard_error(values):.12f} {standard_error(values, groups='aaabbbcccddd'):.12f}"
    '0.142133810904 0.136082763488'
    """
    if not all(math.isfinite(value) for value in values):
        raise ValueError("every value must be a finite number")
    spread = _spread(values, None, groups)
    return math.sqrt(spread.squared_error) if spread else None


def mean_interval(
    values: Sequence[float],
    *,
    attempts: int,
    counts: Sequence[int] | None = None,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Interval | None:
    """Interval for the mean over cases like these, of one value in [0, 1] per case; None below 2 cases.

    `attempts` is how many attempts all the values rest on. `counts` says how many cases have each value, where that is
    known already; `groups` names the group of each case, and fewer than 2 groups have no interval.

    This is Wilson's interval at the effective sample size (Korn and Graubard 1998, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24,
    193-201) with Student's t for z. The case is the sampling unit, as in Miller 2024, "Adding Error Bars to Evals"
    (arXiv 2411.00640). Two corrections matter only where a few cases carry the mean. An effective sample size above
    the number of cases is believed as far as the spread it was found from rests on enough of them, counted as in Kish
    1965, "Survey Sampling". And an end is let out until the binomial tail beyond it is at most one and a
    half times what the level leaves out, since Wilson's own reaches three times that (Brown, Cai and DasGupta 2001,
    "Interval estimation for a binomial proportion", Statistical Science 16, 101-133, mend it at the same place).
    docs/intervals.md says how often it covers, docs/design/intervals.md why it is built this way.

    >>> low, high = mean_interval([0.94, 0.24], counts=[40, 10], attempts=500)
    >>> f"{low:.12f} {high:.12f}"
    '0.708691904735 0.868018273893'
    """
    if not all(0 <= value <= 1 for value in values):
        raise ValueError("every value must be in [0, 1]")
    upper = upper_tail(level)
    cases = len(values) if counts is None else sum(counts)
    if attempts < cases:
        raise ValueError(f"{cases} values cannot rest on {attempts} attempts")
    spread = _spread(values, counts, groups)
    if not spread:
        return None
    size = _effective_size(spread, attempts)
    score = score_interval(spread.mean, student_quantile(spread.units - 1, upper) ** 2 / size)
    tails = _tail_interval(spread, size, level)
    return Interval(min(score.low, tails.low), max(score.high, tails.high))


def relative_mean_interval(values: Sequence[float], *, attempts: int, level: float = 0.95) -> Interval | None:
    """How many times the mean over units like these, of one value in [0, 1] each, may be what it is here.

    From how far `mean_interval` lets its ends out, for what is divided by such a mean; None below 2 units and for a
    mean of 0.

    >>> low, high = relative_mean_interval([1.0] * 10, attempts=10)
    >>> f"{low:.4f} {high:.4f}"
    '0.7718 1.0000'
    """
    spread = _spread(values, None, None)
    if not spread or not spread.mean:
        return None
    tails = _tail_interval(spread, _effective_size(spread, attempts), level)
    return Interval(tails.low / spread.mean, tails.high / spread.mean)


def upper_tail(level: float) -> float:
    """The probability below the upper end of a two-sided interval."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    return (1 + level) / 2


class _MeanSpread(NamedTuple):
    """How far a mean can be off, by what its units show."""

    mean: float
    squared_error: float
    units: int
    carriers: float
    """Kish's effective number of the units' squared deviations: as many equal ones would vary as much."""
    alone: float
    """How many cases without a group would be as informative: the cases over Kish's design effect."""


def _spread(
    values: Sequence[float], counts: Sequence[int] | None, groups: Sequence[Hashable] | None
) -> _MeanSpread | None:
    """The spread of the mean; None below 2 units."""
    if counts is not None and groups is not None:
        raise ValueError("cases are either counted or grouped")
    for name, given in (("counts", counts), ("groups", groups)):
        if given is not None and len(given) != len(values):
            raise ValueError(f"{len(values)} values cannot have {len(given)} {name}")
    if counts is not None and any(count < 0 for count in counts):
        raise ValueError("counts must not be negative")
    weights = [1] * len(values) if counts is None else [int(count) for count in counts]
    cases = sum(weights)
    if not cases:
        return None
    mean = math.fsum(weight * value for weight, value in zip(weights, values, strict=True)) / cases
    deviations = [float(value) - mean for value in values]
    ungrouped = math.fsum(weight * each**2 for weight, each in zip(weights, deviations, strict=True))
    if groups is not None and len(set(groups)) < len(groups):
        together: dict[Hashable, list[float]] = {}
        for group, deviation in zip(groups, deviations, strict=True):
            together.setdefault(group, []).append(deviation)
        deviations = [math.fsum(each) for each in together.values()]
        weights = [1] * len(deviations)
    units = sum(weights)
    if units < 2:
        return None
    square = math.fsum(weight * each**2 for weight, each in zip(weights, deviations, strict=True))
    fourth = math.fsum(weight * each**4 for weight, each in zip(weights, deviations, strict=True))
    return _MeanSpread(
        mean=mean,
        squared_error=square / cases / cases * units / (units - 1),
        units=units,
        carriers=square**2 / fourth if fourth else 1.0,
        alone=cases * min(ungrouped / square, 1.0) if square else float(units),
    )


def _is_agreed(spread: _MeanSpread) -> bool:
    return spread.squared_error * ROUNDING_ONLY_SAMPLE_SIZE <= spread.mean * (1 - spread.mean)


def _effective_size(spread: _MeanSpread, attempts: int) -> float:
    """How many plain yes or no units would leave as much doubt, as far as that can be believed."""
    if _is_agreed(spread):
        return float(spread.units)
    believable = spread.alone * (1 + (spread.carriers / MIN_SPREAD_CARRYING_UNITS) ** 2)
    return min(max(spread.mean * (1 - spread.mean) / spread.squared_error, 1.0), believable, float(attempts))


def _tail_interval(spread: _MeanSpread, size: float, level: float) -> Interval:
    """The rates at which the binomial tail beyond the mean is one and a half times what the level leaves out."""
    if not _is_agreed(spread):
        # so that yes and no of units count as whole units: the squared error divides by one less
        size = size * spread.units / (spread.units - 1)
    tail = min(1.5 * (1 - level), 0.5)
    return binomial_tail_interval(spread.mean * size, (1 - spread.mean) * size, tail)


def binomial_tail_interval(successes: float, failures: float, tail: float) -> Interval:
    """The rates at which a binomial tail beyond what was seen has the chance `tail`.

    With half of what a level leaves out as `tail` it never covers less than the level: Clopper and Pearson 1934, "The use
    of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26, 404-413.

    >>> low, high = binomial_tail_interval(8, 2, 0.025)
    >>> f"{low:.10f} {high:.10f}"
    '0.4439045377 0.9747892737'
    """

    def low(successes: float, failures: float) -> float:
        return beta_quantile(successes, failures + 1, tail) if successes > 0 else 0.0

    return Interval(low(successes, failures), 1 - low(failures, successes))


def score_interval(mean: float, spread: float) -> Interval:
    """Both roots p of `(p - mean)^2 = spread * p * (1 - p)`, exact at means of 0 and 1."""

    def low(mean: float) -> float:
        return mean**2 / (mean + spread / 2 + math.sqrt(spread * mean * (1 - mean) + spread**2 / 4))

    return Interval(low(mean), 1 - low(1 - mean))
