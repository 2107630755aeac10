"""The chosen columns of a CSV, JSONL or Parquet file, some thousand rows at a time."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import attrgetter, itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from steelyard.errors import InputError
from steelyard.outcomes.cells import CodedCells
from steelyard.outcomes.files import (
    MAX_OUTCOME_LINE_BYTES,
    IncompleteOutcomesError,
    LineChunks,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    missing_column_message,
)
from steelyard.text import short_quote

if TYPE_CHECKING:
    import numpy.typing as npt

CSV_BATCH_ROWS, PARQUET_BATCH_ROWS = 1000, 1 << 20
MAX_CSV_FIELD_CHARACTERS = 32 << 20
MAX_CSV_ROW_CHARACTERS = MAX_OUTCOME_LINE_BYTES
CSV_SUFFIXES, JSON_LINES_SUFFIXES, PARQUET_SUFFIXES = (".csv", ".tsv"), (".jsonl", ".ndjson"), (".parquet",)


class RowBatch(NamedTuple):
    """Some rows of a table."""

    columns: Sequence[Any]
    """The cells of each chosen column."""
    lines: npt.NDArray[Any]
    """The line that each row begins on, or its number where there are no lines."""


class OutcomeTableSource(Protocol):
    """A table, opened, its columns known."""

    columns: list[str]
    has_fixed_columns: bool
    """Whether no row has a column that the first does not have."""

    def require(self, names: Sequence[str], numbers: Sequence[str] = (), outcomes: Sequence[str] = ()) -> None:
        """Complain about columns that are missing, not clear or of a wrong type, all at once."""
        ...

    def parts(self, chosen: Sequence[str]) -> Iterator[RowBatch]:
        """The cells of these columns in all rows; rows that are broken are complained about."""
        ...


def open_table(file: OutcomeFile, complaints: OutcomeProblemCollector) -> OutcomeTableSource:
    """The table in a file, by the ending of its name."""
    name = file.path.name.lower().removesuffix(".gz")
    if name.endswith(CSV_SUFFIXES):
        return OutcomeCsvReader(file, complaints, delimiter="\t" if name.endswith(".tsv") else ",")
    if name.endswith(JSON_LINES_SUFFIXES):
        return OutcomeJsonReader(file, complaints)
    if name.endswith(PARQUET_SUFFIXES):
        return OutcomeParquetReader(file, complaints)
    known = ", ".join((*CSV_SUFFIXES, *JSON_LINES_SUFFIXES, *PARQUET_SUFFIXES))
    raise UnreadableOutcomesError(f"unknown kind of file; the name of a table ends in one of {known}")


class OutcomeCsvReader:
    """A CSV file, opened, its header read."""

    has_fixed_columns = True

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

    def require(self, names: Sequence[str], numbers: Sequence[str] = (), outcomes: Sequence[str] = ()) -> None:
        """Complain about columns that are missing or not clear, all at once."""
        wanted = [*names, *outcomes, *numbers]
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

    def parts(self, chosen: Sequence[str]) -> Iterator[RowBatch]:
        """The texts of these columns, at least two, for all rows that have as many fields as the header."""
        with allow_long_csv_fields():
            yield from self._parts(list(map(self.columns.index, chosen)))

    def _parts(self, chosen: Sequence[int]) -> Iterator[RowBatch]:
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
                    yield _row_batch(texts, lines, len(chosen))
                    texts, lines = [], []
                    yield from self._plain_parts(chosen)
                    line = self._next_line
                elif len(lines) == CSV_BATCH_ROWS:
                    yield _row_batch(texts, lines, len(chosen))
                    texts, lines = [], []
        except (csv.Error, UnreadableOutcomesError) as error:
            # what came before is judged all the same
            yield _row_batch(texts, lines, len(chosen))
            raise (self._broken(error) if isinstance(error, csv.Error) else error) from None
        yield _row_batch(texts, lines, len(chosen))

    def _plain_parts(self, chosen: Sequence[int]) -> Iterator[RowBatch]:
        """Chunks of whole rows that need no CSV reader because they have no quotes; splitting them is far cheaper."""
        import numpy as np

        for text in self._texts:
            if '"' in text or len(self.columns) < 2:
                self._returned = text
                return
            body = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
            lines = np.arange(self._pieces.line, self._pieces.next_line, dtype=np.int64)
            columns = self._split(body, chosen)
            if columns is None:
                self._returned = text
                return
            self._unread += len(lines)
            self._next_line = self._pieces.next_line
            yield RowBatch(columns, lines)

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


def _row_batch(texts: list[str], lines: list[int], count: int) -> RowBatch:
    import numpy as np

    return RowBatch([texts[at::count] for at in range(count)], np.array(lines, np.int64))


@contextmanager
def allow_long_csv_fields() -> Iterator[None]:
    """Let fields be as long as files of replies have them, as long as we read."""
    before = csv.field_size_limit(MAX_CSV_FIELD_CHARACTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


class OutcomeJsonReader:
    """A file with a JSON object on each line; the first object says which columns there are."""

    has_fixed_columns = False

    def __init__(self, file: OutcomeFile, complaints: OutcomeProblemCollector) -> None:
        self.file = file
        self._complaints = complaints
        self.columns: list[str] = []
        self._first_line, self._known = 0, set[str]()
        pieces = LineChunks(file.path, carriage_returns=False)
        for piece in pieces:
            for line, raw in enumerate(piece.split(b"\n"), pieces.line):
                if isinstance(found := _json_object(raw), dict):
                    self.columns = self.columns or list(found)
                    self._first_line = self._first_line or line
                    self._known.update(found)
            if self.columns:
                break

    def require(self, names: Sequence[str], numbers: Sequence[str] = (), outcomes: Sequence[str] = ()) -> None:
        """Complain about keys that none of the first lines has."""
        absent = [name for name in (*names, *outcomes, *numbers) if name not in self._known]
        for name in absent if self.columns else ():
            what = missing_column_message(name, self.columns)
            self._complaints.add(self.file, f"absent {name}", what, [self._first_line])
        if absent and self.columns:
            raise IncompleteOutcomesError

    def parts(self, chosen: Sequence[str]) -> Iterator[RowBatch]:
        """The values of these keys on every line that is an object, None where it has no such key; blank lines are fine."""
        import numpy as np

        fields = {key: f"key_{at}" for at, key in enumerate(dict.fromkeys(chosen))}
        row_type = msgspec.defstruct(
            "Row",
            [(field, Any, None) for field in fields.values()],
            rename={field: key for key, field in fields.items()},
            gc=False,
            kw_only=True,
        )
        decode = msgspec.json.Decoder(row_type).decode
        pieces = LineChunks(self.file.path, carriage_returns=False)
        for piece in pieces:
            rows: list[Any] = []
            lines: list[int] = []
            for line, raw in enumerate(piece.split(b"\n"), pieces.line):
                try:
                    rows.append(decode(raw))
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    if not raw.strip():
                        continue
                    found = _json_object(raw)
                    if isinstance(found, str):
                        self._complaints.add(self.file, found, found, [line])
                        continue
                    rows.append(row_type(**{field: found.get(key) for key, field in fields.items()}))
                lines.append(line)
            if rows:
                columns = {key: list(map(attrgetter(field), rows)) for key, field in fields.items()}
                yield RowBatch([columns[key] for key in chosen], np.array(lines, np.int64))


def _json_object(raw: bytes) -> dict[str, Any] | str:
    """The object on a line, or a sentence that says why there is none."""
    try:
        try:
            found = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            # Python's own reader knows what Python writes beyond JSON: NaN and Infinity
            found = json.loads(raw)
    except RecursionError:
        return "nested too deeply to be read"
    except UnicodeDecodeError:
        return "not UTF-8 text; save the file as UTF-8"
    except ValueError:
        return f"broken JSON: {_json_error(raw)}"
    return found if isinstance(found, dict) else "not a JSON object"


def _json_error(raw: bytes) -> str:
    try:
        msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return str(error).removeprefix("JSON is malformed: ").partition(" (byte ")[0]
    return ""


class OutcomeParquetReader:
    """A Parquet file, opened, its columns known."""

    has_fixed_columns = True

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

    def require(self, names: Sequence[str], numbers: Sequence[str] = (), outcomes: Sequence[str] = ()) -> None:
        """Report all columns that are missing or have the wrong type."""
        is_fine = True
        for wanted, expected, test in (
            (names, "text or whole numbers", _is_name),
            (numbers, "numbers", _is_number),
            (outcomes, "booleans", lambda kind: _is_name(kind) or _is_number(kind) or str(kind) == "bool"),
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

    def parts(self, chosen: Sequence[str]) -> Iterator[RowBatch]:
        """These columns, each different cell once where that saves work."""
        import numpy as np
        import pyarrow.parquet

        texts = [name for name in chosen if not _is_number(self._schema.field(name).type)]
        row = 1
        with (
            _explain_parquet_errors(),
            pyarrow.parquet.ParquetFile(
                self.file.path, metadata=self._metadata, read_dictionary=texts, pre_buffer=False
            ) as opened,
        ):
            for batch in opened.iter_batches(batch_size=PARQUET_BATCH_ROWS, columns=list(chosen), use_threads=False):
                columns = [_cells(batch.column(name)) for name in chosen]
                yield RowBatch(columns, np.arange(row, row + len(batch)))
                row += len(batch)


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


def _cells(column: Any) -> Any:
    """The cells of a column: numbers, or each different cell once."""
    import pyarrow

    is_inexact = pyarrow.types.is_floating(column.type) or pyarrow.types.is_decimal(column.type)
    return _numbers(column) if is_inexact else coded_cells(column)


def _numbers(column: Any) -> npt.NDArray[Any]:
    """The numbers of a column, empty cells masked."""
    import numpy as np
    import pyarrow

    column = column.cast(pyarrow.float64(), safe=False)
    values = np.frombuffer(column.buffers()[1], np.float64)[column.offset : column.offset + len(column)]
    is_empty = ~_bits(column.buffers()[0], column).view(bool) if column.null_count else np.zeros(len(values), bool)
    return np.ma.MaskedArray(values, is_empty)


def coded_cells(column: Any) -> CodedCells:
    """The cells by their numbers among the different ones."""
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
    return CodedCells([*column.dictionary.to_pylist(), None], indices)


def _bits(buffer: Any, column: Any) -> npt.NDArray[Any]:
    """A buffer of single bits, a byte for each row."""
    import numpy as np

    start, end = column.offset, column.offset + len(column)
    found = np.unpackbits(np.frombuffer(buffer, np.uint8)[start // 8 : -(-end // 8)], bitorder="little")
    return found[start % 8 : start % 8 + len(column)]
