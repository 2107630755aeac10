"""The index of a run: its summary, its attempts without their texts in blocks that can be read one by one, and a footer.

An index ends with its footer, the size of the footer in eight bytes, and `INDEX_END`.
"""

from __future__ import annotations

import os
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from operator import itemgetter
from typing import IO, NamedTuple, overload

import msgspec
from msgspec.structs import replace

from steelyard.analysis import scoring
from steelyard.analysis.attempts import NO_PLACE, AttemptRow, AttemptTable, VerdictDigest
from steelyard.analysis.headlines import ATTEMPT_TABLE_VERSION
from steelyard.analysis.summary import Summary
from steelyard.errors import InputError, StoreError
from steelyard.store.journal import DECODE_ERRORS, StoredRun
from steelyard.store.run_folders import ATTEMPT_INDEX_FILE, run_fingerprint

BLOCK_ROWS = 2048
MAX_ROWS_IN_MEMORY = 40_000
"""Rows of an index up to which all of them are held in memory."""
INDEX_END = b"\n#index"
_SIZE_BYTES = 8
_CASE, _COLUMN, _DIGEST = (AttemptRow._fields.index(name) for name in ("case", "column", "digest"))
_MAP_16, _ARRAY_32 = b"\xde", b"\xdd"
"""What begins a map of msgpack before its size in two bytes, and an array before its size in four."""


class RowBlock(NamedTuple):
    """Where some rows lie."""

    offset: int
    size: int
    rows: int


class TableSizes(NamedTuple):
    """How many cases, columns and digests there are: no row is about any other."""

    cases: int
    columns: int
    digests: int


class IndexFooter(msgspec.Struct, frozen=True, array_like=True):
    """What follows the summary and the blocks of rows."""

    fingerprint: str
    table: AttemptTable
    """Without its rows."""
    summary_size: int
    blocks: tuple[RowBlock, ...]


class StoredIndex(NamedTuple):
    """An index that was read."""

    table: AttemptTable
    """Its rows stay in the file where they are many."""
    summary: bytes
    """The summary by the run's own k and rule, packed."""


_rows = msgspec.msgpack.Decoder(tuple[AttemptRow, ...])
_footer = msgspec.msgpack.Decoder(IndexFooter)
_summary = msgspec.msgpack.Decoder(Summary)


def packed_blocks(rows: Iterable[AttemptRow], offset: int = 0) -> Iterator[tuple[RowBlock, bytes]]:
    """Blocks of rows, each with the place that it has if they are written one after the other."""
    coming = iter(rows)
    while block := list(islice(coming, BLOCK_ROWS)):
        content = msgspec.msgpack.encode(block)
        yield RowBlock(offset, len(content), len(block)), content
        offset += len(content)


def write_rows(rows: Iterable[AttemptRow], file: IO[bytes]) -> list[RowBlock]:
    """Write rows to an empty file; returns where they lie."""
    blocks = []
    for block, content in packed_blocks(rows):
        file.write(content)
        blocks.append(block)
    file.flush()
    return blocks


def index_pieces(stored: StoredRun, table: AttemptTable, summary: Summary) -> Iterator[bytes]:
    """The index of a run as it is written."""
    fingerprint = run_fingerprint(stored, ATTEMPT_TABLE_VERSION)
    summary_size, blocks = 0, []
    for piece in _summary_pieces(summary):
        summary_size += len(piece)
        yield piece
    for block, content in packed_blocks(table.rows, summary_size):
        blocks.append(block)
        yield content
    footer = msgspec.msgpack.encode(IndexFooter(fingerprint, replace(table, rows=()), summary_size, tuple(blocks)))
    yield footer + len(footer).to_bytes(_SIZE_BYTES, "little") + INDEX_END


def _summary_pieces(summary: Summary) -> Iterator[bytes]:
    """A summary as bytes, the cases one by one: there may be a hundred thousand."""
    encode = msgspec.msgpack.Encoder().encode
    fields = msgspec.structs.asdict(summary)
    cases = fields.pop("cases")
    yield _MAP_16 + (len(fields) + 1).to_bytes(2, "big")
    for name, value in fields.items():
        yield encode(name) + encode(value)
    yield encode("cases") + _ARRAY_32 + len(cases).to_bytes(4, "big")
    yield from map(encode, cases)


def read_index(stored: StoredRun, cases: int) -> StoredIndex | None:
    """The index of a run with this many cases as it is now; None if it is missing, stale or damaged."""
    path = stored.folder / ATTEMPT_INDEX_FILE
    try:
        with stored.open_whole(path) as file:
            place = file.fileno()
            footer = _read_footer(place, os.fstat(place).st_size)
            if footer.fingerprint != run_fingerprint(stored, ATTEMPT_TABLE_VERSION):
                return None
            table = footer.table
            if table.journals != tuple(journal.name for journal in stored.journals()):
                return None
            sizes = TableSizes(cases, len(table.columns), len(table.digests))
            rows = StoredRows(place, footer.blocks, sizes, str(path))
            few = tuple(rows) if len(rows) <= MAX_ROWS_IN_MEMORY else rows
            return StoredIndex(replace(table, rows=few), os.pread(place, footer.summary_size, 0))
    except (OSError, ValueError, InputError, StoreError):
        return None


def _read_footer(file: int, size: int) -> IndexFooter:
    """What follows the rows of an index of `size` bytes; raises a ValueError where the index is damaged."""
    tail = len(INDEX_END) + _SIZE_BYTES
    end = os.pread(file, tail, max(0, size - tail))
    length = int.from_bytes(end[:_SIZE_BYTES], "little")
    if not end.endswith(INDEX_END) or length > size - tail:
        raise ValueError("no index, or one that is cut off")
    try:
        footer = _footer.decode(os.pread(file, length, size - tail - length))
    except DECODE_ERRORS as error:
        raise ValueError(str(error)) from None
    offset = footer.summary_size
    for block in footer.blocks:
        if block.offset != offset or block.size < 0 or block.rows <= 0:
            raise ValueError("blocks that do not follow each other")
        offset += block.size
    if footer.summary_size < 0 or offset != size - tail - length:
        raise ValueError("blocks of another size")
    if not all(map(_is_valid_digest, footer.table.digests)):
        raise ValueError("a digest that no finding has")
    return footer


def _is_valid_digest(digest: VerdictDigest) -> bool:
    measured = digest.measured
    shares = (digest.lint, measured.passing, measured.settled, *measured.facts)
    is_complete = len(measured.facts) == len(scoring.SCORED_FACTS) or measured.settled is not None
    return is_complete and all(share is None or 0 <= share <= 1 for share in shares)


class _SummaryOfModels(Summary, frozen=True, kw_only=True):
    """A summary whose cases stay packed."""

    cases: msgspec.Raw  # type: ignore[assignment]


_models = msgspec.msgpack.Decoder(_SummaryOfModels)


def unpack_summary(content: bytes) -> Summary:
    """The summary of an index; raises a ValueError where it is damaged."""
    try:
        return _summary.decode(content)
    except DECODE_ERRORS as error:
        raise ValueError(str(error)) from None


def unpack_summary_of_models(content: bytes) -> Summary:
    """The same without its cases: those of a hundred thousand take as much memory as all their attempts."""
    try:
        fields = msgspec.structs.asdict(_models.decode(content))
    except DECODE_ERRORS as error:
        raise ValueError(str(error)) from None
    return Summary(**fields | {"cases": ()})


class StoredRows(Sequence[AttemptRow]):
    """The rows of a file, of which one block at a time is in memory."""

    def __init__(self, file: int, blocks: Sequence[RowBlock], sizes: TableSizes, where: str) -> None:
        """`file` is an open file, which is duplicated; `where` is what an error calls it."""
        self._file, self._blocks, self._sizes, self._where = os.dup(file), blocks, sizes, where
        self._ends = list(accumulate(block.rows for block in blocks))
        self._kept: tuple[int, tuple[AttemptRow, ...]] = (-1, ())
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[AttemptRow]:
        for number in range(len(self._blocks)):
            yield from self._rows(number)

    @overload
    def __getitem__(self, index: int) -> AttemptRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[AttemptRow]: ...
    def __getitem__(self, index: int | slice) -> AttemptRow | list[AttemptRow]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        number = bisect_right(self._ends, place)
        if self._kept[0] != number:
            self._kept = number, self._rows(number)
        return self._kept[1][place - self._ends[number]]

    def _rows(self, number: int) -> tuple[AttemptRow, ...]:
        block = self._blocks[number]
        try:
            rows = _rows.decode(os.pread(self._file, block.size, block.offset))
            _check_rows(rows, self._sizes)
            if len(rows) != block.rows:
                raise ValueError("a block with other rows")
        except (OSError, ValueError, *DECODE_ERRORS) as error:
            raise StoreError(f"{self._where}: damaged ({error}); delete it, and it is made again") from None
        return rows


def _check_rows(rows: Sequence[AttemptRow], sizes: TableSizes) -> None:
    """Raises a ValueError where rows are about what a table does not have."""
    for field, size in zip((_CASE, _COLUMN, _DIGEST), sizes, strict=True):
        indexes = set(map(itemgetter(field), rows)) - ({NO_PLACE} if field == _DIGEST else set())
        if indexes and not 0 <= min(indexes) <= max(indexes) < size:
            raise ValueError("a row of a case, column or digest that does not exist")
