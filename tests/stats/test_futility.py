"""A run that cannot be decided is known for it."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.stats.futility import FutureLook, chance_to_decide
from steelyard.stats.paired import PairedCaseCounts
from steelyard.stats.power import evidence, mean_drop_p, non_inferiority


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
