"""Questions in SQL over all runs of a folder."""

from __future__ import annotations

import csv
import functools
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

from msgspec import structs

from steelyard.analysis import scoring, summary
from steelyard.errors import DiskFullError, InputError, StoreError
from steelyard.records import Answer as Said
from steelyard.records import Case, Fact, Failure, Finding, Judgment, Reply, Rule, RunInfo, Verdict
from steelyard.reports.csv import cell
from steelyard.store.archive import RunDatabase, open_run_database
from steelyard.store.journal import DISK_FULL_ERRNOS
from steelyard.store.locate import DEFAULT_RUNS_FOLDER
from steelyard.store.parquet import FactScore
from steelyard.text import escaped_json, plain

QUERY_FORMATS = ("csv", "json", "parquet")
"""What an answer can be written as, whatever its size."""
MAX_SHOWN_QUERY_ROWS = 1000
"""Rows of an answer that a person is shown."""


class QueryResult(NamedTuple):
    """What a question came to; rows are read once, as they are wanted."""

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
            raise DiskFullError(f"{path}: no room left ({error.strerror}); make room and ask again") from None
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
        # its directory is at the end of the file and says where things lie, so it cannot be sent as it comes
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "answer.parquet"
            warnings = _write_result(sql, path, kind, Path(root), _folder(copies))
            with path.open("rb") as file:
                shutil.copyfileobj(file, stream)
        return warnings
    with run_query(sql, root, copies=copies) as answer:
        stream.writelines(text.encode() for text in _result_chunks(answer, kind))
    return answer.warnings


def fact_scores(info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact]) -> list[FactScore]:
    """For every fact of a run whether it counts, and for every verdict of the present tests what its rule makes of it."""
    rule = scoring.find_rule(info.rule, info.rules)
    known = {case.id: case for case in cases}
    made: list[FactScore] = []
    simple: dict[tuple[str, str, str, int], _SimpleAttempt | None] = {}
    others: list[Fact] = []
    for place, fact in enumerate(facts):
        case = known.get(fact.case)
        if case is None:
            made.append(_NO_CASE_SCORE)
            continue
        if isinstance(fact, Judgment) or (isinstance(fact, Failure) and fact.stage == "judge"):
            # what judges say, or fail to say, is not what came of the attempt
            made.append(_SUPERSEDED_SCORE)
            continue
        verdict = fact if isinstance(fact, Verdict) and fact.tests == case.tests_digest else None
        made.append(_fact_score(case, verdict, rule) if verdict else _SUPERSEDED_SCORE)
        attempt = (fact.case, fact.model, fact.tier, fact.number)
        before = simple.get(attempt)
        # nearly every attempt is a reply with its verdict; only what happened to the others needs to be thought about
        if isinstance(fact, Reply) and attempt not in simple:
            simple[attempt] = _SimpleAttempt(fact.key, place)
        elif before is not None and before.verdict is None and verdict and verdict.ask == before.key:
            simple[attempt] = _SimpleAttempt(before.key, before.reply, place)
        else:
            if before is not None:
                others.extend(before.outlines(fact, case.tests_digest))
            others.append(_without_texts(fact, place))
            simple[attempt] = None
    tried = summary.attempt_texts(info, cases, others)
    counting = [int(fact.at) for one in tried for fact in (one.reply, one.verdict, one.failure) if fact is not None]
    counting += [place for one in simple.values() if one is not None for place in one[1:] if place is not None]
    shared: dict[FactScore, FactScore] = {}
    for place in counting:
        opinion = FactScore(True, *made[place][1:])
        made[place] = shared.setdefault(opinion, opinion)
    return made


class _SimpleAttempt(NamedTuple):
    """An attempt of which only a reply and its verdict are told."""

    key: str
    reply: int
    verdict: int | None = None

    def outlines(self, other: Fact, tests: str) -> Iterator[Fact]:
        """These two facts, of the same attempt as another."""
        where: dict[str, Any] = {"case": other.case, "model": other.model, "number": other.number, "tier": other.tier}
        yield Reply(**where, key=self.key, at=str(self.reply), answer=_EMPTY_ANSWER, asked="")
        if self.verdict is not None:
            at = str(self.verdict)
            yield Verdict(**where, key="", at=at, ask=self.key, tests=tests, verifier="", found=_EMPTY_FINDING)


_NO_CASE_SCORE, _SUPERSEDED_SCORE = FactScore(), FactScore(counts=False)
_EMPTY_ANSWER, _EMPTY_FINDING = Said(text=""), Finding()


def _fact_score(case: Case, verdict: Verdict, rule: Rule) -> FactScore:
    return FactScore(False, scoring.is_correct(case, verdict.found), scoring.score(case, verdict.found, rule))


def _without_texts(fact: Fact, place: int) -> Fact:
    """All that decides whether a fact counts, without its texts; the moment is its place among the facts instead."""
    at = str(place)
    if isinstance(fact, Verdict):
        return structs.replace(fact, at=at, found=_EMPTY_FINDING)
    if isinstance(fact, Reply):
        return structs.replace(fact, at=at, answer=_EMPTY_ANSWER)
    return structs.replace(fact, at=at)


def _query_result(archive: RunDatabase, sql: str) -> QueryResult:
    found = archive.ask(sql)
    parsed = [place for place, kind in enumerate(found.types) if kind == "JSON"]
    rows = (_with_parsed_json(row, parsed) for row in found.rows) if parsed else found.rows
    return QueryResult(found.columns, rows, archive.warnings)


def _with_parsed_json(row: tuple[Any, ...], places: Sequence[int]) -> tuple[Any, ...]:
    values = list(row)
    for place in places:
        values[place] = None if values[place] is None else json.loads(values[place])
    return tuple(values)


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
        writer.writerow([_formula_safe_cell(_cell(value)) for value in values])
        yield text.getvalue()


def _formula_safe_cell(value: str | int | float | bool | None) -> str | int | float:
    """A cell that a spreadsheet takes for no formula; the lines of a text stay."""
    if not isinstance(value, str):
        return cell(value)
    # only a text with something that cannot be seen has to be gone through
    text = value if value.isprintable() else plain(value)
    return f"'{text}" if _begins_a_formula(value.lstrip()[:1]) else text


@functools.cache
def _begins_a_formula(letter: str) -> bool:
    return letter != "'" and str(cell(letter)).startswith("'")


def _json(answer: QueryResult) -> Iterator[str]:
    """An array of objects, one on each line."""
    before = "["
    for row in answer.rows:
        values = {name: _json_value(value) for name, value in zip(answer.columns, row, strict=True)}
        text = json.dumps(values, ensure_ascii=False)
        yield f"{before}\n{text if text.isprintable() else escaped_json(text)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _text(value: Any) -> str:
    """A value in a table for people."""
    shown = _cell(value)
    if shown is None:
        return "-"
    if isinstance(shown, bool):
        return str(shown).lower()
    return f"{shown:.6g}" if isinstance(shown, float) else str(shown)


def _cell(value: Any) -> str | int | float | bool | None:
    """A value on its own: what is nested is JSON."""
    simple = _json_value(value)
    return json.dumps(simple, ensure_ascii=False) if isinstance(simple, list | dict) else simple


def _json_value(value: Any) -> Any:
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
        return [_json_value(one) for one in value]
    if isinstance(value, dict):
        return {str(_json_value(name)): _json_value(one) for name, one in value.items()}
    return str(value)
