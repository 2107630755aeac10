"""The attempts of a stored run without their texts, from the index beside its journals or from the journals."""

from __future__ import annotations

import sys
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from steelyard.analysis.attempts import (
    NO_PLACE,
    AttemptHistory,
    AttemptKey,
    AttemptRow,
    AttemptTable,
    AttemptTableBuilder,
    Column,
    FailureNote,
    ReplyNote,
    VerdictNote,
)
from steelyard.analysis.headlines import problem_sentences
from steelyard.engine.results.attempt_index import StoredRows, TableSizes, read_index, write_rows
from steelyard.records import Case, RunInfo
from steelyard.store.journal import JournalReader, StoredRun, fact_offset

MAX_JOURNAL_BYTES_IN_MEMORY = 48 << 20
"""Bytes of journals, some 40,000 attempts, up to which all rows are held in memory."""


def stored_attempt_table(
    stored: StoredRun, info: RunInfo, cases: Sequence[Case], *, rule: str | None = None
) -> AttemptTable:
    """The attempts of a run without their texts: from its index where that is current, otherwise from its journals."""
    stored.damaged = []
    is_own_rule = rule in (None, "", info.rule) and info == stored.info
    index = read_index(stored, len(cases)) if is_own_rule else None
    # lines that could not be read must be reported
    if index is None or index.table.problems:
        return joined_attempt_table(stored, info, cases, rule=rule)
    return index.table


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


MAX_PARTS = 512
"""Parts of the file: of ten million attempts, 20,000 are joined at once."""
BUFFER_BYTES = 1 << 14
"""Bytes of a part that wait for being written."""
_ARRAY_HEADER = b"\xdd"
"""What begins an array of msgpack, before its length in four bytes."""

_SpilledNote = tuple[int, int, int, int, str, Any]
"""The index of the case, the number of the column, the number of the attempt, the kind of the fact, a key, and the note."""
_REPLY, _VERDICT, _FAILURE, _JUDGING = range(4)

_notes = msgspec.msgpack.Decoder(list[_SpilledNote])
_encode = msgspec.msgpack.Encoder().encode


class SpilledTableBuilder(AttemptTableBuilder):
    """A builder whose notes wait in a file; it makes one table."""

    def __init__(
        self, info: RunInfo, cases: Sequence[Case], folder: Path | None = None, *, rule: str | None = None
    ) -> None:
        """The file is on the disk of `folder`, if that takes one."""
        super().__init__(info, cases, rule=rule)
        self._folder = folder
        self._file = scratch_file(folder)
        self._parts = max(1, min(len(cases), MAX_PARTS))
        self._buffers = [bytearray() for _ in range(self._parts)]
        self._counts = [0] * self._parts
        self._pieces = [array("Q") for _ in range(self._parts)]
        """For each part the offset, the size and the number of notes of each of its pieces of the file."""
        self._end = 0
        self._numbers: dict[Column, int] = {}
        self._recorder = _NoteRecorder(self)

    def history(self, key: AttemptKey) -> AttemptHistory:
        self._recorder.of = key
        return self._recorder

    def spill(self, key: AttemptKey, kind: int, text: str, note: Any) -> None:
        """Put a note into the part of its case."""
        order, model, tier, number = key
        column = self._numbers.setdefault(Column(model, tier), len(self._numbers))
        part = order * self._parts // len(self._cases)
        buffer = self._buffers[part]
        buffer += _encode((order, column, number, kind, text, note))
        self._counts[part] += 1
        if len(buffer) >= BUFFER_BYTES:
            self._flush(part)

    def _flush(self, part: int) -> None:
        buffer = self._buffers[part]
        self._file.write(buffer)
        self._pieces[part].extend((self._end, len(buffer), self._counts[part]))
        self._end += len(buffer)
        self._counts[part] = 0
        buffer.clear()

    def table(
        self,
        journals: Iterable[str] = (),
        problems: Iterable[str] = (),
        *,
        is_last: bool = True,  # noqa: ARG002  there is only one
    ) -> AttemptTable:
        columns = tuple(sorted(self._columns.union(self._numbers)))
        with self._file, scratch_file(self._folder) as file:
            blocks = write_rows(self._counting(self._rows(columns)), file)
            sizes = TableSizes(len(self._cases), len(columns), len(self._notes.digests))
            rows = StoredRows(file.fileno(), blocks, sizes, f"{self._folder}: its attempts")
        return self._with_rows(columns, rows, journals, problems)

    def counting_places(self) -> Iterator[int]:
        with self._file:
            for row in self._counting(self._rows(tuple(sorted(self._columns.union(self._numbers))))):
                facts = row.reply_place, row.verdict_place, row.failure_place
                yield from (place for place in facts if place != NO_PLACE)

    def _rows(self, columns: Sequence[Column]) -> Iterator[AttemptRow]:
        """The rows of one part after the other, which is the order of the cases."""
        for part in range(self._parts):
            self._flush(part)
        self._file.flush()
        indexes = [columns.index(column) for column in self._numbers]
        for part in range(self._parts):
            histories: dict[tuple[int, int, int], AttemptHistory] = {}
            for order, column, number, kind, text, note in self._part(part):
                key = order, indexes[column], number
                history = histories.get(key)
                if history is None:
                    history = histories[key] = AttemptHistory()
                if kind == _REPLY:
                    history.add_reply(text, _reply_note(note))
                elif kind == _VERDICT:
                    history.add_verdict(text, None if note is None else VerdictNote(*note))
                elif kind == _FAILURE:
                    history.add_failure(FailureNote(*note))
            for key in sorted(histories):
                yield self._notes.row(*key, self._cases[key[0]], *histories.pop(key).parts())

    def _part(self, part: int) -> Iterator[_SpilledNote]:
        """The notes of a part, of which one piece at a time is in memory."""
        pieces = iter(self._pieces[part])
        for offset, size, count in zip(pieces, pieces, pieces, strict=True):
            self._file.seek(offset)
            yield from _notes.decode(_ARRAY_HEADER + count.to_bytes(4, "big") + self._file.read(size))


def _reply_note(note: Any) -> ReplyNote:
    finish, *rest, cached_from, place = note
    return (sys.intern(finish), *rest, tuple(cached_from), place)


class _NoteRecorder(AttemptHistory):
    """Stands for the history of any attempt, and puts what is added to it aside."""

    def __init__(self, builder: SpilledTableBuilder) -> None:
        super().__init__()
        self._builder = builder
        self.of: AttemptKey = (0, "", "", 0)

    def add_reply(self, key: str, reply: ReplyNote) -> None:
        self._builder.spill(self.of, _REPLY, key, reply)

    def add_verdict(self, ask: str, verdict: VerdictNote | None) -> None:
        self._builder.spill(self.of, _VERDICT, ask, verdict)

    def add_failure(self, failure: FailureNote) -> None:
        self._builder.spill(self.of, _FAILURE, "", failure)

    def add_judging(self) -> None:
        self._builder.spill(self.of, _JUDGING, "", None)


def scratch_file(folder: Path | None) -> IO[bytes]:
    """A file without a name, where possible on the disk of a folder: memory that poses as a disk may be small."""
    if folder is not None:
        with suppress(OSError):
            return tempfile.TemporaryFile(dir=folder)
    return tempfile.TemporaryFile()
