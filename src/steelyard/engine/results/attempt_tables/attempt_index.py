"""The attempts of a stored run without their texts, from the index beside its journals or from the journals."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from steelyard.analysis.attempts import AttemptTable, AttemptTableBuilder
from steelyard.analysis.headlines import (
    ATTEMPT_TABLE_VERSION,
    checked_footer,
    pack_attempt_table,
    pack_summary,
    problem_sentences,
    unpack_attempt_table,
)
from steelyard.analysis.row_blocks import IndexFooter, packed_footer, unpacked_footer
from steelyard.analysis.summary import Summary
from steelyard.engine.results.attempt_tables.spilled_attempts import SpilledTableBuilder
from steelyard.engine.results.attempt_tables.stored_rows import StoredRows
from steelyard.errors import InputError
from steelyard.records import Case, RunInfo
from steelyard.store.journal import JournalReader, StoredRun, fact_offset
from steelyard.store.run_folders import ATTEMPT_INDEX_FILE, run_fingerprint

MAX_JOURNAL_BYTES_IN_MEMORY = 48 << 20
"""Bytes of journals, some 40,000 attempts, up to which all rows are held in memory."""


def stored_attempt_table(
    stored: StoredRun, info: RunInfo, cases: Sequence[Case], *, rule: str | None = None
) -> AttemptTable:
    """The attempts of a run without their texts: from its index where that is current, otherwise from its journals."""
    stored.damaged = []
    is_own_rule = rule in (None, "", info.rule) and info == stored.info
    table = _indexed_table(stored, len(cases)) if is_own_rule else None
    return joined_attempt_table(stored, info, cases, rule=rule) if table is None else table


def joined_attempt_table(
    stored: StoredRun, info: RunInfo, cases: Sequence[Case], *, rule: str | None = None
) -> AttemptTable:
    """The same from the journals; the rows of a large run stay in a file without a name."""
    stored.damaged = []
    paths = stored.journals()
    builder = table_builder(stored, info, cases, rule=rule)
    for number, path in enumerate(paths):
        begin = fact_offset(number, 0)
        for byte, fact in JournalReader(stored, path, stored.damaged.append).facts():
            builder.add(begin + byte, fact)
    return builder.table([path.name for path in paths], problem_sentences(stored.damaged), is_last=True)


def table_builder(
    stored: StoredRun, info: RunInfo, cases: Sequence[Case], *, rule: str | None = None
) -> AttemptTableBuilder:
    """What joins the facts of a run: in memory, or where there are many, in a file."""
    size = sum(path.stat().st_size for path in stored.journals())
    if size <= MAX_JOURNAL_BYTES_IN_MEMORY:
        return AttemptTableBuilder(info, cases, rule=rule)
    return SpilledTableBuilder(info, cases, stored.folder, rule=rule)


def index_pieces(stored: StoredRun, table: AttemptTable, summary: Summary) -> Iterator[bytes]:
    """The index of a run as it is written."""
    fingerprint = run_fingerprint(stored, ATTEMPT_TABLE_VERSION)
    if not isinstance(table.rows, StoredRows):
        yield pack_attempt_table(fingerprint, table, summary)
        return
    yield from table.rows.pieces()
    blocks = tuple(table.rows.blocks)
    yield packed_footer(IndexFooter(fingerprint, replace(table, rows=()), pack_summary(summary), blocks))


def _indexed_table(stored: StoredRun, cases: int) -> AttemptTable | None:
    """The table of the run as it is now; None if the index is missing or stale, or if lines are damaged, which must be reported."""
    path = stored.folder / ATTEMPT_INDEX_FILE
    try:
        with stored.open(path) as file:
            place = file.fileno()
            footer = unpacked_footer(lambda offset, size: os.pread(place, size, offset), os.fstat(place).st_size)
            fingerprint = run_fingerprint(stored, ATTEMPT_TABLE_VERSION)
            if footer is None:
                table, _ = unpack_attempt_table(stored.content(path), fingerprint, cases)
            else:
                rows = StoredRows(place, footer.blocks, checked_footer(footer, fingerprint, cases), str(path))
                table = replace(footer.table, rows=rows)
    except (OSError, ValueError, InputError):
        return None
    names = tuple(path.name for path in stored.journals())
    return table if table.journals == names and not table.problems else None
