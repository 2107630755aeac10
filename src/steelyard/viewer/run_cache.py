"""The runs that pages and programs ask about, with what was computed from them cached as long as they do not change."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from steelyard.analysis.headlines import ModelHeadline
from steelyard.analysis.summary import Summary
from steelyard.errors import SteelyardError, did_you_mean
from steelyard.reports.figures import model_label
from steelyard.viewer.matrix import CaseMatrix
from steelyard.viewer.query_params import ViewerRequestError
from steelyard.viewer.run_list import ListedRun, RunCatalog, RunListing
from steelyard.viewer.run_view import RunView, garbage_collection_paused, rows_with_text

Value = TypeVar("Value")


class SingleFlightCache(Generic[Value]):
    """The most recently used values by key; the oldest goes when there are too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, computed if it is not cached; other threads that ask for it wait for that."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            try:
                value = make()
                with self._lock:
                    self._values[key] = value
                    while len(self._values) > self._most:
                        self._values.popitem(last=False)
            finally:
                with self._lock:
                    self._making.pop(key, None)
            return value


ComputedKind = Literal["comparison", "tier analysis", "tier charts"]
COMPUTED_CACHE_SIZES: Mapping[ComputedKind, int] = {"comparison": 4, "tier analysis": 2, "tier charts": 2}
"""How many results of each kind are kept."""
SUMMARY_PAUSE_FACTOR = 10
"""How many times as long as it took to add up a growing run it is not added up again."""


class EarlierRun(NamedTuple):
    """The same eval set under the same model, at some time."""

    run: ListedRun
    headline: ModelHeadline


class RunsOverview(NamedTuple):
    """What all runs of a list have in common."""

    histories: Mapping[tuple[tuple[str, ...], str], Sequence[EarlierRun]]
    """All finished runs by eval sets and model, oldest first: an unfinished one covers only some cases, so comparing it would be misleading."""
    earlier: Mapping[tuple[str, str], EarlierRun]
    """By run and model the run before it in its history, if there is one."""
    models: tuple[str, ...]
    eval_sets: tuple[str, ...]
    states: tuple[str, ...]


class RunViewSide(NamedTuple):
    """One side of a comparison: a run, or one model of it."""

    opened: RunView
    model: str
    """As `RUN@MODEL` names it; empty for all models."""

    @property
    def name(self) -> str:
        return f"{self.opened.name}@{self.model}" if self.model else self.opened.name


class _TimedSummary(NamedTuple):
    """A summary of a run that grows, and until when it will do."""

    summary: Summary
    until: float


class RunCache:
    """All that requests share; safe to be used by several threads."""

    def __init__(self, library: RunCatalog, clock: Callable[[], float] = time.monotonic) -> None:
        self._library = library
        self._clock = clock
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Event] = {}
        self._overviews: SingleFlightCache[RunsOverview] = SingleFlightCache(1)
        self._summaries: dict[str, _TimedSummary] = {}
        self._tables: SingleFlightCache[CaseMatrix] = SingleFlightCache(4)
        self._searches: SingleFlightCache[frozenset[int]] = SingleFlightCache(32)
        self._computed = {kind: SingleFlightCache[Any](most) for kind, most in COMPUTED_CACHE_SIZES.items()}

    def listing(self) -> RunListing:
        """All runs, the newest first."""
        return self._library.listed()

    def overview(self, listing: RunListing) -> RunsOverview:
        """What all runs of a list have in common."""

        def work_out() -> RunsOverview:
            with garbage_collection_paused():
                return runs_overview(listing.runs)

        return self._overviews.get(listing.version, work_out)

    def run(self, name: str) -> RunView:
        """The run of this name as it is now."""
        try:
            return self._library.open(name)
        except SteelyardError as error:
            if any(listed.name == name for listed in self.listing().runs):
                # the message must not reveal where the folder is
                raise ViewerRequestError(409, str(error).replace(f"{self._library.root}/", "")) from None
            raise ViewerRequestError(404, f'no run "{name[:100]}" here') from None

    def is_read(self, name: str, patience: float) -> bool:
        """Whether a run has been read, or is so within these seconds; it is read on if it is not."""
        if self._library.is_open(name):
            return True
        with self._lock:
            done = self._opening.get(name)
            if done is None:
                done = self._opening[name] = threading.Event()
                # a daemon thread does not delay the end of the viewer
                threading.Thread(target=self._read, args=(name, done), daemon=True).start()
        if not done.wait(patience):
            return False
        with self._lock:
            self._opening.pop(name, None)
        return True

    def _read(self, name: str, done: threading.Event) -> None:
        # the next request that opens the run gets the error
        with suppress(Exception):
            self._library.open(name)
        done.set()

    def summary(self, opened: RunView) -> Summary:
        """What a run adds up to, maybe without its cases; of a growing one what it did a little while ago, where adding up takes its time."""
        with self._lock:
            taken = self._summaries.get(opened.name) if opened.is_growing else None
            if taken is not None and self._clock() < taken.until:
                return taken.summary
        began = self._clock()
        summary = opened.summary_of_models
        ended = self._clock()
        with self._lock:
            self._summaries.pop(opened.name, None)
            if opened.is_growing:
                self._summaries[opened.name] = _TimedSummary(summary, ended + SUMMARY_PAUSE_FACTOR * (ended - began))
        return summary

    def table(self, opened: RunView) -> CaseMatrix:
        """The matrix of a run."""

        def add_up() -> CaseMatrix:
            with garbage_collection_paused():
                return CaseMatrix(opened.cases, len(opened.columns), opened.rows)

        return self._tables.get((opened.name, opened.version), add_up)

    def reply_matches(self, opened: RunView, text: str) -> frozenset[int]:
        """The places of the rows whose replies contain a text."""
        key = opened.name, opened.version, text.casefold()
        return self._searches.get(key, lambda: rows_with_text(opened, text))

    def side(self, name: str) -> RunViewSide:
        """A side as users name it: `RUN`, or `RUN@MODEL`; a path or a file is not a side."""
        names = {listed.name for listed in self.listing().runs}
        parts = name.split("@")
        # a folder's name may hold the sign that parts it from a model
        for count in range(len(parts), 0, -1):
            run, model = "@".join(parts[:count]), "@".join(parts[count:])
            if run in names:
                opened = self.run(run)
                known = [model_label(column.model, column.tier) for column in opened.columns]
                if model and model not in known:
                    raise ViewerRequestError(
                        404, f'{run}: no model "{model[:100]}" ({did_you_mean(model[:80], known)})'
                    )
                return RunViewSide(opened, model)
        raise ViewerRequestError(404, f'no run "{name[:100]}" here')

    def computed(self, kind: ComputedKind, key: Hashable, make: Callable[[], Value]) -> Value:
        """What pages of some kind computed from runs; each kind has a small cache of its own."""
        value: Value = self._computed[kind].get(key, make)
        return value


def displayed_path(folder: Path) -> str:
    """A folder as somebody would type it who stands where the viewer was started."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


def runs_overview(runs: Sequence[ListedRun]) -> RunsOverview:
    """What all runs of a list have in common; `runs` are newest first."""
    histories: dict[tuple[tuple[str, ...], str], list[EarlierRun]] = {}
    earlier: dict[tuple[str, str], EarlierRun] = {}
    models: set[str] = set()
    for run in reversed(runs):
        is_comparable = run.state == "done" and run.eval_sets
        for headline in run.models:
            name = model_label(headline.model, headline.tier)
            models.add(name)
            if is_comparable and headline.quality is not None:
                history = histories.setdefault((run.eval_sets, name), [])
                if history and history[-1].run is not run:
                    earlier.setdefault((run.name, name), history[-1])
                history.append(EarlierRun(run, headline))
    eval_sets = {name for names in {run.eval_sets for run in runs} for name in names}
    return RunsOverview(
        histories, earlier, tuple(sorted(models)), tuple(sorted(eval_sets)), tuple(sorted({run.state for run in runs}))
    )
