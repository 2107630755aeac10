"""Experiments in tiers that another tool ran, and the scores that its judges gave."""

from __future__ import annotations

import difflib
import hashlib
from functools import cached_property
from itertools import islice
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
from steelyard.tiers.run_tables import RUN_AMOUNTS, RUN_INTEGERS, RUN_NAMES, NameColumn, RunTable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

MAX_EXPERIMENT_ROWS = 1_000_000
"""Rows of one file: all of them are kept, at some 150 bytes each for a run and 600 for a rating."""
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

    runs: Sequence[TierRun]
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
        reading.all_runs,
        tuple(reading.all_ratings),
        tuple(reading.all_criteria),
        tuple(reading.sources),
        tuple(warnings),
    )


class _ExperimentCsvReader:
    """The files of an experiment being read, one after the other."""

    def __init__(self) -> None:
        self.all_runs = RunTable.of(())
        self.all_ratings: list[RunRating] = []
        self.all_criteria: list[CriterionRating] = []
        self.sources: list[RunSource] = []
        self.is_whole = True
        """Whether the files so far are complete."""
        self._names = _NameInterner()
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
        parts: list[_ReadRows] = []
        try:
            parts.extend(rows.read_parts(RUN_IDENTITY_COLUMNS, RUN_FACT_COLUMNS))
        finally:
            # what came before a line that cannot be read is judged all the same
            self.all_runs = self._complain_about_repeats(rows, parts)

    def _complain_about_repeats(self, rows: _ExperimentCsvRows, parts: Sequence[_ReadRows]) -> RunTable:
        """The runs that were read; complains about those that are there twice."""
        import numpy as np

        if not parts:
            return self.all_runs
        lines = np.concatenate([part.lines for part in parts])
        columns = {
            name: np.concatenate([part.columns[name] for part in parts])
            for name in (*RUN_IDENTITY_COLUMNS, *RUN_FACT_COLUMNS)
        }
        table = _run_table(columns, self._names.listed)
        first = table.repeated()
        for row in np.flatnonzero(first != np.arange(len(first))).tolist():
            rows.complain_again(int(lines[row]), int(lines[first[row]]), table.identity(row))
        return table

    @cached_property
    def _identities(self) -> dict[RunIdentity, RunIdentity]:
        """The runs that were read, each once, so that all rows about a run share it."""
        return {run: run for run in self.all_runs.identities()}

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


def _run_table(columns: Mapping[str, npt.NDArray[Any]], names: Sequence[str]) -> RunTable:
    import numpy as np

    cached = np.nan_to_num(columns["cache_creation_tokens"]) + np.nan_to_num(columns["cache_read_tokens"])
    incoming, outgoing = columns["input_tokens"], columns["output_tokens"]
    # the total shows whether the input includes cached tokens; without a total it does not
    is_whole = columns["total_tokens"] == incoming + np.nan_to_num(outgoing)
    columns = {
        **columns,
        "model": columns["agent_model"],
        "case": columns["subtest"],
        "input_tokens": np.where(is_whole, incoming, incoming + cached),
        "cached_tokens": columns["cache_read_tokens"],
    }
    return RunTable(
        {name: NameColumn(names, columns[name]) for name in RUN_NAMES},
        columns["run_number"].astype(np.int64),
        columns["passed"],
        {name: columns[name] for name in (*RUN_AMOUNTS, *RUN_INTEGERS)},
    )


class _NameInterner:
    """Names, each kept once however often it occurs."""

    def __init__(self) -> None:
        self._codes = NameCodes()
        self.listed: list[str] = []
        """The names by their numbers."""

    def of(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        """The numbers of the names that are in cells, without the blanks around them; -1 for an empty one."""
        codes = self._codes.array(texts)
        numbers = self._codes.numbers
        self.listed += [*islice(reversed(numbers), len(numbers) - len(self.listed))][::-1]
        return codes


class _ReadRows(NamedTuple):
    """Rows that can be used."""

    lines: npt.NDArray[Any]
    columns: dict[str, npt.NDArray[Any]]
    """Names by their numbers, outcomes by their codes, and numbers: NaN in a cell that is empty or not there."""


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
            self.complain_again(line, earlier, f"{run}{of_run}")
        return earlier == line

    def complain_again(self, line: int, earlier: int, what: object) -> None:
        self.complain("again", f"{short_quote(f'{what}')} is already on line {earlier}; keep one of the two", line)

    def read_parts(self, needed: Sequence[str], wanted: Sequence[str]) -> Iterator[_ReadRows]:
        """The rows that can be used, some at a time, with the cells of all these columns."""
        import numpy as np

        chosen = [*needed, *(name for name in wanted if name in self.columns)]
        self._sheet.require(chosen)
        self._name_unused({*needed, *wanted})
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
            read |= {name: _missing_cells(name, len(part.lines)) for name in wanted if name not in read}
            if is_bad.any():
                yield _ReadRows(part.lines[~is_bad], {name: column[~is_bad] for name, column in read.items()})
            else:
                yield _ReadRows(part.lines, read)
        if not count:
            self.note("empty", "no rows")

    def taken(self, needed: Sequence[str], wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The line and the cells of each row that can be used; None in a cell that is empty or not there."""
        for part in self.read_parts(needed, wanted):
            columns = [self._values(name, cells) for name, cells in part.columns.items()]
            for line, values in zip(part.lines.tolist(), zip(*columns, strict=True), strict=True):
                yield line, dict(zip(part.columns, values, strict=True))

    def _values(self, name: str, column: npt.NDArray[Any]) -> list[Any]:
        """The cells of a column as Python has them."""
        if name in TEXT_COLUMNS or name in NAME_COLUMNS:
            return [self._names.listed[code] if code >= 0 else None for code in column.tolist()]
        if name in BOOLEAN_COLUMNS:
            return [None if code == MISSING_CODE else code == TRUE_CODE for code in column.tolist()]
        if name in SHARE_COLUMNS or name in AMOUNT_COLUMNS:
            return [None if number != number else number for number in column.tolist()]
        return [None if number != number else int(number) for number in column.tolist()]

    def _name_unused(self, known: set[str]) -> None:
        unused = [name for name in dict.fromkeys(self.columns) if name and name not in known | IGNORED_COLUMNS]
        if not unused:
            return
        listed = [_column_suggestion(name, known - set(self.columns)) for name in unused[:MAX_UNUSED_COLUMNS_SHOWN]]
        more = f" and {len(unused) - MAX_UNUSED_COLUMNS_SHOWN} more" if len(unused) > MAX_UNUSED_COLUMNS_SHOWN else ""
        self.note("unused", f"unused columns: {', '.join(listed)}{more}")

    def _read(
        self, name: str, texts: Sequence[str], lines: npt.NDArray[Any], is_bad: npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
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
                check(named < 0, "; expected a name")
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
            return codes
        if name in SHARE_COLUMNS or name in AMOUNT_COLUMNS:
            numbers = cells.numbers(words)
            check(numbers < 0, "; expected a number, 0 or more")
            if name in SHARE_COLUMNS:
                check(numbers > 1, ", above 1: kept, and counted as 1 where only a share will do", fatal=False)
            return numbers
        numbers = cells.numbers([word.removeprefix("-") for word in words] if name in SIGNED_INTEGER_COLUMNS else words)
        is_whole = (numbers >= 0) & (numbers < MAX_EXACT_INTEGER) & (numbers % 1 == 0)
        if name not in REQUIRED_INTEGER_COLUMNS:
            is_whole |= np.isnan(numbers)
        check(
            ~is_whole,
            "; expected a whole number" if name in SIGNED_INTEGER_COLUMNS else "; expected a whole number, 0 or more",
        )
        is_negative = np.array([word.startswith("-") for word in words], bool)
        return np.where(is_whole, np.where(is_negative, -numbers, numbers), np.nan)


def _missing_cells(name: str, rows: int) -> npt.NDArray[Any]:
    """The cells of a column that is not there."""
    import numpy as np

    if name in TEXT_COLUMNS:
        return np.full(rows, -1, np.int32)
    return np.full(rows, MISSING_CODE, np.int8) if name in BOOLEAN_COLUMNS else np.full(rows, np.nan)


def _plain_values(name: str, texts: Sequence[str]) -> npt.NDArray[Any] | None:
    """The values of a column whose cells are all what it takes, or empty; None if cells must be examined one by one."""
    if name in BOOLEAN_COLUMNS:
        codes = boolean_codes(texts)
        return None if (codes == UNCLEAR_CODE).any() else codes
    numbers = cells.plain_numbers(texts)
    if numbers is None:
        return None
    if name in SHARE_COLUMNS or name in AMOUNT_COLUMNS:
        if (numbers < 0).any() or (name in SHARE_COLUMNS and (numbers > 1).any()):
            return None
        return numbers
    least = -MAX_EXACT_INTEGER if name in SIGNED_INTEGER_COLUMNS else -1
    is_whole = (numbers > least) & (numbers < MAX_EXACT_INTEGER) & (numbers % 1 == 0)
    if name not in REQUIRED_INTEGER_COLUMNS:
        # an empty cell
        is_whole |= numbers != numbers
    return numbers if is_whole.all() else None


def _column_suggestion(name: str, absent: set[str]) -> str:
    """A column's name, with what it may be meant to be."""
    close = difflib.get_close_matches(name[:80].lower(), sorted(absent), n=1, cutoff=0.75)
    return printable(name[:80]) + (f' (did you mean "{close[0]}"?)' if close else "")
