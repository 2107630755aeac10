"""How often a true drop of the margin is cleared, at the level that the command spends at its first look, over suites of every kind.

    python -m benchmarks.all_clears [--repeats 20000] [--seed 9] [--jobs 16] [--cases 10,20,50] [--attempts 5/5,2/2]

It draws counts and takes the test of the margin alone, of all repeats at once: what is not cleared by it is not cleared by the gate. Printed are the
cells above the level, beside the share that the test would clear which knows the true variances. 5,400 cells of 20,000 repeats take 20 minutes of one
processor.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from benchmarks.decisions import LEVEL, MARGIN
from numpy.typing import NDArray

from steelyard.stats.paired import PairedCaseCounts
from steelyard.stats.power import evidence

Floats = NDArray[np.float64]
SURE = NormalDist().inv_cdf(1 - LEVEL)
BATCH = 5000
TOLERANCE = 1e-9
ATTEMPTS = "1/1,1/5,2/2,2/5,3/3,3/5,5/2,5/3,5/5,5/10,10/5,10/10,30/5,30/3,20/20"


def _of_three(always: float, never: float, sizes: tuple[int, int], chance: np.random.Generator) -> Floats:
    """Cases that always pass, cases that never do, and others that pass as often as it may be."""
    kind = chance.random(sizes)
    return np.where(kind < always, 1.0, np.where(kind < always + never, 0.0, chance.random(sizes)))


def _all_alike(rate: float, sizes: tuple[int, int], _: np.random.Generator) -> Floats:
    return np.full(sizes, rate)


SUITES: dict[str, Callable[[tuple[int, int], np.random.Generator], Floats]] = {
    "settled": partial(_of_three, 0.35, 0.29),
    "mature": partial(_of_three, 0.6, 0.1),
    "noisy": lambda sizes, chance: chance.beta(0.5, 0.5, sizes),
    "strong": lambda sizes, chance: chance.beta(9, 1, sizes),
    "saturated": lambda sizes, chance: np.where(chance.random(sizes) < 0.85, 1.0, chance.beta(9, 1, sizes)),
    "weak": lambda sizes, chance: np.where(chance.random(sizes) < 0.5, 0.0, chance.beta(1, 3, sizes)),
    "a tenth at 0.5": lambda sizes, chance: np.where(chance.random(sizes) < 0.1, 0.5, 1.0),
    **{f"all at {rate:g}": partial(_all_alike, rate) for rate in (1.0, 0.99, 0.97, 0.95, 0.9, 0.8, 0.5, 0.2)},
}


def even(rates: Floats) -> Floats:
    """The same amount from every case, but none below 0."""
    cases = rates.shape[1]
    ordered = np.sort(rates, axis=1)
    sums = np.cumsum(ordered, axis=1)
    earlier = sums - ordered
    taken_up_to = earlier + (cases - np.arange(cases)) * ordered
    place = np.minimum((taken_up_to < MARGIN * cases - 1e-15).sum(axis=1), cases - 1)
    taken = (MARGIN * cases - earlier[np.arange(len(rates)), place]) / (cases - place)
    after: Floats = rates - np.minimum(rates, taken[:, None])
    return after


def few(rates: Floats, parts: int) -> Floats:
    """The best cases lose this part of their rate, one after the other, and where that does not suffice the next part."""
    cases = rates.shape[1]
    order = np.argsort(-rates, axis=1, kind="stable")
    steps = np.tile(np.take_along_axis(rates, order, axis=1) / parts, (1, parts))
    taken = np.clip(MARGIN * cases - (np.cumsum(steps, axis=1) - steps), 0, steps)
    lost = np.zeros_like(rates)
    np.put_along_axis(lost, order, taken.reshape(len(rates), parts, cases).sum(axis=1), axis=1)
    return np.clip(rates - lost, 0, 1)


def proportional(rates: Floats) -> Floats:
    """The same share of every rate."""
    after: Floats = rates * (1 - np.minimum(1, MARGIN / np.maximum(rates.mean(axis=1), 1e-9)))[:, None]
    return after


CHANGES: dict[str, Callable[[Floats], Floats]] = {
    "even": even,
    "proportional": proportional,
    "half of few": partial(few, parts=2),
    "all of few": partial(few, parts=1),
}


class Cell(NamedTuple):
    cases: int
    before: int
    after: int
    suite: str
    change: str


class Moments(NamedTuple):
    """By the passes of both sides what `stats.power.evidence` says of a case."""

    spread: Floats
    skew: Floats
    assumed_variance: float
    assumed_skew: float


@cache
def moments(before: int, after: int) -> Moments:
    """What is known of a case with these attempts, by its passes."""
    known = [
        [evidence(PairedCaseCounts(before, old, after, new)) for new in range(after + 1)] for old in range(before + 1)
    ]
    one = known[0][0]
    spread, skew = (np.array([[getattr(each, name) for each in row] for row in known]) for name in ("spread", "skew"))
    return Moments(spread, skew, one.prior * one.unit**2, one.prior * one.unit**3)


def cleared(before: NDArray[np.int64], after: NDArray[np.int64], cell: Cell) -> NDArray[np.bool_]:
    """Which repeats `stats.power.MeanDoubt` clears; one whose drop is the margin to the last attempt is not."""
    known = moments(cell.before, cell.after)
    variance = known.spread[before, after].sum(axis=1)
    skew = known.skew[before, after].sum(axis=1)
    missing = MARGIN * cell.cases - (before / cell.before - after / cell.after).sum(axis=1)
    slope = np.maximum(0.0, (skew + known.assumed_skew) / (variance + known.assumed_variance))
    found: NDArray[np.bool_] = (missing > TOLERANCE) & (missing >= SURE * np.sqrt(variance + slope * np.abs(missing)))
    return found


def shares(cell: Cell, *, repeats: int, seed: int) -> tuple[float, float]:
    """The shares of repeats that are cleared, and that would be if the true variances were known."""
    chance = np.random.default_rng(
        [seed, cell.cases, cell.before, cell.after, *cell.suite.encode(), *cell.change.encode()]
    )
    by_gate = by_known = 0
    for first in range(0, repeats, BATCH):
        rates = SUITES[cell.suite]((min(BATCH, repeats - first), cell.cases), chance)
        # a suite that cannot drop by the margin says nothing
        can_drop = rates.mean(axis=1) >= MARGIN
        later = np.clip(CHANGES[cell.change](rates), 0, 1)
        before, after = chance.binomial(cell.before, rates), chance.binomial(cell.after, later)
        spread = (rates * (1 - rates) / cell.before + later * (1 - later) / cell.after).sum(axis=1)
        fell = (before / cell.before - after / cell.after).sum(axis=1)
        by_gate += int((cleared(before, after, cell) & can_drop).sum())
        by_known += int(((fell + SURE * np.sqrt(spread) < MARGIN * cell.cases - TOLERANCE) & can_drop).sum())
    return by_gate / repeats, by_known / repeats


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--repeats", type=int, default=20_000)
    asked.add_argument("--cases", default="10,20,30,50,100,150")
    asked.add_argument("--attempts", default=ATTEMPTS)
    asked.add_argument("--seed", type=int, default=9)
    asked.add_argument("--jobs", type=int, default=1, help="processes at once")
    options = asked.parse_args()
    sizes = [tuple(map(int, each.split("/"))) for each in options.attempts.split(",")]
    cells = [
        Cell(cases, before, after, suite, change)
        for cases, (before, after), suite, change in product(map(int, options.cases.split(",")), sizes, SUITES, CHANGES)
    ]
    error = (LEVEL * (1 - LEVEL) / options.repeats) ** 0.5
    above = 0
    print("| suite | cases | attempts | change | cleared | true variances known |\n|---|---|---|---|---|---|")
    with ProcessPoolExecutor(options.jobs) as pool:
        found = pool.map(partial(shares, repeats=options.repeats, seed=options.seed), cells, chunksize=8)
        for cell, (by_gate, by_known) in zip(cells, found, strict=True):
            if by_gate > LEVEL + 3 * error:
                above += 1
                place = f"{cell.suite} | {cell.cases} | {cell.before}/{cell.after} | {cell.change}"
                print(f"| {place} | {by_gate:.2%} | {by_known:.2%} |", flush=True)
    print(
        f"\n{above} of {len(cells):,} cells lie above {LEVEL:.0%} by more than three standard errors ({3 * error:.2%})"
    )


if __name__ == "__main__":
    main()
