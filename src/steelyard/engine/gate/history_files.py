"""What the watch over a history found, as texts in every format and as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from steelyard.comparison.history import HistoryWatch
from steelyard.reports.exports.history import HISTORY_FORMATS
from steelyard.store.files import check_text_paths, write_texts

HISTORY_FORMAT_BY_SUFFIX = {".json": "json", ".md": "markdown", ".txt": "text", ".html": "html"}


def history_texts(found: HistoryWatch) -> dict[str, str]:
    """A watch in every format."""
    return {name: render(found) for name, render in HISTORY_FORMATS.items()}


def check_history_paths(paths: Iterable[str | Path]) -> None:
    """Raises an InputError if a watch could not be written to one of these files."""
    check_text_paths(paths, HISTORY_FORMAT_BY_SUFFIX)


def write_history(paths: Iterable[str | Path], texts: Mapping[str, str]) -> list[Path]:
    """Write to each file the text in the format of its suffix; returns the paths."""
    return write_texts(paths, {suffix: texts[name] for suffix, name in HISTORY_FORMAT_BY_SUFFIX.items()})
