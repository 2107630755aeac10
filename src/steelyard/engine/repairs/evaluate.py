"""Every model's repairs, judged and added up."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard import outcomes
from steelyard.analysis.counts import Standings, Tally, standings
from steelyard.engine.options import RunOptions
from steelyard.engine.repairs.config import DEFAULT_CONFIG_FILE, EvaluationConfig, brief_json, read_config
from steelyard.engine.repairs.plan import EvaluationFolders, brief_name, check_names, plan, write_outcomes
from steelyard.engine.repairs.reader import FURTHER_LEVELS, PASSED, read_problems
from steelyard.engine.repairs.recorded_run import VALIDATION_SECONDS, UnjudgedRepair, judge, needed_program
from steelyard.engine.results.conclusion import Conclusion
from steelyard.engine.results.synthetic import (
    DEFAULT_SYNTHETIC_RATES,
    SYNTHETIC_PROBLEMS_FILE,
    SYNTHETIC_TRUTH_FILE,
    synthesize,
    unchanged_files,
)
from steelyard.errors import ExitCode, InputError, Problem
from steelyard.outcomes.files import OutcomeProblemCollector
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
"""What makes two reasons differ that are the same."""
MAX_UNJUDGED_SHARE = 0.05
"""The share of a model's attempts that may have no verdict before its numbers are inconclusive."""
SYNTHETIC_SUCCESS_RATES = (0.8, 0.6, 0.4, 0.2)
"""The rates of synthetic models, in order, if the config names models."""


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
        uncloned: dict[Path, list[UnjudgedRepair]] = {}
        for one in self.unjudged:
            if one.module is not None and not one.is_cloned:
                uncloned.setdefault(one.module.root.parent, []).append(one)
            else:
                concerned.setdefault(ELAPSED_SECONDS.sub("", one.reason), []).append(one)
        for folder, those in uncloned.items():
            names = dict.fromkeys(one.module.root.name for one in those if one.module)
            concerned[f"no clone in {printable(str(folder))} of {_listed(names)}"] = those
        return [f"{_counted(those)} not judged: {reason}" for reason, those in concerned.items()]


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
    own: dict[Path, Path] = {}
    lacking = planned.lacking
    if planned.jobs:
        check_names(planned.jobs)
        judged = judge(planned.jobs, places.output / RUN_FOLDER, options, k=asked.k_values, seconds=seconds)
        own = write_outcomes(planned, places.output, judged)
        lacking += judged.unjudged
    sources = [own.get(path) or planned.ready[path] for path in chosen]
    read = outcomes.fixes(sources, problems, passed=PASSED)
    tallies = _with_unjudged(chosen, read.tallies, lacking)
    found = standings(sorted(tallies, key=lambda tally: tally.model), asked.k_values)
    levels = _levels([path for path in chosen if path in own], own, problems, lacking, asked.k_values)
    written = _written(places.output, found, levels)
    tables = [path.with_name(name) for path in own.values() for name in (path.name, brief_name(path.name))]
    return RepairEvaluation(
        found, levels, lacking, (*warnings, *unmatched, *planned.problems, *read.problems), (*tables, *written)
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
    modules = len({one.module for one in unjudged})
    where = f" in {counted(modules, 'module')}" if modules > 1 else ""
    return f"{counted(len(unjudged), 'attempt')}{where} ({', '.join(places)}{more})"


def _with_unjudged(paths: Sequence[Path], tallies: Sequence[Tally], lacking: Sequence[UnjudgedRepair]) -> list[Tally]:
    """The tallies of files of fixes, in which what is missing is not forgotten: neither attempts nor whole problems."""
    missing = Counter(one.fixes for one in lacking)
    known = set(tallies[0].cases)
    of_oid = {one.row.oid: one.row.specific for one in lacking if one.row.specific}
    # a problem that is listed by its oid is there already
    unlisted = [one.row for one in lacking if one.row.oid not in known]
    problems = dict.fromkeys(row.specific or of_oid.get(row.oid, row.oid) for row in unlisted)
    absent = [problem for problem in problems if problem not in known]
    return [
        tally._replace(
            cases=[*tally.cases, *absent],
            tried=[*tally.tried, *(0 for _ in absent)],
            passed=[*tally.passed, *(0 for _ in absent)],
            missing=tally.missing + missing[path],
        )
        for path, tally in zip(paths, tallies, strict=True)
    ]


def _levels(
    paths: Sequence[Path],
    own: Mapping[Path, Path],
    problems: Path | None,
    lacking: Sequence[UnjudgedRepair],
    sizes: Sequence[int],
) -> dict[str, Standings]:
    """Where models stand at each further level; only the levels that some target makes known."""
    found = {}
    for column, level in FURTHER_LEVELS.items() if paths else ():
        read = outcomes.fixes([own[path] for path in paths], problems, passed=column, may_be_unknown=True)
        tallies = _with_unjudged(paths, read.tallies, [one for one in lacking if one.fixes in own])
        if any(sum(tally.tried) for tally in tallies):
            found[level] = standings(sorted(tallies, key=lambda tally: tally.model), sizes)
    return found


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
