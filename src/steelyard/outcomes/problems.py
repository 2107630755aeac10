"""What is odd or wrong in files of outcomes, each kind reported once per file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.text import printable, short_quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_LINES_NAMED = 5
"""Lines that a complaint names."""

MAX_COLUMNS_LISTED = 40
"""Columns that a message lists."""


class OutcomeFile(NamedTuple):
    """A file that outcomes are read from."""

    number: int
    """Its place among the files given."""
    path: Path
    unit: str = "line"
    """What its rows are counted in: lines, or rows where there are no lines."""

    @property
    def name(self) -> str:
        return printable(str(self.path))


class LineNumbers(Protocol):
    """Line numbers, however they are kept."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...


class UnreadableOutcomesError(Exception):
    """A file that cannot be read from some line on."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


class IncompleteOutcomesError(Exception):
    """A file that lacks what it needs; all about it is reported already."""


class _OutcomeProblem:
    """One kind of thing, and where it occurs in one file."""

    def __init__(self, file: OutcomeFile, what: str, *, fatal: bool) -> None:
        self.file = file
        self.what = what
        self.fatal = fatal
        self.lines: list[int] = []
        self.count = 0

    def problem(self) -> Problem:
        first = self.lines[0] if self.lines else 0
        what = self.what
        if self.count > 1:
            what += f"; {self.count} such rows"
            if first:
                what += f", on {self.file.unit}s {_line_list(self.lines, self.count)}"
        if self.file.unit == "line" or not first:
            return Problem(self.file.name, first, what, self.fatal)
        return Problem(self.file.name, 0, f"{self.file.unit} {first}: {what}", self.fatal)


class OutcomeProblemCollector:
    """What was found so far; bounded, so that a hostile file cannot drown its reader."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str, bool], _OutcomeProblem] = {}

    def add(self, file: OutcomeFile, kind: str, what: str, lines: LineNumbers = (), *, fatal: bool = True) -> None:
        """Something at these lines; `what` is taken from the first of its kind in the file."""
        topic = file.number, kind, fatal
        if topic not in self._found:
            self._found[topic] = _OutcomeProblem(file, what, fatal=fatal)
        complaint = self._found[topic]
        complaint.count += len(lines)
        for line in lines:
            if len(complaint.lines) >= MAX_LINES_NAMED:
                break
            complaint.lines.append(int(line))

    def settled(self) -> tuple[Problem, ...]:
        """The warnings; raises an InputError with everything that is wrong, if anything is."""
        ordered = sorted(self._found.values(), key=lambda complaint: (complaint.file.number, complaint.lines[:1]))
        if errors := [complaint.problem() for complaint in ordered if complaint.fatal]:
            raise InputError(errors)
        return tuple(complaint.problem() for complaint in ordered)


def _line_list(lines: list[int], count: int) -> str:
    """Some line numbers in words.

    >>> _line_list([3, 5], 2)
    '3 and 5'
    >>> _line_list([3, 5, 9], 12)
    '3, 5, 9 and 9 more'
    """
    if count > len(lines):
        return f"{', '.join(map(str, lines))} and {count - len(lines)} more"
    return f"{', '.join(map(str, lines[:-1]))} and {lines[-1]}"


def missing_column_message(column: str, columns: Iterable[str]) -> str:
    """The complaint about a column that is not there, with those that are."""
    there = [printable(name[:80]) for name in columns if name]
    listed = there[:MAX_COLUMNS_LISTED]
    more = f", and {len(there) - MAX_COLUMNS_LISTED} more" if len(there) > MAX_COLUMNS_LISTED else ""
    return f"no column {short_quote(column)} ({did_you_mean(printable(column[:80]), listed) if listed else 'there are none'}{more})"
