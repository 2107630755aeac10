"""One side of a comparison: how often each case passed, and with which scores."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from steelyard.analysis.case_attempts import attempts_by_case
from steelyard.analysis.suites import ordered_class_counts
from steelyard.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.analysis.attempts import AttemptRow, AttemptTable
    from steelyard.analysis.case_attempts import CaseAttempts
    from steelyard.records import Case, RunInfo


class Trials(Record, frozen=True, kw_only=True):
    """All judged attempts of one model at one case."""

    case: str
    tests: str = ""
    """The digest of the tests that judged them; empty where it is not known."""
    judged_by: tuple[str, ...] = ()
    """The verifiers that judged them, with the versions of their rules; empty where that is not known."""
    attempts: int
    passes: int
    scores: tuple[tuple[float, int], ...] = ()
    """Each score with how many attempts have it, in ascending order; attempts without a score are left out."""
    suite: str = ""
    """The suite that the case belongs to; empty where it belongs to no suite, or that is not known."""
    classes: tuple[tuple[str, int], ...] = ()
    """Each class of response with how many attempts are of it, where the case belongs to a suite; empty where it is not known."""
    critical: bool = False
    cost_usd: float | None = None
    """What all these attempts cost; None where a price is unknown."""
    further_attempts: int | None = None
    """Attempts beyond those that all cases got, because this one looked worse; None where none were planned.

    They count in no mean: that they were asked depends on what the others brought.
    """
    further_passes: int = 0

    @property
    def score(self) -> float | None:
        """The mean score of the attempts that have one."""
        every = self.every_score
        return math.fsum(every) / len(every) if every else None

    @property
    def every_score(self) -> tuple[float, ...]:
        """One score for every attempt that has one."""
        return tuple(score for score, times in self.scores for _ in range(times))


class Side(Record, frozen=True, kw_only=True):
    """The trials of some models, and where they come from."""

    name: str
    """As the user called it."""
    rule: str
    models: dict[str, tuple[Trials, ...]]
    runs: tuple[str, ...] = ()
    """The ids of the runs it was made of, where it is a baseline."""


def run_side(name: str, rule: str, info: RunInfo, cases: Sequence[Case], table: AttemptTable) -> Side:
    """The attempts of a run, scored by a rule, as a side of a comparison."""
    samples = info.samples or 0
    # further attempts were made because of what the others brought: they count in no mean
    fair = [row for row in table.rows if not info.more or row.number <= samples]
    further: dict[tuple[int, int], list[AttemptRow]] = {}
    if info.more:
        for row in table.rows:
            if row.number > samples and row.outcome != "missing":
                further.setdefault((row.column, row.case), []).append(row)
    indexes = {column: index for index, column in enumerate(table.columns)}
    models: dict[str, tuple[Trials, ...]] = {}
    for column, asked in attempts_by_case(info, cases, table, rows=fair).items():
        models[column.label] = tuple(
            _trials(
                attempts,
                further.get((indexes[column], order), []),
                judged_by=tuple(sorted({table.digests[row.digest].rules for row in attempts.judged})),
                is_planned=info.more.get(column.model, {}).get(attempts.case.id, 0) > samples,
            )
            for order, attempts in asked.items()
        )
    runs = (info.id, *(part.id for part in info.merged))
    return Side(name=name, rule=rule, models=models, runs=runs)


def _trials(
    attempts: CaseAttempts, further: Sequence[AttemptRow], *, judged_by: tuple[str, ...], is_planned: bool
) -> Trials:
    case = attempts.case
    return Trials(
        case=case.id,
        tests=case.tests_digest,
        judged_by=judged_by,
        attempts=len(attempts.judged),
        passes=attempts.correct,
        scores=score_counts(row.score for row in attempts.judged),
        suite=case.suite,
        classes=tuple(ordered_class_counts(attempts.classes).items()) if case.suite else (),
        critical=case.critical,
        cost_usd=attempts.cost,
        further_attempts=len(further) if is_planned else None,
        further_passes=sum(row.outcome == "correct" for row in further),
    )


def score_counts(scores: Iterable[float | None]) -> tuple[tuple[float, int], ...]:
    """Each score with how often it occurs, in ascending order; what has no score is left out."""
    return tuple(sorted(Counter(score for score in scores if score is not None).items()))
