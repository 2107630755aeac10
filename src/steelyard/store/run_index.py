"""What is known of the runs below a folder, as long as none of their files has changed.

The folders decide: an entry counts only while the folder and each of its files have the inode, size and time of change that
they had before the run was read. An index that is missing, damaged or of another version is ignored.
"""

from __future__ import annotations

import functools
import os
import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.errors import StoreError
from steelyard.records import Record, RunInfo
from steelyard.store.journal import DECODE_ERRORS, is_journal, write_atomically

LISTED_FILES = ("run.json", "cases.jsonl", "headline.json")
"""The data for lists of runs that does not come from journals."""
RUN_INDEX_FILE = ".steelyard-index.json"
MAX_RUN_INDEX_BYTES = 1 << 30
MIN_INDEXED_RUNS = 100
"""Runs below which a folder is read as quickly without an index."""
SETTLED_SECONDS = 2
"""A file that changed this recently may change again without a visible difference: clocks of file systems are coarse."""


class FileState(NamedTuple):
    """A file or folder as it looks from outside."""

    name: str
    inode: int
    size: int
    changed: int


class IndexedRun(Record, frozen=True, kw_only=True):
    """A run as it was when its folder looked like this."""

    state: tuple[FileState, ...]
    """The folder itself first, then the files of the run."""
    id: str
    started_at: str
    parts: tuple[str, ...] = ()
    """The ids of the runs that it was merged from."""
    listed: msgspec.Raw = msgspec.Raw(b"null")
    """What lists show of it."""

    @property
    def name(self) -> str:
        return self.state[0].name

    def is_current(self, root: str) -> bool:
        """Whether the folder still looks like that; no file is opened."""
        folder, *files = self.state
        place = f"{root}/{folder.name}"
        # the size of a folder says nothing
        with suppress(OSError, ValueError):
            now = os.lstat(place)
            if (now.st_ino, now.st_mtime_ns) != (folder.inode, folder.changed):
                return False
            for name, inode, size, changed in files:
                now = os.lstat(f"{place}/{name}")
                if now.st_mtime_ns != changed or now.st_size != size or now.st_ino != inode:
                    return False
            return True
        return False


class RunIndexFile(Record, frozen=True, kw_only=True):
    """The index as it is written."""

    tool: str
    runs: tuple[IndexedRun, ...]


_decoder = msgspec.json.Decoder(RunIndexFile)


@functools.cache
def steelyard_version() -> str:
    """Who has opinions: another version may have others."""
    return version("steelyard")


def _state(path: str, name: str) -> FileState:
    state = os.lstat(path)
    return FileState(name, state.st_ino, state.st_size, state.st_mtime_ns)


def run_state(folder: Path) -> tuple[FileState, ...]:
    """How a run folder looks, to be taken before it is read; empty if it may not be indexed."""
    try:
        outside = os.lstat(folder)
        names = [path.name for path in folder.iterdir() if path.name in LISTED_FILES or is_journal(path.name)]
        files = [_state(f"{folder}/{name}", name) for name in sorted(names)]
        are_plain = all(stat.S_ISREG(os.lstat(f"{folder}/{name}").st_mode) for name in names)
    except OSError:
        return ()
    latest = max([outside.st_mtime_ns, *(file.changed for file in files)])
    is_settled = time.time_ns() - latest > SETTLED_SECONDS * 1_000_000_000
    # a name that is not UTF-8 is not printable either
    if not (are_plain and is_settled and stat.S_ISDIR(outside.st_mode) and folder.name.isprintable()):
        return ()
    return (FileState(folder.name, outside.st_ino, 0, outside.st_mtime_ns), *files)


def indexed_run(state: tuple[FileState, ...], info: RunInfo, listed: bytes) -> IndexedRun:
    """The entry of a run that was read after its folder looked like this."""
    parts = tuple(part.id for part in info.merged)
    return IndexedRun(state=state, id=info.id, started_at=info.started_at, parts=parts, listed=msgspec.Raw(listed))


def current_runs(root: Path) -> dict[str, IndexedRun]:
    """The runs of the index whose folders have not changed since, by the names of their folders."""
    try:
        # anybody may have put it there: a pipe would never end, and a link may lead anywhere
        opened = os.open(root / RUN_INDEX_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                return {}
            index = _decoder.decode(file.read(MAX_RUN_INDEX_BYTES))
    except (OSError, *DECODE_ERRORS):
        return {}
    if index.tool != steelyard_version():
        return {}
    place = str(root)
    return {run.name: run for run in index.runs if run.state and "/" not in run.name and run.is_current(place)}


def write_run_index(root: Path, runs: Iterable[IndexedRun], known: Mapping[str, IndexedRun]) -> None:
    """Write the index if it is new; a folder that is not writable gets none."""
    listed = tuple(run for run in runs if run.state)
    if len(listed) < MIN_INDEXED_RUNS or all(known.get(run.name) is run for run in listed):
        return
    content = msgspec.json.encode(RunIndexFile(tool=steelyard_version(), runs=listed))
    with suppress(StoreError, OSError):
        write_atomically(root / RUN_INDEX_FILE, content)
