"""Outcomes found by the names that users give them: files of other tools, Parquet in folders and patterns, and our own runs."""

from __future__ import annotations

import glob
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from steelyard import outcomes
from steelyard.analysis.counts import OutcomeTallies, Tally
from steelyard.analysis.summary import Summary, summarise_attempts
from steelyard.comparison.sides import Side, Trials, score_counts
from steelyard.engine.results.attempt_tables import stored_attempt_table
from steelyard.engine.results.headline_cache import stored_headlines
from steelyard.engine.results.query import fact_scores
from steelyard.engine.results.recordings import (
    RECORDED_VERSION,
    counted_tests_digest,
    is_recorded,
    recorded_by,
    recorded_tallies,
)
from steelyard.errors import InputError, Problem, StoreError
from steelyard.outcomes import parquet_counts
from steelyard.outcomes.columns import OutcomeParquetReader
from steelyard.outcomes.files import (
    OUTCOME_FILE_SUFFIXES,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
)
from steelyard.outcomes.parquet_counts import DEFAULT_ATTEMPT_COLUMNS, AttemptColumns, ModelCaseCounts, ParquetSource
from steelyard.outcomes.scores import PLAIN_SCORES, ScoreReading
from steelyard.outcomes.tables import DEFAULT_SCORE_COLUMN, GRADED_COLUMN
from steelyard.plugins import explain_plugin_errors, load_plugin, plugin_for_suffix
from steelyard.records import RECORDED_KIND
from steelyard.store.journal import StoredRun
from steelyard.store.parquet import copied_runs
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER, find_run
from steelyard.text import printable


class CountingOptions(NamedTuple):
    """How attempts are read and counted."""

    columns: AttemptColumns = DEFAULT_ATTEMPT_COLUMNS
    copies: str | None = None
    """Where the copies of runs are kept whose folders do not take them; None for the time of counting."""
    backend: str = "local"
    """The pool whose machines count."""
    ray_address: str = ""
    """The cluster; empty for the one that runs here, otherwise one of this machine alone."""


LOCAL_COUNTING = CountingOptions()


def parquet_outcomes(
    names: Sequence[str], counting: CountingOptions = LOCAL_COUNTING, *, root: Path = DEFAULT_RUNS_FOLDER
) -> OutcomeTallies:
    """The outcomes of the named attempts, case by case; memory grows with the cases, not the attempts.

    A name is a Parquet file, a folder with such files, a pattern, a run, or a folder of runs, which are found by their
    names below `root`.
    """
    factory = load_plugin("pools", counting.backend)
    count_there: Callable[..., ModelCaseCounts] | None = getattr(factory, "count_attempts", None)
    if count_there is None and not getattr(factory, "verifies_here", True):
        raise InputError(f'backend "{counting.backend}" verifies replies but counts no attempts; use --backend local')
    with tempfile.TemporaryDirectory() as scratch:
        sources, warnings = _sources(names, root, Path(scratch).resolve(), counting, elsewhere=count_there is not None)
        if count_there is None:
            found = parquet_counts.counts_from_parquet(sources, counting.columns)
        else:
            found = count_there(sources, counting.columns, counting.ray_address)
        tallies, problems = parquet_counts.outcomes_of(found, sources, counting.columns)
    return OutcomeTallies(tallies, (*(Problem("", 0, warning, fatal=False) for warning in warnings), *problems))


def is_attempts_path(name: str) -> bool:
    """Whether a name is Parquet files or a folder of runs, rather than one run, a baseline or a report."""
    path = Path(name)
    with _explain_read_errors(name):
        if path.is_dir():
            return not (path / "run.json").is_file() and not is_recorded(name)
        if path.exists():
            # readers are asked last, because all of them are imported
            return path.suffix.lower() == ".parquet" and not (path.is_file() and is_recorded(name))
        return path.suffix.lower() == ".parquet" or glob.has_magic(name)


def refuse_graded_runs(name: str) -> None:
    """Refuse a folder of runs that are graded: of these only what passed is counted."""
    folder = Path(name)
    for described in sorted(folder.glob("*/run.json")) if folder.is_dir() else ():
        run = StoredRun(described.parent)
        if any(model.on == "score" for model in stored_headlines(run)):
            raise InputError(
                f"{printable(name)}: {printable(described.parent.name)} is graded, and of a folder of runs what passed is compared; "
                "name one run, pool them with steelyard bless RUN ... --as NAME, or say --on passed"
            )


def is_score_table(name: str, scores: ScoreReading = PLAIN_SCORES, *, is_score_asked: bool = False) -> bool:
    """Whether a name is one Parquet file whose scores are compared: they are asked for or were measured, or nothing says what passed."""
    path = Path(name)
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    try:
        columns = OutcomeParquetReader(OutcomeFile(0, path), OutcomeProblemCollector()).columns
    except (InputError, OSError, UnreadableOutcomesError):
        # counting it says what is wrong
        return False
    return (scores.name or DEFAULT_SCORE_COLUMN) in columns and (
        is_score_asked or GRADED_COLUMN in columns or not set(parquet_counts.DEFAULT_OUTCOME_COLUMNS) & set(columns)
    )


def _sources(
    names: Sequence[str], root: Path, scratch: Path, counting: CountingOptions, *, elsewhere: bool
) -> tuple[list[ParquetSource], list[str]]:
    """The files that names stand for, each once, and notes about those left out.

    `elsewhere`: other machines read them too, so files that only this one can see are refused.
    """
    sources: list[ParquetSource] = []
    warnings: list[str] = []
    wrong: list[Problem] = []
    known: dict[str, str] = {}
    copies = None if counting.copies is None else Path(counting.copies)
    for number, name in enumerate(names):
        try:
            folder = _folder_of_runs(name, root)
            if folder is None:
                files = _files(name)
            else:
                runs, notes = copied_runs(folder, fact_scores, scratch / str(number), copies)
                notes += [
                    f"{run.shown}: left out, because it has replies of other runs from the reply cache, and a reply counts once"
                    for run in runs
                    if run.info.cached_replies and not (folder / "run.json").is_file()
                ]
                runs = [run for run in runs if not run.info.cached_replies or (folder / "run.json").is_file()]
                files = [str(path) for run in runs for path in run.files]
                warnings += notes
                if not files:
                    raise InputError("; ".join(notes) or f"{printable(name)}: no runs here")
                if elsewhere and any(run.place.is_relative_to(scratch) for run in runs):
                    what = "its runs cannot hold copies, which all machines must find"
                    raise InputError(f"{printable(name)}: {what}; keep them in a folder that they share: --copies DIR")
                _refuse_duplicates(name, {f"run {run.info.id}": str(run.shown) for run in runs}, known)
            _refuse_duplicates(name, {os.path.realpath(path): path for path in files}, known)
            sources.append(ParquetSource(name, tuple(files)))
        except InputError as error:
            wrong += error.problems
    if wrong:
        raise InputError(wrong)
    return sources, warnings


def _refuse_duplicates(name: str, things: Mapping[str, str], known: dict[str, str]) -> None:
    """Keep in mind by which name some things were given; an InputError if another one gave one of them."""
    for thing, called in things.items():
        if thing in known:
            raise InputError(f"{printable(called)}: given twice, by {printable(known[thing])} and {printable(name)}")
    known.update(dict.fromkeys(things, name))


def _folder_of_runs(name: str, root: Path) -> Path | None:
    """The folder of a run, or of several; None if the name is Parquet files."""
    path = Path(name)
    with _explain_read_errors(name):
        if path.is_dir():
            is_of_runs = (path / "run.json").is_file() or next(path.glob("*/run.json"), None) is not None
            return path if is_of_runs else None
        if path.exists() or glob.has_magic(name) or path.suffix.lower() == ".parquet":
            return None
    return find_run(name, root)


def _files(name: str) -> list[str]:
    """The Parquet files that a path or a pattern stands for, by absolute paths."""
    path = Path(name)
    with _explain_read_errors(name):
        if path.is_dir():
            found = [each for each in path.rglob("*.parquet") if not _is_hidden(each.relative_to(path))]
        elif path.exists() or not glob.has_magic(name):
            found = [path]
        else:
            found = [Path(each) for each in glob.glob(name, recursive=True)]  # noqa: PTH207  a pattern may be absolute
        # a link is no other file
        real = {os.path.realpath(each): str(each.absolute()) for each in found if not each.is_dir()}
        files = sorted(real.values())
        if not files:
            raise InputError(f"{printable(name)}: no Parquet files there; their names end in .parquet")
        if files == [str(path.absolute())]:
            path.open("rb").close()
    return files


def _is_hidden(path: Path) -> bool:
    """Whether others leave a file out as well: what is being written, and what is not part of the table."""
    return any(part.startswith((".", "_")) for part in path.parts)


@contextmanager
def _explain_read_errors(name: str) -> Iterator[None]:
    """Turn read errors into one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{printable(name)}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{printable(name)}: cannot be read: a NUL in its name") from None


class ColumnOverrides(NamedTuple):
    """The names of a table's columns that the user gives."""

    case: str | None = None
    model: str | None = None
    passed: str | None = None
    sample: str | None = None
    cost: str | None = None
    score: str | None = None

    def named(self) -> dict[str, str]:
        return {meaning: name for meaning, name in self._asdict().items() if name is not None}


def gather(
    sources: Sequence[str],
    *,
    problems: str | None = None,
    fixes: Sequence[str] = (),
    columns: ColumnOverrides = ColumnOverrides(),
    scores: ScoreReading = PLAIN_SCORES,
    keeps_scores: bool = False,
    root: Path = DEFAULT_RUNS_FOLDER,
) -> OutcomeTallies:
    """The outcomes of files and of runs, which are folders, names below the runs' folder, or `latest`.

    Raises an InputError with all that is wrong with all of them.
    """
    kinds: defaultdict[str, list[str]] = defaultdict(list, {"fixes": list(fixes)})
    runs: list[Path] = []
    found: list[OutcomeTallies] = []
    wrong: list[Problem] = []
    for source in sources:
        with _collect_problems(wrong):
            # a score may be one of those that another tool gave
            if not columns._replace(score=None).named() and recorded_by(source):
                kinds[RECORDED_KIND].append(source)
                continue
            folder = _run_folder(source, root)
            if folder is None:
                kinds["table" if columns.named() else _kind(source)].append(source)
            else:
                runs.append(folder)
    if problems and not (kinds["fixes"] or wrong):
        raise InputError("--problems-csv says which problems there are; name outcomes as well, with --fixes-csv")
    if not (runs or any(kinds.values()) or wrong):
        raise InputError("no outcomes; name files or runs, or use --problems-csv and --fixes-csv")
    for run in runs:
        with _collect_problems(wrong):
            found.append(_run_outcomes(run))
    if kinds["fixes"]:
        with _collect_problems(wrong):
            if columns.passed:
                # such as the level of a success, which is known only where there is a target
                found.append(outcomes.fixes(kinds["fixes"], problems, passed=columns.passed, may_be_unknown=True))
            else:
                found.append(outcomes.fixes(kinds["fixes"], problems))
    if kinds[RECORDED_KIND]:
        with _collect_problems(wrong):
            found.append(recorded_tallies(kinds[RECORDED_KIND], scores._replace(name=columns.score)))
    for kind in sorted(kinds.keys() - {"fixes", RECORDED_KIND}):
        with _collect_problems(wrong):
            how = {**columns.named(), "scores": scores, "keeps_scores": keeps_scores} if kind == "table" else {}
            found.append(_read_with_plugin(kind, kinds[kind], how))
    if wrong:
        raise InputError(wrong)
    tallies = [tally for each in found for tally in each.tallies]
    twice = [model for model, count in Counter(tally.model for tally in tallies).items() if count > 1]
    if twice:
        raise InputError(
            f'"{printable(twice[0])}" is in several of these; give them one at a time, or rename one of them'
        )
    return OutcomeTallies(tuple(tallies), tuple(problem for each in found for problem in each.problems))


def _read_with_plugin(kind: str, paths: Sequence[str], columns: Mapping[str, Any]) -> OutcomeTallies:
    """What the reader of this name finds in the files."""
    read = load_plugin("outcomes", kind)
    with explain_plugin_errors("outcomes", kind, ", ".join(map(printable, paths))):
        tallies = read(paths, **columns)
        if not isinstance(tallies, OutcomeTallies):
            raise TypeError(f"it returned {type(tallies).__name__}, not OutcomeTallies")
    return tallies


@contextmanager
def _collect_problems(problems: list[Problem]) -> Iterator[None]:
    """Collect problems until everything has been read."""
    try:
        yield
    except InputError as error:
        problems += error.problems
    except StoreError as error:
        problems.append(Problem("", 0, str(error)))
    except OSError as error:
        problems.append(Problem(printable(str(error.filename)), 0, f"cannot be read: {error.strerror}"))


def _kind(source: str) -> str:
    """The name of the reader of a file: ours by what the file holds, a plug-in's by its suffix."""
    kind = outcomes.kind(source) or plugin_for_suffix("outcomes", Path(source).suffix.lower())
    if not kind:
        what = "not a known format of outcomes; name the columns, such as --case id --passed ok"
        of_attempts = ", or count our own attempts with --attempts" if Path(source).suffix.lower() == ".parquet" else ""
        raise InputError(f"{printable(source)}: {what}{of_attempts}")
    return kind


def _run_folder(source: str, root: Path) -> Path | None:
    """The folder of a run; None if the source is a file."""
    where = printable(source)
    try:
        if Path(source).is_file():
            return None
        if Path(source).exists() and not Path(source).is_dir():
            raise InputError(f"{where}: neither a file nor a run folder; write its content to a file first")
        return find_run(source, root)
    except InputError:
        if Path(source).suffix.lower() in OUTCOME_FILE_SUFFIXES and not Path(source).exists():
            raise InputError(f"{where}: no such file, and no run of that name under {root}") from None
        raise


def _run_outcomes(folder: Path) -> OutcomeTallies:
    """How a run came out; warnings say what of its journal cannot be read."""
    stored = StoredRun(folder)
    info, cases = stored.info, stored.cases
    summary = summarise_attempts(info, cases, stored_attempt_table(stored, info, cases))
    return OutcomeTallies(tuple(_tallies(summary)), tuple(stored.damaged))


def _tallies(summary: Summary) -> Iterator[Tally]:
    for model in summary.models:
        rows = [row for row in summary.cases if (row.model, row.tier) == (model.model, model.tier)]
        yield Tally(
            model=f"{model.model} ({model.tier})" if model.tier else model.model,
            cases=[row.case for row in rows],
            tried=[row.attempts for row in rows],
            passed=[row.correct for row in rows],
            missing=model.missing,
            costs=None if any(row.cost_usd is None for row in rows) else [row.cost_usd or 0.0 for row in rows],
            scores=[row.score for row in rows],
            on=model.on,
        )


def is_counted_file(
    name: str, columns: AttemptColumns = DEFAULT_ATTEMPT_COLUMNS, scores: ScoreReading = PLAIN_SCORES
) -> bool:
    """Whether a name is a file with a row per attempt, in a known format or with columns that the user names."""
    path = Path(name)
    try:
        if not path.is_file():
            return False
    except ValueError:
        # a path with a NUL in it
        return False
    is_named = (columns != DEFAULT_ATTEMPT_COLUMNS or scores.name is not None) and (
        path.suffix.lower() in OUTCOME_FILE_SUFFIXES
    )
    return is_named or bool(outcomes.kind(path) or plugin_for_suffix("outcomes", path.suffix.lower()))


def counted_side(
    name: str, columns: AttemptColumns = DEFAULT_ATTEMPT_COLUMNS, scores: ScoreReading = PLAIN_SCORES
) -> Side:
    """The attempts that a file counts; who judged them is not known, so a run of ours is not compared with them."""
    asked = ColumnOverrides(
        **{
            meaning: given
            for meaning, given in columns._asdict().items()
            if given != getattr(DEFAULT_ATTEMPT_COLUMNS, meaning)
        }
    )
    is_fixes = outcomes.kind(name) == "fixes" and not asked._replace(passed=None).named()
    tallies, problems = gather(
        [] if is_fixes else [name],
        fixes=[name] if is_fixes else (),
        columns=asked._replace(score=scores.name),
        scores=scores,
        keeps_scores=True,
    )
    if not any(sum(tally.tried) or tally.missing for tally in tallies):
        raise InputError(f"{printable(name)}: no attempts in it")
    return Side(
        name=name,
        rule="code",
        models={tally.model: _trials(tally) for tally in tallies},
        is_scored=any(tally.every_score is not None for tally in tallies),
        warnings=tuple(map(str, problems)),
    )


def _trials(tally: Tally) -> tuple[Trials, ...]:
    """The attempts of one model, by case; cases that only another model of the file has are left out."""
    tests = counted_tests_digest()
    missing = tally.missing_by_case
    if missing is None:
        # only their sum is known, and only the sum over the cases is used
        missing = [tally.missing, *[0] * (len(tally.cases) - 1)]
    costs: Sequence[float | None] = tally.costs or [None] * len(tally.cases)
    scores = [score_counts(of_case) for of_case in tally.every_score or ()] or [
        tuple((score, times) for score, times in ((0.0, int(tried - passed)), (1.0, int(passed))) if times)
        for tried, passed in zip(tally.tried, tally.passed, strict=True)
    ]
    every = sorted(zip(tally.cases, tally.tried, tally.passed, missing, costs, scores, strict=True), key=itemgetter(0))
    return tuple(
        Trials(
            case=case,
            tests=tests,
            judged_by=(RECORDED_VERSION,),
            attempts=int(tried),
            passes=int(passed),
            missing=lacking,
            scores=of_case,
            graded=int(tried) if tally.is_graded else 0,
            cost_usd=cost,
        )
        for case, tried, passed, lacking, cost, of_case in every
        if tried or lacking
    )
