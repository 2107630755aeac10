"""The attempts of a run as a table of pandas, polars or Arrow."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from steelyard.analysis.attempt_texts import attempt_texts
from steelyard.errors import InputError, did_you_mean
from steelyard.reports.exports.attempt_rows import ATTEMPT_CSV_COLUMNS, attempt_row
from steelyard.store.journal import StoredRun

FRAME_LIBRARIES = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}


def attempt_frame(folder: Path, library: str = "pandas") -> Any:
    """One row per attempt, with the columns of the CSV report and the reply; what is not known is missing, not 0."""
    if library not in FRAME_LIBRARIES:
        raise InputError(f'no frame of "{library}" ({did_you_mean(library, FRAME_LIBRARIES)})')
    try:
        found = importlib.import_module(FRAME_LIBRARIES[library])
    except ImportError:
        raise InputError(f"this needs a library: pip install {FRAME_LIBRARIES[library]}") from None
    stored = StoredRun(folder)
    columns: dict[str, list[Any]] = {name: [] for name in (*ATTEMPT_CSV_COLUMNS, "reply")}
    for tried in attempt_texts(stored.info, stored.cases, stored.facts()):
        row = attempt_row(stored.info.id, tried)
        for name in ATTEMPT_CSV_COLUMNS:
            value = row.get(name)
            columns[name].append(str(value) if isinstance(value, str) else value)
        columns["reply"].append(tried.reply.answer.text if tried.reply else None)
    if library == "arrow":
        return found.table(columns)
    # pandas would make NaN of a missing number, and objects of whole columns
    return found.DataFrame(columns).convert_dtypes() if library == "pandas" else found.DataFrame(columns)
