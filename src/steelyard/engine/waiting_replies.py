"""Replies on their way to verification: asking never waits for it, and memory holds a bounded number of them."""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import Mapping

from steelyard.errors import StoreError
from steelyard.protocols import Pool
from steelyard.records import Case, Reply
from steelyard.store.journal import Journal

MAX_HELD_REPLIES = 256
"""Replies that wait in memory; of any more only the places in the journal are kept, 8 bytes each."""


class WaitingReplies:
    """Hands replies to a pool in the order they came, as soon as it has room."""

    def __init__(self, pool: Pool, journal: Journal, cases: Mapping[str, Case]) -> None:
        self._pool = pool
        self._journal = journal
        self._cases = cases
        self._held: deque[Reply] = deque()
        self._places = array("q")
        self._taken = 0
        """How many of the places are done with."""
        self._changed = asyncio.Event()
        self._is_ended = False

    def add(self, reply: Reply, place: int) -> None:
        """Take a reply that was written to the journal at this place."""
        if len(self._held) < MAX_HELD_REPLIES and not self._places:
            self._held.append(reply)
        else:
            self._places.append(place)
        self._changed.set()

    def end(self) -> None:
        """No more will come."""
        self._is_ended = True
        self._changed.set()

    async def feed(self) -> None:
        """Hand over all replies, until the end."""
        while True:
            self._changed.clear()
            while (reply := self._next()) is not None:
                if self._pool.given_up:
                    return
                await self._pool.put(reply, self._cases[reply.case])
            if self._is_ended:
                return
            await self._changed.wait()

    def _next(self) -> Reply | None:
        if self._held:
            return self._held.popleft()
        if self._taken == len(self._places):
            return None
        fact = self._journal.written_at(self._places[self._taken])
        self._taken += 1
        if self._taken == len(self._places):
            self._places, self._taken = array("q"), 0
        if not isinstance(fact, Reply):
            raise StoreError(f"{self._journal.folder}: something else has written to its journal")
        return fact
