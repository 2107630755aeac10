"""The chosen columns of a CSV, JSONL or Parquet file, some thousand rows at a time."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.errors import InputError
from steelyard.outcomes import cells
from steelyard.outcomes.cells import FALSE_CODE, MISSING_CODE, TRUE_CODE, UNCLEAR_CODE, NameCodes, RepeatedTexts
from steelyard.outcomes.files import (
    MAX_OUTCOME_LINE_BYTES,
    IncompleteOutcomesError,
    LineChunks,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    missing_column_message,
)
from steelyard.records.base import MAX_NUMBER
from steelyard.text import short_quote

if TYPE_CHECKING:
    import numpy.typing as npt


MIN_ARROW_BYTES = 4 << 20
"""Bytes of a file that take longer to read than Arrow takes to load."""
ARROW_CHUNK_BYTES = 1 << 20
"""Bytes at a time: with more of them fewer texts are new."""


class ArrowScanner:
    """Takes the chosen columns out of lines without quotes; what is odd about a line is for others to say."""

    def __init__(self, width: int, chosen: Sequence[int], delimiter: str) -> None:
        import pyarrow
        import pyarrow.csv

        names = [str(place) for place in range(width)]
        self._chosen = [names[place] for place in chosen]
        self._read = pyarrow.csv.ReadOptions(column_names=names, use_threads=False, block_size=1 << 30)
        self._parse = pyarrow.csv.ParseOptions(
            delimiter=delimiter, quote_char=False, escape_char=False, ignore_empty_lines=False
        )
        kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        self._convert = pyarrow.csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(self._chosen, kind),
            include_columns=list(dict.fromkeys(self._chosen)),
            null_values=[],
            strings_can_be_null=False,
        )

    @classmethod
    def for_file(cls, file: OutcomeFile, width: int, chosen: Sequence[int], delimiter: str) -> ArrowScanner | None:
        """A scanner of this file; None where it is short, or Arrow is not installed."""
        if file.path.stat().st_size < MIN_ARROW_BYTES or find_spec("pyarrow") is None:
            return None
        return cls(width, chosen, delimiter)

    def columns(self, body: str, rows: int) -> list[Sequence[str]] | None:
        """The chosen columns of these lines; None if a line has more or fewer fields than the header."""
        import numpy as np
        import pyarrow
        import pyarrow.csv

        # Arrow would take a blank line for a row, and the character for the mark of a file's encoding
        if "\n\n" in body or body.startswith(("\n", "\ufeff")) or body.endswith("\n"):
            return None
        try:
            table = pyarrow.csv.read_csv(
                pyarrow.py_buffer(body.encode()),
                read_options=self._read,
                parse_options=self._parse,
                convert_options=self._convert,
            )
        except pyarrow.ArrowInvalid:
            return None
        if len(table) != rows:
            return None
        found: dict[str, Sequence[str]] = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            (chunk,) = column.chunks
            indices: Any = np.frombuffer(chunk.indices.buffers()[1], np.int32)[: len(chunk)]
            found[name] = RepeatedTexts(chunk.dictionary.to_pylist(), indices)
        return [found[name] for name in self._chosen]


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
        """A chunk that was examined and must be read by the CSV reader."""
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
            # a quoted field may never end
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
        }.get(str(error), f"broken quoting ({error}); double a quote inside quotes")
        return UnreadableOutcomesError(what, self._next_line)

    def require(self, wanted: Sequence[str]) -> None:
        """Complain about columns that are missing or not clear, all at once."""
        if not self.columns:
            raise UnreadableOutcomesError(f"empty; expected a header line with {', '.join(wanted)}")
        counts = Counter(self.columns)
        for name in dict.fromkeys(wanted):
            if counts[name] > 1:
                what = f"column {short_quote(name)} occurs {counts[name]} times in the header"
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
        """Chunks of whole rows that need no CSV reader because they have no quotes; splitting them is far cheaper."""
        import numpy as np

        scanner = ArrowScanner.for_file(self.file, len(self.columns), chosen, self._delimiter)
        if scanner:
            self._pieces.size = ARROW_CHUNK_BYTES
        for text in self._texts:
            if '"' in text or len(self.columns) < 2:
                self._returned = text
                return
            body = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
            lines = np.arange(self._pieces.line, self._pieces.next_line, dtype=np.int64)
            columns = (scanner and scanner.columns(body, len(lines))) or self._split(body, chosen)
            if columns is None:
                self._returned = text
                return
            self._unread += len(lines)
            self._next_line = self._pieces.next_line
            yield CsvBatch(columns, lines)

    def _split(self, body: str, chosen: Sequence[int]) -> Sequence[Sequence[str]] | None:
        """The chosen columns of lines without quotes; None if a line has more or fewer fields than the header."""
        width = len(self.columns)
        if set(map(methodcaller("count", self._delimiter), body.split("\n"))) != {width - 1}:
            return None
        fields = body.replace("\n", self._delimiter).split(self._delimiter)
        return [fields[at::width] for at in chosen]

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


PARQUET_BATCH_ROWS = 1 << 20


class OutcomeParquetReader:
    """A Parquet file, opened, its columns known."""

    def __init__(self, file: OutcomeFile, complaints: OutcomeProblemCollector) -> None:
        try:
            import pyarrow.parquet
        except ImportError:
            raise InputError('Parquet files need pyarrow: pip install "steelyard[parquet]"') from None
        self.file = file
        self._complaints = complaints
        with _explain_parquet_errors():
            self._metadata = pyarrow.parquet.read_metadata(file.path)
            self._schema = self._metadata.schema.to_arrow_schema()
        self.columns: list[str] = self._schema.names

    def require(self, names: Sequence[str], numbers: Sequence[str], others: Sequence[str]) -> None:
        """Report all columns that are missing or have the wrong type."""
        is_fine = True
        for wanted, expected, test in (
            (names, "text or whole numbers", _is_name),
            (numbers, "numbers", _is_number),
            (others, "booleans", lambda kind: _is_name(kind) or _is_number(kind) or str(kind) == "bool"),
        ):
            for name in wanted:
                what = self._complaint(name, expected, test)
                if what:
                    self._complaints.add(self.file, f"column {name}", what)
                    is_fine = False
        if not is_fine:
            raise IncompleteOutcomesError

    def _complaint(self, name: str, expected: str, test: Callable[[Any], bool]) -> str:
        count = self.columns.count(name)
        if not count:
            return missing_column_message(name, self.columns)
        if count > 1:
            return f"column {short_quote(name)} occurs {count} times in the file"
        kind = self._schema.field(name).type
        return "" if test(kind) else f"column {short_quote(name)} holds {str(kind)[:80]}; expected {expected}"

    def batches(self, chosen: Sequence[str], names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """These columns, those with names as dictionaries where that saves work."""
        import pyarrow.parquet

        with (
            _explain_parquet_errors(),
            pyarrow.parquet.ParquetFile(
                self.file.path, metadata=self._metadata, read_dictionary=list(names), pre_buffer=False
            ) as opened,
        ):
            for batch in opened.iter_batches(batch_size=PARQUET_BATCH_ROWS, columns=list(chosen), use_threads=False):
                yield {name: batch.column(name) for name in chosen}


@contextmanager
def _explain_parquet_errors() -> Iterator[None]:
    """Say in one sentence that a file is not what it should be."""
    import pyarrow

    try:
        yield
    except UnicodeDecodeError:
        raise UnreadableOutcomesError("names that are not UTF-8 text") from None
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UnreadableOutcomesError(
            f"not a Parquet file, or a broken one: {short_quote(str(error).partition(chr(10))[0])}"
        ) from None


def _is_name(kind: Any) -> bool:
    import pyarrow

    types = pyarrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    texts = types.is_string, types.is_large_string, types.is_string_view
    return any(test(kind) for test in (*texts, types.is_integer, types.is_binary, types.is_large_binary))


def _is_number(kind: Any) -> bool:
    import pyarrow

    return any(test(kind) for test in (pyarrow.types.is_integer, pyarrow.types.is_floating, pyarrow.types.is_decimal))


def name_column_codes(column: Any, known: NameCodes) -> npt.NDArray[Any]:
    """The number of the name in each row; -1 for no name."""
    import numpy as np

    indices, values = _dictionary(column)
    local = known.array(cells.name_texts(values))
    return np.append(local, np.int32(-1)).take(indices)


def outcome_column_codes(column: Any) -> npt.NDArray[Any]:
    """How the attempt in each row came out, as a number."""
    import numpy as np
    import pyarrow

    if pyarrow.types.is_boolean(column.type):
        found = _bits(column.buffers()[1], column).view(np.int8)
        return (
            np.where(_bits(column.buffers()[0], column), found, np.int8(MISSING_CODE)) if column.null_count else found
        )
    if _is_number(column.type):
        values = number_column_values(column, keep=True)
        found = np.full(len(values), UNCLEAR_CODE, np.int8)
        found[values == 1] = TRUE_CODE
        found[values == 0] = FALSE_CODE
        return (
            np.where(_bits(column.buffers()[0], column), found, np.int8(MISSING_CODE)) if column.null_count else found
        )
    indices, texts = _dictionary(column)
    local = cells.outcome_codes([*texts, None])
    return local.take(indices)


def number_column_values(column: Any, *, keep: bool = False) -> npt.NDArray[Any]:
    """Costs or scores; NaN for an empty cell, INVALID_NUMBER for any other value, unless kept."""
    import numpy as np
    import pyarrow

    column = column.cast(pyarrow.float64(), safe=False)
    values = np.frombuffer(column.buffers()[1], np.float64)[column.offset : column.offset + len(column)]
    if keep:
        return values
    values = np.where(np.abs(values) <= MAX_NUMBER, values, cells.INVALID_NUMBER)
    return np.where(_bits(column.buffers()[0], column), values, np.nan) if column.null_count else values


def _dictionary(column: Any) -> tuple[npt.NDArray[Any], list[Any]]:
    """Each row's index among the values, -1 for a missing value, and the values."""
    import numpy as np
    import pyarrow

    if pyarrow.types.is_string_view(column.type):
        column = column.cast(pyarrow.large_string())
    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    # to_numpy would load pandas, which takes longer than a million rows
    indices = np.frombuffer(column.indices.buffers()[1], column.indices.type.to_pandas_dtype())
    indices = indices[column.indices.offset : column.indices.offset + len(column)]
    if column.indices.null_count:
        indices = np.where(_bits(column.indices.buffers()[0], column.indices), indices, -1)
    if len(indices) and not -1 <= indices.min() <= indices.max() < len(column.dictionary):
        raise UnreadableOutcomesError("not a Parquet file, or a broken one: rows with names that are not in it")
    return indices, column.dictionary.to_pylist()


def _bits(buffer: Any, column: Any) -> npt.NDArray[Any]:
    """A buffer of single bits, a byte for each row."""
    import numpy as np

    start, end = column.offset, column.offset + len(column)
    found = np.unpackbits(np.frombuffer(buffer, np.uint8)[start // 8 : -(-end // 8)], bitorder="little")
    return found[start % 8 : start % 8 + len(column)]
