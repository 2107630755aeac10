"""What readers of other tools' files have in common: bounded bytes, JSON that Python wrote, and values of any type."""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from steelyard.outcomes.files import (
    BYTE_ORDER_MARK,
    MAX_OUTCOME_LINE_BYTES,
    UNPACKING_ERRORS,
    LineChunks,
    UnreadableOutcomesError,
    open_unpacked,
)

SNIFFED_BYTES = 1 << 20
MAX_JSON_DOCUMENT_BYTES = 2 << 30
"""Bytes of a file that is one JSON value, and has to be read at once."""
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)

DecodedValue = TypeVar("DecodedValue")


def beginning(path: Path) -> bytes:
    """The first bytes of a file, unpacked; empty for a folder and for what cannot be read."""
    try:
        if not path.is_file():
            return b""
        with open_unpacked(path) as file:
            return file.read(SNIFFED_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
    except (OSError, ValueError, *UNPACKING_ERRORS):
        return b""


def first_object(beginning: bytes) -> dict[str, Any]:
    """The object on the first line; empty if the line is not an object, or longer than what was looked at."""
    try:
        found = msgspec.json.decode(beginning.partition(b"\n")[0])
    except DECODE_ERRORS:
        return {}
    return found if isinstance(found, dict) else {}


def decoded(raw: bytes | memoryview, kind: type[DecodedValue], what: str, line: int = 0) -> DecodedValue:
    """JSON as a type of ours; a number that only Python writes, such as NaN, is read as Python reads it."""
    try:
        try:
            return msgspec.json.decode(raw, type=kind)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            value = json.loads(bytes(raw))
            # half of a surrogate pair, which Python reads as well, could not be stored
            json.dumps(value, ensure_ascii=False).encode()
            return msgspec.convert(value, kind)
    except DECODE_ERRORS as error:
        raise UnreadableOutcomesError(f"not {what}: {str(error)[:200]}", line) from None


def json_document(path: Path, kind: type[DecodedValue], what: str) -> DecodedValue:
    """A file that is one JSON value."""
    with open_unpacked(path) as file, path.open("rb") as plain:
        if path.stat().st_size > MAX_JSON_DOCUMENT_BYTES:
            raise UnreadableOutcomesError(f"larger than {MAX_JSON_DOCUMENT_BYTES >> 30} GB; split it")
        if file.read(3) != BYTE_ORDER_MARK and not hasattr(file, "mtime") and path.stat().st_size:
            # not copied: a log of gigabytes needs the memory of what is taken out of it
            with mmap.mmap(plain.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
                return decoded(view, kind, what)
        file.seek(0)
        raw = file.read(MAX_JSON_DOCUMENT_BYTES + 1).removeprefix(BYTE_ORDER_MARK)
        if len(raw) > MAX_JSON_DOCUMENT_BYTES:
            raise UnreadableOutcomesError(f"larger than {MAX_JSON_DOCUMENT_BYTES >> 30} GB when unpacked; split it")
        return decoded(raw, kind, what)


def json_lines(path: Path, kind: type[DecodedValue], what: str) -> Iterator[tuple[int, DecodedValue]]:
    """The values of a file with one on each line, with their lines; empty lines are passed over."""
    decoder = msgspec.json.Decoder(kind)
    chunks = LineChunks(path, carriage_returns=False)
    for piece in chunks:
        for line, raw in enumerate(piece.split(b"\n"), chunks.line):
            if not raw.strip():
                continue
            if len(raw) > MAX_OUTCOME_LINE_BYTES:
                raise UnreadableOutcomesError(f"a line of more than {MAX_OUTCOME_LINE_BYTES >> 20} MB", line)
            try:
                yield line, decoder.decode(raw)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                yield line, decoded(raw, kind, what, line)


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def whole(value: Any) -> int | None:
    """A whole number from 0 up; None for anything else."""
    found = number(value)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def text(value: Any) -> str:
    """A text, or anything else as JSON; empty for nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()
