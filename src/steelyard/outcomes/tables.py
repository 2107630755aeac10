"""Outcomes in a table with a row per attempt, its columns named by the caller."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.counts import OutcomeTallies
from steelyard.outcomes import cells
from steelyard.outcomes.cells import (
    EXPECTED_BOOLEAN_TEXT,
    FALSE_CODE,
    MISSING_CODE,
    TRUE_CODE,
    UNCLEAR_CODE,
    NameCodes,
)
from steelyard.outcomes.columns import (
    OutcomeCsvReader,
    OutcomeParquetReader,
    name_column_codes,
    number_column_values,
    outcome_column_codes,
)
from steelyard.outcomes.counter import OutcomeCounter, OutcomeRows, without_repeats
from steelyard.outcomes.files import (
    IncompleteOutcomesError,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    collect_file_errors,
    files,
    missing_column_message,
    model_names,
)
from steelyard.outcomes.json_lines import ABSENT_KEY, JsonLinesBatch, line_batches, line_keys
from steelyard.outcomes.scores import PLAIN_SCORES, ScoreReading
from steelyard.text import short_quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

DEFAULT_MODEL_COLUMN, DEFAULT_SCORE_COLUMN = "model", "score"
DEFAULT_PASSED_COLUMNS = ("passed", "correct")
"""The usual names of the column with the outcome; the first that is there counts."""
GRADED_COLUMN = "graded"
"""Whether the score is what was measured, as our own tables of attempts say it."""
CSV_SUFFIXES, JSON_LINES_SUFFIXES, PARQUET_SUFFIXES = (".csv", ".tsv"), (".jsonl", ".ndjson"), (".parquet",)


class OutcomeTableColumns(NamedTuple):
    """What the columns of a table are called; None for those that were not asked for."""

    case: str
    model: str
    passed: str | None
    sample: str | None
    cost: str | None
    score: str | None
    is_score_asked: bool = True
    """Whether the scores must be right: where they were only found beside the outcomes, they are left out if they are not."""
    graded: str | None = None

    def among(self, there: Collection[str]) -> OutcomeTableColumns:
        """The same for a table with these columns: without a column of outcomes its scores are what was measured."""
        score = self.score or (DEFAULT_SCORE_COLUMN if DEFAULT_SCORE_COLUMN in there else None)
        passed = self.passed or next((name for name in DEFAULT_PASSED_COLUMNS if name in there), None)
        if passed is None and score is None:
            # the complaint that it is not there names it
            passed = DEFAULT_PASSED_COLUMNS[0]
        return self._replace(
            passed=passed,
            score=score,
            is_score_asked=self.score is not None or passed is None,
            graded=GRADED_COLUMN if GRADED_COLUMN in there and score is not None else None,
        )

    @property
    def possible(self) -> list[str]:
        """The columns that may be there or not."""
        return [*DEFAULT_PASSED_COLUMNS, DEFAULT_SCORE_COLUMN, GRADED_COLUMN]

    @property
    def outcomes(self) -> list[str]:
        """The columns that hold yes or no."""
        return [name for name in (self.passed, self.graded) if name is not None]

    def names(self, *, has_model: bool) -> list[str]:
        """The columns that hold names."""
        return [self.case, *([self.model] if has_model else []), *([self.sample] if self.sample is not None else [])]

    def numbers(self) -> list[str]:
        """The columns that hold numbers."""
        return [name for name in (self.cost, self.score) if name is not None]

    def needed(self, *, has_model: bool) -> list[str]:
        """All columns that are read."""
        return [*self.names(has_model=has_model), *self.outcomes, *self.numbers()]


class OutcomeTableBlock(NamedTuple):
    """Some rows of a table as arrays; -1 is the code of an empty name."""

    lines: npt.NDArray[Any] | range
    models: npt.NDArray[Any]
    cases: npt.NDArray[Any]
    outcomes: npt.NDArray[Any]
    samples: npt.NDArray[Any] | None
    costs: npt.NDArray[Any] | None
    scores: npt.NDArray[Any] | None
    cell: Callable[[str, int], Any]
    """What is in a column of a row."""
    columns: OutcomeTableColumns
    """What they were read from."""
    is_graded: bool
    """Whether some of the scores are what was measured."""


def table(
    paths: Sequence[str | Path],
    *,
    case: str = "case",
    model: str = DEFAULT_MODEL_COLUMN,
    passed: str | None = None,
    sample: str | None = None,
    cost: str | None = None,
    score: str | None = None,
    scores: ScoreReading = PLAIN_SCORES,
    keeps_scores: bool = False,
) -> OutcomeTallies:
    """The outcomes of attempts, one tally per model: all files together, models and cases sorted by name.

    Every row is an attempt; with a `sample` column, rows about the same sample are one. Where no column was asked for
    as `model` and there is none, the file's name is the model's. A column `score` is read where there is one; a table
    without outcomes is one of scores. Raises an InputError with all problems.
    """
    complaints = OutcomeProblemCollector()
    reading = OutcomeTableReader(
        OutcomeTableColumns(case, model, passed, sample, cost, score), complaints, scores, keeps_scores=keeps_scores
    )
    given = files(paths, complaints)
    for file, stem in zip(given, model_names(given), strict=True):
        with collect_file_errors(file, complaints):
            reading.read(file, stem)
    return reading.outcomes()


class OutcomeTableReader:
    """A table being read, file by file."""

    def __init__(
        self,
        columns: OutcomeTableColumns,
        complaints: OutcomeProblemCollector,
        scores: ScoreReading = PLAIN_SCORES,
        *,
        keeps_scores: bool = False,
    ) -> None:
        self._columns = columns
        self._scores = scores
        self._complaints = complaints
        self._models, self._cases, self._samples = NameCodes(), NameCodes(), NameCodes()
        self._counting = OutcomeCounter(keeps_scores=keeps_scores)
        self._kept: list[OutcomeRows] = []

    def read(self, file: OutcomeFile, stem: str) -> None:
        """Take in all rows of a file."""
        name = file.path.name.lower().removesuffix(".gz")
        if name.endswith(CSV_SUFFIXES):
            blocks = self._sheet(file, stem, "\t" if name.endswith(".tsv") else ",")
        elif name.endswith(JSON_LINES_SUFFIXES):
            blocks = self._json_lines(file, stem)
        elif name.endswith(PARQUET_SUFFIXES):
            blocks = self._parquet(file, stem)
        else:
            known = ", ".join((*CSV_SUFFIXES, *JSON_LINES_SUFFIXES, *PARQUET_SUFFIXES))
            raise UnreadableOutcomesError(f"unknown kind of file; the name of a table ends in one of {known}")
        count = 0
        for block in blocks:
            count += len(block.cases)
            self._take(file, block)
        if not count:
            self._complaints.add(file, "no rows", "no rows", fatal=False)

    def outcomes(self) -> OutcomeTallies:
        """All that was read, counted."""
        models, cases, samples = (list(codes.numbers) for codes in (self._models, self._cases, self._samples))

        def attempt(model: int, case: int, sample: int) -> str:
            return f"{short_quote(models[model])}, {short_quote(cases[case])}, sample {short_quote(samples[sample])}"

        for rows in without_repeats(self._kept, attempt, self._complaints):
            self._counting.add(rows)
        warnings = self._complaints.settled()
        return OutcomeTallies(
            self._counting.tallies(*self._counting.used(self._models.numbers, self._cases.numbers)), warnings
        )

    def _has_model(self, columns: Sequence[str]) -> bool:
        return self._columns.model in columns or self._columns.model != DEFAULT_MODEL_COLUMN

    def _sheet(self, file: OutcomeFile, stem: str, delimiter: str) -> Iterator[OutcomeTableBlock]:
        sheet = OutcomeCsvReader(file, self._complaints, delimiter=delimiter)
        columns = self._columns.among(sheet.columns)
        chosen = columns.needed(has_model=self._has_model(sheet.columns))
        sheet.require(chosen)
        for part in sheet.parts(chosen):
            values = dict(zip(chosen, part.columns, strict=True))
            yield self._block(columns, part.lines, values, stem)

    def _json_lines(self, file: OutcomeFile, stem: str) -> Iterator[OutcomeTableBlock]:
        import numpy as np

        columns = self._columns
        read = list(dict.fromkeys([*columns.needed(has_model=True), *columns.possible]))
        has_model: bool | None = None
        for part in line_batches(file, read, self._complaints):
            if not part.lines:
                continue
            values = dict(part.values)
            if has_model is None:
                # what the lines have is settled by the first of them
                columns = columns.among([name for name in read if values[name][0] is not ABSENT_KEY])
                has_model = self._has_model([] if values[columns.model][0] is ABSENT_KEY else [columns.model])
                self._require(file, part, columns.needed(has_model=has_model))
            values = {name: values[name] for name in columns.needed(has_model=True)}
            if not has_model:
                named = [
                    line
                    for line, value in zip(part.lines, values.pop(columns.model), strict=True)
                    if value is not ABSENT_KEY
                ]
                if named:
                    what = f"{columns.model} stands here, but not on the first line"
                    self._complaints.add(file, "model", what, named)
            for name, column in values.items():
                # equality of each value with the sentinel would take five times as long
                if type(ABSENT_KEY) in cells.cell_types(column):
                    values[name] = [None if value is ABSENT_KEY else value for value in column]
            lines = part.lines
            yield self._block(columns, lines if isinstance(lines, range) else np.array(lines, np.int64), values, stem)

    def _require(self, file: OutcomeFile, part: JsonLinesBatch, chosen: Sequence[str]) -> None:
        """Complain about keys that no line of the first part has."""
        absent = [name for name in chosen if all(value is ABSENT_KEY for value in part.values[name])]
        for name in absent:
            what = missing_column_message(name, line_keys(part.raw[0]))
            self._complaints.add(file, f"absent {name}", what, [part.lines[0]])
        if absent:
            raise IncompleteOutcomesError

    def _block(
        self,
        columns: OutcomeTableColumns,
        lines: npt.NDArray[Any] | range,
        values: Mapping[str, Sequence[Any]],
        stem: str,
    ) -> OutcomeTableBlock:
        """Rows whose cells are Python's values."""
        import numpy as np

        scores = None if columns.score is None else self._shares(cells.numbers(values[columns.score]))
        if columns.model in values:
            models = self._models.array(cells.name_texts(values[columns.model]))
        else:
            models = np.full(len(lines), self._models[stem], np.int32)
        return OutcomeTableBlock(
            lines,
            models,
            self._cases.array(cells.name_texts(values[columns.case])),
            _outcomes_of(scores) if columns.passed is None else cells.outcome_codes(values[columns.passed]),
            None if columns.sample is None else self._samples.array(cells.name_texts(values[columns.sample])),
            None if columns.cost is None else cells.numbers(values[columns.cost]),
            scores,
            lambda column, row: values[column][row],
            columns,
            columns.passed is None
            or (columns.graded is not None and bool((cells.outcome_codes(values[columns.graded]) == TRUE_CODE).any())),
        )

    def _shares(self, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Scores from 0 to 1, the best at 1; what is outside of their range stays outside."""
        import numpy as np

        reading = self._scores
        shares = (scores - reading.low) / (reading.high - reading.low)
        if reading.lower_is_better:
            shares = 1 - shares
        # what is no number must not come out on top
        return np.where(scores == cells.INVALID_NUMBER, scores, shares)

    def _parquet(self, file: OutcomeFile, stem: str) -> Iterator[OutcomeTableBlock]:
        import numpy as np

        read = OutcomeParquetReader(file, self._complaints)
        columns = self._columns.among(read.columns)
        has_model = self._has_model(read.columns)
        names, numbers = columns.names(has_model=has_model), columns.numbers()
        outcomes = columns.outcomes
        read.require(names, numbers, outcomes)
        row = 1
        for batch in read.batches([*names, *outcomes, *numbers], [*names, *outcomes]):
            count = len(batch[columns.case])
            if has_model:
                models = name_column_codes(batch[columns.model], self._models)
            else:
                models = np.full(count, self._models[stem], np.int32)
            scores = None if columns.score is None else self._shares(number_column_values(batch[columns.score]))
            yield OutcomeTableBlock(
                range(row, row + count),
                models,
                name_column_codes(batch[columns.case], self._cases),
                _outcomes_of(scores) if columns.passed is None else outcome_column_codes(batch[columns.passed]),
                None if columns.sample is None else name_column_codes(batch[columns.sample], self._samples),
                None if columns.cost is None else number_column_values(batch[columns.cost]),
                scores,
                partial(_cell, batch),
                columns,
                columns.passed is None
                or (
                    columns.graded is not None
                    and bool((outcome_column_codes(batch[columns.graded]) == TRUE_CODE).any())
                ),
            )
            row += count

    def _take(self, file: OutcomeFile, block: OutcomeTableBlock) -> None:
        """Count the rows of a block, or keep them until all are there; complain about those that cannot be used."""
        import numpy as np

        columns = block.columns
        is_good = np.ones(len(block.cases), bool)

        def check(column: str | None, is_bad: npt.NDArray[Any], what: str, *, fatal: bool = True) -> None:
            if column is not None and is_bad.any():
                rows = np.flatnonzero(is_bad)
                sentence = f"{column} is {cells.quoted_cell(block.cell(column, int(rows[0])))}{what}"
                self._complaints.add(file, f"{column}{what}", sentence, np.asarray(block.lines)[rows], fatal=fatal)
                if fatal:
                    is_good[rows] = False

        for name, codes in (
            (columns.model, block.models),
            (columns.case, block.cases),
            (columns.sample, block.samples),
        ):
            if codes is not None:
                check(name, codes < 0, "; expected text or a whole number")
        check(columns.passed, block.outcomes == UNCLEAR_CODE, f"; expected {EXPECTED_BOOLEAN_TEXT}")
        check(
            columns.passed,
            block.outcomes == MISSING_CODE,
            ": an attempt without an outcome, which is not counted",
            fatal=False,
        )
        if block.costs is not None:
            check(columns.cost, block.costs < 0, "; expected a number, 0 or more")
            check(columns.cost, np.isnan(block.costs), ": what this model costs is not known", fatal=False)
        if block.scores is not None:
            is_odd, is_empty = (block.scores < 0) | (block.scores > 1), np.isnan(block.scores)
            if columns.is_score_asked:
                check(columns.score, is_odd, f"; expected {self._scores.expected}")
            else:
                check(columns.score, is_odd, f": in no mean score; expected {self._scores.expected}", fatal=False)
                block = block._replace(scores=np.where(is_odd, np.nan, block.scores))
            check(columns.score, is_empty, ": in no mean score", fatal=False)
        rows = OutcomeRows(file, *block[:-3], is_graded=block.is_graded)
        if not is_good.all():
            rows = rows.chosen(is_good)
        if rows.samples is None:
            self._counting.add(rows)
        else:
            self._kept.append(rows)


def _outcomes_of(scores: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """How attempts came out that only have scores: the best one passes."""
    import numpy as np

    if scores is None:
        raise TypeError("a table without outcomes has scores")
    is_odd = ~np.isnan(scores) & ((scores < 0) | (scores > 1))
    known = np.where(scores >= 1, TRUE_CODE, FALSE_CODE)
    # an odd score has its own complaint
    return np.where(np.isnan(scores), MISSING_CODE, np.where(is_odd, FALSE_CODE, known)).astype(np.int8)


def _cell(batch: Mapping[str, Any], column: str, row: int) -> Any:
    return batch[column][row].as_py()
