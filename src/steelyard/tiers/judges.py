"""What the judges of a tier's runs say, recomputed from the points they gave."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.stats.descriptive import percentile
from steelyard.tiers import agreement
from steelyard.tiers.agreement import PanelAgreement, PanelRatings, consensus
from steelyard.tiers.formulas import points_share
from steelyard.tiers.rating_tables import CriterionMarks, JudgmentTable
from steelyard.tiers.results import (
    IMPL_RATES,
    ClaimCheck,
    ClaimColumn,
    CriterionRating,
    ImplRate,
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
    ratings: Iterable[RunRating] | JudgmentTable,
    criteria: Iterable[CriterionRating] = (),
    *,
    seed: int,
    by: ImplRate = "points",
) -> ExperimentJudgments | None:
    """What judges say of every run and how far they agree; None if there are none.

    A judge's share is recomputed where there are criteria, as points given over points to give: the weighted mean of the
    criteria's scores with their points as weights. A criterion that does not apply is in neither sum, and where none
    applies there is no rating. The judge's own share is taken only where there are no criteria. A share above 1 counts as
    1. Agreement is that of the shares, or `by` score that of the totals that judges claim. A judge that was asked several
    times has one voice.
    """
    table = JudgmentTable.of(ratings, criteria)
    if not len(table):
        return None
    shares = _Shares(table)
    # what no judge gave is nothing that judges can agree on
    shown = next((kind for kind in (by, *IMPL_RATES) if shares.are_given(kind)), by)
    panel, opinions, own = PanelRatings(), {}, set()
    shifts: dict[str, array[float]] = {}
    for thing, rows in table.by_run():
        run, voices = table.run(rows[0]), [shares.voice(row, thing, shown) for row in rows]
        ruling = panel.add(thing, voices)
        points, scores = (
            list(_scores_by_judge(zip(voices, shares.of(rows, kind), strict=True)).values())
            for kind in ("points", "score")
        )
        opinions[run] = RunConsensus(
            consensus(points).score, consensus(scores).score, median(points) if points else None, ruling.passed
        )
        if any(each.judge == run.model for each in voices):
            own.add(run.model)
        for judge, shift in _shifts(_scores_by_judge((each, each.score) for each in voices)):
            shifts.setdefault(judge, array("d")).append(shift)
    whole = panel.agreement(seed=seed)
    outliers = whole.outliers and tuple(
        replace(each, thing=replace(each.thing, case="/".join(msgspec.json.decode(each.thing.case))))
        for each in whole.outliers
    )
    return ExperimentJudgments(
        opinions,
        replace(whole, outliers=outliers),
        {
            judge: tuple(value for share in SHIFT_QUANTILES if (value := percentile(shifts[judge], share)) is not None)
            for judge in sorted(shifts)
        },
        tuple(sorted(own)),
        shares.checks(),
        shares.empty,
    )


class _Shares:
    """What the points of each rating add up to, by its row, and how far the claims of judges are off."""

    def __init__(self, table: JudgmentTable) -> None:
        self._table = table
        self._points, self._scores, self._are_off = array("d"), array("d"), bytearray()
        self._distances: dict[ClaimColumn, array[float]] = {"score": array("d"), "impl_rate": array("d")}
        self.empty = 0
        """Ratings that do not count because nothing applies."""
        for row, rating in enumerate(table.ratings()):
            points = _Points(table.marks(row))
            share = points.share
            nothing_applies = share is None and points.are_known
            self.empty += nothing_applies and rating.valid
            self._are_off.append(self._is_off(rating, share))
            given = share if points.are_known else rating.impl_rate
            self._points.append(math.nan if given is None else given)
            self._scores.append(math.nan if nothing_applies or rating.score is None else rating.score)

    def _is_off(self, rating: RunRating, share: float | None) -> bool:
        if share is None or not rating.valid:
            return False
        claims: dict[ClaimColumn, float | None] = {"score": rating.score, "impl_rate": rating.impl_rate}
        known = {claim: claimed for claim, claimed in claims.items() if claimed is not None}
        for claim, claimed in known.items():
            self._distances[claim].append(abs(claimed - share))
        return any(is_claim_off(claimed, share) for claimed in known.values())

    def are_given(self, kind: ImplRate) -> bool:
        """Whether any rating has a share of this kind."""
        return any(share == share for share in (self._scores if kind == "score" else self._points))

    def of(self, rows: Iterable[int], kind: ImplRate) -> Iterator[float | None]:
        """The shares of some ratings; what is above 1 counts as 1."""
        shares = self._scores if kind == "score" else self._points
        return (None if shares[row] != shares[row] else min(shares[row], 1.0) for row in rows)

    def voice(self, row: int, thing: agreement.AttemptIdentity, kind: ImplRate) -> agreement.JudgeRating:
        """What a rating says of its run by the shares of a kind."""
        rating, points = self._table.rating(row), _Points(self._table.marks(row))
        return agreement.JudgeRating(
            thing=thing,
            judge=rating.judge.model,
            repeat=rating.judge.number,
            valid=rating.valid,
            score=next(self.of((row,), kind)),
            passed=None if points.share is None and points.are_known else rating.passed,
            categories=points.shares,
            claim_off=bool(self._are_off[row]),
        )

    def checks(self) -> tuple[ClaimCheck, ...]:
        """How far the claims of judges are from their points."""
        return tuple(
            ClaimCheck(
                claim=claim,
                checked=len(distances),
                off=sum(is_claim_off(each, 0.0) for each in distances),
                mean_distance=math.fsum(distances) / len(distances),
            )
            for claim, distances in self._distances.items()
            if distances
        )


class _Points:
    """The points that one judge gave one run."""

    def __init__(self, marks: Iterable[CriterionMarks]) -> None:
        self._given: dict[str, tuple[float, float]] = {}
        self.are_known = False
        """Whether points are what it gave, even if none applies."""
        for each in marks:
            self.are_known = self.are_known or each.max is not None or each.score is None
            if each.achieved is not None and each.max is not None:
                self._given[each.criterion] = each.achieved, each.max

    @property
    def share(self) -> float | None:
        return points_share(self._given.values())

    @property
    def shares(self) -> dict[str, float | None]:
        return {name: points_share((each,)) for name, each in self._given.items()}


def _scores_by_judge(shares: Iterable[tuple[agreement.JudgeRating, float | None]]) -> dict[str, float]:
    """The share that each judge gives a run, given that of each rating."""
    together: dict[str, list[float | None]] = {}
    for each, share in shares:
        together.setdefault(each.judge, []).append(share if each.valid else None)
    mean_scores = {judge: consensus(scores).score for judge, scores in together.items()}
    return {judge: score for judge, score in mean_scores.items() if score is not None}


def _shifts(scores: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """How much more each judge gives one run than the mean of the others."""
    for judge, score in scores.items():
        others = consensus(other for name, other in scores.items() if name != judge).score
        if others is not None:
            yield judge, score - others
