"""What a list of runs says of each model: much less than a summary, and much less work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import scoring
from steelyard.analysis.case_attempts import (
    attempts_by_case,
    case_group,
    mean_pass,
    mean_value,
    shared_groups,
    total_cost,
)
from steelyard.analysis.estimates import Estimate, mean
from steelyard.records import Record
from steelyard.stats.passk import pass_at_k

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.attempts import AttemptTable, Column
    from steelyard.analysis.case_attempts import CaseAttempts
    from steelyard.analysis.summary import CaseSummary, Summary
    from steelyard.records import Case, RunInfo


class ModelHeadline(Record, frozen=True, kw_only=True):
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
    cost_usd: float | None = None
    """What the priced replies cost; None when no reply has a price."""


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
        attempts=sum(len(attempts.judged) for attempts in cases),
        correct=sum(attempts.correct for attempts in cases),
        missing=sum(len(attempts.missing) for attempts in cases),
        pass_at_1=None if pass_at_1.value is None else pass_at_1,
        mean_score=None if score.value is None else score,
        cost_usd=total_cost(row for attempts in cases for row in attempts.answered),
    )


def headlines_from_summary(cases: Sequence[Case], summary: Summary) -> tuple[ModelHeadline, ...]:
    """The same from a summary by the run's own rule."""
    groups = {case.id: case_group(case) for case in cases}
    judged: dict[tuple[str, str], list[CaseSummary]] = {}
    for row in summary.cases:
        if row.attempts:
            judged.setdefault((row.model, row.tier), []).append(row)
    found = []
    for model in summary.models:
        rows = judged.get((model.model, model.tier), [])
        # a run need not ask for pass@1, and has it all the same
        values = [value for row in rows if (value := pass_at_k(row.attempts, row.correct, 1)) is not None]
        shared = shared_groups([groups[row.case] for row in rows])
        found.append(
            ModelHeadline(
                model=model.model,
                tier=model.tier,
                attempts=model.attempts,
                correct=model.correct,
                missing=model.missing,
                pass_at_1=mean(values, model.attempts, groups=shared) if rows else None,
                mean_score=None if model.score.value is None else model.score,
                cost_usd=model.cost_usd,
            )
        )
    return tuple(found)
