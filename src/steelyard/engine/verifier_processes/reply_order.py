"""The order in which replies are verified: as they came, but those to one case together."""

from __future__ import annotations

from collections import deque

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

    def popleft(self) -> tuple[Reply, Case]:
        """The next reply; raises StopIteration if there is none."""
        case = next(iter(self._replies))
        replies = self._replies[case]
        item = replies.popleft()
        self._length -= 1
        if not replies:
            del self._replies[case]
        return item

    def __len__(self) -> int:
        return self._length
