"""What the judges of a tier's runs say, recomputed from the points they gave."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.stats.descriptive import percentile
from steelyard.tiers import agreement
from steelyard.tiers.agreement import PanelAgreement, consensus, panel_agreement
from steelyard.tiers.formulas import points_share
from steelyard.tiers.results import (
    IMPL_RATES,
    ClaimCheck,
    ClaimColumn,
    CriterionRating,
    ImplRate,
    JudgeIdentity,
    RunIdentity,
    RunRating,
)
from steelyard.tiers.rubrics import is_claim_off

SHIFT_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class RunConsensus(NamedTuple):
    """A panel's result for one run."""

    points: float | None
    """The mean of the shares of points that its judges gave; None if none is valid."""
    score: float | None
    """The mean of the totals that they claim."""
    middle: float | None
    """The median of the shares, which other tools record."""
    passed: bool | None
    """What more than half of its judges say."""


class ExperimentJudgments(NamedTuple):
    """The judges' results for an experiment."""

    opinions: dict[RunIdentity, RunConsensus]
    panel: PanelAgreement
    shifts: dict[str, tuple[float, ...]]
    """How much more each judge gives a run than the mean of the others: percentiles 5, 25, 50, 75 and 95 over the runs."""
    own: tuple[str, ...]
    """Models that are judges of their own runs."""
    claims: tuple[ClaimCheck, ...]
    empty: int
    """Ratings in which no criterion applies: they do not count."""


def experiment_judgments(
    ratings: Iterable[RunRating], criteria: Iterable[CriterionRating], *, seed: int, by: ImplRate = "points"
) -> ExperimentJudgments | None:
    """What judges say of every run and how far they agree; None if there are none.

    A judge's share is recomputed where there are criteria, as points given over points to give: the weighted mean of the
    criteria's scores with their points as weights. A criterion that does not apply is in neither sum, and where none
    applies there is no rating. The judge's own share is taken only where there are no criteria. A share above 1 counts as
    1. Agreement is that of the shares, or `by` score that of the totals that judges claim. A judge that was asked several
    times has one voice.
    """
    given, checks, empty = _rated(ratings, criteria)
    if not given:
        return None
    # what no judge gave is nothing that judges can agree on
    shown = next((kind for kind in (by, *IMPL_RATES) if _is_given(given, kind)), by)
    voices = {run: [each.voice(shown) for each in of_run] for run, of_run in given.items()}
    runs = {_attempt_identity(run): run for run in given}
    whole = panel_agreement((each for of_run in voices.values() for each in of_run), seed=seed)
    opinions = {}
    for ruling in whole.rulings:
        run = runs[ruling.thing]
        points, scores = (
            list(_scores_by_judge(each.voice(kind) for each in given[run]).values()) for kind in ("points", "score")
        )
        opinions[run] = RunConsensus(
            consensus(points).score,
            consensus(scores).score,
            median(points) if points else None,
            ruling.consensus.passed,
        )
    outliers = whole.outliers and tuple(
        replace(each, thing=replace(each.thing, case="/".join(_case(runs[each.thing])))) for each in whole.outliers
    )
    own = {run.model for run, of_run in voices.items() if any(each.judge == run.model for each in of_run)}
    shifts = _shifts({run: _scores_by_judge(of_run) for run, of_run in voices.items()})
    return ExperimentJudgments(
        opinions, replace(whole, rulings=(), outliers=outliers), shifts, tuple(sorted(own)), checks, empty
    )


def _is_given(given: Mapping[RunIdentity, Sequence[_RatedRun]], kind: ImplRate) -> bool:
    return any(each.voice(kind).score is not None for of_run in given.values() for each in of_run)


class _RatedRun(NamedTuple):
    """One judge's rating of a run, with what its points add up to."""

    rating: agreement.JudgeRating
    points: float | None
    score: float | None

    def voice(self, by: ImplRate) -> agreement.JudgeRating:
        share = self.score if by == "score" else self.points
        return replace(self.rating, score=None if share is None else min(share, 1.0))


def _rated(
    ratings: Iterable[RunRating], criteria: Iterable[CriterionRating]
) -> tuple[dict[RunIdentity, list[_RatedRun]], tuple[ClaimCheck, ...], int]:
    """Every rating by its run, how far claims are off, and how many ratings do not count because nothing applies."""
    given: dict[tuple[RunIdentity, JudgeIdentity], _Points] = {}
    for each in criteria:
        given.setdefault((each.run, each.judge), _Points()).add(each)
    found: dict[RunIdentity, list[_RatedRun]] = {}
    distances: dict[ClaimColumn, list[float]] = {"score": [], "impl_rate": []}
    empty = 0
    listed = list(ratings)
    rated = {(rating.run, rating.judge) for rating in listed}
    listed += [RunRating(run=run, judge=judge) for run, judge in given if (run, judge) not in rated]
    for rating in listed:
        points = given.get((rating.run, rating.judge), _Points())
        share = points.share
        nothing_applies = share is None and points.are_known
        empty += nothing_applies and rating.valid
        off = []
        claims: dict[ClaimColumn, float | None] = {"score": rating.score, "impl_rate": rating.impl_rate}
        for claim, claimed in claims.items():
            if claimed is not None and share is not None and rating.valid:
                off.append(is_claim_off(claimed, share))
                distances[claim].append(abs(claimed - share))
        found.setdefault(rating.run, []).append(
            _RatedRun(
                agreement.JudgeRating(
                    thing=_attempt_identity(rating.run),
                    judge=rating.judge.model,
                    repeat=rating.judge.number,
                    valid=rating.valid,
                    passed=None if nothing_applies else rating.passed,
                    categories=points.shares,
                    claim_off=any(off),
                ),
                points=share if points.are_known else rating.impl_rate,
                score=None if nothing_applies else rating.score,
            )
        )
    checks = tuple(
        ClaimCheck(
            claim=claim,
            checked=len(all_distances),
            off=sum(is_claim_off(each, 0.0) for each in all_distances),
            mean_distance=math.fsum(all_distances) / len(all_distances),
        )
        for claim, all_distances in distances.items()
        if all_distances
    )
    return found, checks, empty


class _Points:
    """The points that one judge gave one run."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[float, float]] = {}
        self.are_known = False
        """Whether points are what it gave, even if none applies."""

    def add(self, each: CriterionRating) -> None:
        self.are_known = self.are_known or each.max is not None or each.score is None
        if each.achieved is not None and each.max is not None:
            self._given[each.criterion] = each.achieved, each.max

    @property
    def share(self) -> float | None:
        return points_share(self._given.values())

    @property
    def shares(self) -> dict[str, float | None]:
        return {name: points_share((each,)) for name, each in self._given.items()}


def _attempt_identity(run: RunIdentity) -> agreement.AttemptIdentity:
    # both names in one text that no other two names give
    case = msgspec.json.encode(_case(run)).decode()
    return agreement.AttemptIdentity(case=case, model=run.model, tier=run.tier, number=run.number)


def _case(run: RunIdentity) -> tuple[str, str]:
    return run.experiment, run.case


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
