"""The rows of Parquet files, one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from steelyard.errors import InputError
from steelyard.store.database import open_database

MAX_TABLE_ROWS = 10_000_000
ROWS_AT_ONCE = 1000


def parquet_tables(path: str) -> Iterator[dict[str, Any]]:
    """The rows by the names of their columns, without what is empty; InputError for a file that is not Parquet."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            database = open_database(scratch, "1GB", threads=1)
            try:
                found = database.execute("SELECT * FROM read_parquet(?)", [_escaped(path)])
                names = [column[0] for column in found.description or ()]
                number = 0
                while rows := found.fetchmany(ROWS_AT_ONCE):
                    for row in rows:
                        yield {
                            name: plain_value(value)
                            for name, value in zip(names, row, strict=True)
                            if value is not None
                        }
                    number += len(rows)
                    if number > MAX_TABLE_ROWS:
                        raise InputError(f"more than {MAX_TABLE_ROWS} rows; split the file")
            finally:
                database.close()
    except MemoryError:
        raise InputError("does not fit into the memory") from None
    except Exception as error:
        if not type(error).__module__.startswith(("duckdb", "_duckdb")):
            raise
        raise InputError(f"not a Parquet file: {str(error).splitlines()[0][:200]}") from None


def _escaped(path: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def plain_value(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
