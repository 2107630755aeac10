"""Verification by several processes of this machine, each with an event loop and sandboxes of its own."""

from __future__ import annotations

import asyncio
import math
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
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
"""Processes that may end under a reply that is waited for, before its verdict is given up."""
ResultCallback = Callable[[VerifierResult | OSError], None]
"""Gets the result of a reply, or why its process was lost."""
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
        self._unstarted = self._processes[1:]
        self._room = room or math.ceil(verifying.at_once / count) + HANDED_AHEAD
        self._by_load: list[dict[_Process, None]] = [{} for _ in range(self._room + 1)]
        """The processes that were started, by the number of replies that each has."""
        self._by_load[0][self._processes[0]] = None
        self._familiar: dict[str, _Process] = {}
        """The process that last got an answer to a case."""
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

    def begin(self, reply: Reply, case: Case, done: Callable[[Verdict | Failure | None], None]) -> bool:
        """Hand a reply to a process at once, and call back later, with None if that was lost; False if none is there to take it."""
        if case.id in self._kept_here:
            return False
        process = self._take(case.id)
        if not process.is_connected:
            self._change_load(process, -1)
            return False

        def take_in(result: VerifierResult | OSError) -> None:
            self._change_load(process, -1)
            if isinstance(result, OSError):
                done(None)
            else:
                self._witness_results += result.witnesses
                done(result.fact)

        process.begin(reply, case.id, take_in)
        return True

    async def verdict(self, reply: Reply, case: Case, *, alone: bool = False) -> Verdict | Failure:
        # what runs alone has all processors
        if alone or case.id in self._kept_here:
            return await self._verifying.verdict(reply, case, alone=alone)
        ended = ""
        for _ in range(MAX_LOST):
            process = self._take(case.id)
            try:
                result = await process.result(reply, case.id)
            except OSError as error:
                # it was lost, or this machine has no room for another one
                ended = error.strerror or str(error)
                continue
            finally:
                self._change_load(process, -1)
            self._witness_results += result.witnesses
            return result.fact
        return failure(reply, VerifierError(f"the process that verified it ended: {ended or 'it was killed'}"))

    def _take(self, case: str) -> _Process:
        """The process for an answer to this case, which is counted there: where a processor is free, one that knows its tests."""
        process = self._familiar.get(case)
        if process is None or process.last_case != case or process.load >= process.processors:
            process = self._least_loaded()
        self._familiar[case], process.last_case = process, case
        self._change_load(process, 1)
        return process

    def _least_loaded(self) -> _Process:
        started = next(next(iter(processes)) for processes in self._by_load if processes)
        if started.load < started.processors or not self._unstarted:
            return started
        process = self._unstarted.pop()
        self._by_load[0][process] = None
        return process

    def _change_load(self, process: _Process, by: int) -> None:
        del self._by_load[process.load][process]
        process.load += by
        self._by_load[process.load][process] = None

    async def close(self) -> None:
        await asyncio.gather(*(process.close() for process in self._processes))
        await self._verifying.close()


class _Process:
    """One of the processes, started when it is first needed and again when it is lost."""

    def __init__(self, terms: VerifierTerms, processors: int) -> None:
        self._terms = terms
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: FrameConnection[list[VerifierResult]] | None = None
        self._starting = asyncio.Lock()
        self._results: dict[int, ResultCallback] = {}
        self._numbers = 0
        self.processors = processors
        self.load = 0
        self.last_case = ""

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    def begin(self, reply: Reply, case: str, done: ResultCallback) -> None:
        """Hand over a reply; `done` gets an OSError where this process ends before its result is known."""
        if self._connection is None:
            done(ConnectionResetError(""))
            return
        self._numbers += 1
        self._results[self._numbers] = done
        self._connection.send(VerifierItem(number=self._numbers, case=case, reply=reply))

    async def result(self, reply: Reply, case: str) -> VerifierResult:
        """What becomes of a reply; the process is started if it has to be. Raises an OSError where it ends before that is known."""
        async with self._starting:
            if self._connection is None:
                await self._start()
        coming: asyncio.Future[VerifierResult | OSError] = asyncio.get_running_loop().create_future()
        self.begin(reply, case, lambda result: None if coming.done() else coming.set_result(result))
        result = await coming
        if isinstance(result, OSError):
            raise result
        return result

    async def _start(self) -> None:
        await self._reap()
        ours, theirs = socket.socketpair()
        self._log = new_file()
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: ASYNC220  a start takes a millisecond
                    [sys.executable, "-c", BOOT_SCRIPT.format(path=sys.path, processors=self.processors)],
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

    def _take_in(self, results: list[VerifierResult]) -> None:
        for result in results:
            if (done := self._results.pop(result.number, None)) is not None:
                done(result)

    def _lose(self) -> None:
        self._connection = None
        said = leading_bytes(self._log, 1 << 16).decode("utf-8", "replace").strip().rpartition("\n")[2]
        lost, self._results = self._results, {}
        for done in lost.values():
            done(ConnectionResetError(said))

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
