"""The answer to a question in SQL over all runs of a folder, as rows; without what would write it to files, or write a copy."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from steelyard.store.archive import ARCHIVE_MEMORY_LIMITS, QueryMemoryError, RunDatabase, open_run_database
from steelyard.store.fact_rows import FactScorer

Answered = TypeVar("Answered")
MAX_SHOWN_QUERY_ROWS = 1000
"""Rows of an answer that a person is shown."""


class QueryResult(NamedTuple):
    """The result of a query; its rows are read once, on demand."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    """Plain values; a column of JSON is parsed."""
    warnings: tuple[str, ...]
    """Which runs had no say, and why."""

    def shown(self) -> tuple[list[list[str]], bool]:
        """The first rows as a person reads them, and whether there are more."""
        rows = [[_text(value) for value in row] for row in islice(self.rows, MAX_SHOWN_QUERY_ROWS)]
        return rows, next(self.rows, None) is not None


@contextmanager
def answered(sql: str, root: Path, scorer: FactScorer, *, copies: Path | None = None) -> Iterator[QueryResult]:
    """The answer to one SELECT over the runs below a folder; `scorer` is called for runs whose copy is not of their present state."""
    with ExitStack() as closed_later:

        def ask(memory: str) -> QueryResult:
            opened = open_run_database(root, scorer, question=sql, copies=copies, memory=memory)
            with ExitStack() as stack:
                found = query_result(stack.enter_context(opened), sql)
                # the rows are read later
                closed_later.enter_context(stack.pop_all())
                return found

        yield with_enough_memory(ask)


def query_result(archive: RunDatabase, sql: str) -> QueryResult:
    """The answer of a database of runs."""
    found = archive.ask(sql)
    parsed = [place for place, kind in enumerate(found.types) if kind == "JSON"]
    rows = (_with_parsed_json(row, parsed) for row in found.rows) if parsed else found.rows
    return QueryResult(found.columns, rows, archive.warnings)


def _with_parsed_json(row: tuple[Any, ...], places: Sequence[int]) -> tuple[Any, ...]:
    values = list(row)
    for place in places:
        values[place] = None if values[place] is None else json.loads(values[place])
    return tuple(values)


def with_enough_memory(ask: Callable[[str], Answered], limits: Sequence[str] = ()) -> Answered:
    """What is asked in little memory, and again in more where that does not suffice."""
    *little, most = limits or ARCHIVE_MEMORY_LIMITS
    for memory in little:
        with suppress(QueryMemoryError):
            return ask(memory)
    return ask(most)


def _text(value: Any) -> str:
    """A value in a table for people."""
    shown = plain_cell(value)
    if shown is None:
        return "-"
    if isinstance(shown, bool):
        return str(shown).lower()
    return f"{shown:.6g}" if isinstance(shown, float) else str(shown)


def plain_cell(value: Any) -> str | int | float | bool | None:
    """A value on its own: what is nested is JSON."""
    simple = json_value(value)
    return json.dumps(simple, ensure_ascii=False) if isinstance(simple, list | dict) else simple


def json_value(value: Any) -> Any:
    """A value as JSON knows it; what is no number is null."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    if isinstance(value, dict):
        return {str(json_value(name)): json_value(one) for name, one in value.items()}
    return str(value)
