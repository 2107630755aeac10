"""Items that wait at the same time are worked off in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

BATCH_DELAY_SECONDS = 0.01
"""Seconds a first item waits for others that were handed in at the same moment."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchItem(Generic[Item, Result]):
    """An item of a batch; its result is delivered as soon as it is known."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    @property
    def is_done(self) -> bool:
        """Whether its result was delivered, or is no longer wanted."""
        return self.future.done()

    def tell(self, result: Result | Exception) -> None:
        """Deliver the result to the waiting caller."""
        if not self.future.done():
            self.future.set_exception(result) if isinstance(result, Exception) else self.future.set_result(result)


class BatchQueue(Generic[Item, Result]):
    """Hands items of a kind to `work` in batches, which reports the result of each; an item that waits alone is a batch of one."""

    def __init__(
        self, work: Callable[[Sequence[BatchItem[Item, Result]]], Awaitable[None]], *, most: int, at_once: int
    ) -> None:
        self._work = work
        self._most = most
        self._at_once = at_once
        self._waiting: dict[Hashable, list[BatchItem[Item, Result]]] = {}
        self._busy = 0
        self._workers: set[asyncio.Task[None]] = set()

    async def done(self, kind: Hashable, item: Item) -> Result:
        """The result of this item, which may share its batch only with items of its kind."""
        waiting: BatchItem[Item, Result] = BatchItem(item)
        self._waiting.setdefault(kind, []).append(waiting)
        if len(self._workers) < self._at_once:
            self._workers.add(asyncio.create_task(self._work_off()))
        return await waiting.future

    async def _work_off(self) -> None:
        await asyncio.sleep(BATCH_DELAY_SECONDS)
        try:
            while self._waiting:
                await self._work_off_one()
        finally:
            # at once: a caller with a result may submit the next item before a callback of this task runs
            self._workers.discard(asyncio.current_task())

    async def _work_off_one(self) -> None:
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
        batch = [each for each in taken if not each.is_done]
        try:
            if batch:
                await self._work(batch)
        except Exception as error:  # noqa: BLE001  it is told to everyone whom it concerns
            for each in batch:
                each.tell(error)
        except BaseException:
            for each in batch:
                each.future.cancel()
            raise
        finally:
            self._busy -= 1
