"""Outcomes of repairs: a CSV file per model, and a list of the problems that were to be repaired."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.counts import Outcomes
from steelyard.errors import shown
from steelyard.outcomes.byte_chunks import files, model_names, reported
from steelyard.outcomes.codes import EXPECTED, FALSE, MISSING, Codes, outcomes
from steelyard.outcomes.counter import Counting, Rows
from steelyard.outcomes.csv_columns import Sheet
from steelyard.outcomes.duplicates import without_repeats
from steelyard.outcomes.problems import Complaints, File, Unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

ENDINGS = (("_fixes_outcomes", "_fixes", "_outcomes"), ("_synthetic",))
OID, SPECIFIC, ITERATION = "oid", "specific_oid", "iteration_id"
UNKNOWN, AMBIGUOUS = -1, -2


class Problems(NamedTuple):
    """What was to be repaired, as a problems file lists it."""

    file: File
    ids: dict[str, int]
    """The cases, with the line of each: by specific_oid where the file has it, else by oid."""
    oids: dict[str, list[str]]
    """The cases that an oid stands for: several where it collides."""
    is_specific: bool
    """Whether the file has specific_oid."""


class Fixes(NamedTuple):
    """The rows of a file, before it is known which cases there are."""

    file: File
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
) -> Outcomes:
    """How repairs came out: one tally per file of fixes, in the order given, all with the same cases.

    The cases are the problems in the order of the problems file; without one, those that the fixes name, in the order
    of their first appearance. An empty outcome is wrong, or a missing one where it may be unknown. Raises an InputError
    with all that is wrong in all files.
    """
    complaints = Complaints()
    given = files(paths, complaints)
    listed = None
    if problems is not None:
        # a number before all others, so that its complaints come first
        file = File(-1, Path(problems))
        with reported(file, complaints):
            listed = _listed(file, complaints)
    pairs, iterations = Codes(), Codes()
    read = []
    for file in given:
        with reported(file, complaints):
            worst = MISSING if may_be_unknown else FALSE
            read.append(_fixes(file, passed, worst, pairs, iterations, complaints))
    cases, case_of = _cases([pair.partition("\0")[::2] for pair in pairs.numbers], listed)
    counting = Counting()
    batches = [_rows(number, one, case_of, list(pairs.numbers), listed, complaints) for number, one in enumerate(read)]
    case_names, iteration_names = list(cases.numbers), list(iterations.numbers)

    def attempt(_: int, case: int, iteration: int) -> str:
        return f"{shown(case_names[case])}, iteration {shown(iteration_names[iteration])}"

    for rows in without_repeats(batches, attempt, complaints):
        counting.add(rows)
    warnings = complaints.settled()
    models = {model: number for number, model in enumerate(model_names(given, *ENDINGS))}
    return Outcomes(counting.tallies(models, cases.numbers), warnings)


def _listed(file: File, complaints: Complaints) -> Problems:
    """What a problems file lists."""
    sheet = Sheet(file, complaints)
    is_specific = SPECIFIC in sheet.columns
    wanted = [OID, SPECIFIC] if is_specific else [OID]
    sheet.require(wanted)
    ids: dict[str, int] = {}
    oids: dict[str, list[str]] = {}
    for part in sheet.parts([OID, wanted[-1]]):
        for oid, specific, line in zip(*part.columns, part.lines.tolist(), strict=True):
            name = specific.strip() or oid.strip()
            if not oid.strip():
                complaints.add(file, "empty oid", "oid is empty", [line])
            elif name in ids:
                what = f"{shown(name)} stands on line {ids[name]} already; counted once"
                complaints.add(file, "counted once", what, [line], fatal=False)
            else:
                ids[name] = line
                oids.setdefault(oid.strip(), []).append(name)
    if not ids:
        raise Unreadable("lists no problems")
    return Problems(file, ids, oids, is_specific)


def _fixes(file: File, passed: str, worst: int, pairs: Codes, iterations: Codes, complaints: Complaints) -> Fixes:
    """The rows of a file of fixes; a row may say as little as `worst`."""
    import numpy as np

    sheet = Sheet(file, complaints)
    chosen = [OID, ITERATION, passed, *([SPECIFIC] if SPECIFIC in sheet.columns else [])]
    sheet.require(chosen)
    columns: list[list[npt.NDArray[Any]]] = [[], [], [], []]
    with reported(file, complaints):
        for part in sheet.parts(chosen):
            lines = part.lines
            oids, numbers, texts = part.columns[:3]
            found = outcomes(texts)
            good = found >= worst
            if not good.all():
                text = texts[int(np.argmin(good))].strip()
                what = f"{passed} is {shown(text) if text else 'empty'}; expected {EXPECTED}"
                complaints.add(file, "outcome", what, lines[~good])
            named = oids
            if SPECIFIC in chosen:
                # no text that we read holds a NUL
                pieces = zip(oids, part.columns[3], strict=True)
                named = [f"{oid.strip()}\0{specific.strip()}" if oid.strip() else "" for oid, specific in pieces]
            arrays = lines, pairs.array(named), iterations.array(numbers), found
            for name, codes in zip((OID, ITERATION), arrays[1:], strict=False):
                if (codes < 0).any():
                    complaints.add(file, f"empty {name}", f"{name} is empty", lines[codes < 0])
                    good &= codes >= 0
            for column, values in zip(columns, arrays, strict=True):
                column.append(values[good])
        if not sum(map(len, columns[0])):
            complaints.add(file, "no rows", "a header without rows: every problem is unscored", fatal=False)
    return Fixes(file, *(np.concatenate([np.zeros(0, np.int32), *column]) for column in columns))


def _cases(pairs: Sequence[tuple[str, str]], listed: Problems | None) -> tuple[Codes, list[int]]:
    """The cases, and the case of every pair of oid and specific_oid.

    An oid may stand for several problems; specific_oid then says which. A row that has none belongs to the only one.
    """
    specifics: dict[str, dict[str, None]] = {}
    if listed and listed.is_specific:
        specifics = {oid: dict.fromkeys(ids) for oid, ids in listed.oids.items()}
    else:
        for oid, specific in pairs:
            specifics.setdefault(oid, {}).update({specific: None} if specific else {})
    cases = Codes()
    if listed and listed.is_specific:
        cases.array(listed.ids)
    elif listed:
        for oid in listed.oids:
            cases.array(specifics.get(oid) or [oid])
    case_of = []
    for oid, specific in pairs:
        if listed and (specific not in listed.ids if listed.is_specific and specific else oid not in listed.oids):
            case_of.append(UNKNOWN)
        elif specific:
            case_of.append(cases[specific])
        elif len(specifics[oid]) > 1:
            case_of.append(AMBIGUOUS)
        else:
            case_of.append(cases[next(iter(specifics[oid]), oid)])
    return cases, case_of


def _rows(
    model: int,
    read: Fixes,
    case_of: Sequence[int],
    pairs: Sequence[str],
    listed: Problems | None,
    complaints: Complaints,
) -> Rows:
    """The rows of the problems that count."""
    import numpy as np

    cases = np.array(case_of, np.int32)[read.problems]
    for reason in (UNKNOWN, AMBIGUOUS):
        if len(chosen := np.flatnonzero(cases == reason)):
            oid, _, specific = pairs[int(read.problems[chosen[0]])].partition("\0")
            if reason == AMBIGUOUS:
                what = f"oid {shown(oid)} stands for several problems, and no specific_oid says which"
            elif specific and listed and listed.is_specific:
                what = f"specific_oid {shown(specific)} is not in {listed.file.name}; ignored"
            else:
                what = f"oid {shown(oid)} is not in {listed.file.name if listed else ''}; ignored"
            complaints.add(read.file, f"case {reason}", what, read.lines[chosen], fatal=reason == AMBIGUOUS)
    good = cases >= 0
    lines, cases, found, numbers = (values[good] for values in (read.lines, cases, read.outcomes, read.iterations))
    return Rows(read.file, lines, np.full(len(cases), model, np.int32), cases, found, numbers)
