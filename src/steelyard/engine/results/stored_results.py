"""The results of a stored run, whose texts stay on disk until somebody asks for them, and the attempts of it that somebody wants to see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.analysis.attempt_texts import AttemptText, StoredAttempts
from steelyard.analysis.attempts import AttemptRow, AttemptTable
from steelyard.analysis.summary import RunResults, Summary, summarise_attempts
from steelyard.engine.results.attempt_tables import stored_attempt_table
from steelyard.engine.results.labels import with_judged_rates
from steelyard.errors import InputError, did_you_mean
from steelyard.records import Case, RunInfo, SuiteRule
from steelyard.reports.figures import model_label
from steelyard.store.journal import FactReader, StoredRun


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
    return StoredResults(described, cases, stored_attempts(stored, cases, table), with_judged_rates(stored, summary))


def stored_attempts(
    stored: StoredRun, cases: Sequence[Case], table: AttemptTable, *, rows: Sequence[AttemptRow] | None = None
) -> StoredAttempts:
    """The attempts of a table, or some of them, with their texts."""
    chosen = table.rows if rows is None else rows
    return StoredAttempts(cases, table.columns, chosen, lambda: FactReader(stored, table.journals))


class AttemptSelection(NamedTuple):
    """Which attempts are wanted; without anything all of them."""

    case: str | None = None
    """A case's id."""
    number: int | None = None
    """Which attempt at the case."""
    model: str = ""
    """A model, or one tier of it as `MODEL (TIER)`."""
    only_failed: bool = False
    """Only attempts that were not correct."""


def check_selection(results: StoredResults, folder: Path, chosen: AttemptSelection) -> None:
    """Raises an InputError if the run does not have the model or the case."""
    if chosen.model:
        known = {(model.model, model_label(model.model, model.tier)) for model in results.summary.models}
        if not any(chosen.model in names for names in known):
            labels = sorted({label for _, label in known})
            raise InputError(f'{folder}: no model "{chosen.model}" ({did_you_mean(chosen.model, labels)})')
    cases = [case.id for case in results.cases]
    if chosen.case is not None and chosen.case not in cases:
        raise InputError(f'{folder}: no case "{chosen.case}" ({did_you_mean(chosen.case, cases)})')


def selected_attempts(results: StoredResults, folder: Path, chosen: AttemptSelection) -> StoredAttempts:
    """The attempts that are wanted; raises an InputError if a numbered attempt is not there."""
    check_selection(results, folder, chosen)
    attempts = results.attempts
    if chosen.only_failed:
        attempts = attempts.selected(lambda row: not row.correct)
    if chosen.model:
        attempts = attempts.of_columns(
            lambda column: chosen.model in (column.model, model_label(column.model, column.tier))
        )
    if chosen.case is not None:
        place = [case.id for case in results.cases].index(chosen.case)
        attempts = attempts.selected(lambda row: row.case == place)
    if chosen.number is not None:
        attempts = attempts.selected(lambda row: row.number == chosen.number)
        if not attempts:
            raise InputError(f'{folder}: case "{chosen.case}" has no attempt {chosen.number} of that kind')
    return attempts


def attempts_by_case(results: StoredResults, attempts: StoredAttempts) -> Iterator[tuple[list[AttemptText], Summary]]:
    """Attempts case by case, each with the summary of its case alone."""
    cases = {name: tuple(of) for name, of in groupby(results.summary.cases, key=lambda case: case.case)}
    for name, group in groupby(attempts, key=lambda tried: tried.case.id):
        yield list(group), msgspec.structs.replace(results.summary, cases=cases[name])
