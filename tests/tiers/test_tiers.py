"""The formulas of tiers give the values that their document works out."""

from __future__ import annotations

import math

import pytest

from steelyard.stats import cost
from steelyard.stats.descriptive import describe
from steelyard.tiers.formulas import (
    composite,
    cost_delta,
    cost_of_pass,
    cross_tier_variance,
    frontier,
    grade,
    pass_rate,
    uplift,
)
from steelyard.tiers.rubrics import default_rubric
from steelyard.tiers.rubrics import grade as grade_by_rubric

INFINITY = math.inf


def test_a_single_run_is_worked_out_as_in_example_1() -> None:
    rate = pass_rate(True)
    score = composite(rate, 0.85)
    assert score == pytest.approx(0.925)
    assert (rate, cost_of_pass(0.50, rate), grade(score)) == (1.0, 0.50, "B")


def test_ten_runs_are_aggregated_as_in_example_2() -> None:
    found = describe([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    assert (found.median, found.mean, found.mode, found.min, found.max, found.count) == (1.0, 0.8, 1.0, 0.0, 1.0, 10)
    assert found.std_dev == pytest.approx(0.4, rel=1e-15)


def test_tiers_are_compared_as_in_example_3() -> None:
    medians = [0.70, 0.80, 0.85, 0.90]
    uplifts = [uplift(median, medians[0]) for median in medians]
    assert uplifts == pytest.approx([0, 0.142857142857, 0.214285714286, 0.285714285714], abs=5e-13)
    assert cross_tier_variance(medians) == pytest.approx(0.00546875, rel=1e-14)
    assert uplift(0.90, 0.75) == pytest.approx(0.20)


def test_a_tier_below_the_baseline_has_a_negative_uplift() -> None:
    assert uplift(0.35, 0.70) == -0.5


@pytest.mark.parametrize(("tier", "t0"), [(0.4, 0.0), (0.0, 0.0), (0.4, None), (None, 0.4), (None, None)])
def test_without_a_baseline_above_zero_there_is_no_uplift(tier: float | None, t0: float | None) -> None:
    assert uplift(tier, t0) is None


def test_an_unknown_cost_is_not_a_cost_of_zero() -> None:
    assert cost_of_pass(None, 1.0) is None


def test_a_failed_run_makes_a_pass_infinitely_dear_for_itself_but_not_for_its_group() -> None:
    costs, outcomes = [0.5, 0.5, 0.6, 0.4], [True, False, True, True]
    alone = [cost_of_pass(spent, pass_rate(passed)) for spent, passed in zip(costs, outcomes, strict=True)]
    assert alone == [0.5, INFINITY, 0.6, 0.4]
    assert cost.cost_of_pass(costs, outcomes) == pytest.approx(2 / 3, rel=1e-15)
    costs = [0.5, 0.4, 0.6, 0.5]
    alone = [cost_of_pass(spent, pass_rate(passed)) for spent, passed in zip(costs, outcomes, strict=True)]
    assert alone == [0.5, INFINITY, 0.6, 0.5]


def test_a_groups_cost_of_pass_is_its_mean_cost_over_its_pass_rate() -> None:
    runs = [(0.52, True), (0.48, False), (0.61, True), (0.55, True), (0.43, True), (0.70, False), (0.39, True)]
    runs += [(0.58, True), (0.50, False), (0.66, True)]
    mean = math.fsum(spent for spent, _ in runs) / len(runs)
    group = cost.cost_of_pass([spent for spent, _ in runs], [passed for _, passed in runs])
    assert group == pytest.approx(0.774285714286, abs=5e-13)
    assert cost_of_pass(mean, 0.7) == pytest.approx(0.774285714286, abs=5e-13)


def test_the_frontier_is_the_least_known_cost_of_pass() -> None:
    assert frontier([0.7, 0.5, INFINITY, None]) == 0.5
    assert frontier([INFINITY, INFINITY]) == INFINITY
    assert frontier([None]) is None
    assert frontier([]) is None


@pytest.mark.parametrize(
    ("score", "letter"),
    [
        (1.0, "A"),
        (0.95, "A"),
        ((1.0 + 0.9) / 2, "A"),
        (0.7 + 0.15 + 0.1, "A"),
        (0.9499, "B"),
        (0.85, "B"),
        (0.8499, "C"),
        (0.75, "C"),
        (0.7499, "D"),
        (0.65, "D"),
        (0.6499, "F"),
        (0.0, "F"),
    ],
)
def test_a_grade_begins_at_its_threshold(score: float, letter: str) -> None:
    assert grade(score) == letter


def test_a_threshold_missed_by_rounding_alone_is_reached() -> None:
    assert grade(0.95 - 1e-12) == "A"
    assert grade(0.95 - 1e-8) == "B"


def test_no_score_has_no_grade() -> None:
    assert grade(None) is None
    assert grade(float("nan")) is None
    assert grade_by_rubric(default_rubric(), float("nan")) is None


def test_weights_of_a_composite_need_not_sum_to_one() -> None:
    assert composite(1.0, 0.5, pass_weight=3, impl_weight=1) == 0.875
    assert composite(1.0, 0.5, pass_weight=0, impl_weight=2) == 0.5


@pytest.mark.parametrize(("pass_weight", "impl_weight"), [(0, 0), (-1, 2), (2, -1), (math.nan, 1), (math.inf, 1)])
def test_weights_that_weigh_nothing_are_refused(pass_weight: float, impl_weight: float) -> None:
    with pytest.raises(ValueError, match="weights"):
        composite(1.0, 0.5, pass_weight=pass_weight, impl_weight=impl_weight)


def test_fewer_than_two_tiers_have_nothing_between_them() -> None:
    assert cross_tier_variance([0.5]) is None
    assert cross_tier_variance([]) is None
    assert cost_delta([0.5]) is None
    assert cost_delta([]) is None


def test_the_cost_delta_is_between_the_dearest_and_the_cheapest() -> None:
    assert cost_delta([0.5, 2.0, 0.25, 1.0]) == 1.75
    with pytest.raises(ValueError, match="finite"):
        cost_delta([INFINITY, INFINITY])
