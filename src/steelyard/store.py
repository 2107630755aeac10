"""Runs on disk: the only module that knows the medium."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from steelyard.errors import InputError, NoRoomError, Problem, StoreError
from steelyard.records import Case, Fact, Failure, Reply, RunInfo, Verdict

if TYPE_CHECKING:
    import duckdb

RUNS = Path("steelyard-runs")
"""Where runs are kept unless the user says otherwise."""
USUAL, LARGEST = 4 << 20, 128 << 20
"""Bytes of a journal's line: as good as always at most, and at the very most."""
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What reading a damaged line can end in."""

_facts = msgspec.json.Decoder(Reply | Verdict | Failure)
_cases = msgspec.json.Decoder(Case)
_info = msgspec.json.Decoder(RunInfo)
_encoder = msgspec.json.Encoder()


class Stored:
    """A run folder to read; it may be growing while it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[Problem] = []
        """Journal lines that could not be read the last time; their attempts are owed again."""

    @property
    def info(self) -> RunInfo:
        path = self.folder / "run.json"
        try:
            return _info.decode(path.read_bytes())
        except FileNotFoundError:
            raise InputError(f"{self.folder}: not a run folder (it has no run.json)") from None
        except UNREADABLE as error:
            raise InputError(f"{path}: not the description of a run: {error}") from None

    @property
    def cases(self) -> tuple[Case, ...]:
        path = self.folder / "cases.jsonl"
        number = 0
        cases = []
        try:
            for line in path.read_bytes().splitlines():
                number += 1
                cases.append(_cases.decode(line))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        except UNREADABLE as error:
            raise InputError([Problem(str(path), number, f"not a case: {error}")]) from None
        return tuple(cases)

    def facts(self) -> Iterator[Reply | Verdict | Failure]:
        """Every fact in the order it was written; a line that is damaged or not finished is left out."""
        self.damaged = []
        for path in self.journals():
            with path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    if not line.endswith(b"\n"):
                        break
                    try:
                        yield _facts.decode(line)
                    except UNREADABLE as error:
                        self.damaged.append(Problem(str(path), number, f"not a fact, left out: {error}", fatal=False))

    def journals(self) -> list[Path]:
        return sorted(self.folder.glob("attempts*.jsonl"))


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
            raise StoreError(f"{path}: {error.strerror}") from None

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
        _replace(self.folder / "cases.jsonl", b"".join(_encoder.encode(case) + b"\n" for case in cases))

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


def copy_to_parquet(folder: Path) -> None:
    """Write a run's facts as Parquet, for questions over many runs; the copy can always be rebuilt."""
    import duckdb

    fresh = folder / ".attempts.parquet.new"
    # a copy needs no network and not every core, and however long the run is, little memory
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": "512MB",
        "autoinstall_known_extensions": False,
    }
    try:
        with duckdb.connect(config=config) as database:
            journals = [str(path) for path in Stored(folder).journals()]
            given = {"journals": journals, "run": Stored(folder).info.id}
            try:
                _write_rows(database.sql(FACTS, params={**given, "largest": USUAL}), fresh)
            except duckdb.Error:
                # twice the longest line is kept in memory: only a run that has such lines pays for it
                _write_rows(database.sql(FACTS, params={**given, "largest": LARGEST}), fresh)
        fresh.replace(folder / "attempts.parquet")
    except (duckdb.Error, OSError) as error:
        fresh.unlink(missing_ok=True)
        raise StoreError(
            f"{folder}: the Parquet copy could not be written: {str(error).partition(chr(10))[0]}"
        ) from None


def _write_rows(rows: duckdb.DuckDBPyRelation, path: Path) -> None:
    rows.write_parquet(str(path), compression="zstd", row_group_size=4096)


FACTS = """
SELECT $run AS run, kind, key, ask, "at", "case", model, coalesce(tier, '') AS tier, number,
  answer.text AS reply, if(kind = 'reply', coalesce(answer.finish, 'stop'), NULL) AS finish,
  answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.reasoning_tokens,
  answer.cost.usd AS cost_usd, answer.latency,
  verifier, tests, found.code, found.compiled,
  len(list_filter(found.tests, lambda test: test.outcome = 'passed')) AS tests_passed,
  len(list_filter(found.tests, lambda test: test.outcome = 'failed')) AS tests_failed,
  found.warnings, found.passed, found.score, found.label, found.reason, found.trust, found.isolation,
  stage AS failed_stage, message AS failure
FROM read_json($journals, format = 'newline_delimited', ignore_errors = true, maximum_object_size = $largest,
  columns = {
    kind: 'VARCHAR', key: 'VARCHAR', ask: 'VARCHAR', "at": 'VARCHAR', "case": 'VARCHAR', model: 'VARCHAR',
    number: 'INTEGER', tier: 'VARCHAR', tests: 'VARCHAR', verifier: 'VARCHAR', stage: 'VARCHAR', message: 'VARCHAR',
    answer: 'STRUCT(text VARCHAR, finish VARCHAR, input_tokens BIGINT, output_tokens BIGINT, cached_tokens BIGINT,
      reasoning_tokens BIGINT, cost STRUCT(usd DOUBLE), latency DOUBLE)',
    found: 'STRUCT(code VARCHAR, compiled BOOLEAN, tests STRUCT(outcome VARCHAR)[], warnings INTEGER, passed BOOLEAN,
      score DOUBLE, label VARCHAR, reason VARCHAR, trust VARCHAR, isolation VARCHAR)'})
WHERE kind IS NOT NULL
"""
"""A run's facts, one row each, in the order of the journal; the last of an attempt and kind is the one that counts."""


def runs(root: Path = RUNS) -> list[Stored]:
    """The runs below a folder, oldest first; folders that hold no readable run are passed over."""
    found = []
    for path in root.glob("*/run.json"):
        stored = Stored(path.parent)
        try:
            found.append((stored.info.started_at, stored.folder.name, stored))
        except InputError:
            continue
    return [stored for _, _, stored in sorted(found, key=lambda entry: entry[:2])]


def find(name: str, root: Path = RUNS) -> Path:
    """The run folder a user means: a path, a name below the runs' folder, or `latest`."""
    if name == "latest":
        newest = runs(root)
        if not newest:
            raise InputError(f"{root}: no runs here yet; start one with: steelyard run EVALSET --models PROVIDER/MODEL")
        return newest[-1].folder
    for folder in (Path(name), root / name):
        if (folder / "run.json").is_file():
            return folder
    if Path(name).is_dir():
        raise InputError(f"{name}: not a run folder (it has no run.json)")
    raise InputError(f'no run "{name}" here or under {root}; `steelyard list` shows what there is')


def _locked(folder: Path) -> int:
    """A lock on the folder itself, which ends with the process however it ends and leaves nothing behind."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise StoreError(f"{folder}: another process is writing this run; wait for it, or stop it first") from None
    return lock


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
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return NoRoomError(f"{folder}: no room left ({error.strerror}); make room, then: steelyard resume {folder}")
    return StoreError(f"{folder}: {error.strerror}")
