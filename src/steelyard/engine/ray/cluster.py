"""A Ray cluster as a run sees it, asked through a process that can be lost without harm."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.engine.ray.gateway import LOCAL
from steelyard.engine.ray.wire import Frame, received, send
from steelyard.errors import InputError
from steelyard.text import printable

if TYPE_CHECKING:
    from typing import IO

JOINING, STARTING = 60, 180
"""Seconds in which a cluster must have been joined, and one of our own started, even on a busy machine."""
KNOCK = 10
"""Seconds in which somebody must answer at an address."""
LEAVING = 15
"""Seconds in which the process must have ended by itself."""


class Lost(Exception):
    """A node, or the way to all of them, is gone; nothing is to blame for it but that."""


class Found(NamedTuple):
    """A node that the cluster tells of."""

    id: str
    name: str
    cpus: float


def address(given: str, environment: Mapping[str, str]) -> str:
    """Where the cluster is: as the user says, else the one that `ray start` started here, else one of our own."""
    named = given or environment.get("RAY_ADDRESS", "")
    if named in ("", "auto"):
        running = _running(environment)
        return running if running and _answers(running) else LOCAL
    if named == LOCAL:
        return LOCAL
    option = "--ray-address" if given else "RAY_ADDRESS"
    if "://" in named:
        raise InputError(
            f"{option} {printable(named)}: Ray Client is not supported; run this on a machine of the cluster, or join it "
            "with: ray start --address HOST:PORT, and name HOST:PORT"
        )
    host, colon, port = named.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{option} {printable(named)}: not HOST:PORT, such as 10.0.0.5:6379")
    if not _answers(named):
        raise InputError(
            f"{option} {printable(named)}: no Ray cluster answers there; start one with: ray start --head, or leave the option out"
        )
    return named


def _running(environment: Mapping[str, str]) -> str:
    """The address that the last `ray start` on this machine left behind."""
    note = Path(environment.get("RAY_TMPDIR") or "/tmp", "ray", "ray_current_cluster")  # noqa: S108  it is Ray's
    try:
        # a stranger could leave one as well, to be sent what we verify
        if note.stat().st_uid not in (0, os.geteuid()):
            return ""
        return note.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _answers(place: str) -> bool:
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK):
            return True
    except (OSError, ValueError):
        return False


class Cluster:
    """The gateway's process and our end of the talk with it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        said: IO[bytes],
        folder: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._folder = folder
        """Of a cluster of our own."""
        self._said = said
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._number = 0
        self._lost = ""
        self._listening = asyncio.create_task(self._listen(reader))

    @classmethod
    async def joined(cls, place: str) -> Cluster:
        """The cluster at an address; raises InputError where there is none that we could use."""
        if importlib.util.find_spec("ray") is None:
            raise InputError("--backend ray needs the package ray; get it with: pip install 'steelyard[ray]'")
        # the names of its sockets must be short
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp") if place == LOCAL else ""
        ours, theirs = socket.socketpair()
        said = tempfile.TemporaryFile()  # noqa: SIM115  closed with the cluster
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220  a start takes a millisecond
                [sys.executable, "-P", "-m", "steelyard.engine.ray.gateway", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the run alone, which then ends it in good order
                start_new_session=True,
            )
        cluster = cls(process, said, folder, *await asyncio.open_unix_connection(sock=ours))
        patience = STARTING if place == LOCAL else JOINING
        try:
            async with asyncio.timeout(patience):
                await cluster.ask("connect", address=place, folder=folder)
        except (Lost, TimeoutError) as error:
            reason = short(str(error) or f"no answer within {patience} s") + cluster._hint()
            await cluster.close()
            raise InputError(f"Ray at {place}: {reason}") from None
        except BaseException:
            await cluster.close()
            raise
        return cluster

    async def ask(self, do: str, payload: bytes = b"", **more: Any) -> Frame:
        """What the gateway answers; raises Lost when it says that something broke, or is gone itself."""
        future = self.told(do, payload, **more)
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()
        return await future

    def told(self, do: str, payload: bytes = b"", **more: Any) -> asyncio.Future[Frame]:
        """Say something now, in the order in which it is said; the answer is waited for by whoever wants it."""
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        # what nobody waits for any more needs no answer
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        if self._lost:
            future.set_exception(Lost(self._lost))
            return future
        self._number += 1
        self._waiting[self._number] = future
        send(self._writer, {"do": do, "number": self._number, **more}, payload)
        return future

    async def nodes(self) -> list[Found]:
        """The nodes that are there and have processors for us."""
        frame = await self.ask("nodes")
        found = [Found(str(node["id"]), str(node["name"]), float(node["cpus"])) for node in frame.header["said"]]
        found = [node for node in found if node.cpus > 0]
        names = [node.name for node in found]
        # two of them may run on one machine
        return [
            node if names.count(node.name) == 1 else node._replace(name=f"{node.name} {node.id[:6]}") for node in found
        ]

    async def close(self) -> None:
        """Leave the cluster: its actors end, and so does a cluster of our own."""
        self._writer.close()
        with contextlib.suppress(asyncio.CancelledError):
            self._listening.cancel()
            await self._listening
        self._hang_up("the cluster was left")
        waiting = asyncio.create_task(asyncio.to_thread(self._end))
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self._process.kill()
            await waiting
            raise

    def _end(self) -> None:
        try:
            self._process.wait(LEAVING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()
        if self._folder:
            # it removes that itself, unless it was killed
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while (frame := await received(reader)) is not None:
            future = self._waiting.pop(frame.header["number"], None)
            if future is None or future.done():
                continue
            if "error" in frame.header:
                future.set_exception(Lost(frame.header["error"]))
            else:
                future.set_result(frame)
        self._hang_up("the process that talks to Ray has ended")

    def _hang_up(self, why: str) -> None:
        """Let nobody wait for an answer that cannot come."""
        self._lost = self._lost or why
        while self._waiting:
            future = self._waiting.popitem()[1]
            if not future.done():
                future.set_exception(Lost(self._lost))

    def _hint(self) -> str:
        """What the gateway printed besides what it said, where that helps."""
        size = os.fstat(self._said.fileno()).st_size
        printed = os.pread(self._said.fileno(), 4000, max(0, size - 4000)).decode("utf-8", "replace")
        if "InvalidAuthToken" in printed:
            return "; it wants a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as they are on its nodes"
        last = next((line for line in reversed(printed.splitlines()) if line.strip()), "")
        return f": {short(last)}" if self._lost and last else ""


def short(text: str, most: int = 300) -> str:
    """What Ray says, in one line that no terminal obeys."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
