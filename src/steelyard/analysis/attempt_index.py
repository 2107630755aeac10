"""The table of a run's attempts as a file: packed with its summary, so that a viewer need not read the journal."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from steelyard.analysis import scoring
from steelyard.analysis.attempts import NO_PLACE, AttemptTable, VerdictDigest
from steelyard.analysis.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.errors import Problem

ATTEMPT_TABLE_VERSION = 3
"""Goes up when the format of the index changes; older ones are made again."""
MAX_NAMED_DAMAGED_LINES = 20
"""Damaged lines that are named; the others are only counted."""

_attempt_table_decoder = msgspec.msgpack.Decoder(tuple[str, AttemptTable, bytes])
_summary_decoder = msgspec.msgpack.Decoder(Summary)


def pack_attempt_table(fingerprint: str, table: AttemptTable, summary: Summary) -> bytes:
    """A table as bytes, with the fingerprint of its run and the summary by the run's own k and rule."""
    return msgspec.msgpack.encode((fingerprint, table, msgspec.msgpack.encode(summary)))


def unpack_attempt_table(content: bytes, fingerprint: str, cases: int) -> tuple[AttemptTable, bytes]:
    """The table of a run with this many cases, and its summary still packed.

    Raises a ValueError where the index is damaged or belongs to another state of the run.
    """
    try:
        state, table, summary = _attempt_table_decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    for size, indexes in (
        (cases, set(map(attrgetter("case"), table.rows))),
        (len(table.columns), set(map(attrgetter("column"), table.rows))),
        (len(table.digests), set(map(attrgetter("digest"), table.rows)) - {NO_PLACE}),
    ):
        if indexes and not 0 <= min(indexes) <= max(indexes) < size:
            raise ValueError("a row of a case, column or digest that does not exist")
    if not all(map(_is_valid_digest, table.digests)):
        raise ValueError("a digest that no finding has")
    if state != fingerprint:
        raise ValueError("the index of another state of the run")
    return table, summary


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


def problem_sentences(problems: Sequence[Problem], more: int = 0) -> tuple[str, ...]:
    """What could not be read, without the folder; `more` are known only by their number."""
    named = [
        str(problem._replace(where=problem.where.rpartition("/")[2])) for problem in problems[:MAX_NAMED_DAMAGED_LINES]
    ]
    more += len(problems) - len(named)
    return (*named, *([f"and {more:,} more such lines"] if more else []))
