"""The interval of a median over cases covers, and so does that of an uplift."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from statistics import median

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from steelyard.stats import descriptive
from steelyard.stats.descriptive import PooledValues, median_interval, uplift_interval
from steelyard.stats.intervals import Interval, mean_interval
from support.studies import with_slow

Floats = NDArray[np.float64]
Drawn = Callable[[np.random.Generator, int, int], Floats]
"""Composites of so many cases, run so many times each."""
ENOUGH = 0.94


def composite(passed: NDArray[np.bool_], rate: Floats) -> Floats:
    return (passed + np.round(np.clip(rate, 0, 1), 2)) / 2


def easy(chance: np.random.Generator, cases: int, runs: int) -> Floats:
    passes = chance.random((cases, runs)) < chance.beta(9, 1, size=(cases, 1))
    return composite(passes, chance.beta(8, 1, size=(cases, 1)) / 2 + chance.beta(8, 1, size=(cases, runs)) / 2)


def divided(chance: np.random.Generator, cases: int, runs: int) -> Floats:
    """Cases that nearly always pass or nearly never do: the median lies in a gap."""
    rates = chance.beta(0.5, 0.5, size=(cases, 1))
    passes = chance.random((cases, runs)) < rates
    return composite(passes, 0.6 * rates + 0.4 * passes * chance.random((cases, runs)))


def alike(chance: np.random.Generator, cases: int, runs: int) -> Floats:
    return composite(chance.random((cases, runs)) < 0.8, chance.beta(5, 2, size=(cases, runs)))


def copied(chance: np.random.Generator, cases: int, runs: int) -> Floats:
    """All runs of a case are the same: more of them tell nothing."""
    once = composite(chance.random((cases, 1)) < 0.7, chance.random((cases, 1)))
    return np.repeat(once, runs, axis=1)


def coarse(chance: np.random.Generator, cases: int, runs: int) -> Floats:
    rates = chance.beta(3, 1, size=(cases, 1))
    noise = rates + 0.15 * chance.standard_normal((cases, runs))
    return composite(chance.random((cases, runs)) < rates, np.round(np.clip(noise, 0, 1) * 4) / 4)


def even(chance: np.random.Generator, cases: int, runs: int) -> Floats:
    return composite(chance.random((cases, runs)) < chance.beta(2, 2, size=(cases, 1)), chance.random((cases, runs)))


SUITES: dict[str, Drawn] = {each.__name__: each for each in (easy, divided, alike, copied, coarse, even)}


def coverage(suite: str, cases: int, runs: int, repeats: int, method: Callable[[Floats], Interval]) -> float:
    """How often the interval of a simulated tier holds the true median, or one of them where there are many."""
    draw = SUITES[suite]
    many = np.sort(draw(np.random.default_rng(1), 200_000, 2).ravel())
    lowest, highest = many[int(0.499 * len(many))], many[int(0.501 * len(many))]
    chance = np.random.default_rng([cases, runs, *suite.encode()])
    covered = 0
    for _ in range(repeats):
        low, high = method(draw(chance, cases, runs))
        covered += low <= highest + 1e-9 and high >= lowest - 1e-9
    return covered / repeats


def ours(values: Floats) -> Interval:
    found = median_interval(values.tolist())
    assert found is not None
    return found


def drawn_anew(values: Floats) -> Interval:
    """Percentiles of the median over cases drawn with replacement."""
    chance = np.random.default_rng(7)
    picked = chance.integers(len(values), size=(400, len(values)))
    medians = np.sort(np.median(values[picked].reshape(400, -1), axis=1))
    return Interval(medians[10], medians[389])


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize(("cases", "runs"), with_slow([(10, 3)], [(7, 10), (30, 2)]))
def test_the_interval_of_a_median_covers(suite: str, cases: int, runs: int) -> None:
    assert coverage(suite, cases, runs, 150, ours) >= ENOUGH - 0.03


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_the_interval_of_a_median_covers_in_the_whole_study(suite: str) -> None:
    found = {
        (cases, runs): coverage(suite, cases, runs, 1500, ours) for cases, runs in product((7, 10, 20, 50), (1, 3, 10))
    }
    assert min(found.values()) >= ENOUGH, found


def test_drawing_cases_anew_covers_less_in_small_suites() -> None:
    assert coverage("alike", 4, 10, 200, drawn_anew) < 0.87
    assert coverage("divided", 4, 10, 200, drawn_anew) < 0.87
    assert coverage("alike", 10, 10, 200, drawn_anew) < coverage("alike", 10, 10, 200, ours)


@pytest.mark.parametrize("cases", range(7, 60))
def test_with_one_run_per_case_it_is_the_interval_of_the_sign_test_or_one_value_wider(cases: int) -> None:
    values = [place / 100 for place in range(1, cases + 1)]
    found = median_interval([[value] for value in values])
    assert found is not None
    # the exact one: as many values from each end as a fair coin falls on one side with chance 2.5% at most
    exact = int(stats.binom.ppf(0.025, cases, 0.5))
    rank = values.index(found.low) + 1
    assert rank in (exact - 1, exact, exact + 1)
    assert values.index(found.high) + 1 == cases + 1 - rank
    assert 1 - 2 * stats.binom.cdf(rank - 1, cases, 0.5) >= 0.93


def plainly(cases: list[list[float]]) -> Interval:
    """The same by going outward from the median, one value after the other."""
    values = sorted({value for case in cases for value in case})
    middle = median(value for case in cases for value in case)
    flat = [(value, str(name)) for name, case in enumerate(cases) for value in case]

    def share(at: Callable[[float], bool]) -> Interval:
        found = mean_interval(
            [float(at(value)) for value, _ in flat], attempts=len(flat), groups=[name for _, name in flat]
        )
        assert found is not None
        return found

    low = high = None
    for value in [value for value in reversed(values) if value <= middle]:
        if share(lambda each, value=value: each <= value).high < 0.5:  # type: ignore[misc]  # bound at once
            break
        low = value
    for value in [value for value in values if value >= middle]:
        if share(lambda each, value=value: each < value).low > 0.5:  # type: ignore[misc]  # bound at once
            break
        high = value
    assert low is not None
    assert high is not None
    return Interval(low, high)


def test_the_ends_are_the_last_values_that_a_test_does_not_refuse() -> None:
    chance = np.random.default_rng(5)
    for _ in range(20):
        cases = [np.round(chance.random(int(chance.integers(1, 6))), 2).tolist() for _ in range(25)]
        assert median_interval(cases) == plainly(cases)


def test_copies_of_a_run_tell_nothing_new() -> None:
    values = [0.31, 0.99, 0.45, 0.62, 0.70, 0.12, 0.85, 0.91, 0.55, 0.08, 0.77, 0.66]
    assert median_interval([[value] * 10 for value in values]) == median_interval([[value] for value in values])


def test_a_case_counts_as_often_as_it_was_run() -> None:
    high, low = [0.9] * 30, [0.1]
    found = median_interval([high, high, high, high, high, high, high, high, low, low, low])
    assert found is not None
    assert found.low == 0.9


def test_neither_the_order_of_cases_nor_that_of_runs_matters() -> None:
    cases = [[0.2, 0.9, 0.4], [0.5, 0.6, 0.6], [0.7, 0.1, 0.95], [0.3, 0.3, 0.8]] * 3
    again = [list(reversed(case)) for case in reversed(cases)]
    assert median_interval(cases) == median_interval(again)


def test_a_few_cases_cannot_bound_a_median() -> None:
    assert median_interval([[0.8] * 50] * 6) == (0.0, 1.0)
    assert median_interval([[0.8] * 50] * 7) == (0.8, 0.8)


def test_below_two_cases_there_is_no_interval() -> None:
    assert median_interval([]) is None
    assert median_interval([[0.5, 0.6]]) is None
    assert median_interval([[0.5, 0.6], []]) is None


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_a_value_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"be in \[0, 1\]"):
        median_interval([[0.5], [value]])


def test_an_uplift_is_drawn_from_whole_cases_with_both_their_sides() -> None:
    before = [[0.2, 0.3], [0.5], [0.6, 0.7, 0.8], [0.4], [0.9, 0.9]]
    after = [[0.3], [0.7, 0.6], [0.6], [], [1.0, 0.9]]
    # one draw in five to the fifth is the fourth case alone, which the current side never ran
    assert uplift_interval(before, after, seed=3, replicates=20_000) is None
    after[3] = [0.5]
    uplifts = sorted(
        median(value for place in picked for value in after[place])
        / median(value for place in picked for value in before[place])
        - 1
        for picked in product(range(5), repeat=5)
    )
    found = uplift_interval(before, after, seed=3, replicates=20_000)
    assert found is not None
    assert found.low == pytest.approx(uplifts[int(0.025 * len(uplifts))], abs=0.02)
    assert found.high == pytest.approx(uplifts[int(0.975 * len(uplifts))], abs=0.02)


def test_the_runs_of_a_single_case_are_drawn_each_side_by_itself() -> None:
    found = uplift_interval([[0.5] * 5 + [0.6] * 5], [[0.75] * 20], seed=1)
    assert found is not None
    assert found == pytest.approx((0.75 / 0.6 - 1, 0.5))
    assert uplift_interval([[0.5] * 4], [[0.75] * 20], seed=1) is None


def test_a_baseline_that_may_be_zero_leaves_the_uplift_open() -> None:
    found = uplift_interval([[0.0], [0.0], [0.5], [0.5], [0.5]] * 2, [[0.9]] * 10, seed=1)
    assert found is not None
    assert found.high == math.inf
    assert found.low == pytest.approx(0.8)
    assert uplift_interval([[0.0]] * 8, [[0.0]] * 8, seed=1) is None


def test_fewer_than_five_cases_say_nothing_of_the_uplift_of_others() -> None:
    assert uplift_interval([[0.5]] * 4, [[0.6]] * 4, seed=1) is None
    assert uplift_interval([], [], seed=1) is None


def test_the_same_seed_gives_the_same_uplifts() -> None:
    chance = np.random.default_rng(2)
    sides = chance.random((2, 9, 4)).tolist()
    assert uplift_interval(*sides, seed=4) == uplift_interval(*sides, seed=4)
    assert uplift_interval(*sides, seed=4) != uplift_interval(*sides, seed=5)


def uplift_coverage(cases: int, runs: int, repeats: int) -> float:
    """How often the interval of the uplift covers where the current side passes more often."""

    def tier(chance: np.random.Generator, rates: Floats, runs: int) -> Floats:
        passes = chance.random((len(rates), runs)) < rates[:, None]
        return composite(passes, rates[:, None] / 2 + chance.beta(6, 2, size=(len(rates), runs)) / 2)

    def both(chance: np.random.Generator, cases: int, runs: int) -> tuple[Floats, Floats]:
        rates = chance.beta(6, 2, size=cases)
        return tier(chance, rates, runs), tier(chance, np.clip(rates + 0.15, 0, 1), runs)

    before, after = both(np.random.default_rng(1), 200_000, 2)
    truth = float(np.median(after) / np.median(before)) - 1
    chance = np.random.default_rng([cases, runs])
    covered = 0
    for seed in range(repeats):
        old, new = both(chance, cases, runs)
        found = uplift_interval(old.tolist(), new.tolist(), seed=seed, replicates=600)
        assert found is not None
        covered += found.low <= truth <= found.high
    return covered / repeats


def test_the_interval_of_an_uplift_covers_from_ten_cases() -> None:
    assert uplift_coverage(10, 10, 200) >= 0.90
    assert uplift_coverage(30, 5, 200) >= 0.90


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "runs", "least"), [(5, 10, 0.88), (10, 10, 0.93), (20, 5, 0.93), (50, 3, 0.93)])
def test_the_interval_of_an_uplift_covers_in_the_whole_study(cases: int, runs: int, least: float) -> None:
    assert uplift_coverage(cases, runs, 1500) >= least


def test_a_resampled_median_is_that_of_the_values_written_out() -> None:
    chance = np.random.default_rng(3)
    for sizes in ([0, 3, 1, 7], [400, 900, 300, 1, 0, 700], [2_000] * 3):
        units = [np.round(chance.random(size) + place / 9, 2).tolist() for place, size in enumerate(sizes)]
        weights = chance.multinomial(len(units), [1 / len(units)] * len(units), size=12)
        # draws of the first or last unit alone have medians far from all others
        weights[0], weights[1] = np.eye(len(units), dtype=int)[[1, -1]] * 3
        expected = [
            np.median(np.concatenate([np.repeat(unit, times) for unit, times in zip(units, row, strict=True)]))
            for row in weights
        ]
        assert PooledValues(units).medians(weights).tolist() == pytest.approx(expected, abs=1e-12)
    assert np.isnan(PooledValues([[], [0.5]]).medians(np.array([[2, 0]])))


def test_many_units_are_drawn_as_often_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(5)
    before, after = (
        [[value] for value in np.clip(chance.normal(middle, 0.1, 300), 0, 1).tolist()] for middle in (0.5, 0.6)
    )
    by_multinomial = uplift_interval(before, after, seed=1, replicates=4_000)
    monkeypatch.setattr(descriptive, "MAX_MULTINOMIAL_UNITS", 10)
    one_by_one = uplift_interval(before, after, seed=1, replicates=4_000)
    assert by_multinomial is not None
    assert one_by_one is not None
    assert one_by_one == pytest.approx(by_multinomial, abs=0.01)
    assert one_by_one != by_multinomial
