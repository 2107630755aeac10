"""What a success costs."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized

from steelyard.stats.intervals import Interval, relative_mean_interval, upper_tail
from steelyard.stats.special import student_quantile


def cost_of_pass(costs: Sequence[float], passes: Sequence[int]) -> float | None:
    """The total cost per pass, infinite when nothing passed; None when nothing was tried.

    A unit with its cost and its passes is one attempt or one case. The ratio of the means, not the mean of ratios:
    Erol et al. 2025, "Cost-of-Pass: An Economic Framework for Evaluating Language Models" (arXiv 2504.13359).

    >>> f"{cost_of_pass([0.5, 0.4, 0.6, 0.5], [1, 0, 1, 1]):.12f}"
    '0.666666666667'
    >>> cost_of_pass([0.5, 0.5], [0, 0])
    inf
    """
    _check(costs, passes)
    if not costs:
        return None
    passed = sum(passes)
    return math.fsum(costs) / passed if passed else math.inf


def cost_interval(
    costs: Sequence[float], passes: Sequence[int], attempts: Sequence[int] | int | None = None, *, level: float = 0.95
) -> Interval | None:
    """Interval for the cost of a pass over units like these; None when nothing was tried, and for a single unit.

    A unit is one attempt with its cost and whether it passed, or one case, or one group of cases, with its total cost
    and its passes; then `attempts` is how many attempts each of them had, or, where that is not known, all of them.

    Fieller 1954, "Some problems in interval estimation", Journal of the Royal Statistical Society B 16, 175-185, with
    Student's t: every ratio that a t test of `cost - ratio * passes` does not refute. Where the passes could as well be
    none, the upper end is infinite. If few units determine the pass rate, as when all passed, their spread says too
    little: an end is let out as far as `mean_interval` lets out those of the pass rate, if each unit's attempts are known.

    With no pass at all there is a one-sided bound, for one unit too: the mean cost of an attempt over the greatest pass
    rate under which seeing none is not yet refuted, `1 - (1 - level)**(1 / attempts)`. It speaks of these units asked
    again, not of units like these: others may be easier.

    >>> costs = [0.52, 0.48, 0.61, 0.55, 0.43, 0.70, 0.39, 0.58, 0.50, 0.66]
    >>> low, high = cost_interval(costs, [1, 0, 1, 1, 1, 0, 1, 1, 0, 1])
    >>> f"{low:.10f} {high:.10f}"
    '0.4974934370 1.5665946490'
    >>> f"{cost_interval([0.5] * 10, [0] * 10).low:.10f}"
    '1.9315045910'
    """
    _check(costs, passes)
    units = len(costs)
    upper = upper_tail(level)
    each = _attempts_of_each(passes, attempts)
    if not units:
        return None
    if not any(passes):
        tried = attempts if isinstance(attempts, int) else sum(each or ())
        greatest_rate = -math.expm1(math.log1p(-level) / tried)
        return Interval(math.fsum(costs) / tried / greatest_rate, math.inf)
    if units < 2:
        return None
    if not any(costs):
        return Interval(0.0, 0.0)
    # halving is exact, and the square of an enormous cost does not fit a float
    scale = math.frexp(max(costs))[1]
    low, high = _fieller([math.ldexp(cost, -scale) for cost in costs], passes, student_quantile(units - 1, upper) ** 2)
    low, high = math.ldexp(low, scale), math.ldexp(high, scale)
    if each:
        rates = [count / tried for count, tried in zip(passes, each, strict=True)]
        tails = relative_mean_interval(rates, attempts=sum(each), level=level)
        if tails:
            estimate = math.fsum(costs) / sum(passes)
            low = min(low, estimate / tails.high)
            high = max(high, estimate / tails.low if tails.low else math.inf)
    return Interval(low, high)


def _attempts_of_each(passes: Sequence[int], attempts: Sequence[int] | int | None) -> Sequence[int] | None:
    """How many attempts each unit had; None if that is not known."""
    units = len(passes)
    if attempts is None:
        return [1] * units if max(passes, default=0) <= 1 else None
    if not isinstance(attempts, Sized):
        if attempts < max(units, sum(passes)):
            raise ValueError(f"{units} units with {sum(passes)} passes cannot have {attempts} attempts")
        return passes if attempts == sum(passes) and all(passes) else None
    if len(attempts) != units or any(tried < max(count, 1) for count, tried in zip(passes, attempts, strict=True)):
        raise ValueError(f"units with {list(passes)} passes cannot have {list(attempts)} attempts")
    return attempts


def _check(costs: Sequence[float], passes: Sequence[int]) -> None:
    if len(costs) != len(passes):
        raise ValueError(f"every unit needs its cost and its passes, got {len(costs)} and {len(passes)}")
    if not all(0 <= cost < math.inf for cost in costs):
        raise ValueError("every cost must be a finite number of at least 0")
    if any(count < 0 for count in passes):
        raise ValueError("passes must not be negative")


def _fieller(costs: Sequence[float], passes: Sequence[int], squared_quantile: float) -> Interval:
    """The ratios R >= 0 with `square * R^2 - 2 * product * R + constant <= 0`, and what lies between them."""
    units = len(costs)
    cost, rate = math.fsum(costs) / units, sum(passes) / units

    def doubt(one: Sequence[float], its_mean: float, other: Sequence[float], other_mean: float) -> float:
        joint = math.fsum((a - its_mean) * (b - other_mean) for a, b in zip(one, other, strict=True))
        return squared_quantile * joint / (units - 1) / units

    square = rate**2 - doubt(passes, rate, passes, rate)
    product = cost * rate - doubt(costs, cost, passes, rate)
    constant = cost**2 - doubt(costs, cost, costs, cost)
    root = math.sqrt(max(product**2 - square * constant, 0.0))
    high = (product + root) / square if square > 0 else math.inf
    if constant <= 0:
        return Interval(0.0, high)
    # each root in the form that does not cancel
    return Interval(constant / (product + root) if product > 0 else (product - root) / square, high)
