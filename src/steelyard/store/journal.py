"""A run on disk: its plan, the journal of its results, and the gates' looks at it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from steelyard.errors import DiskError, DiskFullError, InputError, Problem, StoreError, check_format
from steelyard.records import Attempt, Case, Fact, Failure, Judgment, Record, Reply, RunInfo, Verdict
from steelyard.store.attachments import keep_files, with_kept_files
from steelyard.store.files import (
    DISK_BROKEN_ERRNOS,
    DISK_FULL_ERRNOS,
    TolerantDecoder,
    format_number,
    open_plain_file,
    open_to_append,
)
from steelyard.store.locks import lock_folder
from steelyard.store.own_folders import check_run_files
from steelyard.store.responses import RESPONSES_FILE, TURNS_FILE, RecordLog, StoredTurn, response_body
from steelyard.store.stored_cases import CaseFileReader

USUAL_JOURNAL_LINE_BYTES, MAX_JOURNAL_LINE_BYTES = 4 << 20, 128 << 20
"""Bytes of a journal's line: the usual maximum, and the hard limit."""

COPY_MANIFEST_FILE = "copy.json"
"""What the copy of a run as Parquet is made of."""

RUN_FORMAT = 1
"""The format of run.json; it goes up when older versions cannot read it, not when a field is added."""
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What reading a damaged line can end in."""

JournalFact = Reply | Verdict | Judgment | Failure
"""A fact as journals hold it."""

_facts: TolerantDecoder[JournalFact] = TolerantDecoder(JournalFact)

_cases: TolerantDecoder[Case] = TolerantDecoder(Case)

_info: TolerantDecoder[RunInfo] = TolerantDecoder(RunInfo)

_encoder = msgspec.json.Encoder()


class _FactTimestamp(msgspec.Struct):
    at: str


_timestamp = msgspec.json.Decoder(_FactTimestamp)


class StoredRun:
    """A run folder to read; it may be growing while it is read."""

    largest = -1
    """The maximum bytes of a journal line; -1 for any number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[Problem] = []
        """Journal lines that could not be read the last time; their attempts are owed again."""

    @property
    def info(self) -> RunInfo:
        return self.described()[0]

    def described(self) -> tuple[RunInfo, bytes]:
        """The description of the run, and the same as it is written."""
        path = self.folder / "run.json"
        try:
            content = self.content(path)
            check_format(str(path), format_number(content), RUN_FORMAT)
            return _info.decode(content), content
        except FileNotFoundError:
            raise InputError(f"{self.folder}: not a run folder (it has no run.json)") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        except DECODE_ERRORS as error:
            raise InputError(f"{path}: not the description of a run: {error}") from None

    @property
    def cases(self) -> Sequence[Case]:
        path = self.folder / "cases.jsonl"
        try:
            with self.open_whole(path) as file:
                reader = CaseFileReader(file, _cases.decode)
                return reader.cases()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        except DECODE_ERRORS as error:
            raise InputError([Problem(str(path), reader.line, f"not a case: {error}")]) from None

    def facts(self) -> Iterator[JournalFact]:
        """Every fact in the order it was written; a line that is damaged or not finished is left out."""
        return (fact for _, fact in self.placed())

    def placed(self) -> Iterator[tuple[int, JournalFact]]:
        """The same, each with its place, by which `at` finds it again."""
        self.damaged = []
        for number, path in enumerate(self.journals()):
            begin = fact_offset(number, 0)
            for byte, fact in JournalReader(self, path, self.damaged.append).facts():
                yield begin + byte, fact

    def at(self, place: int, journals: Sequence[str]) -> JournalFact:
        """The fact at a place; `journals` are the names of the journals as they were when places were given."""
        with FactReader(self, journals) as facts:
            return facts.at(place)

    def journals(self) -> list[Path]:
        return sorted(self.folder.glob("attempts*.jsonl"))

    def open(self, path: Path) -> BinaryIO:
        """A file of the run."""
        return open_plain_file(path)

    def open_whole(self, path: Path) -> BinaryIO:
        """A file of the run that is read to its end."""
        return self.open(path)

    def content(self, path: Path) -> bytes:
        """All that a file of the run holds."""
        with self.open_whole(path) as file:
            return file.read()

    def last_timestamp(self) -> str:
        """When the last fact was written, by its own timestamp; empty if there is no readable one."""
        timestamps = []
        for path in self.journals():
            try:
                with self.open(path) as file:
                    timestamps.append(_timestamp.decode(_last_line(file)).at)
            except (OSError, *DECODE_ERRORS):
                continue
        return max(timestamps, default="")


class FactReader:
    """The facts of a run by their places, of which none is kept; `journals` are named as when places were given."""

    def __init__(self, stored: StoredRun, journals: Sequence[str]) -> None:
        self._stored, self._journals = stored, journals
        self._files: dict[int, BinaryIO] = {}
        self._open = ExitStack()

    def get(self, place: int) -> JournalFact | None:
        """The fact at a place, None for a negative one."""
        return None if place < 0 else self.at(place)

    def at(self, place: int) -> JournalFact:
        """The fact at a place; raises a StoreError where the journal is not what it was."""
        number, byte = divmod(place, _MAX_JOURNAL_BYTES)
        if not 0 <= number < len(self._journals):
            raise StoreError(f"{self._stored.folder}: has no journal {number + 1}; it has changed, so read it again")
        path = self._stored.folder / self._journals[number]
        try:
            file = self._files.get(number)
            if file is None:
                file = self._files[number] = self._open.enter_context(self._stored.open(path))
            file.seek(byte)
            return _facts.decode(file.readline(self._stored.largest))
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from None
        except DECODE_ERRORS:
            raise StoreError(f"{path}: no fact at byte {byte}; it has changed, so read it again") from None

    def __enter__(self) -> FactReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.clear()
        self._open.close()


def is_journal(name: str) -> bool:
    """Whether a file of a run folder holds facts."""
    return name.startswith("attempts") and name.endswith(".jsonl")


class JournalReader:
    """A journal that is read up to its end, and can be continued from there later."""

    def __init__(self, stored: StoredRun, path: Path, damaged: Callable[[Problem], None]) -> None:
        self.path = path
        self.byte = 0
        """How far it was read: where the next line begins."""
        self._line = 0
        self._stored, self._damaged = stored, damaged

    @property
    def line(self) -> int:
        """The number of the line that was read last, from 1."""
        return self._line

    def facts(self) -> Iterator[tuple[int, JournalFact]]:
        """The facts from there on, each with the byte that it begins at; a reader that stops early can continue later."""
        return ((begin, fact) for begin, _, fact in self.lines())

    def lines(self) -> Iterator[tuple[int, bytes, JournalFact]]:
        """The same with the lines as they are written."""
        try:
            with self._stored.open(self.path) as file:
                file.seek(self.byte)
                for size, line in _lines(file, self._stored.largest):
                    begin = self.byte
                    self.byte += size
                    self._line += 1
                    try:
                        fact = _facts.decode(line)
                    except DECODE_ERRORS as error:
                        self._damage(str(error) if line else f"longer than {self._stored.largest >> 20} MB")
                    else:
                        yield begin, line, fact
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _damage(self, why: str) -> None:
        self._damaged(Problem(str(self.path), self._line, f"not a fact, left out: {why}", fatal=False))


def _lines(file: BinaryIO, largest: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their sizes, up to one that is not finished; nothing in place of a line that is too long."""
    while line := file.readline(largest):
        if line.endswith(b"\n"):
            yield len(line), line
        elif len(line) != largest:
            break
        else:
            size = len(line)
            while line and not line.endswith(b"\n"):
                line = file.readline(largest)
                size += len(line)
            if not line:
                break
            yield size, b""


def _last_line(file: BinaryIO) -> bytes:
    """The last line that is finished; empty if it is unusually long."""
    end = file.seek(0, os.SEEK_END)
    for size in (1 << 16, USUAL_JOURNAL_LINE_BYTES):
        file.seek(max(0, end - size))
        rest, _, line = file.read(size).rpartition(b"\n")[0].rpartition(b"\n")
        if rest or size >= end:
            return line
    return b""


_MAX_JOURNAL_BYTES = 1 << 48
"""More bytes than a journal has."""


def fact_offset(journal: int, byte: int) -> int:
    """Where a fact begins: in which of the journals, and at which byte of it."""
    return journal * _MAX_JOURNAL_BYTES + byte


class Journal(StoredRun):
    """A run folder to write: one process at a time, and nothing acknowledged before it is with the system."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        check_run_files(folder)
        self._lock = lock_folder(folder)
        self._unsynced = False
        self.last_place = 0
        self._responses, self._turns = RecordLog(folder / RESPONSES_FILE), RecordLog(folder / TURNS_FILE)
        path = folder / "attempts.jsonl"
        try:
            self._file = open_to_append(path)
            self._size = _complete_lines_size(self._file)
            # a cut-off last line is owed again; left in place it would spoil the next one
            os.ftruncate(self._file, self._size)
        except OSError as error:
            os.close(self._lock)
            raise write_error(path if error.errno not in DISK_FULL_ERRNOS else folder, error) from None

    @property
    def cases(self) -> Sequence[Case]:
        """The cases, with the files of their messages from the run's own folder."""
        return with_kept_files(self.folder, super().cases)

    def append(self, fact: Fact) -> None:
        """Write one fact; when this returns, the fact survives the death of this process, and `last_place` is where it is."""
        line = _encoder.encode(fact) + b"\n"
        size = len(line)
        try:
            written = os.write(self._file, line)
            while written < size:
                written += os.write(self._file, line[written:])
        except OSError as error:
            # half a line must not stand before the next whole one; where that fails too, the next session does it
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise write_error(self.folder, error, is_begun=True) from None
        self.last_place = self._size
        self._size += size
        self._unsynced = True

    def written_at(self, place: int) -> JournalFact:
        """The fact that this journal has written at a place."""
        return self.at(place, ("attempts.jsonl",))

    def keep_response(self, attempt: Attempt, at: str, body: bytes) -> None:
        """Write the body of a response; when this returns, it survives the death of this process."""
        self._keep(self._responses, response_body(attempt, at, body))

    def keep_turn(self, turn: StoredTurn) -> None:
        """Write a turn of a conversation; when this returns, it survives the death of this process."""
        self._keep(self._turns, turn)
        self._unsynced = True

    def _keep(self, log: RecordLog, record: Record) -> None:
        try:
            log.append(record)
        except OSError as error:
            raise write_error(self.folder, error) from None

    def sync(self) -> None:
        """Make what was written survive the death of the machine as well."""
        if self._unsynced:
            self._unsynced = False
            try:
                self._responses.sync()
                self._turns.sync()
                os.fsync(self._file)
            except OSError as error:
                raise write_error(self.folder, error, is_begun=True) from None

    def check_present(self) -> None:
        """Raises a DiskError if the folder is gone and later lines would be lost."""
        try:
            is_present = os.path.samestat(os.fstat(self._file), (self.folder / "attempts.jsonl").stat())
        except OSError:
            is_present = False
        if not is_present:
            raise DiskError(f"{self.folder}: {RUN_GONE_MESSAGE}")

    def describe(self, info: RunInfo) -> None:
        """Write run.json; what a later version wrote there stays."""
        path = self.folder / "run.json"
        earlier = self.content(path) if path.exists() else b"{}"
        kept = _info.with_unknown_fields(_encoder.encode(info), earlier)
        content = _encoder.encode(kept | {"format": RUN_FORMAT})
        write_atomically(path, msgspec.json.format(content, indent=2) + b"\n")

    def ask(self, cases: Iterable[Case]) -> None:
        """Write down the cases as they are asked and verified from now on; what a later version wrote about them stays."""
        cases = cases if isinstance(cases, Sequence) else list(cases)
        keep_files(self.folder, cases)
        # what is copied of them may be as long as it was, and yet be something else
        (self.folder / COPY_MANIFEST_FILE).unlink(missing_ok=True)
        path = self.folder / "cases.jsonl"
        newer = _newer_cases(self.open(path)) if path.exists() else {}
        lines = (_encoder.encode(case) for case in cases)
        if newer:
            lines = (_with_earlier_fields(line, newer) for line in lines)
        write_pieces_atomically(path, (line + b"\n" for line in lines))

    def keep(self, name: str, content: bytes) -> None:
        """Write a cache beside the journal; it can always be computed again."""
        write_atomically(self.folder / name, content)

    def close(self) -> None:
        try:
            self.sync()
        finally:
            self._responses.close()
            self._turns.close()
            os.close(self._file)
            os.close(self._lock)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _newer_cases(lines: BinaryIO) -> dict[str, bytes]:
    """The lines of cases.jsonl with fields that this version does not know, by case."""
    found = {}
    with lines:
        for line in lines:
            # a damaged line has nothing to keep
            with suppress(*DECODE_ERRORS):
                if _cases.has_unknown_fields(line):
                    found[_cases.decode(line).id] = line
    return found


def _with_earlier_fields(line: bytes, earlier: Mapping[str, bytes]) -> bytes:
    """The line of a case with the unknown fields of its earlier line."""
    before = earlier.get(_cases.decode(line).id)
    return line if before is None else _encoder.encode(_cases.with_unknown_fields(line, before))


def make_run_folder(folder: Path) -> None:
    """A folder for a new run; raises if it cannot be made, or holds a run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "run.json").exists():
            raise InputError(
                f"{folder}: already contains a run; continue it with: steelyard resume {shlex.quote(str(folder))}"
            )
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}") from None


def create_run(folder: Path, info: RunInfo, cases: Iterable[Case]) -> Journal:
    """A new run folder, opened for writing."""
    make_run_folder(folder)
    try:
        journal = Journal(folder)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}") from None
    try:
        journal.ask(cases)
        journal.describe(info)
    except BaseException:
        journal.close()
        raise
    return journal


RUN_GONE_MESSAGE = "the folder of this run was moved or deleted while it was written; nothing more is asked"


def _complete_lines_size(file: int) -> int:
    """How many bytes of a file end with a line end."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - (1 << 16))
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file or leave the old one as it is."""
    write_pieces_atomically(path, (content,))


def write_pieces_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """The same from pieces that follow each other."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise write_error(path.parent, error) from None


def write_error(folder: Path, error: OSError, *, is_begun: bool = False) -> StoreError:
    """Our error for an error of the disk, with what to do next."""
    if error.errno in DISK_FULL_ERRNOS:
        return DiskFullError(
            f"{folder}: no space left ({error.strerror}); free some space, then: steelyard resume {shlex.quote(str(folder))}"
        )
    if isinstance(error, FileNotFoundError):
        return DiskError(f"{folder}: {RUN_GONE_MESSAGE}")
    if is_begun or error.errno in DISK_BROKEN_ERRNOS:
        return DiskError(
            f"{folder}: {error.strerror}; check the disk, then: steelyard resume {shlex.quote(str(folder))}"
        )
    return StoreError(f"{folder}: {error.strerror}")
