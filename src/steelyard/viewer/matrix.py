"""Which cases a reader wants to see of a run's matrix, in which order, and which of them fit on a page."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from steelyard.records import Case, Record
from steelyard.reports.page import CellState, cell_state
from steelyard.viewer.run_view import AttemptRow

MATRIX_SORTS = {
    "order": "as in the eval set",
    "hardest": "hardest first",
    "easiest": "easiest first",
    "different": "most different between models",
    "cost": "most expensive first",
    "latency": "slowest first",
    "name": "by name",
}
"""The orders there are, and what a reader calls them."""
OUTCOME_FILTERS = {
    "correct": "some correct",
    "wrong": "some wrong",
    "missing": "some missing",
    "mixed": "correct and wrong",
}
"""What a case can have attempts of."""
PAGE_SIZES = (25, 50, 100, 200)
"""Cases on a page."""
SHARE_TOLERANCE = 1e-9
"""Shares that differ by no more than this are the same."""


class MatrixCell(NamedTuple):
    """The attempts of one model at one case."""

    attempts: int
    """Those that were judged."""
    correct: int
    missing: int
    cost_usd: float | None
    """What they cost; None if a price is unknown."""
    latency: float | None
    """Seconds until a reply, on average."""
    first: int
    """Where the first of the attempts stands among the rows."""

    @property
    def places(self) -> range:
        """Where the attempts stand among the rows."""
        return range(self.first, self.first + self.attempts + self.missing)

    @property
    def share(self) -> float | None:
        """The share of correct attempts; None when none was judged."""
        return self.correct / self.attempts if self.attempts else None

    @property
    def state(self) -> CellState:
        return cell_state(self.attempts, self.correct)


class MatrixQuery(Record, frozen=True, kw_only=True):
    """The reader's choices for the matrix, as in an address."""

    text: str = ""
    """A text to find in ids, names, prompts and reasons, ignoring case."""
    outcome: str = ""
    label: str = ""
    """The kind of failure, or the class of a response."""
    tag: str = ""
    suite: str = ""
    columns: tuple[int, ...] = ()
    """The selected columns; all if empty."""
    different: bool = False
    """Only cases at which the models do not do equally well."""
    sort: str = "order"

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves anything out; `run.html.j2` asks."""
        return bool(self.text or self.outcome or self.label or self.tag or self.suite or self.different)


class PageSlice(NamedTuple):
    """Some of the cases that were found."""

    cases: tuple[int, ...]
    """Their places among the cases of the run."""
    number: int
    """From 1."""
    pages: int
    total: int
    """How many were found."""
    first: int
    """The place of the first on this page among those found, from 1; 0 when nothing was found."""


class CaseMatrix:
    """The matrix of a run, added up once and asked many times."""

    def __init__(self, cases: Sequence[Case], column_count: int, rows: Sequence[AttemptRow]) -> None:
        self.cases = cases
        self.column_count = column_count
        self.rows = rows
        self.cells = _cells(len(cases), column_count, rows)
        """By case, then by column."""
        self.labels = Counter(row.label for row in rows if row.label)
        self.tags = Counter(tag for case in cases for tag in dict.fromkeys(case.tags))
        self.suites = Counter(case.suite for case in cases if case.suite)

    def found(self, query: MatrixQuery, reply_matches: Collection[int] = ()) -> list[int]:
        """The places of the cases that are asked for, in the order that is asked for.

        `reply_matches` are the places of the rows whose replies contain the text.
        """
        columns = query.columns or tuple(range(self.column_count))
        wanted = [place for place in range(len(self.cases)) if self._is_wanted(place, query, columns, reply_matches)]
        if query.sort == "order":
            return wanted
        # sorting is stable: what is equal stays as the eval set has it
        return sorted(wanted, key=lambda place: self._rank(place, query.sort, columns))

    def is_shown(self, row: AttemptRow, query: MatrixQuery) -> bool:
        """Whether an attempt is one of those that are asked for."""
        if query.label and row.label != query.label:
            return False
        return query.outcome in ("", "mixed") or row.outcome == query.outcome

    def _is_wanted(
        self, place: int, query: MatrixQuery, columns: Sequence[int], reply_matches: Collection[int]
    ) -> bool:
        case, cells = self.cases[place], self.cells[place]
        shown = [cells[column] for column in columns]
        if query.tag and query.tag not in case.tags:
            return False
        if query.suite and query.suite != case.suite:
            return False
        if query.different and not share_gap(shown) > SHARE_TOLERANCE:
            return False
        if query.outcome == "mixed" and not _is_mixed(shown):
            return False
        if not (query.outcome or query.label or query.text):
            return True
        asked = [number for cell in shown for number in cell.places if self.is_shown(self.rows[number], query)]
        if not asked and (query.outcome or query.label):
            return False
        if not query.text:
            return True
        text = query.text.casefold()
        if any(text in each.casefold() for each in _words(case)):
            return True
        return any(number in reply_matches or text in self.rows[number].reason.casefold() for number in asked)

    def _rank(self, place: int, sort: str, columns: Sequence[int]) -> tuple[float | str | int, ...]:
        cells = [self.cells[place][column] for column in columns]
        if sort == "name":
            return natural_order_key(self.cases[place].id)
        return SORT_KEYS[sort](cells)


def page_slice(found: Sequence[int], number: int, size: int) -> PageSlice:
    """One page of what was found; a number beyond the last page gives the last one."""
    pages = max(1, math.ceil(len(found) / size))
    number = min(max(number, 1), pages)
    start = (number - 1) * size
    cases = tuple(found[start : start + size])
    return PageSlice(cases, number, pages, len(found), start + 1 if cases else 0)


def share_gap(cells: Sequence[MatrixCell]) -> float:
    """How far the best of some models is from the worst at a case; 0 if fewer than two were judged."""
    shares = _shares(cells)
    return max(shares) - min(shares) if len(shares) > 1 else 0.0


def natural_order_key(name: str) -> tuple[str | int, ...]:
    """A key by which `case-9` comes before `case-10`; text and numbers take turns, so that they never meet.

    >>> sorted(["b10", "B9", "a"], key=natural_order_key)
    ['a', 'B9', 'b10']
    """
    pieces = re.split(r"([0-9]{1,18})", name.casefold())
    return tuple(int(piece) if place % 2 else piece for place, piece in enumerate(pieces))


def _cells(cases: int, column_count: int, rows: Sequence[AttemptRow]) -> tuple[tuple[MatrixCell, ...], ...]:
    """What the rows add up to; those of a cell stand together."""
    nothing = MatrixCell(0, 0, 0, None, None, 0)
    found = [[nothing] * column_count for _ in range(cases)]
    start = 0
    for (case, column), group in groupby(rows, key=attrgetter("case", "column")):
        own = list(group)
        found[case][column] = _cell(own, start)
        start += len(own)
    return tuple(map(tuple, found))


def _cell(rows: Sequence[AttemptRow], first: int) -> MatrixCell:
    outcomes = [row.outcome for row in rows]
    missing = outcomes.count("missing")
    costs = [row.cost_usd for row in rows if row.outcome != "missing"]
    waits = [row.latency for row in rows if row.latency is not None]
    return MatrixCell(
        attempts=len(rows) - missing,
        correct=outcomes.count("correct"),
        missing=missing,
        cost_usd=None if None in costs or not costs else math.fsum(cost for cost in costs if cost is not None),
        latency=math.fsum(waits) / len(waits) if waits else None,
        first=first,
    )


def _is_mixed(cells: Sequence[MatrixCell]) -> bool:
    return any(cell.state == "part" for cell in cells)


def _words(case: Case) -> Iterator[str]:
    yield case.id
    yield case.name
    for message in case.messages:
        yield message.text


def _shares(cells: Sequence[MatrixCell]) -> list[float]:
    return [cell.share for cell in cells if cell.share is not None]


def _hardest(cells: Sequence[MatrixCell]) -> tuple[float, ...]:
    """By the model that does best: what a weak one cannot do says little about a case. Cases without a verdict come last."""
    shares = _shares(cells)
    return (max(shares), math.fsum(shares) / len(shares)) if shares else (math.inf, math.inf)


def _easiest(cells: Sequence[MatrixCell]) -> tuple[float, ...]:
    shares = _shares(cells)
    return (-min(shares), -math.fsum(shares) / len(shares)) if shares else (math.inf, math.inf)


def _dearest(cells: Sequence[MatrixCell]) -> tuple[float, ...]:
    costs = [cell.cost_usd for cell in cells if cell.cost_usd is not None]
    return (-math.fsum(costs),) if costs else (math.inf,)


def _slowest(cells: Sequence[MatrixCell]) -> tuple[float, ...]:
    waits = [cell.latency for cell in cells if cell.latency is not None]
    return (-max(waits),) if waits else (math.inf,)


SORT_KEYS: dict[str, Callable[[Sequence[MatrixCell]], tuple[float, ...]]] = {
    "hardest": _hardest,
    "easiest": _easiest,
    "different": lambda cells: (-share_gap(cells),),
    "cost": _dearest,
    "latency": _slowest,
}
