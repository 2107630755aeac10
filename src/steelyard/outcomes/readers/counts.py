"""Tables of counts, a row per case with how often it was tried and passed, and JUnit reports."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from steelyard.errors import Problem
from steelyard.outcomes.files import LineChunks, UnreadableOutcomesError, bare_file_name, open_unpacked
from steelyard.outcomes.readers.sources import first_object, json_lines, text
from steelyard.protocols import ForeignFile
from steelyard.records import RecordedAttempt
from steelyard.records.bounds import MAX_ATTEMPTS_PER_CASE
from steelyard.text import short_quote

CASE_COLUMNS = ("case", "case_id", "task", "task_id", "problem", "id")
TRIED_COLUMNS = ("n", "attempts", "tried", "total", "samples", "num_samples")
CORRECT_COLUMNS = ("correct", "c", "passes", "num_correct", "solved")
PARQUET_MAGIC = b"PAR1"


def _columns(names: Iterable[str]) -> tuple[str, str, str] | None:
    """The columns for the case, the attempts and the correct ones; None where one of them is not there."""
    there = list(names)
    found = [
        next((name for name in there if name.strip().lower() in known), None)
        for known in (CASE_COLUMNS, TRIED_COLUMNS, CORRECT_COLUMNS)
    ]
    case, tried, correct = found
    return None if case is None or tried is None or correct is None else (case, tried, correct)


class CountTableReader:
    """Reads tables with a case, the number of attempts and the number of correct ones in a row: CSV, JSON lines, Parquet."""

    def recognises(self, file: ForeignFile) -> bool:
        if file.beginning.startswith(PARQUET_MAGIC):
            return _columns(_parquet_columns(file.path)) is not None
        if file.beginning.startswith(b"{"):
            return _columns(first_object(file.beginning)) is not None
        line = file.beginning.partition(b"\n")[0].decode("utf-8", "replace")
        return "\0" not in line and _columns(line.strip().replace("\t", ",").replace('"', "").split(",")) is not None

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        model = bare_file_name(path)
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
        head = file.read(4)
    if head == PARQUET_MAGIC:
        yield from _parquet_rows(path)
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
                        # what was read is not needed any more: reports can be as long as they like
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
