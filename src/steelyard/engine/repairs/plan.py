"""Which outcomes of fixes are known, and which repairs must be judged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard import outcomes
from steelyard.engine.repairs.reader import (
    FIX,
    PASSED,
    REPAIR_COLUMNS,
    FixesFile,
    FixRow,
    OutcomeCells,
    RecordedOutcomes,
    RecordedRepair,
    RepairMode,
    RepairReader,
    brief_outcomes_csv,
    outcomes_csv,
    read_fixes,
    read_problems,
    recorded_outcomes,
)
from steelyard.engine.repairs.recorded_run import RepairJob, RepairOutcomes, UnjudgedRepair
from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.outcomes.columns import OutcomeCsvReader
from steelyard.outcomes.files import OutcomeFile, OutcomeProblemCollector, collect_file_errors
from steelyard.store.files import AtomicFiles, explain_write_errors
from steelyard.text import printable


class EvaluationFolders(NamedTuple):
    """The folders of a config, found."""

    fixes: Path
    output: Path
    clones: Path
    results: tuple[Path, ...]
    """Where outcomes of fixes that carry none are looked for, in this order."""
    problems: Path | None = None
    """The list of problems that the config names."""


class EvaluationPlan(NamedTuple):
    """What to do about files of fixes."""

    ready: Mapping[Path, Path]
    """The outcomes of the files that need no judging."""
    jobs: tuple[RepairJob, ...]
    """The files that do."""
    kept: Mapping[Path, Mapping[int, OutcomeCells]]
    """Outcomes of attempts in these that are not ours, by line."""
    lacking: tuple[UnjudgedRepair, ...]
    """Attempts of the others that have no outcome."""
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""


def plan(
    chosen: Sequence[Path], places: EvaluationFolders, problems: Path | None, mode: RepairMode = "auto"
) -> EvaluationPlan:
    """What is known about files of fixes, and what must be found out; raises an InputError with all that is wrong."""
    complaints = OutcomeProblemCollector()
    listed = None if problems is None else read_problems(problems, complaints)
    reader = RepairReader(places.clones, listed, complaints, mode)
    ready: dict[Path, Path] = {}
    jobs: list[RepairJob] = []
    kept: dict[Path, Mapping[int, OutcomeCells]] = {}
    lacking: list[UnjudgedRepair] = []
    for number, path in enumerate(chosen):
        columns = _columns(path)
        # what has no header at all is for the reader of outcomes to name
        if PASSED in columns or not columns:
            ready[path] = path
            continue
        file = OutcomeFile(number, path)
        there = [place for place in _recorded_places(path, places) if PASSED in _columns(place)]
        if not there and not set(columns) & set(REPAIR_COLUMNS):
            complaints.add(file, "not judged", _not_judged(path, columns, places))
            continue
        tables = [recorded_outcomes(place, number, complaints) for place in there]
        fixes = read_fixes(file, complaints, listed)
        theirs, ours = _split_by_author(fixes, tables)
        if whole := next((one.path for one in tables if all(map(_is_theirs, map(one.of, fixes.rows)))), None):
            ready[path] = whole
        elif not fixes.holds_repairs:
            ready[path] = there[0]
            reason = f"no outcome in {printable(str(there[0]))}, and no repair that could be judged"
            lacking += [UnjudgedRepair(path, row, reason) for row, _ in ours]
        else:
            jobs.append(_job(fixes, ours, reader, places))
            kept[path] = theirs
    errors: list[Problem] = []
    warnings: tuple[Problem, ...] = ()
    try:
        warnings = complaints.settled()
    except InputError as error:
        errors += error.problems
    try:
        # judging takes long, so what is wrong with the others is reported first
        if ready and (jobs or errors):
            outcomes.fixes([*ready.values()], problems, passed=PASSED)
    except InputError as error:
        errors += error.problems
    if not places.clones.is_dir() and any(not job.earlier(repair) for job in jobs for repair in job.repairs):
        what = "no such folder, but repairs of the clones in it must be judged; name it as clones_dir"
        errors.append(Problem(printable(str(places.clones)), 0, what))
    if errors:
        raise InputError(dict.fromkeys(errors))
    return EvaluationPlan(ready, tuple(jobs), kept, tuple(lacking), warnings)


def _recorded_places(path: Path, places: EvaluationFolders) -> list[Path]:
    """Where the outcomes of a file of fixes may be."""
    return [folder / f"{_model(path)}_outcomes.csv" for folder in places.results]


def _model(path: Path) -> str:
    return re.sub(r"(?:_fixes)?[.]csv(?:[.]gz)?$", "", path.name)


def brief_name(name: str) -> str:
    """What the table in three columns is called."""
    return f"{name.removesuffix('_outcomes.csv')}_fixes_outcomes.csv"


def _not_judged(path: Path, columns: Sequence[str], places: EvaluationFolders) -> str:
    there = did_you_mean(PASSED, [printable(column[:80]) for column in columns[:30]])
    looked = " or ".join(printable(str(place)) for place in _recorded_places(path, places))
    return (
        f'not judged: it has no column "{PASSED}" ({there}), there is no {looked} that has one, and it has no repairs '
        f"that could be judged; add the column or that file, or a column {', '.join(REPAIR_COLUMNS[:-1])} or {REPAIR_COLUMNS[-1]}"
    )


def _split_by_author(
    fixes: FixesFile, tables: Sequence[RecordedOutcomes]
) -> tuple[dict[int, OutcomeCells], list[tuple[FixRow, OutcomeCells | None]]]:
    """The outcomes of others, by line, and the attempts that are ours to judge, with our earlier outcomes."""
    theirs: dict[int, OutcomeCells] = {}
    ours: list[tuple[FixRow, OutcomeCells | None]] = []
    for row in fixes.rows:
        recorded = [cells for table in tables if (cells := table.of(row)) is not None]
        foreign = next(filter(_is_theirs, recorded), None)
        if foreign is not None:
            theirs[row.line] = foreign
        else:
            ours.append((row, recorded[0] if recorded else None))
    return theirs, ours


def _is_theirs(cells: OutcomeCells | None) -> bool:
    return cells is not None and not cells.get(FIX)


def _job(
    fixes: FixesFile,
    ours: Iterable[tuple[FixRow, OutcomeCells | None]],
    reader: RepairReader,
    places: EvaluationFolders,
) -> RepairJob:
    repairs: list[RecordedRepair] = []
    known: dict[int, OutcomeCells] = {}
    for row, cells in ours:
        repair = reader.repair(fixes, row)
        if repair is not None:
            repairs.append(repair)
            known |= {row.line: cells} if cells is not None else {}
    model = _model(fixes.file.path)
    return RepairJob(fixes, model, repairs, known, places.output / f".{model}_outcomes.journal.jsonl")


def write_outcomes(planned: EvaluationPlan, output: Path, judged: RepairOutcomes) -> dict[Path, Path]:
    """Write the tables of outcomes of what was judged here; gives them by file of fixes."""
    written: dict[Path, Path] = {}
    with explain_write_errors(output), AtomicFiles() as fresh:
        output.mkdir(parents=True, exist_ok=True)
        for job in planned.jobs:
            path = job.fixes.file.path
            cells = {**planned.kept[path], **judged.cells[path]}
            rows = [(row, cells[row.line]) for row in job.fixes.rows if row.line in cells]
            written[path] = output / f"{job.model}_outcomes.csv"
            fresh.write(written[path], [outcomes_csv(rows)])
            fresh.write(written[path].with_name(brief_name(written[path].name)), [brief_outcomes_csv(rows)])
        fresh.finish()
        for job in planned.jobs:
            job.old_journal.unlink(missing_ok=True)
    return written


def check_names(jobs: Sequence[RepairJob]) -> None:
    """Refuse two files of fixes whose outcomes would have one name."""
    names = Counter(name for job in jobs for name in (job.model, f"{job.model}_fixes"))
    for name, count in names.items():
        if count > 1:
            raise InputError(f"{printable(name)}_outcomes.csv would be written twice; rename one of the fixes")


def _columns(path: Path) -> list[str]:
    """The header of a CSV file; empty when it cannot be read."""
    columns: list[str] = []
    if path.is_file():
        file = OutcomeFile(0, path)
        with collect_file_errors(file, OutcomeProblemCollector()):
            columns = OutcomeCsvReader(file, OutcomeProblemCollector()).columns
    return columns
