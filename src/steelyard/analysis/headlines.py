"""What a list of runs reads instead of the journal: headline figures of each model."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis import scoring
from steelyard.analysis.attempts import AttemptTable, Column
from steelyard.analysis.case_attempts import CaseAttempts, attempts_by_case, deciding_measure_of
from steelyard.analysis.case_means import mean_pass, mean_value, total_cost
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.measure import ComparedMeasure
from steelyard.errors import Problem
from steelyard.records import Case, Record, RunInfo
from steelyard.stats.passk import pass_at_k


class ModelHeadline(Record, frozen=True, kw_only=True, gc=False):
    """What a list of runs says of one model (under one tier)."""

    model: str
    tier: str = ""
    attempts: int
    """Attempts that were judged."""
    correct: int
    missing: int
    pass_at_1: Estimate | None = None
    """None where nothing was judged."""
    mean_score: Estimate | None = None
    """None where nothing has a score."""
    on: ComparedMeasure = "passed"
    """What decides: whether attempts passed, or what they scored."""
    cost_usd: float | None = None
    """What the priced replies cost; None when no reply has a price."""

    @property
    def quality(self) -> Estimate | None:
        """The figure that decides; None where nothing was judged."""
        return self.mean_score if self.on == "score" else self.pass_at_1


class RunHeadlines(Record, frozen=True, kw_only=True):
    """What a list of runs says of one run."""

    made_of: str
    """A fingerprint of the files that this was made of."""
    cases: int
    models: tuple[ModelHeadline, ...] = ()


def headlines(info: RunInfo, cases: Sequence[Case], table: AttemptTable) -> tuple[ModelHeadline, ...]:
    """What a list of runs says of each model, by the run's own rule."""
    rule = scoring.find_rule(info.rule, info.rules)
    scores = [digest.measured.score(rule) for digest in table.digests]
    by_column = attempts_by_case(info, cases, table)
    return tuple(_headline(column, list(asked.values()), scores) for column, asked in by_column.items())


def _headline(column: Column, cases: Sequence[CaseAttempts], scores: Sequence[float | None]) -> ModelHeadline:
    pass_at_1, score = mean_pass(pass_at_k, cases, 1), mean_value(cases, scores)
    return ModelHeadline(
        model=column.model,
        tier=column.tier,
        attempts=sum(attempts.judged for attempts in cases),
        correct=sum(attempts.correct for attempts in cases),
        missing=sum(attempts.unjudged for attempts in cases),
        pass_at_1=None if pass_at_1.value is None else pass_at_1,
        mean_score=None if score.value is None else score,
        on=deciding_measure_of(cases),
        cost_usd=total_cost(cases),
    )


ATTEMPT_TABLE_VERSION = 7
"""Goes up when the format of the index changes; older ones are made again."""
MAX_NAMED_DAMAGED_LINES = 20
"""Damaged lines that are named; the others are only counted."""


def problem_sentences(problems: Sequence[Problem], more: int = 0) -> tuple[str, ...]:
    """What could not be read, without the folder; `more` are known only by their number."""
    named = [
        str(problem._replace(where=problem.where.rpartition("/")[2])) for problem in problems[:MAX_NAMED_DAMAGED_LINES]
    ]
    more += len(problems) - len(named)
    return (*named, *([f"and {more:,} more such lines"] if more else []))
