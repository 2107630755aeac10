"""The results of a stored run, whose texts stay on disk until somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.attempt_texts import StoredAttempts
from steelyard.analysis.attempts import AttemptRow, AttemptTable, AttemptTableBuilder
from steelyard.analysis.headlines import ATTEMPT_TABLE_VERSION, problem_sentences, unpack_attempt_table
from steelyard.analysis.summary import RunResults, summarise_attempts
from steelyard.engine.results.labels import with_judged_rates
from steelyard.errors import InputError
from steelyard.records import Case, RunInfo, SuiteRule
from steelyard.store.journal import JournalReader, StoredRun, fact_offset
from steelyard.store.placed_facts import FactReader
from steelyard.store.run_folders import ATTEMPT_INDEX_FILE, run_fingerprint


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


def stored_attempt_table(
    stored: StoredRun, info: RunInfo, cases: Sequence[Case], *, rule: str | None = None
) -> AttemptTable:
    """The attempts of a run without their texts: from its index where that is current, otherwise from its journals."""
    stored.damaged = []
    is_own_rule = rule in (None, "", info.rule) and info == stored.info
    table = _indexed_table(stored, len(cases)) if is_own_rule else None
    if table is not None:
        return table
    paths = stored.journals()
    builder = AttemptTableBuilder(info, cases, rule=rule)
    for number, path in enumerate(paths):
        begin = fact_offset(number, 0)
        for byte, fact in JournalReader(stored, path, stored.damaged.append).facts():
            builder.add(begin + byte, fact)
    return builder.table([path.name for path in paths], problem_sentences(stored.damaged), is_last=True)


def _indexed_table(stored: StoredRun, cases: int) -> AttemptTable | None:
    """The table of the run as it is now; None if there is no index of that, or lines are damaged, which a reader must be told."""
    try:
        content = stored.content(stored.folder / ATTEMPT_INDEX_FILE)
        table, _ = unpack_attempt_table(content, run_fingerprint(stored, ATTEMPT_TABLE_VERSION), cases)
    except (OSError, ValueError, InputError):
        return None
    names = tuple(path.name for path in stored.journals())
    return table if table.journals == names and not table.problems else None
