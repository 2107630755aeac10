"""Many values of few kinds, at a byte each."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar, overload

MAX_BYTE_CODES = 256
CodedValue = TypeVar("CodedValue", bound=Hashable)


class CodedSequence(Sequence[CodedValue], Generic[CodedValue]):
    """A sequence that holds each different value once, and for each place its number."""

    def __init__(self) -> None:
        self._numbers: dict[CodedValue, int] = {}
        self.values: list[CodedValue] = []
        """The different values."""
        self.codes = array("B")
        """For each place the number of its value."""

    def append(self, value: CodedValue) -> None:
        number = self._number(value)
        self.codes.append(number)

    def _number(self, value: CodedValue) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
            if number == MAX_BYTE_CODES:
                self.codes = array("L", self.codes)
        return number

    def __setitem__(self, place: int, value: CodedValue) -> None:
        # the number first: it may make the codes wider
        number = self._number(value)
        self.codes[place] = number

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[CodedValue]:
        return map(self.values.__getitem__, self.codes)

    @overload
    def __getitem__(self, index: int) -> CodedValue: ...
    @overload
    def __getitem__(self, index: slice) -> list[CodedValue]: ...
    def __getitem__(self, index: int | slice) -> CodedValue | list[CodedValue]:
        if isinstance(index, slice):
            return [self.values[code] for code in self.codes[index]]
        return self.values[self.codes[index]]
