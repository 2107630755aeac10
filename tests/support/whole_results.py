"""The results of a run made in memory, from facts alone: what the results of a stored run must be equal to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.analysis.attempt_texts import attempts_with_texts
from steelyard.analysis.summary import RunResults, summarise_attempts
from steelyard.records import Case, Fact, RunInfo, SuiteRule


def run_results(
    info: RunInfo,
    cases: Sequence[Case],
    facts: Iterable[Fact],
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
) -> RunResults:
    """The whole run with its texts, and the summary of it."""
    table, attempts = attempts_with_texts(info, cases, facts, rule=rule)
    summary = summarise_attempts(info, cases, table, k=k, rule=rule, suites=suites)
    return RunResults(info=info, cases=tuple(cases), attempts=attempts, summary=summary)
