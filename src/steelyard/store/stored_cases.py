"""Cases that stay in a file: each is decoded when it is asked for, and a few are kept."""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import BinaryIO, overload

import msgspec

from steelyard.errors import StoreError
from steelyard.records import Case

MAX_CASE_BYTES_IN_MEMORY = 16 << 20
"""Bytes of cases up to which all of them are held in memory; a run holds them several times over."""
KEPT_CASE_BYTES = 2 << 20
"""Bytes of the cases that were asked for last and are kept."""


class StoredCases(Sequence[Case]):
    """The cases of a file that must not change; they take some 8 bytes each."""

    def __init__(
        self,
        lines: _CaseLines,
        indexes: Sequence[int] | None = None,
        changes: tuple[Callable[[Case], Case], ...] = (),
    ) -> None:
        self._lines = lines
        self._indexes = range(len(lines)) if indexes is None else indexes
        self._changes = changes
        self._kept: dict[int, Case] = {}
        self._kept_bytes = 0
        self._lock = Lock()

    def changed(self, change: Callable[[Case], Case]) -> StoredCases:
        """The same cases, each changed when it is asked for."""
        return StoredCases(self._lines, self._indexes, (*self._changes, change))

    def __len__(self) -> int:
        return len(self._indexes)

    def __iter__(self) -> Iterator[Case]:
        # a pass over all of them would only push out what is kept
        return map(self._read, self._indexes)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> StoredCases: ...
    def __getitem__(self, index: int | slice) -> Case | StoredCases:
        if isinstance(index, slice):
            return StoredCases(self._lines, self._indexes[index], self._changes)
        place = self._indexes[index]
        with self._lock:
            case = self._kept.get(place)
            if case is None:
                case = self._kept[place] = self._read(place)
                self._kept_bytes += self._lines.size(place)
                while self._kept_bytes > KEPT_CASE_BYTES and len(self._kept) > 1:
                    oldest = next(iter(self._kept))
                    del self._kept[oldest]
                    self._kept_bytes -= self._lines.size(oldest)
        return case

    def _read(self, place: int) -> Case:
        case = self._lines.case(place)
        for change in self._changes:
            case = change(case)
        return case


class _CaseLines:
    """The lines of a file, by their numbers."""

    def __init__(self, file: int, ends: array[int], decode: Callable[[bytes], Case]) -> None:
        """`file` is an open file, which is duplicated; `ends` are the ends of its lines, after 0."""
        self._file, self._ends, self._decode = os.dup(file), ends, decode
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def size(self, number: int) -> int:
        return self._ends[number + 1] - self._ends[number]

    def case(self, number: int) -> Case:
        line = os.pread(self._file, self.size(number), self._ends[number])
        if len(line) != self.size(number):
            raise StoreError("the file of the cases was cut off while it was read; read the run again")
        return self._decode(line)


class CaseFileReader:
    """Reads the cases of an open file, one on each line; what decoding a line raises is raised here."""

    def __init__(self, file: BinaryIO, decode: Callable[[bytes], Case]) -> None:
        self._file, self._decode = file, decode
        self.line = 0
        """The number of the line that was read last, from 1."""

    def cases(self) -> Sequence[Case]:
        """All cases; they stay in the file if it is large."""
        is_large = os.fstat(self._file.fileno()).st_size > MAX_CASE_BYTES_IN_MEMORY
        ends, cases = array("Q", [0]), []
        for self.line, line in enumerate(self._file, 1):  # noqa: B020  the number is for whoever reports an error
            case = self._decode(line)
            if is_large:
                ends.append(ends[-1] + len(line))
            else:
                cases.append(case)
        return StoredCases(_CaseLines(self._file.fileno(), ends, self._decode)) if is_large else tuple(cases)


def spilled_cases(cases: Iterable[Case]) -> StoredCases:
    """Cases in a file without a name, as a run that has them gives them back."""
    ends = array("Q", [0])
    encode = msgspec.json.Encoder().encode
    with tempfile.TemporaryFile() as file:
        for case in cases:
            ends.append(ends[-1] + file.write(encode(case) + b"\n"))
        file.flush()
        return StoredCases(_CaseLines(file.fileno(), ends, msgspec.json.Decoder(Case).decode))


def changed_cases(cases: Sequence[Case], change: Callable[[Case], Case]) -> Sequence[Case]:
    """The cases, each changed; those that stay in a file stay there."""
    return cases.changed(change) if isinstance(cases, StoredCases) else tuple(map(change, cases))


class _CasesById(Mapping[str, Case]):
    """Cases of a file by their ids."""

    def __init__(self, cases: StoredCases) -> None:
        self._cases = cases
        self._places = {case.id: place for place, case in enumerate(cases)}

    def __getitem__(self, case: str) -> Case:
        return self._cases[self._places[case]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, case: object) -> bool:
        return case in self._places


def cases_by_id(cases: Sequence[Case]) -> Mapping[str, Case]:
    """The cases by their ids."""
    return _CasesById(cases) if isinstance(cases, StoredCases) else {case.id: case for case in cases}
