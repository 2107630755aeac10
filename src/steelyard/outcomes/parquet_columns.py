"""The chosen columns of a Parquet file as codes and numbers, one batch at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError
from steelyard.outcomes import cells
from steelyard.outcomes.codes import FALSE_CODE, MISSING_CODE, TRUE_CODE, UNCLEAR_CODE, NameCodes
from steelyard.outcomes.problems import (
    IncompleteOutcomesError,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    missing_column_message,
)
from steelyard.text import short_quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

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
        """Complain about columns that are missing or hold something else, all at once."""
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
            return f"column {short_quote(name)} stands {count} times in the file"
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
            f"no Parquet file, or a broken one: {short_quote(str(error).partition(chr(10))[0])}"
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
    """Costs or scores; NaN where there is nothing, INVALID_NUMBER for any other value, unless kept."""
    import numpy as np
    import pyarrow

    column = column.cast(pyarrow.float64(), safe=False)
    values = np.frombuffer(column.buffers()[1], np.float64)[column.offset : column.offset + len(column)]
    if keep:
        return values
    values = np.where(np.isfinite(values), values, cells.INVALID_NUMBER)
    return np.where(_bits(column.buffers()[0], column), values, np.nan) if column.null_count else values


def _dictionary(column: Any) -> tuple[npt.NDArray[Any], list[Any]]:
    """Each row's place among the values, -1 where it has none, and the values."""
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
    return indices, column.dictionary.to_pylist()


def _bits(buffer: Any, column: Any) -> npt.NDArray[Any]:
    """A buffer of single bits, a byte for each row."""
    import numpy as np

    start, end = column.offset, column.offset + len(column)
    found = np.unpackbits(np.frombuffer(buffer, np.uint8)[start // 8 : -(-end // 8)], bitorder="little")
    return found[start % 8 : start % 8 + len(column)]
