"""The items of a long array in a JSON document, found without decoding the document as a whole."""

from __future__ import annotations

import mmap
import os
import re
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from steelyard.outcomes.files import BYTE_ORDER_MARK, UnreadableOutcomesError, open_unpacked
from steelyard.outcomes.readers.sources import MAX_JSON_DOCUMENT_BYTES, DecodedValue, decoded

MIN_SPLIT_BYTES = 16 << 20
"""Bytes of a document from which on its items are decoded one at a time; a shorter one is decoded as a whole."""
RELEASED_BYTES = 4 << 20
"""Bytes after which memory is given back in which the document was looked through."""

STRING = rb'"(?:[^"\\]++|\\.)*+"'
KEY_OR_BRACKET = re.compile(rb"[^\"\[\]{}]*+(?:(" + STRING + rb")(\s*:)?|([\[\]{}]))", re.DOTALL)
BRACKET = re.compile(rb"(?:[^\"\[\]{}]++|" + STRING + rb")*+([\[\]{}])", re.DOTALL)
MAX_DEPTH = 1000
"""Brackets within each other around the array; no decoder takes more."""
WHITESPACE = b" \t\r\n"


class JsonItems:
    """A document in a file, and where the items of one of its arrays lie."""

    def __init__(self, file: IO[bytes], start: int, places: array[int], end: int) -> None:
        """`places` has the first byte of each item and the one after its last; the array begins and ends at the others."""
        self._file, self._start, self._places, self._end = file, start, places, end

    def document(self, kind: type[DecodedValue], what: str) -> DecodedValue:
        """The document as if the array was empty."""
        place = self._file.fileno()
        size = os.fstat(place).st_size
        raw = os.pread(place, self._start, 0) + os.pread(place, size - self._end, self._end)
        return decoded(raw.removeprefix(BYTE_ORDER_MARK), kind, what)

    def items(self, kind: type[DecodedValue], what: str) -> Iterator[DecodedValue]:
        """The items, one at a time."""
        place, bounds = self._file.fileno(), iter(self._places)
        for start, end in zip(bounds, bounds, strict=True):
            yield decoded(os.pread(place, end - start, start), kind, what)


@contextmanager
def json_items(path: Path, keys: Sequence[str]) -> Iterator[JsonItems | None]:
    """The items of the array that these keys lead to; None where the document is short, or is better read as a whole.

    That is so where the array is missing, holds anything but objects or is there twice, or where the document is not JSON.
    """
    with _plain_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size < MIN_SPLIT_BYTES:
            yield None
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = _ArraySearch(content, tuple(key.encode() for key in keys)).found()
        yield JsonItems(file, *found) if found else None


@contextmanager
def _plain_file(path: Path) -> Iterator[IO[bytes]]:
    """The file, or where it is packed, an unpacked copy without a name."""
    with open_unpacked(path) as unpacked, path.open("rb") as plain:
        if not hasattr(unpacked, "mtime"):
            yield plain
            return
        with tempfile.TemporaryFile() as copy:
            while copy.tell() <= MAX_JSON_DOCUMENT_BYTES and (piece := unpacked.read(1 << 20)):
                copy.write(piece)
            if copy.tell() > MAX_JSON_DOCUMENT_BYTES:
                raise UnreadableOutcomesError(f"larger than {MAX_JSON_DOCUMENT_BYTES >> 30} GB when unpacked; split it")
            copy.flush()
            yield copy


class _ArraySearch:
    """Looks for one array in a document from its begin to its end."""

    def __init__(self, content: mmap.mmap, keys: tuple[bytes, ...]) -> None:
        self._content, self._keys = content, keys
        self._released = 0

    def found(self) -> tuple[int, array[int], int] | None:
        """The byte after the opening bracket, the bounds of the items, and the closing bracket."""
        found = None
        path: list[bytes] = []
        """The key that each open bracket belongs to; of an array nothing."""
        key, at = b"", 0
        while match := KEY_OR_BRACKET.match(self._content, at):
            text, colon, bracket = match.groups()
            at = match.end()
            if text is not None:
                key = text[1:-1] if colon else b""
            elif bracket == b"[" and (*path[1:], key) == self._keys:
                if found is not None:
                    return None
                items = self._items(at)
                if items is None:
                    return None
                found = at, *items
                at = found[2] + 1
            elif bracket in b"[{" and len(path) < MAX_DEPTH:
                path.append(key)
                key = b""
            elif bracket in b"]}" and path:
                path.pop()
                key = b""
            else:
                return None
            self._release(at)
        return found

    def _items(self, at: int) -> tuple[array[int], int] | None:
        """The bounds of the items from a byte on, and the closing bracket of their array; None where one is no object."""
        places = array("Q")
        depth, end = 0, at
        while match := BRACKET.match(self._content, at):
            at, bracket = match.end(), match[1]
            if depth == 0:
                between = self._content[end : at - 1].strip(WHITESPACE)
                if bracket == b"]":
                    return None if between else (places, at - 1)
                if bracket != b"{" or between != (b"," if places else b""):
                    return None
                places.append(at - 1)
            depth += 1 if bracket in b"[{" else -1
            if depth == 0:
                places.append(at)
                end = at
                self._release(at)
        return None

    def _release(self, at: int) -> None:
        if at - self._released >= RELEASED_BYTES:
            self._released = at
            # the pages can be read again
            with suppress(AttributeError, OSError, ValueError):
                self._content.madvise(mmap.MADV_DONTNEED, 0, at // mmap.PAGESIZE * mmap.PAGESIZE)
