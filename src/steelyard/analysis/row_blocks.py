"""The index of a large run as bytes: rows in blocks that can be read one by one, then all that is not in rows.

An index ends with its footer, the size of the footer in eight bytes, and `INDEX_END`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

import msgspec

from steelyard.analysis.attempts import NO_PLACE, AttemptRow, AttemptTable

BLOCK_ROWS = 2048
INDEX_END = b"\n#blocks"
_SIZE_BYTES = 8
_CASE, _COLUMN, _DIGEST = (AttemptRow._fields.index(name) for name in ("case", "column", "digest"))


class RowBlock(NamedTuple):
    """Where some rows lie."""

    offset: int
    size: int
    rows: int


class IndexFooter(msgspec.Struct, frozen=True, array_like=True):
    """What follows the blocks of rows."""

    fingerprint: str
    table: AttemptTable
    """Without its rows."""
    summary: memoryview
    """A part of what was read, and not a copy of it: that of many cases is large."""
    blocks: tuple[RowBlock, ...]


class TableSizes(NamedTuple):
    """How many cases, columns and digests there are: no row is about any other."""

    cases: int
    columns: int
    digests: int


_ARRAY_OF_4, _BYTES_HEADER = b"\x94", b"\xc6"
"""What begins four fields, and bytes before their length, in msgpack."""
_rows = msgspec.msgpack.Decoder(tuple[AttemptRow, ...])
_footer = msgspec.msgpack.Decoder(IndexFooter)


def packed_blocks(rows: Iterable[AttemptRow]) -> Iterator[tuple[RowBlock, bytes]]:
    """Blocks of rows, each with the place that it has if they are written one after the other."""
    offset, coming = 0, iter(rows)
    while block := list(islice(coming, BLOCK_ROWS)):
        content = msgspec.msgpack.encode(block)
        yield RowBlock(offset, len(content), len(block)), content
        offset += len(content)


def unpacked_rows(content: bytes, sizes: TableSizes) -> tuple[AttemptRow, ...]:
    """The rows of a block; raises a ValueError where they cannot be those of such a table."""
    try:
        rows = _rows.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    check_rows(rows, sizes)
    return rows


def check_rows(rows: Sequence[AttemptRow], sizes: TableSizes) -> None:
    """Raises a ValueError where rows are about what a table does not have."""
    for field, size in zip((_CASE, _COLUMN, _DIGEST), sizes, strict=True):
        indexes = set(map(itemgetter(field), rows)) - ({NO_PLACE} if field == _DIGEST else set())
        if indexes and not 0 <= min(indexes) <= max(indexes) < size:
            raise ValueError("a row of a case, column or digest that does not exist")


def footer_pieces(
    fingerprint: str, table: AttemptTable, summary: Callable[[], Iterator[bytes]], blocks: Sequence[RowBlock]
) -> Iterator[bytes]:
    """The end of an index; the summary of many cases is large, so it is made twice, and never in memory as a whole."""
    first, second, last = map(msgspec.msgpack.encode, (fingerprint, table, blocks))
    length = sum(map(len, summary()))
    before = _ARRAY_OF_4 + first + second + _BYTES_HEADER + length.to_bytes(4, "big")
    yield before
    yield from summary()
    yield last + (len(before) + length + len(last)).to_bytes(_SIZE_BYTES, "little") + INDEX_END


def unpacked_footer(read: Callable[[int, int], bytes], size: int) -> IndexFooter | None:
    """What follows the blocks of an index of `size` bytes, given what reads bytes at a place; None if it is an index without blocks.

    Raises a ValueError where the index is damaged.
    """
    tail = len(INDEX_END) + _SIZE_BYTES
    end = read(max(0, size - tail), tail)
    if not end.endswith(INDEX_END):
        return None
    length = int.from_bytes(end[:_SIZE_BYTES], "little")
    if length > size - tail:
        raise ValueError("an index that is cut off")
    try:
        footer = _footer.decode(read(size - tail - length, length))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    offset = 0
    for block in footer.blocks:
        if block.offset != offset or block.size < 0 or block.rows <= 0:
            raise ValueError("blocks that do not follow each other")
        offset += block.size
    if offset != size - tail - length:
        raise ValueError("blocks of another size")
    return footer
