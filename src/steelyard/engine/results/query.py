"""Questions in SQL over all runs of a folder."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from steelyard.engine.results.attempt_tables import SpilledTableBuilder
from steelyard.errors import DiskFullError, InputError, StoreError
from steelyard.records import Case, Fact, RunInfo
from steelyard.reports.tables import cell
from steelyard.store.archive import RunDatabase, open_run_database
from steelyard.store.fact_rows import FactScore
from steelyard.store.files import DISK_FULL_ERRNOS
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER
from steelyard.text import escaped_json, plain

QUERY_FORMATS = ("csv", "json", "parquet")
"""The formats that an answer of any size can be written in."""


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
def run_query(
    sql: str, root: str | Path = DEFAULT_RUNS_FOLDER, *, copies: str | Path | None = None
) -> Iterator[QueryResult]:
    """The answer to one SELECT over the runs below a folder; `copies` keeps those that run folders do not take."""
    with open_run_database(Path(root), fact_scores, copies=_folder(copies)) as archive:
        yield _query_result(archive, sql)


def _query_result(archive: RunDatabase, sql: str) -> QueryResult:
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


def write_query_result(
    sql: str, path: str | Path, root: str | Path = DEFAULT_RUNS_FOLDER, *, copies: str | Path | None = None
) -> tuple[str, ...]:
    """Write an answer to a file, in the format of its suffix; returns the warnings."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in QUERY_FORMATS:
        raise InputError(f"{path}: answers are written as {', '.join(f'.{known}' for known in QUERY_FORMATS)}")
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # what cannot be written is found out before anything is asked
        fresh.touch()
        # an answer that fails half-way leaves the older file as it is
        warnings = _write_result(sql, fresh, kind, Path(root), _folder(copies))
        fresh.replace(path)
    except OSError as error:
        if error.errno in DISK_FULL_ERRNOS:
            raise DiskFullError(
                f"{path}: no space left ({error.strerror}); free some space and run the query again"
            ) from None
        raise StoreError(f"{path}: {error.strerror or error}") from None
    finally:
        # where nothing could be written there is nothing to take away
        with suppress(OSError):
            fresh.unlink()
    return warnings


def stream_query_result(
    sql: str,
    kind: str,
    stream: BinaryIO,
    root: str | Path = DEFAULT_RUNS_FOLDER,
    *,
    copies: str | Path | None = None,
) -> tuple[str, ...]:
    """Send an answer down a stream in one of the formats; returns the warnings."""
    if kind == "parquet":
        # its directory at the end of the file has the offsets, so it cannot be streamed
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "answer.parquet"
            warnings = _write_result(sql, path, kind, Path(root), _folder(copies))
            with path.open("rb") as file:
                shutil.copyfileobj(file, stream)
        return warnings
    with run_query(sql, root, copies=copies) as answer:
        stream.writelines(text.encode() for text in _result_chunks(answer, kind))
    return answer.warnings


def fact_scores(info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact]) -> Sequence[FactScore]:
    """For every fact of a run whether it counts, and for every verdict of the present tests its score by the run's rule."""
    known = {case.id for case in cases}
    builder = SpilledTableBuilder(info, cases)
    shared: dict[FactScore, FactScore] = {}
    scores = []
    for place, fact in enumerate(facts):
        judged = builder.add(place, fact)
        correct, score = judged or (None, None)
        found = FactScore(False if judged is not None or fact.case in known else None, correct, score)
        scores.append(shared.setdefault(found, found))
    for place in builder.counting_places():
        found = scores[place]._replace(counts=True)
        scores[place] = shared.setdefault(found, found)
    return scores


def _folder(copies: str | Path | None) -> Path | None:
    return None if copies is None else Path(copies)


def _write_result(sql: str, path: Path, kind: str, root: Path, copies: Path | None) -> tuple[str, ...]:
    writing = path if kind == "parquet" else None
    with open_run_database(root, fact_scores, writing=writing, copies=copies) as archive:
        if kind == "parquet":
            archive.copy(sql, path)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(_result_chunks(_query_result(archive, sql), kind))
        return archive.warnings


def _result_chunks(answer: QueryResult, kind: str) -> Iterator[str]:
    return _csv(answer) if kind == "csv" else _json(answer)


def _csv(answer: QueryResult) -> Iterator[str]:
    """A header and a line per row; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_formula_safe_cell(name) for name in answer.columns])
    yield text.getvalue()
    for values in answer.rows:
        text.seek(0)
        text.truncate()
        writer.writerow([_formula_safe_cell(plain_cell(value)) for value in values])
        yield text.getvalue()


def _formula_safe_cell(value: str | int | float | bool | None) -> str | int | float:
    """A cell that a spreadsheet takes for no formula; the lines of a text stay."""
    if not isinstance(value, str):
        return cell(value)
    # only a text with invisible characters has to be scanned
    text = value if value.isprintable() else plain(value)
    begin = value.lstrip()[:1]
    return f"'{text}" if begin != "'" and str(cell(begin)).startswith("'") else text


def _json(answer: QueryResult) -> Iterator[str]:
    """An array of objects, one on each line."""
    before = "["
    for row in answer.rows:
        values = {name: json_value(value) for name, value in zip(answer.columns, row, strict=True)}
        text = json.dumps(values, ensure_ascii=False)
        yield f"{before}\n{text if text.isprintable() else escaped_json(text)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


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
