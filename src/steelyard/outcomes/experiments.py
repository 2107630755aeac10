"""Experiments in tiers that another tool ran, and the scores that its judges gave."""

from __future__ import annotations

import difflib
import hashlib
from itertools import islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.errors import InputError, Problem
from steelyard.outcomes import cells
from steelyard.outcomes.cells import (
    EXPECTED_BOOLEAN_TEXT,
    MISSING_CODE,
    TRUE_CODE,
    UNCLEAR_CODE,
    NameCodes,
    boolean_codes,
)
from steelyard.outcomes.columns import OutcomeCsvReader
from steelyard.outcomes.files import (
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    collect_file_errors,
    files,
)
from steelyard.text import printable, short_quote
from steelyard.tiers.results import CriterionRating, JudgeIdentity, RunIdentity, RunRating, RunSource, TierRun

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

MAX_EXPERIMENT_ROWS = 1_000_000
"""Rows of one file: all of them are kept, at some 600 bytes each."""
MAX_UNUSED_COLUMNS_SHOWN = 20
"""Columns without a use that a note lists."""
EMPTY_CELL_WORDS = frozenset({"nan", "na", "n/a", "none", "null"})
"""What programs write where there is no number and no outcome."""
MAX_EXACT_INTEGER = 1 << 53
"""Up to here a float represents every whole number exactly."""

RUN_IDENTITY_COLUMNS = ("experiment", "agent_model", "tier", "subtest", "run_number")
JUDGE_COLUMNS = ("judge_model", "judge_number")
RUN_FACT_COLUMNS = (
    *("passed", "impl_rate", "score", "cost_usd", "duration_seconds", "input_tokens", "output_tokens"),
    *("cache_creation_tokens", "cache_read_tokens", "total_tokens", "exit_code"),
)
RATING_FACT_COLUMNS = ("judge_score", "judge_impl_rate", "judge_passed", "judge_grade", "judge_is_valid")
CRITERION_FACT_COLUMNS = ("criterion_score", "criterion_achieved", "criterion_max")

NAME_COLUMNS = frozenset({"experiment", "agent_model", "tier", "subtest", "judge_model", "criterion"})
TEXT_COLUMNS = frozenset({"judge_grade"})
REQUIRED_INTEGER_COLUMNS = frozenset({"run_number", "judge_number"})
"""Whole numbers that a row cannot do without; any column that is of no other kind holds some that it can."""
SIGNED_INTEGER_COLUMNS = frozenset({"exit_code"})
BOOLEAN_COLUMNS = frozenset({"passed", "judge_passed", "judge_is_valid"})
SHARE_COLUMNS = frozenset({"impl_rate", "score", "judge_score", "judge_impl_rate", "criterion_score"})
AMOUNT_COLUMNS = frozenset({"cost_usd", "duration_seconds", "criterion_achieved", "criterion_max"})
IGNORED_COLUMNS = frozenset({"grade", "agent_duration_seconds", "judge_duration_seconds", "judge_reasoning"})
"""Columns that these files are known to have, and that no figure is made from."""


class ImportedExperiment(NamedTuple):
    """All that the files say, row by row, and what is odd about them."""

    runs: tuple[TierRun, ...]
    ratings: tuple[RunRating, ...]
    criteria: tuple[CriterionRating, ...]
    sources: tuple[RunSource, ...]
    """The files that were read: runs, ratings, criteria."""
    warnings: tuple[Problem, ...]


def experiment(
    runs: str | Path, *, judges: str | Path | None = None, criteria: str | Path | None = None
) -> ImportedExperiment:
    """The runs of a CSV file, with the judges' ratings and their criteria where those files are given.

    Columns stand in any order; those without a use are named in a warning. Raises an InputError with all that is wrong:
    a cell that cannot be read, a run, rating or criterion that is there twice, a rating of a run that is not there.
    """
    reading = _ExperimentCsvReader()
    steps = [(runs, reading.runs)]
    steps += [(judges, reading.ratings)] if judges is not None else []
    steps += [(criteria, reading.criteria)] if criteria is not None else []
    complaints = OutcomeProblemCollector()
    found = {file.number: file for file in files([path for path, _ in steps], complaints)}
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for number, (_, step) in enumerate(steps):
        if number in found:
            with collect_file_errors(found[number], complaints):
                reading.read(found[number], complaints, step)
        try:
            warnings += complaints.settled()
        except InputError as error:
            problems += error.problems
            # rows that speak of what could not be read are not wrong themselves
            reading.is_whole = False
        complaints = OutcomeProblemCollector()
    if problems:
        raise InputError(problems)
    return ImportedExperiment(
        tuple(reading.all_runs),
        tuple(reading.all_ratings),
        tuple(reading.all_criteria),
        tuple(reading.sources),
        tuple(warnings),
    )


class _ExperimentCsvReader:
    """The files of an experiment being read, one after the other."""

    def __init__(self) -> None:
        self.all_runs: list[TierRun] = []
        self.all_ratings: list[RunRating] = []
        self.all_criteria: list[CriterionRating] = []
        self.sources: list[RunSource] = []
        self.is_whole = True
        """Whether the files so far are complete."""
        self._names = _NameInterner()
        self._identities: dict[RunIdentity, RunIdentity] = {}
        """Each once, so that all rows about a run share it."""
        self._judges: dict[JudgeIdentity, JudgeIdentity] = {}
        self._rated: set[tuple[RunIdentity, JudgeIdentity]] = set()

    def read(
        self, file: OutcomeFile, complaints: OutcomeProblemCollector, take: Callable[[_ExperimentCsvRows], object]
    ) -> None:
        """Take in all rows of a file."""
        if not file.path.is_file():
            raise UnreadableOutcomesError("not a plain file, and it is read twice; save it as one")
        before = file.path.stat()
        with file.path.open("rb") as opened:
            digest = hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        take(_ExperimentCsvRows(file, complaints, self._names))
        after = file.path.stat()
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise UnreadableOutcomesError("changed while it was being read; read it again when nothing writes to it")
        self.sources.append(RunSource(name=file.path.name, digest=digest))

    def runs(self, rows: _ExperimentCsvRows) -> None:
        for line, row in rows.taken(RUN_IDENTITY_COLUMNS, RUN_FACT_COLUMNS):
            run = _identity(row)
            if rows.is_first(run, line, run):
                self._identities[run] = run
                self.all_runs.append(_run(run, row))

    def ratings(self, rows: _ExperimentCsvRows) -> None:
        for line, row in rows.taken((*RUN_IDENTITY_COLUMNS, *JUDGE_COLUMNS), RATING_FACT_COLUMNS):
            run, judge = self._known(rows, row, line)
            if rows.is_first((run, judge), line, run, f", judge {judge}"):
                self._rated.add((run, judge))
                self.all_ratings.append(
                    RunRating(
                        run=run,
                        judge=judge,
                        score=row["judge_score"],
                        impl_rate=row["judge_impl_rate"],
                        passed=row["judge_passed"],
                        grade=row["judge_grade"] or "",
                        valid=row["judge_is_valid"] is not False,
                    )
                )

    def criteria(self, rows: _ExperimentCsvRows) -> None:
        needs_rating = bool(self._rated)
        for line, row in rows.taken((*RUN_IDENTITY_COLUMNS, *JUDGE_COLUMNS, "criterion"), CRITERION_FACT_COLUMNS):
            run, judge = self._known(rows, row, line)
            if self.is_whole and needs_rating and run in self._identities and (run, judge) not in self._rated:
                rows.complain("rating", f"no judge's row for {short_quote(f'{run}, judge {judge}')}", line)
            name = row["criterion"]
            if rows.is_first((run, judge, name), line, run, f", judge {judge}, {name}"):
                self.all_criteria.append(
                    CriterionRating(
                        run=run,
                        judge=judge,
                        criterion=name,
                        score=row["criterion_score"],
                        achieved=row["criterion_achieved"],
                        max=row["criterion_max"],
                    )
                )

    def _known(self, rows: _ExperimentCsvRows, row: Mapping[str, Any], line: int) -> tuple[RunIdentity, JudgeIdentity]:
        """Which run a row speaks of, and in the name of which judge."""
        run = _identity(row)
        if self.is_whole and run not in self._identities:
            rows.complain("run", f"no run {short_quote(f'{run}')} among the runs", line)
        judge = JudgeIdentity(*(row[name] for name in JUDGE_COLUMNS))
        return self._identities.get(run, run), self._judges.setdefault(judge, judge)


_identity_values = itemgetter(*RUN_IDENTITY_COLUMNS)


def _identity(row: Mapping[str, Any]) -> RunIdentity:
    return RunIdentity(*_identity_values(row))


def _run(identity: RunIdentity, row: Mapping[str, Any]) -> TierRun:
    experiment, model, tier, case, number = identity
    cached = (row["cache_creation_tokens"] or 0) + (row["cache_read_tokens"] or 0)
    incoming, outgoing = row["input_tokens"], row["output_tokens"]
    if incoming is not None and row["total_tokens"] != incoming + (outgoing or 0):
        # the total shows whether the input includes cached tokens; without a total it does not
        incoming += cached
    return TierRun(
        experiment=experiment,
        model=model,
        tier=tier,
        case=case,
        number=number,
        passed=row["passed"],
        score=row["score"],
        impl_rate=row["impl_rate"],
        cost_usd=row["cost_usd"],
        duration_seconds=row["duration_seconds"],
        input_tokens=incoming,
        output_tokens=outgoing,
        cached_tokens=row["cache_read_tokens"],
        exit_code=row["exit_code"],
    )


class _NameInterner:
    """Names, each kept once however often it occurs."""

    def __init__(self) -> None:
        self._codes = NameCodes()
        self._listed: list[str | None] = []

    def of(self, texts: Sequence[str]) -> list[str | None]:
        """The names that are in cells, without the blanks around them; None for an empty one."""
        codes = self._codes.array(texts)
        numbers = self._codes.numbers
        self._listed += [*islice(reversed(numbers), len(numbers) - len(self._listed))][::-1]
        return [self._listed[code] if code >= 0 else None for code in codes.tolist()]


class _ExperimentCsvRows:
    """The rows of one file, their cells read."""

    def __init__(self, file: OutcomeFile, complaints: OutcomeProblemCollector, names: _NameInterner) -> None:
        self._file = file
        self._complaints = complaints
        self._names = names
        self._sheet = OutcomeCsvReader(file, complaints)
        self.columns = self._sheet.columns
        self._lines: dict[Hashable, int] = {}
        """The line of each item that must be unique."""

    def note(self, kind: str, what: str) -> None:
        self._complaints.add(self._file, kind, what, fatal=False)

    def complain(self, kind: str, what: str, line: int) -> None:
        self._complaints.add(self._file, kind, what, [line])

    def is_first(self, key: Hashable, line: int, run: RunIdentity, of_run: str = "") -> bool:
        """Whether this stands here for the first time; complains when it does not."""
        earlier = self._lines.setdefault(key, line)
        if earlier != line:
            self.complain(
                "again", f"{short_quote(f'{run}{of_run}')} is already on line {earlier}; keep one of the two", line
            )
        return earlier == line

    def taken(self, needed: Sequence[str], wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The line and the cells of each row that can be used; None in a cell that is empty or not there."""
        import numpy as np

        chosen = [*needed, *(name for name in wanted if name in self.columns)]
        self._sheet.require(chosen)
        self._name_unused({*needed, *wanted})
        names = dict.fromkeys((*needed, *wanted))
        nothing = repeat(None)
        count = 0
        for part in self._sheet.parts(chosen):
            count += len(part.lines)
            if count > MAX_EXPERIMENT_ROWS:
                raise UnreadableOutcomesError(
                    f"more than {MAX_EXPERIMENT_ROWS:,} rows; leave some out", int(part.lines[0])
                )
            is_bad = np.zeros(len(part.lines), bool)
            read = {
                name: self._read(name, texts, part.lines, is_bad)
                for name, texts in zip(chosen, part.columns, strict=True)
            }
            columns = (read.get(name, nothing) for name in names)
            for line, bad, values in zip(
                part.lines.tolist(), is_bad.tolist(), zip(*columns, strict=False), strict=True
            ):
                if not bad:
                    yield line, dict(zip(names, values, strict=True))
        if not count:
            self.note("empty", "no rows")

    def _name_unused(self, known: set[str]) -> None:
        unused = [name for name in dict.fromkeys(self.columns) if name and name not in known | IGNORED_COLUMNS]
        if not unused:
            return
        listed = [_column_suggestion(name, known - set(self.columns)) for name in unused[:MAX_UNUSED_COLUMNS_SHOWN]]
        more = f" and {len(unused) - MAX_UNUSED_COLUMNS_SHOWN} more" if len(unused) > MAX_UNUSED_COLUMNS_SHOWN else ""
        self.note("unused", f"unused columns: {', '.join(listed)}{more}")

    def _read(
        self, name: str, texts: Sequence[str], lines: npt.NDArray[Any], is_bad: npt.NDArray[Any]
    ) -> Sequence[Any]:
        """What the cells of a column mean; those that cannot be read mark their row as bad."""
        import numpy as np

        def check(wrong: npt.NDArray[Any], what: str, *, fatal: bool = True) -> None:
            if wrong.any():
                rows = np.flatnonzero(wrong)
                sentence = f"{name} is {cells.quoted_cell(texts[rows[0]])}{what}"
                self._complaints.add(self._file, f"{name}{what}", sentence, lines[rows], fatal=fatal)
                if fatal:
                    is_bad[rows] = True

        if name in TEXT_COLUMNS or name in NAME_COLUMNS:
            named = self._names.of(texts)
            if name in NAME_COLUMNS:
                check(np.array([each is None for each in named], bool), "; expected a name")
            return named
        plain = _plain_values(name, texts)
        if plain is not None:
            return plain
        words = [text.strip().lower() for text in texts]
        absent = [word in EMPTY_CELL_WORDS for word in words]
        # that a criterion does not apply is nothing odd
        is_odd = [nothing and word != "n/a" for word, nothing in zip(words, absent, strict=True)]
        check(np.array(is_odd, bool), ": treated as an empty cell", fatal=False)
        words = ["" if nothing else word for word, nothing in zip(words, absent, strict=True)]
        if name in BOOLEAN_COLUMNS:
            codes = boolean_codes(words)
            check(codes == UNCLEAR_CODE, f"; expected {EXPECTED_BOOLEAN_TEXT}")
            return [None if code == MISSING_CODE else code == TRUE_CODE for code in codes.tolist()]
        if name in SHARE_COLUMNS or name in AMOUNT_COLUMNS:
            numbers = cells.numbers(words)
            check(numbers < 0, "; expected a number, 0 or more")
            if name in SHARE_COLUMNS:
                check(numbers > 1, ", above 1: kept, and counted as 1 where only a share will do", fatal=False)
            return [None if number != number else number for number in numbers.tolist()]
        numbers = cells.numbers([word.removeprefix("-") for word in words] if name in SIGNED_INTEGER_COLUMNS else words)
        is_whole = (numbers >= 0) & (numbers < MAX_EXACT_INTEGER) & (numbers % 1 == 0)
        if name not in REQUIRED_INTEGER_COLUMNS:
            is_whole |= np.isnan(numbers)
        check(
            ~is_whole,
            "; expected a whole number" if name in SIGNED_INTEGER_COLUMNS else "; expected a whole number, 0 or more",
        )
        return [
            None if number != number or not good else -int(number) if word.startswith("-") else int(number)
            for word, number, good in zip(words, numbers.tolist(), is_whole.tolist(), strict=True)
        ]


def _plain_values(name: str, texts: Sequence[str]) -> list[Any] | None:
    """The values of a column whose cells are all what it takes, or empty; None if cells must be examined one by one."""
    import numpy as np

    if name in BOOLEAN_COLUMNS:
        codes = boolean_codes(texts)
        if (codes == UNCLEAR_CODE).any():
            return None
        return [None if code == MISSING_CODE else code == TRUE_CODE for code in codes.tolist()]
    numbers = cells.plain_numbers(texts)
    if numbers is None:
        return None
    if name in SHARE_COLUMNS or name in AMOUNT_COLUMNS:
        if (numbers < 0).any() or (name in SHARE_COLUMNS and (numbers > 1).any()):
            return None
        values: list[Any] = numbers.tolist()
        return [None if value != value else value for value in values] if np.isnan(numbers).any() else values
    least = -MAX_EXACT_INTEGER if name in SIGNED_INTEGER_COLUMNS else -1
    if not ((numbers > least) & (numbers < MAX_EXACT_INTEGER) & (numbers % 1 == 0)).all():
        return None
    whole: list[Any] = numbers.astype(np.int64).tolist()
    return whole


def _column_suggestion(name: str, absent: set[str]) -> str:
    """A column's name, with what it may be meant to be."""
    close = difflib.get_close_matches(name[:80].lower(), sorted(absent), n=1, cutoff=0.75)
    return printable(name[:80]) + (f' (did you mean "{close[0]}"?)' if close else "")
