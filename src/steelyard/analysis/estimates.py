"""Numbers with their uncertainty and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from steelyard.records import Record
from steelyard.stats.cost import cost_interval, cost_of_pass
from steelyard.stats.intervals import Interval, independent_difference_interval, mean_interval, wilson
from steelyard.stats.passk import pass_at_k, pass_hat_k


class Estimate(Record, frozen=True, kw_only=True, gc=False):
    """A number with its 95% interval and what it rests on."""

    value: float | None
    low: float | None = None
    high: float | None = None
    infinite: bool = False
    """The value is infinite, such as the price of a success where nothing succeeded; JSON has no word for that."""
    cases: int = 0
    attempts: int = 0


class AttemptMeans(Record, frozen=True, kw_only=True):
    """Means over all judged attempts, without weights for cases; None if nothing is known."""

    compile_rate: float | None = None
    test_pass_rate: float | None = None
    lint: float | None = None


def share(successes: int, trials: int) -> Estimate:
    """How often something happened, of how many times."""
    # numpy's numbers cannot be written as JSON
    successes, trials = int(successes), int(trials)
    interval = wilson(successes, trials)
    return Estimate(
        value=successes / trials if trials else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cases=1 if trials else 0,
        attempts=trials,
    )


def mean(
    values: Sequence[float],
    attempts: int,
    *,
    counts: Sequence[int] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> Estimate:
    """The mean over cases like these of one value in [0, 1] per case.

    `counts` says how many cases have each value, `groups` which cases belong together, where they do.
    """
    weights = [1] * len(values) if counts is None else [int(count) for count in counts]
    cases = sum(weights)
    if not cases:
        return Estimate(value=None)
    interval = mean_interval(values, attempts=attempts, counts=counts, groups=groups)
    return Estimate(
        value=rounded(math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / cases),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cases=cases,
        attempts=int(attempts),
    )


def attempt_mean(values: Iterable[tuple[float | None, int]]) -> float | None:
    """The mean of values, each weighted by its number of attempts; None without values."""
    known = [(value, count) for value, count in values if value is not None]
    times = sum(count for _, count in known)
    return rounded(math.fsum(value * count for value, count in known) / times) if times else None


def rounded(value: float) -> float:
    """A mean without the noise of its last digit: of 0.2 and 0.4 it is 0.3, and not 0.30000000000000004."""
    short = float(f"{value:.15g}")
    return short if abs(short - value) <= 1.5 * math.ulp(value) else value


def difference(before: Estimate, after: Estimate) -> Estimate | None:
    """The difference of two estimates from different attempts; None if one has no value.

    The interval is that of independent samples: of the same cases asked twice it is a little too wide.
    """
    if before.value is None or after.value is None:
        return None
    sides = _estimate_interval(before), _estimate_interval(after)
    interval = (
        independent_difference_interval(before.value, sides[0], after.value, sides[1])
        if sides[0] and sides[1]
        else None
    )
    return Estimate(
        value=after.value - before.value,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cases=min(before.cases, after.cases),
        attempts=before.attempts + after.attempts,
    )


def _estimate_interval(estimate: Estimate) -> Interval | None:
    """The interval of an estimate that has one."""
    if estimate.low is None or estimate.high is None:
        return None
    return Interval(estimate.low, estimate.high)


def pass_at(tallied: Mapping[tuple[int, int], int], k: int, *, failed: int = 0) -> Estimate:
    """The mean pass@k of the cases with at least k attempts, from how many cases have n attempts and c successes.

    `failed` cases count as 0, whatever k is.

    >>> pass_at({(10, 0): 2, (10, 5): 1, (10, 10): 7}, 1).value
    0.75
    """
    return _over_cases(pass_at_k, tallied, k, failed)


def pass_hat(tallied: Mapping[tuple[int, int], int], k: int, *, failed: int = 0) -> Estimate:
    """The same for pass^k: that all of k attempts succeed."""
    return _over_cases(pass_hat_k, tallied, k, failed)


def _over_cases(
    of: Callable[[int, int, int], float | None], tallied: Mapping[tuple[int, int], int], k: int, failed: int
) -> Estimate:
    values, counts, attempts = [], [], 0
    for (n, c), cases in sorted(tallied.items()):
        value = of(n, c, k)
        if value is not None:
            values.append(value)
            counts.append(cases)
            attempts += n * cases
    # where k is too large for every case that was tried, the others say nothing about it either
    if failed and (values or not tallied):
        values.append(0.0)
        counts.append(failed)
        # a case that counts as failed stands for at least one attempt
        attempts += failed
    return mean(values, attempts, counts=counts)


def price_of_pass(
    costs: Sequence[float],
    passes: Sequence[int],
    attempts: Sequence[int],
    *,
    groups: Sequence[str] | None = None,
) -> Estimate:
    """What a success costs, from what each case cost in US dollars, how often it succeeded and how often it was tried.

    `groups` says which cases belong together, where they do.
    """
    # numpy's numbers cannot be written as JSON
    spent, passed = [float(cost) for cost in costs], [int(count) for count in passes]
    tried = [int(each) for each in attempts]
    if groups is not None:
        if len(groups) != len(spent):
            raise ValueError(f"{len(spent)} cases cannot have {len(groups)} groups")
        units: dict[str, list[int]] = {}
        for place, group in enumerate(groups):
            units.setdefault(group, []).append(place)
        spent = [math.fsum(spent[place] for place in unit) for unit in units.values()]
        passed = [sum(passed[place] for place in unit) for unit in units.values()]
        tried = [sum(tried[place] for place in unit) for unit in units.values()]
    value = cost_of_pass(spent, passed)
    interval = cost_interval(spent, passed, tried)
    return Estimate(
        value=None if value is None or math.isinf(value) else value,
        low=interval.low if interval else None,
        high=interval.high if interval and not math.isinf(interval.high) else None,
        infinite=value is not None and math.isinf(value),
        cases=len(costs),
        attempts=sum(tried),
    )
