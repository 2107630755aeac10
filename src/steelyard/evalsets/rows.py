"""Cases in tables: the rows of CSV, Parquet and Arrow files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steelyard.errors import InputError
from steelyard.evalsets.benchmarks.hub import MAX_TABLE_ROWS, parquet_tables, plain_value
from steelyard.evalsets.jsonl import table_drafts
from steelyard.evalsets.promptfoo.config import csv_rows
from steelyard.evalsets.schema import ByteSource, Draft, ProblemCollector, source_text

MAX_CSV_BYTES = 256 << 20


def csv_drafts(content: ByteSource, path: str, problems: ProblemCollector) -> Iterator[Draft]:
    """The cases of a CSV file; its first line names the columns."""
    text = source_text(content, MAX_CSV_BYTES, path, problems)
    if text is None:
        return
    try:
        rows = csv_rows(text)
    except InputError as error:
        problems.error(path, 0, str(error))
        return
    for number, row in enumerate(rows):
        cells = {name: _cell(cell) for name, cell in row.items() if name and cell != ""}
        yield from table_drafts(cells, path, number + 2, problems, content)


def _cell(cell: str) -> Any:
    """A cell; a list or a table in JSON is one."""
    if cell[:1] in "[{":
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    return cell


def parquet_drafts(content: ByteSource, path: str, problems: ProblemCollector) -> Iterator[Draft]:
    """The cases of a Parquet file, row by row."""
    while content.read(1 << 20):
        pass  # the digest of the file is that of all its bytes
    try:
        for number, table in enumerate(parquet_tables(path), 1):
            yield from table_drafts(table, path, number, problems, content)
    except InputError as error:
        problems.error(path, 0, str(error))


def arrow_drafts(content: ByteSource, path: str, problems: ProblemCollector) -> Iterator[Draft]:
    """The cases of an Arrow file, as the library `datasets` leaves them on disk."""
    while content.read(1 << 20):
        pass  # the digest of the file is that of all its bytes
    try:
        import pyarrow as pa
    except ImportError:
        problems.error(path, 0, "Arrow files need pyarrow; install it, or save the rows as Parquet or JSONL")
        return
    number = 0
    try:
        with Path(path).open("rb") as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            reader: Any = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if is_file else reader
            for batch in batches:
                # of damaged offsets, pyarrow would read memory that is not the file's
                batch.validate(full=True)
                if number + batch.num_rows > MAX_TABLE_ROWS:
                    raise InputError(f"more than {MAX_TABLE_ROWS} rows; split the file")
                for row in batch.to_pylist():
                    number += 1
                    table = {name: plain_value(value) for name, value in row.items() if value is not None}
                    yield from table_drafts(table, path, number, problems, content)
    except InputError as error:
        problems.error(path, 0, str(error))
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        problems.error(path, 0, f"not an Arrow file: {(str(error).splitlines() or [''])[0][:200]}")
