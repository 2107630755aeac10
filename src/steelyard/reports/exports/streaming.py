"""Reports written piece by piece, so that a large run need not fit into memory."""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any, Generic, TypeVar

import msgspec

from steelyard.reports.tables import MAX_SHORT_CELL_CHARACTERS, CsvValue, cell
from steelyard.text import INVISIBLE_CHARACTER_PATTERN, escaped_json

Reported = TypeVar("Reported")
"""What a report is about: the results of a run, or an analysis of tiers."""
VISIBLE_JSON_BYTES = bytes(range(0x7F))
"""The ASCII characters that can stand raw in JSON and be seen: of the invisible ones JSON allows only the last."""
PIECE_CHARACTERS = 1 << 16
"""About how many characters are handed over at once."""


class StreamedReport(Generic[Reported]):
    """A report that comes in pieces; when called like other reports, it returns them as one text."""

    def __init__(self, pieces: Callable[[Reported], Iterator[str]]) -> None:
        functools.update_wrapper(self, pieces)
        self._pieces = pieces

    def __call__(self, reported: Reported) -> str:
        return "".join(self.pieces(reported))

    def pieces(self, reported: Reported) -> Iterator[str]:
        """The text in pieces of some size."""
        return merged_pieces(self._pieces(reported))


def merged_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """The same text in fewer pieces."""
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE_CHARACTERS:
            yield "".join(waiting)
            waiting.clear()
            size = 0
    yield "".join(waiting)


class StreamedList:
    """A list in a JSON document whose items are made one by one; an item itself is made as a whole."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items


class StreamedObject:
    """An object in a JSON document whose members are made one by one; a member itself is made as a whole."""

    def __init__(self, members: Iterable[tuple[str, Any]]) -> None:
        self.members = members


def json_pieces(document: Any, encode: Callable[[Any], str], indent: int | None) -> Iterator[str]:
    r"""A JSON document in pieces, laid out as `encode` lays out each part of it with this indentation.

    >>> plain = functools.partial(json.dumps, indent=1)
    >>> document = {"a": StreamedList([{"b": 1}, 2]), "c": {"d": StreamedList([])}}
    >>> "".join(json_pieces(document, plain, 1)) == plain({"a": [{"b": 1}, 2], "c": {"d": []}})
    True
    """

    def whole(value: Any) -> Iterable[str]:
        return (encode(value),)

    def parts(value: Any) -> Iterable[str]:
        return json_pieces(value, encode, indent)

    if isinstance(document, StreamedList):
        yield from _members((("", whole(item)) for item in document.items), "[]", indent)
    elif isinstance(document, StreamedObject):
        yield from _members(((f"{encode(name)}: ", whole(value)) for name, value in document.members), "{}", indent)
    elif isinstance(document, dict) and any(map(_is_streamed, document.values())):
        yield from _members(((f"{encode(name)}: ", parts(value)) for name, value in document.items()), "{}", indent)
    elif isinstance(document, list) and any(map(_is_streamed, document)):
        yield from _members((("", parts(item)) for item in document), "[]", indent)
    else:
        yield encode(document)


def _is_streamed(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_is_streamed, value.values()))
    if isinstance(value, list):
        return any(map(_is_streamed, value))
    return isinstance(value, StreamedList | StreamedObject)


def _members(members: Iterable[tuple[str, Iterable[str]]], brackets: str, indent: int | None) -> Iterator[str]:
    """Members between brackets, each with its name and the pieces of its value."""
    line_start = "" if indent is None else "\n" + " " * indent
    between = ", " if indent is None else f",{line_start}"
    is_first = True
    for name, pieces in members:
        yield f"{brackets[0]}{line_start}{name}" if is_first else f"{between}{name}"
        is_first = False
        for piece in pieces:
            # a string holds no newline: JSON escapes it
            yield piece if indent is None else piece.replace("\n", line_start)
    if is_first:
        yield brackets
    else:
        yield brackets[1] if indent is None else f"\n{brackets[1]}"


def indented_json(value: Any) -> str:
    """JSON indented by two, in which everything invisible is escaped."""
    laid_out = msgspec.json.format(msgspec.json.encode(value), indent=2)
    # looking for what is invisible takes as long as all else, and most texts have few characters that may be
    unusual = laid_out.translate(None, VISIBLE_JSON_BYTES).decode()
    text = laid_out.decode()
    return escaped_json(text) if INVISIBLE_CHARACTER_PATTERN.search(unusual) else text


ascii_json = functools.partial(json.dumps, indent=1)
"""JSON as most other tools write it: indented by one, so that no terminal obeys what a model wrote."""


MAX_KEPT_CELLS = 1 << 12
SAFE_CELL_TYPES = frozenset({int, float, NoneType})
"""Of values that a row of CSV takes as they are."""


class _TextCells(dict[Any, Any]):
    """The cells of texts; short ones are probably in many rows, so they are kept."""

    def __missing__(self, text: str) -> str | int | float:
        made = cell(text)
        if len(text) <= MAX_SHORT_CELL_CHARACTERS and len(self) < MAX_KEPT_CELLS:
            self[text] = made
        return made


class _ReturnedText:
    """A file that returns what is written to it."""

    def write(self, text: str) -> str:
        return text


def csv_lines(head: Iterable[str], rows: Iterable[Iterable[CsvValue]]) -> Iterator[str]:
    """Rows for a spreadsheet beneath their head, a line each; what is not known is empty."""
    write: Callable[[Iterable[Any]], str] = csv.writer(_ReturnedText(), lineterminator="\n").writerow
    yield write(head)
    texts = _TextCells()
    for row in rows:
        # a call for each cell would take longer than the rest
        cells = [
            texts[value] if value.__class__ is str else value if value.__class__ in SAFE_CELL_TYPES else cell(value)
            for value in row
        ]
        yield write(cells)
