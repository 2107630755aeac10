"""Outcomes in a table with a row per attempt, its columns named by the caller."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.counts import OutcomeTallies
from steelyard.outcomes import cells
from steelyard.outcomes.cells import EXPECTED_BOOLEAN_TEXT, MISSING_CODE, UNCLEAR_CODE, NameCodes
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
from steelyard.text import short_quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

DEFAULT_MODEL_COLUMN = "model"
CSV_SUFFIXES, JSON_LINES_SUFFIXES, PARQUET_SUFFIXES = (".csv", ".tsv"), (".jsonl", ".ndjson"), (".parquet",)


class OutcomeTableColumns(NamedTuple):
    """What the columns of a table are called; None for those that were not asked for."""

    case: str
    model: str
    passed: str
    sample: str | None
    cost: str | None
    score: str | None

    def names(self, *, has_model: bool) -> list[str]:
        """The columns that hold names."""
        return [self.case, *([self.model] if has_model else []), *([self.sample] if self.sample is not None else [])]

    def numbers(self) -> list[str]:
        """The columns that hold numbers."""
        return [name for name in (self.cost, self.score) if name is not None]


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


def table(
    paths: Sequence[str | Path],
    *,
    case: str = "case",
    model: str = DEFAULT_MODEL_COLUMN,
    passed: str = "passed",
    sample: str | None = None,
    cost: str | None = None,
    score: str | None = None,
) -> OutcomeTallies:
    """The outcomes of attempts, one tally per model: all files together, models and cases sorted by name.

    Every row is an attempt; with a `sample` column, rows about the same sample are one. Where no column was asked for
    as `model` and there is none, the file's name is the model's. Raises an InputError with all problems.
    """
    complaints = OutcomeProblemCollector()
    reading = OutcomeTableReader(OutcomeTableColumns(case, model, passed, sample, cost, score), complaints)
    given = files(paths, complaints)
    for file, stem in zip(given, model_names(given), strict=True):
        with collect_file_errors(file, complaints):
            reading.read(file, stem)
    return reading.outcomes()


class OutcomeTableReader:
    """A table being read, file by file."""

    def __init__(self, columns: OutcomeTableColumns, complaints: OutcomeProblemCollector) -> None:
        self._columns = columns
        self._complaints = complaints
        self._models, self._cases, self._samples = NameCodes(), NameCodes(), NameCodes()
        self._counting = OutcomeCounter()
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
        has_model = self._has_model(sheet.columns)
        columns = self._columns
        chosen = [*columns.names(has_model=has_model), columns.passed, *columns.numbers()]
        sheet.require(chosen)
        for part in sheet.parts(chosen):
            values = dict(zip(chosen, part.columns, strict=True))
            yield self._block(part.lines, values, stem)

    def _json_lines(self, file: OutcomeFile, stem: str) -> Iterator[OutcomeTableBlock]:
        import numpy as np

        columns = self._columns
        chosen = [*columns.names(has_model=True), columns.passed, *columns.numbers()]
        has_model: bool | None = None
        for part in line_batches(file, chosen, self._complaints):
            if not part.lines:
                continue
            values = dict(part.values)
            if has_model is None:
                # whether lines name the model is settled by the first of them
                has_model = self._has_model([] if values[columns.model][0] is ABSENT_KEY else [columns.model])
                self._require(file, part, [name for name in chosen if has_model or name != columns.model])
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
            yield self._block(lines if isinstance(lines, range) else np.array(lines, np.int64), values, stem)

    def _require(self, file: OutcomeFile, part: JsonLinesBatch, chosen: Sequence[str]) -> None:
        """Complain about keys that no line of the first part has."""
        absent = [name for name in chosen if all(value is ABSENT_KEY for value in part.values[name])]
        for name in absent:
            what = missing_column_message(name, line_keys(part.raw[0]))
            self._complaints.add(file, f"absent {name}", what, [part.lines[0]])
        if absent:
            raise IncompleteOutcomesError

    def _block(
        self, lines: npt.NDArray[Any] | range, values: Mapping[str, Sequence[Any]], stem: str
    ) -> OutcomeTableBlock:
        """Rows whose cells are Python's values."""
        import numpy as np

        columns = self._columns
        if columns.model in values:
            models = self._models.array(cells.name_texts(values[columns.model]))
        else:
            models = np.full(len(lines), self._models[stem], np.int32)
        return OutcomeTableBlock(
            lines,
            models,
            self._cases.array(cells.name_texts(values[columns.case])),
            cells.outcome_codes(values[columns.passed]),
            None if columns.sample is None else self._samples.array(cells.name_texts(values[columns.sample])),
            None if columns.cost is None else cells.numbers(values[columns.cost]),
            None if columns.score is None else cells.numbers(values[columns.score]),
            lambda column, row: values[column][row],
        )

    def _parquet(self, file: OutcomeFile, stem: str) -> Iterator[OutcomeTableBlock]:
        import numpy as np

        columns = self._columns
        read = OutcomeParquetReader(file, self._complaints)
        has_model = self._has_model(read.columns)
        names, numbers = columns.names(has_model=has_model), columns.numbers()
        read.require(names, numbers, [columns.passed])
        row = 1
        for batch in read.batches([*names, columns.passed, *numbers], [*names, columns.passed]):
            count = len(batch[columns.case])
            if has_model:
                models = name_column_codes(batch[columns.model], self._models)
            else:
                models = np.full(count, self._models[stem], np.int32)
            yield OutcomeTableBlock(
                range(row, row + count),
                models,
                name_column_codes(batch[columns.case], self._cases),
                outcome_column_codes(batch[columns.passed]),
                None if columns.sample is None else name_column_codes(batch[columns.sample], self._samples),
                None if columns.cost is None else number_column_values(batch[columns.cost]),
                None if columns.score is None else number_column_values(batch[columns.score]),
                partial(_cell, batch),
            )
            row += count

    def _take(self, file: OutcomeFile, block: OutcomeTableBlock) -> None:
        """Count the rows of a block, or keep them until all are there; complain about those that cannot be used."""
        import numpy as np

        columns = self._columns
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
            check(columns.score, (block.scores < 0) | (block.scores > 1), "; expected a number from 0 to 1")
            check(columns.score, np.isnan(block.scores), ": in no mean score", fatal=False)
        rows = OutcomeRows(file, *block[:-1])
        if not is_good.all():
            rows = rows.chosen(is_good)
        if rows.samples is None:
            self._counting.add(rows)
        else:
            self._kept.append(rows)


def _cell(batch: Mapping[str, Any], column: str, row: int) -> Any:
    return batch[column][row].as_py()
