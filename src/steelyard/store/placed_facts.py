"""Facts read by their places, each when it is asked for, from journals that stay open."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO

from steelyard.errors import StoreError
from steelyard.store.files import TolerantDecoder
from steelyard.store.journal import DECODE_ERRORS, JournalFact, StoredRun, fact_offset

_facts: TolerantDecoder[JournalFact] = TolerantDecoder(JournalFact)


class FactReader:
    """The facts of a run by their places, of which none is kept; `journals` are named as when places were given."""

    def __init__(self, stored: StoredRun, journals: Sequence[str]) -> None:
        self._stored, self._journals = stored, journals
        self._files: dict[int, BinaryIO] = {}
        self._open = ExitStack()

    def get(self, place: int) -> JournalFact | None:
        """The fact at a place, None for a negative one; raises a StoreError where the journal is not what it was."""
        if place < 0:
            return None
        number, byte = divmod(place, fact_offset(1, 0))
        if number >= len(self._journals):
            raise StoreError(f"{self._stored.folder}: has no journal {number + 1}; it has changed, so read it again")
        path = self._stored.folder / self._journals[number]
        try:
            file = self._files.get(number)
            if file is None:
                file = self._files[number] = self._open.enter_context(self._stored.open(path))
            file.seek(byte)
            return _facts.decode(file.readline(self._stored.largest))
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from None
        except DECODE_ERRORS:
            raise StoreError(f"{path}: no fact at byte {byte}; it has changed, so read it again") from None

    def __enter__(self) -> FactReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.clear()
        self._open.close()
