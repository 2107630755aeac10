"""What the suites and the tiers of a run score."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.suites import RESPONSE_CLASSES
from steelyard.reports import figures as reports
from steelyard.reports.tiers import tier_tables
from steelyard.viewer import sparklines
from steelyard.viewer.pages.rendering import rendered
from steelyard.viewer.pages.run import run_page_context

if TYPE_CHECKING:
    from steelyard.analysis.suites import SuiteScore
    from steelyard.viewer.run_cache import RunCache


class ClassBarSegment(NamedTuple):
    """The responses of one class in a suite, as a piece of a bar."""

    name: str
    responses: int
    tone: str
    x: float
    width: float


class SuiteScoreRow(NamedTuple):
    """One suite under one model."""

    score: SuiteScore
    scale: sparklines.IntervalScale | None
    pieces: tuple[ClassBarSegment, ...]


class SuiteView(NamedTuple):
    """All suites under one model."""

    name: str
    overall: str
    rows: tuple[SuiteScoreRow, ...]
    beneath: tuple[tuple[str, str], ...]


def suites(run_cache: RunCache, name: str) -> str:
    """What the suites of a run score, and of which classes their responses are."""
    opened = run_cache.run(name)
    models = [model for model in run_cache.summary(opened).models if model.suites]
    views = []
    for model, table in zip(models, reports.suite_tables(models), strict=True):
        if model.suites is not None:
            rows = tuple(_suite_row(score) for score in model.suites.suites)
            views.append(SuiteView(table.model, reports.rate(model.suites.overall), rows, table.beneath))
    return rendered("suites.html.j2", **run_page_context(run_cache, opened, "suites"), tables=views)


def _suite_row(score: SuiteScore) -> SuiteScoreRow:
    total = sum(score.classes.values())
    pieces, x = [], 0.0
    for name, count in score.classes.items():
        width = 100 * count / total
        tone = name if name in RESPONSE_CLASSES else "other"
        pieces.append(ClassBarSegment(name, count, tone, round(x, 2), round(width, 2)))
        x += width
    return SuiteScoreRow(score, sparklines.scale(score.score), tuple(pieces))


def tiers(run_cache: RunCache, name: str) -> str:
    """What the tiers of a run achieve and cost, as tables and charts."""
    opened = run_cache.run(name)
    analysis = run_cache.analysis(opened)
    return rendered(
        "tiers.html.j2",
        **run_page_context(run_cache, opened, "tiers"),
        analysis=analysis,
        tables=tier_tables(analysis),
        charts=run_cache.charts(opened),
    )
