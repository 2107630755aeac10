"""Verification by several processes of this machine, each with an event loop and sandboxes of its own."""

from __future__ import annotations

import asyncio
import math
import secrets
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from steelyard.engine.steps import failure
from steelyard.engine.verifier_processes.wire import FrameConnection, VerifierItem, VerifierResult, VerifierTerms
from steelyard.errors import VerifierError
from steelyard.sandbox.control_group import delegated_group
from steelyard.sandbox.processors import processor_count
from steelyard.sandbox.worker import leading_bytes, new_file

if TYPE_CHECKING:
    from steelyard.engine.options import RunOptions
    from steelyard.engine.verifiers import VerifierSet
    from steelyard.protocols import VerificationService
    from steelyard.records import Case, Failure, Reply, Verdict, WitnessResult

MAX_PROCESSORS_ALONE = 2
"""Processors up to which this process verifies by itself."""
PROCESSORS_PER_PROCESS = 1
"""Processors for one event loop: with the cheapest possible answers it takes a fifth of one processor's time itself."""
EXTRA_REPLIES_PER_PROCESS = 1
"""Replies that a process verifies beyond its processors, because each waits for the event loop now and then."""
HANDED_AHEAD = 2
"""Replies that wait at each process, so that none is idle while its results travel."""
EXIT_SECONDS = 10
MAX_LOST = 2
"""Processes that may end under a reply before its verdict is given up."""
BOOT_SCRIPT = """
import sys
sys.path[:] = {path!r}
from steelyard.sandbox.processors import take_share
take_share({processors})
from steelyard.engine.verifier_processes.process import main
main()
"""
"""What a process runs: each verifier asks how many processors there are when it is imported."""


def verification_service(cases: Sequence[Case], verifying: VerifierSet, means: RunOptions) -> VerificationService:
    """Who verifies on this machine: this process alone, or several where one event loop could not keep the processors busy."""
    processors = min(verifying.at_once, processor_count())
    if processors <= MAX_PROCESSORS_ALONE or not any(map(verifying.is_verified_apart, cases)):
        return verifying
    return VerifierProcesses(cases, verifying, means, math.ceil(processors / PROCESSORS_PER_PROCESS))


class VerifierProcesses:
    """All verifiers of a run: code is verified by other processes, and what only has to be read by this one."""

    def __init__(
        self, cases: Sequence[Case], verifying: VerifierSet, means: RunOptions, count: int, room: int | None = None
    ) -> None:
        """`room` is how many replies one process is given at a time, by default a few more than it verifies at once."""
        self._verifying = verifying
        self._kept_here = {case.id for case in cases if not verifying.is_verified_apart(case)}
        group = delegated_group()
        self._terms = VerifierTerms(
            run=secrets.token_hex(16),
            # as a journal has them: the digest of tests knows which values are defaults, which a pickled case does not
            cases=msgspec.json.encode([case for case in cases if case.id not in self._kept_here]),
            level=verifying.level,
            allow_weak_sandbox=means.allow_weak_sandbox,
            recheck=means.recheck,
            control_group=str(group or ""),
        )
        processors = max(1, math.ceil(min(verifying.at_once, processor_count()) / count)) + EXTRA_REPLIES_PER_PROCESS
        self._processes = [_Process(self._terms, processors) for _ in range(count)]
        self._room = room or math.ceil(verifying.at_once / count) + HANDED_AHEAD
        self._most = verifying.at_once if means.parallelism else 0
        self._told_witnesses = 0
        self._witness_results: list[WitnessResult] = []

    @property
    def at_once(self) -> int:
        # what a user bounds is bounded over all processes
        return self._most or self._room * len(self._processes)

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        own = self._verifying.witness_results
        self._witness_results += own[self._told_witnesses :]
        self._told_witnesses = len(own)
        return self._witness_results

    async def verdict(self, reply: Reply, case: Case, *, alone: bool = False) -> Verdict | Failure:
        # what runs alone has all processors
        if alone or case.id in self._kept_here:
            return await self._verifying.verdict(reply, case, alone=alone)
        ended = ""
        for _ in range(MAX_LOST):
            process = min(self._processes, key=lambda one: one.preference(case.id, self._room))
            try:
                result = await process.result(reply, case.id)
            except OSError as error:
                # it was lost, or this machine has no room for another one
                ended = error.strerror or str(error)
                continue
            self._witness_results += result.witnesses
            return result.fact
        return failure(reply, VerifierError(f"the process that verified it ended: {ended or 'it was killed'}"))

    async def close(self) -> None:
        await asyncio.gather(*(process.close() for process in self._processes))
        await self._verifying.close()


class _Process:
    """One of the processes, started when it is first needed and again when it is lost."""

    def __init__(self, terms: VerifierTerms, processors: int) -> None:
        self._terms = terms
        self._processors = processors
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: FrameConnection[list[VerifierResult]] | None = None
        self._starting = asyncio.Lock()
        self._results: dict[int, asyncio.Future[VerifierResult]] = {}
        self._numbers = 0
        self._load = 0
        self._last_case = ""

    def preference(self, case: str, room: int) -> tuple[bool, bool, bool, bool, int]:
        """Lowest for the process to give an answer to this case: where a processor is free, one that has its tests loaded."""
        is_busy = self._load >= self._processors
        return self._load >= room, is_busy, case != self._last_case, self._process is None, self._load

    async def result(self, reply: Reply, case: str) -> VerifierResult:
        """What becomes of a reply; raises ConnectionError where this process ends before that is known."""
        self._load += 1
        self._last_case = case
        try:
            async with self._starting:
                connection = self._connection or await self._start()
            self._numbers += 1
            number = self._numbers
            coming: asyncio.Future[VerifierResult] = asyncio.get_running_loop().create_future()
            self._results[number] = coming
            connection.send(VerifierItem(number=number, case=case, reply=reply))
            try:
                return await coming
            finally:
                self._results.pop(number, None)
        finally:
            self._load -= 1

    async def _start(self) -> FrameConnection[list[VerifierResult]]:
        await self._reap()
        ours, theirs = socket.socketpair()
        self._log = new_file()
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: ASYNC220  a start takes a millisecond
                    [sys.executable, "-c", BOOT_SCRIPT.format(path=sys.path, processors=self._processors)],
                    stdin=theirs.fileno(),
                    stdout=self._log,
                    stderr=self._log,
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            self._log.close()
            raise
        _, connection = await asyncio.get_running_loop().create_unix_connection(
            lambda: FrameConnection(list[VerifierResult], self._take_in, self._lose), sock=ours
        )
        connection.send_frame(self._terms)
        self._connection = connection
        return connection

    def _take_in(self, results: list[VerifierResult]) -> None:
        for result in results:
            coming = self._results.get(result.number)
            if coming is not None and not coming.done():
                coming.set_result(result)

    def _lose(self) -> None:
        self._connection = None
        said = leading_bytes(self._log, 1 << 16).decode("utf-8", "replace").strip().rpartition("\n")[2]
        for coming in self._results.values():
            if not coming.done():
                coming.set_exception(ConnectionResetError(said))

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        await self._reap()

    async def _reap(self) -> None:
        """Wait for the end of the process, which hung up or was hung up on."""
        if self._process is None:
            return
        process, self._process = self._process, None
        try:
            await asyncio.to_thread(process.wait, EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            self._log.close()
