"""One run for the pages: a row per attempt in memory, texts on disk, and search."""

from __future__ import annotations

import gc
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.analysis.attempt_texts import AttemptText, attempt_text
from steelyard.analysis.attempts import NO_PLACE, AttemptRow, AttemptTable, AttemptTableBuilder, Column
from steelyard.analysis.headlines import (
    MAX_NAMED_DAMAGED_LINES,
    ModelHeadline,
    headlines,
    problem_sentences,
)
from steelyard.analysis.summary import Summary, summarise_attempts
from steelyard.engine.results.attempt_index import read_index, unpack_summary, unpack_summary_of_models
from steelyard.errors import BoundedProblemList, InputError, StoreError
from steelyard.records import Case, RunInfo
from steelyard.store.journal import JournalFact, JournalReader, fact_offset
from steelyard.store.reply_places import reply_texts
from steelyard.store.run_folders import (
    RunFolderSnapshot,
    UntrustedRun,
    run_folder_snapshot,
)

__all__ = ["AttemptRow", "Column", "RunView"]

MAX_VIEWED_ATTEMPTS = 1_000_000
"""More do not fit into the memory that a viewer should take."""
MAX_CACHED_SUMMARIES = 8
"""Summaries by other rules and sizes of k that are kept."""
JOURNAL_CHECK_BYTES = 256
"""Bytes before the end of the read part that show whether a journal is still the same."""


class RunViewState(NamedTuple):
    """What is known of a run at one moment."""

    snapshot: RunFolderSnapshot
    """Its state before anything was read: later writes belong to a later state."""
    info: RunInfo
    cases: Sequence[Case]
    table: AttemptTable
    summary: bytes | None = None
    """The summary by the run's own k and rule, packed, where somebody has written it down."""
    reading: IncrementalRunReader | None = None
    """Where reading can continue; None if the run is not growing."""


class RunView:
    """A run at one moment; it does not change, and `refreshed` gives a later one."""

    def __init__(self, folder: Path, moment: RunViewState | None = None) -> None:
        """Raises an InputError or a StoreError where the folder holds no run that can be read."""
        self._moment = moment = moment or _current_state(folder)
        self.table: AttemptTable = moment.table
        self.name: str = folder.name
        self.folder: Path = folder
        self.info: RunInfo = moment.info
        self.cases: Sequence[Case] = moment.cases
        self.columns: tuple[Column, ...] = moment.table.columns
        """The columns of the matrix, in the order of a summary's models."""
        self.rows: tuple[AttemptRow, ...] = tuple(moment.table.rows)
        """One per attempt: cases in order, then columns, then numbers."""
        self.is_growing: bool = moment.snapshot.is_locked
        """Whether somebody is writing it."""
        self.version: str = version(moment.snapshot)
        """Another one as soon as the run has grown or changed."""
        links = (f"{name}: a link or a special file, so it is not read" for name in moment.snapshot.links)
        self.problems: tuple[str, ...] = (*moment.table.problems, *links)
        """What could not be read, in sentences."""
        self._summaries: OrderedDict[tuple[tuple[int, ...], str], Summary] = OrderedDict()

    def summary(self, k: Sequence[int] | None = None, rule: str | None = None) -> Summary:
        """What the run adds up to, by its own k and rule or by others; raises an InputError for an unknown rule."""
        asked = tuple(sorted(set(self.info.k if k is None else k))), rule or self.info.rule
        known = self._summaries.get(asked)
        if known is None:
            is_own = asked == (tuple(sorted(set(self.info.k))), self.info.rule)
            with garbage_collection_paused():
                known = self._own_summary() if is_own else None
                known = known or summarise_attempts(self.info, self.cases, self.table, k=asked[0], rule=asked[1])
            self._summaries[asked] = known
            while len(self._summaries) > MAX_CACHED_SUMMARIES:
                self._summaries.popitem(last=False)
        return known

    def _own_summary(self) -> Summary | None:
        try:
            return unpack_summary(self._moment.summary) if self._moment.summary is not None else None
        except ValueError:
            return None

    @cached_property
    def summary_of_models(self) -> Summary:
        """What the run adds up to by its own k and rule, where it is packed without its cases."""
        with suppress(ValueError):
            if self._moment.summary is not None:
                return unpack_summary_of_models(self._moment.summary)
        return self.summary()

    @cached_property
    def headlines(self) -> tuple[ModelHeadline, ...]:
        """What a list of runs says of each model; much less work than a summary."""
        with garbage_collection_paused():
            return headlines(self.info, self.cases, self.table)

    def attempt(self, case_id: str, model: str, tier: str, number: int) -> AttemptText | None:
        """One attempt with all its texts; None if the run has no such attempt.

        Raises a StoreError where the journal is not what it was.
        """
        order, column = self._orders.get(case_id), self._places.get(Column(model, tier))
        row = None if order is None or column is None else self.table.row(order, column, number)
        if row is None:
            return None
        places = {row.reply_place, row.verdict_place, row.failure_place} - {NO_PLACE}
        facts = {place: self._fact(place, (case_id, model, tier, number)) for place in places}
        return attempt_text(self.cases, self.columns, row, facts)

    @cached_property
    def _orders(self) -> dict[str, int]:
        return {case.id: order for order, case in enumerate(self.cases)}

    @cached_property
    def _places(self) -> dict[Column, int]:
        return {column: place for place, column in enumerate(self.columns)}

    def _fact(self, place: int, where: tuple[str, str, str, int]) -> JournalFact:
        fact = UntrustedRun(self.folder).at(place, self.table.journals)
        if (fact.case, fact.model, fact.tier, fact.number) != where:
            raise StoreError(
                f"{self.folder}: the file has changed and another attempt is at this place; read the run again"
            )
        return fact

    @property
    def goes_on(self) -> bool:
        """Whether `refreshed` has only to read what is new, unless more than that has happened to the run."""
        return self._moment.reading is not None

    def refreshed(self) -> RunView:
        """The run as it is now: this one if nothing has changed, otherwise one for which only new lines were read."""
        snapshot = _snapshot(self.folder)
        if snapshot == self._moment.snapshot:
            return self
        return RunView(self.folder, _later_state(self.folder, self._moment, snapshot))


def version(snapshot: RunFolderSnapshot) -> str:
    """What a run that looks like this is known by."""
    return hashlib.blake2b(repr(snapshot).encode(), digest_size=8).hexdigest()


def _snapshot(folder: Path) -> RunFolderSnapshot:
    try:
        return run_folder_snapshot(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}") from None


def _current_state(folder: Path) -> RunViewState:
    """The run as it is now, from its index, or where that is not of its present state, from its journals."""
    snapshot, stored = _snapshot(folder), UntrustedRun(folder)
    info, cases = stored.info, stored.cases
    with garbage_collection_paused():
        index = read_index(stored, len(cases))
        if index is not None:
            # a damaged block is found when it is read
            with suppress(StoreError):
                rows = tuple(index.table.rows)
                return RunViewState(snapshot, info, cases, replace(index.table, rows=rows), index.summary)
        reading = IncrementalRunReader(stored, info, cases, snapshot)
        reading.go_on()
        # the reader takes more memory than all rows, and a run that no longer grows does not need it
        return RunViewState(snapshot, info, cases, reading.table(), None, reading if snapshot.is_locked else None)


def _later_state(folder: Path, before: RunViewState, snapshot: RunFolderSnapshot) -> RunViewState:
    """A run that was read before, as it is now."""
    info, reading = UntrustedRun(folder).info, before.reading
    if reading is None or not reading.goes_on(info, snapshot):
        return _current_state(folder)
    with garbage_collection_paused():
        reading.go_on()
        table = reading.table()
    return RunViewState(snapshot, info, before.cases, table, None, reading if snapshot.is_locked else None)


class IncrementalRunReader:
    """The journals of a run, read up to their ends, and continued from there later."""

    def __init__(self, stored: UntrustedRun, info: RunInfo, cases: Sequence[Case], snapshot: RunFolderSnapshot) -> None:
        self.cases = cases
        self._info, self._snapshot = info, snapshot
        self._stored = stored
        self._builder, self._damages = AttemptTableBuilder(info, cases), BoundedProblemList(MAX_NAMED_DAMAGED_LINES)
        self._tails = [
            JournalReader(stored, stored.folder / file.name, self._damages.add) for file in snapshot.journals
        ]
        self._before = b""
        # two requests may want the same run refreshed
        self._lock = threading.Lock()

    @property
    def byte(self) -> int:
        """How many bytes were read."""
        return sum(tail.byte for tail in self._tails)

    def go_on(self, most: int | None = None) -> bool:
        """Read what is there, or about `most` bytes of it; whether that was all."""
        with self._lock:
            for number, tail in enumerate(self._tails):
                for byte, fact in tail.facts():
                    self._builder.add(fact_offset(number, byte), fact)
                    if len(self._builder) > MAX_VIEWED_ATTEMPTS:
                        raise InputError(
                            f"{self._stored.folder}: more than {MAX_VIEWED_ATTEMPTS:,} attempts, too many to show"
                        )
                    if most is not None and self.byte >= most:
                        return False
            self._before = self._end()
            return True

    def goes_on(self, info: RunInfo, snapshot: RunFolderSnapshot) -> bool:
        """Whether all that happened to the run since is that its last journal has grown."""
        # these say how much is planned and whether it is done, and nothing about what there is
        growing = ("ended_at", "samples", "more", "allocated", "stopped")
        same = msgspec.structs.replace(self._info, **{name: getattr(info, name) for name in growing})
        if info != same or snapshot.file("cases.jsonl") != self._snapshot.file("cases.jsonl"):
            return False
        *others, last = snapshot.journals or (None,)
        *known, grown = self._snapshot.journals or (None,)
        if others != known or last is None or grown is None:
            return False
        is_later = (last.name, last.inode) == (grown.name, grown.inode) and last.size >= self._tails[-1].byte
        return is_later and self._before == self._end()

    def _end(self) -> bytes:
        """The end of what was read of the last journal."""
        if not self._tails:
            return b""
        tail = self._tails[-1]
        try:
            with self._stored.open(tail.path) as file:
                file.seek(max(0, tail.byte - JOURNAL_CHECK_BYTES))
                return file.read(min(JOURNAL_CHECK_BYTES, tail.byte))
        except OSError:
            return b"\n\n"

    def table(self) -> AttemptTable:
        """The part of the run that was read."""
        with self._lock:
            names = [tail.path.name for tail in self._tails]
            return self._builder.table(names, problem_sentences(self._damages.first, self._damages.more))


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause the garbage collector: it would go over a hundred thousand new objects again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def rows_with_text(opened: RunView, text: str) -> frozenset[int]:
    """The indices of the rows whose reply contains a text, ignoring case; reads the journals once."""
    wanted = text.casefold()
    rows = {row.reply_place: number for number, row in enumerate(opened.rows) if row.reply_place != NO_PLACE}
    texts = reply_texts(UntrustedRun(opened.folder), rows, opened.table.journals)
    return frozenset(rows[place] for place, reply in texts if wanted in reply.casefold())
