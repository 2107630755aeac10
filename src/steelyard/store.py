"""Runs on disk: the only module that knows the medium."""

from __future__ import annotations

import errno
import fcntl
import functools
import hashlib
import itertools
import os
import re
import shutil
import stat
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeGuard, TypeVar

import msgspec

from steelyard.database import identifier, literal, opened, patiently, quoted, sentence, utf8
from steelyard.errors import InputError, NoRoomError, Problem, SteelyardError, StoreError
from steelyard.partitions import fitting, paths, tells
from steelyard.records import Appraisal, Case, Fact, Failure, Look, Reply, RunInfo, Verdict

if TYPE_CHECKING:
    import duckdb

RUNS = Path("steelyard-runs")
"""Where runs are kept unless the user says otherwise."""
USUAL, LARGEST = 4 << 20, 128 << 20
"""Bytes of a journal's line: as good as always at most, and at the very most."""
HEADLINE, INDEX = "headline.json", "attempts.index"
"""What lists of runs show of one, and all its attempts without their texts: both can always be worked out again."""
MOST_BYTES = {"run.json": 16 << 20, "cases.jsonl": 256 << 20, HEADLINE: 1 << 20, INDEX: 256 << 20}
"""Of the files that hold no facts: what a stranger's run may have us read."""
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What reading a damaged line can end in."""

Told = Reply | Verdict | Appraisal | Failure
"""A fact as journals hold it."""

_facts: msgspec.json.Decoder[Told] = msgspec.json.Decoder(Told)
_cases = msgspec.json.Decoder(Case)
_info = msgspec.json.Decoder(RunInfo)
_look = msgspec.json.Decoder(Look)
_encoder = msgspec.json.Encoder()

Result = TypeVar("Result")


class _Moment(msgspec.Struct):
    at: str


_moment = msgspec.json.Decoder(_Moment)


class Stored:
    """A run folder to read; it may be growing while it is read."""

    largest = -1
    """Bytes of a journal's line at the most; -1 for any number."""

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
            return _info.decode(content), content
        except FileNotFoundError:
            raise InputError(f"{self.folder}: not a run folder (it has no run.json)") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        except UNREADABLE as error:
            raise InputError(f"{path}: not the description of a run: {error}") from None

    @property
    def cases(self) -> tuple[Case, ...]:
        path = self.folder / "cases.jsonl"
        number = 0
        cases = []
        try:
            for line in self.content(path).splitlines():
                number += 1
                cases.append(_cases.decode(line))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        except UNREADABLE as error:
            raise InputError([Problem(str(path), number, f"not a case: {error}")]) from None
        return tuple(cases)

    def facts(self) -> Iterator[Told]:
        """Every fact in the order it was written; a line that is damaged or not finished is left out."""
        return (fact for _, fact in self.placed())

    def placed(self) -> Iterator[tuple[int, Told]]:
        """The same, each with its place, by which `at` finds it again."""
        self.damaged = []
        for number, path in enumerate(self.journals()):
            begin = place(number, 0)
            for byte, fact in Tail(self, path, self.damaged.append).facts():
                yield begin + byte, fact

    def told(self, path: Path) -> Iterator[Told]:
        """The facts of one journal."""
        return (fact for _, fact in Tail(self, path, self.damaged.append).facts())

    def at(self, place: int, journals: Sequence[str]) -> Told:
        """The fact at a place; `journals` are the names of the journals as they were when places were given."""
        number, byte = divmod(place, _BYTES)
        if not 0 <= number < len(journals):
            raise StoreError(f"{self.folder}: has no journal {number + 1}; it has changed, so read it again")
        path = self.folder / journals[number]
        try:
            with self.open(path) as file:
                file.seek(byte)
                return _facts.decode(file.readline(self.largest))
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from None
        except UNREADABLE:
            raise StoreError(f"{path}: no fact at byte {byte}; it has changed, so read it again") from None

    def journals(self) -> list[Path]:
        return sorted(self.folder.glob("attempts*.jsonl"))

    def open(self, path: Path) -> BinaryIO:
        """A file of the run."""
        return path.open("rb")

    def content(self, path: Path) -> bytes:
        """All that a file of the run holds."""
        with self.open(path) as file:
            return file.read()

    def last_moment(self) -> str:
        """When the last fact was written, as it says itself; empty where that cannot be told."""
        moments = []
        for path in self.journals():
            try:
                with self.open(path) as file:
                    moments.append(_moment.decode(_last_line(file)).at)
            except (OSError, *UNREADABLE):
                continue
        return max(moments, default="")


class Fenced(Stored):
    """A run folder that anybody may have filled: links in it are not followed, and only plain files of some size are read."""

    largest = 16 << 20

    def journals(self) -> list[Path]:
        return [self.folder / file.name for file in glimpse(self.folder).journals]

    def open(self, path: Path) -> BinaryIO:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            # a pipe would let us wait for ever
            file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "a link, which is not followed", str(path)) from None
            raise
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return os.fdopen(file, "rb")

    def content(self, path: Path) -> bytes:
        most = MOST_BYTES[path.name]
        with self.open(path) as file:
            if os.fstat(file.fileno()).st_size > most:
                raise OSError(errno.EFBIG, f"larger than {most >> 20} MB, which is too much to be read", str(path))
            return file.read()


class Delivered(Fenced):
    """A run folder that came from another machine to be taken over: as guarded, but with lines as long as we write them."""

    largest = LARGEST


class File(NamedTuple):
    """A file as it looks from outside."""

    name: str
    inode: int
    size: int
    changed: int


class Glimpse(NamedTuple):
    """A run folder as it looks from outside; whatever happens to the run, this changes."""

    files: tuple[File, ...]
    """The plain files that belong to a run, by name."""
    links: tuple[str, ...]
    """Journals that are links or else no plain files."""
    is_empty: bool
    is_locked: bool
    """Whether somebody is writing the run."""

    @property
    def journals(self) -> tuple[File, ...]:
        """In the order in which they are read."""
        return tuple(file for file in self.files if _is_journal(file.name))

    def file(self, name: str) -> File | None:
        return next((file for file in self.files if file.name == name), None)


def glimpse(folder: Path) -> Glimpse:
    """A look at a run folder that reads none of its files and follows no link; raises an OSError where there is no folder."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        names = os.listdir(opened)  # noqa: PTH208  by now the path may lead elsewhere
        files, links = [], []
        for name in sorted(names):
            if name in MOST_BYTES or _is_journal(name):
                state = os.stat(name, dir_fd=opened, follow_symlinks=False)
                if stat.S_ISREG(state.st_mode):
                    files.append(File(name, state.st_ino, state.st_size, state.st_mtime_ns))
                elif _is_journal(name):
                    links.append(name)
        return Glimpse(tuple(files), tuple(links), not names, _is_locked(opened))
    finally:
        os.close(opened)


def _is_journal(name: str) -> bool:
    return name.startswith("attempts") and name.endswith(".jsonl")


def _is_locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    # a process that is forked meanwhile would else hold on to it
    fcntl.flock(folder, fcntl.LOCK_UN)
    return False


class Tail:
    """A journal that is read as far as it goes, and later on from there."""

    def __init__(self, stored: Stored, path: Path, damaged: Callable[[Problem], None]) -> None:
        self.path = path
        self.byte = 0
        """How far it was read: where the next line begins."""
        self._line = 0
        self._stored, self._damaged = stored, damaged

    @property
    def line(self) -> int:
        """The number of the line that was read last, from 1."""
        return self._line

    def facts(self) -> Iterator[tuple[int, Told]]:
        """What it has to tell from there on, each fact with the byte that it begins at; whoever stops early can go on."""
        return ((begin, fact) for begin, _, fact in self.lines())

    def lines(self) -> Iterator[tuple[int, bytes, Told]]:
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
                    except UNREADABLE as error:
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
    """The last line that is finished; empty where it is unusually long."""
    end = file.seek(0, os.SEEK_END)
    for size in (1 << 16, USUAL):
        file.seek(max(0, end - size))
        rest, _, line = file.read(size).rpartition(b"\n")[0].rpartition(b"\n")
        if rest or size >= end:
            return line
    return b""


_BYTES = 1 << 48
"""More bytes than a journal has."""


def place(journal: int, byte: int) -> int:
    """Where a fact begins: in which of the journals, and at which byte of it."""
    return journal * _BYTES + byte


class Journal(Stored):
    """A run folder to write: one process at a time, and nothing acknowledged before it is with the system."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._lock = _locked(folder)
        self._unsynced = False
        path = folder / "attempts.jsonl"
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            self._size = _whole_lines(self._file)
            # a cut-off last line is owed again; left in place it would spoil the next one
            os.ftruncate(self._file, self._size)
        except OSError as error:
            os.close(self._lock)
            raise _cannot_write(path if error.errno not in NO_ROOM else folder, error) from None

    def append(self, fact: Fact) -> None:
        """Write one fact; when this returns, the fact survives the death of this process."""
        line = memoryview(_encoder.encode(fact) + b"\n")
        size = len(line)
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            # half a line must not stand before the next whole one
            os.ftruncate(self._file, self._size)
            raise _cannot_write(self.folder, error) from None
        self._size += size
        self._unsynced = True

    def sync(self) -> None:
        """Make what was written survive the death of the machine as well."""
        if self._unsynced:
            self._unsynced = False
            try:
                os.fsync(self._file)
            except OSError as error:
                raise _cannot_write(self.folder, error) from None

    def describe(self, info: RunInfo) -> None:
        _replace(self.folder / "run.json", msgspec.json.format(_encoder.encode(info), indent=2) + b"\n")

    def ask(self, cases: Iterable[Case]) -> None:
        """Write down the cases as they are asked and verified from now on."""
        # what is copied of them may be as long as it was, and yet be something else
        (self.folder / MANIFEST).unlink(missing_ok=True)
        _replace(self.folder / "cases.jsonl", b"".join(_encoder.encode(case) + b"\n" for case in cases))

    def keep(self, name: str, content: bytes) -> None:
        """Put beside the journal what is worked out from it, and could be again."""
        _replace(self.folder / name, content)

    def close(self) -> None:
        try:
            self.sync()
        finally:
            os.close(self._file)
            os.close(self._lock)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def create(folder: Path, info: RunInfo, cases: Iterable[Case]) -> Journal:
    """A new run folder, opened for writing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "run.json").exists():
            raise InputError(f"{folder}: holds a run already; continue it with: steelyard resume {folder}")
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


@contextmanager
def arising(folder: Path) -> Iterator[Journal]:
    """A run that is put together out of sight, and then stands at `folder` whole; if anything goes wrong, nothing does."""
    try:
        place = _free(folder)
        aside = place.with_name(f".{place.name}.arising")
        aside.parent.mkdir(parents=True, exist_ok=True)
        if aside.is_dir() and not aside.is_symlink():
            # what is left of somebody who was killed; whoever is still at it holds the lock
            lock = _locked(aside, "another process is putting a run together there; wait for it, or stop it first")
            try:
                shutil.rmtree(aside)
            finally:
                os.close(lock)
        aside.mkdir()
    except OSError as error:
        raise _cannot_arise(folder, error) from None
    try:
        with Journal(aside) as journal:
            yield journal
        aside.rename(place)
    except NoRoomError:
        raise NoRoomError(f"{folder}: no room left; nothing was written there; make room and do it again") from None
    except OSError as error:
        raise _cannot_arise(folder, error) from None
    finally:
        # when it has its place there is nothing aside any more
        shutil.rmtree(aside, ignore_errors=True)


def _free(folder: Path) -> Path:
    """A place where a run can be put."""
    place = Path(os.path.abspath(folder))  # noqa: PTH100  a link at the end must stay one
    if (place / "run.json").exists():
        raise InputError(f"{folder}: holds a run already; name another folder with --output")
    if place.is_symlink() or (place.exists() and not (place.is_dir() and not any(place.iterdir()))):
        raise InputError(f"{folder}: there already, and not an empty folder; name another with --output")
    return place


def _cannot_arise(folder: Path, error: OSError) -> StoreError:
    if error.errno in NO_ROOM:
        return NoRoomError(
            f"{folder}: no room left ({error.strerror}); nothing was written there; make room and do it again"
        )
    return StoreError(f"{folder}: cannot be written: {error.strerror}; nothing was written there")


@contextmanager
def unchanging(folder: Path) -> Iterator[None]:
    """A time in which nobody writes a run; raises a StoreError while somebody does."""
    lock = _locked(folder, how=fcntl.LOCK_SH)
    try:
        yield
    finally:
        os.close(lock)


def take_over(
    stored: Stored, journal: Path, check: Callable[[Told, Path, int], None], damaged: Callable[[Problem], None]
) -> None:
    """Add the facts of a run to a journal, line by line as they are written.

    `check` is told each fact, its file and its line, and raises where the fact must not be taken. `damaged` is told of lines
    that cannot be read; they stay behind.
    """
    try:
        with journal.open("ab") as file:
            for path in stored.journals():
                tail = Tail(stored, path, damaged)
                for _, line, fact in tail.lines():
                    check(fact, path, tail.line)
                    file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _cannot_write(journal.parent, error) from None


class Opinion(NamedTuple):
    """What is to be made of one fact of a run."""

    counts: bool | None = None
    """Whether it is the one of its attempt and kind that counts; None when the run has no such case."""
    correct: bool | None = None
    score: float | None = None


Opinions = Callable[[RunInfo, Sequence[Case], Iterable[Fact]], Sequence[Opinion]]
"""One opinion for every fact, in their order; facts are stored here, opinions are made elsewhere."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system calls a full disk."""

COPY, MANIFEST = "attempts", "copy.json"
"""The folder with the copy of a run's facts as Parquet, and the file that says what it is made of."""
BEFORE = "attempts.parquet"
"""What the copy was called as long as it was one file."""
SHAPE = 3
"""Goes up when the columns of the copy change, so that older copies are written anew."""
MOST_PARTS = 256
"""With more pairs of a model and a suite all facts of a run are in one file: files that small are no help to anybody."""


class Part(msgspec.Struct, frozen=True):
    """The facts of one model about the cases of one suite; without either, of all of them."""

    model: str | None
    suite: str | None
    """Empty for the cases that belong to none."""
    bytes: tuple[int, ...]
    """The sizes of its files."""


class Copy(msgspec.Struct, frozen=True):
    """What a copy holds, and what it is made of."""

    shape: int
    tool: str
    """The version of the tool whose opinions are in it."""
    made_of: str
    run: str
    parts: tuple[Part, ...]

    def files(self) -> Iterator[tuple[Part, int, str]]:
        """Every file: which part it belongs to, its size, and its path; nobody but us decides on a path."""
        folders = paths((part.model, part.suite) for part in self.parts)
        for part in self.parts:
            for number, size in enumerate(part.bytes):
                name = f"{fitting(self.run)}{f'-{number}' if number else ''}.parquet"
                yield part, size, f"{COPY}/{folders[part.model, part.suite]}/{name}"


_copy_of = msgspec.json.Decoder(Copy)


def copy_to_parquet(folder: Path, opinions: Opinions, target: Path | None = None) -> Copy:
    """Write a run's facts as Parquet, for questions over many runs, into its folder or another; it can always be rebuilt.

    Each model's facts about each suite are files of their own, and their paths say which: whoever asks about one model
    needs not open the others.
    """
    import duckdb

    target = target or folder
    # before anything is read: what is written meanwhile makes this copy an old one
    made_of = looked_at(folder).made_of
    fresh: Path | None = None
    try:
        target.mkdir(parents=True, exist_ok=True)
        # other machines may be writing here as well
        fresh = Path(tempfile.mkdtemp(prefix=f".{COPY}.", dir=target))
        # a copy needs not every core, and however long the run is, little memory
        with tempfile.TemporaryDirectory() as scratch, opened(scratch, "512MB", threads=1) as database:
            told = _told_by(Stored(folder), opinions, database, Path(scratch))
            try:
                written = _write(database, told, fresh, USUAL)
            except duckdb.Error:
                # twice the longest line is kept in memory: only a run that has such lines pays for it
                written = _write(database, told, fresh, LARGEST)
        if written != told.size:
            raise StoreError(
                f"{folder}: the Parquet copy could not be written: it holds {written} of {told.size} facts"
            )
        files = [sorted((fresh / f"part={number}").glob("*.parquet")) for number in range(len(told.pairs))]
        parts = [
            Part(*pair, tuple(path.stat().st_size for path in each))
            for pair, each in zip(told.pairs, files, strict=True)
        ]
        copy = Copy(SHAPE, _tool(), made_of, told.run, tuple(parts))
        _put(target, copy, list(itertools.chain.from_iterable(files)))
    except (duckdb.Error, OSError) as error:
        raise StoreError(f"{folder}: the Parquet copy could not be written: {sentence(error)}") from None
    finally:
        if fresh:
            shutil.rmtree(fresh, ignore_errors=True)
    return copy


def _put(target: Path, copy: Copy, files: Sequence[Path]) -> None:
    """Put the files of a copy in their places; who reads meanwhile finds each fact once, and no copy that is whole."""
    # whoever handed the run over may have put it there, and what it leads to is not ours to tidy
    if (target / COPY).is_symlink():
        raise StoreError(f"{target / COPY}: the Parquet copy is not written through a link; take it away")
    (target / MANIFEST).unlink(missing_ok=True)
    with suppress(IsADirectoryError, PermissionError):
        (target / BEFORE).unlink(missing_ok=True)
    there = {path: fresh for (_, _, path), fresh in zip(copy.files(), files, strict=True)}
    for path in sorted((target / COPY).rglob("*"), reverse=True):
        name = path.relative_to(target).as_posix()
        if path.is_symlink() or not path.is_dir():
            if name not in there:
                path.unlink()
        elif not any(wanted.startswith(f"{name}/") for wanted in there):
            path.rmdir()
    for name, fresh in there.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        fresh.replace(target / name)
    _replace(target / MANIFEST, _encoder.encode(copy) + b"\n")


def _write(database: duckdb.DuckDBPyConnection, told: _Facts, fresh: Path, largest: int) -> int:
    """Write the files of a copy, each part in a folder of its number; how many rows they have."""
    shutil.rmtree(fresh)
    fresh.mkdir()
    how = AS_PARQUET
    if len(told.pairs) == 1:
        (fresh / "part=0").mkdir()
        columns, to = "* EXCLUDE (part)", fresh / "part=0" / "0.parquet"
    else:
        columns, to = "*", fresh / "parts"
        how += ", PARTITION_BY (part), WRITE_PARTITION_COLUMNS false"
        # else every part keeps so many rows that their replies are more than the memory
        database.execute(f"SET partitioned_write_flush_threshold = {AHEAD}")
    query = " UNION ALL ".join(told.queries).replace("$largest", str(largest))
    copy = f"COPY (FROM ({query}) SELECT {columns}) TO {quoted(str(to))} ({how})"
    said = patiently(database, lambda: database.execute(copy).fetchall())
    for part in to.iterdir() if to.is_dir() else ():
        part.replace(fresh / part.name)
    return int(said[0][0])


AS_PARQUET = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 4096"
AHEAD = 20_000
"""Rows that wait for their part before they are written."""

FACTS = """
SELECT $run AS run, kind, key, ask, try_cast("at" AS TIMESTAMP) AS "at", "case", suite::VARCHAR AS suite, model, coalesce(tier, '') AS tier,
  number, counts,
  answer.text AS reply, if(kind = 'reply', coalesce(answer.finish, 'stop'), NULL) AS finish,
  answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.reasoning_tokens,
  answer.cost.usd AS cost_usd, if(kind = 'reply', coalesce(answer.latency, 0), NULL) AS latency,
  verifier, tests, correct, opinion.score AS score, found.code, found.compiled,
  len(list_filter(found.tests, lambda test: test.outcome = 'passed')) AS tests_passed,
  len(list_filter(found.tests, lambda test: test.outcome = 'failed')) AS tests_failed,
  found.warnings, found.passed, found.score AS own_score, found.label, found.reason, found.trust, found.isolation,
  found.tampered, if(kind = 'verdict', coalesce(found.rechecked, 0), NULL) AS rechecked,
  if(kind = 'verdict', coalesce(found.disagreed, 0), NULL) AS disagreed,
  stage AS failure_stage, message AS failure, part
FROM read_json($journal, format = 'newline_delimited', ignore_errors = true, maximum_object_size = $largest,
  columns = {
    kind: 'VARCHAR', key: 'VARCHAR', ask: 'VARCHAR', "at": 'VARCHAR', "case": 'VARCHAR', model: 'VARCHAR',
    number: 'BIGINT', tier: 'VARCHAR', tests: 'VARCHAR', verifier: 'VARCHAR', stage: 'VARCHAR', message: 'VARCHAR',
    answer: 'STRUCT(text VARCHAR, finish VARCHAR, input_tokens BIGINT, output_tokens BIGINT, cached_tokens BIGINT,
      reasoning_tokens BIGINT, cost STRUCT(usd DOUBLE), latency DOUBLE)',
    found: 'STRUCT(code VARCHAR, compiled BOOLEAN, tests STRUCT(outcome VARCHAR)[], warnings BIGINT, passed BOOLEAN,
      score DOUBLE, label VARCHAR, reason VARCHAR, trust VARCHAR, isolation VARCHAR, tampered VARCHAR,
      rechecked BIGINT, disagreed BIGINT)'})
POSITIONAL JOIN $opinions AS opinion
WHERE kind IS NOT NULL AND there
"""
"""The facts of a journal, one row each, in their order; what a run that goes on has added since has no opinion yet."""


class _Facts(NamedTuple):
    """The facts of a run as a database reads them."""

    run: str
    queries: list[str]
    """One for each journal."""
    pairs: list[tuple[str | None, str | None]]
    """The model and the suite of each part, by number."""
    size: int
    """How many there are."""


def _told_by(stored: Stored, opinions: Opinions, database: duckdb.DuckDBPyConnection, scratch: Path) -> _Facts:
    """The facts of a run, each with its opinion, its suite and the part that it belongs to."""
    journals = stored.journals()
    counts = dict.fromkeys(journals, 0)
    info, cases = stored.info, stored.cases
    suites = {case.id: case.suite for case in cases}
    numbers: dict[tuple[str | None, str | None], int] = {}
    places = array("L")

    def told() -> Iterator[Fact]:
        for path in journals:
            for fact in stored.told(path):
                counts[path] += 1
                places.append(numbers.setdefault((fact.model, suites.get(fact.case, "")), len(numbers)))
                yield fact

    found = opinions(info, cases, told())
    pairs = list(numbers)
    of_suite = [suite or "" for _, suite in pairs]
    if len(pairs) > MOST_PARTS or not pairs:
        pairs = [(None, None)]
    nothing = scratch / "nothing.jsonl"
    nothing.touch()
    queries, begin = [], 0
    for place, path in enumerate(journals or [nothing]):
        end = begin + counts.get(path, 0)
        made = found[begin:end]
        told_of = places[begin : begin + len(made)]
        part = told_of if len(pairs) > 1 else [0] * len(made)
        database.register(f"opinions_{place}", _columns(made, [of_suite[number] for number in told_of], part))
        damaged = {problem.line for problem in stored.damaged if problem.where == str(path)}
        # two readers need not agree on what a damaged line is, and from there on every opinion would be of another fact
        source = _undamaged(path, damaged, end - begin, scratch / f"{place}.jsonl") if damaged else path
        words = {"$run": quoted(info.id), "$journal": quoted(literal(source)), "$opinions": f"opinions_{place}"}
        queries.append(re.sub("|".join(map(re.escape, words)), lambda word: words[word[0]], FACTS))  # noqa: B023  used at once
        begin = end
    return _Facts(info.id, queries, pairs, begin)


def _columns(opinions: Sequence[Opinion], suites: list[str], parts: Sequence[int]) -> dict[str, Any]:
    """Opinions as DuckDB reads them fastest, with the suite and the part of each fact."""
    import numpy

    def column(values: list[Any], kind: type) -> Any:
        known = [kind() if value is None else value for value in values]
        return numpy.ma.array(known, mask=[value is None for value in values], dtype=kind)

    return {
        "there": column([True for _ in opinions], bool),
        "counts": column([opinion.counts for opinion in opinions], bool),
        "correct": column([opinion.correct for opinion in opinions], bool),
        "score": column([opinion.score for opinion in opinions], float),
        "suite": numpy.array(suites, dtype=object),
        "part": numpy.array(parts, dtype=numpy.int32),
    }


def _undamaged(path: Path, damaged: set[int], count: int, target: Path) -> Path:
    """A copy of the lines of a journal that can be read."""
    with path.open("rb") as lines, target.open("wb") as file:
        good = (line for number, line in enumerate(lines, 1) if number not in damaged)
        file.writelines(itertools.islice(good, count))
    return target


def sources(stored: Stored, shape: int) -> str:
    """What a copy or an index of a run is made of: as long as this stays the same, so would they.

    `shape` goes up when what is written changes.
    """
    try:
        described = _digest(stored.content(stored.folder / "run.json"))
        files = [(path.name, path.stat()) for path in (stored.folder / "cases.jsonl", *stored.journals())]
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    states = [(name, state.st_size, state.st_mtime_ns) for name, state in files]
    return _encoder.encode([shape, _tool(), described, states]).decode()


def sources_at_a_glance(described: bytes, glimpse: Glimpse, shape: int) -> str:
    """The same as far as sizes tell, which neither copying the folder nor another version of this tool changes.

    `described` is what run.json holds.
    """
    files = [(file.name, file.size) for file in glimpse.files if file.name not in (HEADLINE, INDEX, "run.json")]
    return _encoder.encode([shape, _digest(described), files, glimpse.links]).decode()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@functools.cache
def _tool() -> str:
    """Who has opinions: another version may have others."""
    return version("steelyard")


def looks(folder: Path) -> list[Look]:
    """What gates were asked about a run, in order; a line that was cut off was never answered."""
    try:
        lines = (folder / "looks.jsonl").read_bytes().splitlines(keepends=True)
        return [_look.decode(line) for line in lines if line.endswith(b"\n")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder / 'looks.jsonl'}: {error.strerror}") from None
    except UNREADABLE as error:
        raise InputError(f"{folder / 'looks.jsonl'}: not a list of looks: {error}; delete it to begin anew") from None


def remember(folder: Path, look: Look) -> None:
    """Write down a look before its verdict is told."""
    path = folder / "looks.jsonl"
    try:
        with path.open("ab") as file:
            file.write(_encoder.encode(look) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; a gate must be able to count its looks") from None


def runs(root: Path = RUNS) -> list[Stored]:
    """The runs below a folder, oldest first; folders that hold no readable run are passed over."""
    return [stored for stored, _ in _readable(root)]


def _readable(root: Path) -> list[tuple[Stored, RunInfo]]:
    """The same with their descriptions."""
    found = []
    for path in root.glob("*/run.json"):
        stored = Stored(path.parent)
        if is_hidden(stored.folder):
            continue
        try:
            found.append((stored, stored.info))
        except InputError:
            continue
    return sorted(found, key=lambda entry: (entry[1].started_at, entry[0].folder.name))


def is_hidden(folder: Path) -> bool:
    """Whether a folder is not for people: a run may be arising in it."""
    return folder.name.startswith(".")


def find(name: str, root: Path = RUNS) -> Path:
    """The run folder a user means: a path, a name below the runs' folder, or `latest`, which no part of a merged run is."""
    if name == "latest":
        found = _readable(root)
        parts = {part.id for _, info in found for part in info.merged}
        whole = [stored.folder for stored, info in found if info.id not in parts]
        if not whole:
            raise InputError(_no_runs(root))
        return whole[-1]
    try:
        for folder in (Path(name), root / name):
            if (folder / "run.json").is_file():
                return folder
        is_folder = Path(name).is_dir()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    if is_folder:
        raise InputError(f"{name}: not a run folder (it has no run.json)")
    raise InputError(f'no run "{name}" here or under {root}; `steelyard list` shows what there is')


class Answer(NamedTuple):
    """What a question came to."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """As DuckDB names them, such as `VARCHAR` or `JSON`."""
    rows: Iterator[tuple[Any, ...]]
    """Read as they are wanted, however many there are."""


class Archive:
    """Many runs as the tables of a database that SQL can read, and nothing else."""

    def __init__(
        self, database: duckdb.DuckDBPyConnection, warnings: Sequence[str], runs: Sequence[Copied] = ()
    ) -> None:
        self._database = database
        self._runs = runs
        self.warnings = tuple(warnings)
        """Which runs are not in the tables, and why."""

    def ask(self, sql: str) -> Answer:
        """The answer to one SELECT; an InputError when that cannot be answered."""
        question = self._unzoned(self._question(sql))
        answer = self._wait(lambda: self._database.execute(question))
        described = answer.description or []
        return Answer(
            columns=tuple(str(column[0]) for column in described),
            types=tuple(str(column[1]) for column in described),
            rows=itertools.chain.from_iterable(iter(lambda: self._wait(lambda: answer.fetchmany(AT_ONCE)), [])),
        )

    def copy(self, sql: str, path: Path) -> None:
        """Write the answer to one SELECT as Parquet, to the file that the archive was opened for."""
        # a file beside it would be another file
        how = f"{AS_PARQUET}, USE_TMP_FILE false"
        copy = f"COPY ({self._question(sql)}) TO {quoted(str(_place(path)))} ({how})"
        self._wait(lambda: self._database.execute(copy))

    def _question(self, sql: str) -> str:
        import duckdb

        try:
            text = sql.encode()
        except UnicodeEncodeError:
            raise InputError(f"the question is not UTF-8; {_TABLES_THERE}") from None
        statements = self._wait(lambda: self._database.extract_statements(sql))
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise InputError(f"a question is one SELECT that changes nothing; {_TABLES_THERE}")
        for start, kind in reversed(duckdb.tokenize(sql)):
            if kind != duckdb.token_type.comment and not text.startswith(b";", start):
                break
            text = text[:start]
        # within another one, a SELECT cannot hold a COPY that writes
        return f"FROM (\n{text.decode()}\n)"

    def _unzoned(self, question: str) -> str:
        """The question with moments that need no library of time zones to be read; they are in UTC, like all others."""
        columns = self._wait(lambda: self._database.execute(f"DESCRIBE {question}").fetchall())
        casts = ", ".join(
            f"CAST({identifier(column)} AS {kind.replace(ZONED, 'TIMESTAMP')}) AS {identifier(column)}"
            for column, kind, *_ in columns
            if ZONED in kind
        )
        return f"SELECT * REPLACE ({casts}) {question}" if casts else question

    def _wait(self, call: Callable[[], Result]) -> Result:
        import duckdb

        try:
            return patiently(self._database, call)
        except duckdb.Error as error:
            if isinstance(error, duckdb.IOException) and any(os.strerror(code) in str(error) for code in NO_ROOM):
                raise NoRoomError("no room left for the answer; make room and ask again") from None
            self._look_for_damage(str(error))
            hint = 'write "case", "group" and "at" in quotes; ' if isinstance(error, duckdb.ParserException) else ""
            raise InputError(f"{sentence(error)}; {hint}{_TABLES_THERE}") from None

    def _look_for_damage(self, said: str) -> None:
        """Give up a copy that the database says it cannot read: it is as long as it was written, but not what was written."""
        for run in self._runs:
            if damaged := next((path for path in run.files if str(path) in said), None):
                with suppress(OSError):
                    (run.place / MANIFEST).unlink()
                raise StoreError(f"{damaged}: the copy is damaged; ask again, and it is written anew")


ZONED = "TIMESTAMP WITH TIME ZONE"
AT_ONCE = 1000
"""Rows that are fetched together."""


@contextmanager
def archive(
    root: Path,
    opinions: Opinions,
    *,
    writing: Path | None = None,
    copies: Path | None = None,
    memory: str = "1GB",
) -> Iterator[Archive]:
    """The runs below a folder as tables; `writing` is the one file that an answer may be written to.

    A run whose copy is not of its present state gets a new one: in its folder, or where that cannot be written to, in
    the folder `copies`, and without it for the time of the question elsewhere. A run that cannot be read is left out, and
    the warnings say so.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        database = stack.enter_context(opened(str(scratch), memory, threads=min(8, os.cpu_count() or 1)))
        found, warnings = copied(root, opinions, scratch, copies)
        if not found:
            raise InputError("; ".join(warnings) or _no_runs(root))
        described = _encoder.encode(_described(found)).decode()
        database.execute("CREATE SCHEMA stored")
        database.execute(f"CREATE TABLE stored.runs AS {RUNS_TABLE}", {"runs": described})
        facts = [_read(files, partitioned=told) for told in (True, False) if (files := _files(found, told=told))]
        sources = {
            "$facts": " UNION ALL BY NAME ".join(facts),
            "$cases": _listed(run.folder / "cases.jsonl" for run in found),
            "$largest": str(max(USUAL, *(run.cases_size for run in found))),
        }
        database.execute(re.sub(r"\$\w+", lambda word: sources[word[0]], VIEWS))
        # a run may be a link to a folder elsewhere
        places = [root.resolve(), scratch, *([copies.resolve()] if copies else [])]
        linked = [run.folder for run in found if not run.folder.is_relative_to(places[0])]
        folders = ", ".join(quoted(str(folder)) for folder in dict.fromkeys([*places, *linked]))
        database.execute(f"SET allowed_directories = [{folders}]")
        if writing:
            database.execute(f"SET allowed_paths = [{quoted(str(_place(writing)))}]")
        # every moment in the tables is UTC, and is compared with now() as such wherever we are
        database.execute("SET TimeZone = 'UTC'")
        # what a model wrote may have been pasted into the question
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield Archive(database, warnings, found)


def _files(runs: Iterable[Copied], *, told: bool) -> list[Path]:
    """The files of copies whose paths tell their model and suite, or else the others."""
    return [
        run.place / path
        for run in runs
        for part, _, path in run.copy.files()
        if told == (tells(part.model) and (part.suite == "" or tells(part.suite)))
    ]


def _read(files: Iterable[Path], *, partitioned: bool) -> str:
    """The facts in some files; where paths tell the model and the suite, only those are opened that are asked for."""
    if not partitioned:
        return f"(FROM read_parquet([{_listed(files)}], hive_partitioning = false))"
    how = "hive_partitioning = true, hive_types = {model: VARCHAR, suite: VARCHAR}"
    return f"(FROM read_parquet([{_listed(files)}], {how}) SELECT * REPLACE (coalesce(suite, '') AS suite))"


class Copied(NamedTuple):
    """A run with a copy of its present state."""

    folder: Path
    shown: Path
    """The folder as the user would write it."""
    info: RunInfo
    cases_size: int
    place: Path
    """The folder that holds the copy."""
    copy: Copy

    @property
    def files(self) -> list[Path]:
        return [self.place / path for _, _, path in self.copy.files()]


def copied(root: Path, opinions: Opinions, scratch: Path, copies: Path | None = None) -> tuple[list[Copied], list[str]]:
    """The runs below a folder that can be read, or the run that it is, each with its copy, and what to say about the others.

    A copy that a run's own folder does not take goes into `copies`, where it is looked for as well, else into `scratch`.
    """
    found: dict[str, Copied] = {}
    warnings: list[str] = []
    elders: list[Path] = []
    for folder, seen in _looks(root):
        try:
            if isinstance(seen, Exception):
                raise seen
            if seen is None:
                continue
            if seen.info.id in found:
                warnings.append(f"{folder}: left out, because it holds the same run as {found[seen.info.id].shown}")
                continue
            run = _with_copy(folder, seen, opinions, scratch, copies)
            found[run.info.id] = run
            if run.copy.tool != _tool():
                elders.append(folder)
        except SteelyardError as error:
            warnings.append(f"left out: {error}")
        except OSError as error:
            warnings.append(f"{folder}: left out, because it cannot be read: {error.strerror}")
    whole = {part.id: run.shown for run in found.values() for part in run.info.merged}
    for run in [run for run in found.values() if run.info.id in whole]:
        warnings.append(f"{run.shown}: left out, because it was merged into {whole[run.info.id]}")
        del found[run.info.id]
    if elders:
        told = f"{len(elders)} runs, such as {elders[0]}, were" if len(elders) > 1 else f"{elders[0]} was"
        warnings.append(
            f"{told} scored by another version of steelyard, whose copy cannot be written anew there; --copies DIR keeps "
            "new copies elsewhere"
        )
    return list(found.values()), warnings


def _looks(root: Path) -> Iterator[tuple[Path, Looked | Exception | None]]:
    """The folders below one, or itself, each with what it looks like if it is a run, or why it cannot be looked at."""
    from concurrent.futures import ThreadPoolExecutor

    place = root.resolve()

    def look(inside: tuple[Path, Path | None]) -> tuple[Path, Looked | Exception | None]:
        shown, folder = inside
        try:
            # a run may be a link to a folder elsewhere
            return shown, looked_at(folder or shown.resolve())
        except (FileNotFoundError, NotADirectoryError):
            return shown, None
        except OSError as error:
            return shown, None if error.errno == errno.ELOOP else error
        except SteelyardError as error:
            return shown, error

    try:
        if (root / "run.json").is_file():
            yield look((root, place))
            return
        with os.scandir(place) as inside:
            found = sorted((entry.name, entry.is_symlink()) for entry in inside if not is_hidden(Path(entry.name)))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{root}: cannot be read: {error.strerror}") from None
    # on a mount that answers slowly there is nothing to do but to ask for many things at once
    with ThreadPoolExecutor(LOOKING) as threads:
        yield from threads.map(look, [(root / name, None if is_link else place / name) for name, is_link in found])


LOOKING = 32
"""Folders that are looked at at the same time."""


class Looked(NamedTuple):
    """A run folder as it looks from outside, with what it says of itself."""

    folder: Path
    info: RunInfo
    made_of: str
    """As long as this stays the same, so would a copy: neither copying the folder nor another disk changes it."""
    cases_size: int
    copy: Copy | None
    """The copy in the folder, whatever state it is of, if its files are all there."""


def looked_at(folder: Path) -> Looked:
    """A look at a run folder; a FileNotFoundError where it is none, an InputError where it cannot be read."""
    with os.scandir(folder) as inside:
        entries = {entry.name: entry for entry in inside}
    if "run.json" not in entries:
        raise FileNotFoundError
    info, described = Stored(folder).described()
    if "cases.jsonl" not in entries:
        raise InputError(f"{folder / 'cases.jsonl'}: {os.strerror(errno.ENOENT)}")
    names = ["cases.jsonl", *sorted(name for name in entries if _is_journal(name))]
    sizes = [(name, entries[name].stat().st_size) for name in names]
    made_of = _encoder.encode([_digest(described), sizes]).decode()
    copy = _copy_in(folder) if MANIFEST in entries else None
    return Looked(folder, info, made_of, sizes[0][1], copy)


def _copy_in(folder: Path) -> Copy | None:
    """The copy that a folder holds; None where it has none, or one that is not whole."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            copy = _copy_of.decode(file.read(MOST_BYTES[HEADLINE]))
        if len(copy.parts) > MOST_PARTS or not all(part.bytes for part in copy.parts):
            return None
        is_whole = all((folder / path).stat().st_size == size for _, size, path in copy.files())
    except (OSError, ValueError, *UNREADABLE):
        return None
    return copy if is_whole else None


def _with_copy(shown: Path, seen: Looked, opinions: Opinions, scratch: Path, copies: Path | None) -> Copied:
    """A run with a copy of it as it is now: one that is there, or a new one."""
    folder = Path(utf8(str(seen.folder)))

    def is_present(copy: Copy | None) -> TypeGuard[Copy]:
        return copy is not None and (copy.shape, copy.made_of, copy.run) == (SHAPE, seen.made_of, seen.info.id)

    def with_copy(place: Path, copy: Copy | None = None) -> Copied:
        copy = copy or copy_to_parquet(folder, opinions, place)
        return Copied(folder, shown, seen.info, seen.cases_size, place, copy)

    if is_present(seen.copy) and seen.copy.tool == _tool():
        return with_copy(folder, seen.copy)
    if os.access(folder, os.W_OK):
        # no room there, perhaps; a run that cannot be read fails again
        with suppress(StoreError):
            return with_copy(folder)
    if copies is not None:
        place = copies.resolve() / fitting(seen.info.id)
        kept = _copy_in(place)
        return with_copy(place, kept if is_present(kept) and kept.tool == _tool() else None)
    if is_present(seen.copy):
        return with_copy(folder, seen.copy)
    return with_copy(scratch / fitting(seen.info.id))


def _described(runs: Iterable[Copied]) -> list[dict[str, Any]]:
    """The rows of the table of runs."""
    return [
        {
            "id": info.id,
            "folder": str(shown),
            "started_at": info.started_at,
            "ended_at": info.ended_at,
            "models": info.names or info.models,
            "samples": info.samples,
            "k": info.k,
            "rule": info.rule,
            "seed": info.seed,
            "parameters": info.parameters,
            "eval_sets": info.eval_sets,
            "versions": info.versions,
            "place": str(folder / "cases.jsonl"),
        }
        for folder, shown, info, *_ in runs
    ]


RUNS_TABLE = """
SELECT run.* FROM (
  SELECT unnest(from_json($runs, '[{
    "id": "VARCHAR", "folder": "VARCHAR", "started_at": "TIMESTAMP", "ended_at": "TIMESTAMP", "models": ["VARCHAR"],
    "samples": "BIGINT", "k": ["BIGINT"], "rule": "VARCHAR", "seed": "BIGINT", "parameters": "JSON",
    "eval_sets": [{"path": "VARCHAR", "digest": "VARCHAR"}], "versions": "JSON", "place": "VARCHAR"}]')) AS run)
"""

VIEWS = """
CREATE VIEW runs AS SELECT * EXCLUDE (place) FROM stored.runs;
CREATE VIEW stored.facts AS $facts;
CREATE VIEW cases AS
  SELECT runs.id AS run, told.id, coalesce(name, '') AS name, coalesce(language, '') AS language,
    coalesce(suite, '') AS suite, coalesce(tags, []) AS tags, coalesce("group", '') AS "group", coalesce(weight, 1) AS weight,
    coalesce(critical, false) AS critical,
    if(json_type(prompt) = 'VARCHAR', prompt ->> '$', prompt::VARCHAR) AS prompt,
    coalesce(metadata, '{}'::JSON) AS metadata
  FROM read_json([$cases], format = 'newline_delimited', maximum_object_size = $largest, filename = true, columns = {
    id: 'VARCHAR', name: 'VARCHAR', language: 'VARCHAR', suite: 'VARCHAR', tags: 'VARCHAR[]', "group": 'VARCHAR', weight: 'DOUBLE',
    critical: 'BOOLEAN', prompt: 'JSON', metadata: 'JSON'}) AS told
  JOIN stored.runs AS runs ON told.filename = runs.place;
CREATE VIEW attempts AS
  SELECT run, "case", suite, model, tier, number,
    coalesce(any_value("at") FILTER (counts AND kind = 'reply'), any_value("at") FILTER (counts)) AS "at",
    any_value(reply) FILTER (counts) AS reply,
    any_value(finish) FILTER (counts) AS finish,
    any_value(input_tokens) FILTER (counts) AS input_tokens,
    any_value(output_tokens) FILTER (counts) AS output_tokens,
    any_value(cached_tokens) FILTER (counts) AS cached_tokens,
    any_value(reasoning_tokens) FILTER (counts) AS reasoning_tokens,
    any_value(cost_usd) FILTER (counts) AS cost_usd,
    any_value(latency) FILTER (counts) AS latency,
    any_value(correct) FILTER (counts) AS correct,
    any_value(score) FILTER (counts) AS score,
    any_value(compiled) FILTER (counts) AS compiled,
    any_value(tests_passed) FILTER (counts) AS tests_passed,
    any_value(tests_failed) FILTER (counts) AS tests_failed,
    any_value(warnings) FILTER (counts) AS warnings,
    any_value(label) FILTER (counts) AS label,
    any_value(reason) FILTER (counts) AS reason,
    any_value(trust) FILTER (counts) AS trust,
    any_value(isolation) FILTER (counts) AS isolation,
    any_value(tampered) FILTER (counts) AS tampered,
    any_value(rechecked) FILTER (counts) AS rechecked,
    any_value(disagreed) FILTER (counts) AS disagreed,
    any_value(failure_stage) FILTER (counts) AS failure_stage,
    any_value(failure) FILTER (counts) AS failure
  FROM stored.facts WHERE counts IS NOT NULL
  GROUP BY run, "case", suite, model, tier, number;
CREATE VIEW verdicts AS
  SELECT run, "case", suite, model, tier, number, "at", key, ask, verifier, tests, counts, correct, score, code, compiled,
    tests_passed, tests_failed, warnings, passed, own_score, label, reason, trust, isolation, tampered, rechecked,
    disagreed
  FROM stored.facts WHERE kind = 'verdict';
CREATE VIEW failures AS
  SELECT run, "case", suite, model, tier, number, "at", key, counts, failure_stage AS stage, failure AS message
  FROM stored.facts WHERE kind = 'failure';
"""
"""The tables; of the facts of an attempt that count there is at most one of each kind."""

_TABLES_THERE = "the tables are runs, cases, attempts, verdicts and failures"


def _place(path: Path) -> Path:
    """Where a file is or will be, by no other name."""
    return path.parent.resolve() / path.name


def _listed(paths: Iterable[Path]) -> str:
    return ", ".join(quoted(literal(path)) for path in paths)


def _no_runs(root: Path) -> str:
    return f"{root}: no runs here yet; start one with: steelyard run EVALSET --models PROVIDER/MODEL"


WRITING = "another process is writing this run; wait for it, or stop it first"


def _locked(folder: Path, why: str = WRITING, how: int = fcntl.LOCK_EX) -> int:
    """A lock on the folder itself, which ends with the process however it ends and leaves nothing behind."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}") from None
    for wait in (*LOOKS, None):
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
        except OSError:
            if wait is not None:
                time.sleep(wait)
                continue
            os.close(lock)
            raise StoreError(f"{folder}: {why}") from None
        break
    return lock


LOOKS = (0.01, 0.02, 0.04)
"""Seconds to wait for somebody who holds the lock only to see whether it is free."""


def _whole_lines(file: int) -> int:
    """How many bytes of a file end with a line end."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - (1 << 16))
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _replace(path: Path, content: bytes) -> None:
    """Write a whole file or leave the old one as it is."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise _cannot_write(path.parent, error) from None


def _cannot_write(folder: Path, error: OSError) -> StoreError:
    if error.errno in NO_ROOM:
        return NoRoomError(f"{folder}: no room left ({error.strerror}); make room, then: steelyard resume {folder}")
    return StoreError(f"{folder}: {error.strerror}")
