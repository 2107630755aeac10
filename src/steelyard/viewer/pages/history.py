"""The histories of baselines, with a chart for each model."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from steelyard.comparison.history import HistoryWatch
from steelyard.engine.gate.history import histories, watch
from steelyard.engine.gate.sides import BASELINES_FOLDER
from steelyard.errors import InputError
from steelyard.reports.charts.spec import Chart
from steelyard.reports.exports.history import HISTORY_WORDS, history_charts, history_sentences
from steelyard.viewer.pages.rendering import rendered

MAX_SHOWN_HISTORIES = 20


class ShownHistory(NamedTuple):
    """One baseline on the page."""

    name: str
    watch: HistoryWatch | None
    problem: str
    """Why it cannot be shown; empty if it can."""
    words: str = ""
    sentences: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What is said about each model."""
    charts: tuple[Chart, ...] = ()


def history(folder: Path = BASELINES_FOLDER) -> str:
    """All histories in a folder of baselines."""
    names = histories(folder)
    return rendered(
        "history.html.j2",
        shown=[_shown(folder, name, place) for place, name in enumerate(names[:MAX_SHOWN_HISTORIES])],
        left_out=len(names[MAX_SHOWN_HISTORIES:]),
    )


def _shown(folder: Path, name: str, place: int) -> ShownHistory:
    try:
        found = watch(name, folder)
    except InputError as error:
        return ShownHistory(name, None, str(error))
    return ShownHistory(
        name,
        found,
        "",
        HISTORY_WORDS[found.verdict],
        tuple((model.model, tuple(history_sentences(model))) for model in found.models),
        tuple(history_charts(found, f"history-{place}")),
    )
