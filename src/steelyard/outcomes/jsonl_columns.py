"""The chosen keys of a JSONL file, some thousand lines at a time."""

from __future__ import annotations

import json
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.outcomes.byte_chunks import LineChunks
from steelyard.outcomes.problems import OutcomeFile, OutcomeProblemCollector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ABSENT_KEY = msgspec.UNSET
"""Stands where a line does not have a key."""


class JsonLinesBatch(NamedTuple):
    """Some lines of a file."""

    values: Mapping[str, Sequence[Any]]
    """By key; ABSENT where a line does not have it."""
    lines: Sequence[int]
    raw: Sequence[bytes]
    """The lines as they stand in the file."""


def line_batches(
    file: OutcomeFile, chosen: Sequence[str], complaints: OutcomeProblemCollector
) -> Iterator[JsonLinesBatch]:
    """The values of these keys on every line that is an object; blank lines are fine."""
    keys = list(dict.fromkeys(chosen))
    fields = [f"key_{at}" for at in range(len(keys))]
    row = msgspec.defstruct(
        "Row", [(field, Any, ABSENT_KEY) for field in fields], rename=dict(zip(fields, keys, strict=True)), gc=False
    )
    decode = msgspec.json.Decoder(row).decode
    pieces = LineChunks(file.path, carriage_returns=False)
    for piece in pieces:
        stripped = list(map(bytes.strip, piece.split(b"\n")))
        lines = [line for line, raw in enumerate(stripped, pieces.line) if raw]
        raws = list(filter(None, stripped))
        try:
            rows = list(map(decode, raws))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # one by one, to know which is broken
            found = [_row(raw, decode, row, keys) for raw in raws]
            for one, line in zip(found, lines, strict=True):
                if isinstance(one, str):
                    complaints.add(file, one, one, [line])
            is_good = [not isinstance(one, str) for one in found]
            lines, raws = list(compress(lines, is_good)), list(compress(raws, is_good))
            rows = list(compress(found, is_good))
        values = {key: list(map(attrgetter(field), rows)) for field, key in zip(fields, keys, strict=True)}
        yield JsonLinesBatch(values, lines, raws)


def _row(raw: bytes, decode: Any, row: Any, keys: Sequence[str]) -> Any:
    """The chosen values of a line; a sentence where there are none."""
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        what = "not a JSON object" if "Expected `object`" in str(error) else str(error).partition(" - at ")[0]
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
    return row(*(table.get(key, ABSENT_KEY) for key in keys)) if isinstance(table, dict) else what


def line_keys(raw: bytes) -> list[str]:
    """The keys that a line has."""
    try:
        table = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    return [str(key) for key in table]
