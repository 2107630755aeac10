"""Rows of attempts that stay in a file: blocks of them are read when they are asked for."""

from __future__ import annotations

import os
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import IO, overload

from steelyard.analysis.attempts import AttemptRow
from steelyard.analysis.row_blocks import RowBlock, TableSizes, packed_blocks, unpacked_rows
from steelyard.errors import StoreError

COPIED_BYTES = 1 << 20
"""Bytes that are copied at once."""


class StoredRows(Sequence[AttemptRow]):
    """The rows of a file, of which one block at a time is in memory."""

    def __init__(self, file: int, blocks: Sequence[RowBlock], sizes: TableSizes, where: str) -> None:
        """`file` is an open file, which is duplicated; `where` is what an error calls it."""
        self._file, self._blocks, self._sizes, self._where = os.dup(file), blocks, sizes, where
        self._ends = list(accumulate(block.rows for block in blocks))
        self._kept: tuple[int, tuple[AttemptRow, ...]] = (-1, ())
        weakref.finalize(self, os.close, self._file)

    @property
    def blocks(self) -> Sequence[RowBlock]:
        return self._blocks

    def pieces(self) -> Iterator[bytes]:
        """All blocks as they are written."""
        offset, end = 0, sum(block.size for block in self._blocks)
        while offset < end:
            piece = os.pread(self._file, min(COPIED_BYTES, end - offset), offset)
            if not piece:
                raise StoreError(f"{self._where}: was cut off while it was read; read the run again")
            yield piece
            offset += len(piece)

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
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        number = bisect_right(self._ends, place)
        if self._kept[0] != number:
            self._kept = number, self._rows(number)
        return self._kept[1][place - self._ends[number]]

    def _rows(self, number: int) -> tuple[AttemptRow, ...]:
        block = self._blocks[number]
        try:
            rows = unpacked_rows(os.pread(self._file, block.size, block.offset), self._sizes)
            if len(rows) != block.rows:
                raise ValueError("a block with other rows")
        except (OSError, ValueError) as error:
            raise StoreError(f"{self._where}: damaged ({error}); delete it, and it is made again") from None
        return rows


def write_rows(rows: Iterable[AttemptRow], file: IO[bytes]) -> list[RowBlock]:
    """Write rows to an empty file; returns where they lie."""
    blocks = []
    for block, content in packed_blocks(rows):
        file.write(content)
        blocks.append(block)
    file.flush()
    return blocks


def scratch_file(folder: Path | None) -> IO[bytes]:
    """A file without a name, where possible on the disk of a folder: memory that poses as a disk may be small."""
    if folder is not None:
        with suppress(OSError):
            return tempfile.TemporaryFile(dir=folder)
    return tempfile.TemporaryFile()
