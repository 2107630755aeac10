"""Attempts with their texts, for reports and pages that show what was asked and answered."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, overload

from steelyard.analysis import scoring
from steelyard.analysis.attempts import (
    NO_PLACE,
    AttemptOutcome,
    AttemptRow,
    AttemptTable,
    Column,
    FactNotes,
    placed_attempt_table,
    row_index,
)
from steelyard.errors import StoreError
from steelyard.protocols import FailureLabel
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


class FactLookup(Protocol):
    """Facts by their places."""

    def get(self, place: int, /) -> Fact | None:
        """The fact at a place; None where there is none."""
        ...


def attempt_text(cases: Sequence[Case], columns: Sequence[Column], row: AttemptRow, facts: FactLookup) -> AttemptText:
    """An attempt with its texts, from the facts by their places."""
    reply, verdict = facts.get(row.reply_place), facts.get(row.verdict_place)
    failure = facts.get(row.failure_place)
    model, tier = columns[row.column]
    if row.label == FailureLabel.TRUST_TOO_LOW and isinstance(reply, Reply):
        failure = _too_little_trust(reply, row.reason)
    # a million of them are made for one report
    return AttemptText(
        cases[row.case],
        model,
        tier,
        row.number,
        reply if isinstance(reply, Reply) else None,
        verdict if isinstance(verdict, Verdict) else None,
        failure if isinstance(failure, Failure) else None,
        row.correct,
        row.score,
    )


def _too_little_trust(reply: Reply, reason: str) -> Failure:
    """What stands between an attempt and a verdict that does not count; it is in no journal."""
    return Failure(
        key=reply.key,
        at=reply.at,
        case=reply.case,
        model=reply.model,
        tier=reply.tier,
        number=reply.number,
        stage="verify",
        message=reason,
    )


class StoredAttempts(Sequence[AttemptText]):
    """Attempts whose texts stay on disk: each is read when it is asked for, and none is kept."""

    def __init__(
        self,
        cases: Sequence[Case],
        columns: Sequence[Column],
        rows: Sequence[AttemptRow],
        open_facts: Callable[[], AbstractContextManager[FactLookup]],
    ) -> None:
        self.rows = rows
        """The same attempts without their texts."""
        self._cases, self._columns, self._open_facts = cases, columns, open_facts

    def selected(self, is_wanted: Callable[[AttemptRow], bool]) -> StoredAttempts:
        """The attempts that are wanted; none is read for that."""
        return self._with_rows(_SelectedRows(self.rows, is_wanted))

    def of_columns(self, is_wanted: Callable[[Column], bool]) -> StoredAttempts:
        """The attempts of some models and tiers."""
        wanted = {index for index, column in enumerate(self._columns) if is_wanted(column)}
        return self.selected(lambda row: row.column in wanted)

    @property
    def columns(self) -> set[Column]:
        """The models and tiers that have attempts."""
        return {self._columns[index] for index in {row.column for row in self.rows}}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[AttemptText]:
        with self._open_facts() as facts:
            for row in self.rows:
                yield self._text(row, facts)

    @overload
    def __getitem__(self, index: int) -> AttemptText: ...
    @overload
    def __getitem__(self, index: slice) -> StoredAttempts: ...
    def __getitem__(self, index: int | slice) -> AttemptText | StoredAttempts:
        if isinstance(index, slice):
            return self._with_rows(self.rows[index])
        with self._open_facts() as facts:
            return self._text(self.rows[index], facts)

    def _with_rows(self, rows: Sequence[AttemptRow]) -> StoredAttempts:
        return StoredAttempts(self._cases, self._columns, rows, self._open_facts)

    def _text(self, row: AttemptRow, facts: FactLookup) -> AttemptText:
        text = attempt_text(self._cases, self._columns, row, facts)
        case, model, tier, number, reply, verdict, failure, *_ = text
        for fact, place in ((reply, row.reply_place), (verdict, row.verdict_place), (failure, row.failure_place)):
            if place != NO_PLACE and (
                fact is None
                or fact.number != number
                or fact.case != case.id
                or fact.model != model
                or fact.tier != tier
            ):
                raise StoreError(
                    f'another attempt is where "{case.id}" was: the journal has changed, so read the run again'
                )
        return text


class _SelectedRows(Sequence[AttemptRow]):
    """Some rows of others that may be on disk; they take 8 bytes each."""

    def __init__(self, rows: Sequence[AttemptRow], is_wanted: Callable[[AttemptRow], bool]) -> None:
        self._rows = rows
        self._indexes = array("Q", (index for index, row in enumerate(rows) if is_wanted(row)))

    def __len__(self) -> int:
        return len(self._indexes)

    @overload
    def __getitem__(self, index: int) -> AttemptRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[AttemptRow]: ...
    def __getitem__(self, index: int | slice) -> AttemptRow | list[AttemptRow]:
        if isinstance(index, slice):
            return [self._rows[place] for place in self._indexes[index]]
        return self._rows[self._indexes[index]]


def unjudged_attempts(attempts: Sequence[AttemptText]) -> Sequence[AttemptText]:
    """The attempts without a verdict."""
    if isinstance(attempts, StoredAttempts):
        return attempts.selected(lambda row: row.verdict_place == NO_PLACE)
    return [tried for tried in attempts if tried.verdict is None]


def attempted_columns(attempts: Sequence[AttemptText]) -> set[Column]:
    """The models and tiers that have attempts."""
    if isinstance(attempts, StoredAttempts):
        return attempts.columns
    return {Column(tried.model, tried.tier) for tried in attempts}


def last_number(attempts: Sequence[AttemptText]) -> int:
    """The largest number of an attempt; 1 where there is none."""
    rows: Iterable[AttemptRow | AttemptText] = attempts.rows if isinstance(attempts, StoredAttempts) else attempts
    return max((each.number for each in rows), default=1)


def attempts_of_model(attempts: Sequence[AttemptText], model: str, tier: str) -> Sequence[AttemptText]:
    """The attempts of one model under one tier."""
    if isinstance(attempts, StoredAttempts):
        return attempts.of_columns(lambda column: column == (model, tier))
    return tuple(one for one in attempts if (one.model, one.tier) == (model, tier))


def table_of_texts(info: RunInfo, cases: Sequence[Case], attempts: Sequence[AttemptText]) -> AttemptTable:
    """The table of attempts that are there with their texts; places count the attempts."""
    columns = tuple(sorted({Column(one.model, one.tier) for one in attempts}))
    indexes = {column: index for index, column in enumerate(columns)}
    orders = {case.id: order for order, case in enumerate(cases)}
    notes = FactNotes(scoring.find_rule(info.rule, info.rules))
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
