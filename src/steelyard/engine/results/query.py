"""Questions in SQL over all runs of a folder."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import shutil
import struct
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import BinaryIO

from steelyard.engine.results.answers import (
    QueryResult,
    answered,
    json_value,
    plain_cell,
    query_result,
    with_enough_memory,
)
from steelyard.engine.results.attempt_tables import SpilledTableBuilder
from steelyard.errors import DiskFullError, InputError, StoreError
from steelyard.records import Case, Fact, RunInfo
from steelyard.reports.tables import cell
from steelyard.store.archive import ALL_ATTEMPTS, ATTEMPTS_MEMORY_LIMITS, open_run_database
from steelyard.store.fact_rows import FactScore
from steelyard.store.files import DISK_FULL_ERRNOS
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER
from steelyard.text import escaped_json, plain

QUERY_FORMATS = ("csv", "json", "parquet")
"""The formats that an answer of any size can be written in."""


def run_query(
    sql: str, root: str | Path = DEFAULT_RUNS_FOLDER, *, copies: str | Path | None = None
) -> AbstractContextManager[QueryResult]:
    """The answer to one SELECT over the runs below a folder; `copies` keeps those that run folders do not take."""
    return answered(sql, Path(root), fact_scores, copies=_folder(copies))


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


def fact_scores(info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact]) -> Iterable[FactScore]:
    """For every fact of a run whether it counts, and for every verdict of the present tests its score by the run's rule."""
    known = {case.id for case in cases}
    builder = SpilledTableBuilder(info, cases)
    size = 0
    with tempfile.TemporaryFile() as file:
        for size, fact in enumerate(facts, 1):
            judged = builder.add(size - 1, fact)
            correct, score = judged or (None, None)
            has_case = judged is not None or fact.case in known
            file.write(_OPINION.pack(has_case, correct is not None, bool(correct), score is not None, score or 0.0))
        counting = bytearray(size // 8 + 1)
        for place in builder.counting_places():
            counting[place >> 3] |= 1 << (place & 7)
        file.flush()
        return StoredScores(file.fileno(), counting)


_OPINION = struct.Struct("<????d")
"""Whether the run has the case, whether the fact is a verdict that is right or wrong, right, whether it has a score, and the score."""
_OPINIONS_PER_READ = 4096


class StoredScores(Iterable[FactScore]):
    """The opinions of a file, and in memory one bit for each that says whether its fact counts."""

    def __init__(self, file: int, counting: bytearray) -> None:
        """`file` is an open file, which is duplicated."""
        self._file, self._counting = os.dup(file), counting
        weakref.finalize(self, os.close, self._file)

    def __iter__(self) -> Iterator[FactScore]:
        place, counting = 0, self._counting
        while piece := os.pread(self._file, _OPINIONS_PER_READ * _OPINION.size, place * _OPINION.size):
            for has_case, is_judged, is_correct, has_score, score in _OPINION.iter_unpack(piece):
                counts = bool(counting[place >> 3] >> (place & 7) & 1) if has_case else None
                yield FactScore(counts, is_correct if is_judged else None, score if has_score else None)
                place += 1


def _folder(copies: str | Path | None) -> Path | None:
    return None if copies is None else Path(copies)


def _write_result(sql: str, path: Path, kind: str, root: Path, copies: Path | None) -> tuple[str, ...]:
    limits = ATTEMPTS_MEMORY_LIMITS if sql == ALL_ATTEMPTS else ()
    return with_enough_memory(lambda memory: _write_result_within(memory, sql, path, kind, root, copies), limits)


def _write_result_within(
    memory: str, sql: str, path: Path, kind: str, root: Path, copies: Path | None
) -> tuple[str, ...]:
    writing = path if kind == "parquet" else None
    with open_run_database(root, fact_scores, question=sql, writing=writing, copies=copies, memory=memory) as archive:
        if sql == ALL_ATTEMPTS and kind == "parquet":
            with tempfile.TemporaryDirectory(dir=archive.scratch) as scratch:
                archive.copy_attempts(path, Path(scratch))
        elif kind == "parquet":
            archive.copy(sql, path)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(_result_chunks(query_result(archive, sql), kind))
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
    return f"'{text}" if _begins_a_formula(value.lstrip()[:1]) else text


@functools.cache
def _begins_a_formula(letter: str) -> bool:
    return letter != "'" and str(cell(letter)).startswith("'")


def _json(answer: QueryResult) -> Iterator[str]:
    """An array of objects, one on each line."""
    before = "["
    for row in answer.rows:
        values = {name: json_value(value) for name, value in zip(answer.columns, row, strict=True)}
        text = json.dumps(values, ensure_ascii=False)
        yield f"{before}\n{text if text.isprintable() else escaped_json(text)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"
