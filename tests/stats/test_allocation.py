"""Attempts go where a mean over cases gains most by them, and a run that cannot be decided is known for it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from steelyard.stats.allocation import equal_attempts, expected_variance, neyman_attempts
from steelyard.stats.futility import FutureLook, chance_to_decide
from steelyard.stats.paired import PairedCaseCounts
from steelyard.stats.power import evidence, mean_drop_p, non_inferiority


def test_attempts_follow_standard_deviations_and_no_case_gets_more_than_it_would_alone() -> None:
    variances = [0.25, 0.09, 0.04, 0.01, 0.0]
    assert neyman_attempts(variances, 20, least=2) == [20, 12, 8, 4, 2]
    before = [1] * 5
    for attempts in range(2, 40):
        found = neyman_attempts(variances, attempts, least=2)
        assert all(2 <= count <= attempts for count in found)
        # more rounds take nothing back
        assert all(now >= earlier for now, earlier in zip(found, before, strict=True))
        before = found


def test_no_other_division_of_as_many_attempts_has_a_smaller_variance() -> None:
    variances = [0.25, 0.09, 0.01]

    def left(counts: tuple[int, ...]) -> float:
        return sum(variance / count for variance, count in zip(variances, counts, strict=True))

    found = neyman_attempts(variances, 10, least=2)
    same_number = (counts for counts in product(range(1, 19), repeat=3) if sum(counts) == sum(found))
    assert left(tuple(found)) == pytest.approx(min(map(left, same_number)))


def test_a_mean_is_known_better_than_by_as_many_attempts_at_every_case() -> None:
    variances = [expected_variance(10, passes) for passes in (10, 5, 2, 0, 0, 0)]
    divided = neyman_attempts(variances, 10, least=2)
    assert equal_attempts(variances, [10] * 6) == pytest.approx(10)
    assert sum(divided) < 0.75 * 60
    assert equal_attempts(variances, divided) > 1.1 * sum(divided) / 6


@pytest.mark.parametrize("given", [(-1, 0), (3, 4)])
def test_passes_beyond_the_attempts_are_refused(given: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="between 0 and the attempts"):
        expected_variance(*given)


@pytest.mark.parametrize("bounds", [(0, 3), (4, 3)])
def test_bounds_that_contradict_each_other_are_refused(bounds: tuple[int, int]) -> None:
    least, attempts = bounds
    with pytest.raises(ValueError, match="expected 1 <= least"):
        neyman_attempts([0.1], attempts, least=least)


def test_the_chance_to_decide_is_that_of_the_tests_of_the_mean() -> None:
    chance = np.random.default_rng(5)
    look = FutureLook([20] * 40, 0.005, 0.03)
    expected, decided = [], []
    for _ in range(150):
        before = chance.beta(0.5, 0.5, 40)
        # the change is as unknown as the chance takes it to be
        after = np.clip(before + chance.uniform(-0.25, 0.25), 0, 1)
        old, now, later = chance.binomial(2, before), chance.binomial(5, after), chance.binomial(15, after)
        cases = [
            PairedCaseCounts(2, *pair, count) for pair, count in zip(zip(old, [5] * 40, strict=True), now, strict=True)
        ]
        expected.append(chance_to_decide(cases, [look], margin=0.05))
        known = [evidence(PairedCaseCounts(2, int(a), 20, int(b))) for a, b in zip(old, now + later, strict=True)]
        cleared = non_inferiority(known, margin=0.05)
        assert cleared is not None
        decided.append(cleared.p <= look.cleared_level or mean_drop_p(known) <= look.alarm_level)
    share, said = np.array(decided), np.array(expected)
    assert said.mean() == pytest.approx(share.mean(), abs=0.06)
    assert share[said < 0.05].mean() <= 0.08
    assert (said < 0.05).sum() >= 5


def test_nothing_is_hopeless_while_a_case_has_one_attempt() -> None:
    assert chance_to_decide([PairedCaseCounts(1, 1, 1, 0)] * 9, [FutureLook([5] * 9, 0.01, 0.01)], margin=0.05) == 1
