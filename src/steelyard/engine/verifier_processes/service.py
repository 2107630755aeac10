"""Verification by several processes of this machine, each with an event loop and sandboxes of its own."""

from __future__ import annotations

import asyncio
import math
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
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
    from steelyard.engine.verifier_processes.reply_order import RepliesByCase
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
MAX_KNOWN_CASES = 1000
"""Cases for each process that it is taken to know: about as many as a verifier keeps the tests of."""
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
        self._kept_here = {case.id: None for case in cases if not verifying.is_verified_apart(case)}
        group = delegated_group()
        self._terms = VerifierTerms(
            run=secrets.token_hex(16),
            # as a journal has them: the digest of tests knows which values are defaults, which a pickled case does not
            cases=msgspec.json.encode([case for case in cases if case.id not in self._kept_here]),
            level=verifying.level,
            allow_weak_sandbox=means.allow_weak_sandbox,
            recheck=means.recheck,
            controls=means.controls,
            control_key=means.control_key,
            control_group=str(group or ""),
        )
        processors = max(1, math.ceil(min(verifying.at_once, processor_count()) / count)) + EXTRA_REPLIES_PER_PROCESS
        self._processes = [_Process(self._terms, processors) for _ in range(count)]
        self._unstarted = self._processes[1:]
        self._room = room or math.ceil(verifying.at_once / count) + HANDED_AHEAD
        self._by_load: list[dict[_Process, None]] = [{} for _ in range(self._room + 1)]
        """The processes that were started, by the number of replies that each has."""
        self._by_load[0][self._processes[0]] = None
        self._busy = max(processors, self._room - HANDED_AHEAD + 1)
        """Replies with which a process has enough to do, and need not learn the tests of a case that another one knows."""
        self._known: dict[str, int] = {}
        """How many processes know the tests of a case, where any does."""
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

    def next_reply(self, waiting: RepliesByCase) -> tuple[Reply, Case, _Process | None] | None:
        """The reply to begin with next and who is to verify it, None for this process; None if all have enough to do.

        A process gets replies to cases whose tests it knows, or else nobody does. Only where it would soon be idle
        does it take over a case from another one.
        """
        if self._kept_here and (case := waiting.first_case_among(self._kept_here)) is not None:
            return *waiting.popleft(case), None
        for process in self._with_room():
            case = waiting.first_case_among(process.known)
            if case is None:
                case = waiting.first_case_beside(self._known)
            if case is None and process.load < self._busy:
                case = waiting.first_case()
            if case is not None:
                self._count(process, case)
                return *waiting.popleft(case), process
        return None

    def begin(
        self, reply: Reply, case: Case, process: _Process, done: Callable[[Verdict | Failure | None], None]
    ) -> None:
        """Hand a reply to the process that was chosen for it, and call back later, with None if that was lost."""

        def take_in(result: VerifierResult | OSError) -> None:
            self._change_load(process, -1)
            done(None if isinstance(result, OSError) else self._fact(result))

        process.begin(self._item(reply, case), take_in)

    async def verdict(self, reply: Reply, case: Case, *, alone: bool = False) -> Verdict | Failure:
        # what runs alone has all processors
        if alone or case.id in self._kept_here:
            return await self._verifying.verdict(reply, case, alone=alone)
        ended = ""
        for _ in range(MAX_LOST):
            process = next(self._with_room())
            self._count(process, case.id)
            try:
                result = await process.result(self._item(reply, case))
            except OSError as error:
                # it was lost, or this machine has no room for another one
                ended = error.strerror or str(error)
                continue
            finally:
                self._change_load(process, -1)
            return self._fact(result)
        return failure(reply, VerifierError(f"the process that verified it ended: {ended or 'it was killed'}"))

    def _item(self, reply: Reply, case: Case) -> VerifierItem:
        return VerifierItem(case=case.id, reply=reply, limit=self._verifying.limits.known(case))

    def _fact(self, result: VerifierResult) -> Verdict | Failure:
        """The fact of a result; what came with it is for the run."""
        self._witness_results += result.witnesses
        for limit in result.limits:
            self._verifying.limits.learn(limit, is_new=True)
        return result.fact

    def _with_room(self) -> Iterator[_Process]:
        """The processes that can be given a reply, the least busy first; one more is started where all others are busy."""
        for load, processes in enumerate(self._by_load[:-1]):
            if self._unstarted and load >= self._processes[0].processors:
                process = self._unstarted.pop()
                self._by_load[0][process] = None
                yield process
            yield from processes

    def _count(self, process: _Process, case: str) -> None:
        """Count a reply to a case that a process gets, and so will know."""
        self._change_load(process, 1)
        if case not in process.known:
            process.known[case] = None
            self._known[case] = self._known.get(case, 0) + 1
            if len(process.known) > MAX_KNOWN_CASES:
                forgotten = next(iter(process.known))
                del process.known[forgotten]
                self._known[forgotten] -= 1
                if not self._known[forgotten]:
                    del self._known[forgotten]

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
        self._starting: asyncio.Task[None] | None = None
        self._unsent: list[VerifierItem] = []
        """Replies for a process that is not connected yet."""
        self._results: dict[int, ResultCallback] = {}
        self._numbers = 0
        self.processors = processors
        self.load = 0
        self.known: dict[str, None] = {}
        """The cases that it got replies to, the oldest first; what one that was lost knew is learned again."""

    def begin(self, item: VerifierItem, done: ResultCallback) -> None:
        """Hand over a reply, and start the process if it has to be; `done` gets an OSError where it ends before the result is known."""
        self._numbers += 1
        self._results[self._numbers] = done
        item = msgspec.structs.replace(item, number=self._numbers)
        if self._connection is not None:
            self._connection.send(item)
            return
        self._unsent.append(item)
        if self._starting is None:
            self._starting = asyncio.create_task(self._connect())

    async def result(self, item: VerifierItem) -> VerifierResult:
        """What becomes of a reply. Raises an OSError where the process ends before that is known."""
        coming: asyncio.Future[VerifierResult | OSError] = asyncio.get_running_loop().create_future()
        self.begin(item, lambda result: None if coming.done() else coming.set_result(result))
        result = await coming
        if isinstance(result, OSError):
            raise result
        return result

    async def _connect(self) -> None:
        """Start the process, and send it what waits for it."""
        try:
            await self._start()
        except Exception as error:  # noqa: BLE001  whoever waits for a result must hear of it, whatever it is
            self._unsent.clear()
            self._fail(error if isinstance(error, OSError) else OSError(f"{type(error).__name__}: {error}"))
        finally:
            self._starting = None

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
        try:
            _, connection = await asyncio.get_running_loop().create_unix_connection(
                lambda: FrameConnection(list[VerifierResult], self._take_in, self._lose), sock=ours
            )
        except BaseException:
            # it ends when nobody is at the other end
            ours.close()
            raise
        connection.send_frame(self._terms)
        self._connection = connection
        unsent, self._unsent = self._unsent, []
        for item in unsent:
            connection.send(item)

    def _take_in(self, results: list[VerifierResult]) -> None:
        for result in results:
            if (done := self._results.pop(result.number, None)) is not None:
                done(result)

    def _lose(self) -> None:
        self._connection = None
        said = leading_bytes(self._log, 1 << 16).decode("utf-8", "replace").strip().rpartition("\n")[2]
        self._fail(ConnectionResetError(said))

    def _fail(self, error: OSError) -> None:
        lost, self._results = self._results, {}
        for done in lost.values():
            done(error)

    async def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
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
