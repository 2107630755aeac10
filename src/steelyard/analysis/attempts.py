"""A run without its texts: a row for every attempt, and where its facts lie."""

from __future__ import annotations

import sys
import zlib
from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec

from steelyard.analysis import scoring
from steelyard.analysis.summary import (
    AttemptHistories,
    AttemptOutcome,
    AttemptPlace,
    ModelHeadline,
    ReplyDigest,
    Summary,
    VerdictDigest,
    failure_reason,
    headlines,
    is_blank,
    one_line,
    planned_columns,
    reply_digest_from,
    summarise_outcomes,
    verdict_digest,
)
from steelyard.records import Case, Fact, Failure, Judgment, Reply, Rule, RunInfo, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from steelyard.errors import Problem

ATTEMPT_TABLE_VERSION = 2
"""Goes up when an outline is written otherwise, so that older ones are made anew."""
MAX_NAMED_DAMAGED_LINES = 20
"""Damaged lines that are named; the others are only counted."""
REPLY_KEY_HASH_BYTES, FACT_PLACE_BYTES = 4, 8
"""Bytes of a mark and of a place."""
NO_PLACE = -1
"""Where a fact lies that there is none of."""
MAX_INCREMENTAL_ROWS = 2000
"""Rows that are put in their places one at a time; with more it is quicker to begin anew."""


FiniteFloat = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
"""What an index may hold for a number; journals know no others."""


class Column(NamedTuple):
    """One column of the matrix: a model under a tier."""

    model: str
    tier: str


class AttemptRow(NamedTuple):
    """One attempt without its texts; what a model or a verifier wrote is as they wrote it, and not made harmless."""

    case: int
    """The place of its case among the cases."""
    seat: int
    """The place of its model and tier among the seats."""
    number: int
    outcome: Literal["correct", "wrong", "missing"]
    """`missing` when it is not known which of the others."""
    score: FiniteFloat | None
    """By the run's own rule."""
    label: str
    """What kind of failure it is, the class of a response, or the stage that a missing verdict is owed at; else empty."""
    reason: str
    """Why it is not correct, at most 200 characters on one line; empty when it is."""
    finish: str
    """Why the model stopped; empty where it has not replied."""
    latency: FiniteFloat | None
    """None where the model has not replied."""
    cost_usd: FiniteFloat | None
    input_tokens: int | None
    output_tokens: int | None
    at: str
    """When the reply came, or else when something broke; empty where neither happened."""
    gist: int = NO_PLACE
    """The place of its verdict's gist among the gists."""
    is_empty: bool = False
    """Whether the reply has no text."""
    reply: int = NO_PLACE
    verdict: int = NO_PLACE
    failure: int = NO_PLACE
    """The places of the facts that count."""


class AttemptTable(msgspec.Struct, frozen=True, array_like=True):
    """All attempts of a run at one moment."""

    seats: tuple[Column, ...]
    """Sorted, like the models of a summary."""
    gists: tuple[VerdictDigest, ...]
    rows: tuple[AttemptRow, ...]
    """Cases in order, then seats, then numbers."""
    journals: tuple[str, ...] = ()
    """The names of the journals, in the order that places go by."""
    asks: bytes = b""
    """For each appraisal a mark that the key of the reply it speaks of has in common with few others."""
    appraisals: bytes = b""
    """For each its place."""
    problems: tuple[str, ...] = ()
    """What could not be read, in sentences."""

    def ends(self) -> Iterator[AttemptOutcome]:
        """The attempts as a summary wants them."""
        for row in self.rows:
            is_judged = row.gist != NO_PLACE
            yield AttemptOutcome(
                AttemptPlace(row.case, *self.seats[row.seat], row.number),
                _row_reply_digest(row),
                self.gists[row.gist] if is_judged else None,
                row.reason if is_judged or row.failure != NO_PLACE else None,
            )

    def summary(
        self, info: RunInfo, cases: Sequence[Case], *, k: Sequence[int] | None = None, rule: str | None = None
    ) -> Summary:
        """What the run adds up to, by its own k and rule or by others."""
        return summarise_outcomes(info, cases, self.ends(), k=k, rule=rule)

    def headlines(self, info: RunInfo, cases: Sequence[Case]) -> tuple[ModelHeadline, ...]:
        """What a list of runs says of each model."""
        return headlines(info, cases, self.ends())

    def row(self, case: int, seat: int, number: int) -> AttemptRow | None:
        """One attempt; None where the run has no such attempt."""
        place = bisect_left(self.rows, (case, seat, number))
        if place == len(self.rows) or self.rows[place][:3] != (case, seat, number):
            return None
        return self.rows[place]

    def appraised(self, ask: str) -> list[int]:
        """The places of the appraisals of a reply by its key, in order, and perhaps of some others."""
        mark = _reply_key_hash(ask)
        found = []
        at = self.asks.find(mark)
        while at >= 0:
            if at % REPLY_KEY_HASH_BYTES == 0:
                begin = at // REPLY_KEY_HASH_BYTES * FACT_PLACE_BYTES
                found.append(int.from_bytes(self.appraisals[begin : begin + FACT_PLACE_BYTES], "little"))
            at = self.asks.find(mark, at + 1)
        return found


def _row_reply_digest(row: AttemptRow) -> ReplyDigest | None:
    if row.latency is None:
        return None
    return reply_digest_from(row.input_tokens, row.output_tokens, row.cost_usd, row.latency, row.finish, row.is_empty)


class AttemptTableBuilder:
    """The outline of a run that is told fact by fact."""

    def __init__(self, info: RunInfo, cases: Sequence[Case]) -> None:
        self._cases = cases
        # apart from this, because what refers to itself stays in memory until somebody looks for it
        self._notes = notes = _FactNotes(scoring.find_rule(info.rule, info.rules))
        self._trails: AttemptHistories[_ReplyNote, _VerdictNote, _FailureNote] = AttemptHistories(
            cases, notes.reply, notes.verdict, notes.failure
        )
        self._seats = {Column(*pair) for pair in planned_columns(info)}
        self._asks, self._appraisals = bytearray(), bytearray()
        self._touched: set[AttemptPlace] = set()
        self._last: AttemptTable | None = None

    def __len__(self) -> int:
        """How many attempts the facts told of."""
        return len(self._trails)

    def add(self, place: int, fact: Fact) -> None:
        """Take a fact into account that lies at a place."""
        self._notes.place = place
        touched = self._trails.add(fact)
        if touched is not None and self._last is not None:
            self._touched.add(touched)
        if isinstance(fact, Judgment):
            self._asks += _reply_key_hash(fact.ask)
            self._appraisals += place.to_bytes(FACT_PLACE_BYTES, "little")

    def outline(self, journals: Iterable[str] = (), problems: Iterable[str] = ()) -> AttemptTable:
        """The run as far as it was told."""
        last = self._last
        told = self._trails if last is None else self._touched
        seats = tuple(sorted(self._seats.union(Column(model, tier) for _, model, tier, _ in told)))
        numbers = {seat: number for number, seat in enumerate(seats)}
        if last is None or seats != last.seats or len(self._touched) > MAX_INCREMENTAL_ROWS:
            rows = [self._row(numbers, *end) for end in self._trails.ends()]
        else:
            rows = list(last.rows)
            for place in self._touched:
                row = self._row(numbers, place, *self._trails.end(place))
                at = bisect_left(rows, row[:3])
                known = at < len(rows) and rows[at][:3] == row[:3]
                rows[at : at + known] = [row]
        self._seats, self._touched = set(seats), set()
        self._last = AttemptTable(
            seats=seats,
            gists=tuple(self._notes.gists),
            rows=tuple(rows),
            journals=tuple(journals),
            asks=bytes(self._asks),
            appraisals=bytes(self._appraisals),
            problems=tuple(problems),
        )
        return self._last

    def _row(
        self,
        seats: dict[Column, int],
        place: AttemptPlace,
        said: _ReplyNote | None,
        found: _VerdictNote | None,
        broken: _FailureNote | None,
    ) -> AttemptRow:
        case = self._cases[place.order]
        outcome, score, label, reason = self._outcome(case, said, found, broken)
        return AttemptRow(
            place.order,
            seats[Column(place.model, place.tier)],
            place.number,
            outcome,
            score,
            label,
            reason,
            said.finish if said else "",
            said.latency if said else None,
            said.usd if said else None,
            said.input_tokens if said else None,
            said.output_tokens if said else None,
            said.at if said else broken.at if broken else "",
            found.number if found else NO_PLACE,
            said is not None and said.is_empty,
            said.place if said else NO_PLACE,
            found.place if found else NO_PLACE,
            broken.place if broken else NO_PLACE,
        )

    def _outcome(
        self, case: Case, said: _ReplyNote | None, found: _VerdictNote | None, broken: _FailureNote | None
    ) -> tuple[Literal["correct", "wrong", "missing"], float | None, str, str]:
        """How an attempt came out, with its score, its label and the reason."""
        if found is None:
            if broken is not None:
                return "missing", None, broken.stage, broken.message
            if said is None:
                return "missing", None, "ask", "not asked yet"
            if case.by_judges:
                return "missing", None, "judge", "only judges can tell"
            return "missing", None, "verify", "not verified yet"
        gist, score = self._notes.kept[found.number]
        label = gist.primary
        # what has no name of its own is no kind of failure, except among responses, where every class has a name
        if case.kind != "response" and label in ("pass", "fail"):
            label = ""
        return "correct" if gist.measured.correct else "wrong", score, label, found.why


class _FactNotes:
    """What is kept of each fact."""

    def __init__(self, rule: Rule) -> None:
        self.place = NO_PLACE
        """Where the fact lies that is told now."""
        self.gists: dict[VerdictDigest, int] = {}
        self.kept: list[tuple[VerdictDigest, float | None]] = []
        """The gists by their numbers, with their scores."""
        self._rule = rule

    def reply(self, reply: Reply) -> _ReplyNote:
        answer = reply.answer
        usd = answer.cost.usd if answer.cost else None
        tokens = answer.input_tokens, answer.output_tokens
        return _ReplyNote(answer.finish, answer.latency, usd, *tokens, reply.at, is_blank(answer.text), self.place)

    def verdict(self, case: Case, verdict: Verdict) -> _VerdictNote:
        said = verdict_digest(case, verdict)
        number = self.gists.setdefault(said, len(self.gists))
        if number == len(self.kept):
            self.kept.append((said, said.measured.score(self._rule)))
        return _VerdictNote(number, failure_reason(case, verdict, said), self.place)

    def failure(self, failure: Failure) -> _FailureNote:
        return _FailureNote(failure.stage, failure.key, one_line(failure.message), failure.at, self.place)


class _ReplyNote(NamedTuple):
    """What is kept of a reply."""

    finish: str
    latency: float
    usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    at: str
    is_empty: bool
    place: int


class _VerdictNote(NamedTuple):
    """What is kept of a verdict."""

    number: int
    why: str
    place: int


class _FailureNote(NamedTuple):
    """What is kept of a failure."""

    stage: str
    key: str
    message: str
    at: str
    place: int


def problem_sentences(problems: Sequence[Problem], more: int = 0) -> tuple[str, ...]:
    """What could not be read, for people who know the folder; `more` are known only by their number."""
    told = [
        str(problem._replace(where=problem.where.rpartition("/")[2])) for problem in problems[:MAX_NAMED_DAMAGED_LINES]
    ]
    more += len(problems) - len(told)
    return (*told, *([f"and {more:,} more such lines"] if more else []))


def _reply_key_hash(ask: str) -> bytes:
    return zlib.crc32(ask.encode()).to_bytes(REPLY_KEY_HASH_BYTES, "little")


def pack_attempt_table(made_of: str, outline: AttemptTable, summary: Summary) -> bytes:
    """An outline as bytes, with the state of the files it was made of and the summary by the run's own k and rule."""
    return msgspec.msgpack.encode((made_of, outline, msgspec.msgpack.encode(summary)))


_attempt_table_decoder = msgspec.msgpack.Decoder(tuple[str, AttemptTable, bytes])
_summary_decoder = msgspec.msgpack.Decoder(Summary)


def unpack_attempt_table(content: bytes, made_of: str, cases: int) -> tuple[AttemptTable, bytes]:
    """The outline of a run of so many cases, and its summary still packed; raises a ValueError where it is of another state."""
    try:
        state, outline, summary = _attempt_table_decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    for most, numbers in (
        (cases, set(map(attrgetter("case"), outline.rows))),
        (len(outline.seats), set(map(attrgetter("seat"), outline.rows))),
        (len(outline.gists), set(map(attrgetter("gist"), outline.rows)) - {NO_PLACE}),
    ):
        if numbers and not 0 <= min(numbers) <= max(numbers) < most:
            raise ValueError("rows of cases, seats or gists that are not there")
    if not all(map(_is_valid_digest, outline.gists)):
        raise ValueError("gists that no finding has")
    if state != made_of:
        raise ValueError("of another state of the run")
    return outline, summary


def _is_valid_digest(gist: VerdictDigest) -> bool:
    measured = gist.measured
    shares = (gist.lint, measured.passing, measured.settled, *measured.facts)
    told = len(measured.facts) == len(scoring.SCORED_FACTS) or measured.settled is not None
    return told and all(share is None or 0 <= share <= 1 for share in shares)


def unpack_summary(content: bytes) -> Summary:
    """The summary of a packed outline; raises a ValueError where it is none."""
    try:
        return _summary_decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
