"""Runs that a user names to look at: a folder of ours, or files of other tools that are imported for as long as they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from steelyard.engine.results.import_run import runs_of_recordings
from steelyard.engine.results.recordings import is_recorded
from steelyard.engine.results.report_files import (
    ScoringOverrides,
    baseline_comparison,
    check_report_paths,
    write_reports,
)
from steelyard.errors import InputError
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER, find_run


class NamedRun(NamedTuple):
    """One run, wherever it comes from."""

    side: str
    """Its name as a side of a comparison."""
    folder: Path
    stored: StoredRun
    notes: tuple[str, ...] = ()
    """What is odd about an imported file."""


class ViewedFolder(NamedTuple):
    """What the viewer shows."""

    folder: Path
    shown: str
    """A description for the user."""
    notes: tuple[str, ...] = ()


@contextmanager
def named_run(name: str, *, root: Path = DEFAULT_RUNS_FOLDER) -> Iterator[NamedRun]:
    """A run by its folder, its name or `latest`; or a file of another tool, as a run that is removed afterwards."""
    if not is_recorded(name):
        folder = find_run(name, root)
        yield NamedRun(str(folder.absolute()), folder, StoredRun(folder))
        return
    with runs_of_recordings([name]) as (done,):
        yield NamedRun(name, done.folder, StoredRun(done.folder), done.notes)


def check_report_request(paths: Sequence[str], *, baseline: str | None = None) -> None:
    """Raises an InputError if these reports could not be written."""
    if not paths:
        raise InputError(
            "nowhere to write; name a file, such as: -o report.html (.json .md .csv .html .xml .sarif .jsonl .eee.json .inspect.json ...)"
        )
    check_report_paths(paths)
    if baseline and not any(path.endswith(".html") for path in paths):
        raise InputError("--baseline is for a page, -o FILE.html; steelyard gate and compare write other formats")


def write_run_reports(
    source: NamedRun,
    paths: Sequence[str],
    scoring: ScoringOverrides = ScoringOverrides(),
    *,
    baseline: str | None = None,
    root: Path = DEFAULT_RUNS_FOLDER,
) -> list[Path]:
    """Write reports of a run, each in the format of its suffix, a page with its comparison with the baseline."""
    check_report_request(paths, baseline=baseline)
    held = baseline_comparison(baseline, source.side, rule=scoring.rule, root=root) if baseline else None
    return write_reports(paths, source.stored, scoring, baseline=held)


@contextmanager
def viewed_folder(paths: Sequence[str], root: Path = DEFAULT_RUNS_FOLDER) -> Iterator[ViewedFolder]:
    """A folder of runs or one run, by default `root`; or files of other tools, as runs that are removed afterwards."""
    folder = Path(paths[0]) if paths else root
    are_files = [is_recorded(path) for path in paths]
    if len(paths) > 1 and not all(are_files):
        raise InputError("name one folder, or files of other tools; several folders are not shown together")
    if not any(are_files):
        if paths and not folder.is_dir():
            raise InputError(f"{folder}: no such folder; name a folder of runs, a run, or a file of another tool")
        yield ViewedFolder(folder, f"the runs of {folder}")
        return
    with runs_of_recordings(paths) as done:
        place = done[0].folder if len(done) == 1 else done[0].folder.parent
        yield ViewedFolder(place, ", ".join(paths), tuple(note for each in done for note in each.notes))
