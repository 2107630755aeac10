"""The range of values that what was seen leaves plausible."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        raise ValueError(f"successes must lie between 0 and the trials, got {successes} of {trials}")
    upper = _upper_tail(level)
    if trials == 0:
        return None
    return _score_interval(successes / trials, NormalDist().inv_cdf(upper) ** 2 / trials)


def mean_interval(values: Sequence[float], *, attempts: int, level: float = 0.95) -> Interval | None:
    """Interval for the mean over cases like these, of one value in [0, 1] per case; None below 2 cases.

    `attempts` is how many attempts all the values rest on. This is Wilson's interval at the effective sample size
    (Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data", Survey Methodology 24, 193-201) with Student's t for z. The case is the sampling
    unit, as in Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640).

    >>> low, high = mean_interval([0.94] * 40 + [0.24] * 10, attempts=500)
    >>> f"{low:.12f} {high:.12f}"
    '0.708691904735 0.868018273893'
    """
    if not all(0 <= value <= 1 for value in values):
        raise ValueError("every value must lie in [0, 1]")
    if attempts < len(values):
        raise ValueError(f"{len(values)} values cannot rest on {attempts} attempts")
    upper = _upper_tail(level)
    cases = len(values)
    if cases < 2:
        return None
    if min(values) == max(values):
        mean, effective = values[0], float(cases)
    else:
        mean = math.fsum(values) / cases
        squared_error = math.fsum((value - mean) ** 2 for value in values) / (cases - 1) / cases
        # values that differ by next to nothing can have a squared error of 0
        information = mean * (1 - mean) / squared_error if squared_error else math.inf
        effective = min(max(information, 1.0), float(attempts))
    return _score_interval(mean, _student(cases - 1, upper) ** 2 / effective)


def _upper_tail(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    return (1 + level) / 2


def _student(freedom: int, probability: float) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def _score_interval(mean: float, spread: float) -> Interval:
    """Both roots p of `(p - mean)^2 = spread * p * (1 - p)`, exact at means of 0 and 1."""

    def low(mean: float) -> float:
        return mean**2 / (mean + spread / 2 + math.sqrt(spread * mean * (1 - mean) + spread**2 / 4))

    return Interval(low(mean), 1 - low(1 - mean))
