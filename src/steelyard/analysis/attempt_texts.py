"""Attempts with their texts, for reports and pages that show what was asked and answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.analysis import scoring
from steelyard.analysis.attempts import (
    AttemptOutcome,
    AttemptRow,
    AttemptTable,
    Column,
    FactNotes,
    placed_attempt_table,
    row_index,
)
from steelyard.records import Case, Fact, Failure, Judgment, Reply, RunInfo, Verdict


class AttemptText(NamedTuple):
    """One attempt with its texts."""

    case: Case
    model: str
    tier: str
    number: int
    reply: Reply | None
    verdict: Verdict | None
    """None also when the stored verdict is of other tests than the case has now."""
    failure: Failure | None
    """What stands between this attempt and its verdict."""
    correct: bool | None
    score: float | None


def attempt_texts(
    info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact], *, rule: str | None = None
) -> tuple[AttemptText, ...]:
    """Every attempt with its texts: cases in order, then models, then numbers."""
    return attempts_with_texts(info, cases, facts, rule=rule)[1]


def attempts_with_texts(
    info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact], *, rule: str | None = None
) -> tuple[AttemptTable, tuple[AttemptText, ...]]:
    """The attempts of a run, and the same with their texts."""
    by_place: dict[int, Fact] = {}

    def placed() -> Iterator[tuple[int, Fact]]:
        for place, fact in enumerate(facts):
            if not isinstance(fact, Judgment):
                by_place[place] = fact
            yield place, fact

    table = placed_attempt_table(info, cases, placed(), rule=rule)
    return table, tuple(attempt_text(cases, table.columns, row, by_place) for row in table.rows)


def attempt_text(
    cases: Sequence[Case], columns: Sequence[Column], row: AttemptRow, facts: Mapping[int, Fact]
) -> AttemptText:
    """An attempt with its texts, from the facts by their places."""
    reply, verdict = facts.get(row.reply_place), facts.get(row.verdict_place)
    failure = facts.get(row.failure_place)
    return AttemptText(
        case=cases[row.case],
        model=columns[row.column].model,
        tier=columns[row.column].tier,
        number=row.number,
        reply=reply if isinstance(reply, Reply) else None,
        verdict=verdict if isinstance(verdict, Verdict) else None,
        failure=failure if isinstance(failure, Failure) else None,
        correct=row.correct,
        score=row.score,
    )


def table_of_texts(info: RunInfo, cases: Sequence[Case], attempts: Sequence[AttemptText]) -> AttemptTable:
    """The table of attempts that are there with their texts; places count the attempts."""
    columns = tuple(sorted({Column(one.model, one.tier) for one in attempts}))
    indexes = {column: index for index, column in enumerate(columns)}
    orders = {case.id: order for order, case in enumerate(cases)}
    notes = FactNotes(scoring.find_rule(info.rule, info.rules), info.require_trust)
    rows = []
    for notes.place, one in enumerate(attempts):
        row = notes.row(
            orders[one.case.id],
            indexes[Column(one.model, one.tier)],
            one.number,
            one.case,
            notes.reply(one.reply) if one.reply else None,
            notes.verdict(one.case, one.verdict) if one.verdict else None,
            notes.failure(one.failure) if one.failure else None,
        )
        outcome: AttemptOutcome = "missing" if one.correct is None else "correct" if one.correct else "wrong"
        rows.append(row._replace(outcome=outcome, score=one.score))
    return AttemptTable(columns=columns, digests=tuple(notes.digests), rows=tuple(sorted(rows, key=row_index)))
