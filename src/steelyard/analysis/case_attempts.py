"""The attempts of each model at each case."""

from __future__ import annotations

import math
import operator
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, repeat
from typing import Any, NamedTuple, TypeVar

from steelyard.analysis.attempts import (
    NO_PLACE,
    AttemptRow,
    AttemptTable,
    Column,
    VerdictDigest,
    planned_columns,
    row_index,
)
from steelyard.analysis.measure import ComparedMeasure, GradedCounts, deciding_measure
from steelyard.analysis.required_trust import LEFT_OUT
from steelyard.protocols import FailureLabel
from steelyard.records import Case, RunInfo
from steelyard.records.cases import ExpectedClassification
from steelyard.text import most_frequent

MAX_FLAGGED_ATTEMPTS = 20
"""Attempts to look at that are named; the others are only counted."""
Counted = TypeVar("Counted")
Counts = tuple[tuple[Counted, int], ...]
"""How often each of some things occurs."""


class ReplyTotals(NamedTuple):
    """What the replies to some attempts add up to."""

    replies: int = 0
    cost_usd: float | None = None
    """What the priced replies cost; None when no reply has a price."""
    unpriced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    empty: int = 0
    finishes: Counts[str] = ()
    latencies: int = 0
    """How many of the replies have a latency that is known."""
    seconds: float = 0.0
    """The sum of these latencies."""
    waits: Sequence[float] = ()
    """Where the case belongs to a suite: seconds until each reply, infinity for one that timed out."""
    cached: tuple[tuple[tuple[str, ...], int, float], ...] = ()
    """Where replies from the reply cache come from, each with how many, and what was paid there."""


NO_REPLIES = ReplyTotals()


class CaseLabels(NamedTuple):
    """What figures need of a case: its texts and tests may be in a file, and are not held."""

    id: str
    suite: str
    group: str
    expected_classification: ExpectedClassification

    @classmethod
    def of(cls, case: Case) -> CaseLabels:
        # a hundred thousand cases have few suites
        return cls(case.id, sys.intern(case.suite), sys.intern(case.group), case.expected_classification)


@dataclass(slots=True)
class CaseAttempts:
    """What the attempts of one model, under one tier, at one case add up to: as large for a million attempts as for ten."""

    case: CaseLabels
    is_asked: bool = False
    """Whether any fact is about it."""
    judged: int = 0
    correct: int = 0
    digests: Counts[int] = ()
    """How many judged attempts have each digest."""
    classes: Counts[str] = ()
    """How many judged attempts are of each class."""
    scores: Counts[float] = ()
    """How many judged attempts have each score, in ascending order; those without one are left out."""
    graded: int = 0
    """How many judged attempts were measured by their score, rather than passed or failed by themselves."""
    cost: float | None = 0.0
    """What the judged attempts cost; None if a price is unknown."""
    first_wrong: int | None = None
    """The number of the first attempt that was judged and not correct; None if there was none."""
    why: str = ""
    """The most frequent reason of these."""
    flagged: tuple[AttemptRow, ...] = ()
    """The first judged attempts that were caught forging their result, and the first that did not come out the same every time."""
    replies: ReplyTotals = NO_REPLIES
    missing: Counts[str] = ()
    """How many attempts have no verdict, by the reason."""

    @property
    def group(self) -> str:
        """Cases of one group are not independent."""
        return case_group(self.case)

    @property
    def unjudged(self) -> int:
        """How many attempts have no verdict."""
        return sum(count for _, count in self.missing)

    @property
    def left_out(self) -> int:
        """How many of these were left out because nobody can judge their case as far apart as it is required."""
        return sum(count for reason, count in self.missing if reason.startswith(LEFT_OUT))

    @property
    def planned(self) -> int:
        return self.judged + self.unjudged

    def values(self, of: Sequence[float | None]) -> list[float]:
        """One value for every judged attempt that has it, given the value of each digest."""
        known = ((value, count) for digest, count in self.digests if (value := of[digest]) is not None)
        return [each for value, count in known for each in repeat(value, count)]


def deciding_measure_of(cases: Iterable[CaseAttempts]) -> ComparedMeasure:
    """What decides about the attempts of a model: whether they passed, or what they scored."""
    return deciding_measure(GradedCounts(each.graded, each.correct, each.scores) for each in cases)


CasesByColumn = dict[Column, dict[int, CaseAttempts]]
"""By model and tier, then by the index of the case; both sorted."""


def attempts_by_case(
    info: RunInfo,
    cases: Sequence[Case],
    table: AttemptTable,
    *,
    rows: Iterable[AttemptRow] | None = None,
    with_replies: bool = True,
) -> CasesByColumn:
    """All rows, or some of them, by model and case, with the attempts that were planned and not begun; rows are read once, in order.

    Without replies, only where those of the reply cache come from is known of them.
    """
    # a model that never answered is missing, not absent
    found: CasesByColumn = {column: {} for column in planned_columns(info)}
    by_judges = {order for order, case in enumerate(cases) if case.by_judges}
    totals = _CaseTotals(table.digests, with_replies=with_replies)
    for (order, index), group in groupby(table.rows if rows is None else rows, key=operator.itemgetter(0, 1)):
        if order not in by_judges:
            found.setdefault(table.columns[index], {})[order] = totals.of(cases[order], list(group))
    for column, by_case in found.items():
        for order, case in enumerate(cases):
            if order in by_judges or (order not in by_case and info.unrecorded.get(column.model, 0)):
                continue
            attempts = by_case.get(order) or by_case.setdefault(order, CaseAttempts(CaseLabels.of(case)))
            if (unasked := (info.fair_samples(column.model, case.id) or 0) - attempts.planned) > 0:
                missing = Counter(dict(attempts.missing)) + Counter({"not asked yet": unasked})
                attempts.missing = tuple(missing.items())
    # where nothing is missing they are in order already, and another dictionary of many cases is large
    return {
        column: by_case if all(map(operator.lt, by_case, islice(by_case, 1, None))) else dict(sorted(by_case.items()))
        for column, by_case in sorted(found.items())
    }


class _CaseTotals:
    """Adds up the attempts at one case after the other; what many cases have alike is kept once."""

    def __init__(self, digests: Sequence[VerdictDigest], *, with_replies: bool) -> None:
        self._with_replies = with_replies
        self._tampered = {index for index, digest in enumerate(digests) if digest.tampered}
        self._flagged_digests = {
            flag: {index for index, digest in enumerate(digests) if digest.flag == flag}
            for flag in sorted({digest.flag for digest in digests if digest.flag})
        }
        self._disagreed = {index for index, digest in enumerate(digests) if digest.disagreed}
        self._graded = {index for index, digest in enumerate(digests) if digest.graded}
        self._shared: dict[Counts[Any], Counts[Any]] = {}
        self._shared_scores: dict[Counts[float], Counts[float]] = {}

    def of(self, case: Case, rows: Sequence[AttemptRow]) -> CaseAttempts:
        judged = [row for row in rows if row.digest != NO_PLACE]
        wrong = [row for row in judged if row.outcome != "correct"]
        correct = len(judged) - len(wrong)
        prices = [row.cost_usd for row in judged if row.cost_usd is not None]
        scores = _counted(row.score for row in judged if row.score is not None)
        return CaseAttempts(
            CaseLabels.of(case),
            is_asked=True,
            judged=len(judged),
            correct=correct,
            digests=self._counts(_counted(row.digest for row in judged)),
            classes=self._counts(_counted(chain(repeat("pass", correct), (row.failure for row in wrong)))),
            # scores are kept apart: 1 and 1.0 are equal, and yet not the same
            scores=self._shared_scores.setdefault(score_counts := tuple(sorted(scores.items())), score_counts),
            graded=sum(row.digest in self._graded for row in judged) if self._graded else 0,
            cost=(math.fsum(prices) if prices else 0.0) if len(prices) == len(judged) else None,
            first_wrong=min((row.number for row in wrong), default=None),
            why=most_frequent(row.reason for row in wrong) if wrong else "",
            flagged=self._flagged(judged),
            replies=self._replies(case, [row for row in rows if row.reply_place != NO_PLACE]),
            missing=self._counts(
                _counted(
                    "no verdict yet"
                    if row.failure_place == NO_PLACE and row.label != FailureLabel.TRUST_TOO_LOW
                    else row.reason
                    for row in rows
                    if row.digest == NO_PLACE
                )
            ),
        )

    def _counts(self, counts: Mapping[Any, int]) -> Counts[Any]:
        known = tuple(counts.items())
        return self._shared.setdefault(known, known)

    def _flagged(self, judged: Sequence[AttemptRow]) -> tuple[AttemptRow, ...]:
        kinds = [wanted for wanted in (self._tampered, *self._flagged_digests.values(), self._disagreed) if wanted]
        if not kinds:
            return ()
        first = (islice((row for row in judged if row.digest in wanted), MAX_FLAGGED_ATTEMPTS) for wanted in kinds)
        return tuple(sorted({row[:3]: row for rows in first for row in rows}.values(), key=row_index))

    def _replies(self, case: Case, rows: Sequence[AttemptRow]) -> ReplyTotals:
        if not self._with_replies:
            rows = [row for row in rows if row.cached_from]
        if not rows:
            return NO_REPLIES
        prices = [row.cost_usd for row in rows if row.cost_usd is not None]
        seconds = [row.latency for row in rows if row.latency is not None]
        cached: dict[tuple[str, ...], list[AttemptRow]] = {}
        for row in rows:
            if row.cached_from:
                cached.setdefault(row.cached_from, []).append(row)
        return ReplyTotals(
            replies=len(rows),
            cost_usd=math.fsum(prices) if prices else None,
            unpriced=len(rows) - len(prices),
            input_tokens=sum(row.input_tokens or 0 for row in rows),
            output_tokens=sum(row.output_tokens or 0 for row in rows),
            empty=sum(row.is_empty for row in rows),
            finishes=self._counts(_counted(row.finish for row in rows)),
            latencies=len(seconds),
            seconds=math.fsum(seconds) if seconds else 0.0,
            waits=array("d", (row.wait for row in rows if row.wait is not None)) if case.suite else (),
            cached=tuple(
                (sources, len(of), math.fsum(row.cost_usd or 0.0 for row in of)) for sources, of in cached.items()
            ),
        )


def _counted(things: Iterable[Counted]) -> dict[Counted, int]:
    """How often each occurs; a Counter takes four times as long for a few."""
    found: dict[Counted, int] = {}
    for thing in things:
        found[thing] = found.get(thing, 0) + 1
    return found


def case_group(case: Case | CaseLabels) -> str:
    """The group of a case; a case without one is a group of its own."""
    return f"group {case.group}" if case.group else f"case {case.id}"
