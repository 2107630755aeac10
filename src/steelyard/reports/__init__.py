"""Results as text: one pure function per format, found by name or by a file's suffix.

Comes in: what analysis, comparison and tiers worked out. Goes out: text; others print and write it.
Nothing here reads a file, a clock or the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from steelyard import plugins
from steelyard.analysis.summary import RunResults
from steelyard.errors import InputError, did_you_mean
from steelyard.plugins.built_in import BUILT_IN_SUFFIXES
from steelyard.protocols import Report

REPORT_FORMAT_BY_SUFFIX: Mapping[str, str] = BUILT_IN_SUFFIXES["reports"]
"""Our own formats by the suffix that asks for them; `report_format_of` knows those of plug-ins, too."""


def report_format_of(path: str | PurePath) -> str:
    """The format that a file's suffix asks for; raises InputError when no report has that suffix."""
    suffix = PurePath(path).suffix
    if name := plugins.plugin_for_suffix("reports", suffix):
        return name
    raise InputError(
        f'{path}: no report format for "{suffix}" ({did_you_mean(suffix, plugins.known_suffixes("reports"))})'
    )


def needs_texts(name: str) -> bool:
    """Whether a report shows what models wrote; one that does not is given results without attempts."""
    return bool(getattr(plugins.load_plugin("reports", name), "needs_texts", True))


def render(name: str, results: RunResults, *, where: str = "") -> str:
    """The report registered under a name; if it fails, the message names the file `where` it was to be written."""
    report: Report = plugins.load_plugin("reports", name)
    with plugins.explain_plugin_errors("reports", name, where):
        text = report(results if needs_texts(name) else results._replace(attempts=()))
        if not isinstance(text, str):
            raise TypeError(f"it returned {type(text).__name__}, not str")
    return text
