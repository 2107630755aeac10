"""Where a Ray cluster is, and the process through which a run uses it."""

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
from typing import TYPE_CHECKING

from steelyard.engine.ray.wire import (
    AUTH_HINT,
    LOCAL_CLUSTER,
    GatewayMessage,
    Join,
    JoinResult,
    MessageWriter,
    Terms,
    receive,
    short_line,
)
from steelyard.errors import InputError
from steelyard.text import printable

if TYPE_CHECKING:
    from typing import IO

JOIN_SECONDS, START_SECONDS = 300, 420
"""The time in which the nodes of a cluster must have answered, and those of a cluster of our own, even on a busy machine."""
CONNECT_SECONDS = 10
"""The time in which something must answer at an address."""
EXIT_SECONDS = 15
"""The time in which the gateway must have ended by itself."""


def address(given: str, environment: Mapping[str, str]) -> str:
    """Where the cluster is: as the user says, or the one that `ray start` started here, or one of our own."""
    named = str(given or environment.get("RAY_ADDRESS", ""))
    if named in ("", "auto"):
        running = _running(environment)
        return running if running and _answers(running) else LOCAL_CLUSTER
    if named == LOCAL_CLUSTER:
        return LOCAL_CLUSTER
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
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def last_printed_line(printed: IO[bytes]) -> str:
    """What a process that talks to Ray printed last; where Ray refused its token, what to do about that."""
    size = os.fstat(printed.fileno()).st_size
    text = os.pread(printed.fileno(), 4000, max(0, size - 4000)).decode("utf-8", "replace")
    if "InvalidAuthToken" in text:
        return AUTH_HINT
    return short_line(next((line for line in reversed(text.splitlines()) if line.strip()), ""))


class GatewayProcess:
    """The run's end of its connection to the process that talks to Ray."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        printed: IO[bytes],
        folder: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._printed = printed
        self._folder = folder
        """Of a cluster of our own."""
        self._reader = reader
        self._writer = MessageWriter(writer)

    @classmethod
    async def start(cls, place: str, terms: Terms) -> tuple[GatewayProcess, JoinResult]:
        """Join the cluster at an address; raises InputError when that fails."""
        if importlib.util.find_spec("ray") is None:
            raise InputError("--backend ray needs the package ray; get it with: pip install 'steelyard[ray]'")
        # the names of its sockets must be short
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp") if place == LOCAL_CLUSTER else ""
        ours, theirs = socket.socketpair()
        printed = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220  a start takes a millisecond
                [sys.executable, "-P", "-m", "steelyard.engine.ray.gateway", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the run alone, which then ends it in good order
                start_new_session=True,
            )
        gateway = cls(process, printed, folder, *await asyncio.open_unix_connection(sock=ours))
        limit = START_SECONDS if place == LOCAL_CLUSTER else JOIN_SECONDS
        try:
            gateway.send(Join(address=place, folder=folder, terms=terms))
            async with asyncio.timeout(limit):
                joined = await gateway.receive()
            problem = joined.problem if isinstance(joined, JoinResult) else "the process that talks to Ray has ended"
        except TimeoutError:
            joined, problem = None, f"no answer within {limit} s"
        except BaseException:
            await gateway.close()
            raise
        if not isinstance(joined, JoinResult) or problem:
            problem = short_line(problem) + gateway._hint(is_ended=joined is None)
            await gateway.close()
            raise InputError(f"Ray at {place}: {problem}")
        return gateway, joined

    def send(self, message: GatewayMessage) -> None:
        """Send a message; one to a gateway that is gone is lost."""
        self._writer.send(message)

    async def drain(self) -> None:
        """Wait until the gateway has taken in most of what was sent."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def receive(self) -> GatewayMessage | None:
        """The next message; None when the gateway is gone."""
        return await receive(self._reader)

    async def close(self) -> None:
        """Leave the cluster: its workers end, and so does a cluster of our own."""
        self._writer.close()
        try:
            await asyncio.to_thread(self._process.wait, EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # also when this is cancelled: nothing may outlive the run
            self._process.kill()
            self._process.wait()
            self._printed.close()
            if self._folder:
                # the gateway removes that itself, unless it was killed
                shutil.rmtree(self._folder, ignore_errors=True)

    def _hint(self, *, is_ended: bool) -> str:
        """What the gateway printed, where that helps."""
        last = last_printed_line(self._printed)
        return f"; {last}" if last == AUTH_HINT else f": {last}" if is_ended and last else ""
