"""Suites and runs drawn at random, and what the gate says of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from steelyard.comparison.exact_tests import PairedCase
from steelyard.comparison.gate import CANNOT_TELL, NOT_REGRESSED, REGRESSED
from steelyard.stats.paired import PairedCaseCounts, fisher_worse

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SUITES = ("U-shaped", "mature", "strong")
SIZES = (50, 100, 200)
ATTEMPTS = ((1, 1), (5, 5), (10, 10))
"""At each case, on both sides."""
POOLED = ((30, 1), (30, 3), (30, 5), (30, 10))
"""The same where the baseline is pooled from several runs."""
POINTS = {"5 points": 0.05, "10 points": 0.10}
BROKEN = {"1 broken": 1, "3 broken": 3}
CHANGES = ("none", "the margin", *POINTS, *BROKEN)
REPEATS = 2000
ALPHA = MARGIN = THRESHOLD = 0.05
VERDICTS = (REGRESSED, NOT_REGRESSED, CANNOT_TELL)
TOO_MANY = int(stats.binom.isf(0.001, REPEATS, ALPHA))
"""More than this of all repeats are significantly above alpha, one-sided, at 0.1%."""


class Drawn(NamedTuple):
    """Passes on both sides: one row per repeat, one column per case."""

    attempts: tuple[int, int]
    baseline: Integers
    current: Integers


class Shares(NamedTuple):
    """How often each verdict fell, and how often the plain threshold on each case would have raised an alarm."""

    regressed: float
    not_regressed: float
    cannot_tell: float
    naive: float


def rates(suite: str, cases: int, repeats: int, chance: np.random.Generator) -> Floats:
    """How likely one attempt at each case is to pass: a new suite in each row."""
    shape = (repeats, cases)
    if suite == "U-shaped":
        return chance.beta(0.5, 0.5, shape)
    if suite == "strong":
        return chance.beta(9, 1, shape)
    kind = chance.random(shape)
    return np.where(kind < 0.6, 1.0, np.where(kind < 0.7, 0.0, chance.random(shape)))


def dropped(before: Floats, mean_drop: float) -> Floats:
    """Every rate lower by one amount, down to 0 at most, such that each suite drops by this on average."""
    low, high = np.zeros((len(before), 1)), np.ones((len(before), 1))
    for _ in range(50):
        middle = (low + high) / 2
        enough = np.minimum(before, middle).mean(axis=1, keepdims=True) >= mean_drop
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return before - np.minimum(before, high)


def changed(before: Floats, change: str) -> Floats:
    if change == "none":
        return before
    if change == "the margin":
        return dropped(before, MARGIN)
    if change in POINTS:
        return np.maximum(before - POINTS[change], 0.0)
    # broken are cases that nearly always passed: of those the first, or the best there are
    after = before.copy()
    broken = np.argsort(-np.where(before >= 0.9, 1.0, before), axis=1, kind="stable")[:, : BROKEN[change]]
    np.put_along_axis(after, broken, 0.0, axis=1)
    return after


def drawn(suite: str, cases: int, attempts: tuple[int, int], change: str, repeats: int = REPEATS) -> Drawn:
    chance = np.random.default_rng([cases, *attempts, *suite.encode(), *change.encode()])
    before = rates(suite, cases, repeats, chance)
    after = changed(before, change)
    return Drawn(attempts, chance.binomial(attempts[0], before), chance.binomial(attempts[1], after))


class Tables(NamedTuple):
    """What the gate needs to know of cases with so many attempts on each side, by their passes on both together."""

    p: Floats
    """Every p-value that a case can attain, ascending."""
    place: Integers
    """Where the p-value of a case stands among them, by all passes and the current ones."""
    survival: Floats
    """The logarithm of the chance that a case attains none up to each."""
    sums: list[Floats]
    """How likely each number of current passes is."""


@cache
def tables(before: int, after: int) -> Tables:
    found: dict[tuple[int, int], float] = {}
    sums = []
    for passes in range(before + after + 1):
        sums.append(stats.hypergeom(before + after, passes, after).pmf(np.arange(after + 1)))
        for current in range(max(0, passes - before), min(passes, after) + 1):
            found[passes, current] = fisher_worse(PairedCaseCounts(before, passes - current, after, current))
    p = np.unique(list(found.values()))
    place = np.full((before + after + 1, after + 1), len(p) - 1)
    survival = np.zeros((before + after + 1, len(p)))
    for (passes, current), value in found.items():
        place[passes, current] = int(np.searchsorted(p, value))
    for passes in range(before + after + 1):
        own = np.array([value for (each, _), value in found.items() if each == passes])
        largest = np.array([own[own <= value].max(initial=0.0) for value in p])
        survival[passes] = np.log1p(-np.minimum(largest, 1 - 1e-15))
    return Tables(p, place, survival, sums)


def verdicts(runs: Drawn, alpha: float = ALPHA, cleared: float = ALPHA) -> Integers:
    """The verdict on each row as a place in VERDICTS: the rule of the gate once more, for many comparisons at once."""
    (before, after), baseline, current = runs
    repeats, cases = baseline.shape
    known = tables(before, after)
    passes = baseline + current
    kinds = before + after + 1
    strata = np.bincount((passes + kinds * np.arange(repeats)[:, None]).ravel(), minlength=repeats * kinds)
    strata = strata.reshape(repeats, kinds)

    chances = -np.expm1(strata @ known.survival)
    worst = np.take_along_axis(chances, known.place[passes, current].min(axis=1)[:, None], axis=1)[:, 0]
    if min(before, after) < 3:
        worst, spent = np.ones(repeats), np.zeros(repeats)
    else:
        spent = np.where(chances <= alpha / 2 + 1e-9, chances, 0.0).max(axis=1)

    length = 1 << (cases * after).bit_length()
    waves = np.array([np.fft.rfft(each, length) for each in known.sums])
    # a wave that vanishes has no logarithm; this small it vanishes all the same
    waves[waves == 0] = 1e-300
    sums = np.fft.irfft(np.exp(strata @ np.log(waves)), length)
    overall = np.take_along_axis(np.cumsum(sums, axis=1), current.sum(axis=1)[:, None], axis=1)[:, 0]

    within = cleared_p(runs) <= cleared + 1e-9
    suite = np.maximum(overall, mean_p(runs)) <= alpha - spent + 1e-9
    worse = (worst <= alpha / 2 + 1e-9) | suite
    return np.where(worse, 0, np.where(within, 1, 2))


def mean_p(runs: Drawn) -> Floats:
    """The p-value of a drop of the mean on each row, whichever cases changed."""
    (before, after), baseline, current = runs
    old, new = baseline / before, current / after
    if min(before, after) == 1:
        spread = (old - new) ** 2
    else:
        spread = old * (1 - old) / (before - 1) + new * (1 - new) / (after - 1)
    drop, error = (old - new).sum(axis=1), np.sqrt(spread.sum(axis=1))
    found: Floats = np.where(error > 0, stats.norm.sf(drop / np.where(error > 0, error, 1)), drop <= 0)
    return found


def cleared_p(runs: Drawn, margin: float = MARGIN) -> Floats:
    """The p-value of the all-clear on each row, once more for many comparisons at once."""
    (before, after), baseline, current = runs
    cases = baseline.shape[1]
    old, new = baseline / before, current / after
    if min(before, after) == 1:
        spread, skew = (old - new) ** 2, (old - new) ** 3
    else:
        spread = old * (1 - old) / (before - 1) + new * (1 - new) / (after - 1)
        skew = _third(new, after, old) - _third(old, before, new)
    unit = 1 / min(before, after)
    fewer, more = sorted((before, after))
    prior = 1.5 * (1 + (fewer == 1 or 2 * fewer > more) + (more <= 2))
    variance = spread.sum(axis=1)
    slope = np.maximum(0, (skew.sum(axis=1) + prior * unit**3) / (variance + prior * unit**2))
    missing = margin * cases - (old - new).sum(axis=1)
    error = np.sqrt(variance + slope * abs(missing))
    found: Floats = stats.norm.sf(missing / np.where(error > 0, error, 1))
    return found


def _third(rate: Floats, attempts: int, other: Floats) -> Floats:
    if attempts == 2:
        return rate * (1 - rate) * (2 * other - 1) / 2
    return rate * (1 - rate) * (2 * rate - 1) / ((attempts - 1) * (attempts - 2))


@cache
def shares(suite: str, cases: int, attempts: tuple[int, int], change: str) -> Shares:
    runs = drawn(suite, cases, attempts, change)
    regressed, not_regressed, cannot_tell = np.bincount(verdicts(runs), minlength=3) / REPEATS
    drops = runs.baseline / attempts[0] - runs.current / attempts[1]
    naive = (drops > THRESHOLD + 1e-9).any(axis=1).mean()
    return Shares(float(regressed), float(not_regressed), float(cannot_tell), float(naive))


def table(designs: Iterable[tuple[int, int]]) -> str:
    """The figures of this study, as the page shows them."""
    heads = ["suite", "cases", "attempts", "plain threshold", "regressed / not / cannot tell", "margin: not regressed"]
    heads += [*POINTS, *BROKEN]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for suite, cases, attempts in product(SUITES, SIZES, designs):
        none, margin, *found = (shares(suite, cases, attempts, change) for change in CHANGES)
        cells = [
            *(suite, str(cases), "/".join(map(str, attempts)), f"{none.naive:.0%}"),
            f"{none.regressed:.1%} / {none.not_regressed:.0%} / {none.cannot_tell:.0%}",
            f"{margin.not_regressed:.1%}",
            *(f"{each.regressed:.0%}" for each in found),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def paired(runs: Drawn, row: int) -> list[PairedCase]:
    sides = zip(runs.baseline[row].tolist(), runs.current[row].tolist(), strict=True)
    return [
        PairedCase(
            case=f"case-{number:03}",
            baseline_attempts=runs.attempts[0],
            baseline_passes=before,
            current_attempts=runs.attempts[1],
            current_passes=after,
        )
        for number, (before, after) in enumerate(sides)
    ]
