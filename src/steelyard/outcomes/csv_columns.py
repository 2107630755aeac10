"""The chosen columns of a CSV file, some thousand rows at a time."""

from __future__ import annotations

import csv
import io
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, NamedTuple

from steelyard.outcomes.byte_chunks import MAX_OUTCOME_LINE_BYTES, LineChunks
from steelyard.outcomes.problems import (
    IncompleteOutcomesError,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    missing_column_message,
)
from steelyard.text import short_quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import numpy.typing as npt

CSV_BATCH_ROWS = 1000
MAX_CSV_FIELD_CHARACTERS = 32 << 20
MAX_CSV_ROW_CHARACTERS = MAX_OUTCOME_LINE_BYTES


class CsvBatch(NamedTuple):
    """Some rows of a sheet."""

    columns: Sequence[Sequence[str]]
    """The texts of each chosen column."""
    lines: npt.NDArray[Any]
    """The line that each row begins on."""


class OutcomeCsvReader:
    """A CSV file, opened, its header read."""

    def __init__(self, file: OutcomeFile, complaints: OutcomeProblemCollector, *, delimiter: str = ",") -> None:
        self.file = file
        self._complaints = complaints
        self._delimiter = delimiter
        self._pieces = LineChunks(file.path, carriage_returns=True)
        self._texts = self._pieces.texts()
        self._returned = ""
        """A piece that was looked at, and is the reader's to read."""
        self._reader = csv.reader(chain.from_iterable(self._lines()), strict=True, delimiter=delimiter)
        self._unread = 0
        """Lines that did not go through the reader."""
        self._next_line = self._header_line = 1
        self.columns: list[str] = []
        with allow_long_csv_fields():
            while not self.columns and (row := self._row()) is not None:
                if any(name.strip() for name in row):
                    self.columns = [name.strip() for name in row]

    def _lines(self) -> Iterator[io.StringIO]:
        line = size = 0
        while text := self._returned or next(self._texts, ""):
            self._returned = ""
            # a quoted field may go on for ever
            size = len(text) + (size if line == self._next_line else 0)
            line = self._next_line
            if size > MAX_CSV_ROW_CHARACTERS:
                raise UnreadableOutcomesError(
                    f"a row of more than {MAX_CSV_ROW_CHARACTERS >> 20} MB; is a quote left open?", line
                )
            yield io.StringIO(text, newline="")

    def _row(self) -> list[str] | None:
        try:
            row = next(self._reader, None)
        except csv.Error as error:
            raise self._broken(error) from None
        if row is not None:
            self._header_line, self._next_line = self._next_line, self._reader.line_num + 1
        return row

    def _broken(self, error: csv.Error) -> UnreadableOutcomesError:
        what = {
            "unexpected end of data": "a quote is opened on this line and never closed",
            f"field larger than field limit ({MAX_CSV_FIELD_CHARACTERS})": f"a field of more than {MAX_CSV_FIELD_CHARACTERS >> 20} MB",
        }.get(str(error), f"broken quoting ({error}); double a quote that stands inside quotes")
        return UnreadableOutcomesError(what, self._next_line)

    def require(self, wanted: Sequence[str]) -> None:
        """Complain about columns that are missing or not clear, all at once."""
        if not self.columns:
            raise UnreadableOutcomesError(f"empty; expected a header line with {', '.join(wanted)}")
        counts = Counter(self.columns)
        for name in dict.fromkeys(wanted):
            if counts[name] > 1:
                what = f"column {short_quote(name)} stands {counts[name]} times in the header"
                self._complaints.add(self.file, f"twice {name}", what, [self._header_line])
            elif not counts[name]:
                self._complaints.add(
                    self.file, f"absent {name}", missing_column_message(name, self.columns), [self._header_line]
                )
        if any(counts[name] != 1 for name in wanted):
            raise IncompleteOutcomesError

    def parts(self, chosen: Sequence[str]) -> Iterator[CsvBatch]:
        """The texts of these columns, at least two, for all rows that have as many fields as the header."""
        with allow_long_csv_fields():
            yield from self._parts(list(map(self.columns.index, chosen)))

    def _parts(self, chosen: Sequence[int]) -> Iterator[CsvBatch]:
        picked = itemgetter(*chosen)
        reader = self._reader
        width = len(self.columns)
        texts: list[str] = []
        lines: list[int] = []
        line = self._next_line
        try:
            for row in reader:
                if len(row) == width:
                    texts += picked(row)
                    lines.append(line)
                elif row:
                    self._misfit(len(row), line)
                self._next_line = line = reader.line_num + self._unread + 1
                if line == self._pieces.next_line:
                    yield _csv_batch(texts, lines, len(chosen))
                    texts, lines = [], []
                    yield from self._plain_parts(chosen)
                    line = self._next_line
                elif len(lines) == CSV_BATCH_ROWS:
                    yield _csv_batch(texts, lines, len(chosen))
                    texts, lines = [], []
        except (csv.Error, UnreadableOutcomesError) as error:
            # what came before is judged all the same
            yield _csv_batch(texts, lines, len(chosen))
            raise (self._broken(error) if isinstance(error, csv.Error) else error) from None
        yield _csv_batch(texts, lines, len(chosen))

    def _plain_parts(self, chosen: Sequence[int]) -> Iterator[CsvBatch]:
        """Pieces of whole rows that need no reader, because they have no quotes; taking them apart is far cheaper."""
        import numpy as np

        width = len(self.columns)
        for text in self._texts:
            if '"' in text or width < 2:
                self._returned = text
                return
            body = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
            counts = set(map(methodcaller("count", self._delimiter), body.split("\n")))
            if counts != {width - 1}:
                self._returned = text
                return
            fields = body.replace("\n", self._delimiter).split(self._delimiter)
            lines = np.arange(self._pieces.line, self._pieces.next_line, dtype=np.int64)
            self._unread += len(lines)
            self._next_line = self._pieces.next_line
            yield CsvBatch([fields[at::width] for at in chosen], lines)

    def _misfit(self, count: int, line: int) -> None:
        kind = "few" if count < len(self.columns) else "many"
        what = f"too {kind} fields: {count}, where the header has {len(self.columns)}"
        self._complaints.add(self.file, kind, what, [line])


def _csv_batch(texts: list[str], lines: list[int], count: int) -> CsvBatch:
    import numpy as np

    return CsvBatch([texts[at::count] for at in range(count)], np.array(lines, np.int64))


@contextmanager
def allow_long_csv_fields() -> Iterator[None]:
    """Let fields be as long as files of replies have them, as long as we read."""
    before = csv.field_size_limit(MAX_CSV_FIELD_CHARACTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)
