"""The runs of a folder: listed with their headline figures, and opened by name."""

from __future__ import annotations

import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from steelyard.analysis.headlines import (
    ATTEMPT_TABLE_VERSION,
    ModelHeadline,
    RunHeadlines,
    headlines,
)
from steelyard.errors import InputError, SteelyardError
from steelyard.records import Case
from steelyard.store.journal import DECODE_ERRORS
from steelyard.store.run_folders import (
    HEADLINE_FILE,
    RunFolderSnapshot,
    UntrustedRun,
    eval_set_files,
    is_done,
    run_folder_snapshot,
    run_size_fingerprint,
)
from steelyard.text import short_quote
from steelyard.viewer.run_view import IncrementalRunReader, RunView, garbage_collection_paused, version

__all__ = ["ListedRun", "ModelHeadline", "RunCatalog", "RunListing"]

MAX_OPEN_ROWS = 450_000
"""Attempts of all runs that are kept open, where there are several."""
GROWING_RUN_MEMORY_FACTOR = 2
"""How many times as much memory an attempt takes as long as more can become of it."""
MAX_OPEN_RUNS = 16
MAX_LISTED_JOURNAL_BYTES = 64 << 20
"""Bytes of a growing run's journals up to which a list reads along; the figures of longer ones are those of when they are opened."""
JOURNAL_BYTES_PER_LISTING = 2 << 20
"""About how many bytes of journals one listing reads to compute figures that are not cached on disk."""
RUN_OVERHEAD_BYTES = 64 << 10
"""The fixed cost of a run, counted as bytes of its journal."""
_headlines_decoder = msgspec.json.Decoder(RunHeadlines)


RunState = Literal["done", "growing", "stopped", "broken"]
"""Whether a run is finished, a process writes to it, its last session did not finish, or it cannot be read."""
RUN_STATES: tuple[RunState, ...] = get_args(RunState)


class ListedRun(NamedTuple):
    """One run folder in the list."""

    name: str
    """The name of the folder: what the run is called in addresses."""
    id: str
    """Empty where run.json cannot be read."""
    eval_sets: tuple[str, ...]
    """The names of the files that its cases came from."""
    models: tuple[ModelHeadline, ...]
    """One per model and tier; empty until they are computed, and for a broken run."""
    state: RunState
    problem: str
    """What is wrong with a broken run, or odd about another, in one sentence; otherwise empty."""
    cases: int
    started_at: str
    """Empty where it is not known."""


class RunListing(NamedTuple):
    """The runs of a folder at one moment."""

    runs: tuple[ListedRun, ...]
    """The newest first; those without a known start come last."""
    version: str
    """Another one as soon as something in the list has changed."""
    pending: int = 0
    """Runs whose figures are not computed yet: each request continues the computation."""
    problem: str = ""
    """Why the folder itself cannot be read, in one sentence; otherwise empty."""


class RunCatalog:
    """The runs directly below a folder, or the one run that the folder itself is; nothing in it is ever written."""

    def __init__(self, root: Path) -> None:
        # the user may name a link; what is below it may not be one
        self.root = root.resolve()
        self._known: dict[str, _CatalogEntry] = {}
        self._open: OrderedDict[str, RunView] = OrderedDict()
        self._opening: dict[str, threading.Lock] = {}
        self._lock = threading.RLock()
        self._last: RunListing | None = None
        self._last_runs: list[ListedRun] = []

    def listed(self) -> RunListing:
        """All runs with their headline figures; never raises on account of what the folder holds."""
        with self._lock:
            try:
                names = self._names()
            except OSError as error:
                return RunListing((), "", problem=f"{self.root}: cannot be read: {error.strerror}")
            with garbage_collection_paused():
                folder = self.root.parent if self._is_run else self.root
                looked = ((name, self._look(folder / name)) for name in names)
                self._known = {name: known for name, known in looked if known is not None}
                self._work_out(JOURNAL_BYTES_PER_LISTING)
                found = [known.listed for known in self._known.values()]
                pending = sum(known.is_behind and not known.listed.models for known in self._known.values())
                return self._listing(found, pending)

    def _listing(self, found: list[ListedRun], pending: int) -> RunListing:
        """The list of these runs: the last one as long as nothing in it has changed."""
        last = self._last
        if last is None or pending != last.pending or found != self._last_runs:
            self._last_runs = found
            newest = sorted(found, key=lambda run: (run.started_at, run.name), reverse=True)
            last = RunListing(tuple(_with_duplicates_noted(newest)), secrets.token_hex(8), pending)
            self._last = last
        return last

    def open(self, run_id: str) -> RunView:
        """The run of this name as it is now; raises an InputError where no run has this name or it cannot be read."""
        folder = self._folder(run_id)
        with self._lock:
            opening = self._opening.setdefault(run_id, threading.Lock())
        # reading a long journal must not delay requests for other runs
        with opening:
            with self._lock:
                before = self._open.pop(run_id, None)
            opened = before.refreshed() if before else RunView(folder)
            with self._lock:
                self._open[run_id] = opened
                self._forget()
        return opened

    def is_open(self, run_id: str) -> bool:
        """Whether opening a run takes no longer than reading what was added to it."""
        with self._lock:
            return run_id in self._open

    def _forget(self) -> None:
        """Evict the least recently used runs if they take too much memory."""
        while len(self._open) > 1:
            rows = sum(
                len(opened.rows) * (GROWING_RUN_MEMORY_FACTOR if opened.is_growing else 1)
                for opened in self._open.values()
            )
            if rows <= MAX_OPEN_ROWS and len(self._open) <= MAX_OPEN_RUNS:
                break
            name, _ = self._open.popitem(last=False)
            self._opening.pop(name, None)

    def _folder(self, name: str) -> Path:
        """The folder of a run, which is directly below the root, or the root itself."""
        if self._is_run and name == self.root.name:
            return self.root
        folder = self.root / name
        try:
            # a path of several parts has another name than the last of them
            is_inside = folder.name == name and not name.startswith(".") and not self._is_run
            if is_inside and folder.is_dir() and not folder.is_symlink():
                return folder
        except (OSError, ValueError):
            # too long a name, or one that no file can have
            pass
        raise InputError(f"no run {short_quote(name)} here; the list of runs shows what there is")

    def _names(self) -> list[str]:
        """The names of folders that may hold runs, links to folders included."""
        if self._is_run:
            return [self.root.name]
        with os.scandir(self.root) as inside:
            return [entry.name for entry in inside if not entry.name.startswith(".") and _is_folder(entry)]

    @property
    def _is_run(self) -> bool:
        return (self.root / "run.json").is_file()

    def _look(self, folder: Path) -> _CatalogEntry | None:
        """What a folder holds, by reading it if it is not as before."""
        try:
            snapshot = run_folder_snapshot(folder)
            before = self._known.get(folder.name)
            if not snapshot.files and not snapshot.links and not snapshot.is_empty:
                return None
            if before is not None and before.snapshot == snapshot:
                return before
            return _ReadEntry(folder, snapshot, before)
        except FileNotFoundError:
            # it went away while we looked
            return None
        except OSError as error:
            why = "a link, and links are not followed" if folder.is_symlink() else f"cannot be read: {error.strerror}"
            return _CatalogEntry(_unread(folder.name, f"{folder.name}: {why}"))

    def _work_out(self, most: int) -> None:
        """Continue with the figures that are not cached on disk, the newest runs first."""
        behind = [known for known in self._known.values() if known.is_behind and isinstance(known, _ReadEntry)]
        for known in sorted(behind, key=lambda known: known.listed.started_at, reverse=True):
            if most <= 0:
                break
            most -= known.get_on(most, self._opened(known)) + RUN_OVERHEAD_BYTES

    def _opened(self, known: _ReadEntry) -> RunView | None:
        """The run as it is open in the cache, so that it is not read twice."""
        name = known.listed.name
        opened = self._open.get(name)
        if opened is None or opened.version == version(known.snapshot):
            return opened
        try:
            later = opened.refreshed() if opened.goes_on else None
        except SteelyardError:
            return None
        if later is not None:
            self._open[name] = later
        return later


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # a link that leads nowhere, or round in a circle
        return False


class _CatalogEntry:
    """What is known of a folder in this state."""

    def __init__(self, listed: ListedRun, snapshot: RunFolderSnapshot | None = None) -> None:
        self.listed = listed
        self.snapshot = snapshot
        """None if the folder was not looked into."""
        self.is_behind = False
        """Whether the figures are not those of its present state."""


class _ReadEntry(_CatalogEntry):
    """The known figures of a folder that was read, and those still to be computed."""

    def __init__(self, folder: Path, snapshot: RunFolderSnapshot, before: _CatalogEntry | None) -> None:
        super().__init__(_unread(folder.name), snapshot)
        self.snapshot: RunFolderSnapshot = snapshot
        self._stored = UntrustedRun(folder)
        read = before if isinstance(before, _ReadEntry) else None
        self._reading: IncrementalRunReader | None = read._reading if read else None
        self._describe(before)

    def _describe(self, before: _CatalogEntry | None) -> None:
        """Take what is written down."""
        folder = self._stored.folder
        if self.snapshot.file("run.json") is None:
            what = "an empty folder" if self.snapshot.is_empty else "no run.json"
            self._fail(f"{folder.name}: not a run ({what})")
            return
        try:
            info, written = self._stored.described()
            self.listed = self.listed._replace(id=info.id, eval_sets=eval_set_files(info), started_at=info.started_at)
            kept = self._kept(written)
            has_ended = is_done(self._stored, info, has_figures=kept is not None)
        except SteelyardError as error:
            self._fail(str(error))
            return
        self.listed = self.listed._replace(
            # what is a little old will do as long as it changes all the time
            models=kept.models if kept else before.listed.models if before and self.snapshot.is_locked else (),
            state="growing" if self.snapshot.is_locked else "done" if has_ended else "stopped",
            cases=kept.cases if kept else before.listed.cases if before else 0,
        )
        self.is_behind = kept is None
        if kept is not None or (self._reading and not self._reading.goes_on(info, self.snapshot)):
            self._reading = None

    def _kept(self, described: bytes) -> RunHeadlines | None:
        """The figures that were written down when a sitting ended; None if they are of another state of the run."""
        if self.snapshot.file("cases.jsonl") is None:
            raise InputError(f"{self._stored.folder / 'cases.jsonl'}: not there")
        try:
            kept = _headlines_decoder.decode(self._stored.content(self._stored.folder / HEADLINE_FILE))
        except (OSError, *DECODE_ERRORS):
            return None
        is_present = kept.made_of == run_size_fingerprint(described, self.snapshot, ATTEMPT_TABLE_VERSION)
        # what only a link leads to is in those figures, and in nothing that we read
        return kept if is_present and not self.snapshot.links else None

    def get_on(self, most: int, opened: RunView | None) -> int:
        """Read about this many bytes of the journals, and compute the figures once all is read; returns the bytes read."""
        size = sum(file.size for file in self.snapshot.journals)
        try:
            if opened is not None or (self.snapshot.is_locked and size > MAX_LISTED_JOURNAL_BYTES):
                self.is_behind = False
                if opened is not None:
                    self._count(opened.headlines, opened.cases)
                return 0
            if self._reading is None:
                self._reading = IncrementalRunReader(self._stored, self._stored.info, self._stored.cases, self.snapshot)
            reading, before = self._reading, self._reading.byte
            with garbage_collection_paused():
                self.is_behind = not reading.go_on(before + most)
                if not self.is_behind:
                    models = headlines(self._stored.info, reading.cases, reading.table())
                    self._count(models, reading.cases)
            return reading.byte - before
        except SteelyardError as error:
            self._fail(str(error))
            return 0

    def _count(self, models: tuple[ModelHeadline, ...], cases: Sequence[Case]) -> None:
        self.listed = self.listed._replace(models=models, cases=len(cases))
        if not self.snapshot.is_locked:
            self._reading = None

    def _fail(self, problem: str) -> None:
        self.is_behind, self._reading = False, None
        # only the owner may learn the path of the folder
        problem = problem.replace(f"{self._stored.folder.parent}/", "")
        self.listed = self.listed._replace(models=(), state="broken", problem=problem)


def _unread(name: str, problem: str = "") -> ListedRun:
    """What is listed of a folder before it is read, or if it cannot be."""
    return ListedRun(name, "", (), (), "broken", problem, 0, "")


def _with_duplicates_noted(runs: Iterable[ListedRun]) -> Iterator[ListedRun]:
    """The runs in their order, with a note about those that are in two folders."""
    known: dict[str, str] = {}
    for run in runs:
        first = known.setdefault(run.id, run.name) if run.id else run.name
        is_twin = first != run.name and not run.problem
        yield run._replace(problem=f"{run.name}: is the same run as {first}") if is_twin else run
