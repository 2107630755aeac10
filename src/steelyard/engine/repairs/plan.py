"""Where the outcomes of fixes come from: somebody judged them, or we do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard import outcomes
from steelyard.engine.repairs.outcome_tables import PASSED, Recorded, Verdict, brief_table, recorded, table
from steelyard.engine.repairs.reader import REPAIRS, Attempt, Fixes, Reader, Row, read_fixes, read_problems
from steelyard.engine.repairs.recorded_run import Found, Job, Means, Unjudged, earlier, judge
from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.outcomes.byte_chunks import collect_file_errors
from steelyard.outcomes.csv_columns import OutcomeCsvReader
from steelyard.outcomes.problems import OutcomeFile, OutcomeProblemCollector
from steelyard.store.atomic_files import AtomicFiles, explain_write_errors
from steelyard.text import printable


class Places(NamedTuple):
    """The folders of a config, found."""

    fixes: Path
    output: Path
    clones: Path
    results: tuple[Path, ...]
    """Where outcomes of fixes that carry none are looked for, in this order."""


class Plan(NamedTuple):
    """What is to be done about files of fixes."""

    ready: Mapping[Path, Path]
    """The outcomes of the files that need no judging."""
    jobs: tuple[Job, ...]
    """The files that do."""
    kept: Mapping[Path, Mapping[int, Verdict]]
    """What somebody else found out about attempts in these, by line."""
    lacking: tuple[Unjudged, ...]
    """Attempts of the others that have no outcome."""
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""


def plan(chosen: Sequence[Path], places: Places, problems: Path | None) -> Plan:
    """What is known about files of fixes, and what is to be found out; raises an InputError with all that is wrong."""
    complaints = OutcomeProblemCollector()
    reader = Reader(places.clones, read_problems(problems, complaints), complaints)
    ready: dict[Path, Path] = {}
    jobs: list[Job] = []
    kept: dict[Path, Mapping[int, Verdict]] = {}
    lacking: list[Unjudged] = []
    for number, path in enumerate(chosen):
        columns = _columns(path)
        # what has no header at all is for the reader of outcomes to name
        if PASSED in columns or not columns:
            ready[path] = path
            continue
        file = OutcomeFile(number, path)
        there = [place for place in _recorded_places(path, places) if PASSED in _columns(place)]
        if not there and not set(columns) & set(REPAIRS):
            complaints.add(file, "not judged", _not_judged(path, columns, places))
            continue
        tables = [recorded(place, number, complaints) for place in there]
        fixes = read_fixes(file, complaints)
        theirs, owed = _told_apart(fixes, tables)
        if whole := next((one.path for one in tables if all(map(_is_theirs, map(one.verdict, fixes.rows)))), None):
            ready[path] = whole
        elif not fixes.holds_repairs:
            ready[path] = there[0]
            reason = f"no outcome in {printable(str(there[0]))}, and no repair that could be judged"
            lacking += [Unjudged(path, row, reason) for row, _ in owed]
        else:
            jobs.append(_job(fixes, owed, reader, places))
            kept[path] = theirs
    errors: list[Problem] = []
    warnings: tuple[Problem, ...] = ()
    try:
        warnings = complaints.settled()
    except InputError as error:
        errors += error.problems
    try:
        # judging takes long, so that what is wrong with the others is said first
        if ready and (jobs or errors):
            outcomes.fixes([*ready.values()], problems, passed=PASSED)
    except InputError as error:
        errors += error.problems
    if not places.clones.is_dir() and any(not earlier(job, attempt) for job in jobs for attempt in job.attempts):
        what = "no such folder, but repairs of the clones in it are to be judged; name it as clones_dir"
        errors.append(Problem(printable(str(places.clones)), 0, what))
    if errors:
        raise InputError(dict.fromkeys(errors))
    return Plan(ready, tuple(jobs), kept, tuple(lacking), warnings)


def _recorded_places(path: Path, places: Places) -> list[Path]:
    """Where the outcomes of a file of fixes may be."""
    return [folder / f"{_model(path)}_outcomes.csv" for folder in places.results]


def _model(path: Path) -> str:
    return re.sub(r"(?:_fixes)?[.]csv(?:[.]gz)?$", "", path.name)


def brief_name(name: str) -> str:
    """What the table in three columns is called."""
    return f"{name.removesuffix('_outcomes.csv')}_fixes_outcomes.csv"


def _not_judged(path: Path, columns: Sequence[str], places: Places) -> str:
    there = did_you_mean(PASSED, [printable(column[:80]) for column in columns[:30]])
    looked = " or ".join(printable(str(place)) for place in _recorded_places(path, places))
    return (
        f'not judged: it has no column "{PASSED}" ({there}), there is no {looked} that has one, and it has no repairs '
        f"that could be judged; add the column or that file, or a column {', '.join(REPAIRS[:-1])} or {REPAIRS[-1]}"
    )


def _told_apart(
    fixes: Fixes, tables: Sequence[Recorded]
) -> tuple[dict[int, Verdict], list[tuple[Row, Verdict | None]]]:
    """What somebody else judged, by line, and the attempts that are ours to judge, with what we found out earlier."""
    theirs: dict[int, Verdict] = {}
    owed: list[tuple[Row, Verdict | None]] = []
    for row in fixes.rows:
        told = [verdict for one in tables if (verdict := one.verdict(row)) is not None]
        foreign = next(filter(_is_theirs, told), None)
        if foreign is not None:
            theirs[row.line] = foreign
        else:
            owed.append((row, told[0] if told else None))
    return theirs, owed


def _is_theirs(verdict: Verdict | None) -> bool:
    return verdict is not None and not verdict.fix


def _job(fixes: Fixes, owed: Iterable[tuple[Row, Verdict | None]], reader: Reader, places: Places) -> Job:
    attempts: list[Attempt] = []
    known: dict[int, Verdict] = {}
    for row, verdict in owed:
        attempt = reader.attempt(fixes, row)
        if attempt is not None:
            attempts.append(attempt)
            known |= {row.line: verdict} if verdict is not None else {}
    return Job(fixes, attempts, known, places.output / f".{_model(fixes.file.path)}_outcomes.journal.jsonl")


def judged(planned: Plan, places: Places, means: Means) -> tuple[dict[Path, Path], tuple[Unjudged, ...]]:
    """Judge what is to be judged, and write it down: the tables of outcomes by file of fixes, and what is missing."""
    own: dict[Path, Path] = {}
    lacking = [*planned.lacking]
    if not planned.jobs:
        return own, planned.lacking

    def write(found: Found) -> None:
        with explain_write_errors(places.output), AtomicFiles() as fresh:
            for job in planned.jobs:
                path = job.fixes.file.path
                verdicts = {**planned.kept[path], **found.verdicts[path]}
                judged = [(row, verdicts[row.line]) for row in job.fixes.rows if row.line in verdicts]
                own[path] = places.output / f"{_model(path)}_outcomes.csv"
                fresh.write(own[path], [table(judged)])
                fresh.write(own[path].with_name(brief_name(own[path].name)), [brief_table(judged)])
            fresh.finish()
        lacking.extend(found.unjudged)

    _check_names(planned.jobs)
    judge(planned.jobs, means, write)
    return own, tuple(lacking)


def _check_names(jobs: Sequence[Job]) -> None:
    """Refuse two files of fixes whose outcomes would have one name."""
    names = Counter(
        name for job in jobs for name in (_model(job.fixes.file.path), f"{_model(job.fixes.file.path)}_fixes")
    )
    for name, count in names.items():
        if count > 1:
            raise InputError(f"{printable(name)}_outcomes.csv would be written twice; rename one of the fixes")


def _columns(path: Path) -> list[str]:
    """The header of a CSV file; empty when there is none that can be read."""
    columns: list[str] = []
    if path.is_file():
        file = OutcomeFile(0, path)
        with collect_file_errors(file, OutcomeProblemCollector()):
            columns = OutcomeCsvReader(file, OutcomeProblemCollector()).columns
    return columns
