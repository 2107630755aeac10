"""Outcomes from wherever they are: other people's files and our own runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard import outcomes, store
from steelyard.errors import InputError
from steelyard.summary import summarise
from steelyard.tally import Outcomes, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Columns(NamedTuple):
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
    columns: Columns = Columns(),
    root: Path = store.RUNS,
) -> Outcomes:
    """The outcomes of files and of runs, which are folders, names below the runs' folder, or `latest`."""
    kinds: dict[str, list[str]] = {"fixes": list(fixes), "results": [], "table": []}
    runs: list[Path] = []
    for source in sources:
        if not Path(source).is_file():
            runs.append(store.find(source, root))
            continue
        kind = outcomes.kind(source) if not columns.named() else "table"
        if kind not in kinds:
            raise InputError(f"{source}: not outcomes that are known; name the columns, such as --case id --passed ok")
        kinds[kind].append(source)
    if problems and not kinds["fixes"]:
        raise InputError("--problems-csv says which problems there are; name outcomes as well, with --fixes-csv")
    if not (runs or any(kinds.values())):
        raise InputError("no outcomes; name files or runs, or use --problems-csv and --fixes-csv")
    found = [Outcomes(tuple(tally for run in runs for tally in _of_run(run)), ())]
    if kinds["fixes"]:
        passed = {"passed": columns.passed} if columns.passed else {}
        found.append(outcomes.fixes(kinds["fixes"], problems, **passed))
    if kinds["results"]:
        found.append(outcomes.results(kinds["results"]))
    if kinds["table"]:
        found.append(outcomes.table(kinds["table"], **columns.named()))
    tallies = [tally for each in found for tally in each.tallies]
    twice = [model for model, count in Counter(tally.model for tally in tallies).items() if count > 1]
    if twice:
        raise InputError(f'"{twice[0]}" is in several of these; give them one at a time, or rename one of them')
    return Outcomes(tuple(tallies), tuple(problem for each in found for problem in each.problems))


def _of_run(folder: Path) -> Iterator[Tally]:
    stored = store.Stored(folder)
    summary = summarise(stored.info, stored.cases, stored.facts())
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
