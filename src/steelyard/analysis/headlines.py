"""What a list of runs and a viewer read instead of the journal: headline figures of each model, and the packed table of attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from steelyard.analysis import scoring
from steelyard.analysis.attempts import AttemptTable, Column, VerdictDigest
from steelyard.analysis.case_attempts import CaseAttempts, attempts_by_case, deciding_measure_of
from steelyard.analysis.case_means import mean_pass, mean_value, total_cost
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.measure import ComparedMeasure
from steelyard.analysis.row_blocks import IndexFooter, TableSizes, check_rows, unpacked_footer, unpacked_rows
from steelyard.analysis.summary import Summary
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
MAP_16, ARRAY_32 = b"\xde", b"\xdd"
"""What begins a map of msgpack before its size in two bytes, and an array before its size in four."""
MAX_NAMED_DAMAGED_LINES = 20
"""Damaged lines that are named; the others are only counted."""

_attempt_table_decoder = msgspec.msgpack.Decoder(tuple[str, AttemptTable, bytes])
_summary_decoder = msgspec.msgpack.Decoder(Summary)


class _SummaryOfModels(Summary, frozen=True, kw_only=True):
    """A summary whose cases stay packed."""

    cases: msgspec.Raw  # type: ignore[assignment]


_models_decoder = msgspec.msgpack.Decoder(_SummaryOfModels)


def pack_attempt_table(fingerprint: str, table: AttemptTable, summary: Summary) -> bytes:
    """A table as bytes, with the fingerprint of its run and the summary by the run's own k and rule."""
    return msgspec.msgpack.encode((fingerprint, table, pack_summary(summary)))


def pack_summary(summary: Summary) -> bytes:
    """A summary as bytes."""
    return b"".join(summary_pieces(summary))


def summary_pieces(summary: Summary) -> Iterator[bytes]:
    """The same in pieces, the cases one by one: there may be a hundred thousand."""
    encode = msgspec.msgpack.Encoder().encode
    fields = msgspec.structs.asdict(summary)
    cases = fields.pop("cases")
    yield MAP_16 + (len(fields) + 1).to_bytes(2, "big")
    for name, value in fields.items():
        yield encode(name) + encode(value)
    yield encode("cases") + ARRAY_32 + len(cases).to_bytes(4, "big")
    yield from map(encode, cases)


def unpack_attempt_table(content: bytes, fingerprint: str, cases: int) -> tuple[AttemptTable, bytes]:
    """The table of a run with this many cases, and its summary still packed.

    Raises a ValueError where the index is damaged or belongs to another state of the run.
    """
    view = memoryview(content)
    footer = unpacked_footer(lambda offset, size: bytes(view[offset : offset + size]), len(content))
    if footer is not None:
        sizes = checked_footer(footer, fingerprint, cases)
        blocks = (view[block.offset : block.offset + block.size] for block in footer.blocks)
        rows = tuple(row for block in blocks for row in unpacked_rows(bytes(block), sizes))
        return msgspec.structs.replace(footer.table, rows=rows), bytes(footer.summary)
    try:
        state, table, summary = _attempt_table_decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    _check_state(state, fingerprint, table)
    check_rows(table.rows, TableSizes(cases, len(table.columns), len(table.digests)))
    return msgspec.structs.replace(table, rows=tuple(table.rows)), summary


def checked_footer(footer: IndexFooter, fingerprint: str, cases: int) -> TableSizes:
    """What the rows of an index may be about; raises a ValueError where it belongs to another state of the run."""
    _check_state(footer.fingerprint, fingerprint, footer.table)
    return TableSizes(cases, len(footer.table.columns), len(footer.table.digests))


def _check_state(state: str, fingerprint: str, table: AttemptTable) -> None:
    if not all(map(_is_valid_digest, table.digests)):
        raise ValueError("a digest that no finding has")
    if state != fingerprint:
        raise ValueError("the index of another state of the run")


def _is_valid_digest(digest: VerdictDigest) -> bool:
    measured = digest.measured
    shares = (digest.lint, measured.passing, measured.settled, *measured.facts)
    is_complete = len(measured.facts) == len(scoring.SCORED_FACTS) or measured.settled is not None
    return is_complete and all(share is None or 0 <= share <= 1 for share in shares)


def unpack_summary(content: bytes) -> Summary:
    """The summary of a packed table; raises a ValueError where it is damaged."""
    try:
        return _summary_decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


def unpack_summary_of_models(content: bytes) -> Summary:
    """The same without its cases: those of a hundred thousand take as much memory as all their attempts."""
    try:
        fields = msgspec.structs.asdict(_models_decoder.decode(content))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    return Summary(**fields | {"cases": ()})


def problem_sentences(problems: Sequence[Problem], more: int = 0) -> tuple[str, ...]:
    """What could not be read, without the folder; `more` are known only by their number."""
    named = [
        str(problem._replace(where=problem.where.rpartition("/")[2])) for problem in problems[:MAX_NAMED_DAMAGED_LINES]
    ]
    more += len(problems) - len(named)
    return (*named, *([f"and {more:,} more such lines"] if more else []))
