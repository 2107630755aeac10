"""Impl rates, the share of the requirements that a run met: their sources, and the figures of a tier by each source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from steelyard.errors import InputError
from steelyard.stats.descriptive import median, plain_mean
from steelyard.tiers import formulas
from steelyard.tiers.judges import RunConsensus
from steelyard.tiers.rating_tables import JudgmentTable
from steelyard.tiers.results import (
    IMPL_RATE_ABOVE_ONE_FLAG,
    IMPL_RATE_DIFFERS_FLAG,
    IMPL_RATES,
    JUDGES_DISAGREE_FLAG,
    NONZERO_EXIT_CODE_FLAG,
    ImplRate,
    ImplRateResult,
    ModelAnalysis,
    RunFlag,
    RunIdentity,
)
from steelyard.tiers.rubrics import SCORE_THRESHOLD_TOLERANCE, is_claim_off
from steelyard.tiers.run_tables import PASSED_BY, RUN_FLAGS, FigureTable, RunTable, TierRuns

if TYPE_CHECKING:
    import numpy.typing as npt


def chosen_impl_rate(runs: RunTable, judgments: JudgmentTable, wanted: ImplRate | None) -> ImplRate | None:
    """What impl rates are taken from: what is wanted, or the first that any run has; None if no run has any.

    Where a run records no score, what its judges claim in total is one, but points go before claims. Raises an InputError if no run has what is wanted.
    """
    is_recorded = {name: bool((runs.amounts[name] >= 0).any()) for name in ("score", "impl_rate")}
    has: dict[ImplRate, bool] = {
        "score": is_recorded["score"] or judgments.has("score"),
        "points": judgments.has_criteria or judgments.has("impl_rate"),
        "recorded": is_recorded["impl_rate"],
    }
    known = [kind for kind in IMPL_RATES if has[kind]]
    if wanted is not None and not has[wanted]:
        raise InputError(
            f"no run has an impl rate of the kind {wanted}; "
            + (f"these runs have: {', '.join(known)}" if known else "these runs have none of any kind")
        )
    if wanted is None and has["points"] and not is_recorded["score"]:
        return "points"
    return wanted or (known[0] if known else None)


def figure_table(
    runs: RunTable, agreed: Mapping[RunIdentity, RunConsensus], weights: tuple[float, float], kind: ImplRate | None
) -> FigureTable:
    """The metrics of all runs, given what their judges say."""
    import numpy as np

    by_judges = _by_judges(runs, agreed)
    recorded, said = runs.passed, by_judges["passed"].astype(np.int8)
    passed = np.where(recorded >= 0, recorded, said)
    passed_by = np.where(recorded >= 0, PASSED_BY.index("record"), np.where(said >= 0, PASSED_BY.index("judges"), 0))
    score = runs.amounts["score"]
    rates: dict[ImplRate, npt.NDArray[Any]] = {
        "score": np.where(np.isnan(score), by_judges["score"], score),
        "points": by_judges["points"],
        "recorded": runs.amounts["impl_rate"],
    }
    flagged: dict[RunFlag, npt.NDArray[Any]] = {
        JUDGES_DISAGREE_FLAG: (recorded >= 0) & (said >= 0) & (recorded != said),
        IMPL_RATE_DIFFERS_FLAG: by_judges["is_off"] == 1,
        IMPL_RATE_ABOVE_ONE_FLAG: np.any([rate > 1 + SCORE_THRESHOLD_TOLERANCE for rate in rates.values()], axis=0),
        NONZERO_EXIT_CODE_FLAG: (passed == 1) & (np.nan_to_num(runs.amounts["exit_code"]) != 0),
    }
    pass_rate = np.where(passed >= 0, passed, np.nan)
    share = _share(rates[kind]) if kind else np.full(len(runs), np.nan)
    cost = runs.amounts["cost_usd"]
    return FigureTable(
        runs.names,
        {
            "number": runs.number,
            "passed": passed,
            "passed_by": passed_by,
            "flags": np.array([flagged[flag] << bit for bit, flag in enumerate(RUN_FLAGS)], np.int8).sum(axis=0),
        },
        {
            "pass_rate": pass_rate,
            "impl_rate": share,
            "composite": _composite(pass_rate, share, weights),
            "cost_usd": cost,
            "duration_seconds": runs.amounts["duration_seconds"],
            "cost_of_pass": np.where((passed == 0) & ~np.isnan(cost), np.inf, np.where(passed == 1, cost, np.nan)),
        },
        rates,
    )


def _by_judges(runs: RunTable, agreed: Mapping[RunIdentity, RunConsensus]) -> dict[str, npt.NDArray[Any]]:
    """What the judges of each run say, and whether its recorded impl rate is off; NaN where they say nothing, and -1 for passed."""
    import numpy as np

    found = {name: np.full(len(runs), np.nan) for name in ("score", "points", "is_off")}
    found["passed"] = np.full(len(runs), -1.0)
    for row, run in enumerate(runs.identities() if agreed else ()):
        if (consensus := agreed.get(run)) is None:
            continue
        for name, value in (("score", consensus.score), ("points", consensus.points), ("passed", consensus.passed)):
            if value is not None:
                found[name][row] = value
        recorded = float(runs.amounts["impl_rate"][row])
        found["is_off"][row] = is_claim_off(None if math.isnan(recorded) else recorded, consensus.points)
    return found


def with_impl_rates(
    model: ModelAnalysis, runs: Mapping[str, TierRuns], baseline: str, weights: tuple[float, float]
) -> ModelAnalysis:
    """The same with the figures of each of its tiers by every impl rate that any of its runs has."""
    import numpy as np

    kinds = [
        kind for kind in IMPL_RATES if any((of_tier.figures.impl_rates[kind] >= 0).any() for of_tier in runs.values())
    ]
    shares = {
        (name, kind): _share(of_tier.figures.impl_rates[kind]) for name, of_tier in runs.items() for kind in kinds
    }
    medians = {}
    for (name, kind), share in shares.items():
        composites = _composite(runs[name].figures.metrics["pass_rate"], share, weights)
        medians[name, kind] = median(composites[~np.isnan(composites)])

    def result(name: str, kind: ImplRate) -> ImplRateResult:
        rates = shares[name, kind]
        known = rates[~np.isnan(rates)]
        uplift = formulas.uplift(medians[name, kind], medians.get((baseline, kind))) if name != baseline else None
        return ImplRateResult(
            mean=plain_mean(known.tolist()) if len(known) else None,
            composite_median=medians[name, kind],
            grade=formulas.grade(medians[name, kind]),
            uplift=uplift,
            runs=len(known),
        )

    tiers = (replace(tier, by_impl_rate={kind: result(tier.tier, kind) for kind in kinds}) for tier in model.tiers)
    return replace(model, tiers=tuple(tiers))


def _composite(pass_rate: Any, rate: Any, weights: tuple[float, float]) -> Any:
    return formulas.composite(pass_rate, rate, pass_weight=weights[0], impl_weight=weights[1])


def _share(rates: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Impl rates as shares; what is above 1 counts as 1 in every figure."""
    import numpy as np

    shares: npt.NDArray[Any] = np.minimum(rates, 1.0)
    return shares
