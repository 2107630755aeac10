"""Impl rates, the share of the requirements that a run met: their sources, and the figures of a tier by each source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from steelyard.errors import InputError
from steelyard.stats.descriptive import describe
from steelyard.tiers import formulas
from steelyard.tiers.judges import RunConsensus
from steelyard.tiers.results import (
    IMPL_RATE_ABOVE_ONE_FLAG,
    IMPL_RATE_DIFFERS_FLAG,
    IMPL_RATES,
    JUDGES_DISAGREE_FLAG,
    NONZERO_EXIT_CODE_FLAG,
    CriterionRating,
    ImplRate,
    ImplRateResult,
    ModelAnalysis,
    PassedBy,
    RunFigures,
    RunFlag,
    RunRating,
    TierRun,
)
from steelyard.tiers.rubrics import SCORE_THRESHOLD_TOLERANCE, is_claim_off


def chosen_impl_rate(
    runs: Sequence[TierRun],
    ratings: Sequence[RunRating],
    criteria: Sequence[CriterionRating],
    wanted: ImplRate | None,
) -> ImplRate | None:
    """What impl rates are taken from: what is wanted, or the first that any run has; None if no run has any.

    Where a run records no score, what its judges claim in total is one, but points go before claims. Raises an InputError if no run has what is wanted.
    """
    has: dict[ImplRate, bool] = {
        "score": any(run.score is not None for run in runs) or any(each.score is not None for each in ratings),
        "points": bool(criteria) or any(each.impl_rate is not None for each in ratings),
        "recorded": any(run.impl_rate is not None for run in runs),
    }
    known = [kind for kind in IMPL_RATES if has[kind]]
    if wanted is not None and not has[wanted]:
        raise InputError(
            f"no run has an impl rate of the kind {wanted}; "
            + (f"these runs have: {', '.join(known)}" if known else "these runs have none of any kind")
        )
    if wanted is None and has["points"] and all(run.score is None for run in runs):
        return "points"
    return wanted or (known[0] if known else None)


def run_figures(
    run: TierRun, consensus: RunConsensus | None, weights: tuple[float, float], kind: ImplRate | None
) -> RunFigures:
    """The metrics of one run, given what its judges say."""
    flags: list[RunFlag] = []
    passed = run.passed
    passed_by: PassedBy = "" if passed is None else "record"
    if consensus is not None and consensus.passed is not None:
        if passed is None:
            passed, passed_by = consensus.passed, "judges"
        elif passed != consensus.passed:
            flags.append(JUDGES_DISAGREE_FLAG)
    by_judges = (consensus.score, consensus.points) if consensus else (None, None)
    known: dict[ImplRate, float | None] = {
        "score": by_judges[0] if run.score is None else run.score,
        "points": by_judges[1],
        "recorded": run.impl_rate,
    }
    rates = {name: rate for name, rate in known.items() if rate is not None}
    if is_claim_off(rates.get("recorded"), rates.get("points")):
        flags.append(IMPL_RATE_DIFFERS_FLAG)
    if any(rate > 1 + SCORE_THRESHOLD_TOLERANCE for rate in rates.values()):
        flags.append(IMPL_RATE_ABOVE_ONE_FLAG)
    if passed and run.exit_code:
        flags.append(NONZERO_EXIT_CODE_FLAG)
    pass_rate = None if passed is None else formulas.pass_rate(passed)
    price = None if pass_rate is None else formulas.cost_of_pass(run.cost_usd, pass_rate)
    return RunFigures(
        experiment=run.experiment,
        model=run.model,
        tier=run.tier,
        case=run.case,
        number=run.number,
        passed=passed,
        pass_rate=pass_rate,
        impl_rate=_share(rates, kind),
        impl_rates=rates,
        composite=_composite(pass_rate, _share(rates, kind), weights),
        cost_usd=run.cost_usd,
        duration_seconds=run.duration_seconds,
        cost_of_pass=None if price is None or math.isinf(price) else price,
        cost_of_pass_infinite=price is not None and math.isinf(price),
        passed_by=passed_by,
        flags=tuple(flags),
    )


def with_impl_rates(
    model: ModelAnalysis, all_runs: Iterable[RunFigures], baseline: str, weights: tuple[float, float]
) -> ModelAnalysis:
    """The same with the figures of each tier by every impl rate that any of its runs has."""
    runs: dict[str, list[RunFigures]] = {}
    for run in all_runs:
        if run.model == model.model:
            runs.setdefault(run.tier, []).append(run)
    kinds = [kind for kind in IMPL_RATES if any(kind in run.impl_rates for of_tier in runs.values() for run in of_tier)]
    medians = {
        (name, kind): describe(list(_composites(of_tier, kind, weights))).median
        for name, of_tier in runs.items()
        for kind in kinds
    }

    def result(name: str, kind: ImplRate) -> ImplRateResult:
        rates = [rate for run in runs[name] if (rate := _share(run.impl_rates, kind)) is not None]
        uplift = formulas.uplift(medians[name, kind], medians.get((baseline, kind))) if name != baseline else None
        return ImplRateResult(
            mean=describe(rates).mean,
            composite_median=medians[name, kind],
            grade=formulas.grade(medians[name, kind]),
            uplift=uplift,
            runs=len(rates),
        )

    tiers = (replace(tier, by_impl_rate={kind: result(tier.tier, kind) for kind in kinds}) for tier in model.tiers)
    return replace(model, tiers=tuple(tiers))


def _composites(runs: Iterable[RunFigures], kind: ImplRate, weights: tuple[float, float]) -> Iterable[float]:
    for run in runs:
        value = _composite(run.pass_rate, _share(run.impl_rates, kind), weights)
        if value is not None:
            yield value


def _composite(pass_rate: float | None, rate: float | None, weights: tuple[float, float]) -> float | None:
    if pass_rate is None or rate is None:
        return None
    return formulas.composite(pass_rate, rate, pass_weight=weights[0], impl_weight=weights[1])


def _share(rates: Mapping[ImplRate, float], kind: ImplRate | None) -> float | None:
    """One of the impl rates as a share; what is above 1 counts as 1 in every figure."""
    rate = rates.get(kind) if kind else None
    return None if rate is None else min(rate, 1.0)
