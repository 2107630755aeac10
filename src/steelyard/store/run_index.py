"""What is known of the runs below a folder, as long as none of their files has changed.

The folders decide: an entry counts only while the folder and each of its files have the inode, size and time of change that
they had before the run was read. An index that is missing, damaged or of another version is ignored.
"""

from __future__ import annotations

import functools
import os
import stat
import struct
import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.errors import StoreError
from steelyard.records import RunInfo
from steelyard.store.journal import DECODE_ERRORS, is_journal, write_atomically

LISTED_FILES = ("run.json", "cases.jsonl", "headline.json")
"""The data for lists of runs that does not come from journals."""
RUN_INDEX_FILE = ".steelyard-index"
MAX_RUN_INDEX_BYTES = 1 << 30
MIN_INDEXED_RUNS = 100
"""Runs below which a folder is read as quickly without an index."""
DESCRIPTION_FILES = frozenset({"run.json"})
"""What a run says of itself: the ids, the start and the row of an entry."""
SETTLED_SECONDS = 2
"""A file that changed this recently may change again without a visible difference: clocks of file systems are coarse."""


class RunLines(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a list prints of a run, before it is laid out."""

    name: str
    about: str
    """When it started, and its eval sets."""
    models: tuple[tuple[str, str, str, str, str, str], ...] = ()
    """Of each model its name, pass rate, interval, counts, cost and what is missing."""


_FILE_STATE = struct.Struct("<QQQ")
"""The inode of a file, its size and when it changed; the size of a folder says nothing, and is 0."""


class FolderState(NamedTuple):
    """How a run folder looks from outside."""

    name: str
    """Of the folder."""
    files: tuple[str, ...]
    """The names of its files."""
    states: bytes
    """How the folder and then each file looked."""


class IndexedRun(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A run as it was when its folder looked like this."""

    name: str
    """Of its folder."""
    files: tuple[str, ...]
    """The names of its files."""
    states: bytes
    """How the folder and then each file looked from outside."""
    id: str
    started_at: str
    parts: tuple[str, ...]
    """The ids of the runs that it was merged from."""
    described: bytes
    """Its row in the table of runs, as JSON; without its folder."""
    lines: RunLines | None
    """What lists print of it; None until a list has asked."""
    figures: bytes
    """What the viewer's list shows of it, packed; empty until a list has asked."""
    fact_parts: bytes = b""
    """The models and suites that its facts are about, packed; empty until a question has asked for its facts."""

    @property
    def looks(self) -> FolderState:
        """How its folder looked."""
        return FolderState(self.name, self.files, self.states)


def is_current(run: FolderState | IndexedRun, root: str, files: Container[str] | None = None) -> bool:
    """Whether the folder of a run, and its files or those of these names, still look like that; no file is opened."""
    place = f"{root}/{run.name}"
    lstat = os.lstat
    try:
        states = _FILE_STATE.iter_unpack(run.states)
        inode, _, changed = next(states, (0, 0, 0))
        now = lstat(place)
        if now.st_mtime_ns != changed or now.st_ino != inode:
            return False
        for name, (inode, size, changed) in zip(run.files, states, strict=True):
            if files is None or name in files:
                now = lstat(f"{place}/{name}")
                if now.st_mtime_ns != changed or now.st_size != size or now.st_ino != inode:
                    return False
    except (OSError, ValueError, struct.error):
        return False
    return True


class RunIndexFile(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The index as it is written."""

    tool: str
    runs: tuple[IndexedRun, ...]


_decoder = msgspec.msgpack.Decoder(RunIndexFile)


@functools.cache
def steelyard_version() -> str:
    """Who has opinions: another version may have others."""
    # `importlib.metadata` reads it in a file of this folder, and importing it takes longer than all else that a gate reads
    for place in sys.path:
        with suppress(OSError):
            for name in os.listdir(place or "."):  # noqa: PTH208  names alone
                if name.startswith("steelyard-") and name.endswith(".dist-info"):
                    return name.removeprefix("steelyard-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version("steelyard")


def run_state(folder: Path) -> FolderState | None:
    """How a run folder looks, to be taken before it is read; None if it may not be indexed."""
    try:
        outside = os.lstat(folder)
        names = sorted(name for name in os.listdir(folder) if name in LISTED_FILES or is_journal(name))  # noqa: PTH208  thousands of folders
        files = [os.lstat(f"{folder}/{name}") for name in names]
    except OSError:
        return None
    latest = max(state.st_mtime_ns for state in (outside, *files))
    is_settled = time.time_ns() - latest > SETTLED_SECONDS * 1_000_000_000
    are_plain = all(stat.S_ISREG(state.st_mode) for state in files) and stat.S_ISDIR(outside.st_mode)
    # a name that is not UTF-8 is not printable either
    is_whole = {"run.json", "cases.jsonl"} <= set(names) and folder.name.isprintable()
    if not (are_plain and is_settled and is_whole and outside.st_mtime_ns >= 0):
        return None
    states = [_FILE_STATE.pack(outside.st_ino, 0, outside.st_mtime_ns)]
    states += [_FILE_STATE.pack(state.st_ino, state.st_size, state.st_mtime_ns) for state in files]
    return FolderState(folder.name, tuple(names), b"".join(states))


def run_row(info: RunInfo) -> bytes:
    """A run in the table of runs, as JSON, without the folder that it is in."""
    row = {
        "id": info.id,
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
    }
    return msgspec.json.encode(row)


def indexed_run(
    state: FolderState, info: RunInfo, lines: RunLines | None = None, figures: bytes = b"", fact_parts: bytes = b""
) -> IndexedRun:
    """The entry of a run that was read after its folder looked like this."""
    parts = tuple(part.id for part in info.merged)
    return IndexedRun(*state, info.id, info.started_at, parts, run_row(info), lines, figures, fact_parts)


FactParts = tuple[tuple[str | None, str | None], ...]
"""Models and suites that facts are about; None for facts about several of them."""
_parts_decoder = msgspec.msgpack.Decoder(FactParts)


def packed_parts(parts: FactParts) -> bytes:
    """The models and suites of a run's facts as an index has them."""
    return msgspec.msgpack.encode(parts)


# runs share few of them
@functools.lru_cache(maxsize=1 << 12)
def unpacked_parts(packed: bytes) -> FactParts | None:
    """The models and suites of a run's facts; None where they are not known."""
    try:
        return _parts_decoder.decode(packed)
    except DECODE_ERRORS:
        return None


def current_runs(root: Path, files: Container[str] | None = None) -> dict[str, IndexedRun]:
    """The runs of the index whose folders have not changed since, by the names of their folders.

    With names of `files`, changes within others do not matter.
    """
    place = str(root)
    return {run.name: run for run in indexed_runs(root) if is_current(run, place, files)}


def indexed_runs(root: Path) -> Iterator[IndexedRun]:
    """The runs of the index, whether their folders have changed or not."""
    try:
        # anybody may have put it there: a pipe would never end, and a link may lead anywhere
        opened = os.open(root / RUN_INDEX_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                return
            index = _decoder.decode(file.read(MAX_RUN_INDEX_BYTES))
    except (OSError, *DECODE_ERRORS):
        return
    if index.tool == steelyard_version():
        yield from (run for run in index.runs if "/" not in run.name)


def write_run_index(root: Path, runs: Iterable[IndexedRun], known: Mapping[str, IndexedRun]) -> None:
    """Write the index if it is new; a folder that is not writable gets none."""
    listed = tuple(runs)
    if len(listed) < MIN_INDEXED_RUNS or all(known.get(run.name) is run for run in listed):
        return
    with suppress(StoreError, OSError):
        write_atomically(
            root / RUN_INDEX_FILE, msgspec.msgpack.encode(RunIndexFile(tool=steelyard_version(), runs=listed))
        )
