"""Intervals for a change of cases that change in groups: they cover, where those that ignore the groups do not."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.comparison.exact_tests import PairedCase
from steelyard.comparison.gate import decide
from steelyard.stats.paired import difference_interval, unit_squares
from steelyard.stats.stratified import StratumDifferences, stratified_difference_interval

ATTEMPTS = 5


def covered(groups: int, spread: float, repeats: int, *, ignoring: bool = False) -> float:
    """The share of 95% intervals that hold the true change, where a group's cases drop together.

    The rates stay away from 0 and 1, so the true mean change is the one that is drawn around.
    """
    chance = np.random.default_rng([26, groups, int(100 * spread), ignoring])
    found = 0
    for _ in range(repeats):
        sizes = np.maximum(1, chance.poisson(4, groups))
        of = np.repeat(np.arange(groups), sizes)
        before = chance.uniform(0.4, 0.6, groups)[of]
        after = before + chance.uniform(-spread, spread, groups)[of] * 2
        old, new = (chance.binomial(ATTEMPTS, rates) / ATTEMPTS for rates in (before, after))
        interval = difference_interval(
            old.tolist(), new.tolist(), attempts=ATTEMPTS, groups=None if ignoring else of.tolist()
        )
        found += interval is not None and interval.low <= 0 <= interval.high
    return found / repeats


def test_intervals_of_grouped_cases_cover_and_those_that_ignore_the_groups_do_not() -> None:
    assert covered(12, 0.2, 400) >= 0.92
    assert covered(12, 0.2, 400, ignoring=True) <= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("groups", [5, 10, 30])
@pytest.mark.parametrize("spread", [0.0, 0.1, 0.2])
def test_intervals_of_grouped_cases_cover_with_few_groups_and_many(groups: int, spread: float) -> None:
    assert covered(groups, spread, 4000) >= 0.925


def test_groups_of_one_case_each_change_nothing_and_one_group_alone_has_no_interval() -> None:
    sides = [0.9, 0.8, 1.0, 0.4], [0.8, 0.8, 0.9, 0.5]
    assert difference_interval(*sides, attempts=5, groups="abcd") == difference_interval(*sides, attempts=5)
    assert difference_interval(*sides, attempts=5, groups="aaaa") is None
    grouped = difference_interval(*sides, attempts=5, groups="aabb")
    alone = stratified_difference_interval([StratumDifferences([-0.1, 0.0, -0.1, 0.1], 5, "aabb")])
    assert grouped is not None
    assert alone == pytest.approx(grouped)
    assert stratified_difference_interval([StratumDifferences([-0.1, 0.0], 5, "aa")]) is None
    assert unit_squares([0.5, -0.5], ["a", "a"]) == (0.0, 0)


def test_the_effect_of_a_gate_is_clustered_by_the_groups_of_its_cases() -> None:
    def effect(grouped: bool) -> tuple[float, float]:
        cases = [
            PairedCase(
                case=f"case-{place:02}",
                baseline_attempts=5,
                baseline_passes=4,
                current_attempts=5,
                # one group in three got worse as one
                current_passes=5 if place % 3 else 1,
                group=f"group {place % 3}" if grouped else "",
            )
            for place in range(18)
        ]
        (model,) = decide({"model": cases}).models
        assert model.effect.low is not None
        assert model.effect.high is not None
        return model.effect.low, model.effect.high

    (low, high), (wide_low, wide_high) = effect(False), effect(True)
    assert wide_high - wide_low > 2 * (high - low)
