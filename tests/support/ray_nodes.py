"""A real Ray cluster on this machine: as many raylets as a test likes, each a node with an address of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

import pytest

WEAK = """
import ctypes, os, platform, struct, sys
numbers = {"x86_64": (272, 165, 155), "aarch64": (97, 40, 41)}[platform.machine()]
rules = [(0x20, 0, 0, 0)]
rules += [(0x15, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
rules += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
held = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
given = Filter(len(rules), ctypes.cast(held, ctypes.c_void_p))
if libc.prctl(22, 2, ctypes.byref(given), 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Starts a program that can make no namespace and no mount: all that is left to it is a weaker sandbox."""
SOURCE = Path(__file__).parents[2] / "src"
PATIENCE = 600
TRIES = 5
WAIT = """
import sys, time, ray
while True:
    try:
        ray.init(address=sys.argv[1], log_to_driver=False, ignore_reinit_error=True)
        if any(node["Alive"] and node["NodeName"] == sys.argv[2] for node in ray.nodes()):
            break
    except Exception:
        pass
    time.sleep(1)
"""


def needs_ray() -> pytest.MarkDecorator:
    """Skip where Ray is missing, except in CI: there the test runs, and fails."""
    is_missing = importlib.util.find_spec("ray") is None
    return pytest.mark.skipif(is_missing and not os.environ.get("CI"), reason="ray is not installed")


class RayCluster:
    """A head and other nodes; what they start is found again by the session that it runs in, and ended by its pid."""

    def __init__(self, nodes: int = 2, *, cpus: int = 1) -> None:
        self._cpus = cpus
        # the names of sockets must be short
        self._folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
        self._sessions: dict[int, int] = {}
        self.port = _free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_agent_register_timeout_ms": "300000",
            "RAY_USAGE_STATS_ENABLED": "0",
            # Ray lets its workers give way to everybody else, for whom a busy machine would have tests wait
            "RAY_worker_niceness": "0",
        }
        self.environment.pop("RAY_ADDRESS", None)
        self._nodes = nodes

    def start(self, number: int, environment: Mapping[str, str] = {}, wrapper: tuple[str, ...] = ()) -> None:
        """Start a node; the first one is the head."""
        options = [f"--node-ip-address=127.0.0.{number + 1}", f"--node-name={self.name(number)}"]
        options += [f"--num-cpus={self._cpus}", "--object-store-memory=100000000", "--disable-usage-stats"]
        if number:
            options += [f"--address={self.address}"]
        else:
            options += ["--head", f"--port={self.port}", f"--temp-dir={self._folder}", "--include-dashboard=false"]
            options += [f"--ray-client-server-port={_free_port()}", f"--dashboard-port={_free_port()}"]
        program = [*wrapper, str(Path(sys.executable).with_name("ray")), "start", *options]
        for _ in range(TRIES):
            with tempfile.TemporaryFile() as said:
                started = subprocess.Popen(
                    program,
                    cwd="/",
                    env={**self.environment, **environment},
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
                self._sessions[number] = started.pid
                if not started.wait(PATIENCE):
                    return
                # it gives a node half a minute, which on a busy machine is too short, and leaves it starting, or does not
                said.seek(0)
                assert "timed out during startup" in said.read().decode()
            if self._comes(number):
                return
            self.kill(number)
        raise AssertionError(f"node {number} does not start")

    def _comes(self, number: int) -> bool:
        """Whether the cluster tells of a node before long."""
        waiting = [sys.executable, "-c", WAIT, self.address, self.name(number)]
        try:
            subprocess.run(waiting, env=self.environment, timeout=60, check=True, capture_output=True)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def numbers(self) -> list[int]:
        return sorted(self._sessions)

    @staticmethod
    def name(number: int) -> str:
        return f"node-{number}"

    def processes(self, number: int) -> dict[int, str]:
        """The processes of a node, with their names."""
        return dict(_of_session(self._sessions[number]))

    def workers(self, number: int, *, idle: bool = False) -> list[int]:
        """The processes of a node that are in a task of ours, which Ray puts into their names; with `idle` the others, too."""
        prefix = "ray::" if idle else "ray::steelyard"
        return [pid for pid, name in self.processes(number).items() if name.startswith(prefix)]

    def kill_raylet(self, number: int) -> None:
        """End a node as a power cut would: its raylet goes, and takes the rest along."""
        for pid, name in self.processes(number).items():
            if name == "raylet":
                os.kill(pid, signal.SIGKILL)

    def kill(self, number: int) -> None:
        """End all that belongs to a node."""
        _kill_all(self._sessions[number])

    def sockets(self) -> list[str]:
        """The unix sockets of the cluster."""
        return [str(path) for path in self._folder.rglob("*") if path.is_socket()]

    def ports(self) -> list[int]:
        """The TCP ports that its processes listen on."""
        inodes = {
            line.split()[9]: int(line.split()[1].rpartition(":")[2], 16)
            for table in ("/proc/net/tcp", "/proc/net/tcp6")
            for line in Path(table).read_text().splitlines()[1:]
            if line.split()[3] == "0A"
        }
        held: set[int] = set()
        for number in self._sessions:
            for pid in self.processes(number):
                with contextlib.suppress(OSError):
                    for link in Path(f"/proc/{pid}/fd").iterdir():
                        with contextlib.suppress(OSError):
                            name = str(link.readlink())
                            if name.startswith("socket:["):
                                held |= {inodes[name[8:-1]]} if name[8:-1] in inodes else set()
        return sorted(held)

    def __enter__(self) -> RayCluster:
        try:
            for number in range(self._nodes):
                self.start(number)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all of it."""
        for number in self._sessions:
            self.kill(number)
        shutil.rmtree(self._folder, ignore_errors=True)


def end_nodes_on_sigterm() -> None:
    """Let a program that is asked to end leave its clusters first, as after Ctrl-C: their processes would outlive it."""

    def leave(number: int, _frame: object) -> None:
        # `timeout` sends it twice
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def below(pid: int) -> set[int]:
    """A process and all that it started, sandboxes included, which have sessions of their own."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    found, waiting = {pid}, [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found.update(children)
        waiting += children
    return found


def gone(pids: set[int], seconds: float = 120) -> set[int]:
    """Those of some processes that are still there after a while; dead ones that nobody has buried do not count."""
    deadline = time.monotonic() + seconds
    while left := {pid for pid in pids if _lives(pid)}:
        if time.monotonic() > deadline:
            return left
        time.sleep(0.1)
    return set()


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port


def _of_session(session: int) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                status = (entry / "stat").read_text()
                name, _, rest = status.partition("(")[2].rpartition(") ")
                fields = rest.split()
                if int(fields[3]) == session and fields[0] != "Z":
                    yield int(entry.name), name


def _kill_all(session: int) -> None:
    deadline = time.monotonic() + 30
    while left := dict(_of_session(session)):
        assert time.monotonic() < deadline, left
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
