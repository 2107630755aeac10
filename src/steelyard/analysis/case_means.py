"""Means over the cases of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from steelyard.analysis.case_attempts import CaseAttempts
from steelyard.analysis.estimates import Estimate, mean


def shared_groups(groups: list[str]) -> list[str] | None:
    """The group of each case; None when no two cases share one."""
    return groups if len(set(groups)) < len(groups) else None


def groups_of(cases: Sequence[CaseAttempts]) -> list[str] | None:
    """The group of each case; None when no two cases share one."""
    return shared_groups([each.group for each in cases]) if any(each.case.group for each in cases) else None


def mean_pass(
    of: Callable[[int, int, int], float | None],
    cases: Sequence[CaseAttempts],
    k: int,
    counts: Sequence[tuple[int, int]] | None = None,
) -> Estimate:
    """The mean pass@k or pass^k of the cases with at least k judged attempts.

    `counts` are attempts and successes at each case, if success is not the same as being correct.
    """
    known: dict[tuple[int, int], float | None] = {}
    usable, values = list[CaseAttempts](), list[float]()
    pairs = ((attempts.judged, attempts.correct) for attempts in cases) if counts is None else counts
    for attempts, pair in zip(cases, pairs, strict=True):
        if pair not in known:
            known[pair] = of(*pair, k)
        if (value := known[pair]) is not None:
            usable.append(attempts)
            values.append(value)
    return mean(values, sum(attempts.judged for attempts in usable), groups=groups_of(usable))


def mean_value(cases: Sequence[CaseAttempts], of: Sequence[float | None]) -> Estimate:
    """The mean over cases of the mean over their attempts, given the value of each digest."""
    known, means, size = list[CaseAttempts](), list[float](), 0
    for attempts in cases:
        if values := attempts.values(of):
            known.append(attempts)
            means.append(math.fsum(values) / len(values))
            size += len(values)
    return mean(means, size, groups=groups_of(known))


def total_cost(cases: Iterable[CaseAttempts]) -> float | None:
    """What the priced replies cost; None when no reply has a price."""
    prices = [attempts.replies.cost_usd for attempts in cases if attempts.replies.cost_usd is not None]
    return math.fsum(prices) if prices else None
