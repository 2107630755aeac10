"""An interval has the published values and knows what it cannot tell."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import statsmodels.api
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from steelyard.stats.intervals import Interval, binomial_tail_interval, mean_interval, standard_error, wilson
from steelyard.stats.paired import difference_interval
from steelyard.stats.passk import pass_at_k
from steelyard.stats.stratified import Stratum, StratumDifferences, stratified_difference_interval, stratified_interval

Method = Callable[[int, int], Interval | None]
COUNTS = [0, 0, 1, 2, 5, 8, 9, 10, 10, 10]
CLUSTERED = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]


def clopper_pearson(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    return binomial_tail_interval(successes, trials - successes, (1 - level) / 2)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (0, 10, 0.0, 0.2775327999),
        (1, 10, 0.0178762131, 0.4041500268),
        (5, 10, 0.2365930905, 0.7634069095),
        (8, 10, 0.4901624715, 0.9433178485),
        (10, 10, 0.7224672001, 1.0),
        (95, 100, 0.8882495308, 0.9784563208),
    ],
)
def test_wilson_gives_the_published_values(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-11)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (0, 10, 0.0, 0.3084971078),
        (1, 10, 0.0025285785, 0.4450161170),
        (5, 10, 0.1870860284, 0.8129139716),
        (8, 10, 0.4439045377, 0.9747892737),
        (10, 10, 0.6915028922, 1.0),
        (95, 100, 0.8871650889, 0.9835681208),
    ],
)
def test_clopper_pearson_gives_the_published_values(successes: int, trials: int, low: float, high: float) -> None:
    assert clopper_pearson(successes, trials) == pytest.approx((low, high), abs=5e-11)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_of_a_proportion_are_those_of_statsmodels_and_scipy(level: float) -> None:
    for trials in (1, 2, 7, 40, 1000, 10**6):
        for successes in {0, 1, trials // 3, trials - 1, trials}:
            score = proportion_confint(successes, trials, alpha=1 - level, method="wilson")
            exact = proportion_confint(successes, trials, alpha=1 - level, method="beta")
            theirs = stats.binomtest(successes, trials).proportion_ci(level, "exact")
            assert wilson(successes, trials, level=level) == pytest.approx(score, rel=1e-11, abs=1e-14)
            assert clopper_pearson(successes, trials, level=level) == pytest.approx(exact, rel=1e-11, abs=1e-14)
            assert clopper_pearson(successes, trials, level=level) == pytest.approx(tuple(theirs), abs=1e-10)


@pytest.mark.parametrize("method", [wilson, clopper_pearson])
def test_ends_are_exact_where_everything_failed_or_succeeded(method: Method) -> None:
    for trials in range(1, 200):
        none, every = method(0, trials), method(trials, trials)
        assert none is not None
        assert every is not None
        assert none.low == 0.0
        assert every.high == 1.0


def test_nothing_tried_has_no_interval() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5), (0, -1)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson(successes, trials)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_is_a_share(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        wilson(1, 2, level=level)
    with pytest.raises(ValueError, match="level"):
        mean_interval([0.1, 0.2], attempts=2, level=level)


def test_a_higher_level_is_wider() -> None:
    narrow, wide = mean_interval([0.2, 0.5, 0.9], attempts=30, level=0.8), mean_interval([0.2, 0.5, 0.9], attempts=30)
    assert narrow is not None
    assert wide is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_mean_of_the_worked_example_has_its_interval() -> None:
    values = [0.94] * 40 + [0.24] * 10  # mean 0.8, standard error 0.04
    assert mean_interval(values, attempts=500) == pytest.approx((0.708691904735, 0.868018273893), abs=1e-12)


@pytest.mark.parametrize(
    ("k", "low", "high"),
    [
        (1, 0.27039171479941, 0.80122646642336),
        (5, 0.40011569969502, 0.91433345509143),
        (10, 0.42701241497992, 0.95549549736138),
    ],
)
def test_pass_at_k_of_ten_cases_has_its_interval(k: int, low: float, high: float) -> None:
    values = [pass_at_k(10, count, k) or 0.0 for count in COUNTS]
    assert mean_interval(values, attempts=100) == pytest.approx((low, high), abs=1e-13)


@pytest.mark.parametrize(("k", "error"), [(1, 0.13844373104863), (5, 0.13149512081534), (10, 0.13333333333333)])
def test_pass_at_k_of_ten_cases_has_its_standard_error(k: int, error: float) -> None:
    assert standard_error([pass_at_k(10, count, k) or 0.0 for count in COUNTS]) == pytest.approx(error, abs=5e-14)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_below_two_cases_there_is_no_interval(values: list[float]) -> None:
    assert mean_interval(values, attempts=10) is None


def test_cases_that_all_agree_count_once_each() -> None:
    fewer, more = mean_interval([1.0] * 5, attempts=5), mean_interval([1.0] * 5, attempts=500)
    assert fewer == more
    assert fewer is not None
    assert fewer.high == 1.0
    assert 0.3 < fewer.low < 0.5


def test_many_cases_that_nearly_agree_tell_no_more_than_their_attempts() -> None:
    values = [0.5, 0.5001] * 50
    fewer, more = mean_interval(values, attempts=100), mean_interval(values, attempts=400)
    assert fewer is not None
    assert more is not None
    assert fewer.low < more.low < 0.5 < more.high < fewer.high


def test_one_case_that_differs_does_not_make_the_others_tell_more() -> None:
    agreed = mean_interval([1.0] * 100, attempts=2000)
    nearly = mean_interval([1.0] * 99 + [0.95], attempts=2000)
    assert agreed is not None
    assert nearly is not None
    assert nearly.low == pytest.approx(agreed.low, abs=0.004)


def test_an_interval_reaches_beyond_a_single_rare_case() -> None:
    # where one case in a hundred fails, every tenth suite of ten cases has such a one
    interval = mean_interval([1.0] * 9 + [0.0], attempts=10)
    assert interval is not None
    assert interval.high > 0.99


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3])
def test_equal_values_are_equal_whatever_rounding_does_to_their_mean(value: float) -> None:
    assert mean_interval([value] * 3, attempts=3) == mean_interval([value] * 3, attempts=300)


def test_values_a_rounding_error_apart_are_no_trouble() -> None:
    assert mean_interval([0.5, 0.5 + 2**-53], attempts=4) is not None
    assert mean_interval([1e-200, 2e-200], attempts=4) is not None


@pytest.mark.parametrize("values", [[0.5, 1.5], [-0.1, 0.5], [float("nan"), 0.5]])
def test_values_outside_the_unit_interval_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        mean_interval(values, attempts=5)


def test_values_cannot_rest_on_fewer_attempts_than_there_are_values() -> None:
    with pytest.raises(ValueError, match="cannot rest on"):
        mean_interval([0.5, 0.6, 0.7], attempts=2)


def test_the_order_of_cases_does_not_matter() -> None:
    values = [random.Random(7).random() for _ in range(50)]
    assert mean_interval(values, attempts=50) == mean_interval(values[::-1], attempts=50)


def test_counted_cases_have_the_interval_of_the_same_cases_in_a_list() -> None:
    chance = random.Random(11)
    for _ in range(200):
        values = [chance.random() ** 3 for _ in range(chance.randint(1, 11))]
        counts = [chance.choice([0, 1, 2, 30]) for _ in values]
        listed = [value for value, count in zip(values, counts, strict=True) for _ in range(count)]
        attempts = 10 * max(len(listed), 1)
        found, expected = (
            mean_interval(values, counts=counts, attempts=attempts),
            mean_interval(listed, attempts=attempts),
        )
        assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_a_million_counted_cases_have_their_interval() -> None:
    values, counts = [0.0, 0.5, 1.0], [250_000, 500_000, 250_000]
    assert mean_interval(values, counts=counts, attempts=10**7) == pytest.approx(
        (0.5 - 1.96 * 0.125**0.5 / 1000, 0.5 + 1.96 * 0.125**0.5 / 1000), abs=1e-7
    )


def test_counts_may_be_arrays() -> None:
    values, counts = np.array([0.0, 0.5, 1.0]), np.array([3, 4, 5])
    assert mean_interval(values.tolist(), counts=counts.tolist(), attempts=50) == mean_interval(
        values,  # type: ignore[arg-type]  # what works with arrays need not be typed for them
        counts=counts,  # type: ignore[arg-type]
        attempts=50,
    )


def test_standard_errors_have_the_published_values() -> None:
    assert standard_error(CLUSTERED) == pytest.approx(0.142133810904, abs=5e-13)
    assert standard_error(CLUSTERED, groups="aaabbbcccddd") == pytest.approx(0.136082763488, abs=5e-13)


def test_clustered_standard_errors_are_those_of_statsmodels() -> None:
    chance = np.random.default_rng(5)
    for clusters in (2, 3, 10, 40):
        groups = chance.integers(clusters, size=clusters * 5)
        groups[:clusters] = np.arange(clusters)
        values = chance.random(clusters)[groups] * chance.random(groups.size)
        model = statsmodels.api.OLS(values, np.ones(groups.size))
        # the mean is one parameter: their second factor (N - 1) / (N - 1) is 1
        theirs = model.fit(cov_type="cluster", cov_kwds={"groups": groups}).bse[0]
        assert standard_error(values.tolist(), groups=groups.tolist()) == pytest.approx(float(theirs), rel=1e-11)


def test_a_group_of_its_own_for_every_case_changes_nothing() -> None:
    values = [random.Random(8).random() for _ in range(30)]
    assert standard_error(values, groups=range(30)) == pytest.approx(standard_error(values), rel=1e-14)
    assert mean_interval(values, groups=range(30), attempts=90) == pytest.approx(
        mean_interval(values, attempts=90), rel=1e-13
    )


def test_cases_that_repeat_their_group_add_no_certainty() -> None:
    values = [0.1, 0.9, 0.4, 0.8, 0.6, 0.2]
    once = mean_interval(values, groups="abcdef", attempts=120)
    often = mean_interval(values * 20, groups="abcdef" * 20, attempts=120)
    assert once is not None
    assert often == pytest.approx(tuple(once), abs=1e-12)


def test_groups_whose_sums_agree_count_once_each() -> None:
    # in decimals the three sums agree, in floats they differ by a rounding error
    by_group = mean_interval([0.1, 0.3, 0.2, 0.2, 0.15, 0.25], groups="aabbcc", attempts=600)
    assert by_group == pytest.approx(mean_interval([0.2] * 3, attempts=3), abs=1e-12)


@pytest.mark.parametrize("groups", ["aaaa", []])
def test_below_two_groups_there_is_no_interval(groups: str) -> None:
    assert mean_interval([0.5] * len(groups), groups=groups, attempts=10) is None
    assert standard_error([0.5] * len(groups), groups=groups) is None


def test_below_two_cases_there_is_no_standard_error() -> None:
    assert standard_error([]) is None
    assert standard_error([0.5]) is None


def test_groups_and_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="either counted or grouped"):
        mean_interval([0.1, 0.2], counts=[1, 1], groups="ab", attempts=2)
    with pytest.raises(ValueError, match="2 values cannot have 3 counts"):
        mean_interval([0.1, 0.2], counts=[1, 1, 1], attempts=3)
    with pytest.raises(ValueError, match="2 values cannot have 1 groups"):
        mean_interval([0.1, 0.2], groups="a", attempts=3)
    with pytest.raises(ValueError, match="must not be negative"):
        mean_interval([0.1, 0.2], counts=[3, -1], attempts=3)
    with pytest.raises(ValueError, match="finite"):
        standard_error([0.1, float("inf")])


def proportion(successes: int, trials: int, weight: float = 1.0) -> Stratum:
    return Stratum(successes / trials, lambda level: wilson(successes, trials, level=level), weight)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10)])
def test_strata_that_are_alike_are_as_sure_as_all_their_trials_together(successes: int, trials: int) -> None:
    assert stratified_interval([proportion(successes, trials)] * 5) == pytest.approx(wilson(5 * successes, 5 * trials))


def test_one_stratum_keeps_its_interval() -> None:
    assert stratified_interval([proportion(8, 10, 3.0)]) == pytest.approx(wilson(8, 10))


def test_where_every_stratum_is_large_the_variances_add_up() -> None:
    strata = [proportion(60_000, 100_000, 1.0), proportion(45_000, 50_000, 3.0)]
    interval = stratified_interval(strata)
    assert interval is not None
    error = np.sqrt(0.6 * 0.4 / 100_000 + 9 * 0.9 * 0.1 / 50_000) / 4
    mean = (0.6 + 3 * 0.9) / 4
    assert interval == pytest.approx((mean - 1.96 * error, mean + 1.96 * error), abs=2e-5)


def test_a_stratum_without_an_interval_leaves_the_mean_without_one_unless_it_weighs_nothing() -> None:
    alone = Stratum(1.0, lambda level: mean_interval([1.0], attempts=1, level=level))
    assert stratified_interval([proportion(8, 10), alone]) is None
    assert stratified_interval([proportion(8, 10), alone._replace(weight=0.0)]) == pytest.approx(wilson(8, 10))
    assert stratified_interval([]) is None
    assert stratified_interval([alone._replace(weight=0.0)]) is None


@pytest.mark.parametrize("seed", range(20))
def test_an_interval_over_strata_holds_the_mean_and_stays_within_bounds(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.randint(2, 40) for _ in range(chance.randint(1, 6))]
    strata = [proportion(chance.randint(0, size), size, chance.choice([0.5, 1.0, 7.0])) for size in sizes]
    interval = stratified_interval(strata)
    assert interval is not None
    mean = sum(each.mean * each.weight for each in strata) / sum(each.weight for each in strata)
    assert 0 <= interval.low <= mean + 1e-12
    assert mean - 1e-12 <= interval.high <= 1
    assert stratified_interval(strata[::-1]) == pytest.approx(interval, rel=1e-14)


def test_one_stratum_of_differences_has_the_interval_it_has_alone() -> None:
    before, after = [1, 0.9, 1, 0.4, 0, 0.7], [1, 0.7, 0.6, 0.5, 0, 0.5]
    values = [new - old for old, new in zip(before, after, strict=True)]
    alone = difference_interval(before, after, attempts=10)
    assert stratified_difference_interval([StratumDifferences(values, 10)]) == pytest.approx(alone, rel=1e-12)


def test_where_nothing_changed_in_any_stratum_the_interval_still_has_a_width() -> None:
    interval = stratified_difference_interval([StratumDifferences([0.0] * 10, 1), StratumDifferences([0.0] * 20, 1)])
    assert interval is not None
    assert interval.low == -interval.high < -0.03


def test_differences_in_many_large_strata_have_students_interval() -> None:
    chance = np.random.default_rng(3)
    strata = [chance.choice([-1.0, 0.0, 1.0], p=[0.2, 0.7, 0.1], size=5000).tolist() for _ in range(3)]
    interval = stratified_difference_interval([StratumDifferences(values, 1) for values in strata])
    means = np.mean(strata, axis=1)
    error = np.sqrt(sum(np.var(values, ddof=1) / 5000 for values in strata)) / 3
    assert interval == pytest.approx((means.mean() - 1.96 * error, means.mean() + 1.96 * error), abs=1e-4)


def test_a_change_is_not_told_from_one_case_of_a_stratum_nor_from_no_stratum() -> None:
    assert stratified_difference_interval([StratumDifferences([0.0] * 5, 1), StratumDifferences([1.0], 1)]) is None
    assert stratified_difference_interval([]) is None
    with pytest.raises(ValueError, match="be in"):
        stratified_difference_interval([StratumDifferences([0.0, 1.5], 1)])
    with pytest.raises(ValueError, match="1 attempt or more"):
        stratified_difference_interval([StratumDifferences([0.0, 0.5], 0)])
