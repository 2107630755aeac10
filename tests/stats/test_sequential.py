"""What looks at growing evidence may spend, against published boundaries and against chance itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from steelyard.stats.multiplicity import FINAL_TEST_SHARE, boundary_levels, design, looks, spent_error_share


def test_boundaries_are_those_that_are_published() -> None:
    # error spending like O'Brien and Fleming's, five equal steps, one-sided 0.025: Jennison and Turnbull 2000, "Group
    # Sequential Methods", or any program for such designs
    spending = [2 * stats.norm.sf(stats.norm.isf(0.0125) / math.sqrt(time)) for time in (0.2, 0.4, 0.6, 0.8, 1.0)]
    levels = boundary_levels((1, 2, 3, 4, 5), tuple(np.diff([0, *spending]).tolist()))
    assert stats.norm.isf(levels) == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-3)


@pytest.mark.parametrize("baseline", [1, 5, 10, 30, 1000])
@pytest.mark.parametrize("most", [1, 2, 5, 6, 20, 60])
def test_no_design_spends_more_than_alpha(most: int, baseline: int) -> None:
    steps = design(most, baseline_attempts=baseline, alpha=0.05)
    assert [step.attempts for step in steps] == list(looks(most))
    assert sum(step.alarm for step in steps) == pytest.approx(0.05 * (1 - FINAL_TEST_SHARE))
    assert sum(step.cleared for step in steps) == pytest.approx(0.05)
    for step in steps:
        assert step.cleared - 1e-9 <= step.cleared_level <= 0.05 + 1e-9


@pytest.mark.parametrize("baseline", [1, 10, 30])
def test_levels_reject_first_as_often_as_they_may(baseline: int) -> None:
    chance = np.random.default_rng(baseline)
    steps = design(20, baseline_attempts=baseline)
    repeats = 400_000
    # the mean of the current side after each look, less that of the baseline
    before = chance.normal(0, 1 / math.sqrt(baseline), repeats)
    total, last, going = np.zeros(repeats), 0, np.ones(repeats, bool)
    for step in steps:
        total += chance.normal(0, math.sqrt(step.attempts - last), repeats)
        last = step.attempts
        z = (total / last - before) / math.sqrt(1 / baseline + 1 / last)
        rejected = going & (z > stats.norm.isf(step.cleared_level))
        error = math.sqrt(step.cleared * (1 - step.cleared) / repeats)
        assert rejected.mean() == pytest.approx(step.cleared, abs=4.5 * error)
        going &= ~rejected


def test_what_is_spent_grows_to_the_whole() -> None:
    for most in (1, 3, 5, 8, 20, 100):
        shares = [spent_error_share(attempts, most) for attempts in looks(most)]
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1)
        assert shares[0] > 0


def test_a_design_without_attempts_is_refused() -> None:
    with pytest.raises(ValueError, match="there must be an attempt"):
        looks(0)
