"""Reports written to files, whose formats are checked before any work is done for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard import reports
from steelyard.analysis.summary import RunResults, run_results, summarise
from steelyard.engine.results.html_page import html_page
from steelyard.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.records import SuiteRule
    from steelyard.reports.html import BaselineReport
    from steelyard.store.journal import StoredRun


class ScoringOverrides(NamedTuple):
    """How a run is scored where that is not as the run itself says."""

    k: Sequence[int] | None = None
    rule: str | None = None
    suites: SuiteRule | None = None


def check_report_paths(paths: Iterable[str | Path]) -> None:
    """Raise an InputError where a report of a run could not be written: no such format, or no such folder."""
    for path in map(Path, paths):
        reports.report_format_of(path)
        _check_folder(path)


def check_text_paths(paths: Iterable[str | Path], suffixes: Iterable[str]) -> None:
    """The same for results that are written in a few formats only."""
    for path in map(Path, paths):
        if path.suffix not in suffixes:
            raise InputError(f'{path}: unknown kind of report "{path.suffix}" ({did_you_mean(path.suffix, suffixes)})')
        _check_folder(path)


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")


def stored_results(stored: StoredRun, scoring: ScoringOverrides, formats: Iterable[str]) -> RunResults:
    """The results of a run for reports in these formats; what models wrote is read only if one of them needs it."""
    if any(map(reports.needs_texts, formats)):
        return run_results(stored.info, stored.cases, stored.facts(), **scoring._asdict())
    cases = tuple(stored.cases)
    return RunResults(stored.info, cases, (), summarise(stored.info, cases, stored.facts(), **scoring._asdict()))


def formats_without_page(paths: Iterable[str | Path]) -> list[str]:
    """The formats of reports that are made from a run's results; a page is made from its folder."""
    return [name for name in map(reports.report_format_of, map(Path, paths)) if name != "html"]


def write_reports(
    paths: Iterable[str | Path],
    stored: StoredRun,
    scoring: ScoringOverrides = ScoringOverrides(),
    *,
    results: RunResults | None = None,
    baseline: BaselineReport | None = None,
) -> list[Path]:
    """Write reports of a run, each in the format of its suffix; returns what was written.

    A page is made from the run's folder, so that a large run need not fit into memory.
    """
    paths = tuple(paths)
    check_report_paths(paths)
    written = []
    for path in map(Path, paths):
        name = reports.report_format_of(path)
        if name == "html":
            text = html_page(stored, **scoring._asdict(), held=baseline)
        else:
            results = results or stored_results(stored, scoring, formats_without_page(paths))
            text = reports.render(name, results, where=str(path))
        written.append(_write(path, text))
    return written


def write_texts(paths: Iterable[str | Path], texts: Mapping[str, str]) -> list[Path]:
    """Write to each file the text of its suffix; returns what was written."""
    check_text_paths(paths, texts)
    return [_write(path, texts[path.suffix]) for path in map(Path, paths)]


def _write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return path
