"""What p-values are worth when there are many of them, and what each look at growing evidence may spend of the error rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import Any, NamedTuple

from steelyard.stats.special import normal_cdf


def holm(p: Sequence[float]) -> list[float]:
    """Each p-value adjusted so that those up to alpha hold one false alarm or more with chance alpha at most.

    Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 65-70.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    for value in p:
        if not 0 <= value <= 1:
            raise ValueError(f"a p-value must be in [0, 1], got {value}")
    order = sorted(range(len(p)), key=p.__getitem__)
    scaled = (min(1.0, (len(p) - rank) * p[place]) for rank, place in enumerate(order))
    return [value for _, value in sorted(zip(order, accumulate(scaled, max), strict=True))]


LOOK_ATTEMPTS = (1, 2, 3, 5, 7, 10, 15, 20)
"""The numbers of attempts at each case after which the gate looks; each later look comes after half as many again."""
EARLY_PHASE_ATTEMPTS = 5
"""The number of attempts that should reveal most changes."""
EARLY_SPENDING_SHARE = 0.8
"""What may have been spent of the error rate by then."""
FINAL_TEST_SHARE = 0.25
"""What is kept of the error rate of alarms for the last test of each case."""
NODES_PER_PANEL, PANEL_STEPS = 12, 4.0
"""Where the chance of no decision so far is computed: so many places in a panel, whose width is so many standard deviations of a step."""
INTEGRATION_RANGE_DEVIATIONS = 10
"""Standard deviations beyond which it counts as 0."""
MIN_INFORMATION_GROWTH = 0.0005
"""A look that knows more than the one before by a smaller share than this has no step of its own."""
BOUNDARY_PRECISION_DEVIATIONS = 1e-9
"""How well a boundary is known, in standard deviations."""


class PlannedLook(NamedTuple):
    """One look of a design."""

    attempts: int
    """At each case of the current side."""
    alarm: float
    """What the tests for a regression spend at this look."""
    cleared: float
    """What the test for its absence spends at this look."""
    cleared_level: float
    """At which level that test is made: above what it spends, because who is cleared now would often have been before."""


def looks(most: int) -> tuple[int, ...]:
    """The numbers of attempts at each case after which the gate looks, up to `most`.

    >>> looks(10), looks(4), looks(40)
    ((1, 2, 3, 5, 7, 10), (1, 2, 3, 4), (1, 2, 3, 5, 7, 10, 15, 20, 30, 40))
    """
    if most < 1:
        raise ValueError(f"there must be an attempt, got {most}")
    every = list(LOOK_ATTEMPTS)
    while every[-1] < most:
        every.append(every[-1] * 3 // 2)
    return (*(attempts for attempts in every if attempts < most), most)


def spent_error_share(attempts: int, most: int) -> float:
    """The share of the error rate that looks up to this one may spend.

    It grows with the square of the attempts up to the usual number, where most decisions can fall, and evenly after it.

    >>> [round(spent_error_share(attempts, 20), 3) for attempts in looks(20)]
    [0.032, 0.128, 0.288, 0.8, 0.827, 0.867, 0.933, 1.0]
    """
    if most <= EARLY_PHASE_ATTEMPTS:
        return float((attempts / most) ** 2)
    if attempts <= EARLY_PHASE_ATTEMPTS:
        return EARLY_SPENDING_SHARE * (attempts / EARLY_PHASE_ATTEMPTS) ** 2
    return EARLY_SPENDING_SHARE + (1 - EARLY_SPENDING_SHARE) * (attempts - EARLY_PHASE_ATTEMPTS) / (
        most - EARLY_PHASE_ATTEMPTS
    )


def design(most: int, *, baseline_attempts: float, alpha: float = 0.05, first: int = 1) -> tuple[PlannedLook, ...]:
    """The looks at a run of `first` up to `most` attempts per case, compared with a baseline of `baseline_attempts`.

    Alarms share what `FINAL` leaves of alpha by the union bound, which holds for exact tests whatever their
    dependence. All-clears rest on a normal approximation already, so their levels use how strongly looks depend on
    each other: the error spending of Lan and DeMets 1983, "Discrete sequential boundaries for clinical trials", Biometrika
    70, 659-663.

    >>> for step in design(5, baseline_attempts=30):
    ...     print(f"{step.attempts} {step.alarm:.4f} {step.cleared:.4f} {step.cleared_level:.4f}")
    1 0.0015 0.0020 0.0020
    2 0.0045 0.0060 0.0068
    3 0.0075 0.0100 0.0141
    5 0.0240 0.0320 0.0427
    """
    attempts = (*{min(first, most): None} | dict.fromkeys(each for each in looks(most) if each >= first),)
    shares = [spent_error_share(each, most) for each in attempts]
    steps = [share - before for share, before in zip(shares, [0.0, *shares], strict=False)]
    known = [1 / (1 / baseline_attempts + 1 / each) for each in attempts]
    cleared = [alpha * step for step in steps]
    levels = boundary_levels(tuple(known), tuple(cleared))
    return tuple(
        PlannedLook(each, alpha * (1 - FINAL_TEST_SHARE) * step, spends, level)
        for each, step, spends, level in zip(attempts, steps, cleared, levels, strict=True)
    )


@lru_cache(maxsize=64)
def boundary_levels(information: tuple[float, ...], spends: tuple[float, ...]) -> tuple[float, ...]:
    """The level of each one-sided normal test, such that it rejects first with the chance that it may spend.

    `information` is the inverse of the variance of the estimate at each look, ascending. The chance of having come to a
    look without rejecting is integrated numerically, one look after the other, as Armitage, McPherson and Rowe 1969 do in
    "Repeated significance tests on accumulating data", Journal of the Royal Statistical Society A 132, 235-244. A look that
    knows hardly more than the one before is made at the level that it spends, and the others do without it.

    >>> [f"{level:.6f}" for level in boundary_levels((1.0, 2.0), (0.025, 0.025))]
    ['0.025000', '0.035376']
    """
    import numpy as np

    levels: list[float] = []
    # where a sum of steps can be, with the weight of each place: everything begins at 0
    places, weights, reached = np.zeros(1), np.ones(1), 0.0
    for number, (known, spend) in enumerate(zip(information, spends, strict=True), 1):
        if known - reached < MIN_INFORMATION_GROWTH * known:
            # the union bound holds whatever the dependence
            levels.append(spend)
            continue
        spread, step = math.sqrt(known), math.sqrt(known - reached)
        low, high = -INTEGRATION_RANGE_DEVIATIONS * spread, INTEGRATION_RANGE_DEVIATIONS * spread
        middle = high / 2
        while high - low > BOUNDARY_PRECISION_DEVIATIONS * spread:
            # from further below nothing comes beyond
            near_by = slice(int(np.searchsorted(places, middle - INTEGRATION_RANGE_DEVIATIONS * step)), None)
            away = (places[near_by] - middle) / step
            beyond = float(weights[near_by] @ np.fromiter(map(normal_cdf, away), float, len(away)))
            low, high = (middle, high) if beyond > spend else (low, middle)
            # Newton's step towards the logarithm of what may be spent; halving where that leads out of bounds
            falls = float(weights[near_by] @ np.exp(-(away**2) / 2)) / (step * math.sqrt(2 * math.pi))
            near = middle + math.log(beyond / spend) * beyond / falls if beyond > 0 < falls else low
            # just beyond the root, so that both bounds close in on it
            near += math.copysign(BOUNDARY_PRECISION_DEVIATIONS * spread / 4, near - middle)
            middle = near if low < near < high else (low + high) / 2
        levels.append(NormalDist().cdf(-high / spread))
        if number == len(information):
            break
        # as fine as the narrower of both steps that are integrated over it
        later = (each - known for each in information[number:] if each - known >= MIN_INFORMATION_GROWTH * each)
        narrow = min(step, math.sqrt(next(later, known)))
        further, widths = _quadrature(-INTEGRATION_RANGE_DEVIATIONS * spread, high, PANEL_STEPS * narrow)
        moves = np.exp(-(((further[:, None] - places) / step) ** 2) / 2) / (step * math.sqrt(2 * math.pi))
        places, weights, reached = further, widths * (moves @ weights), known
    return tuple(levels)


def _quadrature(low: float, high: float, panel: float) -> tuple[Any, Any]:
    """Places and weights of an integral by Gauss's rule, in panels of at most this width."""
    import numpy as np

    nodes, weights = _gauss_rule()
    panels = max(1, math.ceil((high - low) / panel))
    half = (high - low) / panels / 2
    middles = low + half * (2 * np.arange(panels) + 1)
    return (middles[:, None] + half * nodes).ravel(), np.tile(half * weights, panels)


@cache
def _gauss_rule() -> tuple[Any, Any]:
    import numpy as np

    return np.polynomial.legendre.leggauss(NODES_PER_PANEL)
