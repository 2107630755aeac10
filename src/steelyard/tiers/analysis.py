"""What every tier of an experiment achieves, at what price, and what it adds to the tiers before it.

The figures are those of ProjectScylla, "Metrics Formulas Documentation" (`formulas.py` has them). A tier's figures
pool all its runs; `sampling.py` has their intervals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from steelyard.analysis.estimates import Estimate
from steelyard.errors import InputError, did_you_mean
from steelyard.stats.bootstrap import bootstrap
from steelyard.stats.cost import cost_of_pass
from steelyard.stats.descriptive import describe
from steelyard.stats.multiplicity import holm
from steelyard.stats.paired import PairedCaseCounts, stratified_worse
from steelyard.text import line, printable, short_quote
from steelyard.tiers import formulas
from steelyard.tiers.impl_rates import chosen_impl_rate, figure_table, with_impl_rates
from steelyard.tiers.judges import experiment_judgments
from steelyard.tiers.rating_tables import JudgmentTable
from steelyard.tiers.results import (
    PAIR_BY,
    RUN_METRICS,
    CostFrontier,
    CriterionRating,
    ExperimentAnalysis,
    ImplRate,
    MetricStatistics,
    ModelAnalysis,
    PairBy,
    RunIdentity,
    RunRating,
    RunSource,
    Tasks,
    TierAnalysis,
    TierComparison,
    TierGrade,
    TierRun,
)
from steelyard.tiers.rubrics import GRADE_THRESHOLDS, LOWEST_GRADE, SCORE_THRESHOLD_TOLERANCE
from steelyard.tiers.run_tables import (
    RUN_AMOUNTS,
    FigureTable,
    RunTable,
    TierCaseKey,
    TierGroups,
    TierRuns,
    amount_message,
    by_model_and_tier,
)
from steelyard.tiers.sampling import (
    TierSample,
    chosen_sampling,
    cost_difference,
    difference_estimate,
    median_uplift,
    score_difference,
)
from steelyard.tiers.warnings import MAX_NAME_CHARACTERS, analysis_warnings, run_warnings

MAX_UNSCORED_TIER_CASE_SHARE = 0.05
"""With a larger share of cases without an outcome an analysis is not conclusive."""
MAX_LISTED_TIERS = 40
"""Names in a sentence about an unknown tier."""


def analyse_tiers(
    runs: Iterable[TierRun],
    ratings: Iterable[RunRating] | JudgmentTable = (),
    criteria: Iterable[CriterionRating] = (),
    *,
    weights: tuple[float, float] = (0.5, 0.5),
    baseline: str | None = None,
    order: Sequence[str] | None = None,
    pair_by: PairBy = "case",
    impl_rate: ImplRate | None = None,
    tasks: Tasks | None = None,
    sources: Iterable[RunSource] = (),
    seed: int = 0,
    replicates: int = 2000,
) -> ExperimentAnalysis:
    """All figures of an experiment, with intervals, tests and what a reader must know before trusting them.

    `baseline` names T0; by default it is the first tier. Tiers come in the `order` given, otherwise in natural order if all have
    numbers, otherwise as they come; a baseline without a number comes first. With `pair_by` "experiment", runs of different
    tiers belong to the same case when their experiment is the same, whatever their case: for tools whose experiment is
    the task, and whose subtests are variants of a tier. `impl_rate` says what impl rates are taken from; without it the
    first of `IMPL_RATES` that any run has. `tasks` says whether intervals speak of these tasks or of tasks like them; without
    it that is chosen by their number. `seed` and `replicates` are those of the uplift's bootstrap.
    Raises an InputError if there is no run, or no such baseline, order or impl rate.
    """
    if pair_by not in PAIR_BY:
        raise ValueError(f"runs pair by {' or '.join(PAIR_BY)}, got {pair_by!r}")
    given, rated = RunTable.of(runs), JudgmentTable.of(ratings, criteria)
    kind = chosen_impl_rate(given, rated, impl_rate)
    judgments = experiment_judgments(rated, seed=seed, by=kind or "points")
    opinions = judgments.opinions if judgments else {}
    _check(given, opinions)
    names = _ordered_tiers(given.names["tier"].there(), baseline, order)
    first = baseline or names[0]
    figures = figure_table(given, opinions, weights, kind)
    oddities = tuple(run_warnings(figures, opinions, judgments.empty if judgments else 0))
    # those of a hundred thousand runs are large, and the figures have what they say
    opinions.clear()
    figures = _ordered(figures, names)
    groups = by_model_and_tier(figures, pair_by)
    sampling = chosen_sampling([tier for of_model in groups.values() for tier in of_model.values()], tasks)
    models = [
        _model(model, of_model, names, first, tasks=sampling.tasks, seed=seed, replicates=replicates)
        for model, of_model in groups.items()
    ]
    models = _with_holm(_with_front([with_impl_rates(model, groups[model.model], first, weights) for model in models]))
    return ExperimentAnalysis(
        models=tuple(models),
        tiers=tuple(names),
        baseline=first,
        frontier=_frontier(groups, models, sampling.tasks, seed),
        impl_rate=kind,
        tasks=sampling.tasks,
        tasks_reason=sampling.reason,
        panel=judgments.panel if judgments else None,
        claims=judgments.claims if judgments else (),
        judge_shifts=judgments.shifts if judgments else {},
        # records for those who gave records; of columns a record is made when it is asked for
        runs=figures if isinstance(runs, RunTable) else tuple(figures),
        weights=weights,
        pair_by=pair_by,
        tests=len(_tested(models)),
        seed=seed,
        replicates=replicates,
        sources=tuple(sources),
        warnings=(
            *oddities,
            *(
                f"{line(model, MAX_NAME_CHARACTERS)} is a judge of its own runs"
                for model in (judgments.own if judgments else ())
            ),
            *analysis_warnings(groups, models, first, pair_by),
        ),
        conclusive=not any(
            len(tier.unscored) > MAX_UNSCORED_TIER_CASE_SHARE * tier.cases + SCORE_THRESHOLD_TOLERANCE
            for model in models
            for tier in model.tiers
        ),
    )


def _ordered(figures: FigureTable, tiers: Sequence[str]) -> FigureTable:
    """The same by model, tier, experiment, case and number; cases as people count them."""
    import numpy as np

    names = figures.names
    orders = {
        "case": sorted(names["case"].names, key=natural_sort_key),
        "experiment": sorted(names["experiment"].names),
        "tier": tiers,
        "model": sorted(names["model"].names),
    }
    # the last key is the first to sort by
    keys = [figures.integers["number"], *(names[name].ranks(order) for name, order in orders.items())]
    return figures.rows(np.lexsort(keys))


def natural_sort_key(name: str) -> tuple[tuple[str, int, str], ...]:
    """A key by which names sort as people count.

    >>> sorted(["T10", "T2", "T1"], key=natural_sort_key)
    ['T1', 'T2', 'T10']
    """
    # by length first, because Python refuses to make a number of very many digits
    parts = re.findall("([^0-9]*)([0-9]*)", name)
    counted_up = ((text.casefold(), len(digits.lstrip("0")), digits.lstrip("0")) for text, digits in parts)
    # names that count the same, such as T1 and T01, still have an order
    return (*counted_up, (name, 0, ""))


def check_baseline(baseline: str | None, names: Sequence[str]) -> None:
    """Raises an InputError if the baseline is not one of these tiers."""
    if baseline is not None and baseline not in names:
        known = [printable(name[:MAX_NAME_CHARACTERS]) for name in names[:MAX_LISTED_TIERS]]
        raise InputError(f"no tier {short_quote(baseline)} to use as the baseline ({did_you_mean(baseline, known)})")


def _ordered_tiers(names: Iterable[str], baseline: str | None, order: Sequence[str] | None) -> list[str]:
    """The tiers, the baseline first unless it has its place."""
    there = list(dict.fromkeys(names))
    check_baseline(baseline, there)
    if order is not None:
        if sorted(order) != sorted(there):
            known, got = (
                ", ".join(map(short_quote, names[:MAX_LISTED_TIERS])) for names in (sorted(there), list(order))
            )
            raise InputError(f"an order of tiers names each of them once: {known}; got {got}")
        return list(order)
    plain = [name for name in there if not re.search("[0-9]", name)]
    if not set(plain) - {baseline}:
        there.sort(key=natural_sort_key)
    if baseline in plain:
        there.sort(key=lambda name: name != baseline)
    return there


def _model(
    model: str,
    groups: Mapping[str, TierRuns],
    names: Sequence[str],
    first: str,
    *,
    tasks: Tasks,
    seed: int,
    replicates: int,
) -> ModelAnalysis:
    """The tiers of one model, not yet compared with those of others."""
    there = [name for name in names if name in groups]
    samples = {name: TierSample(groups[name], tasks) for name in there}
    found = []
    for name in there:
        tier = _tier(name, samples[name])
        if first in groups and name != first:
            uplift = median_uplift(samples[first], samples[name], seed=seed, replicates=replicates)
            tier = replace(tier, uplift=uplift)
        found.append(tier)
    medians = {
        metric: [value for tier in found if (value := tier.statistics[metric].median) is not None]
        for metric in ("pass_rate", "composite", "cost_usd")
    }
    return ModelAnalysis(
        model=model,
        tiers=tuple(found),
        against_baseline=tuple(
            _comparison(model, name, first, samples) for name in there if first in groups and name != first
        ),
        ablation=tuple(_comparison(model, name, before, samples) for before, name in pairwise(there)),
        pass_rate_variance=_across_tiers(formulas.cross_tier_variance, medians["pass_rate"], found),
        composite_variance=_across_tiers(formulas.cross_tier_variance, medians["composite"], found),
        cost_variance=_across_tiers(formulas.cross_tier_variance, medians["cost_usd"], found),
        cost_delta=_across_tiers(formulas.cost_delta, medians["cost_usd"], found),
    )


def _across_tiers(
    of: Callable[[Sequence[float]], float | None], medians: Sequence[float], found: Sequence[TierAnalysis]
) -> float | None:
    # a figure that some tiers lack says nothing about all of them
    return of(medians) if len(medians) == len(found) else None


def _tier(name: str, sample: TierSample) -> TierAnalysis:
    """One tier, not yet compared with others."""
    runs, cases = sample.runs, sample.cases
    outcomes = sample.by_case("pass_rate")
    unpriced = runs.missing("cost_usd")
    middle = sample.median("composite")
    return TierAnalysis(
        tier=name,
        cases=len(cases),
        runs=len(runs),
        unit=sample.unit,
        unjudged=runs.missing("pass_rate"),
        unscored=tuple("/".join(filter(None, case)) for case in cases if case not in outcomes),
        unrated=runs.missing("impl_rate"),
        unpriced=unpriced,
        untimed=runs.missing("duration_seconds"),
        statistics={metric: _metric_statistics(metric, runs, unpriced) for metric in RUN_METRICS},
        pass_rate=sample.mean("pass_rate"),
        impl_rate=sample.mean("impl_rate"),
        by_impl_rate={},
        composite=sample.mean("composite"),
        composite_median=middle,
        grade=_grade(middle),
        cost_usd=None if unpriced else math.fsum(runs.values("cost_usd").tolist()),
        cost_of_pass=Estimate(value=None) if unpriced else sample.price(),
        uplift=Estimate(value=None),
        on_pareto_front=None,
    )


def _metric_statistics(metric: str, runs: TierRuns, unpriced: int) -> MetricStatistics:
    costs = metric in ("cost_usd", "cost_of_pass")
    found = describe(() if costs and unpriced else runs.values(metric))
    figures = {name: getattr(found, name) for name in ("median", "mean", "mode", "min", "max", "std_dev")}
    infinite = tuple(name for name, value in figures.items() if value == math.inf)
    return MetricStatistics(**figures | dict.fromkeys(infinite), count=found.count, infinite=infinite)


def _grade(middle: Estimate) -> TierGrade:
    letter = formulas.grade(middle.value)
    if middle.low is None or middle.high is None:
        return TierGrade(letter=letter)
    letters = [*GRADE_THRESHOLDS, LOWEST_GRADE]
    best, worst = letters.index(formulas.grade(middle.high) or "A"), letters.index(formulas.grade(middle.low) or "F")
    return TierGrade(letter=letter, could_be=tuple(each for each in letters[best : worst + 1] if each != letter))


def _comparison(model: str, tier: str, other: str, samples: Mapping[str, TierSample]) -> TierComparison:
    """A tier against another, before the number of comparisons is known."""
    sides = samples[other], samples[tier]
    there, here = (side.cases.keys() for side in sides)
    return TierComparison(
        model=model,
        tier=tier,
        other=other,
        cases=len(here & there),
        tier_only=len(here - there),
        other_only=len(there - here),
        pass_rate=score_difference(*sides, "pass_rate"),
        composite=score_difference(*sides, "composite"),
        cost_usd=cost_difference(*sides),
        p=_two_sided(*(side.by_case("pass_rate") for side in sides)),
        p_adjusted=None,
    )


def _two_sided(old: Mapping[TierCaseKey, list[float]], new: Mapping[TierCaseKey, list[float]]) -> float | None:
    """Twice the smaller of both exact one-sided p-values of the cases that both have; None if there is none."""
    shared = ((old[case], after) for case, after in new.items() if case in old)
    counts = [PairedCaseCounts(len(before), int(sum(before)), len(after), int(sum(after))) for before, after in shared]
    if not counts:
        return None
    worse = stratified_worse(counts)
    better = stratified_worse(PairedCaseCounts(*each[2:], *each[:2]) for each in counts)
    return min(1.0, 2 * min(worse, better))


def _tested(models: Sequence[ModelAnalysis]) -> dict[tuple[str, frozenset[str]], float]:
    """The p-value of every pair of tiers that was compared."""
    return {
        _pair(each): each.p
        for model in models
        for each in (*model.against_baseline, *model.ablation)
        if each.p is not None
    }


def _pair(each: TierComparison) -> tuple[str, frozenset[str]]:
    return each.model, frozenset((each.tier, each.other))


def _with_holm(models: Sequence[ModelAnalysis]) -> list[ModelAnalysis]:
    """The same with every p-value adjusted for all of them."""
    tested = _tested(models)
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))

    def with_adjusted_p(each: TierComparison) -> TierComparison:
        return replace(each, p_adjusted=adjusted.get(_pair(each)))

    return [
        replace(
            model,
            against_baseline=tuple(map(with_adjusted_p, model.against_baseline)),
            ablation=tuple(map(with_adjusted_p, model.ablation)),
        )
        for model in models
    ]


def _with_front(models: Sequence[ModelAnalysis]) -> list[ModelAnalysis]:
    """The same with those tiers marked that no other beats in mean cost and mean composite at once; ties are kept."""
    best: dict[float, float] = {}
    for price, quality in filter(None, (_cost_and_quality(tier) for model in models for tier in model.tiers)):
        best[price] = max(quality, best.get(price, quality))
    front = set()
    reached = -math.inf
    for price in sorted(best):
        if best[price] > reached:
            reached = best[price]
            front.add((price, reached))

    def is_on_front(tier: TierAnalysis) -> bool | None:
        place = _cost_and_quality(tier)
        return None if place is None else place in front

    return [
        replace(model, tiers=tuple(replace(tier, on_pareto_front=is_on_front(tier)) for tier in model.tiers))
        for model in models
    ]


def _cost_and_quality(tier: TierAnalysis) -> tuple[float, float] | None:
    """Mean cost and mean composite, rounded so that the order in which runs were added up makes no difference."""
    price, quality = tier.statistics["cost_usd"].mean, tier.composite.value
    return None if price is None or quality is None else (round(price, 12), round(quality, 12))


def _frontier(groups: TierGroups, models: Sequence[ModelAnalysis], tasks: Tasks, seed: int) -> CostFrontier:
    """The cheapest tier, and the cheapest way to do each case."""
    priced = [(tier.cost_of_pass, model.model, tier.tier) for model in models for tier in model.tiers]
    least = formulas.frontier(price.value for price, _, _ in priced)
    nothing = Estimate(value=None, infinite=any(price.infinite for price, _, _ in priced)), "", ""
    # of several that are equally cheap the first is named
    cheapest = next((each for each in priced if least is not None and each[0].value == least), nothing)
    prices: dict[TierCaseKey, list[float]] = {}
    for of_model in groups.values():
        for runs in of_model.values():
            if not runs.missing("cost_usd"):
                for case, price in _prices(runs).items():
                    prices.setdefault(case, []).append(price)
    found = [min(prices[case]) for case in sorted(prices)]
    finite = [price for price in found if not math.isinf(price)]
    # which tier does a task cheapest is chosen after the fact, so of these tasks alone it has no interval
    interval = bootstrap(finite, seed=seed) if finite and tasks == "sampled" else None
    return CostFrontier(
        model=cheapest[1],
        tier=cheapest[2],
        cost_of_pass=cheapest[0],
        case_mean=difference_estimate(finite, interval, 0) if finite else Estimate(value=None),
        cases=len(found),
        unsolved=len(found) - len(finite),
    )


def _prices(runs: TierRuns) -> dict[TierCaseKey, float]:
    """What a pass of each case costs, of those of which it is known whether they passed."""
    known = runs.known()
    passes = known.by_task("pass_rate")
    return {
        case: cost_of_pass(costs, [int(passed) for passed in passes[case]]) or 0.0
        for case, costs in known.by_task("cost_usd").items()
    }


def _check(runs: RunTable, judged: Mapping[RunIdentity, object]) -> None:
    import numpy as np

    if not len(runs):
        raise InputError("there is no run to analyse")
    times = np.bincount(runs.repeated(), minlength=len(runs))
    if (times > 1).any():
        again = int((times > 1).argmax())
        raise ValueError(f"{runs.identity(again)} is there {times[again]} times")
    if judged:
        missing = set(judged)
        missing.difference_update(runs.identities())
        unknown = next(filter(missing.__contains__, judged), None)
        if unknown is not None:
            raise ValueError(f"judges rated {unknown}, and there is no such run")
    for name in RUN_AMOUNTS:
        values = runs.amounts[name]
        is_wrong = (values < 0) | (values == np.inf)
        if is_wrong.any():
            row = int(is_wrong.argmax())
            raise ValueError(amount_message(runs.identity(row), name, float(values[row])))
