"""What a gate decided, as texts in every format and as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.engine.gate.gate import GateResult
from steelyard.reports.comparison import DECISION_FORMATS, JUDGED_DECISION_FORMATS
from steelyard.reports.exports.decision import decision_junit, decision_sarif
from steelyard.store.files import check_text_paths, write_texts

if TYPE_CHECKING:
    # what judges decide needs all that is known of judges, and most gates have none
    from steelyard.engine.gate.judged import JudgedGateResult

JUDGED_FORMAT_BY_SUFFIX = {".json": "json", ".md": "markdown", ".txt": "text"}
DECISION_FORMAT_BY_SUFFIX = {**JUDGED_FORMAT_BY_SUFFIX, ".xml": "junit", ".sarif": "sarif"}


def decision_texts(found: GateResult, *, fail_on_removed: bool = False) -> dict[str, str]:
    """A decision in every format; cases that are gone are listed as errors where they fail the gate."""
    texts = {name: render(found.decision, found.warnings) for name, render in DECISION_FORMATS.items()}
    gone = found.gone if fail_on_removed else ()
    texts["junit"] = decision_junit(found.decision, found.warnings, gone)
    texts["sarif"] = decision_sarif(found.decision, found.warnings, gone)
    return texts


def judged_decision_texts(found: JudgedGateResult) -> dict[str, str]:
    """A decision by corrected rates in every format."""
    return {name: render(found.decision, found.warnings) for name, render in JUDGED_DECISION_FORMATS.items()}


def check_decision_paths(paths: Iterable[str | Path], *, is_corrected: bool = False) -> None:
    """Raises an InputError if a decision could not be written to one of these files."""
    check_text_paths(paths, JUDGED_FORMAT_BY_SUFFIX if is_corrected else DECISION_FORMAT_BY_SUFFIX)


def write_decision(paths: Iterable[str | Path], texts: Mapping[str, str]) -> list[Path]:
    """Write to each file the text in the format of its suffix; returns the paths."""
    suffixes = {suffix: texts[name] for suffix, name in DECISION_FORMAT_BY_SUFFIX.items() if name in texts}
    return write_texts(paths, suffixes)
