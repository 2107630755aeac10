"""What a comparison can see is told as it is: by published values, by brute force and by trying."""

from __future__ import annotations

import math
import random
from functools import cache
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from steelyard.comparison.gate import REGRESSED
from steelyard.stats.paired import PairedCaseCounts, PairedCaseScores, stratified_worse
from steelyard.stats.power import (
    AdditionalAttempts,
    BaselineRate,
    CaseEvidence,
    additional_attempts,
    alarm_chance,
    all_clear_chance,
    baseline_rate,
    evidence,
    expected_flags,
    minimum_detectable_change,
    non_inferiority,
    rates_after_drop,
    typical_passes,
    unlucky_alarms,
)
from support.gate_simulation import SUITES, VERDICTS, Drawn, Floats, rates, verdicts

BASELINE = [10, 9, 10, 4, 0, 7]
CURRENT = [10, 7, 6, 5, 0, 5]
WORKED = [PairedCaseCounts(10, before, 10, after) for before, after in zip(BASELINE, CURRENT, strict=True)]


def scored(case: PairedCaseCounts) -> PairedCaseScores:
    """Passes and failures as scores."""
    before, passes_before, after, passes_after = case
    return PairedCaseScores(
        (1.0,) * passes_before + (0.0,) * (before - passes_before),
        (1.0,) * passes_after + (0.0,) * (after - passes_after),
    )


def test_non_inferiority_gives_the_worked_values() -> None:
    found = non_inferiority(list(map(evidence, WORKED)), margin=0.05)
    assert found == pytest.approx((0.116666666667, 0.069597337360, 0.232120382090, 0.832336491020), abs=5e-13)


def test_scores_of_zero_and_one_leave_the_doubt_of_passes_and_failures() -> None:
    for case in [*WORKED, PairedCaseCounts(30, 28, 5, 3)]:
        assert evidence(scored(case)) == pytest.approx(evidence(case), rel=1e-15)
        rate = (case.baseline_passes + case.current_passes + 0.5) / (case.baseline_attempts + case.current_attempts + 1)
        assert evidence(case).variance == pytest.approx(rate * (1 - rate), rel=1e-13)


def test_rare_failures_of_a_settled_suite_are_held_to_the_score_test_of_a_poisson_rate() -> None:
    settled = evidence(PairedCaseCounts(30, 30, 5, 5))
    for failures in range(8):
        cases = [evidence(PairedCaseCounts(30, 30, 5, 4))] * failures + [settled] * (50 - failures)
        found = non_inferiority(cases, margin=0.05)
        assert found is not None
        # counted in fifths of a case: x failures where 12.5 are the margin
        sure = NormalDist().inv_cdf(0.95)
        bound = failures + sure**2 / 2 + sure * math.sqrt(failures + sure**2 / 4)
        assert found.bound == pytest.approx(bound / 250)
        assert found.p == pytest.approx(NormalDist().cdf((failures - 12.5) / math.sqrt(12.5)))


def test_the_doubt_about_a_drop_is_unbiased_though_all_cases_changed() -> None:
    before, after, rates = 4, 3, (0.7, 0.4)
    chances = [
        [math.comb(size, k) * rate**k * (1 - rate) ** (size - k) for k in range(size + 1)]
        for size, rate in zip((before, after), rates, strict=True)
    ]
    spread = skew = 0.0
    for (a, p), (b, q) in product(enumerate(chances[0]), enumerate(chances[1])):
        found = evidence(PairedCaseCounts(before, a, after, b))
        spread += p * q * found.spread
        skew += p * q * found.skew
    assert spread == pytest.approx(0.7 * 0.3 / 4 + 0.4 * 0.6 / 3)
    assert skew == pytest.approx(0.7 * 0.3 * (1 - 1.4) / 16 - 0.4 * 0.6 * (1 - 0.8) / 9)


def test_nothing_tried_is_no_evidence() -> None:
    assert non_inferiority([], margin=0.05) is None
    assert additional_attempts([], margin=0.05) is None
    for case in (PairedCaseCounts(0, 0, 5, 3), PairedCaseCounts(5, 3, 0, 0), PairedCaseScores((), (0.5,))):
        with pytest.raises(ValueError, match="both sides need an attempt"):
            evidence(case)
    with pytest.raises(ValueError, match="passes must be between 0"):
        evidence(PairedCaseCounts(5, 6, 5, 1))


@cache
def known(case: PairedCaseCounts) -> CaseEvidence:
    return evidence(case)


@pytest.mark.parametrize("suite", ["always pass", "nearly always pass", "pass or fail", "mixed"])
@pytest.mark.parametrize(("before", "after"), [(30, 1), (30, 5), (10, 5), (5, 5), (5, 30)])
def test_a_true_drop_of_the_margin_is_seldom_within_it(suite: str, before: int, after: int) -> None:
    chance = np.random.default_rng([before, after, *suite.encode()])
    cases, repeats, margin = 60, 400, 0.05
    rates = {
        "always pass": np.ones(cases),
        "nearly always pass": np.full(cases, 0.97),
        "pass or fail": np.repeat([1.0, 0.0], cases // 2),
        "mixed": np.linspace(0.02, 1, cases),
    }[suite]
    able = rates > 0
    lower = np.maximum(rates - margin * cases / able.sum(), 0.0)
    assert (rates - lower).mean() == pytest.approx(margin, rel=0.05)
    passed = 0
    for _ in range(repeats):
        sides = zip(chance.binomial(before, rates).tolist(), chance.binomial(after, lower).tolist(), strict=True)
        found = non_inferiority([known(PairedCaseCounts(before, a, after, b)) for a, b in sides], margin=margin)
        assert found is not None
        passed += found.p <= 0.05
    assert passed <= stats.binom.isf(0.001, repeats, 0.05)


def test_with_a_rich_baseline_the_plain_error_would_not_hold() -> None:
    # why the bound adds what a drop adds to the doubt: without it the promise of 5% is broken
    chance = np.random.default_rng(4)
    passed = 0
    for _ in range(400):
        after = chance.binomial(5, 0.95, 60).tolist()
        found = non_inferiority([known(PairedCaseCounts(30, 30, 5, passes)) for passes in after], margin=0.05)
        assert found is not None
        # the usual one-sided normal bound: Wellek 2010, "Testing Statistical Hypotheses of Equivalence and Noninferiority"
        passed += stats.norm.sf((0.05 - found.drop) / found.error) <= 0.05
    assert passed > stats.binom.isf(0.001, 400, 0.05)


def test_the_detectable_change_is_the_published_one() -> None:
    assert minimum_detectable_change(0.3 / math.sqrt(100)) == pytest.approx(0.0745942458, abs=5e-11)
    assert minimum_detectable_change(0.3 / math.sqrt(100), alpha=0.025) == pytest.approx(0.0840475565, abs=5e-11)


@pytest.mark.parametrize(
    ("variance", "drop", "attempts"),
    [(1 / 8, 0.05, 618), (0.05, 0.05, 247), (9 / 110, 0.05, 405), (1 / 8, 0.02, 3864), (0.05, 0.02, 1546)],
)
def test_the_attempts_that_see_a_drop_are_the_published_ones(variance: float, drop: float, attempts: int) -> None:
    # published are the nearest whole numbers
    assert (
        minimum_detectable_change(math.sqrt(variance * 2 / (attempts + 1)))
        < drop
        < minimum_detectable_change(math.sqrt(variance * 2 / (attempts - 1)))
    )


def test_a_drop_is_taken_evenly_from_all_cases_and_leaves_none_below_nothing() -> None:
    chance = random.Random(3)
    for _ in range(200):
        cases = [BaselineRate(10, chance.random() ** 3) for _ in range(chance.randint(1, 30))]
        mean = sum(case.rate for case in cases) / len(cases)
        drop = chance.random() * mean
        after = rates_after_drop(cases, drop)
        assert sum(after) / len(after) == pytest.approx(mean - drop, abs=1e-12)
        falls = [case.rate - rate for case, rate in zip(cases, after, strict=True)]
        assert all(rate == 0 or fall == pytest.approx(max(falls)) for rate, fall in zip(after, falls, strict=True))
    assert rates_after_drop([BaselineRate(10, 0.2), BaselineRate(10, 0.4)], 0.9) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("cases", "drop"), [([], 0.05), ([BaselineRate(3, 0.5)], 0.0), ([BaselineRate(3, 0.5)], math.nan)]
)
def test_a_drop_of_nothing_is_refused(cases: list[BaselineRate], drop: float) -> None:
    with pytest.raises(ValueError, match="a drop of cases must be above 0"):
        rates_after_drop(cases, drop)


@pytest.mark.parametrize(("attempts", "passes"), [(0, 0), (3, 4), (3, -1)])
def test_a_case_without_attempts_has_no_prospect(attempts: int, passes: int) -> None:
    with pytest.raises(ValueError, match="passes must be between 0 and the attempts"):
        baseline_rate(attempts, passes)


@pytest.mark.parametrize("attempts", [1, 3, 10, 1000])
def test_typical_passes_are_quantiles_that_lie_evenly(attempts: int) -> None:
    rates = [0.0, 1e-9, 0.999999, *np.random.default_rng(attempts).random(97).tolist()]
    found = typical_passes(rates, attempts)
    places = {case: place for place, case in enumerate(sorted(range(len(rates)), key=lambda case: rates[case]))}
    for case, rate in enumerate(rates):
        quantile = (places[case] + 0.5) * (math.sqrt(5) - 1) / 2 % 1
        assert found[case] == (stats.binom.ppf(quantile, attempts, rate) if rate else 0)
    assert sum(found) / sum(rates) == pytest.approx(attempts, rel=0.1)
    assert typical_passes([1.0], attempts) == [attempts]


DESIGNS = {
    "even": [BaselineRate(10, 0.5)] * 60,
    "always pass": [BaselineRate(30, 0.995)] * 60,
    "pass or fail": [BaselineRate(10, 0.98), BaselineRate(10, 0.02)] * 30,
    "mixed": [BaselineRate(20, (place + 0.5) / 60) for place in range(60)],
    "of unequal attempts": [BaselineRate(3, 0.7), BaselineRate(10, 0.9), BaselineRate(50, 0.5)] * 20,
}


@pytest.mark.parametrize("attempts", [1, 5])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_drop_is_seen_as_often_as_foretold(design: str, attempts: int) -> None:
    chance = np.random.default_rng([attempts, *design.encode()])
    cases, alpha, repeats = DESIGNS[design], 0.03, 500
    sizes = [case.attempts for case in cases]
    # a drop that the formula takes to be seen about three times out of four
    drop = next(step / 400 for step in range(1, 200) if alarm_chance(cases, step / 400, attempts, alpha=alpha) > 0.75)
    before = chance.binomial(sizes, [case.rate for case in cases], (repeats, len(cases)))
    after = chance.binomial(attempts, rates_after_drop(cases, drop), (repeats, len(cases)))
    seen = 0
    for olds, news in zip(before.tolist(), after.tolist(), strict=True):
        sides = zip(sizes, olds, news, strict=True)
        seen += stratified_worse(PairedCaseCounts(size, old, attempts, new) for size, old, new in sides) <= alpha
    assert seen / repeats == pytest.approx(alarm_chance(cases, drop, attempts, alpha=alpha), abs=0.08)


@pytest.mark.parametrize("attempts", [1, 5])
@pytest.mark.parametrize("design", DESIGNS)
def test_an_unchanged_suite_is_cleared_as_often_as_its_baseline_lets_one_expect(design: str, attempts: int) -> None:
    chance = np.random.default_rng([attempts, *design.encode()])
    cases, alpha, repeats = DESIGNS[design], 0.04, 400
    sizes = [case.attempts for case in cases]
    margin = next(
        step / 400 for step in range(1, 200) if all_clear_chance(cases, step / 400, attempts, alpha=alpha) > 0.85
    )
    before = chance.binomial(sizes, [case.rate for case in cases], (repeats, len(cases)))
    after = chance.binomial(attempts, [case.rate for case in cases], (repeats, len(cases)))
    cleared, foretold = 0, []
    for olds, news in zip(before.tolist(), after.tolist(), strict=True):
        prospects = [baseline_rate(size, old) for size, old in zip(sizes, olds, strict=True)]
        foretold.append(all_clear_chance(prospects, margin, attempts, alpha=alpha))
        sides = zip(sizes, olds, news, strict=True)
        found = non_inferiority(
            [known(PairedCaseCounts(size, old, attempts, new)) for size, old, new in sides], margin=margin, alpha=alpha
        )
        assert found is not None
        cleared += found.p <= alpha
    # what nearly always happens is taken to vary more than it does, so more may be cleared
    assert -0.06 < cleared / repeats - sum(foretold) / repeats < 0.3


def test_without_a_level_nothing_is_seen() -> None:
    assert alarm_chance([baseline_rate(10, 5)] * 50, 0.4, 20, alpha=0.0) == 0.0


@pytest.mark.parametrize(("before", "after"), [(1, 5), (3, 5), (10, 5), (30, 5), (9, 9)])
def test_unlucky_alarms_are_a_tail_of_two_normal_numbers(before: int, after: int) -> None:
    # luck of the baseline, and what the gate sees: the former makes up some of the noise of the latter
    share = after / (before + after)
    luck, seen = stats.norm.isf(0.1), stats.norm.isf(0.05)
    both = stats.multivariate_normal(cov=[[1, math.sqrt(share)], [math.sqrt(share), 1]])
    expected = both.cdf([-luck, -seen]) / 0.1
    assert unlucky_alarms([(before, after)] * 7, alpha=0.05) == pytest.approx(expected, rel=2e-3)


def test_a_thinner_baseline_flags_more_innocent_changes_and_a_large_one_no_more_than_alpha() -> None:
    found = [unlucky_alarms([(before, 5)], alpha=0.05) for before in (1, 2, 3, 5, 10, 30, 100, 10**8)]
    assert found == sorted(found, key=lambda share: -(share or 0))
    assert found[-1] == pytest.approx(0.05, abs=1e-3)
    few, all_thin = (unlucky_alarms(sizes, alpha=0.05) for sizes in ([(3, 5)] + [(30, 5)] * 39, [(3, 5)] * 40))
    assert few is not None
    assert all_thin is not None
    assert few < all_thin / 2


def test_no_case_flags_nothing() -> None:
    assert unlucky_alarms([], alpha=0.05) is None
    with pytest.raises(ValueError, match="both sides need an attempt at every case"):
        unlucky_alarms([(3, 5), (0, 5)], alpha=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(3, 5), (5, 5), (9, 9)])
@pytest.mark.parametrize("suite", SUITES)
def test_the_unluckiest_baselines_flag_about_as_much_as_foretold_and_not_more(
    suite: str, before: int, after: int
) -> None:
    flagged = np.sort(flags(suite, 100, before, after))[::-1]
    foretold = unlucky_alarms([(before, after)], alpha=0.05)
    assert foretold is not None
    worst = flagged[: len(flagged) // 10].mean()
    # half of what is foretold, because exact tests of counts do not spend their whole level
    assert 0.5 * foretold < worst < 1.1 * foretold
    assert flagged.mean() < 0.05


def flags(suite: str, cases: int, before: int, after: int) -> Floats:
    """For each of many baselines the share of innocent changes that the gate flags."""
    chance = np.random.default_rng([cases, before, after, *suite.encode()])
    changes = 300
    found = []
    for row in rates(suite, cases, 200, chance):
        baseline = np.tile(chance.binomial(before, row), (changes, 1))
        current = chance.binomial(after, row, (changes, cases))
        found.append((verdicts(Drawn((before, after), baseline, current)) == VERDICTS.index(REGRESSED)).mean())
    return np.array(found)


@pytest.mark.parametrize("share", [0.0, 1.0, 5.0])
def test_an_error_rate_lies_between_zero_and_one(share: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        minimum_detectable_change(0.1, alpha=share)
    with pytest.raises(ValueError, match="power"):
        additional_attempts([evidence(PairedCaseCounts(5, 3, 5, 3))], margin=0.05, power=share)


def test_more_attempts_are_the_fewest_whose_expected_outcome_is_within_the_margin() -> None:
    # with an even chance of enough, the expected outcome itself decides
    cases = [PairedCaseCounts(20, 16, 4, 3), PairedCaseCounts(20, 10, 4, 2), PairedCaseCounts(20, 20, 4, 4)] * 20
    found = additional_attempts(list(map(evidence, cases)), margin=0.05, power=0.5)
    assert found is not None
    assert found.baseline == 0

    def bound(more: int) -> float:
        then = []
        for before, passes_before, after, passes_after in cases:
            rate = (passes_before + passes_after) / (before + after)
            expected = (passes_after + more * rate) / (after + more)
            variance = rate * (1 - rate) * (before + after) / (before + after - 1)
            spread = variance * (1 / before + 1 / (after + more))
            skew = variance * (2 * rate - 1) * (1 / (after + more) ** 2 - 1 / before**2)
            then.append(CaseEvidence(before, passes_before / before, after + more, expected, rate, spread, skew))
        foretold = non_inferiority(then, margin=0.05)
        assert foretold is not None
        return foretold.bound

    assert bound(found.current) < 0.05 <= bound(found.current - 1)


def test_to_be_surer_takes_more_attempts() -> None:
    cases = [evidence(PairedCaseCounts(5, 4, 5, 4)), evidence(PairedCaseCounts(5, 2, 5, 2))] * 15
    even, likely = (additional_attempts(cases, margin=0.05, power=power) for power in (0.5, 0.9))
    assert even is not None
    assert likely is not None
    assert even.baseline + even.current < likely.baseline + likely.current


def test_a_thin_baseline_needs_attempts_too() -> None:
    found = additional_attempts([evidence(PairedCaseCounts(1, 1, 30, 20))] * 30, margin=0.05)
    assert found is not None
    assert found.baseline > 0


def test_what_no_number_of_attempts_would_settle_gets_no_advice() -> None:
    assert additional_attempts([evidence(PairedCaseCounts(5, 3, 5, 3))], margin=0.001) is None


@pytest.mark.parametrize(("attempts", "rate"), [((5, 5), 0.7), ((30, 3), 0.8), ((10, 3), 0.9)])
def test_the_advised_attempts_settle_an_unchanged_suite_as_often_as_they_say(
    attempts: tuple[int, int], rate: float
) -> None:
    chance = np.random.default_rng([*attempts, round(100 * rate)])
    before, after = attempts
    rates = np.clip(np.linspace(rate - 0.3, rate + 0.3, 40), 0, 1)
    asked = settled = 0
    for _ in range(300):
        passes = chance.binomial(before, rates), chance.binomial(after, rates)
        cases = [
            known(PairedCaseCounts(before, a, after, b))
            for a, b in zip(*(each.tolist() for each in passes), strict=True)
        ]
        found = non_inferiority(cases, margin=0.05)
        more = additional_attempts(cases, margin=0.05)
        assert found is not None
        if found.p <= 0.05 or more is None:
            continue
        asked += 1
        then = passes[0] + chance.binomial(more.baseline, rates), passes[1] + chance.binomial(more.current, rates)
        sides = zip(*(each.tolist() for each in then), strict=True)
        foretold = non_inferiority(
            [known(PairedCaseCounts(before + more.baseline, a, after + more.current, b)) for a, b in sides], margin=0.05
        )
        assert foretold is not None
        settled += foretold.p <= 0.05
    assert asked > 60
    assert settled / asked == pytest.approx(0.8, abs=0.14)


def test_noise_raises_the_worked_number_of_flags() -> None:
    assert expected_flags(WORKED, 0.05) == pytest.approx(1.9492350056, abs=5e-11)
    assert expected_flags(map(scored, WORKED), 0.05) == pytest.approx(expected_flags(WORKED, 0.05), rel=1e-12)


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.2, 0.5, 1.0])
def test_flags_of_passes_and_failures_are_a_sum_over_all_outcomes(threshold: float) -> None:
    for before, passes_before, after, passes_after in [(10, 9, 10, 7), (30, 28, 5, 3), (1, 1, 1, 0), (4, 0, 7, 0)]:
        rate = (passes_before + passes_after + 0.5) / (before + after + 1)
        expected = sum(
            stats.binom.pmf(a, before, rate) * stats.binom.pmf(b, after, rate)
            for a, b in product(range(before + 1), range(after + 1))
            if a / before - b / after > threshold + 1e-9
        )
        case = PairedCaseCounts(before, passes_before, after, passes_after)
        assert expected_flags([case], threshold) == pytest.approx(float(expected), abs=1e-12)


def test_flags_of_scores_are_a_sum_over_all_draws() -> None:
    case = PairedCaseScores((0.5, 0.9, 0.731), (0.25, 0.9))
    values = [(score, 1 / 6) for side in case for score in side] + [(0.0, 0.5 / 6), (1.0, 0.5 / 6)]
    expected = 0.0
    for draw in product(values, repeat=5):
        scores = [score for score, _ in draw]
        if sum(scores[:3]) / 3 - sum(scores[3:]) / 2 > 0.05 + 1e-9:
            expected += math.prod(share for _, share in draw)
    assert expected_flags([case], 0.05) == pytest.approx(expected, rel=1e-10)


def test_a_drop_of_exactly_the_threshold_raises_no_flag() -> None:
    # scores of 0.5 with the rare 0 and 1: a drop of 0.5 takes one of those
    half = PairedCaseScores((0.5,), (0.5,))
    assert expected_flags([half], 0.5) == pytest.approx((0.5 / 3) * (0.5 / 3), rel=1e-12)


def test_a_case_that_one_side_did_not_try_raises_no_flag() -> None:
    assert expected_flags([PairedCaseCounts(5, 3, 0, 0), PairedCaseScores((), (0.5,))], 0.05) == 0.0
    assert expected_flags([], 0.05) == 0.0


def test_noise_raises_as_many_flags_as_foretold() -> None:
    chance = random.Random(6)
    pool = [0.4, 0.65, 0.9, 1.0]
    case = PairedCaseScores(tuple(pool * 2), tuple(pool * 2))
    flagged = 0
    for _ in range(20_000):
        draw = chance.choices([*pool * 4, 0.0, 1.0], weights=[1.0] * 16 + [0.5, 0.5], k=16)
        flagged += sum(draw[:8]) / 8 - sum(draw[8:]) / 8 > 0.05 + 1e-9
    assert flagged / 20_000 == pytest.approx(expected_flags([case], 0.05), abs=0.012)


def test_the_cheaper_advice_is_given() -> None:
    def advice(pairs: int) -> AdditionalAttempts | None:
        return additional_attempts(
            [evidence(PairedCaseCounts(4, 3, 4, 3)), evidence(PairedCaseCounts(4, 4, 4, 4))] * pairs, margin=0.05
        )

    assert advice(20) == AdditionalAttempts(8, 8)
    # fewer attempts in all than on both sides, and the baseline may stay as it is
    assert advice(34) == AdditionalAttempts(0, 4)
