"""The interval of an overall score covers the truth as often as it promises."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from steelyard.stats.intervals import Interval, binomial_tail_interval, mean_interval
from steelyard.stats.stratified import Stratum, StratumDifferences, stratified_difference_interval, stratified_interval

ENOUGH = 0.93
Floats = NDArray[np.float64]


class Setting(NamedTuple):
    rates: tuple[float, ...]
    """How often the cases of each suite pass."""
    cases: tuple[int, ...]
    attempts: int = 1
    kind: str = "alike"
    """Cases of a suite pass at one rate (`alike`), or most of them nearly always or never (`apart`)."""
    weights: tuple[float, ...] = ()


def chances(setting: Setting, rate: float) -> Floats:
    """How likely a case passes 0 to n of n attempts."""
    passes = np.arange(setting.attempts + 1)
    if setting.kind == "alike" or rate in (0, 1):
        return np.asarray(stats.binom.pmf(passes, setting.attempts, rate))
    return np.asarray(stats.betabinom.pmf(passes, setting.attempts, rate, 1 - rate))


Drawn = tuple[tuple[int, ...], ...]
"""For every suite how many of its cases passed 0 to n attempts."""


def drawn(setting: Setting, repeats: int) -> Counter[Drawn]:
    chance = np.random.default_rng([setting.attempts, *setting.cases, *(int(1000 * rate) for rate in setting.rates)])
    suites = []
    for rate, cases in zip(setting.rates, setting.cases, strict=True):
        likely = chances(setting, rate)
        suites.append(chance.multinomial(cases, likely / likely.sum(), size=repeats).tolist())
    return Counter(tuple(map(tuple, run)) for run in zip(*suites, strict=True))


def stratum(counts: tuple[int, ...], weight: float) -> Stratum:
    attempts = len(counts) - 1
    values = [passes / attempts for passes in range(len(counts))]
    mean = math.fsum(value * count for value, count in zip(values, counts, strict=True)) / sum(counts)

    def interval(level: float) -> Interval | None:
        return mean_interval(values, counts=counts, attempts=attempts * sum(counts), level=level)

    return Stratum(mean, interval, weight)


def covered(setting: Setting, repeats: int) -> int:
    """How many intervals of simulated runs hold the true overall score."""
    weights = setting.weights or (1.0,) * len(setting.rates)
    truth = math.fsum(map(math.prod, zip(weights, setting.rates, strict=True))) / math.fsum(weights)
    found = 0
    for run, often in drawn(setting, repeats).items():
        interval = stratified_interval([stratum(*each) for each in zip(run, weights, strict=True)])
        assert interval is not None
        found += often * (interval.low - 1e-12 <= truth <= interval.high + 1e-12)
    return found


def too_low(settings: Iterator[Setting], repeats: int) -> dict[Setting, float]:
    """The settings that cover significantly less than 93%."""
    low = {}
    for setting in settings:
        found = covered(setting, repeats)
        if binomial_tail_interval(found, repeats - found, 0.001).high < ENOUGH:
            low[setting] = found / repeats
    return low


MIXED = [
    ((1.0, 1.0, 1.0), (10, 20, 30)),
    ((0.99, 0.99, 0.99), (20, 20, 20)),
    ((1.0, 1.0, 0.95), (30, 10, 10)),
    ((0.05, 0.05, 0.05), (30, 30, 30)),
    ((1.0, 0.5, 0.05), (10, 30, 20)),
    ((1.0, 0.95, 0.9, 0.85), (20, 10, 30, 10)),
    ((0.95,) * 5, (10,) * 5),
    ((0.98,) * 5, (30,) * 5),
    ((0.05, 0.3, 0.6, 0.9, 1.0), (10, 20, 10, 20, 10)),
]


def few() -> Iterator[Setting]:
    for rates, cases in MIXED:
        yield Setting(rates, cases)
        yield Setting(rates, cases, 3, "apart")


def many() -> Iterator[Setting]:
    chance = random.Random(4)
    rates = (0.05, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
    for number in range(240):
        suites = chance.choice((3, 4, 5))
        # half of the settings have suites that are all alike: there nothing averages out
        of_suites = tuple(chance.choices(rates, k=suites)) if number % 2 else (chance.choice(rates),) * suites
        cases = tuple(chance.choices((10, 12, 15, 20, 30), k=suites))
        weights = tuple(chance.choices((1.0, 2.0, 5.0), k=suites)) if number % 3 == 0 else ()
        yield Setting(of_suites, cases, chance.choice((1, 3)), chance.choice(("alike", "apart")), weights)


def test_the_interval_of_an_overall_score_covers() -> None:
    # every second setting; the whole study has many more
    assert too_low(islice(few(), 0, None, 2), 500) == {}


@pytest.mark.slow
def test_the_interval_of_an_overall_score_covers_in_the_whole_study() -> None:
    assert too_low(many(), 2500) == {}


def test_the_normal_interval_of_an_overall_score_does_not_cover() -> None:
    setting = Setting((0.99, 0.99, 0.99), (20, 20, 20))
    found = 0
    for run, often in drawn(setting, 2000).items():
        means = [passed / (failed + passed) for failed, passed in run]
        variance = math.fsum(mean * (1 - mean) / (sum(each) - 1) for mean, each in zip(means, run, strict=True)) / 9
        found += often * (abs(math.fsum(means) / 3 - 0.99) <= 1.96 * math.sqrt(variance))
    assert found / 2000 < 0.6


def test_squares_of_the_suites_own_distances_do_not_cover_either() -> None:
    setting = Setting((0.95,) * 5, (10,) * 5)
    found = 0
    for run, often in drawn(setting, 4000).items():
        suites = [stratum(each, 1.0) for each in run]
        mean = math.fsum(suite.mean for suite in suites) / 5
        own = [each for suite in suites if (each := suite.interval(0.95))]
        low = mean - math.hypot(*(suite.mean - each.low for suite, each in zip(suites, own, strict=True))) / 5
        high = mean + math.hypot(*(each.high - suite.mean for suite, each in zip(suites, own, strict=True))) / 5
        found += often * (low <= 0.95 <= high)
    assert found / 4000 < 0.92


def paired(setting: Setting, after: float, alike: float, repeats: int) -> float:
    """How often the interval of an overall change covers where a share of the cases comes out alike on both sides."""
    chance = np.random.default_rng([*setting.cases, setting.attempts, int(100 * alike), int(-100 * after)])
    suites = []
    for rate, cases in zip(setting.rates, setting.cases, strict=True):
        luck = chance.random((repeats, cases, setting.attempts))
        other = np.where(chance.random((repeats, cases, 1)) < alike, luck, chance.random(luck.shape))
        suites.append(((other < rate + after).mean(axis=2) - (luck < rate).mean(axis=2)).tolist())
    found = 0
    for run in zip(*suites, strict=True):
        interval = stratified_difference_interval([StratumDifferences(values, setting.attempts) for values in run])
        assert interval is not None
        found += interval.low <= after <= interval.high
    return found / repeats


@pytest.mark.parametrize("after", [0.0, -0.05, -0.3, -0.7])
@pytest.mark.parametrize("alike", [0.0, 0.8])
@pytest.mark.parametrize("attempts", [1, 3])
def test_the_interval_of_an_overall_change_covers(after: float, alike: float, attempts: int) -> None:
    assert paired(Setting((0.9, 0.95, 0.8), (10, 20, 30), attempts), after, alike, 1000) >= 0.92
    assert paired(Setting((0.9,) * 5, (10,) * 5, attempts), after, alike, 1000) >= 0.92
