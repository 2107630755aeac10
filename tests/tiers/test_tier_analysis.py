"""Every figure of an experiment in tiers can be worked out again in a few lines."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterable, Sequence
from itertools import product

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from steelyard.errors import InputError
from steelyard.tiers.analysis import analyse_tiers, natural_sort_key
from steelyard.tiers.results import (
    RUN_METRICS,
    CriterionRating,
    ExperimentAnalysis,
    JudgeIdentity,
    RunIdentity,
    RunRating,
    RunSource,
    TierAnalysis,
    TierComparison,
    TierRun,
)

ANNE, BEN, CARL = JudgeIdentity("anne"), JudgeIdentity("ben"), JudgeIdentity("carl")


def tier_run(
    tier: str = "T0",
    case: str = "a",
    number: int = 1,
    *,
    passed: bool | None = True,
    rate: float | None = 0.8,
    cost: float | None = 0.5,
    seconds: float | None = 10.0,
    model: str = "m",
    experiment: str = "e",
    exit_code: int | None = None,
) -> TierRun:
    return TierRun(
        experiment=experiment,
        model=model,
        tier=tier,
        case=case,
        number=number,
        passed=passed,
        impl_rate=rate,
        cost_usd=cost,
        duration_seconds=seconds,
        exit_code=exit_code,
    )


def simulated(
    seed: int, tiers: Sequence[str] = ("T0", "T1", "T2"), cases: int = 12, runs: int = 10, model: str = "m"
) -> list[TierRun]:
    """An experiment in which every tier is a little better and dearer than the one before."""
    chance = random.Random(seed)
    easy = [chance.random() for _ in range(cases)]
    found = []
    for place, tier in enumerate(tiers):
        for case, number in product(range(cases), range(1, runs + 1)):
            passed = chance.random() < 0.3 + 0.4 * easy[case] + 0.1 * place
            rate = round(min(1.0, 0.3 + 0.5 * passed + 0.25 * chance.random()), 2)
            cost = round(0.1 * (place + 1) * chance.lognormvariate(0, 0.3), 4)
            found.append(
                tier_run(tier, f"c{case}", number, passed=passed, rate=rate, cost=cost, seconds=cost * 60, model=model)
            )
    return found


def tier(analysis: ExperimentAnalysis, name: str, model: int = 0) -> TierAnalysis:
    return next(each for each in analysis.models[model].tiers if each.tier == name)


def against(comparisons: Iterable[TierComparison], name: str, other: str) -> TierComparison:
    return next(each for each in comparisons if (each.tier, each.other) == (name, other))


def letters(analysis: ExperimentAnalysis, name: str) -> str:
    grade = tier(analysis, name).grade
    return f"{grade.letter}{''.join(grade.could_be)}"


# The document's own examples.


def test_example_1_a_single_run() -> None:
    found = analyse_tiers([tier_run(passed=True, rate=0.85, cost=0.50)])
    (run,) = found.runs
    assert (run.pass_rate, run.impl_rate, run.cost_of_pass) == (1.0, 0.85, 0.50)
    assert run.composite == pytest.approx(0.925)
    assert tier(found, "T0").grade.letter == "B"


def test_example_2_ten_runs() -> None:
    passes = [1, 1, 0, 1, 1, 1, 0, 1, 1, 1]
    found = tier(analyse_tiers([tier_run(number=n, passed=bool(p)) for n, p in enumerate(passes)]), "T0")
    told = found.statistics["pass_rate"]
    assert (told.median, told.mean, told.mode, told.min, told.max, told.count) == (1, 0.8, 1, 0, 1, 10)
    assert told.std_dev == pytest.approx(0.4, rel=1e-15)
    assert found.pass_rate.value == 0.8
    assert (found.pass_rate.low, found.pass_rate.high) == pytest.approx((0.4901624715, 0.9433178485), abs=5e-11)


def test_example_3_across_tiers() -> None:
    # a run that passed has a composite of 0.7 where its impl_rate is 0.4
    rates = {"T0": 0.4, "T1": 0.6, "T2": 0.7, "T3": 0.8}
    found = analyse_tiers([tier_run(name, rate=rate, number=n) for name, rate in rates.items() for n in range(10)])
    medians = [each.composite_median.value for each in found.models[0].tiers]
    assert medians == pytest.approx([0.70, 0.80, 0.85, 0.90])
    uplifts = [each.uplift.value for each in found.models[0].tiers]
    assert uplifts[0] is None
    assert uplifts[1:] == pytest.approx([0.142857142857, 0.214285714286, 0.285714285714], abs=5e-13)
    assert found.models[0].composite_variance == pytest.approx(0.00546875)
    assert found.models[0].pass_rate_variance == 0


def test_costs_and_passes_of_the_formulas() -> None:
    costs, passes = [0.5, 0.5, 0.6, 0.4], [1, 0, 1, 1]
    found = analyse_tiers(
        [tier_run(number=n, passed=bool(p), cost=c) for n, (p, c) in enumerate(zip(passes, costs, strict=True))]
    )
    assert [(run.cost_of_pass, run.cost_of_pass_infinite) for run in found.runs] == [
        (0.5, False),
        (None, True),
        (0.6, False),
        (0.4, False),
    ]
    assert tier(found, "T0").cost_of_pass.value == pytest.approx(0.66666666667)
    told = tier(found, "T0").statistics["cost_of_pass"]
    assert told.median == pytest.approx(0.55)
    assert (told.mean, told.max, told.std_dev) == (None, None, None)
    assert told.infinite == ("mean", "max")


def test_a_single_case_has_the_interval_of_its_runs() -> None:
    costs = [0.52, 0.48, 0.61, 0.55, 0.43, 0.70, 0.39, 0.58, 0.50, 0.66]
    passes = [1, 0, 1, 1, 1, 0, 1, 1, 0, 1]
    found = tier(
        analyse_tiers(
            [tier_run(number=n, passed=bool(p), cost=c) for n, (p, c) in enumerate(zip(passes, costs, strict=True))]
        ),
        "T0",
    )
    assert found.unit == "run"
    assert found.cost_of_pass.value == pytest.approx(0.774285714286, abs=5e-13)
    assert (found.cost_of_pass.low, found.cost_of_pass.high) == pytest.approx((0.4974934370, 1.5665946490), abs=5e-10)
    none = tier(analyse_tiers([tier_run(number=n, passed=False) for n in range(10)]), "T0")
    assert (none.cost_of_pass.value, none.cost_of_pass.infinite, none.cost_of_pass.high) == (None, True, None)
    assert none.cost_of_pass.low == pytest.approx(1.9315045910, abs=5e-11)


# All of a simulated experiment, worked out again.


@pytest.fixture(scope="module")
def runs() -> list[TierRun]:
    return simulated(3)


@pytest.fixture(scope="module")
def found(runs: list[TierRun]) -> ExperimentAnalysis:
    return analyse_tiers(runs, replicates=400)


def of_tier(runs: Iterable[TierRun], name: str) -> dict[str, list[TierRun]]:
    cases: dict[str, list[TierRun]] = {}
    for run in runs:
        if run.tier == name:
            cases.setdefault(run.case, []).append(run)
    return cases


def composite(run: TierRun) -> float:
    assert run.impl_rate is not None
    return (bool(run.passed) + run.impl_rate) / 2


def test_statistics_pool_all_runs_of_a_tier(runs: list[TierRun], found: ExperimentAnalysis) -> None:
    for name in ("T0", "T1", "T2"):
        pooled = [run for run in runs if run.tier == name]
        values = {
            "pass_rate": [float(bool(run.passed)) for run in pooled],
            "impl_rate": [run.impl_rate or 0.0 for run in pooled],
            "composite": [composite(run) for run in pooled],
            "cost_usd": [run.cost_usd or 0.0 for run in pooled],
            "duration_seconds": [run.duration_seconds or 0.0 for run in pooled],
        }
        for metric, expected in values.items():
            told = tier(found, name).statistics[metric]
            assert told.median == pytest.approx(statistics.median(expected))
            assert told.mean == pytest.approx(statistics.fmean(expected))
            assert told.std_dev == pytest.approx(statistics.pstdev(expected))
            assert told.mode == pytest.approx(min(statistics.multimode(expected)))
            assert (told.min, told.max, told.count) == (min(expected), max(expected), 120)
        assert set(tier(found, name).statistics) == set(RUN_METRICS)
        assert tier(found, name).cost_usd == pytest.approx(sum(values["cost_usd"]))
        assert tier(found, name).cost_of_pass.value == pytest.approx(sum(values["cost_usd"]) / sum(values["pass_rate"]))


def test_intervals_take_the_case_as_the_unit() -> None:
    passes = [0, 0, 1, 2, 5, 8, 9, 10, 10, 10]
    given = [tier_run("T0", f"c{c}", n, passed=n < count) for c, count in enumerate(passes) for n in range(10)]
    told = tier(analyse_tiers(given), "T0").pass_rate
    assert told.value == pytest.approx(0.55)
    assert (told.low, told.high) == pytest.approx((0.27039171479941, 0.80122646642336), abs=5e-14)
    assert (told.cases, told.attempts) == (10, 100)
    # by hand: Wilson's interval at the effective sample size, with Student's t
    rates = np.array(passes) / 10
    spread = stats.t.ppf(0.975, 9) ** 2 * stats.sem(rates) ** 2 / (0.55 * 0.45)
    root = math.sqrt(spread * 0.55 * 0.45 + spread**2 / 4)
    assert told.low == pytest.approx((0.55 + spread / 2 - root) / (1 + spread))


def test_comparisons_are_paired_by_case(runs: list[TierRun], found: ExperimentAnalysis) -> None:
    before, after = of_tier(runs, "T0"), of_tier(runs, "T2")
    told = against(found.models[0].against_baseline, "T2", "T0")
    differences = [
        statistics.fmean(bool(run.passed) for run in after[case])
        - statistics.fmean(bool(run.passed) for run in before[case])
        for case in before
    ]
    padded = [*differences, 0.1, -0.1]
    middle, deviation = statistics.fmean(padded), statistics.pstdev(padded)
    half = stats.t.ppf(0.975, 13) * deviation / math.sqrt(14)
    assert told.pass_rate.value == pytest.approx(statistics.fmean(differences))
    assert (told.pass_rate.low, told.pass_rate.high) == pytest.approx((middle - half, middle + half))
    scores = [
        statistics.fmean(map(composite, after[case])) - statistics.fmean(map(composite, before[case]))
        for case in before
    ]
    assert told.composite.value == pytest.approx(statistics.fmean(scores))
    costs = [
        statistics.fmean(run.cost_usd or 0.0 for run in after[case])
        - statistics.fmean(run.cost_usd or 0.0 for run in before[case])
        for case in before
    ]
    interval = stats.t.interval(0.95, 11, statistics.fmean(costs), stats.sem(costs))
    assert (told.cost_usd.low, told.cost_usd.high) == pytest.approx(interval)
    # the exact test: all ways to share out each case's passes, by plain convolution
    chances = np.ones(1)
    seen = 0
    for case in before:
        passes = sum(bool(run.passed) for run in before[case] + after[case])
        chances = np.convolve(chances, stats.hypergeom.pmf(np.arange(11), 20, passes, 10))
        seen += sum(bool(run.passed) for run in after[case])
    expected = min(1.0, 2 * min(chances[: seen + 1].sum(), chances[seen:].sum()))
    assert told.p == pytest.approx(expected, rel=1e-9)


def test_holm_counts_every_pair_of_tiers_once(found: ExperimentAnalysis) -> None:
    (model,) = found.models
    pairs = {(each.tier, each.other): each.p for each in (*model.against_baseline, *model.ablation)}
    assert set(pairs) == {("T1", "T0"), ("T2", "T0"), ("T2", "T1")}
    assert found.tests == 3
    ordered = sorted(pairs.items(), key=lambda item: item[1] or 0.0)
    least = 0.0
    for rank, (pair, p) in enumerate(ordered):
        least = max(least, min(1.0, (3 - rank) * (p or 0.0)))
        told = against((*model.against_baseline, *model.ablation), *pair)
        assert told.p_adjusted == pytest.approx(least)
    assert model.against_baseline[0] == model.ablation[0]
    # with the baseline in the middle, T1 against T0 is the same test as T0 against T1
    assert analyse_tiers(simulated(3, runs=2), baseline="T1", replicates=1).tests == 2


def test_tiers_of_several_models_share_one_family_of_tests() -> None:
    both = analyse_tiers([*simulated(3), *simulated(4, model="n")], replicates=50)
    assert both.tests == 6
    assert [model.model for model in both.models] == ["m", "n"]
    alone = analyse_tiers(simulated(3), replicates=50).models[0]
    together = both.models[0]
    assert [each.p for each in together.ablation] == [each.p for each in alone.ablation]
    assert all(
        (one.p_adjusted or 0) >= (other.p_adjusted or 0)
        for one, other in zip(together.ablation, alone.ablation, strict=True)
    )


def test_neither_the_order_of_runs_nor_of_ratings_matters(runs: list[TierRun]) -> None:
    ratings = [
        RunRating(run=run.identity, judge=judge, impl_rate=rate, passed=bool(run.passed))
        for run in runs
        for judge, rate in ((ANNE, run.impl_rate), (BEN, 0.5))
    ]
    shuffled, mixed = list(runs), list(ratings)
    random.Random(1).shuffle(shuffled)
    random.Random(2).shuffle(mixed)
    one, other = (
        msgspec.json.encode(analyse_tiers(*given, replicates=200)) for given in ((runs, ratings), (shuffled, mixed))
    )
    assert one == other


def test_the_frontier_is_the_cheapest_pass_over_tiers_and_over_tiers_by_case(
    runs: list[TierRun], found: ExperimentAnalysis
) -> None:
    by_tier = {each.tier: each.cost_of_pass.value or math.inf for each in found.models[0].tiers}
    assert found.frontier.tier == min(by_tier, key=lambda name: by_tier[name])
    assert found.frontier.cost_of_pass.value == min(by_tier.values())
    cheapest = []
    for case in of_tier(runs, "T0"):
        prices = []
        for name in by_tier:
            mine = of_tier(runs, name)[case]
            passes = sum(bool(run.passed) for run in mine)
            prices.append(sum(run.cost_usd or 0.0 for run in mine) / passes if passes else math.inf)
        cheapest.append(min(prices))
    assert (found.frontier.cases, found.frontier.unsolved) == (12, 0)
    assert found.frontier.case_mean.value == pytest.approx(statistics.fmean(cheapest))


def test_a_case_that_nothing_passes_has_no_finite_cost_of_pass() -> None:
    given = [tier_run(t, c, passed=c != "b") for t in ("T0", "T1") for c in ("a", "b", "c")]
    frontier = analyse_tiers(given).frontier
    assert (frontier.cases, frontier.unsolved) == (3, 1)
    assert frontier.case_mean.value == 0.5
    none = analyse_tiers([tier_run(t, c, passed=False) for t in ("T0", "T1") for c in "abc"]).frontier
    assert (none.tier, none.cost_of_pass.value, none.cost_of_pass.infinite, none.unsolved) == ("", None, True, 3)


# What is missing is missing.


def test_one_unknown_cost_leaves_a_tier_without_figures_of_costs() -> None:
    given = [tier_run("T0", c) for c in "abc"] + [tier_run("T1", c, cost=None if c == "b" else 0.5) for c in "abc"]
    found = analyse_tiers(given)
    dear = tier(found, "T1")
    assert (dear.unpriced, dear.cost_usd, dear.cost_of_pass.value, dear.cost_of_pass.infinite) == (1, None, None, False)
    assert dear.statistics["cost_usd"].mean is dear.statistics["cost_of_pass"].median is None
    assert dear.on_pareto_front is None
    assert against(found.models[0].ablation, "T1", "T0").cost_usd.value is None
    assert found.models[0].cost_delta is found.models[0].cost_variance is None
    assert tier(found, "T0").cost_usd == 1.5
    assert "T1: what 1 of 3 runs cost is not known, so there are no figures of costs" in found.warnings


def test_a_run_without_outcome_is_in_no_rate_and_makes_it_doubtful() -> None:
    given = [tier_run("T0", f"c{n}", passed=None if n < 2 else True) for n in range(20)]
    found = analyse_tiers(given)
    told = tier(found, "T0")
    assert (told.unjudged, told.unscored, told.pass_rate.cases, told.pass_rate.value) == (2, ("e/c0", "e/c1"), 18, 1.0)
    assert told.statistics["composite"].count == 18
    assert not found.conclusive
    assert analyse_tiers(given[1:]).conclusive is False
    assert analyse_tiers(given[2:]).conclusive is True
    assert any(warning.startswith("T0: 2 of 20 cases have no outcome (e/c0, e/c1)") for warning in found.warnings)


def test_a_run_without_impl_rate_is_in_no_composite() -> None:
    found = tier(analyse_tiers([tier_run("T0", c, rate=None if c == "a" else 0.5) for c in "abcd"]), "T0")
    assert (found.unrated, found.composite.attempts, found.pass_rate.attempts) == (1, 3, 4)
    nothing = tier(analyse_tiers([tier_run(rate=None)]), "T0")
    assert (nothing.grade.letter, nothing.composite_median.value, nothing.composite.value) == (None, None, None)


def test_nothing_at_all_is_none_and_not_zero() -> None:
    found = tier(
        analyse_tiers([tier_run("T0", c, passed=None, rate=None, cost=None, seconds=None) for c in "ab"]), "T0"
    )
    for metric in RUN_METRICS:
        told = found.statistics[metric]
        assert (told.median, told.mean, told.mode, told.min, told.max, told.std_dev) == (None,) * 6
        assert told.count == 0
    assert [getattr(found, name).value for name in ("pass_rate", "impl_rate", "composite", "cost_of_pass")] == [
        None
    ] * 4
    with pytest.raises(InputError, match="no run to analyse"):
        analyse_tiers([])


def test_a_baseline_of_zero_has_no_uplift_over_it() -> None:
    given = [tier_run("T0", c, passed=False, rate=0.0) for c in "abcdef"] + [tier_run("T1", c) for c in "abcdef"]
    assert tier(analyse_tiers(given), "T1").uplift.value is None
    half = [tier_run("T0", f"c{n}", passed=n > 3, rate=0.0) for n in range(9)] + [
        tier_run("T1", f"c{n}") for n in range(9)
    ]
    open_ended = tier(analyse_tiers(half), "T1").uplift
    assert open_ended.value == pytest.approx(0.8)
    assert open_ended.low == pytest.approx(0.8)
    assert open_ended.high is None


def test_a_model_that_never_ran_the_baseline_is_not_held_against_it() -> None:
    given = [*simulated(1, runs=2), *simulated(2, ("T1", "T2"), runs=2, model="n")]
    found = analyse_tiers(given, replicates=50)
    other = found.models[1]
    assert other.against_baseline == ()
    assert [(each.tier, each.other) for each in other.ablation] == [("T2", "T1")]
    assert tier(found, "T1", 1).uplift.value is None


# Judges.


def rated(run: TierRun, *rates: float, votes: Sequence[bool | None] = (None, None, None)) -> list[RunRating]:
    return [
        RunRating(run=run.identity, judge=judge, impl_rate=rate, passed=vote)
        for judge, rate, vote in zip((ANNE, BEN, CARL), rates, votes, strict=False)
    ]


def test_tests_decide_and_where_there_are_none_the_judges_majority() -> None:
    tested, untested = tier_run(number=1, passed=False), tier_run(number=2, passed=None)
    ratings = [each for run in (tested, untested) for each in rated(run, 0.9, 0.8, 0.7, votes=(True, True, False))]
    first, second = analyse_tiers([tested, untested], ratings).runs
    assert (first.passed, first.passed_by, second.passed, second.passed_by) == (False, "record", True, "judges")
    assert first.flags == ("the judges' majority says otherwise",)
    tie = analyse_tiers([untested], rated(untested, 0.9, 0.8, votes=(True, False))).runs[0]
    assert tie.passed is False


def test_the_impl_rate_is_recomputed_and_a_different_record_flagged() -> None:
    run = tier_run(rate=0.9)
    found = analyse_tiers([run], rated(run, 0.9, 0.9, 0.6))
    (told,) = found.runs
    assert told.impl_rate == pytest.approx(0.8)
    assert told.impl_rates == {"points": pytest.approx(0.8), "recorded": 0.9}
    assert told.composite == pytest.approx(0.9)
    assert "the recorded impl_rate is not that of the judges" in told.flags
    assert any(warning.endswith("points; what they record is the median") for warning in found.warnings)
    close = analyse_tiers([tier_run(rate=0.82)], rated(run, 0.9, 0.9, 0.6)).runs[0]
    assert close.flags == ()


def test_points_go_before_what_a_judge_claims() -> None:
    run = tier_run(rate=None)
    points = [
        CriterionRating(run=run.identity, judge=ANNE, criterion="works", achieved=1.0, max=4.0),
        CriterionRating(run=run.identity, judge=ANNE, criterion="docs", achieved=None, max=4.0),
    ]
    found = analyse_tiers([run], rated(run, 0.9), points)
    assert found.runs[0].impl_rate == 0.25
    assert found.panel is not None
    assert found.panel.claims_off == 1


def test_the_impl_rate_is_one_kind_for_all_runs_and_the_others_stand_beside_it() -> None:
    scores = {"T0": 0.5, "T1": 0.7}
    given = [replace(tier_run(name, c, rate=0.9), score=score) for name, score in scores.items() for c in "abcdefgh"]
    ratings = [each for run in given for each in rated(run, 0.8 if run.tier == "T0" else 0.6)]
    found = analyse_tiers(given, ratings, replicates=50)
    assert found.impl_rate == "score"
    assert [tier(found, name).impl_rate.value for name in scores] == [0.5, 0.7]
    beside = tier(found, "T1").by_impl_rate
    assert {kind: result.mean for kind, result in beside.items()} == pytest.approx(
        {"score": 0.7, "points": 0.6, "recorded": 0.9}
    )
    assert beside["score"].uplift == tier(found, "T1").uplift.value == pytest.approx(0.1 / 0.75)
    assert beside["points"].uplift == pytest.approx(-0.1 / 0.9)
    assert [beside[kind].grade for kind in ("score", "points", "recorded")] == ["B", "C", "A"]
    points = analyse_tiers(given, ratings, impl_rate="points", replicates=50)
    assert points.impl_rate == "points"
    assert tier(points, "T1").impl_rate.value == pytest.approx(0.6)
    assert tier(points, "T1").by_impl_rate == beside
    with pytest.raises(
        InputError, match="no run has an impl rate of the kind points; these runs have: score, recorded"
    ):
        analyse_tiers(given, impl_rate="points")
    with pytest.raises(InputError, match="have none of any kind"):
        analyse_tiers([tier_run(rate=None)], impl_rate="recorded")


def test_a_run_without_the_impl_rate_that_is_used_is_unrated() -> None:
    found = analyse_tiers([replace(tier_run("T0", "a"), score=0.5), tier_run("T0", "b")])
    assert [run.impl_rate for run in found.runs] == [0.5, None]
    assert tier(found, "T0").unrated == 1


@pytest.mark.parametrize("part", ["experiment", "model", "tier", "case", "number"])
def test_a_rating_belongs_to_the_run_with_its_whole_identity(part: str) -> None:
    run = tier_run()
    other: int | str = 2 if part == "number" else "other"
    elsewhere = msgspec.convert(msgspec.to_builtins(run) | {part: other}, TierRun)
    found = analyse_tiers([run, elsewhere], [*rated(run, 0.2), *rated(elsewhere, 0.6)])
    rates = {RunIdentity(*(getattr(each, name) for name in RunIdentity._fields)): each.impl_rate for each in found.runs}
    assert rates == {run.identity: 0.2, elsewhere.identity: 0.6}
    with pytest.raises(ValueError, match="there is no such run"):
        analyse_tiers([run], rated(elsewhere, 0.6))


def test_an_impl_rate_above_one_is_kept_flagged_and_counts_as_one_in_every_figure() -> None:
    found = analyse_tiers([tier_run("T0", c, rate=1.03) for c in "abcdefgh"])
    told = tier(found, "T0")
    assert found.runs[0].impl_rates == {"recorded": 1.03}
    assert found.runs[0].impl_rate == 1.0
    assert found.runs[0].flags == ("impl_rate above 1",)
    assert found.runs[0].composite == told.composite_median.value == 1.0
    assert told.statistics["impl_rate"].mean == told.statistics["impl_rate"].max == 1.0
    assert told.impl_rate.value == told.impl_rate.high == 1.0


def test_a_pass_with_a_broken_program_is_worth_a_word() -> None:
    found = analyse_tiers([tier_run("T0", "a", exit_code=1), tier_run("T0", "b", passed=False, exit_code=1)])
    assert found.runs[0].flags == ("passed with a non-zero exit code",)
    assert found.runs[1].flags == ()


# Tiers and their order.


@pytest.mark.parametrize(
    ("names", "baseline", "expected", "first"),
    [
        (["T10", "T2", "T0"], None, ["T0", "T2", "T10"], "T0"),
        (["t1", "T0", "T10", "T9"], None, ["T0", "t1", "T9", "T10"], "T0"),
        (["plain", "skills", "agent"], None, ["plain", "skills", "agent"], "plain"),
        (["skills", "agent", "plain"], "plain", ["plain", "skills", "agent"], "plain"),
        (["T2", "none", "T1"], "none", ["none", "T1", "T2"], "none"),
        (["T2", "T0", "T1"], "T1", ["T0", "T1", "T2"], "T1"),
    ],
)
def test_tiers_come_in_the_order_in_which_people_count(
    names: list[str], baseline: str | None, expected: list[str], first: str
) -> None:
    found = analyse_tiers([tier_run(name) for name in names], baseline=baseline)
    assert list(found.tiers) == [each.tier for each in found.models[0].tiers] == expected
    assert found.baseline == first
    assert [each.other for each in found.models[0].ablation] == expected[:-1]


def test_an_order_can_be_given_and_must_name_every_tier() -> None:
    given = [tier_run("T0"), tier_run("T1")]
    assert analyse_tiers(given, order=["T1", "T0"]).baseline == "T1"
    with pytest.raises(InputError, match='names each of them once: "T0", "T1"; got "T1"'):
        analyse_tiers(given, order=["T1"])
    with pytest.raises(InputError, match=r'no tier "T7" to use as the baseline \(known: T0, T1\)'):
        analyse_tiers(given, baseline="T7")


def test_names_that_count_the_same_come_in_one_order() -> None:
    assert (
        analyse_tiers([tier_run("T01"), tier_run("T1")]).tiers == analyse_tiers([tier_run("T1"), tier_run("T01")]).tiers
    )


def test_numbers_of_any_length_sort() -> None:
    assert sorted(["T" + "9" * 5000, "T" + "1" * 5001, "T007", "T8"], key=natural_sort_key)[:2] == ["T007", "T8"]


def test_the_pareto_front_keeps_ties_and_leaves_out_who_is_beaten() -> None:
    # cost and impl_rate of every tier; all runs pass
    given = {"T0": (0.1, 0.5), "T1": (0.2, 0.7), "T2": (0.2, 0.7), "T3": (0.3, 0.7), "T4": (0.3, 0.9), "T5": (0.4, 0.6)}
    given["T6"] = (0.5, 0.9)
    found = analyse_tiers(
        [tier_run(name, c, cost=cost, rate=rate) for name, (cost, rate) in given.items() for c in "abc"]
    )
    assert [each.tier for each in found.models[0].tiers if each.on_pareto_front] == ["T0", "T1", "T2", "T4"]


def test_costs_differ_between_the_dearest_and_the_cheapest_median() -> None:
    given = [tier_run(name, c, cost=cost) for name, cost in (("T0", 0.5), ("T1", 2.0), ("T2", 0.25)) for c in "ab"]
    (model,) = analyse_tiers(given).models
    assert model.cost_delta == 1.75
    assert model.cost_variance == pytest.approx(statistics.pvariance([0.5, 2.0, 0.25]))
    assert analyse_tiers(given[:2]).models[0].cost_delta is None


def test_weights_change_the_composite() -> None:
    found = analyse_tiers([tier_run(passed=True, rate=0.5)], weights=(3, 1))
    assert found.runs[0].composite == 0.875
    with pytest.raises(ValueError, match="weights"):
        analyse_tiers([tier_run()], weights=(0, 0))


# Grades.


def test_a_grade_names_those_that_its_interval_allows() -> None:
    def graded(values: Sequence[float]) -> str:
        # a run that passed with an impl_rate of twice the composite less one
        return letters(
            analyse_tiers([tier_run("T0", f"c{n}", rate=2 * value - 1) for n, value in enumerate(values)]), "T0"
        )

    assert graded([0.9] * 20) == "B"
    assert graded([0.9] * 11 + [0.97] * 9) == "BA"
    assert graded([0.7] * 3 + [0.8] * 3 + [0.9] * 3 + [0.97] * 3) == "BACD"
    assert graded([0.9] * 6) == "BACDF"
    assert graded([0.9]) == "B"


def test_a_few_cases_are_warned_about() -> None:
    few = analyse_tiers([tier_run("T0", c) for c in "abc"])
    assert "fewer than 7 cases cannot bound a median: a grade over so few could be any other" in few.warnings
    one = analyse_tiers([tier_run("T0", "a", n) for n in range(9)])
    assert any(warning.startswith("intervals of a tier with a single case") for warning in one.warnings)


def grades_covered(repeats: int, cases: int) -> float:
    """How often the true grade is among those that are named."""
    chance = np.random.default_rng(cases)

    def values(size: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        rates = chance.beta(9, 1, size=(size, 1))
        return (chance.random((size, 3)) < rates) / 2 + np.round(chance.beta(12, 2, size=(size, 3)), 2) / 2

    truth = "ABCDF"[sum(float(np.median(values(100_000))) < least for least in (0.95, 0.85, 0.75, 0.65))]
    covered = 0
    for _ in range(repeats):
        given = [
            tier_run("T0", f"c{case}", number, passed=bool(value >= 0.5), rate=round(2 * value - (value >= 0.5), 6))
            for case, row in enumerate(values(cases))
            for number, value in enumerate(row)
        ]
        covered += truth in letters(analyse_tiers(given), "T0")
    return covered / repeats


def test_the_true_grade_is_among_those_that_are_named() -> None:
    assert grades_covered(60, 10) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("cases", [7, 15, 40])
def test_the_true_grade_is_among_those_that_are_named_in_the_whole_study(cases: int) -> None:
    assert grades_covered(800, cases) >= 0.95


# Cases that not all tiers have.


def test_comparisons_rest_on_the_cases_that_both_tiers_ran() -> None:
    given = [tier_run("T0", c) for c in "abcd"] + [tier_run("T1", c, passed=c != "a") for c in "abef"]
    found = analyse_tiers(given)
    told = against(found.models[0].ablation, "T1", "T0")
    assert (told.cases, told.tier_only, told.other_only, told.pass_rate.value) == (2, 2, 2, -0.5)
    assert "comparisons with T0 rest on the cases that both tiers ran: T1 2 of 6" in found.warnings
    apart = analyse_tiers([tier_run("T0", "a"), tier_run("T1", "b")])
    nothing = apart.models[0].ablation[0]
    assert (nothing.cases, nothing.p, nothing.p_adjusted, nothing.pass_rate.value) == (0, None, None, None)
    assert apart.tests == 0


def test_cases_of_different_experiments_are_different_cases() -> None:
    given = [tier_run(t, "a", experiment=x) for t in ("T0", "T1") for x in ("x", "y", "z")]
    assert tier(analyse_tiers(given), "T0").cases == 3


def test_where_the_experiment_is_the_task_runs_pair_by_experiment() -> None:
    given = [
        tier_run(name, f"{name}-{variant}", experiment=task)
        for name in ("T0", "T1")
        for task in ("x", "y", "z")
        for variant in range(4)
    ]
    apart, together = analyse_tiers(given), analyse_tiers(given, pair_by="experiment")
    assert apart.models[0].ablation[0].p is None
    assert any("pair by experiment" in warning for warning in apart.warnings)
    assert (together.models[0].ablation[0].cases, tier(together, "T0").cases) == (3, 3)
    assert not any("pair by experiment" in warning for warning in together.warnings)
    with pytest.raises(ValueError, match="pair by case or experiment"):
        analyse_tiers(given, pair_by="tier")  # type: ignore[arg-type]  # that is the point


def test_every_run_counts_the_same_where_cases_were_run_unequally_often() -> None:
    given = [tier_run("T0", "a", n, passed=False) for n in range(30)]
    given += [tier_run("T0", c, n, passed=True) for c in "bcdefghi" for n in range(5)]
    told = tier(analyse_tiers(given), "T0")
    assert told.pass_rate.value == told.statistics["pass_rate"].mean == 4 / 7
    assert told.pass_rate.low is not None
    assert told.pass_rate.low < 0.2


# What goes in and what comes out.


@pytest.mark.parametrize(("field", "value"), [("impl_rate", -0.1), ("impl_rate", math.nan), ("cost_usd", math.inf)])
def test_numbers_that_are_none_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} must be a number"):
        analyse_tiers([replace(tier_run(), **{field: value})])


def test_a_run_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="is there 2 times"):
        analyse_tiers([tier_run(), tier_run(passed=False)])


def test_an_analysis_is_json_without_numbers_that_json_does_not_know() -> None:
    given = [tier_run(t, c, n, passed=t == "T1" and n > 1) for t in ("T0", "T1") for c in "abc" for n in range(4)]
    source = RunSource(name="runs.csv", digest="d1")
    found = analyse_tiers(
        given, [each for run in given for each in rated(run, 0.2, 0.4)], sources=[source], replicates=50
    )
    text = msgspec.json.encode(found)
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name))["sources"] == [
        {"name": "runs.csv", "digest": "d1"}
    ]
    assert msgspec.json.decode(text, type=ExperimentAnalysis) == found
