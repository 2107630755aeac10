"""Doing many things at once, but never too many."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

WorkItem = TypeVar("WorkItem")
CoroutineResult = TypeVar("CoroutineResult")


async def run_concurrently(items: Iterator[WorkItem], do: Callable[[WorkItem], Awaitable[None]], at_once: int) -> None:
    """Do each item once; an item is taken only when someone is free for it, so there may be any number of them."""

    async def worker() -> None:
        for item in items:
            await do(item)

    async with asyncio.TaskGroup() as workers:
        for _ in range(at_once):
            workers.create_task(worker())


def run_coroutine(work: Coroutine[Any, Any, CoroutineResult]) -> CoroutineResult:
    """Run the one event loop there is; inside a notebook, which has its own, in a thread beside it."""

    def alone() -> CoroutineResult:
        return asyncio.run(work)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return alone()
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(alone).result()
