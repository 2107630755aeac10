"""The order in which replies are verified: as they came, but those to one case together, where its tests are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from steelyard.records import Case, Reply

MAX_QUEUED_REPLIES = 256
"""Replies that may wait for verification before asking waits as well: this bounds the memory of any run."""


class RepliesByCase:
    """Replies in the order they came, but those to one case together, so that a worker can reuse tests it has loaded."""

    def __init__(self) -> None:
        self._replies: dict[str, deque[tuple[Reply, Case]]] = {}
        self._length = 0

    def append(self, item: tuple[Reply, Case]) -> None:
        self._length += 1
        case = item[1].id
        if (replies := self._replies.get(case)) is None:
            replies = self._replies[case] = deque()
        replies.append(item)

    def popleft(self, case: str | None = None) -> tuple[Reply, Case]:
        """The next reply, or the next one to a case that has one; raises StopIteration if there is none."""
        if case is None:
            case = next(iter(self._replies))
        replies = self._replies[case]
        item = replies.popleft()
        self._length -= 1
        if not replies:
            del self._replies[case]
        return item

    def first_case(self) -> str:
        """The case of the next reply."""
        return next(iter(self._replies))

    def first_case_among(self, cases: Mapping[str, object]) -> str | None:
        """The first of these cases that a reply waits for."""
        # most have none or are near the front, and this loop runs in C
        if cases.keys().isdisjoint(self._replies.keys()):
            return None
        return next(case for case in self._replies if case in cases)

    def first_case_beside(self, cases: Mapping[str, object]) -> str | None:
        """The first case that a reply waits for and that is none of these."""
        if self._replies.keys() <= cases.keys():
            return None
        return next(case for case in self._replies if case not in cases)

    def __len__(self) -> int:
        return self._length
