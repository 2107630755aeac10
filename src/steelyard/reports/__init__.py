"""A run's results as text: one pure function per format, found by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard import plugins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.analysis.summary import RunResults

REPORT_FORMAT_BY_SUFFIX: Mapping[str, str] = {
    ".json": "json",
    ".md": "markdown",
    ".html": "html",
    ".csv": "csv",
    ".xml": "junit",
    ".sarif": "sarif",
    ".jsonl": "results",
}
"""The format that a file's suffix asks for."""


def render(name: str, results: RunResults) -> str:
    """The report registered under a name."""
    text: str = plugins.load_plugin("reports", name)(results)
    return text
