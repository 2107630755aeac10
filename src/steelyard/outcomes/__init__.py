"""Outcomes of attempts that other tools made and judged.

In come files of outcomes: CSV, JSONL, JSON and Parquet, of any size and in any state. Out come tallies (`analysis.counts`), warnings,
or an InputError with all problems. Nothing is written, and no model or verifier is asked.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection
from pathlib import Path

from steelyard.errors import InputError
from steelyard.outcomes.benchmarks import results
from steelyard.outcomes.columns import OutcomeParquetReader
from steelyard.outcomes.files import (
    BYTE_ORDER_MARK,
    UNPACKING_ERRORS,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    open_unpacked,
)
from steelyard.outcomes.repairs import fixes
from steelyard.outcomes.tables import table

__all__ = ["fixes", "kind", "results", "table"]

SNIFFED_BYTES = 1 << 20


def kind(path: str | Path) -> str:
    """`fixes`, `results` or `table`, the name of the function that reads such a file; empty for any other file.

    A file that cannot be read is a table: reading it says why.
    """
    path = Path(path)
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            columns = OutcomeParquetReader(OutcomeFile(0, path), OutcomeProblemCollector()).columns
            return "table" if _is_table(columns) else ""
        with open_unpacked(path) as file:
            beginning = file.read(SNIFFED_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
        if not beginning or b"\0" in beginning:
            return "table"
        if beginning.startswith(b"{"):
            return _kind_of_object(beginning)
        return _kind_of_header(beginning.splitlines()[0].decode(), "\t" if name.endswith(".tsv") else ",")
    except (FileNotFoundError, IsADirectoryError):
        return ""
    except (InputError, OSError, UnicodeDecodeError, *UNPACKING_ERRORS, UnreadableOutcomesError):
        return "table"
    except ValueError:
        # a path with a NUL in it
        return ""


def _kind_of_object(beginning: bytes) -> str:
    line = beginning.partition(b"\n")[0]
    try:
        keys = set(json.loads(line))
    except (ValueError, RecursionError):
        # a file of one long or many short lines
        keys = {
            key for key in ("task_id", "passed", "score", "base_status", "case") if b'"%b"' % key.encode() in beginning
        }
        if b'"eval"' in beginning and "base_status" in keys:
            return "results"
    if ("task_id" in keys and keys & {"passed", "base_status"}) or keys >= {"eval", "hash"}:
        return "results"
    return "table" if _is_table(keys) else ""


def _kind_of_header(header: str, delimiter: str) -> str:
    try:
        columns = {name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])}
    except csv.Error:
        return ""
    if "oid" in columns and columns & {"plausible_fix", "iteration_id"}:
        return "fixes"
    return "table" if _is_table(columns) else ""


def _is_table(columns: Collection[str]) -> bool:
    """Whether these are the columns of a table that needs no names: cases with outcomes or scores."""
    return "case" in columns and ("passed" in columns or "score" in columns)
