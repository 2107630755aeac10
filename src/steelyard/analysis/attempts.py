"""One row for every attempt of a run, joined once from the facts of its journal."""

from __future__ import annotations

import itertools
import math
import sys
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import msgspec

from steelyard.analysis import scoring
from steelyard.analysis.required_trust import TrustedOutcome, discounting_reasons
from steelyard.analysis.scoring import FindingMeasures
from steelyard.analysis.suites import classify_response
from steelyard.protocols import FailureLabel
from steelyard.records import Case, Fact, Failure, Finish, Judgment, Reply, Rule, RunInfo, Verdict

MAX_REASON_CHARACTERS = 200
REPLY_KEY_HASH_BYTES, FACT_PLACE_BYTES = 4, 8
NO_PLACE = -1
"""The sentinel for a fact that does not exist."""
MAX_INCREMENTAL_ROWS = 2000
"""Rows that are replaced one at a time; with more it is faster to make the table again."""

AttemptOutcome = Literal["correct", "wrong", "missing"]
"""`missing` where no verdict counts."""
FiniteFloat = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
"""The numbers that an index may hold; journals have no others."""


class Column(NamedTuple):
    """A model under a tier: one column of the matrix."""

    model: str
    tier: str

    @property
    def label(self) -> str:
        """What a comparison calls it."""
        return f"{self.model} ({self.tier})" if self.tier else self.model


class VerdictDigest(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """Everything that figures need from a verdict under any rule; a million attempts share a few of these."""

    measured: FindingMeasures
    primary: str
    """The class of the response, or its verifier's name for the failure."""
    compiled: bool | None
    lint: float | None
    tampered: bool
    rechecked: int
    disagreed: int
    trust: str
    isolation: str
    node: str
    levels: tuple[tuple[str, bool], ...]
    rules: str
    """The verifier with the version of its rules, such as `python 3`; its toolchain is left out."""
    is_shared: bool = False
    """Whether it is the verdict on another reply with the same text."""
    graded: bool = False
    """Whether its score is what was measured, rather than a yes or no."""
    flag: str = ""
    """What a reader should look at, although nobody is accused."""
    watched: bool | None = None
    """Whether a plain run looked at it, too; None where no separated road decided."""


class AttemptRow(NamedTuple):
    """One attempt without its texts; names, labels and reasons are as models and verifiers wrote them, not escaped."""

    case: int
    """The index of its case among the cases."""
    column: int
    """The index of its model and tier among the columns."""
    number: int
    outcome: AttemptOutcome
    score: FiniteFloat | None
    """By the rule of the table."""
    label: str
    """What kind of failure it is, the class of a response, or the stage that broke where a verdict is missing; otherwise empty."""
    reason: str
    """Why it is not correct, at most 200 characters on one line; empty when it is."""
    finish: str
    """Why the model stopped; empty if it has not replied."""
    latency: FiniteFloat | None
    """None if the model has not replied or it was not measured."""
    cost_usd: FiniteFloat | None
    input_tokens: int | None
    output_tokens: int | None
    at: str
    """When the reply came, otherwise when something failed; empty if neither happened."""
    is_empty: bool = False
    """Whether the reply has no text."""
    cached_from: tuple[str, ...] = ()
    """The run that asked for the reply, where it was taken from the reply cache."""
    reply_place: int = NO_PLACE
    digest: int = NO_PLACE
    """The index of its verdict's digest among the digests."""
    verdict_place: int = NO_PLACE
    failure_place: int = NO_PLACE
    """The places of the facts that count."""

    @property
    def correct(self) -> bool | None:
        """Whether it is correct; None if that is not known."""
        return None if self.outcome == "missing" else self.outcome == "correct"

    @property
    def failure(self) -> str:
        """The class of a wrong attempt; empty for all others."""
        return (self.label or "fail") if self.outcome == "wrong" else ""

    @property
    def wait(self) -> float | None:
        """Seconds until an answer, infinity where it timed out; None if the time is not known."""
        if self.finish == "timeout":
            return math.inf
        return self.latency if self.finish not in ("crash", "error") else None


class AttemptTable(msgspec.Struct, frozen=True, array_like=True):
    """All attempts of a run at one moment."""

    columns: tuple[Column, ...]
    """Sorted, like the models of a summary."""
    digests: tuple[VerdictDigest, ...]
    rows: Sequence[AttemptRow]
    """Cases in order, then columns, then numbers; those of a large run stay on disk."""
    journals: tuple[str, ...] = ()
    """The names of the journals, in the order of the places."""
    judged_key_hashes: bytes = b""
    """For each judgment a short hash of the key of its reply."""
    judgment_places: bytes = b""
    """For each judgment its place."""
    problems: tuple[str, ...] = ()
    """What could not be read, in sentences."""

    def row(self, case: int, column: int, number: int) -> AttemptRow | None:
        """One attempt; None if the run has no such attempt."""
        index = bisect_left(self.rows, (case, column, number))
        if index == len(self.rows) or self.rows[index][:3] != (case, column, number):
            return None
        return self.rows[index]

    def judgments_of(self, reply_key: str) -> list[int]:
        """The places of the judgments of a reply, in order; a hash collision may add those of another reply."""
        key_hash = _reply_key_hash(reply_key)
        places = []
        at = self.judged_key_hashes.find(key_hash)
        while at >= 0:
            if at % REPLY_KEY_HASH_BYTES == 0:
                begin = at // REPLY_KEY_HASH_BYTES * FACT_PLACE_BYTES
                places.append(int.from_bytes(self.judgment_places[begin : begin + FACT_PLACE_BYTES], "little"))
            at = self.judged_key_hashes.find(key_hash, at + 1)
        return places


def attempt_table(
    info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact], *, rule: str | None = None
) -> AttemptTable:
    """The attempts of a run, scored by its own rule or by another; places count the facts from 0."""
    return placed_attempt_table(info, cases, enumerate(facts), rule=rule)


def placed_attempt_table(
    info: RunInfo, cases: Sequence[Case], facts: Iterable[tuple[int, Fact]], *, rule: str | None = None
) -> AttemptTable:
    """The attempts of a run, from facts with their places."""
    builder = AttemptTableBuilder(info, cases, rule=rule)
    for place, fact in facts:
        builder.add(place, fact)
    return builder.table(is_last=True)


def planned_columns(info: RunInfo) -> list[Column]:
    """Which models a run asks, each with its tier."""
    if info.experiment and info.experiment.tiers:
        return [Column(tier.model, tier.name) for tier in info.experiment.tiers]
    return [Column(*pair) for pair in itertools.product(() if info.recordings else info.names, info.tiers or ("",))]


AttemptKey = tuple[int, str, str, int]
"""The index of the case, model, tier and number of an attempt: they sort as rows do."""


class AttemptTableBuilder:
    """The table of a run whose facts are added one by one, in the order of the journal."""

    def __init__(self, info: RunInfo, cases: Sequence[Case], *, rule: str | None = None) -> None:
        self._info, self._cases = info, cases
        self._orders = {case.id: order for order, case in enumerate(cases)}
        self._tests = [case.tests_digest for case in cases]
        self._notes = FactNotes(scoring.find_rule(rule or info.rule, info.rules))
        self._histories: dict[AttemptKey, AttemptHistory] = {}
        self._columns = set(planned_columns(info))
        self._judged_key_hashes, self._judgment_places = bytearray(), bytearray()
        self._touched: set[AttemptKey] = set()
        self._last: AttemptTable | None = None

    def __len__(self) -> int:
        """How many attempts there are so far."""
        return len(self._histories)

    def add(self, place: int, fact: Fact) -> tuple[bool, float | None] | None:
        """Take the fact at a place into account; one about a case that the run does not have is ignored.

        Returns whether a verdict of the present tests is correct, and its score; None for any other fact.
        """
        if isinstance(fact, Judgment):
            self._judged_key_hashes += _reply_key_hash(fact.ask)
            self._judgment_places += place.to_bytes(FACT_PLACE_BYTES, "little")
        order = self._orders.get(fact.case)
        if order is None:
            return None
        key = order, sys.intern(fact.model), sys.intern(fact.tier), fact.number
        history = self.history(key)
        self._notes.place = place
        if isinstance(fact, Reply):
            history.add_reply(fact.key, self._notes.reply(fact))
        elif isinstance(fact, Verdict):
            if fact.tests == self._tests[order]:
                verdict = self._notes.verdict(self._cases[order], fact)
                history.add_verdict(fact.ask, verdict)
                return self._notes.scored(verdict.digest)
            history.add_verdict(fact.ask, None)
        elif isinstance(fact, Failure) and fact.stage != "judge":
            history.add_failure(self._notes.failure(fact))
        else:
            history.add_judging()
        return None

    def history(self, key: AttemptKey) -> AttemptHistory:
        """What the facts say of an attempt so far, to which another is added."""
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = AttemptHistory()
        if self._last is not None:
            self._touched.add(key)
        return history

    def counting_places(self) -> Iterator[int]:
        """The places of the facts that count."""
        for history in self._histories.values():
            yield from (part[-1] for part in history.parts() if part is not None)

    def table(
        self, journals: Iterable[str] = (), problems: Iterable[str] = (), *, is_last: bool = False
    ) -> AttemptTable:
        """The run with the facts added so far; after the last table the builder is empty, which saves memory."""
        last = self._last
        changed = self._histories if last is None else self._touched
        columns = tuple(sorted(self._columns.union({Column(key[1], key[2]) for key in changed})))
        indexes = {tuple(column): index for index, column in enumerate(columns)}
        is_incremental = last is not None and columns == last.columns and not self._info.require_trust
        if last is None or not is_incremental or len(self._touched) > MAX_INCREMENTAL_ROWS:
            history = self._histories.pop if is_last else self._histories.__getitem__
            every = (self._row(indexes, key, history(key)) for key in sorted(self._histories))
            rows = list(self._counting(every))
        else:
            rows = list(last.rows)
            for key in self._touched:
                row = self._row(indexes, key, self._histories[key])
                at = bisect_left(rows, row[:3])
                is_known = at < len(rows) and rows[at][:3] == row[:3]
                rows[at : at + is_known] = [row]
        self._columns, self._touched = set(columns), set()
        self._last = self._with_rows(columns, tuple(rows), journals, problems)
        return self._last

    def _counting(self, rows: Iterable[AttemptRow]) -> Iterator[AttemptRow]:
        """The rows in the order of the cases, without the verdicts that the required trust makes not count."""
        required = self._info.require_trust
        if not required:
            yield from rows
            return
        for order, group in itertools.groupby(rows, key=lambda row: row.case):
            of_case = list(group)
            judged = [row for row in of_case if row.digest != NO_PLACE]
            said = [TrustedOutcome(row.outcome == "correct", self._notes.known[row.digest].trust) for row in judged]
            reference = self._info.reference_trust.get(self._cases[order].id, "")
            reasons = dict(zip(judged, discounting_reasons(said, reference, required), strict=True))
            yield from (_without_verdict(row, reason) if (reason := reasons.get(row)) else row for row in of_case)

    def _with_rows(
        self, columns: tuple[Column, ...], rows: Sequence[AttemptRow], journals: Iterable[str], problems: Iterable[str]
    ) -> AttemptTable:
        return AttemptTable(
            columns=columns,
            digests=tuple(self._notes.digests),
            rows=rows,
            journals=tuple(journals),
            judged_key_hashes=bytes(self._judged_key_hashes),
            judgment_places=bytes(self._judgment_places),
            problems=tuple(problems),
        )

    def _row(self, columns: Mapping[tuple[str, ...], int], key: AttemptKey, history: AttemptHistory) -> AttemptRow:
        order, model, tier, number = key
        return self._notes.row(order, columns[model, tier], number, self._cases[order], *history.parts())


@dataclass(slots=True)
class AttemptHistory:
    """What the facts so far say about one attempt."""

    key: str = ""
    """The key of the last reply."""
    reply: ReplyNote | None = None
    ask: str = ""
    """The key of the reply that was verified."""
    verdict: VerdictNote | None = None
    failure: FailureNote | None = None

    def add_reply(self, key: str, reply: ReplyNote) -> None:
        self.key, self.reply, self.failure = key, reply, None

    def add_verdict(self, ask: str, verdict: VerdictNote | None) -> None:
        if self.failure is not None and self.failure.stage == "verify":
            self.failure = None
        # a late verdict on an older reply must not hide the one on the reply that counts
        if verdict is not None and (self.verdict is None or ask == self.key or self.ask != self.key):
            self.ask, self.verdict = self.key if ask == self.key else ask, verdict

    def add_failure(self, failure: FailureNote) -> None:
        self.failure = failure
        if self.verdict is not None and self.verdict.key_hash == _key_hash(failure.key):
            # with the key of the verdict it takes the verdict back: the machine that reached it was broken
            self.ask, self.verdict = "", None

    def add_judging(self) -> None:
        """Take note of a fact about judges, which changes nothing here but that the attempt is known."""

    def parts(self) -> tuple[ReplyNote | None, VerdictNote | None, FailureNote | None]:
        """The reply that counts, its verdict, and the failure that took the verdict's place if it has none."""
        if self.reply is None or self.ask != self.key:
            return self.reply, None, self.failure
        # an answer to an older question must not pass as one to the question that failed to be asked
        if self.failure is not None and self.failure.stage == "ask" and self.failure.key != self.key:
            return self.reply, None, self.failure
        return self.reply, self.verdict, None


ReplyNote = tuple[str, float | None, float | None, int | None, int | None, str, bool, tuple[str, ...], int]
"""What is kept of a reply: the fields of its row from `finish` to `reply_place`."""


class VerdictNote(NamedTuple):
    """What is kept of a verdict."""

    digest: int
    reason: str
    key_hash: int
    """A short hash of its key, by which a failure can take it back."""
    place: int


class _ScoredDigest(NamedTuple):
    """What a digest is worth by a rule."""

    outcome: AttemptOutcome
    score: float | None
    label: str


class FailureNote(NamedTuple):
    """What is kept of a failure."""

    stage: str
    key: str
    message: str
    at: str
    place: int


class FactNotes:
    """What is kept of each fact, and the row that it makes."""

    def __init__(self, rule: Rule) -> None:
        self.place = NO_PLACE
        """The place of the fact that is being read."""
        self.digests: dict[VerdictDigest, int] = {}
        self.known: list[VerdictDigest] = []
        """The same in order."""
        self._scored: list[_ScoredDigest] = []
        """By the indexes of the digests."""
        self._rule = rule

    def scored(self, digest: int) -> tuple[bool, float | None]:
        """Whether a digest is that of a correct attempt, and its score."""
        scored = self._scored[digest]
        return scored.outcome == "correct", scored.score

    def reply(self, reply: Reply) -> ReplyNote:
        answer = reply.answer
        usd = answer.cost.usd if answer.cost else None
        tokens = answer.input_tokens, answer.output_tokens
        is_empty = (
            (not answer.text or answer.text.isspace()) and not answer.tool_calls and answer.finish != Finish.UNRECORDED
        )
        return answer.finish, answer.latency, usd, *tokens, reply.at, is_empty, reply.cached_from, self.place

    def verdict(self, case: Case, verdict: Verdict) -> VerdictNote:
        digest = _verdict_digest(case, verdict)
        index = self.digests.setdefault(digest, len(self.digests))
        is_correct = digest.measured.correct
        if index == len(self._scored):
            score = digest.measured.score(self._rule)
            self.known.append(digest)
            self._scored.append(_ScoredDigest("correct" if is_correct else "wrong", score, digest.primary))
        reason = "" if is_correct else one_line(scoring.finding_failure_reason(case, verdict.found))
        return VerdictNote(index, reason, _key_hash(verdict.key), self.place)

    def failure(self, failure: Failure) -> FailureNote:
        return FailureNote(failure.stage, failure.key, one_line(failure.message), failure.at, self.place)

    def row(
        self,
        order: int,
        column: int,
        number: int,
        case: Case,
        reply: ReplyNote | None,
        verdict: VerdictNote | None,
        failure: FailureNote | None,
    ) -> AttemptRow:
        """The row of an attempt from the facts that count."""
        if reply is not None and verdict is not None:
            digest, (index, reason, _, at) = self._scored[verdict.digest], verdict
            # only among responses is every class a label; elsewhere a plain pass or failure needs none
            label = "" if digest.label in ("pass", "fail") and case.kind != "response" else digest.label
            return AttemptRow(
                order, column, number, digest.outcome, digest.score, label, reason, *reply, index, at, NO_PLACE
            )
        replied = reply or ("", None, None, None, None, failure.at if failure else "", False, (), NO_PLACE)
        if failure is not None:
            stage, reason = failure.stage, failure.message
        elif reply is None:
            stage, reason = "ask", "not asked yet"
        elif case.by_judges:
            stage, reason = "judge", "only judges can tell"
        else:
            stage, reason = "verify", "not verified yet"
        failure_place = failure.place if failure else NO_PLACE
        return AttemptRow(
            order, column, number, "missing", None, stage, reason, *replied, NO_PLACE, NO_PLACE, failure_place
        )


def _verdict_digest(case: Case, verdict: Verdict) -> VerdictDigest:
    finding = verdict.found
    measured = scoring.finding_measures(case, finding)
    primary = classify_response(measured.correct, one_line(finding.label))
    return VerdictDigest(
        measured,
        primary,
        scoring.code_compiled(finding),
        scoring.lint_score(finding),
        bool(finding.tampered),
        finding.rechecked,
        finding.disagreed,
        finding.trust,
        finding.isolation,
        verdict.node,
        tuple(finding.levels.items()),
        # what follows the comma is the toolchain
        verdict.verifier.partition(",")[0],
        bool(verdict.shared_from),
        scoring.is_graded(finding),
        finding.flag,
        finding.watched,
    )


def _without_verdict(row: AttemptRow, reason: str) -> AttemptRow:
    """An attempt whose verdict does not count."""
    return row._replace(
        outcome="missing",
        score=None,
        label=FailureLabel.TRUST_TOO_LOW,
        reason=reason,
        digest=NO_PLACE,
        verdict_place=NO_PLACE,
    )


def one_line(text: str) -> str:
    """At most 200 characters on one line."""
    if not text:
        return ""
    line = " ".join(text[:1000].split())
    return line if len(line) <= MAX_REASON_CHARACTERS else f"{line[: MAX_REASON_CHARACTERS - 1]}…"


def row_index(row: AttemptRow) -> tuple[int, int, int]:
    """By which rows are sorted."""
    return row.case, row.column, row.number


def _reply_key_hash(key: str) -> bytes:
    return _key_hash(key).to_bytes(REPLY_KEY_HASH_BYTES, "little")


def _key_hash(key: str) -> int:
    return zlib.crc32(key.encode())
