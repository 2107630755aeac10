"""Cases that stay in a file: each is decoded when it is asked for, and a few are kept."""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import IO, BinaryIO, overload

import msgspec

from steelyard.errors import StoreError
from steelyard.records import Case

MAX_CASE_BYTES_IN_MEMORY = 16 << 20
"""Bytes of cases up to which all of them are held in memory; a run holds them several times over."""
CASE_OVERHEAD_BYTES = 1000
"""Bytes that a case takes in memory besides its text, about: up to some 16,000 short cases are held."""
KEPT_CASE_BYTES = 2 << 20
"""Bytes that the cases that were asked for last and are kept take in memory, about."""


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

    def chosen(self, is_wanted: Callable[[Case], bool]) -> StoredCases:
        """Some of the cases."""
        indexes = array("Q", (index for index in self._indexes if is_wanted(self._read(index))))
        return StoredCases(self._lines, indexes, self._changes)

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
                self._kept_bytes += self._lines.size(place) + CASE_OVERHEAD_BYTES
                while self._kept_bytes > KEPT_CASE_BYTES and len(self._kept) > 1:
                    oldest = next(iter(self._kept))
                    del self._kept[oldest]
                    self._kept_bytes -= self._lines.size(oldest) + CASE_OVERHEAD_BYTES
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
        """All cases; they stay in the file if they are many or long."""
        ends, cases = array("Q", [0]), list[Case]()
        is_large = False
        for self.line, line in enumerate(self._file, 1):  # noqa: B020  the number is for whoever reports an error
            case = self._decode(line)
            ends.append(ends[-1] + len(line))
            if not is_large:
                cases.append(case)
                if is_large := _are_large(ends):
                    cases.clear()
        return StoredCases(_CaseLines(self._file.fileno(), ends, self._decode)) if is_large else tuple(cases)


def _are_large(ends: array[int]) -> bool:
    """Whether cases with lines that end there take too much memory."""
    return ends[-1] + (len(ends) - 1) * CASE_OVERHEAD_BYTES > MAX_CASE_BYTES_IN_MEMORY


class CaseCollector:
    """Cases that come one by one: many or long ones go to a file without a name, and come back as a run gives them back."""

    def __init__(self) -> None:
        self._cases: list[Case] = []
        self._ends = array("Q", [0])
        self._file: IO[bytes] | None = None
        self._encode = msgspec.json.Encoder().encode

    def append(self, case: Case) -> None:
        """Add a case."""
        line = self._encode(case) + b"\n"
        self._ends.append(self._ends[-1] + len(line))
        if self._file is not None:
            self._file.write(line)
            return
        self._cases.append(case)
        if _are_large(self._ends):
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed with the collector
            weakref.finalize(self, self._file.close)
            self._file.writelines(self._encode(case) + b"\n" for case in self._cases)
            self._cases.clear()

    def cases(self) -> Sequence[Case]:
        """All of them, once no more come."""
        if self._file is None:
            return tuple(self._cases)
        self._file.flush()
        return StoredCases(_CaseLines(self._file.fileno(), self._ends, msgspec.json.Decoder(Case).decode))


def collected_cases(cases: Iterable[Case]) -> Sequence[Case]:
    """Cases that are computed one by one; many or long ones stay in a file."""
    collector = CaseCollector()
    for case in cases:
        collector.append(case)
    return collector.cases()


def chosen_cases(cases: Sequence[Case], is_wanted: Callable[[Case], bool]) -> Sequence[Case]:
    """Some of the cases; those that stay in a file stay there."""
    return cases.chosen(is_wanted) if isinstance(cases, StoredCases) else tuple(filter(is_wanted, cases))


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
