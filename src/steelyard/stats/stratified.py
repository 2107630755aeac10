"""Intervals for a mean over strata, each of which is a sample of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple

from steelyard.stats.intervals import Interval, upper_tail
from steelyard.stats.paired import unit_squares
from steelyard.stats.special import student_quantile


class Stratum(NamedTuple):
    """One of several parts that a mean is made of, each a sample of its own."""

    mean: float
    interval: Callable[[float], Interval | None]
    """Its own interval at any level."""
    weight: float = 1.0


def stratified_interval(strata: Sequence[Stratum], *, level: float = 0.95) -> Interval | None:
    """Interval for the weighted mean of some strata; None when one that weighs something has none.

    The strata are fixed, and what lies within each is a sample: the errors are independent, and the variance of the mean
    is `sum(w^2 SE^2) / sum(w)^2`. A stratum whose cases came out alike has a standard error of 0 and an interval all the
    same, so it is the intervals that are combined: each end is the weighted mean of the strata's ends at the lower level
    at which independent errors reach as far together as they do at `level`. That is the stratified interval of Yan and Su
    2010, "Stratified Wilson and Newcombe confidence intervals for multiple binomial proportions", Statistics in
    Biopharmaceutical Research 2, 329-335, with the distance from a stratum's mean to its own end in place of its standard
    error, for each side by itself, as Zou and Donner 2008, "Construction of confidence limits about effect measures: a
    general approach", Statistics in Medicine 27, 1693-1702, recover variances. Their sum of squared distances itself
    covers 90% only where five suites of ten cases pass at 95%. One stratum keeps its interval, and strata that are alike in
    all have Wilson's interval of all their trials.

    >>> from steelyard.stats.intervals import wilson
    >>> def of(successes, trials):
    ...     return Stratum(successes / trials, lambda level: wilson(successes, trials, level=level))
    >>> low, high = stratified_interval([of(18, 20), of(8, 10)])
    >>> f"{low:.4f} {high:.4f}"
    '0.6723 0.9426'
    """
    weighty = [stratum for stratum in strata if stratum.weight]
    own = [each for stratum in weighty if (each := stratum.interval(level))]
    if not weighty or len(own) < len(weighty):
        return None
    below = [each.weight * max(each.mean - end.low, 0.0) for each, end in zip(weighty, own, strict=True)]
    above = [each.weight * max(end.high - each.mean, 0.0) for each, end in zip(weighty, own, strict=True)]
    low, high = _joint_level(below, level), _joint_level(above, level)
    lows = [each.low for stratum in weighty if (each := stratum.interval(low))]
    highs = [each.high for stratum in weighty if (each := stratum.interval(high))]
    total = math.fsum(stratum.weight for stratum in weighty)
    return Interval(
        math.fsum(each.weight * end for each, end in zip(weighty, lows, strict=True)) / total,
        math.fsum(each.weight * end for each, end in zip(weighty, highs, strict=True)) / total,
    )


def _joint_level(distances: Sequence[float], level: float) -> float:
    """The level at which distances add up to what they are by their squares at the given one."""
    together, apart = math.hypot(*distances), math.fsum(distances)
    if together >= apart:
        return level
    return 2 * NormalDist().cdf(NormalDist().inv_cdf(upper_tail(level)) * together / apart) - 1


class StratumDifferences(NamedTuple):
    """What changed in one of several parts that a mean is made of."""

    values: Sequence[float]
    """One difference in [-1, 1] per case."""
    attempts: float
    """The harmonic mean of the attempts behind each value that was compared."""
    groups: Sequence[Hashable] | None = None
    """The group of each case, where any two share one: they may change together."""


def stratified_difference_interval(strata: Sequence[StratumDifferences], *, level: float = 0.95) -> Interval | None:
    """Interval for the mean over strata of their mean differences, each stratum once; None when one has fewer than 2 cases.

    As for a single mean difference (`stats.paired.difference_interval`), two cases that differ by +1/attempts and
    -1/attempts are added, so that it never has zero width; all strata share them, since two in each would pull the mean
    towards 0 by more than its error. The degrees of freedom are those of Satterthwaite 1946, "An approximate distribution of
    estimates of variance components", Biometrics Bulletin 2, 110-114. One stratum has the interval that it has alone. Where
    cases share groups, these are what was sampled, and a stratum needs two of them.

    >>> low, high = stratified_difference_interval([StratumDifferences([0, -0.2, -0.4, 0.1, 0, -0.2], 10)])
    >>> f"{low:.12f} {high:.12f}"
    '-0.222547141014 0.047547141014'
    """
    upper = upper_tail(level)
    if not strata or any(len(stratum.values) < 2 for stratum in strata):
        return None
    shared = 1 / len(strata)
    means, variances, freedoms = [], [], []
    for values, attempts, groups in strata:
        if not all(-1 <= value <= 1 for value in values) or not 1 <= attempts < math.inf:
            raise ValueError("every difference must be in [-1, 1] and rest on 1 attempt or more")
        size = len(values) + 2 * shared
        mean = math.fsum(values) / size
        square, freedom = unit_squares([value - mean for value in values], groups)
        if not freedom:
            return None
        added = 2 * shared * (1 / attempts**2 + mean**2)
        means.append(mean)
        variances.append((square + added) / size**2)
        freedoms.append(freedom + 2 * shared if freedom == len(values) - 1 else float(freedom))
    variance = math.fsum(variances)
    weighed = math.fsum(each**2 / freedom for each, freedom in zip(variances, freedoms, strict=True))
    # rounding must not cost a whole degree
    degrees = math.floor(variance**2 / weighed + 1e-9) if weighed else math.floor(min(freedoms))
    half = student_quantile(degrees, upper) * math.sqrt(variance) / len(strata)
    centre = math.fsum(means) / len(strata)
    return Interval(max(-1.0, centre - half), min(1.0, centre + half))
