"""A test of whether one side is worse is exact, and holds the level that it promises."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable

from steelyard.stats.paired import (
    PairedCaseCounts,
    PairedCaseScores,
    difference_interval,
    fisher_worse,
    scores_worse,
    smallest_p_distribution,
    stratified_worse,
)

BASELINE = [10, 9, 10, 4, 0, 7]
CURRENT = [10, 7, 6, 5, 0, 5]
WORKED = [PairedCaseCounts(10, before, 10, after) for before, after in zip(BASELINE, CURRENT, strict=True)]
SUITES = ["u-shaped", "mature", "strong"]
MEANS = {"u-shaped": 0.5, "mature": 0.75, "strong": 0.9}


def abilities(suite: str, cases: int, chance: np.random.Generator) -> np.ndarray:
    """How likely one attempt at each case is to pass."""
    if suite == "u-shaped":
        return chance.beta(0.5, 0.5, cases)
    if suite == "strong":
        return chance.beta(9, 1, cases)
    kind = chance.random(cases)
    return np.where(kind < 0.6, 1.0, np.where(kind < 0.7, 0.0, chance.random(cases)))


def unchanged(suite: str, cases: int, attempts: int, chance: np.random.Generator) -> list[PairedCaseCounts]:
    """Two runs of a suite with nothing changed between them."""
    able = abilities(suite, cases, chance)
    sides = zip(chance.binomial(attempts, able), chance.binomial(attempts, able), strict=True)
    return [PairedCaseCounts(attempts, int(before), attempts, int(after)) for before, after in sides]


def minimum_p(cases: Sequence[PairedCaseCounts]) -> list[float]:
    """The p-value of each case, adjusted for looking at all of them."""
    smallest = smallest_p_distribution(cases)
    return [smallest.chance(fisher_worse(case)) for case in cases]


def small_data(seed: int, cases: int) -> list[PairedCaseCounts]:
    chance = random.Random(seed)
    drawn = []
    for _ in range(cases):
        before, after = chance.randint(0, 4), chance.randint(0, 4)
        drawn.append(PairedCaseCounts(before, chance.randint(0, before), after, chance.randint(0, after)))
    return drawn


def shares(case: PairedCaseCounts) -> list[tuple[PairedCaseCounts, Fraction]]:
    """Every way to share the passes of a case out between its sides, and how likely each is."""
    passes = case.baseline_passes + case.current_passes
    total = math.comb(case.baseline_attempts + case.current_attempts, passes)
    found = []
    for after in range(passes + 1):
        ways = math.comb(case.current_attempts, after) * math.comb(case.baseline_attempts, passes - after)
        if ways:
            found.append(
                (
                    PairedCaseCounts(case.baseline_attempts, passes - after, case.current_attempts, after),
                    Fraction(ways, total),
                )
            )
    return found


def outcomes(cases: Sequence[PairedCaseCounts]) -> Iterator[tuple[list[PairedCaseCounts], Fraction]]:
    """Everything that could have come out if no case changed, and how likely each is."""
    for combination in product(*map(shares, cases)):
        yield [case for case, _ in combination], math.prod((share for _, share in combination), start=Fraction(1))


def case_by_case(cases: Sequence[PairedCaseCounts]) -> float:
    """The stratified p-value, one plain convolution per case."""
    total, seen = np.ones(1), 0
    for case in cases:
        possible = shares(case)
        seen += case.current_passes - possible[0][0].current_passes
        total = np.convolve(total, [float(share) for _, share in possible])
    return math.fsum(total[: seen + 1])


@pytest.mark.parametrize(
    ("before", "after", "attempts", "value"),
    [
        (10, 3, 10, 0.001547987616),
        (10, 5, 10, 0.016253869969),
        (5, 0, 5, 0.003968253968),
        (10, 0, 10, 0.000005412544),
        (8, 6, 10, 0.314241486068),
    ],
)
def test_fisher_gives_the_worked_values(before: int, after: int, attempts: int, value: float) -> None:
    assert fisher_worse(PairedCaseCounts(attempts, before, attempts, after)) == pytest.approx(value, abs=5e-13)


def test_fisher_agrees_with_scipy_on_unequal_sides() -> None:
    for case in [
        PairedCaseCounts(30, 28, 5, 2),
        PairedCaseCounts(3, 1, 17, 2),
        PairedCaseCounts(100, 97, 40, 31),
        PairedCaseCounts(7, 7, 1, 0),
    ]:
        failures = (case.baseline_attempts - case.baseline_passes, case.current_attempts - case.current_passes)
        table = np.array([(case.baseline_passes, case.current_passes), failures])
        expected = stats.fisher_exact(table, alternative="greater").pvalue
        assert fisher_worse(case) == pytest.approx(expected, rel=1e-11)


def test_fisher_is_the_nearest_float_to_the_exact_fraction() -> None:
    for seed in range(200):
        (case,) = small_data(seed, 1)
        exact = sum((share for other, share in shares(case) if other.current_passes <= case.current_passes), Fraction())
        assert fisher_worse(case) == float(exact)
    assert fisher_worse(PairedCaseCounts(3, 3, 3, 0)) == 0.05


def test_a_case_that_got_better_is_not_worse() -> None:
    assert fisher_worse(PairedCaseCounts(5, 0, 5, 5)) == 1.0


@pytest.mark.parametrize(
    "case",
    [
        PairedCaseCounts(5, 6, 5, 1),
        PairedCaseCounts(5, 1, 5, 6),
        PairedCaseCounts(5, -1, 5, 1),
        PairedCaseCounts(5, 1, -1, 0),
    ],
)
def test_impossible_counts_are_refused(case: PairedCaseCounts) -> None:
    for refused in (lambda: fisher_worse(case), lambda: stratified_worse([case]), lambda: minimum_p([case])):
        with pytest.raises(ValueError, match="passes must be between 0 and the attempts"):
            refused()


def test_counts_that_come_from_numpy_are_as_good_as_ours() -> None:
    table: Any = np.array([[300, 280, 200, 150], [40, 30, 300, 100]])
    foreign, own = [PairedCaseCounts(*row) for row in table], [PairedCaseCounts(*row) for row in table.tolist()]
    assert list(map(fisher_worse, foreign)) == list(map(fisher_worse, own))
    assert stratified_worse(foreign) == stratified_worse(own)
    assert minimum_p(foreign) == minimum_p(own)


def test_the_stratified_test_gives_the_worked_values() -> None:
    assert stratified_worse(WORKED) == pytest.approx(0.071165060349354230935, abs=0, rel=1e-14)
    sides = zip([3, 2, 1, 0], [1, 1, 1, 0], strict=True)
    assert stratified_worse([PairedCaseCounts(3, before, 3, after) for before, after in sides]) == pytest.approx(
        0.18, rel=1e-14
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_stratified_test_counts_every_outcome(seed: int) -> None:
    cases = small_data(seed, 1 + seed % 5)
    seen = sum(case.current_passes for case in cases)
    exact = sum((s for other, s in outcomes(cases) if sum(case.current_passes for case in other) <= seen), Fraction())
    assert stratified_worse(cases) == pytest.approx(float(exact), abs=0, rel=1e-14)


def test_cases_that_cannot_change_hold_no_information() -> None:
    silent = [
        PairedCaseCounts(5, 5, 5, 5),
        PairedCaseCounts(5, 0, 5, 0),
        PairedCaseCounts(0, 0, 5, 3),
        PairedCaseCounts(5, 2, 0, 0),
    ]
    assert stratified_worse([]) == 1.0
    assert stratified_worse(silent) == 1.0
    assert stratified_worse([*WORKED, *silent]) == stratified_worse(WORKED)
    assert minimum_p(silent) == [1.0] * 4


def test_the_order_of_cases_does_not_change_a_digit() -> None:
    for cases in (WORKED, unchanged("u-shaped", 900, 10, np.random.default_rng(5))):
        mixed = random.Random(2).sample(cases, len(cases))
        assert stratified_worse(mixed) == stratified_worse(cases)
        assert sorted(minimum_p(mixed)) == sorted(minimum_p(cases))


@pytest.mark.parametrize(
    ("worse", "better"),
    [(5, 1), (1, 5), (0, 0), (3, 3), (0, 4), (12, 30), (40, 0), (501, 499), (480, 521), (2200, 1900)],
)
def test_with_one_attempt_the_stratified_test_is_mcnemar(worse: int, better: int) -> None:
    cases = (
        [PairedCaseCounts(1, 1, 1, 0)] * worse
        + [PairedCaseCounts(1, 0, 1, 1)] * better
        + [PairedCaseCounts(1, 1, 1, 1)] * 7
    )
    tosses = worse + better
    # each change goes either way with chance one half
    exact = Fraction(sum(math.comb(tosses, fewer) for fewer in range(better + 1)), 2**tosses)
    assert stratified_worse(cases) == pytest.approx(float(exact), abs=0, rel=1e-12)
    if tosses:
        theirs = stats.binomtest(worse, tosses, alternative="greater").pvalue
        assert stratified_worse(cases) == pytest.approx(theirs, abs=0, rel=1e-12)


@pytest.mark.parametrize(
    ("heads", "sides", "better"),
    [(3, 4, 3000), (3, 4, 2900), (3, 4, 2600), (3, 4, 2000), (1, 100, 40), (1, 100, 9), (1, 100, 1), (1, 100, 0)],
)
def test_a_large_suite_has_its_p_value_to_the_last_digits_however_small(heads: int, sides: int, better: int) -> None:
    # with one attempt on the current side a case is a coin with as many heads as passes
    changed = 4000
    cases = [PairedCaseCounts(sides - 1, heads, 1, 0)] * (changed - better) + [
        PairedCaseCounts(sides - 1, heads - 1, 1, 1)
    ] * better
    ways = total = (sides - heads) ** changed
    for fallen in range(better):
        ways = ways * (changed - fallen) * heads // ((fallen + 1) * (sides - heads))
        total += ways
    found = stratified_worse(cases)
    assert found > 1e-300
    assert found == pytest.approx(float(Fraction(total, sides**changed)), abs=0, rel=2e-12)


@pytest.mark.parametrize(("drop", "largest"), [(0.0, 1.0), (0.05, 1e-3), (0.3, 1e-50)])
def test_a_large_suite_agrees_with_plain_convolution(drop: float, largest: float) -> None:
    chance = np.random.default_rng(11)
    able = abilities("u-shaped", 700, chance)
    attempts = chance.integers(5, 15, 700)
    before, after = chance.binomial(attempts, able), chance.binomial(10, np.clip(able - drop, 0, 1))
    cases = [PairedCaseCounts(int(n), int(a), 10, int(b)) for n, a, b in zip(attempts, before, after, strict=True)]
    found = stratified_worse(cases)
    assert found <= largest
    assert found == pytest.approx(case_by_case(cases), abs=0, rel=1e-11)


def test_few_cases_with_very_many_attempts_agree_with_plain_convolution() -> None:
    cases = [
        *[PairedCaseCounts(1500, 700, 1500, 650)] * 3,
        PairedCaseCounts(1500, 1490, 1500, 1480),
        PairedCaseCounts(4000, 20, 1500, 3),
    ]
    assert stratified_worse(cases) == pytest.approx(case_by_case(cases), abs=0, rel=1e-11)


def test_a_large_suite_that_only_improved_is_not_worse() -> None:
    assert stratified_worse([PairedCaseCounts(5, 1, 5, 4)] * 5000) == 1.0
    assert stratified_worse([PairedCaseCounts(5, 0, 5, 5)] * 5000) == 1.0


def test_a_p_value_too_small_for_a_float_is_zero() -> None:
    assert stratified_worse([PairedCaseCounts(10, 10, 10, 0)] * 100) == 0.0
    assert stratified_worse([PairedCaseCounts(10, 10, 10, 0)] * 5000) == 0.0
    assert stratified_worse([PairedCaseCounts(10, 9, 10, 1)] * 5000) == 0.0


def test_the_stratified_test_is_near_its_normal_approximation() -> None:
    cases = unchanged("u-shaped", 400, 10, np.random.default_rng(4))
    tables = [
        np.array([[before, attempts - before], [after, attempts - after]]) for attempts, before, _, after in cases
    ]
    approximate = StratifiedTable(tables).test_null_odds(correction=True).pvalue
    exact = stratified_worse(cases)
    assert 2 * min(exact, 1 - exact) == pytest.approx(approximate, rel=0.15)


def test_the_smallest_p_of_the_worked_example_is_adjusted() -> None:
    adjusted = minimum_p(WORKED)
    assert min(adjusted) == adjusted[2] == pytest.approx(0.125468521647, abs=5e-13)
    assert adjusted[0] == adjusted[4] == 1.0
    assert [fisher_worse(case) for case in WORKED] == pytest.approx(
        [1, 0.2910216718, 0.0433436533, 0.8150750179, 1, 0.3249583234], abs=5e-11
    )


@pytest.mark.parametrize("seed", range(25))
def test_the_adjusted_p_is_how_often_chance_alone_does_as_badly_somewhere(seed: int) -> None:
    cases = small_data(seed, 1 + seed % 4)
    everything = [(min(map(fisher_worse, other)), share) for other, share in outcomes(cases)]
    for case, adjusted in zip(cases, minimum_p(cases), strict=True):
        exact = sum((share for smallest, share in everything if smallest <= fisher_worse(case)), Fraction())
        assert adjusted == pytest.approx(float(exact), abs=0, rel=1e-13)


def test_a_case_alone_needs_no_adjustment() -> None:
    case = PairedCaseCounts(10, 9, 10, 4)
    assert minimum_p([case]) == pytest.approx([fisher_worse(case)], rel=1e-14)


def test_a_tiny_adjusted_p_keeps_its_digits() -> None:
    case = PairedCaseCounts(100, 100, 100, 0)
    (adjusted, *_) = minimum_p([case] * 3)
    assert adjusted == pytest.approx(3 / math.comb(200, 100), abs=0, rel=1e-13)


def test_cases_that_cannot_alarm_cost_nothing() -> None:
    broken = PairedCaseCounts(5, 5, 5, 0)
    few = [broken, *[PairedCaseCounts(5, 5, 5, 4)] * 3]
    many = [broken, *[PairedCaseCounts(5, 5, 5, 4)] * 300]
    assert minimum_p(few)[0] == minimum_p(many)[0] == pytest.approx(fisher_worse(broken), rel=1e-14)


def test_the_worked_difference_has_its_interval_with_the_sign_of_current_minus_baseline() -> None:
    found = difference_interval([c / 10 for c in BASELINE], [c / 10 for c in CURRENT], attempts=10)
    assert found == pytest.approx((-0.222547141014, 0.047547141014), abs=5e-13)


def test_turning_the_sides_turns_the_sign_of_the_interval() -> None:
    before, after = [0.2, 0.5, 0.9, 1.0], [0.1, 0.5, 0.3, 0.9]
    forth, back = difference_interval(before, after, attempts=10), difference_interval(after, before, attempts=10)
    assert forth is not None
    assert back is not None
    assert forth == pytest.approx((-back.high, -back.low), rel=1e-14)


def test_below_two_cases_a_difference_has_no_interval() -> None:
    assert difference_interval([], [], attempts=5) is None
    assert difference_interval([0.5], [0.4], attempts=5) is None


def test_sides_that_agree_everywhere_still_leave_doubt() -> None:
    few = difference_interval([1.0] * 10, [1.0] * 10, attempts=1)
    many = difference_interval([1.0] * 10, [1.0] * 10, attempts=10)
    assert few is not None
    assert many is not None
    assert few.low < many.low < 0 < many.high < few.high


def test_a_difference_of_shares_stays_between_minus_one_and_one() -> None:
    found = difference_interval([1, 1], [0, 0], attempts=1)
    assert found is not None
    assert found.low == -1.0
    assert found.high < 1.0


def test_a_higher_level_makes_a_wider_difference() -> None:
    before, after = [0.2, 0.5, 0.9, 1.0], [0.1, 0.5, 0.3, 0.9]
    narrow = difference_interval(before, after, attempts=10, level=0.8)
    wide = difference_interval(before, after, attempts=10)
    assert narrow is not None
    assert wide is not None
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("before", "after", "attempts", "level", "message"),
    [
        ([0.5], [0.5, 0.6], 5, 0.95, "same cases"),
        ([0.5, 1.2], [0.5, 0.6], 5, 0.95, r"\[0, 1\]"),
        ([0.5, 0.5], [math.nan, 0.6], 5, 0.95, r"\[0, 1\]"),
        ([0.5, 0.5], [0.5, 0.6], 0, 0.95, "1 attempt"),
        ([0.5, 0.5], [0.5, 0.6], 5, 95, "level"),
    ],
)
def test_a_difference_of_nonsense_is_refused(
    before: list[float], after: list[float], attempts: float, level: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        difference_interval(before, after, attempts=attempts, level=level)


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize(("cases", "attempts"), [(40, 1), (60, 5), (30, 10)])
def test_with_nothing_changed_an_alarm_is_as_rare_as_promised(suite: str, cases: int, attempts: int) -> None:
    chance = np.random.default_rng(20250301)
    runs = 500
    overall = somewhere = 0
    for _ in range(runs):
        drawn = unchanged(suite, cases, attempts, chance)
        overall += stratified_worse(drawn) <= 0.05
        somewhere += min(minimum_p(drawn)) <= 0.05
    slack = 3 * math.sqrt(0.05 * 0.95 / runs)
    assert overall / runs <= 0.05 + slack
    assert somewhere / runs <= 0.05 + slack


def difference_coverage(suite: str, cases: int, attempts: int, loss: float, runs: int) -> float:
    """How often the interval holds the true difference, where every case loses this share of its chances."""
    chance = np.random.default_rng([cases, attempts, round(100 * loss), *suite.encode()])
    truth = -loss * MEANS[suite]
    covered = 0
    for _ in range(runs):
        able = abilities(suite, cases, chance)
        before = chance.binomial(attempts, able) / attempts
        after = chance.binomial(attempts, able * (1 - loss)) / attempts
        interval = difference_interval(before.tolist(), after.tolist(), attempts=attempts)
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    return covered / runs


@pytest.mark.parametrize("suite", SUITES)
def test_the_interval_of_a_difference_covers(suite: str) -> None:
    for cases, attempts, loss in product((10, 30, 100), (1, 5, 10), (0.0, 0.1)):
        found = difference_coverage(suite, cases, attempts, loss, 500)
        assert found >= 0.92, f"{cases} cases, {attempts} attempts, loss {loss}"


def test_the_interval_of_a_large_difference_in_a_small_suite_falls_short() -> None:
    # as docs/intervals.md tells
    for cases, told in ((5, 0.88), (10, 0.90), (20, 0.925)):
        lowest = min(difference_coverage(suite, cases, 10, 0.3, 1500) for suite in SUITES)
        assert lowest == pytest.approx(told, abs=0.025)


def test_what_naming_cases_can_spend_is_the_largest_chance_up_to_the_level() -> None:
    for seed in range(25):
        cases = small_data(seed, 1 + seed % 4)
        smallest = [(min(map(fisher_worse, other)), share) for other, share in outcomes(cases)]
        attainable = {
            float(sum((share for each, share in smallest if each <= p), Fraction())) for p, _ in smallest if p < 1
        }
        for level in (0.025, 0.1, 0.3, 0.7):
            expected = max((chance for chance in attainable if chance <= level), default=0.0)
            assert smallest_p_distribution(cases).spent(level) == pytest.approx(expected, rel=1e-12)


def test_with_one_attempt_naming_cases_can_spend_nothing() -> None:
    assert smallest_p_distribution([PairedCaseCounts(1, 1, 1, 0)] * 50).spent(0.025) == 0.0
    assert smallest_p_distribution([]).spent(0.025) == smallest_p_distribution([]).chance(0.5) == 0.0
    assert smallest_p_distribution([]).chance(1.0) == 1.0


def small_scores(seed: int, cases: int, *, steps: int = 20) -> list[PairedCaseScores]:
    chance = random.Random(seed)

    def side() -> tuple[float, ...]:
        return tuple(chance.randint(0, steps) / steps for _ in range(chance.randint(1, 3)))

    return [PairedCaseScores(side(), side()) for _ in range(cases)]


def shared_out(case: PairedCaseScores) -> list[Fraction]:
    """The sum of the current side for every way to share the scores of a case out between the sides."""
    pooled = [Fraction(score).limit_denominator(10**6) for score in case.baseline + case.current]
    return [sum(chosen, Fraction()) for chosen in combinations(pooled, len(case.current))]


def seen_in(case: PairedCaseScores) -> Fraction:
    return sum((Fraction(score).limit_denominator(10**6) for score in case.current), Fraction())


def share_as_low(case: PairedCaseScores) -> float:
    ways = shared_out(case)
    return sum(way <= seen_in(case) for way in ways) / len(ways)


@pytest.mark.parametrize("seed", range(25))
def test_the_permutation_test_counts_every_permutation(seed: int) -> None:
    cases = small_scores(seed, 1 + seed % 4)
    found = scores_worse(cases, seed=1)
    everything = [sum(combination, Fraction()) for combination in product(*map(shared_out, cases))]
    seen = sum(map(seen_in, cases), Fraction())
    assert found.exact
    assert found.overall == pytest.approx(sum(way <= seen for way in everything) / len(everything), rel=1e-11)
    assert found.cases == pytest.approx([share_as_low(case) for case in cases], rel=1e-11)


@pytest.mark.parametrize("seed", range(12))
def test_the_smallest_p_of_scores_is_how_often_chance_alone_does_as_badly_somewhere(seed: int) -> None:
    cases = small_scores(seed, 1 + seed % 3)
    found = scores_worse(cases, seed=1)
    # of each case all its p-values, one for each permutation
    p = [[sum(other <= way for other in ways) / len(ways) for way in ways] for ways in map(shared_out, cases)]
    smallest = [min(combination) for combination in product(*p)]
    for alone in found.cases:
        expected = sum(each <= alone + 1e-9 for each in smallest) / len(smallest)
        assert found.smallest.chance(alone) == pytest.approx(expected, rel=1e-10)


def test_scores_of_zero_and_one_are_passes_and_failures() -> None:
    chance = np.random.default_rng(3)
    cases = [*WORKED, PairedCaseCounts(30, 29, 5, 2), PairedCaseCounts(3, 1, 8, 2), *unchanged("strong", 60, 7, chance)]
    scores = [
        PairedCaseScores((1.0,) * c + (0.0,) * (n - c), (1.0,) * after + (0.0,) * (m - after))
        for n, c, m, after in cases
    ]
    found = scores_worse(scores, seed=1)
    assert found.exact
    assert found.overall == pytest.approx(stratified_worse(cases), rel=1e-11)
    assert found.cases == pytest.approx([fisher_worse(case) for case in cases], rel=1e-11)
    assert [found.smallest.chance(p) for p in found.cases] == pytest.approx(minimum_p(cases), rel=1e-9)
    for level in (0.001, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8):
        assert found.smallest.spent(level) == pytest.approx(smallest_p_distribution(cases).spent(level), rel=1e-9)


def test_permutations_that_are_drawn_agree_with_those_that_are_counted() -> None:
    chance = random.Random(5)
    rough = [
        PairedCaseScores(
            tuple(chance.randint(0, 20) / 20 for _ in range(6)), tuple(chance.randint(0, 19) / 20 for _ in range(6))
        )
        for _ in range(30)
    ]
    # one score with a fourth decimal moves nothing but the way that is taken
    fine = [rough[0]._replace(current=(*rough[0].current[:-1], rough[0].current[-1] + 0.0001)), *rough[1:]]
    counted, sampled = scores_worse(rough, seed=1), scores_worse(fine, seed=1)
    assert counted.exact
    assert not sampled.exact
    assert sampled.overall == pytest.approx(counted.overall, abs=0.02)
    assert sampled.overall == scores_worse(fine[::-1], seed=1).overall
    assert sampled.overall != scores_worse(fine, seed=2).overall


def test_a_p_value_from_drawn_permutations_is_never_zero() -> None:
    cases = [PairedCaseScores((1.0, 0.99991) * 5, (0.0, 0.00011) * 5)] * 20
    assert scores_worse(cases, seed=1, replicates=99).overall == 0.01


def test_sums_that_differ_by_rounding_alone_are_equal() -> None:
    cases = [PairedCaseScores((1 / 3, 1 - 2 / 3), (1 / 3, 1 / 3))] * 5
    assert scores_worse(cases, seed=1, replicates=99).overall == 1.0


def test_a_suite_with_too_many_steps_to_count_is_drawn() -> None:
    case = PairedCaseScores((1.0, 0.999) * 5, (0.0, 0.501) * 5)
    assert scores_worse([case] * 20, seed=1).exact
    assert not scores_worse([case] * 100, seed=1, replicates=9).exact


def test_a_case_whose_scores_are_all_alike_changes_no_p_value() -> None:
    alike = [
        PairedCaseScores((0.5,) * 3, (0.5,) * 4),
        PairedCaseScores((1.0,), (1.0,)),
        PairedCaseScores((0.3334,) * 2, (0.3334,) * 2),
    ]
    for cases in (small_scores(3, 5), small_scores(3, 5, steps=7)):
        before, after = scores_worse(cases, seed=1), scores_worse([*alike, *cases], seed=1)
        assert after.overall == before.overall
        assert after.cases == [1.0, 1.0, 1.0, *before.cases]
        assert after.smallest == before.smallest
    nothing = scores_worse(alike, seed=1)
    assert (nothing.overall, nothing.cases) == (1.0, [1.0] * 3)
    assert scores_worse([], seed=1).overall == 1.0


def test_a_large_suite_of_scores_is_counted_by_fourier_transform_without_loss() -> None:
    chance = random.Random(9)
    # passes and failures in disguise, so that plain counts are the truth
    cases = [PairedCaseCounts(10, chance.randint(5, 10), 10, chance.randint(4, 10)) for _ in range(60)]
    scores = [
        PairedCaseScores((0.637,) * c + (0.137,) * (n - c), (0.637,) * after + (0.137,) * (m - after))
        for n, c, m, after in cases
    ]
    # this one moves the sum by less than any other, and is above its middle in one permutation of six: it breaks ties
    scores.append(PairedCaseScores((0.001, 0.002), (0.002, 0.001)))
    found = scores_worse(scores, seed=1)
    as_low = stratified_worse(cases)
    as_high = stratified_worse([PairedCaseCounts(m, after, n, before) for n, before, m, after in cases])
    assert found.exact
    assert found.overall == pytest.approx(as_low - (as_low + as_high - 1) / 6, rel=1e-9)


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan, math.inf])
def test_a_score_outside_of_its_range_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        scores_worse([PairedCaseScores((0.5,), (score,))], seed=1)


def test_with_no_score_changed_an_alarm_is_as_rare_as_promised() -> None:
    chance = np.random.default_rng(77)
    overall = somewhere = 0
    for _ in range(300):
        centre = chance.beta(0.5, 0.5, 20)[:, None]
        scores = np.round(np.clip(centre + chance.normal(0, 0.2, (20, 10)), 0, 1) * 20) / 20
        cases = [PairedCaseScores(tuple(row[:5].tolist()), tuple(row[5:].tolist())) for row in scores]
        found = scores_worse(cases, seed=1)
        overall += found.overall <= 0.05
        somewhere += found.smallest.chance(min(found.cases)) <= 0.05
    slack = 3 * math.sqrt(0.05 * 0.95 * 300)
    assert overall <= 15 + slack
    assert somewhere <= 15 + slack


def test_cases_that_attain_the_same_p_value_spend_it_together() -> None:
    low = (0.1, 0.2, 0.3)
    smallest = scores_worse(
        [PairedCaseScores((0.9, 0.8, 0.7), low), PairedCaseScores((0.95, 0.8, 0.7), low)], seed=1
    ).smallest
    assert smallest.spent(0.06) == 0.0
    assert smallest.spent(0.1) == pytest.approx(1 - 0.95**2, rel=1e-12)
