"""A sandbox made of warm zygote processes, each isolated."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from steelyard.protocols import GuestModules, ProcessResult, ResourceLimits
from steelyard.sandbox.process_room import CrowdWatch, ProcessRoom
from steelyard.sandbox.worker import MAX_SANDBOX_OUTPUT_BYTES, IsolationLevel, SandboxWorker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence


class ZygoteSandbox:
    """Workers that are started when they are needed, kept warm, and lent to one attempt at a time."""

    def __init__(self, enclosure: IsolationLevel) -> None:
        self.level: str = enclosure.level
        self._enclosure = enclosure
        self._idle: dict[GuestModules, list[SandboxWorker]] = {}
        self._room = ProcessRoom()
        # as root, and in a root of its own, each worker's code runs as a user of its own
        self._crowd = CrowdWatch() if not enclosure.own_root and os.geteuid() != 0 else None
        self._lent: set[SandboxWorker] = set()

    @asynccontextmanager
    async def workspace(
        self,
        files: Mapping[str, str | bytes],
        *,
        readable: Sequence[str] = (),
        local_sockets: bool = False,
        descriptor_paths: bool = False,
    ) -> AsyncIterator[SandboxWorkspace]:
        guest = GuestModules(readable=tuple(readable), local_sockets=local_sockets, descriptor_paths=descriptor_paths)
        async with self.host(guest) as worker:
            place = SandboxWorkspace(worker)
            if files:
                await place.write(files)
            yield place
            await worker.wipe()

    @asynccontextmanager
    async def host(self, guest: GuestModules) -> AsyncIterator[SandboxWorker]:
        """A worker for this guest; one that was left in the middle of something is not used again."""
        self._room.require()
        idle = self._idle.setdefault(guest, [])
        worker = self._waiting(idle)
        if worker is None:
            worker = SandboxWorker(self._enclosure, guest, self._crowd)
            await worker.start()
        self._lent.add(worker)
        try:
            yield worker
        except BaseException:
            worker.kill()
            raise
        finally:
            self._lent.remove(worker)
        idle.append(worker)

    def was_crowded_since(self, moment: float) -> bool:
        """Whether code here may have lacked processes because of code beside it, after a moment of the monotonic clock."""
        if self._crowd is None:
            return False
        for worker in self._lent:
            self._crowd.look(worker.pids)
        return self._crowd.has_seen_since(moment)

    def _waiting(self, idle: list[SandboxWorker]) -> SandboxWorker | None:
        """An idle worker that still lives; dead ones are cleaned up."""
        while idle:
            worker = idle.pop()
            if worker.usable:
                return worker
            worker.kill()
        return None

    async def close(self) -> None:
        """End every worker that waits."""
        while self._idle:
            for worker in self._idle.popitem()[1]:
                worker.kill()


class SandboxWorkspace:
    """A workspace in a worker's folder."""

    def __init__(self, worker: SandboxWorker) -> None:
        self._worker = worker

    async def write(self, files: Mapping[str, str | bytes]) -> None:
        given = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
        await self._worker.write(given)

    async def read(self, name: str, most: int = MAX_SANDBOX_OUTPUT_BYTES) -> bytes | None:
        return await self._worker.read(name, most)

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        limits: ResourceLimits = ResourceLimits(),
        environment: Mapping[str, str] = {},
        one_output: bool = False,
    ) -> ProcessResult:
        program = {"argv": argv, "environment": environment, "one_output": one_output}
        return await self._worker.run(program, stdin, limits)
