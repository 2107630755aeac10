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

from steelyard import store
from steelyard.analysis import scoring, summary
from steelyard.errors import InputError, NoRoomError, StoreError
from steelyard.records import Answer as Said
from steelyard.records import Appraisal, Case, Fact, Failure, Finding, Reply, Rule, RunInfo, Verdict
from steelyard.reports.csv import cell
from steelyard.reports.figures import escaped_json, plain
from steelyard.store.archive import Archive, runs_as_tables
from steelyard.store.parquet import Opinion

FORMATS = ("csv", "json", "parquet")
"""What an answer can be written as, whatever its size."""
SHOWN = 1000
"""Rows of an answer that a person is shown."""


class Answer(NamedTuple):
    """What a question came to; rows are read once, as they are wanted."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    """Plain values; a column of JSON is parsed."""
    warnings: tuple[str, ...]
    """Which runs had no say, and why."""

    def shown(self) -> tuple[list[list[str]], bool]:
        """The first rows as a person reads them, and whether there are more."""
        rows = [[_text(value) for value in row] for row in islice(self.rows, SHOWN)]
        return rows, next(self.rows, None) is not None


@contextmanager
def ask(sql: str, root: str | Path = store.RUNS, *, copies: str | Path | None = None) -> Iterator[Answer]:
    """The answer to one SELECT over the runs below a folder; `copies` keeps those that run folders do not take."""
    with runs_as_tables(Path(root), opinions, copies=_folder(copies)) as archive:
        yield _answer(archive, sql)


def write(
    sql: str, path: str | Path, root: str | Path = store.RUNS, *, copies: str | Path | None = None
) -> tuple[str, ...]:
    """Write an answer to a file, in the format of its suffix; returns the warnings."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(f"{path}: answers are written as {', '.join(f'.{known}' for known in FORMATS)}")
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # what cannot be written is found out before anything is asked
        fresh.touch()
        # an answer that fails half-way leaves the older file as it is
        warnings = _written(sql, fresh, kind, Path(root), _folder(copies))
        fresh.replace(path)
    except OSError as error:
        if error.errno in store.NO_ROOM:
            raise NoRoomError(f"{path}: no room left ({error.strerror}); make room and ask again") from None
        raise StoreError(f"{path}: {error.strerror or error}") from None
    finally:
        # where nothing could be written there is nothing to take away
        with suppress(OSError):
            fresh.unlink()
    return warnings


def send(
    sql: str, kind: str, stream: BinaryIO, root: str | Path = store.RUNS, *, copies: str | Path | None = None
) -> tuple[str, ...]:
    """Send an answer down a stream in one of the formats; returns the warnings."""
    if kind == "parquet":
        # its directory is at the end of the file and says where things lie, so it cannot be sent as it comes
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "answer.parquet"
            warnings = _written(sql, path, kind, Path(root), _folder(copies))
            with path.open("rb") as file:
                shutil.copyfileobj(file, stream)
        return warnings
    with ask(sql, root, copies=copies) as answer:
        stream.writelines(text.encode() for text in _texts(answer, kind))
    return answer.warnings


def opinions(info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact]) -> list[Opinion]:
    """For every fact of a run whether it counts, and for every verdict of the present tests what its rule makes of it."""
    rule = scoring.rule(info.rule, info.rules)
    known = {case.id: case for case in cases}
    made: list[Opinion] = []
    simple: dict[tuple[str, str, str, int], _Simple | None] = {}
    others: list[Fact] = []
    for place, fact in enumerate(facts):
        case = known.get(fact.case)
        if case is None:
            made.append(_OF_NO_CASE)
            continue
        if isinstance(fact, Appraisal) or (isinstance(fact, Failure) and fact.stage == "judge"):
            # what judges say, or fail to say, is not what came of the attempt
            made.append(_SUPERSEDED)
            continue
        verdict = fact if isinstance(fact, Verdict) and fact.tests == case.tests_digest else None
        made.append(_opinion(case, verdict, rule) if verdict else _SUPERSEDED)
        attempt = (fact.case, fact.model, fact.tier, fact.number)
        before = simple.get(attempt)
        # nearly every attempt is a reply with its verdict; only what happened to the others needs to be thought about
        if isinstance(fact, Reply) and attempt not in simple:
            simple[attempt] = _Simple(fact.key, place)
        elif before is not None and before.verdict is None and verdict and verdict.ask == before.key:
            simple[attempt] = _Simple(before.key, before.reply, place)
        else:
            if before is not None:
                others.extend(before.outlines(fact, case.tests_digest))
            others.append(_outline(fact, place))
            simple[attempt] = None
    tried = summary.tries(info, cases, others)
    counting = [int(fact.at) for one in tried for fact in (one.reply, one.verdict, one.failure) if fact is not None]
    counting += [place for one in simple.values() if one is not None for place in one[1:] if place is not None]
    shared: dict[Opinion, Opinion] = {}
    for place in counting:
        opinion = Opinion(True, *made[place][1:])
        made[place] = shared.setdefault(opinion, opinion)
    return made


class _Simple(NamedTuple):
    """An attempt of which only a reply and its verdict are told."""

    key: str
    reply: int
    verdict: int | None = None

    def outlines(self, other: Fact, tests: str) -> Iterator[Fact]:
        """These two facts, of the same attempt as another."""
        where: dict[str, Any] = {"case": other.case, "model": other.model, "number": other.number, "tier": other.tier}
        yield Reply(**where, key=self.key, at=str(self.reply), answer=_NOTHING_SAID, asked="")
        if self.verdict is not None:
            at = str(self.verdict)
            yield Verdict(**where, key="", at=at, ask=self.key, tests=tests, verifier="", found=_NOTHING_FOUND)


_OF_NO_CASE, _SUPERSEDED = Opinion(), Opinion(counts=False)
_NOTHING_SAID, _NOTHING_FOUND = Said(text=""), Finding()


def _opinion(case: Case, verdict: Verdict, rule: Rule) -> Opinion:
    return Opinion(False, scoring.correct(case, verdict.found), scoring.score(case, verdict.found, rule))


def _outline(fact: Fact, place: int) -> Fact:
    """All that decides whether a fact counts, without its texts; the moment is its place among the facts instead."""
    at = str(place)
    if isinstance(fact, Verdict):
        return structs.replace(fact, at=at, found=_NOTHING_FOUND)
    if isinstance(fact, Reply):
        return structs.replace(fact, at=at, answer=_NOTHING_SAID)
    return structs.replace(fact, at=at)


def _answer(archive: Archive, sql: str) -> Answer:
    found = archive.ask(sql)
    parsed = [place for place, kind in enumerate(found.types) if kind == "JSON"]
    rows = (_parsed(row, parsed) for row in found.rows) if parsed else found.rows
    return Answer(found.columns, rows, archive.warnings)


def _parsed(row: tuple[Any, ...], places: Sequence[int]) -> tuple[Any, ...]:
    values = list(row)
    for place in places:
        values[place] = None if values[place] is None else json.loads(values[place])
    return tuple(values)


def _folder(copies: str | Path | None) -> Path | None:
    return None if copies is None else Path(copies)


def _written(sql: str, path: Path, kind: str, root: Path, copies: Path | None) -> tuple[str, ...]:
    writing = path if kind == "parquet" else None
    with runs_as_tables(root, opinions, writing=writing, copies=copies) as archive:
        if kind == "parquet":
            archive.copy(sql, path)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(_texts(_answer(archive, sql), kind))
        return archive.warnings


def _texts(answer: Answer, kind: str) -> Iterator[str]:
    return _csv(answer) if kind == "csv" else _json(answer)


def _csv(answer: Answer) -> Iterator[str]:
    """A header and a line per row; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_guarded(name) for name in answer.columns])
    yield text.getvalue()
    for values in answer.rows:
        text.seek(0)
        text.truncate()
        writer.writerow([_guarded(_cell(value)) for value in values])
        yield text.getvalue()


def _guarded(value: str | int | float | bool | None) -> str | int | float:
    """A cell that a spreadsheet takes for no formula; the lines of a text stay."""
    if not isinstance(value, str):
        return cell(value)
    # only a text with something that cannot be seen has to be gone through
    text = value if value.isprintable() else plain(value)
    return f"'{text}" if _begins_a_formula(value.lstrip()[:1]) else text


@functools.cache
def _begins_a_formula(letter: str) -> bool:
    return letter != "'" and str(cell(letter)).startswith("'")


def _json(answer: Answer) -> Iterator[str]:
    """An array of objects, one on each line."""
    before = "["
    for row in answer.rows:
        values = {name: _plain(value) for name, value in zip(answer.columns, row, strict=True)}
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
    simple = _plain(value)
    return json.dumps(simple, ensure_ascii=False) if isinstance(simple, list | dict) else simple


def _plain(value: Any) -> Any:
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
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(_plain(name)): _plain(one) for name, one in value.items()}
    return str(value)
