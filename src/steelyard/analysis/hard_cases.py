"""The cases that failed most, over all models."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from steelyard.analysis.summary import CaseSummary, Summary


class HardCase(NamedTuple):
    """A case that failed, over all models (and tiers)."""

    case: str
    attempts: int
    correct: int
    best: CaseSummary
    """The model that did best at it."""
    failed: CaseSummary
    """The best of those that failed at it: what a weak model cannot do says little about a case."""


def hardest_cases(summary: Summary, limit: int = 5) -> list[HardCase]:
    """The cases that failed most often over all models; of equals, those first at which the best model failed most."""
    return heapq.nsmallest(
        limit, _failed_cases(summary), key=lambda hard: (hard.correct / hard.attempts, _share(hard.best))
    )


def _failed_cases(summary: Summary) -> Iterator[HardCase]:
    for case, of_case in groupby(summary.cases, key=attrgetter("case")):
        rows = [row for row in of_case if row.attempts]
        if any(row.correct < row.attempts for row in rows):
            yield HardCase(
                case,
                sum(row.attempts for row in rows),
                sum(row.correct for row in rows),
                best=max(rows, key=_share),
                failed=max((row for row in rows if row.correct < row.attempts), key=_share),
            )


def _share(row: CaseSummary) -> float:
    return row.correct / row.attempts
