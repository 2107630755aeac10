"""Outcomes of repairs: a CSV file per model, and a list of the problems to repair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.counts import OutcomeTallies
from steelyard.outcomes.cells import EXPECTED_BOOLEAN_TEXT, FALSE_CODE, MISSING_CODE, NameCodes, boolean_codes
from steelyard.outcomes.columns import OutcomeCsvReader
from steelyard.outcomes.counter import OutcomeCounter, OutcomeRows, without_repeats
from steelyard.outcomes.files import (
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    collect_file_errors,
    files,
    model_names,
)
from steelyard.text import short_quote

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

FIXES_FILE_ENDINGS = (("_fixes_outcomes", "_fixes", "_outcomes"), ("_synthetic",))
OID_COLUMN, SPECIFIC_OID_COLUMN, ITERATION_COLUMN = "oid", "specific_oid", "iteration_id"
UNKNOWN_CASE_CODE, AMBIGUOUS_CASE_CODE = -1, -2


class ListedRepairProblems(NamedTuple):
    """The problems to repair, as a problems file lists them."""

    file: OutcomeFile
    ids: dict[str, int]
    """The cases, with the line of each: by specific_oid where the file has it, otherwise by oid."""
    oids: dict[str, list[str]]
    """The cases that an oid stands for: several where it collides."""
    is_specific: bool
    """Whether the file has specific_oid."""


class FixOutcomeRows(NamedTuple):
    """The rows of a file, before it is known which cases there are."""

    file: OutcomeFile
    lines: npt.NDArray[Any]
    problems: npt.NDArray[Any]
    iterations: npt.NDArray[Any]
    outcomes: npt.NDArray[Any]


def fixes(
    paths: Sequence[str | Path],
    problems: str | Path | None = None,
    *,
    passed: str = "plausible_fix",
    may_be_unknown: bool = False,
) -> OutcomeTallies:
    """How repairs came out: one tally per file of fixes, in the order given, all with the same cases.

    The cases are the problems in the order of the problems file; without one, those that the fixes name, in the order
    of their first appearance. An empty outcome is wrong, or a missing one where it may be unknown. Raises an InputError
    with all that is wrong in all files.
    """
    complaints = OutcomeProblemCollector()
    given = files(paths, complaints)
    listed = None
    if problems is not None:
        # a number before all others, so that its complaints come first
        file = OutcomeFile(-1, Path(problems))
        with collect_file_errors(file, complaints):
            listed = _listed_problems(file, complaints)
    pairs, iterations = NameCodes(), NameCodes()
    read = []
    for file in given:
        with collect_file_errors(file, complaints):
            worst = MISSING_CODE if may_be_unknown else FALSE_CODE
            read.append(_fixes(file, passed, worst, pairs, iterations, complaints))
    cases, case_of = _cases([pair.partition("\0")[::2] for pair in pairs.numbers], listed)
    counting = OutcomeCounter()
    batches = [_rows(number, one, case_of, list(pairs.numbers), listed, complaints) for number, one in enumerate(read)]
    case_names, iteration_names = list(cases.numbers), list(iterations.numbers)

    def attempt(_: int, case: int, iteration: int) -> str:
        return f"{short_quote(case_names[case])}, iteration {short_quote(iteration_names[iteration])}"

    for rows in without_repeats(batches, attempt, complaints):
        counting.add(rows)
    warnings = complaints.settled()
    models = {model: number for number, model in enumerate(model_names(given, *FIXES_FILE_ENDINGS))}
    return OutcomeTallies(counting.tallies(models, cases.numbers), warnings)


def _listed_problems(file: OutcomeFile, complaints: OutcomeProblemCollector) -> ListedRepairProblems:
    """What a problems file lists."""
    sheet = OutcomeCsvReader(file, complaints)
    is_specific = SPECIFIC_OID_COLUMN in sheet.columns
    wanted = [OID_COLUMN, SPECIFIC_OID_COLUMN] if is_specific else [OID_COLUMN]
    sheet.require(wanted)
    ids: dict[str, int] = {}
    oids: dict[str, list[str]] = {}
    for part in sheet.parts([OID_COLUMN, wanted[-1]]):
        for oid, specific, line in zip(*part.columns, part.lines.tolist(), strict=True):
            name = specific.strip() or oid.strip()
            if not oid.strip():
                complaints.add(file, "empty oid", "oid is empty", [line])
            elif name in ids:
                what = f"{short_quote(name)} is already on line {ids[name]}; counted once"
                complaints.add(file, "counted once", what, [line], fatal=False)
            else:
                ids[name] = line
                oids.setdefault(oid.strip(), []).append(name)
    if not ids:
        raise UnreadableOutcomesError("lists no problems")
    return ListedRepairProblems(file, ids, oids, is_specific)


def _fixes(
    file: OutcomeFile,
    passed: str,
    worst: int,
    pairs: NameCodes,
    iterations: NameCodes,
    complaints: OutcomeProblemCollector,
) -> FixOutcomeRows:
    """The rows of a file of fixes; a row may say as little as `worst`."""
    import numpy as np

    sheet = OutcomeCsvReader(file, complaints)
    chosen = [
        OID_COLUMN,
        ITERATION_COLUMN,
        passed,
        *([SPECIFIC_OID_COLUMN] if SPECIFIC_OID_COLUMN in sheet.columns else []),
    ]
    sheet.require(chosen)
    columns: list[list[npt.NDArray[Any]]] = [[], [], [], []]
    with collect_file_errors(file, complaints):
        for part in sheet.parts(chosen):
            lines = part.lines
            oids, numbers, texts = part.columns[:3]
            found = boolean_codes(texts)
            good = found >= worst
            if not good.all():
                text = texts[int(np.argmin(good))].strip()
                what = f"{passed} is {short_quote(text) if text else 'empty'}; expected {EXPECTED_BOOLEAN_TEXT}"
                complaints.add(file, "outcome", what, lines[~good])
            named = oids
            if SPECIFIC_OID_COLUMN in chosen:
                # no text that we read holds a NUL
                pieces = zip(oids, part.columns[3], strict=True)
                named = [f"{oid.strip()}\0{specific.strip()}" if oid.strip() else "" for oid, specific in pieces]
            arrays = lines, pairs.array(named), iterations.array(numbers), found
            for name, codes in zip((OID_COLUMN, ITERATION_COLUMN), arrays[1:], strict=False):
                if (codes < 0).any():
                    complaints.add(file, f"empty {name}", f"{name} is empty", lines[codes < 0])
                    good &= codes >= 0
            for column, values in zip(columns, arrays, strict=True):
                column.append(values[good])
        if not sum(map(len, columns[0])):
            complaints.add(file, "no rows", "a header without rows: every problem is unscored", fatal=False)
    return FixOutcomeRows(file, *(np.concatenate([np.zeros(0, np.int32), *column]) for column in columns))


def _cases(pairs: Sequence[tuple[str, str]], listed: ListedRepairProblems | None) -> tuple[NameCodes, list[int]]:
    """The cases, and the case of every pair of oid and specific_oid.

    An oid may belong to several problems; specific_oid then says which. A row without one belongs to the only one.
    """
    specifics: dict[str, dict[str, None]] = {}
    if listed and listed.is_specific:
        specifics = {oid: dict.fromkeys(ids) for oid, ids in listed.oids.items()}
    else:
        for oid, specific in pairs:
            specifics.setdefault(oid, {}).update({specific: None} if specific else {})
    cases = NameCodes()
    if listed and listed.is_specific:
        cases.array(listed.ids)
    elif listed:
        for oid in listed.oids:
            cases.array(specifics.get(oid) or [oid])
    case_of = []
    for oid, specific in pairs:
        if listed and (specific not in listed.ids if listed.is_specific and specific else oid not in listed.oids):
            case_of.append(UNKNOWN_CASE_CODE)
        elif specific:
            case_of.append(cases[specific])
        elif len(specifics[oid]) > 1:
            case_of.append(AMBIGUOUS_CASE_CODE)
        else:
            case_of.append(cases[next(iter(specifics[oid]), oid)])
    return cases, case_of


def _rows(
    model: int,
    read: FixOutcomeRows,
    case_of: Sequence[int],
    pairs: Sequence[str],
    listed: ListedRepairProblems | None,
    complaints: OutcomeProblemCollector,
) -> OutcomeRows:
    """The rows of the problems that count."""
    import numpy as np

    cases = np.array(case_of, np.int32)[read.problems]
    for reason in (UNKNOWN_CASE_CODE, AMBIGUOUS_CASE_CODE):
        if len(chosen := np.flatnonzero(cases == reason)):
            oid, _, specific = pairs[int(read.problems[chosen[0]])].partition("\0")
            if reason == AMBIGUOUS_CASE_CODE:
                what = f"oid {short_quote(oid)} means several problems, and no specific_oid says which"
            elif specific and listed and listed.is_specific:
                what = f"specific_oid {short_quote(specific)} is not in {listed.file.name}; ignored"
            else:
                what = f"oid {short_quote(oid)} is not in {listed.file.name if listed else ''}; ignored"
            complaints.add(read.file, f"case {reason}", what, read.lines[chosen], fatal=reason == AMBIGUOUS_CASE_CODE)
    good = cases >= 0
    lines, cases, found, numbers = (values[good] for values in (read.lines, cases, read.outcomes, read.iterations))
    return OutcomeRows(read.file, lines, np.full(len(cases), model, np.int32), cases, found, numbers)
