"""The guests in sandboxes that Python answers are judged with, and our end of the connection to them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.errors import MissingToolError
from steelyard.protocols import GuestModules, ProcessResult, ResourceLimits
from steelyard.verifiers.python.settings import PythonSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.protocols import GuestHost
    from steelyard.records import Case

OLDEST_MINOR_VERSION = 11
"""The oldest Python 3 that can run answers: what runs them is written for it."""
MAX_GUEST_MESSAGE_BYTES = 64 << 20
"""Bytes of one message of a guest."""
GUEST_PARTS = {
    "answer": ("new_interpreter", "wire", "values", "answer"),
    "tests": ("new_interpreter", "wire", "values", "remote", "steps", "runners", "harness_marks", "tests"),
    "program": ("new_interpreter", "program"),
}
"""The modules that a guest is made of, in the order they are loaded; the last has its `main`."""
MULTIPROCESSING_SERVER_PATTERN = re.compile(r"\b(?:Manager|managers|connection|forkserver)\b")
LOCAL_SERVER_PATTERN = re.compile(r"\b(?:AF_UNIX|unix_server|start_unix_server|UnixStreamServer)\b")
GUEST_EXIT_SECONDS = 0.2
"""Seconds in which a guest may end by itself once its connection is done."""


@cache
def python_guest(name: str, environment: str = "", style: str = "") -> GuestModules:
    """A module of ours in the interpreter that a case wants: the bare one, or that of a virtual environment."""
    folder = Path(__file__).with_name("guest")
    sources = [
        (f"{__package__}.guest.{part}", (folder / f"{part}.py").read_text("utf-8")) for part in GUEST_PARTS[name]
    ]
    if not environment and style == "pytest":
        # our own environment is as good as any to run pytest itself
        environment = sys.prefix
    if not environment:
        return GuestModules(modules=tuple(sources))
    root = Path(environment).absolute()
    python = sys.executable if environment == sys.prefix else str(root / "bin" / "python")
    return GuestModules(modules=tuple(sources), python=python, readable=(str(root), *venv_base_folders(root)))


def answer_guest(name: str, case: Case, style: str, code: str) -> GuestModules:
    """A module of ours that runs an answer, with local sockets where its code names a server that needs one."""
    guest = python_guest(name, PythonSettings.of(case).python_env, style)
    return guest._replace(local_sockets=needs_local_sockets(code))


def needs_local_sockets(code: str) -> bool:
    """Whether code names a server on a local socket; `multiprocessing.Manager` starts one."""
    if "multiprocessing" in code and MULTIPROCESSING_SERVER_PATTERN.search(code):
        return True
    return bool(LOCAL_SERVER_PATTERN.search(code))


def installed_packages(environment: Path) -> tuple[str, ...]:
    """The packages of a virtual environment with their versions, and its Python's own."""
    settings = (environment / "pyvenv.cfg").read_text("utf-8").splitlines()
    python = [line.partition("=")[2].strip() for line in settings if line.startswith("version")]
    packages = environment.glob("lib/python*/site-packages/*.dist-info")
    return (*(f"Python {number}" for number in python[:1]), *sorted({package.stem for package in packages}))


def venv_base_folders(environment: Path) -> tuple[str, ...]:
    """The folder of the Python that a virtual environment was made from; MissingToolError when it is none, or too old."""
    try:
        settings = (environment / "pyvenv.cfg").read_text("utf-8")
    except OSError:
        if environment == Path(sys.prefix):
            return ()
        raise MissingToolError(
            f"{environment} is not a virtual environment; make one with: python3 -m venv {environment}"
        ) from None
    lines = [[part.strip() for part in line.partition("=")[::2]] for line in settings.splitlines()]
    said = dict(reversed(lines))
    version = re.match(r"3\.(\d+)", said.get("version", said.get("version_info", "")))
    if version and int(version[1]) < OLDEST_MINOR_VERSION:
        raise MissingToolError(
            f"{environment} has Python {version[0]}, and answers are run by 3.{OLDEST_MINOR_VERSION} or later; "
            f"make it with a newer one: python3 -m venv --clear {environment}"
        )
    home = said.get("home", "")
    folder = Path(home).resolve().parent
    return () if not home or folder == Path("/usr") else (str(folder),)


class GuestChannel:
    """Our end of a connection to a guest; its messages may come from an answer, so they are bounded."""

    def __init__(self, channel: socket.socket, most: int = MAX_GUEST_MESSAGE_BYTES) -> None:
        """No message may have more than `most` bytes."""
        channel.setblocking(False)
        self._channel = channel
        self._most = most
        self._rest = b""
        self.garbled = False
        """Whether something came that is not a message of a guest."""

    async def send(self, message: list[Any]) -> None:
        body = msgspec.json.encode(message)
        with contextlib.suppress(OSError):  # a guest that has ended is noticed when we receive
            await asyncio.get_running_loop().sock_sendall(self._channel, struct.pack("I", len(body)) + body)

    async def receive(self) -> list[Any] | None:
        """The guest's next message; None when it has ended. After a malformed message nothing more is read."""
        try:
            (length,) = struct.unpack("I", await self._take(4))
            if length > self._most:
                raise ValueError("too long")
            decoded: list[Any] = msgspec.json.decode(await self._take(length), type=list)
        except (OSError, EOFError):
            self.garbled = bool(self._rest)
            return None
        except (ValueError, RecursionError):
            self.garbled = True
            return None
        return decoded

    async def _take(self, length: int) -> bytes:
        while len(self._rest) < length:
            piece = await asyncio.get_running_loop().sock_recv(self._channel, max(65536, length - len(self._rest)))
            if not piece:
                raise EOFError
            self._rest += piece
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken


async def compiled_together(host: GuestHost, codes: Sequence[str], limits: ResourceLimits) -> list[bool]:
    """Which of these programs compile, checked in one process; none if that process did not finish."""
    ours, theirs = socket.socketpair()
    with ours:
        running = asyncio.ensure_future(host.call([theirs], limits))
        try:
            guest = GuestChannel(ours)
            await guest.send(["compile", codes])
            compiled = await guest.receive()
            await running
        finally:
            running.cancel()
    return compiled if compiled is not None else [False] * len(codes)


def python_limits(case: Case) -> ResourceLimits:
    """What an answer to a case may use up."""
    # a busy machine must not turn right into timed out: CPU time decides, wall time is a backstop
    return ResourceLimits(cpu_seconds=case.timeout_secs, wall_seconds=2 * case.timeout_secs + 10)


async def finish_call(host: GuestHost, call: asyncio.Future[ProcessResult]) -> ProcessResult:
    """The result of a call whose connection is done; one that lingers is stopped."""
    done, _ = await asyncio.wait([call], timeout=GUEST_EXIT_SECONDS)
    if not done:
        host.stop()
    return await call


def exit_description(outcome: ProcessResult) -> str:
    """How a guest ended, as a text for people."""
    if outcome.limit:
        return f"stopped at the {outcome.limit} after {outcome.seconds:.1f} s"
    if outcome.exit_code < 0:
        return f"died before the verdict, by signal {-outcome.exit_code}"
    return f"died before the verdict, with exit code {outcome.exit_code}"
