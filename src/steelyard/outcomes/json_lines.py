"""The chosen keys of a JSONL file, some thousand lines at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import msgspec

from steelyard.outcomes.cells import TypedField, cell_types
from steelyard.outcomes.files import LineChunks, OutcomeFile, OutcomeProblemCollector

if TYPE_CHECKING:
    import numpy.typing as npt

ABSENT_KEY = msgspec.UNSET
"""Stands where a line does not have a key."""


class JsonLinesBatch(NamedTuple):
    """Some lines of a file."""

    values: Mapping[str, Sequence[Any]]
    """By key; ABSENT where a line does not have it."""
    lines: Sequence[int]
    raw: Sequence[bytes]
    """The lines as they are in the file."""


def line_batches(
    file: OutcomeFile, chosen: Sequence[str], complaints: OutcomeProblemCollector
) -> Iterator[JsonLinesBatch]:
    """The values of these keys on every line that is an object; blank lines are fine."""
    decoder = _RowDecoder(list(dict.fromkeys(chosen)))
    pieces = LineChunks(file.path, carriage_returns=False)
    for piece in pieces:
        numbered = range(pieces.line, pieces.next_line)
        if (values := decoder.plain_values(piece, len(numbered))) is not None:
            yield JsonLinesBatch(values, numbered, _PlainLines(piece))
            continue
        stripped = list(map(bytes.strip, piece.split(b"\n")))
        lines = [line for line, raw in enumerate(stripped, pieces.line) if raw]
        raws = list(filter(None, stripped))
        try:
            rows = list(map(decoder.decode, raws))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # one by one, to know which is broken
            found = list(map(decoder.row, raws))
            for one, line in zip(found, lines, strict=True):
                if isinstance(one, str):
                    complaints.add(file, one, one, [line])
            is_good = [not isinstance(one, str) for one in found]
            lines, raws = list(compress(lines, is_good)), list(compress(raws, is_good))
            rows = list(compress(found, is_good))
        yield JsonLinesBatch(decoder.values(rows), lines, raws)


class _RowDecoder:
    """Decodes the values of some keys; most files have values of one type for each, so it expects those of the last piece."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._fields = {key: f"key_{at}" for at, key in enumerate(keys)}
        self._row = self._row_type({})
        self.decode = msgspec.json.Decoder(self._row).decode
        self._expect({})

    def _row_type(self, types: Mapping[str, type]) -> Any:
        fields = [
            (field, types[key]) if key in types else (field, Any, ABSENT_KEY) for key, field in self._fields.items()
        ]
        names = {field: key for key, field in self._fields.items()}
        return msgspec.defstruct("Row", fields, rename=names, gc=False, kw_only=True)

    def _expect(self, types: dict[str, type]) -> None:
        self._types = types
        """The types that values must have; any value, or none, of the other keys."""
        self._decoder = msgspec.json.Decoder(self._row_type(types))

    def values(self, rows: Sequence[Any], types: Mapping[str, type] = {}) -> dict[str, Sequence[Any]]:
        """The values of each key in some rows, of which some keys have one type in all rows."""
        return {
            key: TypedField(rows, field, types[key]) if key in types else list(map(attrgetter(field), rows))
            for key, field in self._fields.items()
        }

    def plain_values(self, piece: bytes, lines: int) -> dict[str, Sequence[Any]] | None:
        """The same of lines that are decoded all at once; None where each has to be looked at."""
        if not _has_braces_around_line_breaks(piece):
            return None
        try:
            rows = self._decoder.decode_lines(piece)
        except msgspec.ValidationError:
            if not self._types:
                return None
            self._expect({})
            return self.plain_values(piece, lines)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if len(rows) != lines:
            return None
        values = self.values(rows, self._types)
        if not self._types:
            types = {key: cell_types(column) for key, column in values.items()}
            self._expect({key: kinds.pop() for key, kinds in types.items() if kinds in ({str}, {bool})})
        return values

    def row(self, raw: bytes) -> Any:
        """One line, or a sentence that says why it has no values."""
        try:
            return self.decode(raw)
        except msgspec.ValidationError:
            # every value of an object is accepted, so only a line that is another value is refused
            what = "not a JSON object"
        except msgspec.DecodeError as error:
            what = f"broken JSON: {str(error).removeprefix('JSON is malformed: ').partition(' (byte ')[0]}"
        except UnicodeDecodeError:
            what = "not UTF-8 text; save the file as UTF-8"
        except RecursionError:
            return "nested too deeply to be read"
        try:
            # Python's own reader knows what Python writes beyond JSON: NaN and Infinity
            table = json.loads(raw)
        except (ValueError, RecursionError):
            return what
        return (
            self._row(**{field: table.get(key, ABSENT_KEY) for key, field in self._fields.items()})
            if isinstance(table, dict)
            else what
        )


def _has_braces_around_line_breaks(piece: bytes) -> bool:
    """Whether each line begins and ends with a brace.

    The decoder does not mind where lines end. But where each line break is between two braces, none is in a text or in an object,
    because neither may have one there: so as many rows as lines are one row on each.
    """
    import numpy as np

    if piece[:1] != b"{" or not piece.endswith((b"}", b"}\n")):
        return False
    # counting a text of three letters takes five times as long
    letters: npt.NDArray[Any] = np.frombuffer(piece, np.uint8)
    breaks = np.flatnonzero(letters[:-1] == ord("\n"))
    return bool(((letters[breaks - 1] == ord("}")) & (letters[breaks + 1] == ord("{"))).all())


class _PlainLines(Sequence[bytes]):
    """The lines of a piece, taken apart when one of them is asked for."""

    def __init__(self, piece: bytes) -> None:
        self._piece = piece
        self._lines: list[bytes] = []

    def _split(self) -> list[bytes]:
        self._lines = self._lines or self._piece.removesuffix(b"\n").split(b"\n")
        return self._lines

    def __len__(self) -> int:
        return len(self._split())

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        return self._split()[at]


def line_keys(raw: bytes) -> list[str]:
    """The keys that a line has."""
    try:
        table = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    return [str(key) for key in table]
