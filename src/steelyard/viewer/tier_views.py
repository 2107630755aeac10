"""What tiers and judges say of a run."""

from __future__ import annotations

from steelyard.analysis.attempt_texts import AttemptText
from steelyard.engine.tiers import tier_runs
from steelyard.engine.tiers.reply_judgments import judgments_by_reply
from steelyard.errors import SteelyardError
from steelyard.records import Judgment
from steelyard.reports.charts.spec import Chart
from steelyard.reports.charts.tiers import charts
from steelyard.store.run_folders import UntrustedRun
from steelyard.tiers.results import ExperimentAnalysis
from steelyard.tiers.rubrics import JudgingResult
from steelyard.viewer.query_params import ViewerRequestError
from steelyard.viewer.run_cache import RunCache, displayed_path
from steelyard.viewer.run_view import RunView

MAX_ANALYSED_JOURNAL_BYTES = 64 << 20
"""Bytes of the journals of a run whose tiers are analysed on a page: the analysis holds their texts in memory."""


def judgments(opened: RunView, tried: AttemptText) -> list[JudgingResult]:
    """The judgments of an attempt."""
    if tried.reply is None or opened.info.panel is None:
        return []
    key, stored = tried.reply.key, UntrustedRun(opened.folder)
    facts = (stored.at(place, opened.table.journals) for place in opened.table.judgments_of(key))
    found = [fact for fact in facts if isinstance(fact, Judgment)]
    return judgments_by_reply(opened.info.panel, found).get(key, [])


def tier_analysis(run_cache: RunCache, opened: RunView) -> ExperimentAnalysis:
    """The analysis of a run's tiers, or of its models if it has none."""

    def analyse() -> ExperimentAnalysis:
        stored = UntrustedRun(opened.folder)
        size = sum(path.stat().st_size for path in stored.journals())
        if size > MAX_ANALYSED_JOURNAL_BYTES:
            raise ViewerRequestError(
                409,
                f"this run is too large to be analysed on a page; use: steelyard tiers {displayed_path(opened.folder)}",
            )
        return tier_runs.analysis(tier_runs.tier_experiment(stored))

    try:
        return run_cache.computed("tier analysis", (opened.name, opened.version), analyse)
    except SteelyardError as error:
        raise ViewerRequestError(409, str(error)) from None


def tier_charts(run_cache: RunCache, opened: RunView) -> list[Chart]:
    """The charts of a run's tiers."""
    key = opened.name, opened.version
    return run_cache.computed("tier charts", key, lambda: charts(tier_analysis(run_cache, opened)))
