"""Outcomes in a table with a row per attempt, its columns named by the caller."""

from __future__ import annotations

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
from steelyard.outcomes.columns import open_table
from steelyard.outcomes.counter import OutcomeCounter, OutcomeRows, without_repeats
from steelyard.outcomes.files import (
    OutcomeFile,
    OutcomeProblemCollector,
    collect_file_errors,
    files,
    model_names,
)
from steelyard.outcomes.scores import PLAIN_SCORES, ScoreReading
from steelyard.text import short_quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

DEFAULT_MODEL_COLUMN, DEFAULT_SCORE_COLUMN = "model", "score"
DEFAULT_PASSED_COLUMNS = ("passed", "correct")
"""The usual names of the column with the outcome; the first that is there counts."""
GRADED_COLUMN = "graded"
"""Whether the score is what was measured, as our own tables of attempts say it."""


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
    def outcomes(self) -> list[str]:
        """The columns that hold yes or no."""
        return [name for name in (self.passed, self.graded) if name is not None]

    def names(self, *, has_model: bool) -> list[str]:
        """The columns that hold names."""
        return [self.case, *([self.model] if has_model else []), *([self.sample] if self.sample is not None else [])]

    def numbers(self) -> list[str]:
        """The columns that hold numbers."""
        return [name for name in (self.cost, self.score) if name is not None]


class OutcomeTableBlock(NamedTuple):
    """Some rows of a table as arrays; -1 is the code of an empty name."""

    lines: npt.NDArray[Any]
    models: npt.NDArray[Any]
    cases: npt.NDArray[Any]
    outcomes: npt.NDArray[Any]
    samples: npt.NDArray[Any] | None
    costs: npt.NDArray[Any] | None
    scores: npt.NDArray[Any] | None
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
        source = open_table(file, self._complaints)
        columns = self._columns.among(source.columns)
        model = columns.model
        has_model = model in source.columns or model != DEFAULT_MODEL_COLUMN
        names, numbers = columns.names(has_model=has_model), columns.numbers()
        source.require(names, numbers, columns.outcomes)
        names = columns.names(has_model=has_model or not source.has_fixed_columns)
        chosen = [*names, *columns.outcomes, *numbers]
        count = 0
        for batch in source.parts(chosen):
            values = dict(zip(chosen, batch.columns, strict=True))
            if not has_model:
                named = [
                    line for line, name in zip(batch.lines, values.pop(model, ()), strict=False) if name is not None
                ]
                if named:
                    what = f"{model} stands here, but not on the first line"
                    self._complaints.add(file, "model", what, named)
            count += len(batch.lines)
            self._take(file, self._block(columns, batch.lines, values, stem), values)
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

    def _block(
        self, columns: OutcomeTableColumns, lines: npt.NDArray[Any], values: Mapping[str, Any], stem: str
    ) -> OutcomeTableBlock:
        """Rows as arrays."""
        import numpy as np

        scores = None if columns.score is None else self._shares(cells.numbers(values[columns.score]))
        if columns.model in values:
            models = self._models.array(values[columns.model])
        else:
            models = np.full(len(lines), self._models[stem], np.int32)
        return OutcomeTableBlock(
            lines,
            models,
            self._cases.array(values[columns.case]),
            _outcomes_of(scores) if columns.passed is None else cells.outcome_codes(values[columns.passed]),
            None if columns.sample is None else self._samples.array(values[columns.sample]),
            None if columns.cost is None else cells.numbers(values[columns.cost]),
            scores,
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

    def _oddities(self, block: OutcomeTableBlock) -> Iterator[tuple[str, npt.NDArray[Any], str, bool]]:
        """Columns with cells that are empty or cannot be used: in which rows, what to say, and whether it is an error."""
        import numpy as np

        columns, scores = block.columns, block.scores
        no_name = "; expected text or a whole number"
        found: list[tuple[str | None, Any, str, bool]] = [
            (columns.model, block.models < 0, no_name, True),
            (columns.case, block.cases < 0, no_name, True),
        ]
        if block.samples is not None:
            found.append((columns.sample, block.samples < 0, no_name, True))
        missing = ": an attempt without an outcome, which is not counted"
        found.append((columns.passed, block.outcomes == UNCLEAR_CODE, f"; expected {EXPECTED_BOOLEAN_TEXT}", True))
        found.append((columns.passed, block.outcomes == MISSING_CODE, missing, False))
        if block.costs is not None:
            found.append((columns.cost, block.costs < 0, "; expected a number, 0 or more", True))
            found.append((columns.cost, np.isnan(block.costs), ": what this model costs is not known", False))
        if scores is not None:
            unused = "" if columns.is_score_asked else ": in no mean score"
            what = f"{unused}; expected {self._scores.expected}"
            found.append((columns.score, (scores < 0) | (scores > 1), what, columns.is_score_asked))
            found.append((columns.score, np.isnan(scores), ": in no mean score", False))
        for column, is_odd, what, fatal in found:
            if column is not None and is_odd.any():
                yield column, is_odd, what, fatal

    def _take(self, file: OutcomeFile, block: OutcomeTableBlock, values: Mapping[str, Any]) -> None:
        """Count the rows of a block, or keep them until all are there; complain about those that cannot be used."""
        import numpy as np

        is_good = np.ones(len(block.cases), bool)
        for column, is_odd, what, fatal in self._oddities(block):
            sentence = f"{column} is {cells.quoted_cell(values[column][int(is_odd.argmax())])}{what}"
            self._complaints.add(file, f"{column}{what}", sentence, block.lines[is_odd], fatal=fatal)
            if fatal:
                is_good &= ~is_odd
        rows = _rows_of(file, block)
        if not is_good.all():
            rows = rows.chosen(is_good)
        if rows.samples is None:
            self._counting.add(rows)
        else:
            self._kept.append(rows)


def _rows_of(file: OutcomeFile, block: OutcomeTableBlock) -> OutcomeRows:
    """The attempts of a block; a score that nobody asked for and that is none is left out."""
    import numpy as np

    if block.scores is not None and not block.columns.is_score_asked:
        is_odd = (block.scores < 0) | (block.scores > 1)
        block = block._replace(scores=np.where(is_odd, np.nan, block.scores))
    return OutcomeRows(file, *block[:-2], is_graded=block.is_graded)


def _outcomes_of(scores: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """How attempts came out that only have scores: the best one passes."""
    import numpy as np

    if scores is None:
        raise TypeError("a table without outcomes has scores")
    is_odd = ~np.isnan(scores) & ((scores < 0) | (scores > 1))
    known = np.where(scores >= 1, TRUE_CODE, FALSE_CODE)
    # an odd score has its own complaint
    return np.where(np.isnan(scores), MISSING_CODE, np.where(is_odd, FALSE_CODE, known)).astype(np.int8)
