"""How often the gate is right, at the level that the command spends at its first look, beside the rules that people use now.

    python benchmarks/decisions.py [--repeats 2000] [--cases 50] [--attempts 5/5,30/5] [--seed 1] [--suites weak] [--changes nothing] [--jobs 16]

Suites whose true pass rates are known are drawn and decided by `steelyard.comparison.gate.decide` itself. A cell of 2,000
repeats takes about ten seconds, and all of them an hour and a half of one processor; each has a seed of its own, so that it is the
same whichever others are asked for. What it prints, in percent, is benchmarks/results/gate.csv.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from math import comb
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from steelyard.comparison.gate import NOT_REGRESSED, REGRESSED, CasesPolicy, decide
from steelyard.comparison.sides import PairedCounts
from steelyard.engine.gate.gate import LOOK_ALPHA_SHARE
from steelyard.stats.special import student_quantile

Floats = NDArray[np.float64]
LEVEL = 0.05 * LOOK_ALPHA_SHARE
MARGIN = 0.05


def settled(cases: int, chance: np.random.Generator) -> Floats:
    """A third of the cases always pass, nearly as many never do."""
    kind = chance.random(cases)
    return np.where(kind < 0.35, 1.0, np.where(kind < 0.64, 0.0, chance.random(cases)))


def saturated(cases: int, chance: np.random.Generator) -> Floats:
    return np.where(chance.random(cases) < 0.85, 1.0, chance.beta(9, 1, cases))


SUITES: dict[str, Callable[[int, np.random.Generator], Floats]] = {
    "settled": settled,
    "noisy": lambda cases, chance: chance.beta(0.5, 0.5, cases),
    "saturated": saturated,
    "weak": lambda cases, chance: np.where(chance.random(cases) < 0.5, 0.0, chance.beta(1, 3, cases)),
}


def uniform(rates: Floats, drop: float) -> Floats:
    """The same amount from every case, but none below 0."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if np.minimum(rates, middle).mean() >= drop else (middle, high)
    return rates - np.minimum(rates, high)


def concentrated(rates: Floats, drop: float) -> Floats:
    """The best cases lose half of their rate, one after the other, and where that does not suffice the rest of it."""
    after, left = rates.copy(), drop * rates.size
    for place in np.tile(np.argsort(-rates, kind="stable"), 2):
        taken = min(left, rates[place] / 2)
        after[place] -= taken
        left -= taken
    return after


def swapped(rates: Floats, _: float) -> Floats:
    """Another model of the same quality: cases exchange their rates with those of other cases, in a fifth of the suite."""
    after = rates.copy()
    few = rates.size // 5
    after[:few] = np.roll(rates[:few], 1)
    return after


CHANGES: dict[str, tuple[Callable[[Floats, float], Floats], float]] = {
    "nothing": (lambda rates, _: rates, 0.0),
    "equal model": (swapped, 0.0),
    "2 points, even": (uniform, 0.02),
    "2 points, few": (concentrated, 0.02),
    "5 points, even": (uniform, MARGIN),
    "5 points, few": (concentrated, MARGIN),
    "10 points, even": (uniform, 0.1),
    "10 points, few": (concentrated, 0.1),
}


def rules_of_today(
    before: NDArray[np.int64], after: NDArray[np.int64], sizes: tuple[int, int], chance: np.random.Generator
) -> dict[str, bool]:
    """Whether each of the usual rules is red, given passes by case."""
    old, new = before / sizes[0], after / sizes[1]
    drops = old - new
    sure = NormalDist().inv_cdf(1 - LEVEL)
    error = drops.std(ddof=1) / np.sqrt(drops.size)
    rate = (before.sum() + after.sum()) / (drops.size * sum(sizes))
    pooled = np.sqrt(max(rate * (1 - rate), 1e-12) * (1 / sizes[0] + 1 / sizes[1]) / drops.size)
    clustered = np.sqrt((old.var(ddof=1) + new.var(ddof=1)) / drops.size)
    # one attempt of each side: as likely to have passed as any of them
    first = chance.random(drops.size) < old, chance.random(drops.size) < new
    lost, won = int((first[0] & ~first[1]).sum()), int((first[1] & ~first[0]).sum())
    return {
        "any case down 5%": bool((drops > 0.05 + 1e-9).any()),
        "mean down 5%": bool(drops.mean() > 0.05 + 1e-9),
        "paired t": bool(drops.mean() > student_quantile(drops.size - 1, 1 - LEVEL) * error),
        "McNemar, evalsig": lost > won and mcnemar_worse(lost, won) <= LEVEL,
        "two-proportion z": bool(drops.mean() > sure * pooled),
        "clustered, unpaired": bool(drops.mean() > sure * clustered),
    }


@cache
def mcnemar_worse(lost: int, won: int) -> float:
    """McNemar's exact one-sided p-value; evalsig 0.1.2 takes it too, of the first attempt at each case."""
    return float(sum(comb(lost + won, each) for each in range(won + 1)) / 2 ** (lost + won))


def cell(suite: str, cases: int, sizes: tuple[int, int], change: str, repeats: int, seed: int) -> dict[str, float]:
    """The share of repeats with each outcome."""
    chance = np.random.default_rng([seed, cases, *sizes, *suite.encode(), *change.encode()])
    move, drop = CHANGES[change]
    names = [f"{number:04}" for number in range(cases)]
    sure = NormalDist().inv_cdf(1 - LEVEL)
    found: dict[str, float] = {}
    policy = CasesPolicy("fail" if change != "equal model" else "warn")
    for _ in range(repeats):
        rates = SUITES[suite](cases, chance)
        later = move(rates, drop)
        before, after = chance.binomial(sizes[0], rates), chance.binomial(sizes[1], later)
        columns = [np.full(cases, sizes[0]), before, np.full(cases, sizes[1]), after]
        decision = decide(
            {"model": PairedCounts(names, np.stack(columns, axis=1))}, alpha=LEVEL, cleared_level=LEVEL, policy=policy
        )
        (model,) = decision.models
        spread = (rates * (1 - rates) / sizes[0] + later * (1 - later) / sizes[1]).sum()
        fell = (before / sizes[0] - after / sizes[1]).sum()
        outcomes = {
            "exit code 1": model.verdict == REGRESSED,
            "suite worse": model.suite == REGRESSED,
            "cases worse": model.case_verdict == "worse",
            "cleared": model.suite == NOT_REGRESSED,
            "cleared, true variances known": bool(fell + sure * np.sqrt(spread) < MARGIN * cases),
            **rules_of_today(before, after, sizes, chance),
        }
        for name, is_so in outcomes.items():
            found[name] = found.get(name, 0.0) + is_so / repeats
    return found


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--repeats", type=int, default=2000)
    asked.add_argument("--cases", default="20,50,150")
    asked.add_argument("--attempts", default="1/5,5/5,10/5,30/5")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--suites", default=",".join(SUITES))
    asked.add_argument("--changes", default=";".join(CHANGES), help="separated by semicolons")
    asked.add_argument("--jobs", type=int, default=1, help="processes at once")
    options = asked.parse_args()
    table, has_head = csv.writer(sys.stdout, lineterminator="\n"), False
    sizes = [(int(before), int(after)) for before, after in (each.split("/") for each in options.attempts.split(","))]
    suites, changes = options.suites.split(","), options.changes.split(";")
    drawn = list(product(map(int, options.cases.split(",")), sizes, suites, changes))
    with ProcessPoolExecutor(options.jobs) as pool:
        shares = pool.map(partial(drawn_cell, repeats=options.repeats, seed=options.seed), drawn)
        for (cases, (before, after), suite, change), found in zip(drawn, shares, strict=True):
            cells = [suite, cases, f"{before}/{after}", change, *(f"{100 * share:.1f}" for share in found.values())]
            if not has_head:
                table.writerow(["suite", "cases", "attempts", "change", *found])
                has_head = True
            table.writerow(cells)
            sys.stdout.flush()


def drawn_cell(of: tuple[int, tuple[int, int], str, str], *, repeats: int, seed: int) -> dict[str, float]:
    """The shares of one cell, in a process of its own."""
    cases, sizes, suite, change = of
    return cell(suite, cases, sizes, change, repeats, seed)


if __name__ == "__main__":
    main()
