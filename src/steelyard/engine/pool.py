"""Doing many things at once, but never too many; and replies turned into verdicts on this machine."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from steelyard.engine.verifier_processes.service import verification_service
from steelyard.protocols import VerdictCallback, VerificationService
from steelyard.records import Case, Reply, WitnessResult

if TYPE_CHECKING:
    from steelyard.engine.options import RunOptions
    from steelyard.engine.verifiers import VerifierSet

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


MAX_QUEUED_REPLIES = 256
"""Replies that may wait for verification before asking waits as well: this bounds the memory of any run."""


class RepliesByCase:
    """Replies in the order they came, but those to one case together, so that a worker can reuse tests it has loaded."""

    def __init__(self) -> None:
        self._replies: dict[str, deque[tuple[Reply, Case]]] = {}
        self._ends = 0
        self._length = 0

    def append(self, item: tuple[Reply, Case] | None) -> None:
        self._length += 1
        if item is None:
            self._ends += 1
        else:
            self._replies.setdefault(item[1].id, deque()).append(item)

    def popleft(self) -> tuple[Reply, Case] | None:
        self._length -= 1
        for case, replies in self._replies.items():
            reply = replies.popleft()
            if not replies:
                del self._replies[case]
            return reply
        self._ends -= 1
        return None

    def __len__(self) -> int:
        return self._length


class ReplyQueue(asyncio.Queue[tuple[Reply, Case] | None]):
    """The queue of replies to be verified; None tells a worker to stop."""

    def _init(self, maxsize: int) -> None:  # noqa: ARG002  the bound is kept for us
        self._queue = RepliesByCase()


def local_pool(cases: Sequence[Case], verifying: VerifierSet, options: RunOptions) -> LocalPool:
    """The pool of this machine, as an entry point."""
    return LocalPool(verification_service(cases, verifying, options))


class LocalPool:
    """As many replies at once as the verifiers like to be given."""

    given_up = ""
    nodes = None
    notes = ()

    def __init__(self, verifying: VerificationService) -> None:
        self._verifying = verifying
        self._queue = ReplyQueue(MAX_QUEUED_REPLIES)
        self._running: dict[str, float] = {}
        """By the keys of replies that are being verified: when each will have reached its wall limit."""

    @property
    def wait(self) -> tuple[int, float]:
        """How many replies are being verified, and in how many seconds the last of them reaches its limit."""
        return len(self._running), max(self._running.values(), default=0.0) - time.monotonic()

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        return self._verifying.witness_results

    @asynccontextmanager
    async def at_work(self, report: VerdictCallback, *, alone: bool = False) -> AsyncIterator[None]:
        at_once = 1 if alone else self._verifying.at_once
        async with asyncio.TaskGroup() as workers:
            for _ in range(at_once):
                workers.create_task(self._work(report, alone=alone))
            yield
            for _ in range(at_once):
                await self._queue.put(None)

    async def put(self, reply: Reply, case: Case) -> None:
        await self._queue.put((reply, case))

    async def close(self) -> None:
        await self._verifying.close()

    async def _work(self, report: VerdictCallback, *, alone: bool) -> None:
        while (waiting := await self._queue.get()) is not None:
            reply, case = waiting
            self._running[reply.key] = time.monotonic() + 2 * case.timeout_secs + 10
            try:
                fact = await self._verifying.verdict(reply, case, alone=alone)
            finally:
                self._running.pop(reply.key, None)
            report(fact, case)
