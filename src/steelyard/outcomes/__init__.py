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
from steelyard.outcomes.columns import OutcomeParquetReader
from steelyard.outcomes.files import OutcomeFile, OutcomeProblemCollector, UnreadableOutcomesError
from steelyard.outcomes.readers.sources import beginning
from steelyard.outcomes.repairs import fixes
from steelyard.outcomes.tables import table

__all__ = ["fixes", "kind", "table"]


def kind(path: str | Path) -> str:
    """`fixes` or `table`, the name of the function that reads such a file; empty for any other file.

    A file that cannot be read is a table: reading it says why.
    """
    path = Path(path)
    name = path.name.lower().removesuffix(".gz")
    try:
        if not path.is_file():
            return ""
    except ValueError:
        # a path with a NUL in it
        return ""
    try:
        if name.endswith(".parquet"):
            columns = OutcomeParquetReader(OutcomeFile(0, path), OutcomeProblemCollector()).columns
            return "table" if _is_table(columns) else ""
        head = beginning(path)
        if not head or b"\0" in head:
            return "table"
        if head.startswith(b"{"):
            return _kind_of_object(head)
        return _kind_of_header(head.splitlines()[0].decode(), "\t" if name.endswith(".tsv") else ",")
    except (InputError, OSError, UnicodeDecodeError, UnreadableOutcomesError):
        return "table"


def _kind_of_object(beginning: bytes) -> str:
    line = beginning.partition(b"\n")[0]
    try:
        keys = set(json.loads(line))
    except (ValueError, RecursionError):
        # a file of one long or many short lines
        keys = {key for key in ("case", "passed", "score") if b'"%b"' % key.encode() in beginning}
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
