"""The analysis of an experiment in tiers, as a text in every format, as files and as charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.reports.charts.svg import chart_files
from steelyard.reports.charts.tier_details import detail_charts
from steelyard.reports.charts.tiers import charts
from steelyard.reports.exports.streaming import StreamedReport
from steelyard.reports.exports.tier_documents import TIER_DOCUMENT_FORMATS
from steelyard.reports.tiers import TIER_ANALYSIS_FORMATS
from steelyard.store.files import AtomicFiles, check_text_paths, check_writable, explain_write_errors, write_pieces
from steelyard.tiers.results import ExperimentAnalysis

ANALYSIS_FORMATS = {**TIER_ANALYSIS_FORMATS, **TIER_DOCUMENT_FORMATS}
TIER_FORMAT_BY_SUFFIX = {".json": "json", ".md": "markdown", ".csv": "csv", ".html": "html", ".tex": "latex"}


def check_analysis_paths(paths: Sequence[str | Path], charts_folder: str | Path | None = None) -> None:
    """Raises an InputError if an analysis or its charts could not be written there later."""
    check_text_paths(paths, TIER_FORMAT_BY_SUFFIX)
    if charts_folder:
        folder = Path(charts_folder)
        with explain_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        check_writable(folder / "chart.svg")


def write_analysis(analysis: ExperimentAnalysis, paths: Sequence[str | Path]) -> list[Path]:
    """Write an analysis to files, each in the format of its suffix; returns their paths."""
    check_text_paths(paths, TIER_FORMAT_BY_SUFFIX)
    written = [Path(path) for path in paths]
    for path in written:
        write_pieces(path, analysis_pieces(analysis, TIER_FORMAT_BY_SUFFIX[path.suffix]))
    return written


def analysis_pieces(analysis: ExperimentAnalysis, name: str) -> Iterable[str]:
    """An analysis in a format; a report that may be large comes in pieces."""
    report = ANALYSIS_FORMATS[name]
    return report.pieces(analysis) if isinstance(report, StreamedReport) else [report(analysis)]


def write_analysis_charts(analysis: ExperimentAnalysis, folder: str | Path) -> int:
    """Write each chart of an analysis as Vega-Lite and as SVG; returns the number of charts."""
    folder = Path(folder)
    drawn = [*charts(analysis), *detail_charts(analysis)]
    with explain_write_errors(folder), AtomicFiles() as fresh:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in chart_files(drawn).items():
            fresh.write(folder / name, [text])
        fresh.finish()
    return len(drawn)
