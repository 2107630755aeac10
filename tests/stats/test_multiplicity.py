"""Adjusted p-values are the published ones, in the order they came."""

from __future__ import annotations

import math
import random

import pytest
from statsmodels.stats.multitest import multipletests

from steelyard.stats.multiplicity import boundary_levels, holm

WORKED = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]


def test_holm_gives_the_worked_values() -> None:
    expected = [0.010, 0.072, 0.312, 0.312, 0.312, 0.312, 0.312, 0.615, 0.615, 0.615]
    assert holm(WORKED) == pytest.approx(expected, rel=1e-14)


def test_it_agrees_with_statsmodels_in_any_order_and_with_ties() -> None:
    chance = random.Random(8)
    for size in (1, 2, 3, 5, 8, 13, 21, 39):
        p = [round(chance.random() ** 3, chance.choice([1, 2, 9])) for _ in range(size)]
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist(), rel=1e-13)


def test_equal_p_values_stay_equal() -> None:
    first, second, third, fourth = holm([0.02, 0.5, 0.02, 0.02])
    assert first == third == fourth < second


def test_one_p_value_needs_no_adjustment_and_none_gives_none() -> None:
    assert holm([0.03]) == [0.03]
    assert holm([]) == []


def test_adjusting_never_makes_a_p_value_smaller_or_more_than_one() -> None:
    p = [random.Random(3).random() for _ in range(50)] + [0.0, 1.0]
    assert all(before <= after <= 1 for before, after in zip(p, holm(p), strict=True))


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf])
def test_what_is_no_probability_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="p-value"):
        holm([0.5, value])


def test_a_look_that_knows_nothing_new_is_made_at_what_it_spends() -> None:
    alone = boundary_levels((1.0, 2.0), (0.01, 0.02))
    with_repeated = boundary_levels((1.0, 1.0, 2.0, 2.0 + 1e-12), (0.01, 0.005, 0.02, 0.003))
    assert with_repeated == (alone[0], 0.005, alone[1], 0.003)
