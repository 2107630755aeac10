"""What the reference of a case takes of the processors, measured where it runs: in a sandbox that reads the meter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from steelyard.analysis.scoring import is_correct
from steelyard.engine.limits import TIMES_REFERENCE, ReferenceTime, longest
from steelyard.engine.preflight.witnesses import reference_reply
from steelyard.engine.steps import verify
from steelyard.protocols import GuestHost, GuestModules, ProcessResult, ResourceLimits, Sandbox, Workspace
from steelyard.records import Case, Verdict

if TYPE_CHECKING:
    import socket

    from steelyard.protocols import Verifier


BRIEF_SECONDS = 5
"""Seconds that a reference may wait under any limit."""


class ReferenceTimers:
    """Times references one at a time, by verifiers of their own."""

    def __init__(self, sandbox: Sandbox, make_verifier: Callable[[str, Sandbox], Verifier]) -> None:
        self._sandbox = MeteredSandbox(sandbox)
        self._make_verifier = make_verifier
        self._verifiers: dict[str, Verifier] = {}
        self._turn = asyncio.Lock()

    async def time(self, case: Case) -> ReferenceTime | None:
        """The CPU time of the longest step of each kind; None where the reference does not pass."""
        async with self._turn:
            if case.kind not in self._verifiers:
                self._verifiers[case.kind] = self._make_verifier(case.kind, self._sandbox)
            self._sandbox.running = self._sandbox.compiling = 0.0
            fact = await verify(reference_reply(case), longest(case), self._verifiers[case.kind])
            if not isinstance(fact, Verdict) or not is_correct(case, fact.found):
                return None
            return ReferenceTime(self._sandbox.running, self._sandbox.compiling)

    async def close(self) -> None:
        for verifier in self._verifiers.values():
            await verifier.close()


class MeteredSandbox:
    """A sandbox that knows the most that one program in it has used of the processors."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.level = sandbox.level
        self.running = 0.0
        self.compiling = 0.0

    def count(self, ended: ProcessResult, limits: ResourceLimits) -> ProcessResult:
        """Read the meter of a program that has ended under these limits."""
        if limits.compiles:
            self.compiling = max(self.compiling, ended.cpu_seconds)
        else:
            # what waits is stopped by a clock, at twice the limit and ten seconds: it may take twice as long as its reference
            waited = (ended.seconds - BRIEF_SECONDS) / TIMES_REFERENCE
            self.running = max(self.running, ended.cpu_seconds, waited)
        return ended

    @asynccontextmanager
    async def workspace(self, files: Mapping[str, str | bytes], **granted: Any) -> AsyncIterator[Workspace]:
        async with self._sandbox.workspace(files, **granted) as place:
            yield _MeteredWorkspace(self, place)

    @asynccontextmanager
    async def host(self, guest: GuestModules) -> AsyncIterator[GuestHost]:
        async with self._sandbox.host(guest) as host:
            yield _MeteredHost(self, host)


class _MeteredWorkspace:
    def __init__(self, meter: MeteredSandbox, place: Workspace) -> None:
        self._meter = meter
        self._place = place
        self.write = place.write
        self.read = place.read

    async def run(
        self, argv: Sequence[str], *, limits: ResourceLimits = ResourceLimits(), **given: Any
    ) -> ProcessResult:
        return self._meter.count(await self._place.run(argv, limits=limits, **given), limits)


class _MeteredHost:
    def __init__(self, meter: MeteredSandbox, host: GuestHost) -> None:
        self._meter = meter
        self._host = host
        self.stop = host.stop

    @property
    def pids(self) -> Sequence[int]:
        return self._host.pids

    async def call(self, sockets: Sequence[socket.socket], limits: ResourceLimits, **given: Any) -> ProcessResult:
        return self._meter.count(await self._host.call(sockets, limits, **given), limits)
