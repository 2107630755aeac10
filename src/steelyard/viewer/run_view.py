"""One run as pages want it: a row for every attempt in memory, its texts where they lie on disk."""

from __future__ import annotations

import gc
import hashlib
import threading
from collections import OrderedDict
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from steelyard import store
from steelyard.analysis import scoring
from steelyard.analysis.attempts import (
    NOWHERE,
    SHAPE,
    TOLD,
    Outline,
    Outlining,
    Row,
    Seat,
    sentences,
    unpacked,
    unpacked_summary,
)
from steelyard.analysis.summary import Headline, Summary, Tried
from steelyard.errors import Damages, InputError, StoreError
from steelyard.records import Appraisal, Failure, Reply, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.records import Case, RunInfo
    from steelyard.store import Glimpse, Told
    from steelyard.tiers.rubrics import Heard

__all__ = ["Opened", "Row", "Seat"]

MOST_ATTEMPTS = 1_000_000
"""More do not fit into the memory that a viewer should take."""
SUMMARIES = 8
"""Summaries by other rules and sizes of k that are kept."""
BEFORE = 256
"""Bytes before the end of what was read that tell whether a journal is still the same."""


class Moment(NamedTuple):
    """What is known of a run at one moment."""

    glimpse: Glimpse
    """As it looked before anything was read: what is written meanwhile belongs to a later moment."""
    info: RunInfo
    cases: tuple[Case, ...]
    outline: Outline
    summary: bytes | None = None
    """The summary by the run's own k and rule, packed, where somebody has written it down."""
    reading: Reading | None = None
    """Where reading can go on; None where the run is not growing."""


class Opened:
    """A run at one moment; it does not change, and `refreshed` gives a later one."""

    def __init__(self, folder: Path, moment: Moment | None = None) -> None:
        """Raises an InputError or a StoreError where the folder holds no run that can be read."""
        self._moment = moment = moment or _moment(folder)
        self._outline = moment.outline
        self.name: str = folder.name
        self.folder: Path = folder
        self.info: RunInfo = moment.info
        self.cases: tuple[Case, ...] = moment.cases
        self.seats: tuple[Seat, ...] = moment.outline.seats
        """The columns of the matrix, in the order of a summary's models."""
        self.rows: tuple[Row, ...] = moment.outline.rows
        """One per attempt: cases in order, then seats, then numbers."""
        self.is_growing: bool = moment.glimpse.is_locked
        """Whether somebody is writing it."""
        self.version: str = version(moment.glimpse)
        """Another one as soon as the run has grown or changed."""
        links = (f"{name}: a link, or else no plain file, and so not read" for name in moment.glimpse.links)
        self.problems: tuple[str, ...] = (*moment.outline.problems, *links)
        """What could not be read, in sentences."""
        self._summaries: OrderedDict[tuple[tuple[int, ...], str], Summary] = OrderedDict()

    def summary(self, k: Sequence[int] | None = None, rule: str | None = None) -> Summary:
        """What the run adds up to, by its own k and rule or by others; raises an InputError for an unknown rule."""
        asked = tuple(sorted(set(self.info.k if k is None else k))), rule or self.info.rule
        known = self._summaries.get(asked)
        if known is None:
            is_own = asked == (tuple(sorted(set(self.info.k))), self.info.rule)
            with uncollected():
                known = self._own_summary() if is_own else None
                known = known or self._outline.summary(self.info, self.cases, k=asked[0], rule=asked[1])
            self._summaries[asked] = known
            while len(self._summaries) > SUMMARIES:
                self._summaries.popitem(last=False)
        return known

    def _own_summary(self) -> Summary | None:
        try:
            return unpacked_summary(self._moment.summary) if self._moment.summary is not None else None
        except ValueError:
            return None

    @cached_property
    def headlines(self) -> tuple[Headline, ...]:
        """What a list of runs says of each model; much less work than a summary."""
        with uncollected():
            return self._outline.headlines(self.info, self.cases)

    def attempt(self, case_id: str, model: str, tier: str, number: int) -> Tried | None:
        """One attempt with all its texts; None where the run has no such attempt.

        Raises a StoreError where the journal is not what it was.
        """
        order, seat = self._orders.get(case_id), self._places.get(Seat(model, tier))
        row = None if order is None or seat is None else self._outline.row(order, seat, number)
        if order is None or row is None:
            return None
        where = case_id, model, tier, number
        case, reply, verdict = self.cases[order], self._fact(row.reply, where), self._fact(row.verdict, where)
        found = verdict.found if isinstance(verdict, Verdict) else None
        rule = scoring.rule(self.info.rule, self.info.rules)
        return Tried(
            case=case,
            model=model,
            tier=tier,
            number=number,
            reply=reply if isinstance(reply, Reply) else None,
            verdict=verdict if isinstance(verdict, Verdict) else None,
            failure=failure if isinstance(failure := self._fact(row.failure, where), Failure) else None,
            correct=scoring.correct(case, found) if found else None,
            score=scoring.score(case, found, rule) if found else None,
        )

    @cached_property
    def _orders(self) -> dict[str, int]:
        return {case.id: order for order, case in enumerate(self.cases)}

    @cached_property
    def _places(self) -> dict[Seat, int]:
        return {seat: place for place, seat in enumerate(self.seats)}

    def _fact(self, place: int, where: tuple[str, str, str, int]) -> Told | None:
        if place == NOWHERE:
            return None
        fact = store.Fenced(self.folder).at(place, self._outline.journals)
        if (fact.case, fact.model, fact.tier, fact.number) != where:
            raise StoreError(
                f"{self.folder}: another attempt lies where this one was; it has changed, so read it again"
            )
        return fact

    def heard(self, tried: Tried) -> list[Heard]:
        """What judges said of an attempt."""
        from steelyard.engine.results.tier_runs import said_by

        if tried.reply is None or self.info.panel is None:
            return []
        key, stored = tried.reply.key, store.Fenced(self.folder)
        facts = (stored.at(place, self._outline.journals) for place in self._outline.appraised(key))
        return said_by(self.info.panel, [fact for fact in facts if isinstance(fact, Appraisal)]).get(key, [])

    @property
    def goes_on(self) -> bool:
        """Whether `refreshed` has only to read what is new, unless more than that has happened to the run."""
        return self._moment.reading is not None

    def refreshed(self) -> Opened:
        """The run as it is now: this one where nothing has changed, else one for which only what is new was read."""
        glimpse = _glimpse(self.folder)
        if glimpse == self._moment.glimpse:
            return self
        return Opened(self.folder, _later(self.folder, self._moment, glimpse))


def version(glimpse: Glimpse) -> str:
    """What a run that looks like this is known by."""
    return hashlib.blake2b(repr(glimpse).encode(), digest_size=8).hexdigest()


def _glimpse(folder: Path) -> Glimpse:
    try:
        return store.glimpse(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}") from None


def _moment(folder: Path) -> Moment:
    """The run as it is now, from its index, or where that is not of its present state, from its journals."""
    glimpse, stored = _glimpse(folder), store.Fenced(folder)
    info, cases = stored.info, stored.cases
    with uncollected():
        try:
            content = stored.content(folder / store.INDEX)
            outline, summary = unpacked(content, store.sources(stored, SHAPE), len(cases))
            if outline.journals != tuple(file.name for file in glimpse.journals):
                raise ValueError("of other journals")
            return Moment(glimpse, info, cases, outline, summary)
        except (OSError, ValueError):
            # not there, or of another state, or no index at all
            reading = Reading(stored, info, cases, glimpse)
            reading.go_on()
            # whoever grows no more needs not to be read on, and that takes more memory than all rows
            return Moment(glimpse, info, cases, reading.outline(), None, reading if glimpse.is_locked else None)


def _later(folder: Path, before: Moment, glimpse: Glimpse) -> Moment:
    """A run that was read before, as it is now."""
    info, reading = store.Fenced(folder).info, before.reading
    if reading is None or not reading.goes_on(info, glimpse):
        return _moment(folder)
    with uncollected():
        reading.go_on()
        outline = reading.outline()
    return Moment(glimpse, info, before.cases, outline, None, reading if glimpse.is_locked else None)


class Reading:
    """The journals of a run, read as far as they go, and later on from there."""

    def __init__(self, stored: store.Fenced, info: RunInfo, cases: tuple[Case, ...], glimpse: Glimpse) -> None:
        self.cases = cases
        self._info, self._glimpse = info, glimpse
        self._stored = stored
        self._outlining, self._damages = Outlining(info, cases), Damages(TOLD)
        self._tails = [store.Tail(stored, stored.folder / file.name, self._damages.add) for file in glimpse.journals]
        self._before = b""
        # two requests may want the same run refreshed
        self._lock = threading.Lock()

    @property
    def byte(self) -> int:
        """How many bytes were read."""
        return sum(tail.byte for tail in self._tails)

    def go_on(self, most: int | None = None) -> bool:
        """Read what is there, or about so many bytes of it; whether that was all."""
        with self._lock:
            for number, tail in enumerate(self._tails):
                for byte, fact in tail.facts():
                    self._outlining.add(store.place(number, byte), fact)
                    if len(self._outlining) > MOST_ATTEMPTS:
                        raise InputError(
                            f"{self._stored.folder}: more than {MOST_ATTEMPTS:,} attempts, too many to show"
                        )
                    if most is not None and self.byte >= most:
                        return False
            self._before = self._end()
            return True

    def goes_on(self, info: RunInfo, glimpse: Glimpse) -> bool:
        """Whether all that happened to the run since is that its last journal has grown."""
        # these say how much is to be done and whether it is, and nothing about what there is
        same = msgspec.structs.replace(self._info, ended_at=info.ended_at, samples=info.samples, more=info.more)
        if info != same or glimpse.file("cases.jsonl") != self._glimpse.file("cases.jsonl"):
            return False
        *others, last = glimpse.journals or (None,)
        *known, grown = self._glimpse.journals or (None,)
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
                file.seek(max(0, tail.byte - BEFORE))
                return file.read(min(BEFORE, tail.byte))
        except OSError:
            return b"\n\n"

    def outline(self) -> Outline:
        """The run as far as it was read."""
        with self._lock:
            names = [tail.path.name for tail in self._tails]
            return self._outlining.outline(names, sentences(self._damages.first, self._damages.more))


@contextmanager
def uncollected() -> Iterator[None]:
    """A time in which nobody looks for what refers to itself: with a hundred thousand new things at hand, that takes longest."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
