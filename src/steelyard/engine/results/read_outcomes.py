"""Outcomes from files of other tools and from our own runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard import outcomes
from steelyard.analysis.counts import OutcomeTallies, Tally
from steelyard.analysis.summary import Summary, summarise
from steelyard.errors import InputError, Problem, StoreError
from steelyard.outcomes.byte_chunks import OUTCOME_FILE_SUFFIXES
from steelyard.plugins import explain_plugin_errors, load_plugin, plugin_for_suffix
from steelyard.store.journal import StoredRun
from steelyard.store.locate import DEFAULT_RUNS_FOLDER, find_run
from steelyard.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class ColumnOverrides(NamedTuple):
    """What the columns of a table are called, where the user says so."""

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
    for kind in sorted(kinds.keys() - {"fixes"}):
        with _collect_problems(wrong):
            found.append(_read_with_plugin(kind, kinds[kind], columns.named() if kind == "table" else {}))
    if wrong:
        raise InputError(wrong)
    tallies = [tally for each in found for tally in each.tallies]
    twice = [model for model, count in Counter(tally.model for tally in tallies).items() if count > 1]
    if twice:
        raise InputError(
            f'"{printable(twice[0])}" is in several of these; give them one at a time, or rename one of them'
        )
    return OutcomeTallies(tuple(tallies), tuple(problem for each in found for problem in each.problems))


def _read_with_plugin(kind: str, paths: Sequence[str], columns: Mapping[str, str]) -> OutcomeTallies:
    """What the reader of this name finds in the files."""
    read = load_plugin("outcomes", kind)
    with explain_plugin_errors("outcomes", kind, ", ".join(map(printable, paths))):
        tallies = read(paths, **columns)
        if not isinstance(tallies, OutcomeTallies):
            raise TypeError(f"it returned {type(tallies).__name__}, not OutcomeTallies")
    return tallies


@contextmanager
def _collect_problems(problems: list[Problem]) -> Iterator[None]:
    """Keep what is wrong until everything has been looked at."""
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
        what = "not outcomes that are known; name the columns, such as --case id --passed ok"
        raise InputError(f"{printable(source)}: {what}")
    return kind


def _run_folder(source: str, root: Path) -> Path | None:
    """The folder of a run; None where the source is a file."""
    where = printable(source)
    try:
        if Path(source).is_file():
            return None
        if Path(source).exists() and not Path(source).is_dir():
            raise InputError(f"{where}: neither a file nor a run folder; write what it gives to a file first")
        return find_run(source, root)
    except InputError:
        if Path(source).suffix.lower() in OUTCOME_FILE_SUFFIXES and not Path(source).exists():
            raise InputError(f"{where}: no such file, and no run of that name under {root}") from None
        raise


def _run_outcomes(folder: Path) -> OutcomeTallies:
    """How a run came out; warnings say what of its journal cannot be read."""
    stored = StoredRun(folder)
    summary = summarise(stored.info, stored.cases, stored.facts())
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
        )
