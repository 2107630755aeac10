"""What the judges of a tier's runs say, recomputed from the points they gave."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.stats.descriptive import percentile
from steelyard.tiers import agreement
from steelyard.tiers.agreement import PanelAgreement, consensus, panel_agreement
from steelyard.tiers.results import CriterionRating, JudgeIdentity, RunIdentity, RunRating
from steelyard.tiers.rubrics import CLAIM_TOLERANCE, SCORE_THRESHOLD_TOLERANCE

SHIFT_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class RunConsensus(NamedTuple):
    """What a panel makes of one run."""

    rate: float | None
    """The mean of its judges' shares; None where none is valid."""
    middle: float | None
    """The median of them, which other tools record."""
    passed: bool | None
    """What more than half of its judges say."""


class ExperimentJudgments(NamedTuple):
    """What the judges of an experiment make of it."""

    opinions: dict[RunIdentity, RunConsensus]
    panel: PanelAgreement
    shifts: dict[str, tuple[float, ...]]
    """How much more each judge gives a run than the mean of the others: percentiles 5, 25, 50, 75 and 95 over the runs."""
    own: tuple[str, ...]
    """Models that are judges of their own runs."""


def experiment_judgments(
    ratings: Iterable[RunRating], criteria: Iterable[CriterionRating], *, seed: int
) -> ExperimentJudgments | None:
    """What judges say of every run and how far they agree; None where there are none.

    A judge's share is recomputed where there are criteria, as points given over points to give: the weighted mean of the
    criteria's scores with their points as weights. A criterion that does not apply is in neither sum. The judge's own
    share, or else its own total, is taken only where there are none. A judge that was asked several times has one voice.
    """
    found = _ratings(ratings, criteria)
    if not found:
        return None
    runs = {_attempt_identity(run): run for run in found}
    whole = panel_agreement((each for of_run in found.values() for each in of_run), seed=seed)
    voices = {run: _scores_by_judge(of_run) for run, of_run in found.items()}
    opinions = {}
    for ruling in whole.rulings:
        run, agreed = runs[ruling.thing], ruling.consensus
        rates = list(voices[run].values())
        opinions[run] = RunConsensus(agreed.score, median(rates) if rates else None, agreed.passed)
    outliers = whole.outliers and tuple(
        replace(each, thing=replace(each.thing, case="/".join(_case(runs[each.thing])))) for each in whole.outliers
    )
    own = {run.model for run, of_run in found.items() if any(each.judge == run.model for each in of_run)}
    return ExperimentJudgments(
        opinions, replace(whole, rulings=(), outliers=outliers), _shifts(voices), tuple(sorted(own))
    )


def _ratings(
    ratings: Iterable[RunRating], criteria: Iterable[CriterionRating]
) -> dict[RunIdentity, list[agreement.JudgeRating]]:
    """Every rating as a panel knows it, by run."""
    given: dict[tuple[RunIdentity, JudgeIdentity], dict[str, tuple[float, float]]] = {}
    for each in criteria:
        points = given.setdefault((each.run, each.judge), {})
        if each.achieved is not None and each.max is not None:
            points[each.criterion] = each.achieved, each.max
    found: dict[RunIdentity, list[agreement.JudgeRating]] = {}
    for rating in ratings:
        claim = rating.score if rating.impl_rate is None else rating.impl_rate
        points = given.pop((rating.run, rating.judge), {})
        counted = _share(points.values())
        found.setdefault(rating.run, []).append(
            agreement.JudgeRating(
                thing=_attempt_identity(rating.run),
                judge=rating.judge.model,
                repeat=rating.judge.number,
                valid=rating.valid,
                score=claim if counted is None else counted,
                passed=rating.passed,
                categories=_shares(points),
                claim_off=claim is not None
                and counted is not None
                and abs(claim - counted) > CLAIM_TOLERANCE + SCORE_THRESHOLD_TOLERANCE,
            )
        )
    for (run, judge), points in given.items():
        found.setdefault(run, []).append(
            agreement.JudgeRating(
                thing=_attempt_identity(run),
                judge=judge.model,
                repeat=judge.number,
                score=_share(points.values()),
                categories=_shares(points),
            )
        )
    return found


def _attempt_identity(run: RunIdentity) -> agreement.AttemptIdentity:
    # both names in one text that no other two names give
    case = msgspec.json.encode(_case(run)).decode()
    return agreement.AttemptIdentity(case=case, model=run.model, tier=run.tier, number=run.number)


def _case(run: RunIdentity) -> tuple[str, str]:
    return run.experiment, run.case


def _shares(points: Mapping[str, tuple[float, float]]) -> dict[str, float | None]:
    return {name: _share((each,)) for name, each in points.items()}


def _share(points: Collection[tuple[float, float]]) -> float | None:
    most = math.fsum(most for _, most in points)
    return math.fsum(achieved for achieved, _ in points) / most if most else None


def _scores_by_judge(ratings: Iterable[agreement.JudgeRating]) -> dict[str, float]:
    """The share that each judge gives a run."""
    together: dict[str, list[float | None]] = {}
    for each in ratings:
        together.setdefault(each.judge, []).append(each.score if each.valid else None)
    mean_scores = {judge: consensus(scores).score for judge, scores in together.items()}
    return {judge: score for judge, score in mean_scores.items() if score is not None}


def _shifts(voices: Mapping[RunIdentity, Mapping[str, float]]) -> dict[str, tuple[float, ...]]:
    found: dict[str, list[float]] = {}
    for of_run in voices.values():
        for judge, score in of_run.items():
            others = consensus(other for name, other in of_run.items() if name != judge).score
            if others is not None:
                found.setdefault(judge, []).append(score - others)
    return {
        judge: tuple(value for share in SHIFT_QUANTILES if (value := percentile(found[judge], share)) is not None)
        for judge in sorted(found)
    }
