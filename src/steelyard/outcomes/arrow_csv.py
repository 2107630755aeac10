"""Lines of CSV parsed by Arrow, if it is installed and the file is long enough to be worth loading it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from steelyard.outcomes.cells import RepeatedTexts
from steelyard.outcomes.files import OutcomeFile

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
