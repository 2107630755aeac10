"""Gathering what waits at the same time, so that it is done together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH_DELAY_SECONDS = 0.01
"""Seconds a first item waits for others that were handed in at the same moment."""


class BatchQueue(Generic[Item, Result]):
    """Hands items of a kind to `work` in groups; an item that waits alone is a group of one."""

    def __init__(
        self, work: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]], *, most: int, at_once: int
    ) -> None:
        self._work = work
        self._most = most
        self._at_once = at_once
        self._waiting: dict[Hashable, list[tuple[Item, asyncio.Future[Result]]]] = {}
        self._busy = 0
        self._workers: set[asyncio.Task[None]] = set()

    async def done(self, kind: Hashable, item: Item) -> Result:
        """What came of this item, which may share its group only with items of its kind."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(kind, []).append((item, future))
        if len(self._workers) < self._at_once:
            worker = asyncio.create_task(self._work_off())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        return await future

    async def _work_off(self) -> None:
        await asyncio.sleep(BATCH_DELAY_SECONDS)
        while self._waiting:
            kind, entries = next(iter(self._waiting.items()))
            # idle workers share what is there, rather than one taking it all
            idle = self._at_once - self._busy
            share = min(self._most, -(-len(entries) // idle))
            taken, rest = entries[:share], entries[share:]
            del self._waiting[kind]
            if rest:
                # to the end of the line: every kind gets its turn
                self._waiting[kind] = rest
            self._busy += 1
            wanted = [(item, future) for item, future in taken if not future.cancelled()]
            try:
                results = await self._work([item for item, _ in wanted]) if wanted else []
            except BaseException as error:
                for _, future in wanted:
                    if not future.done():
                        future.set_exception(error) if isinstance(error, Exception) else future.cancel()
                if not isinstance(error, Exception):
                    raise
            else:
                for (_, future), result in zip(wanted, results, strict=True):
                    if not future.done():
                        future.set_exception(result) if isinstance(result, Exception) else future.set_result(result)
            finally:
                self._busy -= 1
