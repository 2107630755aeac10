"""Drops as real ones are: some cases lose much, and the others nothing."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from steelyard.stats.paired import PairedCaseCounts, fisher_worse
from steelyard.stats.power import BaselineRate


def rates_after_uneven_drop(cases: Sequence[BaselineRate], drop: float) -> list[float]:
    """The pass rates after such a mean drop, if the best cases lose half of theirs, and then the rest, one after the other.

    >>> rates_after_uneven_drop([BaselineRate(9, 0.5), BaselineRate(9, 0.9), BaselineRate(9, 0.1)], 0.2)
    [0.35, 0.45, 0.1]
    """
    left = drop * len(cases)
    after = [case.rate for case in cases]
    order = sorted(range(len(cases)), key=lambda place: -cases[place].rate)
    for place in order * 2:
        taken = min(left, cases[place].rate / 2)
        after[place] -= taken
        left -= taken
    return [round(rate, 12) for rate in after]


def naming_chance(baseline: Sequence[tuple[int, int]], after: Sequence[float], attempts: int, *, level: float) -> float:
    """How likely so many attempts at each case name one as worse, given its rate now and the baseline's attempts and passes.

    A case is named where the p-value of its Fisher test is at most the level; cases are independent of each other.

    >>> f"{naming_chance([(30, 30)] * 20, [0.5] + [1.0] * 19, 5, level=0.001):.4f}"
    '0.1875'
    """
    missed = 0.0
    for ((tried, passed), rate), count in Counter(zip(baseline, after, strict=True)).items():
        if rate >= passed / tried:
            continue
        # fewer passes have smaller p-values, so that those which name the case come first
        few = bisect_right(
            range(attempts + 1),
            level,
            key=lambda passes: fisher_worse(PairedCaseCounts(tried, passed, attempts, passes)),
        )
        chance = math.fsum(
            math.comb(attempts, passes) * rate**passes * (1 - rate) ** (attempts - passes) for passes in range(few)
        )
        missed += count * math.log1p(-min(chance, 1 - 1e-16))
    return -math.expm1(missed)
