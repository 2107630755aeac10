"""A run whose summary is computed again by other rules, without a request to a model."""

from __future__ import annotations

from steelyard.analysis.summary import summarise
from steelyard.engine.results.report_files import ScoringOverrides
from steelyard.engine.results.stored_results import StoredResults, stored_results
from steelyard.engine.run import Run
from steelyard.store.journal import StoredRun


def scored_run(
    done: Run,
    stored: StoredRun | None = None,
    scoring: ScoringOverrides = ScoringOverrides(),
    *,
    with_attempts: bool = False,
) -> tuple[Run, StoredResults | None]:
    """A run with its summary by other k and rules, if there are any; with its attempts where these are wanted as well."""
    stored = stored or StoredRun(done.folder)
    if with_attempts:
        results = stored_results(stored, **scoring._asdict())
        return done._replace(summary=results.summary), results
    if any(scoring):
        done = done._replace(summary=summarise(done.info, stored.cases, stored.facts(), **scoring._asdict()))
    return done, None
