"""Tables of counts, a row per case with how often it was tried and passed, and JUnit reports."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from steelyard.errors import Problem
from steelyard.outcomes.files import LineChunks, UnreadableOutcomesError, bare_file_name, open_unpacked
from steelyard.outcomes.readers.sources import beginning, first_object, json_lines, text
from steelyard.protocols import ForeignFile
from steelyard.records import RecordedAttempt
from steelyard.records.base import MAX_ATTEMPTS_PER_CASE
from steelyard.text import short_quote

CASE_COLUMNS = ("case", "case_id", "task", "task_id", "problem", "id")
TRIED_COLUMNS = ("n", "attempts", "tried", "total", "samples", "num_samples")
CORRECT_COLUMNS = ("correct", "c", "passes", "num_correct", "solved")
PARQUET_MAGIC = b"PAR1"
ARROW_MAGICS = (b"ARROW1", b"\xff\xff\xff\xff")
"""How Arrow files begin, and Arrow streams."""
TABLE_SUFFIXES = (".parquet", ".arrow", ".csv", ".jsonl")
MAX_FOLDER_ENTRIES = 10_000
MAX_SUBFOLDERS = 20
"""Folders in a folder in which tables are looked for."""


def _columns(names: Iterable[str]) -> tuple[str, str, str] | None:
    """The columns for the case, the attempts and the correct ones; None if one of them is not there."""
    there = list(names)
    found = [
        next((name for name in there if name.strip().lower() in known), None)
        for known in (CASE_COLUMNS, TRIED_COLUMNS, CORRECT_COLUMNS)
    ]
    case, tried, correct = found
    return None if case is None or tried is None or correct is None else (case, tried, correct)


class CountTableReader:
    """Reads tables with a case, the number of attempts and the number of correct ones in a row: CSV, JSON lines, Parquet, Arrow.

    A folder of such tables is one table, as libraries leave it that write in shards.
    """

    def recognises(self, file: ForeignFile) -> bool:
        if tables := _tables_in(file.path):
            return self.recognises(ForeignFile(tables[0], beginning(tables[0])))
        if file.beginning.startswith(ARROW_MAGICS):
            return _columns(_arrow_columns(file.path)) is not None
        if file.beginning.startswith(PARQUET_MAGIC):
            return _columns(_parquet_columns(file.path)) is not None
        if file.beginning.startswith(b"{"):
            return _columns(first_object(file.beginning)) is not None
        line = file.beginning.partition(b"\n")[0].decode("utf-8", "replace")
        return "\0" not in line and _columns(line.strip().replace("\t", ",").replace('"', "").split(",")) is not None

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        model = bare_file_name(path)
        for table in _tables_in(path) or [path]:
            yield from self._table_attempts(table, model)

    def _table_attempts(self, path: Path, model: str) -> Iterator[RecordedAttempt]:
        columns = None
        for line, row in _rows(path):
            columns = columns or _columns(row)
            if columns is None:
                raise UnreadableOutcomesError("no columns for the case, the attempts and the correct ones", line)
            case, tried, correct = (row.get(name) for name in columns)
            count, passed = _count(tried, columns[1], line), _count(correct, columns[2], line)
            if passed > count:
                raise UnreadableOutcomesError(f"{passed} correct of {count} attempts", line)
            for outcome, times in ((True, passed), (False, count - passed)):
                if times:
                    yield RecordedAttempt(
                        case=text(case),
                        model=text(row.get("model")) or model,
                        judged_by="counts",
                        passed=outcome,
                        times=times,
                    )


def _count(value: Any, column: str, line: int) -> int:
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        found = -1
    if not 0 <= found <= MAX_ATTEMPTS_PER_CASE or (isinstance(value, float) and value != found):
        raise UnreadableOutcomesError(
            f"{column} is {short_quote(text(value)[:80])}; expected a whole number up to {MAX_ATTEMPTS_PER_CASE:,}",
            line,
        )
    return found


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open_unpacked(path) as file:
        head = file.read(6)
    if head.startswith(PARQUET_MAGIC):
        yield from _parquet_rows(path)
    elif head.startswith(ARROW_MAGICS):
        yield from _arrow_rows(path)
    elif head.lstrip().startswith(b"{"):
        yield from json_lines(path, dict[str, Any], "a row of counts")
    else:
        lines = (line for piece in LineChunks(path, carriage_returns=True).texts() for line in piece.splitlines(True))
        first = next(lines, "")
        delimiter = "\t" if "\t" in first else ","
        try:
            header = next(csv.reader([first], delimiter=delimiter))
            for number, row in enumerate(csv.reader(lines, delimiter=delimiter), 2):
                if row:
                    yield number, dict(zip(header, row, strict=False))
        except csv.Error as error:
            raise UnreadableOutcomesError(f"not CSV: {error}") from None


def _tables_in(path: Path) -> list[Path]:
    """The tables in a folder, or in the folders that it has; none for a file."""
    if not path.is_dir():
        return []
    own = sorted(path.iterdir())[:MAX_FOLDER_ENTRIES]
    for suffix in TABLE_SUFFIXES:
        below = [inner for one in own[:MAX_SUBFOLDERS] if one.is_dir() for inner in one.glob(f"*{suffix}")]
        found = [one for one in own if one.suffix == suffix and one.is_file()] or sorted(below)
        # what the library `datasets` keeps of transformed rows
        if found := [one for one in found if not (suffix == ".arrow" and one.name.startswith("cache-"))]:
            return found
    return []


def _arrow_reader(file: Any) -> tuple[list[str], Iterator[Any]]:
    """The columns and the batches of an Arrow file or stream."""
    import pyarrow as pa

    is_file = file.read(6) == ARROW_MAGICS[0]
    file.seek(0)
    reader: Any = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
    batches = (reader.get_batch(place) for place in range(reader.num_record_batches)) if is_file else iter(reader)
    return list(reader.schema.names), batches


def _arrow_columns(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            return _arrow_reader(file)[0]
    except (ImportError, OSError, ValueError):
        return []


def _arrow_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    number = 0
    try:
        with path.open("rb") as file:
            for batch in _arrow_reader(file)[1]:
                # of damaged offsets, pyarrow would read memory that is not the file's
                batch.validate(full=True)
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (OSError, ValueError, OverflowError) as error:
        raise UnreadableOutcomesError(f"not Arrow: {str(error)[:200]}") from None


def _parquet_columns(path: Path) -> list[str]:
    try:
        import pyarrow.parquet as parquet

        return list(parquet.read_schema(path).names)
    except (ImportError, OSError, ValueError):
        return []


def _parquet_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(path) as file:
            number = 1
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    yield number, row
                    number += 1
    except (OSError, ValueError) as error:
        raise UnreadableOutcomesError(f"not Parquet: {str(error)[:200]}") from None


class JUnitReader:
    """Reads JUnit reports of any program: a test is a case, the file is the model."""

    def recognises(self, file: ForeignFile) -> bool:
        return file.beginning.startswith(b"<") and b"<testsuite" in file.beginning

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        model = bare_file_name(path).removesuffix(".xml")
        try:
            with open_unpacked(path) as file:
                for _, element in ElementTree.iterparse(file):  # noqa: S314  expat itself bounds what entities grow to
                    if element.tag.rpartition("}")[2] == "testcase":
                        yield _test(element, model)
                        # what was read is no longer needed, so the length of reports is not limited
                        element.clear()
        except ElementTree.ParseError as error:
            raise UnreadableOutcomesError(f"not XML: {error}") from None


def _test(element: ElementTree.Element, model: str) -> RecordedAttempt:
    ended = {child.tag.rpartition("}")[2]: child for child in element}
    failed = ended.get("failure", ended.get("error"))
    skipped = ended.get("skipped")
    name = ".".join(filter(None, (element.get("classname"), element.get("name"))))
    return RecordedAttempt(
        case=name or "-",
        model=model,
        judged_by="junit",
        passed=None if skipped is not None else failed is None,
        label="" if failed is None else (failed.get("type") or "")[:80],
        reason="" if failed is None else failed.get("message") or (failed.text or "")[:500],
        failure="skipped" if skipped is not None else "",
    )
