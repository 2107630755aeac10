"""Doing many things at once, but never too many."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

Item = TypeVar("Item")
Result = TypeVar("Result")


async def work_through(items: Iterator[Item], do: Callable[[Item], Awaitable[None]], at_once: int) -> None:
    """Do each item once; an item is taken only when someone is free for it, so there may be any number of them."""

    async def worker() -> None:
        for item in items:
            await do(item)

    async with asyncio.TaskGroup() as workers:
        for _ in range(at_once):
            workers.create_task(worker())


def complete(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the one event loop there is; inside a notebook, which has its own, in a thread beside it."""

    def alone() -> Result:
        return asyncio.run(work)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return alone()
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(alone).result()
