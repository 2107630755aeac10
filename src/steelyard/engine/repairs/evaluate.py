"""Every model's repairs, judged and added up."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard import outcomes
from steelyard.analysis.counts import OutcomeTallies, Standings, Tally, standings
from steelyard.engine.options import RunOptions
from steelyard.engine.repairs.config import DEFAULT_CONFIG_FILE, EvaluationConfig, brief_json, read_config
from steelyard.engine.repairs.reader import (
    FIX,
    FURTHER_LEVELS,
    LEVEL_COLUMNS,
    PASSED,
    REPAIR_COLUMNS,
    FixRow,
    OutcomeCells,
    RepairMode,
    RepairReader,
    brief_outcomes_csv,
    columns_of,
    outcomes_csv,
    read_fixes,
    read_problems,
    recorded_outcomes,
)
from steelyard.engine.repairs.recorded_run import (
    VALIDATION_SECONDS,
    FixAttempt,
    RepairJob,
    RepairOutcomes,
    UnjudgedRepair,
    judge,
    needed_program,
)
from steelyard.engine.results.conclusion import Conclusion
from steelyard.engine.results.synthetic import (
    DEFAULT_SYNTHETIC_RATES,
    SYNTHETIC_PROBLEMS_FILE,
    SYNTHETIC_TRUTH_FILE,
    synthesize,
    unchanged_files,
)
from steelyard.errors import ExitCode, InputError, Problem, did_you_mean
from steelyard.outcomes.files import OutcomeFile, OutcomeProblemCollector
from steelyard.reports.lists import levels_csv, table_csv
from steelyard.store.files import AtomicFiles, explain_write_errors
from steelyard.text import counted, printable, short_quote

SUMMARY_FILE, LEVELS_FILE = "summary_pass_at_k.csv", "levels_pass_at_k.csv"
RUN_FOLDER = "run"
"""The folder in output_dir with the run that judges repairs."""
FIXES_SUFFIXES = (".csv", ".csv.gz")
NOT_FIXES_FILE = re.compile(
    rf"(?:{re.escape(SYNTHETIC_PROBLEMS_FILE)}|{re.escape(SYNTHETIC_TRUTH_FILE)}|.*_pass_at_k\.csv|.*_outcomes\.csv)(?:\.gz)?"
)
"""Names of problems and of our own output, which are never read as fixes."""
ELAPSED_SECONDS = re.compile(r" after [\d.]+ s\b")
NO_CLONE = re.compile(r'^no clone ".*" in (.*)$')
"""What makes two reasons differ that are the same."""
MAX_UNJUDGED_SHARE = 0.05
"""The share of a model's attempts that may have no verdict before its numbers are inconclusive."""
SYNTHETIC_SUCCESS_RATES = (0.8, 0.6, 0.4, 0.2)
"""The rates of synthetic models, in order, if the config names models."""


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
    """The outcomes of the files whose outcomes stand in one table."""
    jobs: tuple[RepairJob, ...]
    """The other files."""
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""


class RepairEvaluation(NamedTuple):
    """The standings of the models, the warnings, and the files that were written."""

    standings: Standings
    """Models by name."""
    levels: Mapping[str, Standings]
    """The same for further levels of success, of the models whose repairs were judged here and have targets."""
    unjudged: tuple[UnjudgedRepair, ...]
    """Attempts about which nothing could be found out."""
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""
    written: tuple[Path, ...]

    @property
    def conclusive(self) -> bool:
        """False when too much is missing to compare the models."""
        return self.standings.conclusive and not any(
            model.missing > MAX_UNJUDGED_SHARE * (model.attempts + model.missing) for model in self.standings.models
        )

    def conclusion(self) -> Conclusion:
        """The exit code, and what to say beside the standings."""
        notes = [f"note: {note}" for note in self.standings.notes]
        for level, found in self.levels.items():
            notes += [f"note: {level}: {note}" for note in found.notes if note not in self.standings.notes]
        notes += [f"steelyard: {line}" for line in self.excuses()]
        return Conclusion(ExitCode.OK if self.conclusive else ExitCode.CANNOT_TELL, tuple(notes))

    def excuses(self) -> list[str]:
        """Why attempts could not be judged, each cause once with the first attempts that it concerns."""
        concerned: dict[str, list[UnjudgedRepair]] = {}
        for one in self.unjudged:
            reason = NO_CLONE.sub(r"no clone in \1", ELAPSED_SECONDS.sub("", one.reason))
            concerned.setdefault(reason, []).append(one)
        return [
            f"{_counted(those)} not judged: {reason}"
            f"{f' of {_listed(dict.fromkeys(one.repair.clone.name for one in those if one.repair))}' if reason != those[0].reason else ''}"
            for reason, those in concerned.items()
        ]


def evaluate(
    config: Path = DEFAULT_CONFIG_FILE, options: RunOptions = RunOptions(), *, seconds: float = VALIDATION_SECONDS
) -> RepairEvaluation:
    """Add up every model's repairs, and write `<model>_pass_at_k.csv` for each and summary_pass_at_k.csv for all.

    Repairs without an outcome are judged by the Terraform of this machine, and their outcomes are written as well.
    Nothing is written unless everything can be read and Terraform, if needed, is installed. The same input always
    gives the same bytes.
    """
    asked, warnings = read_config(config)
    with _looking():
        places = _places(config, asked)
        if asked.generate_synthetic_data:
            _make_up(places, asked)
        chosen, unmatched = _chosen(places.fixes, _fixes_files(places.fixes), asked)
        problems = _problems_file(places)
        planned = plan(chosen, places, problems, asked.repair_mode)
    names = Counter(name for job in planned.jobs for name in (job.model, f"{job.model}_fixes"))
    for name, count in names.items():
        if count > 1:
            raise InputError(f"{printable(name)}_outcomes.csv would be written twice; rename one of the fixes")
    judged = judge(planned.jobs, places.output / RUN_FOLDER, options, k=asked.k_values, seconds=seconds)
    tables = _write_outcomes(planned.jobs, places.output, judged)
    read, further = _counts(chosen, planned, judged, problems, places.output)
    found = standings(sorted(read.tallies, key=lambda tally: tally.model), asked.k_values)
    levels = {
        level: standings(sorted(tallies, key=lambda tally: tally.model), asked.k_values)
        for level, tallies in further.items()
        if any(sum(tally.tried) for tally in tallies)
    }
    written = _written(places.output, found, levels)
    return RepairEvaluation(
        found, levels, judged.unjudged, (*warnings, *unmatched, *planned.problems, *read.problems), (*tables, *written)
    )


@contextmanager
def _looking() -> Iterator[None]:
    """Turn a denied look at a file into one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{printable(str(error.filename))}: cannot be read: {error.strerror}") from None


def _places(config: Path, asked: EvaluationConfig) -> EvaluationFolders:
    """Paths are taken from the working directory, or from the config's folder when only that has the fixes."""
    base = Path()
    if not Path(asked.fixes_dir).is_dir():
        beside = config.parent
        if (beside / asked.fixes_dir).is_dir():
            base = beside
        elif not asked.generate_synthetic_data:
            raise InputError(
                f'{printable(str(config))}: "fixes_dir": no folder {short_quote(asked.fixes_dir)} in the working directory, '
                "nor beside this file"
            )
    output = base / asked.output_dir
    results = (output,) if asked.results_dir is None else (base / asked.results_dir, output)
    listed = None if asked.problems_dataset is None else base / asked.problems_dataset
    if listed is not None and not listed.is_file():
        raise InputError(f'{printable(str(config))}: "problems_dataset": no file {printable(str(listed))}')
    return EvaluationFolders(base / asked.fixes_dir, output, base / asked.clones_dir, results, listed)


def _fixes_files(folder: Path) -> list[Path]:
    """The CSV files of a folder that can be fixes, by name; hidden ones are left out."""
    try:
        found = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{printable(str(folder))}: {error.strerror}") from None
    return [
        path
        for path in found
        if path.name.endswith(FIXES_SUFFIXES)
        and not path.name.startswith(".")
        and not NOT_FIXES_FILE.fullmatch(path.name)
        # a link that leads nowhere is not a folder, and the reader will say so
        and (path.is_file() or (path.is_symlink() and not path.exists()))
    ]


def _chosen(folder: Path, present: Sequence[Path], asked: EvaluationConfig) -> tuple[list[Path], list[Problem]]:
    """The files that the config asks for, and a warning about each name that no file has."""
    where = printable(str(folder))
    if not present:
        raise InputError(
            f"{where}: no CSV of fixes here; expected files such as gemini_fixes.csv "
            f"({SYNTHETIC_PROBLEMS_FILE}, {SYNTHETIC_TRUTH_FILE}, *_outcomes.csv and *_pass_at_k.csv are never read as fixes)"
        )
    named = [path for path in present if _is_named(path, asked)]
    chosen = [path for path in named if _is_of_type(path, asked)]
    if not chosen:
        filters = []
        if asked.models:
            filters.append(f'"models" {brief_json(asked.models)} leaves {_listed(path.name for path in named)}')
        if named:
            filters.append(f'"data_type" "{asked.data_type}" leaves nothing')
        there = _listed(path.name for path in present)
        raise InputError(f"{where}: no fixes left to evaluate: of {there}, {', of which '.join(filters)}")
    return chosen, [
        Problem(where, 0, f'"models": no file has {short_quote(model)} in its name', fatal=False)
        for model in asked.models
        if not any(model in path.name for path in present)
    ]


def _is_named(path: Path, asked: EvaluationConfig) -> bool:
    return not asked.models or any(model in path.name for model in asked.models)


def _is_of_type(path: Path, asked: EvaluationConfig) -> bool:
    return asked.data_type == "all" or _is_synthetic(path) == (asked.data_type == "synthetic")


def _is_synthetic(path: Path) -> bool:
    return "synthetic" in path.name


def plan(
    chosen: Sequence[Path], places: EvaluationFolders, problems: Path | None, mode: RepairMode = "auto"
) -> EvaluationPlan:
    """What is known about files of fixes, and what must be found out; raises an InputError with all that is wrong."""
    complaints = OutcomeProblemCollector()
    listed = None if problems is None else read_problems(problems, complaints)
    reader = RepairReader(places.clones, listed, complaints, mode)
    ready: dict[Path, Path] = {}
    jobs: list[RepairJob] = []
    for number, path in enumerate(chosen):
        columns = columns_of(path)
        # what has no header at all is for the reader of outcomes to name
        if PASSED in columns or not columns:
            ready[path] = path
            continue
        file = OutcomeFile(number, path)
        model = re.sub(r"(?:_fixes)?[.]csv(?:[.]gz)?$", "", path.name)
        looked = [folder / f"{model}_outcomes.csv" for folder in places.results]
        there = [place for place in looked if PASSED in columns_of(place)]
        holds_repairs = not set(columns).isdisjoint(REPAIR_COLUMNS)
        if not there and not holds_repairs:
            complaints.add(file, "not judged", _not_judged(columns, looked))
            continue
        tables = [recorded_outcomes(place, number, complaints) for place in there]
        rows = read_fixes(file, complaints, listed)
        if whole := next((table.path for table in tables if all(_is_theirs(table.of(row)) for row in rows)), None):
            ready[path] = whole
            continue
        attempts = []
        for row in rows:
            recorded = [cells for table in tables if (cells := table.of(row)) is not None]
            theirs = next((cells for cells in recorded if _is_theirs(cells) or not holds_repairs), None)
            repair = reader.repair(file, row) if theirs is None and holds_repairs else None
            if repair or theirs or not holds_repairs:
                attempts.append(FixAttempt(row, theirs, recorded[0] if recorded else None, repair))
        jobs.append(RepairJob(file, model, attempts))
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
    owed = (attempt for job in jobs for attempt in job.attempts if attempt.repair and not attempt.earlier)
    if not places.clones.is_dir() and any(owed):
        what = "no such folder, but repairs of the clones in it must be judged; name it as clones_dir"
        errors.append(Problem(printable(str(places.clones)), 0, what))
    if errors:
        raise InputError(dict.fromkeys(errors))
    return EvaluationPlan(ready, tuple(jobs), warnings)


def _not_judged(columns: Sequence[str], looked: Iterable[Path]) -> str:
    there = did_you_mean(PASSED, [printable(column[:80]) for column in columns[:30]])
    return (
        f'not judged: it has no column "{PASSED}" ({there}), there is no {" or ".join(printable(str(place)) for place in looked)} '
        "that has one, and it has no repairs that could be judged; add the column or that file, or a column "
        f"{', '.join(REPAIR_COLUMNS[:-1])} or {REPAIR_COLUMNS[-1]}"
    )


def _is_theirs(cells: OutcomeCells | None) -> bool:
    """Whether an outcome was found by another program."""
    return cells is not None and not cells.get(FIX)


def _write_outcomes(jobs: Sequence[RepairJob], output: Path, judged: RepairOutcomes) -> list[Path]:
    """Write the tables of outcomes of what was judged here."""
    written: list[Path] = []
    with explain_write_errors(output), AtomicFiles() as fresh:
        for job in jobs:
            if not any(attempt.repair for attempt in job.attempts):
                continue
            output.mkdir(parents=True, exist_ok=True)
            rows = [(row, cells) for row, cells in _rows_of(job, judged) if cells]
            for name, text in (
                (f"{job.model}_outcomes.csv", outcomes_csv(rows)),
                (f"{job.model}_fixes_outcomes.csv", brief_outcomes_csv(rows)),
            ):
                fresh.write(output / name, [text])
                written.append(output / name)
        fresh.finish()
    return written


def _rows_of(job: RepairJob, judged: RepairOutcomes) -> list[tuple[FixRow, OutcomeCells]]:
    """The attempts of a file with their outcomes, which are empty where nothing is known."""
    return [(each.row, judged.cells.get((job.file.path, each.row.line), {})) for each in job.attempts]


def _counts(
    chosen: Sequence[Path], planned: EvaluationPlan, judged: RepairOutcomes, problems: Path | None, output: Path
) -> tuple[OutcomeTallies, dict[str, tuple[Tally, ...]]]:
    """The tallies of all models, and by further level those of the models that were judged here."""
    with tempfile.TemporaryDirectory() as aside:
        # a model may be told by the folder of its outcomes
        folder = Path(aside, output.absolute().name)
        folder.mkdir()
        own: dict[Path, Path] = {}
        for job in planned.jobs:
            own[job.file.path] = folder / f"{job.model}_outcomes.csv"
            rows = brief_outcomes_csv(_rows_of(job, judged), LEVEL_COLUMNS)
            own[job.file.path].write_text(rows, "utf-8", newline="")
        sources = [own.get(path) or planned.ready[path] for path in chosen]
        found = outcomes.fixes(sources, problems, passed=PASSED, may_be_unknown=bool(own))
        further = {
            level: outcomes.fixes([*own.values()], problems, passed=column, may_be_unknown=True).tallies
            for column, level in (FURTHER_LEVELS.items() if own else ())
        }
    return found, further


def _make_up(places: EvaluationFolders, asked: EvaluationConfig) -> None:
    """Synthesize outcomes in the folder of the fixes, for the known problems or for synthetic ones."""
    real = [path for path in _fixes_files(places.fixes) if not _is_synthetic(path)]
    # what cannot be read or judged is reported before anything is written
    wanted = [path for path in real if _is_named(path, asked) and _is_of_type(path, asked)]
    needed_program(plan(wanted, places, _problems_file(places), asked.repair_mode).jobs)
    names = {
        name: SYNTHETIC_SUCCESS_RATES[place % len(SYNTHETIC_SUCCESS_RATES)]
        for place, name in enumerate(dict.fromkeys(asked.models))
    }
    problems = _problems_file(places)
    synthesize(
        places.fixes,
        models=names or DEFAULT_SYNTHETIC_RATES,
        samples=min(1000, max(10, *asked.k_values)),
        oids=_oids([problems] if problems else real) if problems or real else None,
    )


def _problems_file(places: EvaluationFolders) -> Path | None:
    """The problems beside the output or the fixes; synthetic ones say nothing about real fixes."""
    if places.problems is not None:
        return places.problems
    real = any(not _is_synthetic(path) for path in _fixes_files(places.fixes))
    for folder in (places.output, places.fixes):
        path = folder / SYNTHETIC_PROBLEMS_FILE
        if path.is_file() and not (real and SYNTHETIC_PROBLEMS_FILE in unchanged_files(folder)):
            return path
    return None


def _counted(unjudged: Sequence[UnjudgedRepair]) -> str:
    """How many attempts, of how many modules, and where the first of them stand."""
    places = [f"{printable(one.fixes.name)}:{one.row.line}" for one in unjudged[:3]]
    more = ", ..." if len(unjudged) > len(places) else ""
    modules = len({one.repair and (one.repair.clone, one.repair.folder) for one in unjudged})
    where = f" in {counted(modules, 'module')}" if modules > 1 else ""
    return f"{counted(len(unjudged), 'attempt')}{where} ({', '.join(places)}{more})"


def _oids(paths: Iterable[Path]) -> list[str]:
    """The problems that some files name; an oid of several problems is left out."""
    complaints = OutcomeProblemCollector()
    named: dict[str, set[str]] = {}
    for number, path in enumerate(paths):
        listed = read_problems(path, complaints, number)
        for oid, names in listed.of_oid.items():
            named.setdefault(oid, set()).update(name for name in names if name != oid)
    complaints.settled()
    return [oid for oid, specifics in named.items() if oid and len(specifics) <= 1]


def _written(folder: Path, found: Standings, levels: Mapping[str, Standings]) -> tuple[Path, ...]:
    """Write what was found, whole files or none."""
    files = {}
    for model in found.models:
        name = f"{printable(model.model).replace(os.sep, '_')}_pass_at_k.csv"
        if name in (SUMMARY_FILE, LEVELS_FILE) or name in files:
            raise InputError(
                f"{printable(name)} would be written twice; rename the fixes of {short_quote(model.model)}"
            )
        files[name] = table_csv(msgspec.structs.replace(found, models=(model,)))
    files[SUMMARY_FILE] = table_csv(found, brief=True)
    if levels:
        files[LEVELS_FILE] = levels_csv(levels)
    with explain_write_errors(folder), AtomicFiles() as fresh:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            fresh.write(folder / name, [text])
        fresh.finish()
    return tuple(folder / name for name in files)


def _listed(names: Iterable[str]) -> str:
    """File names as words: all of a few, the first of many."""
    every = [printable(name) for name in names]
    more = f" and {len(every) - 5} more" if len(every) > 5 else ""
    return ", ".join(every[:5]) + more if every else "nothing"
