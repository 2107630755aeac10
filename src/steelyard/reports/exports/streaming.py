"""Reports written piece by piece, so that a large run need not fit into memory."""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from steelyard.analysis.summary import RunResults
from steelyard.reports.tables import CsvValue, cell
from steelyard.text import escaped_json

PIECE_CHARACTERS = 1 << 16
"""About how many characters are handed over at once."""


class StreamedReport:
    """A report that comes in pieces; when called like other reports, it returns them as one text."""

    def __init__(self, pieces: Callable[[RunResults], Iterator[str]]) -> None:
        functools.update_wrapper(self, pieces)
        self._pieces = pieces

    def __call__(self, results: RunResults) -> str:
        return "".join(self.pieces(results))

    def pieces(self, results: RunResults) -> Iterator[str]:
        """The text in pieces of some size."""
        waiting: list[str] = []
        size = 0
        for piece in self._pieces(results):
            waiting.append(piece)
            size += len(piece)
            if size >= PIECE_CHARACTERS:
                yield "".join(waiting)
                waiting.clear()
                size = 0
        yield "".join(waiting)


class StreamedList:
    """A list in a JSON document whose items are made one by one."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items


class StreamedObject:
    """An object in a JSON document whose members are made one by one."""

    def __init__(self, members: Iterable[tuple[str, Any]]) -> None:
        self.members = members


def json_pieces(document: Any, encode: Callable[[Any], str], indent: int | None) -> Iterator[str]:
    r"""A JSON document in pieces, laid out as `encode` lays out each part of it with this indentation.

    >>> plain = functools.partial(json.dumps, indent=1)
    >>> document = {"a": StreamedList([{"b": 1}, 2]), "c": {"d": StreamedList([])}}
    >>> "".join(json_pieces(document, plain, 1)) == plain({"a": [{"b": 1}, 2], "c": {"d": []}})
    True
    """
    if isinstance(document, StreamedList):
        yield from _members(((None, item) for item in document.items), "[]", encode, indent)
    elif isinstance(document, StreamedObject):
        yield from _members(document.members, "{}", encode, indent)
    elif isinstance(document, dict) and any(map(_is_streamed, document.values())):
        yield from _members(document.items(), "{}", encode, indent)
    elif isinstance(document, list) and any(map(_is_streamed, document)):
        yield from _members(((None, item) for item in document), "[]", encode, indent)
    else:
        yield encode(document)


def _is_streamed(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_is_streamed, value.values()))
    if isinstance(value, list):
        return any(map(_is_streamed, value))
    return isinstance(value, StreamedList | StreamedObject)


def _members(
    members: Iterable[tuple[str | None, Any]], brackets: str, encode: Callable[[Any], str], indent: int | None
) -> Iterator[str]:
    line_start = "" if indent is None else "\n" + " " * indent
    between = ", " if indent is None else f",{line_start}"
    is_first = True
    for name, value in members:
        yield f"{brackets[0]}{line_start}" if is_first else between
        is_first = False
        if name is not None:
            yield f"{encode(name)}: "
        for piece in json_pieces(value, encode, indent):
            # a string holds no newline: JSON escapes it
            yield piece if indent is None else piece.replace("\n", line_start)
    if is_first:
        yield brackets
    else:
        yield brackets[1] if indent is None else f"\n{brackets[1]}"


def indented_json(value: Any) -> str:
    """JSON indented by two, in which everything invisible is escaped."""
    laid_out = msgspec.json.format(msgspec.json.encode(value), indent=2)
    # it is the only invisible ASCII character that JSON allows
    if laid_out.isascii() and b"\x7f" not in laid_out:
        return laid_out.decode()
    return escaped_json(laid_out.decode())


ascii_json = functools.partial(json.dumps, indent=1)
"""JSON as most other tools write it: indented by one, so that no terminal obeys what a model wrote."""


class _ReturnedText:
    """A file that returns what is written to it."""

    def write(self, text: str) -> str:
        return text


def csv_lines(head: Iterable[str], rows: Iterable[Iterable[CsvValue]]) -> Iterator[str]:
    """Rows for a spreadsheet beneath their head, a line each; what is not known is empty."""
    write: Callable[[Iterable[Any]], str] = csv.writer(_ReturnedText(), lineterminator="\n").writerow
    yield write(head)
    for row in rows:
        yield write([cell(value) for value in row])
