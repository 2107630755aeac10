"""The results of a stored run, whose texts stay on disk until somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.attempt_texts import StoredAttempts
from steelyard.analysis.attempts import AttemptRow, AttemptTable
from steelyard.analysis.summary import RunResults, summarise_attempts
from steelyard.engine.results.attempt_tables.attempt_index import stored_attempt_table
from steelyard.engine.results.labels import with_judged_rates
from steelyard.records import Case, RunInfo, SuiteRule
from steelyard.store.journal import StoredRun
from steelyard.store.placed_facts import FactReader


class StoredResults(RunResults):
    """Results whose attempts can be selected before any text is read."""

    attempts: StoredAttempts


def stored_results(
    stored: StoredRun,
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
    info: RunInfo | None = None,
) -> StoredResults:
    """The results of a run, by its own k and rules or by others, or as if it had another description."""
    described = info or stored.info
    cases = stored.cases
    table = stored_attempt_table(stored, described, cases, rule=rule)
    summary = summarise_attempts(described, cases, table, k=k, rule=rule, suites=suites)
    return StoredResults(
        described, tuple(cases), stored_attempts(stored, cases, table), with_judged_rates(stored, summary)
    )


def stored_attempts(
    stored: StoredRun, cases: Sequence[Case], table: AttemptTable, *, rows: Sequence[AttemptRow] | None = None
) -> StoredAttempts:
    """The attempts of a table, or some of them, with their texts."""
    chosen = table.rows if rows is None else rows
    return StoredAttempts(cases, table.columns, chosen, lambda: FactReader(stored, table.journals))
