"""Many keys in little memory, to know what is done already."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy

MAX_UNPACKED_KEYS = 1 << 16
"""Keys that are kept as they are, and that are worth packing."""


class CompactKeySet:
    """A set of texts that takes 16 bytes for each of them, once there are many."""

    def __init__(self) -> None:
        self._recent: set[str] = set()
        self._packed: list[tuple[numpy.ndarray, numpy.ndarray]] = []
        """The two halves of digests, sorted by the first; no two of these are of about the same size."""

    def add(self, key: str) -> None:
        self._recent.add(key)
        if len(self._recent) >= MAX_UNPACKED_KEYS:
            self._pack()

    def __contains__(self, key: object) -> bool:
        if key in self._recent:
            return True
        if not self._packed or not isinstance(key, str):
            return False
        first, second = _halves(key)
        return any(_block_contains(block, first, second) for block in self._packed)

    def __bool__(self) -> bool:
        return bool(self._recent or self._packed)

    def _pack(self) -> None:
        import numpy

        made = numpy.fromiter((half for key in self._recent for half in _halves(key)), numpy.uint64)
        self._recent.clear()
        first, second = made[::2], made[1::2]
        while self._packed and len(self._packed[-1][0]) <= 2 * len(first):
            before = self._packed.pop()
            first, second = numpy.concatenate([before[0], first]), numpy.concatenate([before[1], second])
        order = numpy.argsort(first)
        self._packed.append((first[order], second[order]))


def _halves(key: str) -> tuple[int, int]:
    # a key may be any text that stands in a journal
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8]), int.from_bytes(digest[8:])


def _block_contains(block: tuple[numpy.ndarray, numpy.ndarray], first: int, second: int) -> bool:
    return any(block[1][place] == second for place in _matching_indexes(block[0], first))


def _matching_indexes(sorted_halves: numpy.ndarray, half: int) -> Iterator[int]:
    import numpy

    place = int(numpy.searchsorted(sorted_halves, numpy.uint64(half)))
    while place < len(sorted_halves) and sorted_halves[place] == half:
        yield place
        place += 1
