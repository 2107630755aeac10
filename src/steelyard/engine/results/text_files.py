"""Files of results that are texts, each in the format of its suffix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from steelyard.errors import InputError, did_you_mean
from steelyard.evalsets.jsonl import case_json_lines
from steelyard.records import Case
from steelyard.store.files import AtomicFiles, check_writable, explain_write_errors, write_file


def check_text_paths(paths: Iterable[str | Path], suffixes: Iterable[str]) -> None:
    """Refuse files of a suffix that has no format, and those that cannot be written."""
    for path in map(Path, paths):
        if path.suffix not in suffixes:
            raise InputError(f'{path}: unknown kind of report "{path.suffix}" ({did_you_mean(path.suffix, suffixes)})')
        check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse a file that cannot be written."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")
    check_writable(path)


def write_texts(paths: Iterable[str | Path], texts: Mapping[str, str]) -> list[Path]:
    """Write to each file the text of its suffix; returns what was written."""
    check_text_paths(paths, texts)
    written = [Path(path) for path in paths]
    for path in written:
        write_file(path, texts[path.suffix])
    return written


def write_cases(path: str | Path, cases: Iterable[Case]) -> None:
    """Write cases as JSONL, one object per line; an older file stays until all of them are written."""
    path = Path(path)
    with explain_write_errors(path.parent), AtomicFiles() as fresh:
        fresh.write(path, case_json_lines(cases))
        fresh.finish()
