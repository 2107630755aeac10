"""The cost of a pass holds to published values, and its interval to the test that it inverts."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import optimize, stats

from steelyard.stats.cost import cost_interval, cost_of_pass

COSTS = [0.52, 0.48, 0.61, 0.55, 0.43, 0.70, 0.39, 0.58, 0.50, 0.66]
PASSES = [1, 0, 1, 1, 1, 0, 1, 1, 0, 1]


def refuted(ratio: float, costs: list[float], passes: list[int], level: float) -> bool:
    """Whether a t test finds that the costs are not this many times the passes."""
    surplus = np.array(costs) - ratio * np.array(passes)
    if np.ptp(surplus) < 1e-15:
        return bool(abs(surplus[0]) > 1e-12)
    return bool(stats.ttest_1samp(surplus, 0).pvalue < 1 - level)


def test_published_costs_of_a_pass_hold() -> None:
    assert cost_of_pass([0.5, 0.4, 0.6, 0.5], [1, 0, 1, 1]) == pytest.approx(0.666666666667, abs=5e-13)
    assert cost_of_pass([0.5, 0.5, 0.6, 0.4], [1, 0, 1, 1]) == pytest.approx(0.66666666667, abs=5e-12)
    assert cost_of_pass(COSTS, PASSES) == pytest.approx(0.774285714286, abs=5e-13)


def test_passes_may_be_counted_by_case() -> None:
    assert cost_of_pass([3.0, 5.0], [0, 4]) == 2.0


def test_what_never_passes_costs_infinitely_much() -> None:
    assert cost_of_pass([0.5], [0]) == math.inf
    assert cost_of_pass([0.0], [0]) == math.inf


def test_nothing_tried_has_no_cost() -> None:
    assert cost_of_pass([], []) is None
    assert cost_interval([], []) is None


def test_what_is_free_costs_nothing() -> None:
    assert cost_of_pass([0.0, 0.0], [1, 0]) == 0.0
    assert cost_interval([0.0] * 9, [1] * 8 + [0]) == (0.0, 0.0)
    # however few the passes: no rate of passing makes what is free dear
    assert cost_interval([0.0, 0.0], [1, 2], 4) == (0.0, 0.0)


def test_the_published_interval_holds() -> None:
    assert cost_interval(COSTS, PASSES) == pytest.approx((0.4974934370, 1.5665946490), abs=5e-11)


def test_with_no_pass_there_is_only_a_lower_bound() -> None:
    interval = cost_interval([0.5] * 10, [0] * 10)
    assert interval is not None
    assert interval.low == pytest.approx(1.9315045910, abs=5e-11)
    assert interval.high == math.inf
    # the rule of three: no pass in 30 leaves a rate of 9.5%
    assert cost_interval([1.0] * 30, [0] * 30) == pytest.approx((1 / 0.0950338529, math.inf), rel=1e-9)
    # the same attempts, told by case
    assert cost_interval([2.5, 2.5], [0, 0], 10) == pytest.approx(interval)
    assert cost_interval([5.0], [0], 10) == pytest.approx(interval)


def test_a_single_unit_that_passed_has_no_interval() -> None:
    assert cost_interval([0.5], [1]) is None


@pytest.mark.parametrize(("passes", "attempts"), [([1] * 5, None), ([3] * 5, 15), ([1, 2, 3, 4, 5], 15)])
def test_where_every_attempt_passed_a_pass_may_still_cost_more(passes: list[int], attempts: int | None) -> None:
    costs = [0.25 * count for count in passes]
    # five units that all pass are seen at a rate of 0.075 ** (1 / 5) in 7.5% of suites
    assert cost_interval(costs, passes, attempts) == pytest.approx((0.25, 0.25 / 0.075 ** (1 / 5)))


def test_one_attempt_that_failed_does_not_make_a_pass_cheaper() -> None:
    every = cost_interval([1.0] * 100, [20] * 100, [20] * 100)
    nearly = cost_interval([1.0] * 100, [20] * 99 + [19], [20] * 100)
    assert every is not None
    assert nearly is not None
    assert nearly.high == pytest.approx(every.high, rel=0.01)


def test_the_only_unit_that_passed_does_not_tell_how_rare_such_units_are() -> None:
    told = cost_interval([1.0] * 20, [10] + [0] * 19, [10] * 20)
    untold = cost_interval([1.0] * 20, [10] + [0] * 19, 200)
    assert told is not None
    assert untold is not None
    assert told.low < 0.8 * untold.low
    assert told.high == untold.high == math.inf


def test_passes_that_happen_to_be_as_many_as_the_units_are_not_taken_for_all_attempts() -> None:
    costs, passes = [0.5, 0.6, 0.5, 0.5], [1, 2, 0, 1]
    assert cost_interval(costs, passes) == cost_interval(costs, passes, 12)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_it_holds_the_ratios_that_a_t_test_does_not_refute(level: float) -> None:
    chance = random.Random(int(level * 100))
    finite = infinite = whole = 0
    for _ in range(150):
        units, most = chance.randint(2, 30), chance.choice([1, 1, 5])
        rate, noise = chance.random(), chance.choice([0.1, 1.0, 3.0])
        passes = [sum(chance.random() < rate for _ in range(most)) for _ in range(units)]
        costs = [chance.lognormvariate(0, noise) for _ in range(units)]
        if not any(passes):
            continue
        # where nobody tells how many attempts each unit had, nothing is let out
        interval, estimate = cost_interval(costs, passes, units * most + 1, level=level), cost_of_pass(costs, passes)
        assert interval is not None
        assert estimate is not None
        low, high = interval
        assert low <= estimate * (1 + 1e-12)
        assert estimate <= high * (1 + 1e-12)
        inside = [low + share * (min(high, 1e3 * estimate) - low) for share in (0.001, 0.3, 0.999)]
        if low > 0:
            assert refuted(low * 0.999, costs, passes, level)
            assert not any(refuted(ratio, costs, passes, level) for ratio in inside)
        else:
            assert not refuted(0.0, costs, passes, level)
        if high < math.inf:
            finite += 1
            assert refuted(high * 1.001, costs, passes, level)
        elif not any(refuted(ratio, costs, passes, level) for ratio in (0.0, *inside)):
            whole += 1
        else:
            infinite += 1
            assert not refuted(1e9 * estimate, costs, passes, level)
    assert finite > 20
    assert infinite + whole > 5


def test_its_ends_are_where_the_t_test_turns() -> None:
    quantile = stats.t.ppf(0.975, len(COSTS) - 1)

    def surplus(ratio: float) -> float:
        units = np.array(COSTS) - ratio * np.array(PASSES)
        return float(abs(units.mean()) / units.std(ddof=1) * math.sqrt(len(units)) - quantile)

    estimate = cost_of_pass(COSTS, PASSES)
    assert estimate is not None
    ends = optimize.brentq(surplus, 0.1, estimate), optimize.brentq(surplus, estimate, 10)
    assert cost_interval(COSTS, PASSES) == pytest.approx(ends, rel=1e-10)


def test_where_passes_could_as_well_be_none_the_upper_end_is_infinite() -> None:
    interval = cost_interval(COSTS, [1] + [0] * 9)
    assert interval is not None
    assert 0 < interval.low < 5.42
    assert interval.high == math.inf


def test_where_costs_could_as_well_be_none_the_lower_end_is_zero() -> None:
    interval = cost_interval([9.0, 0.0, 0.0, 0.0, 0.1], [1, 1, 1, 0, 1])
    assert interval is not None
    assert interval.low == 0.0


def test_the_unit_of_money_does_not_matter() -> None:
    dollars = cost_interval(COSTS, PASSES)
    assert dollars is not None
    for scale in (1e-250, 1e-9, 1e9, 1e250):
        scaled = cost_interval([cost * scale for cost in COSTS], PASSES)
        assert scaled == pytest.approx((dollars.low * scale, dollars.high * scale), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("costs", "passes", "attempts", "reason"),
    [
        ([0.5], [1, 0], None, "every unit needs"),
        ([-0.5], [1], None, "at least 0"),
        ([math.nan], [1], None, "at least 0"),
        ([math.inf], [1], None, "at least 0"),
        ([0.5], [-1], None, "negative"),
        ([0.5, 0.5], [3, 4], 6, "cannot have 6 attempts"),
        ([0.5, 0.5], [0, 0], 1, "cannot have 1 attempts"),
        ([0.5, 0.5], [3, 4], [3, 3], "cannot have"),
        ([0.5, 0.5], [1, 0], [3, 0], "cannot have"),
        ([0.5, 0.5], [1, 0], [3], "cannot have"),
    ],
)
def test_impossible_units_are_refused(
    costs: list[float], passes: list[int], attempts: list[int] | int | None, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        cost_interval(costs, passes, attempts)
