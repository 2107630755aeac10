"""A process that verifies replies for a run, in sandboxes of its own, until the run hangs up."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

import msgspec

from steelyard.engine.options import RunOptions
from steelyard.engine.ray.node import NodeFiles
from steelyard.engine.steps import failure
from steelyard.engine.verifier_processes.wire import FrameConnection, VerifierItem, VerifierResult, VerifierTerms
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import VerifierError
from steelyard.records import Case, WitnessResult
from steelyard.sandbox import control_group, fair_clock


class VerifierProcess:
    """The verifiers of this process, and the replies that they are verifying."""

    def __init__(self, terms: VerifierTerms, connection: FrameConnection[Any]) -> None:
        # the run and all its processes are one crowd
        fair_clock.count_own_from(os.getppid())
        if terms.control_group:
            control_group.use_divided_group(Path(terms.control_group))
        self._files = NodeFiles(terms.run)
        options = RunOptions(
            require_isolation=terms.level,
            allow_weak_sandbox=terms.allow_weak_sandbox,
            recheck=terms.recheck,
            controls=terms.controls,
            control_key=terms.control_key,
        )
        cases = msgspec.json.decode(terms.cases, type=list[Case])
        self._verifiers = VerifierSet(cases, options, share_witnesses=self._files.tried_once_per_node)
        self._cases = {case.id: case for case in cases}
        self._connection = connection
        self._tasks: set[asyncio.Task[None]] = set()
        self._told_witnesses = 0

    def begin(self, item: VerifierItem) -> None:
        """Verify a reply, and report to the run as soon as that is done."""
        task = asyncio.create_task(self._verify(item))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _verify(self, item: VerifierItem) -> None:
        limits = self._verifiers.limits
        limits.learn(item.limit)
        try:
            fact = await self._verifiers.verdict(item.reply, self._cases[item.case])
        except Exception as error:  # noqa: BLE001  the run must hear of it, whatever it is
            fact = failure(item.reply, VerifierError(f"{type(error).__name__}: {error}"))
        self._connection.send(
            VerifierResult(number=item.number, fact=fact, witnesses=self._new_witnesses(), limits=limits.new())
        )

    def _new_witnesses(self) -> tuple[WitnessResult, ...]:
        results = self._verifiers.witness_results
        new, self._told_witnesses = tuple(results[self._told_witnesses :]), len(results)
        return new

    async def close(self) -> None:
        """Leave nothing running."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._verifiers.close()
        self._files.remove()


async def _serve(connected: socket.socket) -> None:
    hung_up = asyncio.Event()
    process: VerifierProcess | None = None

    def take_in(frame: VerifierTerms | list[VerifierItem]) -> None:
        nonlocal process
        if isinstance(frame, VerifierTerms):
            process = VerifierProcess(frame, connection)
        elif process is not None:
            for item in frame:
                process.begin(item)

    connection: FrameConnection[Any] = FrameConnection(VerifierTerms | list[VerifierItem], take_in, hung_up.set)
    await asyncio.get_running_loop().create_unix_connection(lambda: connection, sock=connected)
    try:
        await hung_up.wait()
    finally:
        if process is not None:
            await process.close()


def main() -> None:
    """Serve the run that started this process, over the socket that is its standard input."""
    # the run gets the interrupt, and closes the connection
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_serve(socket.socket(fileno=os.dup(0))))
