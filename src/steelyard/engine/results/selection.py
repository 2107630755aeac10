"""The attempts of a run that somebody wants to see."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.analysis.attempt_texts import AttemptText, StoredAttempts
from steelyard.analysis.summary import Summary
from steelyard.engine.results.stored_results import StoredResults
from steelyard.errors import InputError, did_you_mean
from steelyard.reports.figures import model_label


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
