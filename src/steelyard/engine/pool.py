"""Doing many things at once, but never too many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from steelyard.records import Case, Failure, Reply, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterator

WorkItem = TypeVar("WorkItem")
CoroutineResult = TypeVar("CoroutineResult")

VerdictCallback = Callable[[Verdict | Failure, Case], None]
"""Who is told what became of a reply."""


class Pool(Protocol):
    """Who turns replies into verdicts, many at once."""

    @property
    def given_up(self) -> str:
        """Why no more replies are verified; empty as long as they are."""
        ...

    @property
    def nodes(self) -> int | None:
        """How many machines work on it; None where it is this one alone."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong, without harm to the results."""
        ...

    def at_work(self, told: VerdictCallback, *, alone: bool = False) -> AbstractAsyncContextManager[None]:
        """Within it replies can be put in; on leaving, each has become one fact, unless the pool has given up.

        `alone` has every reply to a machine to itself.
        """
        ...

    async def put(self, reply: Reply, case: Case) -> None:
        """Hand over a reply; waits while too many wait already."""
        ...

    async def close(self) -> None:
        """Let go of whatever waits for further replies."""
        ...


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
