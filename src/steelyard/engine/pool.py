"""Doing many things at once, but never too many; and replies turned into verdicts on this machine."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from steelyard.engine.progress import SlowAnswers
from steelyard.engine.verifier_processes.reply_order import MAX_QUEUED_REPLIES, RepliesByCase
from steelyard.engine.verifier_processes.service import VerifierProcesses, verification_service
from steelyard.protocols import VerdictCallback, VerificationService
from steelyard.records import Case, Failure, Reply, Verdict, WitnessResult

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


MAX_PUT_IN_A_ROW = 8
"""Replies that are taken in before verdicts are looked at: asking may never wait for anything else."""


def local_pool(cases: Sequence[Case], verifying: VerifierSet, options: RunOptions) -> LocalPool:
    """The pool of this machine, as an entry point."""
    return LocalPool(verification_service(cases, verifying, options), verifying.limits.limited)


class LocalPool:
    """As many replies at once as the verifiers like to be given.

    One task hands out replies and reports verdicts: it wakes up for all that have come, not once for each.
    """

    given_up = ""
    nodes = None
    notes = ()

    def __init__(self, service: VerificationService, limited: Callable[[Case], Case] = lambda case: case) -> None:
        """`limited` gives a case the limit that holds for it now."""
        self._service = service
        self._limited = limited
        self._queue = RepliesByCase()
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Those who wait for a place in the queue."""
        self._running: dict[int, tuple[Case, float]] = {}
        """By the numbers of replies that are being verified, in their order: their cases, and when they were begun."""
        self._numbers = count()
        self._put_in_a_row = 0
        self._ended: list[tuple[int, Verdict | Failure, Case]] = []
        self._changed = asyncio.Event()
        self._is_ending = False

    @property
    def running(self) -> tuple[int, SlowAnswers | None]:
        """How many replies are being verified, and what has been running longest."""
        if not self._running:
            return 0, None
        case, began = next(iter(self._running.values()))
        answers = sum(other.id == case.id for other, _ in self._running.values())
        slow = SlowAnswers(case.id, answers, time.monotonic() - began, self._limited(case).timeout_secs)
        return len(self._running), slow

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        return self._service.witness_results

    @asynccontextmanager
    async def at_work(self, report: VerdictCallback, *, alone: bool = False) -> AsyncIterator[None]:
        self._is_ending = False
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._dispatch(report, tasks, alone=alone))
                yield
                self._is_ending = True
                self._changed.set()
        finally:
            # what a session left behind because it was ended must not be taken for a part of the next one
            self._running.clear()
            self._ended.clear()

    async def put(self, reply: Reply, case: Case) -> None:
        while len(self._queue) >= MAX_QUEUED_REPLIES:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        self._queue.append((reply, case))
        self._wake()
        self._put_in_a_row += 1
        if self._put_in_a_row >= MAX_PUT_IN_A_ROW:
            await asyncio.sleep(0)

    async def close(self) -> None:
        await self._service.close()

    async def _dispatch(self, report: VerdictCallback, tasks: asyncio.TaskGroup, *, alone: bool) -> None:
        """Hand out replies and report verdicts, until all are reported."""
        at_once = 1 if alone else self._service.at_once
        while self._queue or self._running or not self._is_ending:
            self._changed.clear()
            while self._queue and len(self._running) < at_once:
                if not self._begin_next(tasks, alone=alone):
                    break
            self._let_in()
            await self._changed.wait()
            ended, self._ended = self._ended, []
            for number, fact, case in ended:
                del self._running[number]
                report(fact, case)

    def _begin_next(self, tasks: asyncio.TaskGroup, *, alone: bool) -> bool:
        """Begin with the next reply; False if whoever could verify it has enough to do."""
        processes = self._service if isinstance(self._service, VerifierProcesses) and not alone else None
        chosen = (*self._queue.popleft(), None) if processes is None else processes.next_reply(self._queue)
        if chosen is None:
            return False
        reply, case, process = chosen
        number = next(self._numbers)
        self._running[number] = case, time.monotonic()

        def end(fact: Verdict | Failure | None) -> None:
            if number not in self._running:
                return  # its session was left
            if fact is None:
                tasks.create_task(verify())
                return
            self._ended.append((number, fact, case))
            self._wake()

        async def verify() -> None:
            end(await self._service.verdict(reply, case, alone=alone))

        if processes is None or process is None:
            tasks.create_task(verify())
        else:
            processes.begin(reply, case, process, end)
        return True

    def _wake(self) -> None:
        if not self._changed.is_set():
            self._changed.set()

    def _let_in(self) -> None:
        """Wake those who wait for a place once there are several: one who never waits for a model fills them in one go."""
        self._put_in_a_row = 0
        places = MAX_QUEUED_REPLIES - len(self._queue)
        while self._waiting and places >= MAX_PUT_IN_A_ROW:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                places -= MAX_PUT_IN_A_ROW
