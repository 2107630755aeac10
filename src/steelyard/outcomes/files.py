"""Files of outcomes: their bytes in bounded pieces that end where a line ends, and what is odd or wrong in them."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.text import printable, short_quote

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
    """The problems so far; bounded, so that a hostile file cannot flood its reader."""

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


READ_CHUNK_BYTES = 1 << 17
"""Bytes at a time: few enough to stay in the processor's cache, which halves the time."""

MAX_OUTCOME_LINE_BYTES = 64 << 20
MAX_UNPACKED_OUTCOMES_BYTES = 16 << 30
"""Bytes after unpacking, so that a small archive cannot keep us busy forever."""

OUTCOME_FILE_SUFFIXES = (".gz", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
"""How the names of files with outcomes end; the first can follow any other."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UNPACKING_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)


def files(paths: Sequence[str | Path], complaints: OutcomeProblemCollector) -> list[OutcomeFile]:
    """The files given, without those that are given twice or cannot be read."""
    found: dict[tuple[int, int], OutcomeFile] = {}
    for number, path in enumerate(map(Path, paths)):
        file = OutcomeFile(number, path, "row" if path.suffix.lower() == ".parquet" else "line")
        with collect_file_errors(file, complaints):
            state = path.stat()
            if path.is_dir():
                raise UnreadableOutcomesError("a folder; name the files in it")
            earlier = found.setdefault((state.st_dev, state.st_ino), file)
            if earlier is not file:
                raise UnreadableOutcomesError(
                    "given twice" if earlier.path == path else f"the same file as {earlier.name}"
                )
    return sorted(found.values())


@contextmanager
def collect_file_errors(file: OutcomeFile, complaints: OutcomeProblemCollector) -> Iterator[None]:
    """Turn every read error into a problem of the file."""
    try:
        yield
    except IncompleteOutcomesError:
        pass
    except UnreadableOutcomesError as error:
        complaints.add(file, error.what, error.what, [error.line] if error.line else ())
    except UNPACKING_ERRORS as error:
        complaints.add(file, "packed", f"cannot be unpacked: {str(error)[:200]}; pack it again with gzip")
    except FileNotFoundError:
        complaints.add(file, "absent", "no such file")
    except OSError as error:
        complaints.add(file, "system", f"cannot be read: {error.strerror or str(error)[:200]}")
    except ValueError as error:
        # a path with a NUL in it
        complaints.add(file, "path", f"cannot be read: {error}")


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """An open file, decompressed if its content is compressed; its name does not matter."""
    with path.open("rb") as raw:
        if raw.peek(2)[:2] == b"\x1f\x8b":
            with gzip.open(raw) as unpacked:
                yield unpacked
        else:
            yield raw


class LineChunks:
    """A file in pieces of whole lines."""

    def __init__(self, path: Path, *, carriage_returns: bool) -> None:
        self.path = path
        self.carriage_returns = carriage_returns
        """Whether a carriage return alone ends a line too."""
        self.size = READ_CHUNK_BYTES
        """Bytes that are read at once."""
        self.line = 1
        """The first line of the piece that came last."""
        self.next_line = 1
        """The first line after it."""

    def __iter__(self) -> Iterator[bytes]:
        with open_unpacked(self.path) as file:
            rest = file.read(self.size).removeprefix(BYTE_ORDER_MARK)
            total = len(rest)
            while rest:
                end = self._end(rest)
                if end:
                    yield self._counted(rest[:end])
                elif len(rest) > MAX_OUTCOME_LINE_BYTES:
                    raise UnreadableOutcomesError(
                        f"a line of more than {MAX_OUTCOME_LINE_BYTES >> 20} MB", self.next_line
                    )
                # as much again, so that a long line is not copied again and again
                fresh = file.read(max(self.size, len(rest) - end))
                total += len(fresh)
                if total > MAX_UNPACKED_OUTCOMES_BYTES:
                    raise UnreadableOutcomesError(
                        f"more than {MAX_UNPACKED_OUTCOMES_BYTES >> 30} GB; split the file", self.next_line
                    )
                if not fresh:
                    if end < len(rest):
                        yield self._counted(rest[end:])
                    return
                rest = rest[end:] + fresh

    def _counted(self, piece: bytes) -> bytes:
        self.line = self.next_line
        self.next_line += self.breaks(piece) + (not piece.endswith((b"\n", b"\r")))
        return piece

    def _end(self, piece: bytes) -> int:
        """Where the last whole line ends; a carriage return at the very end may be half a line break."""
        return piece.rfind(b"\n") + 1 or (self.carriage_returns and piece.rfind(b"\r", 0, -1) + 1)

    def breaks(self, piece: bytes) -> int:
        """The line breaks in a piece."""
        feeds = piece.count(b"\n")
        if not self.carriage_returns or b"\r" not in piece:
            return feeds
        return feeds + piece.count(b"\r") - piece.count(b"\r\n")

    def texts(self) -> Iterator[str]:
        """The pieces as text."""
        for piece in self:
            if b"\0" in piece:
                line = self.line + self.breaks(piece[: piece.index(b"\0")])
                raise UnreadableOutcomesError("a NUL byte; save the file as UTF-8 text", line)
            try:
                yield piece.decode()
            except UnicodeDecodeError as error:
                line = self.line + self.breaks(piece[: error.start])
                raise UnreadableOutcomesError("not UTF-8 text; save the file as UTF-8", line) from None


def model_names(files: Sequence[OutcomeFile], *endings: tuple[str, ...]) -> list[str]:
    """A model's name for each file: the file's own, only as long as it must be to differ from the others.

    One ending of each group is taken off, in this order; where two files would get one name, they keep more of theirs.
    """
    lengths = [_name_candidates(file.path, endings) for file in files]
    chosen = [0] * len(files)
    while True:
        names = [each[length] for each, length in zip(lengths, chosen, strict=True)]
        taken = Counter(names)
        again = [at for at, name in enumerate(names) if taken[name] > 1 and chosen[at] + 1 < len(lengths[at])]
        if not again:
            return names
        for at in again:
            chosen[at] += 1


def _name_candidates(path: Path, endings: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """Names for a file, from the shortest to the longest."""
    names = [bare_file_name(path)]
    for group in endings:
        fitting = (ending for ending in group if names[-1].endswith(ending) and names[-1] != ending)
        names.append(names[-1].removesuffix(next(fitting, "")))
    folder = path.absolute().parent.name
    model = names[min(1, len(names) - 1)]
    return names[-1], model, f"{folder}/{model}", f"{folder}/{names[0]}", str(path)


def bare_file_name(path: Path) -> str:
    """A file's name without what says how it is written.

    >>> bare_file_name(Path("runs/samples.jsonl_results.jsonl.gz"))
    'samples.jsonl_results'
    """
    name = path.name
    for ending in OUTCOME_FILE_SUFFIXES:
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
    return name
