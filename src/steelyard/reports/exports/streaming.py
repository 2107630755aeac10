"""Reports written piece by piece, so that a large run need not fit into memory."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from steelyard.text import escaped_json

Reported = TypeVar("Reported")
"""What a report is about: the results of a run, or an analysis of tiers."""
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
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    # looking for what is invisible takes as long as all else
    return text if text.isascii() and "\x7f" not in text else escaped_json(text)


ascii_json = functools.partial(json.dumps, indent=1)
"""JSON as most other tools write it: indented by one, so that no terminal obeys what a model wrote."""
