"""Attempts go where a mean over cases gains most by them, and a run that cannot be decided is known for it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from steelyard.stats.allocation import equal_attempts, expected_variance, neyman_allocation
from steelyard.stats.futility import FutureLook, chance_to_decide
from steelyard.stats.paired import PairedCaseCounts
from steelyard.stats.power import evidence, mean_drop_p, non_inferiority


@pytest.mark.parametrize("variances", [[0.25, 0.09, 0.01], [0.2, 0.2, 0.2], [0.0, 0.0, 0.1], [0.04, 0.25, 0.001]])
def test_no_other_division_has_a_smaller_variance(variances: list[float]) -> None:
    def left(counts: tuple[int, ...]) -> float:
        return sum(variance / count for variance, count in zip(variances, counts, strict=True))

    before = [2, 2, 2]
    for average in range(2, 9):
        found = neyman_allocation(variances, average, least=2, most=8)
        allowed = (counts for counts in product(range(2, 9), repeat=3) if sum(counts) == 3 * average)
        assert sum(found) == 3 * average
        assert left(tuple(found)) == pytest.approx(min(map(left, allowed)))
        assert all(now >= earlier for now, earlier in zip(found, before, strict=True))
        before = found


def test_a_division_is_worth_more_than_as_many_attempts_at_every_case() -> None:
    variances = [expected_variance(10, passes) for passes in (10, 5, 2, 0, 0, 0)]
    divided = neyman_allocation(variances, 5, least=2, most=20)
    assert equal_attempts(variances, [5] * 6) == pytest.approx(5)
    assert equal_attempts(variances, divided) > 5.5


@pytest.mark.parametrize("given", [(-1, 0), (3, 4)])
def test_passes_beyond_the_attempts_are_refused(given: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="between 0 and the attempts"):
        expected_variance(*given)


@pytest.mark.parametrize("bounds", [(0, 3, 5), (4, 3, 5), (2, 6, 5)])
def test_bounds_that_contradict_each_other_are_refused(bounds: tuple[int, int, int]) -> None:
    least, attempts, most = bounds
    with pytest.raises(ValueError, match="expected 1 <= least"):
        neyman_allocation([0.1], attempts, least=least, most=most)


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
