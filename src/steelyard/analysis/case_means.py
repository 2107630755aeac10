"""Means over the cases of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from steelyard.analysis.case_attempts import CaseAttempts
from steelyard.analysis.estimates import Estimate, mean


def shared_groups(groups: list[str]) -> list[str] | None:
    """The group of each case; None when no two cases share one."""
    return groups if len(set(groups)) < len(groups) else None


def groups_of(cases: Iterable[CaseAttempts]) -> list[str] | None:
    """The group of each case; None when no two cases share one."""
    return shared_groups([attempts.group for attempts in cases])


def mean_pass(
    of: Callable[[int, int, int], float | None],
    cases: Sequence[CaseAttempts],
    k: int,
    counts: Sequence[tuple[int, int]] | None = None,
) -> Estimate:
    """The mean pass@k or pass^k of the cases with at least k judged attempts.

    `counts` are attempts and successes at each case, if success is not the same as being correct.
    """
    if counts is None:
        counts = [(attempts.judged, attempts.correct) for attempts in cases]
    values = {pair: of(*pair, k) for pair in set(counts)}
    usable = [
        (attempts, value) for attempts, pair in zip(cases, counts, strict=True) if (value := values[pair]) is not None
    ]
    size = sum(attempts.judged for attempts, _ in usable)
    return mean([value for _, value in usable], size, groups=groups_of(attempts for attempts, _ in usable))


def mean_value(cases: Sequence[CaseAttempts], of: Sequence[float | None]) -> Estimate:
    """The mean over cases of the mean over their attempts, given the value of each digest."""
    known = [
        (attempts, math.fsum(values) / len(values), len(values))
        for attempts in cases
        if (values := attempts.values(of))
    ]
    groups = groups_of(attempts for attempts, _, _ in known)
    return mean([value for _, value, _ in known], sum(size for _, _, size in known), groups=groups)


def total_cost(cases: Iterable[CaseAttempts]) -> float | None:
    """What the priced replies cost; None when no reply has a price."""
    prices = [attempts.replies.cost_usd for attempts in cases if attempts.replies.cost_usd is not None]
    return math.fsum(prices) if prices else None
