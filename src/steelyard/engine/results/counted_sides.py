"""Files with a row per attempt, such as repairs and tables of outcomes, as sides of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard import outcomes
from steelyard.analysis.counts import Tally
from steelyard.comparison.sides import Side, Trials
from steelyard.engine.results.read_outcomes import ColumnOverrides, gather
from steelyard.engine.results.recordings import RECORDED_VERSION, counted_tests_digest
from steelyard.errors import InputError
from steelyard.outcomes.files import OUTCOME_FILE_SUFFIXES
from steelyard.outcomes.parquet_counts import DEFAULT_ATTEMPT_COLUMNS, AttemptColumns
from steelyard.plugins import plugin_for_suffix
from steelyard.text import printable


def is_counted_file(name: str, columns: AttemptColumns = DEFAULT_ATTEMPT_COLUMNS) -> bool:
    """Whether a name is a file with a row per attempt, in a known format or with columns that the user names."""
    path = Path(name)
    try:
        if not path.is_file():
            return False
    except ValueError:
        # a path with a NUL in it
        return False
    is_named = columns != DEFAULT_ATTEMPT_COLUMNS and path.suffix.lower() in OUTCOME_FILE_SUFFIXES
    return is_named or bool(outcomes.kind(path) or plugin_for_suffix("outcomes", path.suffix.lower()))


def counted_side(name: str, columns: AttemptColumns = DEFAULT_ATTEMPT_COLUMNS) -> Side:
    """The attempts that a file counts; who judged them is not known, so a run of ours is not compared with them."""
    asked = ColumnOverrides(
        **{
            meaning: given
            for meaning, given in columns._asdict().items()
            if given != getattr(DEFAULT_ATTEMPT_COLUMNS, meaning)
        }
    )
    is_fixes = outcomes.kind(name) == "fixes" and not asked._replace(passed=None).named()
    tallies, problems = gather([] if is_fixes else [name], fixes=[name] if is_fixes else (), columns=asked)
    if not any(sum(tally.tried) or tally.missing for tally in tallies):
        raise InputError(f"{printable(name)}: no attempts in it")
    return Side(
        name=name,
        rule="code",
        models={tally.model: _trials(tally) for tally in tallies},
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
    every = sorted(zip(tally.cases, tally.tried, tally.passed, missing, costs, strict=True))
    return tuple(
        Trials(
            case=case,
            tests=tests,
            judged_by=(RECORDED_VERSION,),
            attempts=int(tried),
            passes=int(passed),
            missing=lacking,
            scores=tuple((score, times) for score, times in ((0.0, int(tried - passed)), (1.0, int(passed))) if times),
            cost_usd=cost,
        )
        for case, tried, passed, lacking, cost in every
        if tried or lacking
    )
