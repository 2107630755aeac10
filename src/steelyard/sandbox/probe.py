"""What code in a sandbox can reach when it tries: a guest that attempts to break each promise, and reports what it could do.

Only the standard library is used: a bare interpreter loads this module.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import resource
import signal
import socket
import struct
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Tries = dict[str, Callable[[], object]]

PROBE_MODE, PROBE_SECONDS = 0o755, 86_400
"""The mode and the times that a probe tries to give to a file."""
PTRACE_SEIZE = 0x4206
CONNECT_SECONDS = 5


def main(fds: list[int]) -> None:
    """Try what the other side names, and say which attempts succeeded."""
    targets: dict[str, Any] = json.loads(os.read(fds[0], 65536))
    for change in _changes(targets).values():
        _succeeds(change)  # these may seem to succeed: what became of it is looked at from outside
    tries: dict[str, Tries] = {
        "files": {f"read {path}": partial(_read, path) for path in targets["secrets"]},
        "names": {
            "list a folder": partial(os.listdir, targets["folder"]),
            "ask about a file": partial(os.stat, targets["secrets"][0]),
        },
        "writing": _writes(targets),
        "network": _connections(targets),
        "secrets": {
            "read our environment": partial(_read, f"/proc/{targets['pid']}/environ"),
            "find our variables in its own": partial(_require, set(targets["variables"]) & set(os.environ)),
        },
        "processes": _intrusions(targets["pid"]),
        "limits": _excesses(targets),
    }
    reached = {
        claim: [name for name, attempt in attempts.items() if _succeeds(attempt)] for claim, attempts in tries.items()
    }
    # a sandbox in which nothing works would pass every check and be useless
    with open("works.txt", "w") as file:
        file.write("yes")
    body = json.dumps(reached).encode()
    os.write(fds[0], struct.pack("I", len(body)) + body)


def _changes(targets: dict[str, Any]) -> Tries:
    """Changes of what is known about a file and its folder, and a message that may or may not arrive."""

    def datagram() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.sendto(b"-", ("127.0.0.1", targets["datagrams"]))

    found: Tries = {"datagram": datagram}
    for path in (targets["writable"], targets["folder"]):
        found |= {
            f"mode {path}": partial(os.chmod, path, PROBE_MODE),
            f"times {path}": partial(os.utime, path, (PROBE_SECONDS, PROBE_SECONDS)),
            f"owner {path}": partial(os.chown, path, os.getuid(), os.getgid()),
            f"attribute {path}": partial(getattr(os, "setxattr", _unknown), path, "user.steelyard", b"-"),
            f"no attribute {path}": partial(getattr(os, "removexattr", _unknown), path, "user.kept"),
        }
    return found


def _writes(targets: dict[str, Any]) -> Tries:
    folder, writable = targets["folder"], targets["writable"]
    return {
        "create a file": lambda: os.open(f"{folder}/made", os.O_WRONLY | os.O_CREAT),
        "make a folder": partial(os.mkdir, f"{folder}/made-folder"),
        "make a link": partial(os.symlink, "secret", f"{folder}/made-link"),
        "give a file a second name": partial(os.link, writable, f"{folder}/made-name"),
        "make a pipe": partial(os.mkfifo, f"{folder}/made-pipe"),
        "open a file for writing": partial(os.open, writable, os.O_WRONLY),
        "cut a file short": partial(os.truncate, writable, 0),
        "rename a file": partial(os.rename, targets["movable"], f"{folder}/moved"),
        "remove a file": partial(os.unlink, targets["removable"]),
    }


def _connections(targets: dict[str, Any]) -> Tries:
    def local(path: str) -> None:
        with socket.socket(socket.AF_UNIX) as made:
            made.connect(path)

    found: Tries = {
        "connect to a port": lambda: socket.create_connection(("127.0.0.1", targets["port"]), CONNECT_SECONDS).close(),
        "connect to a socket in a folder": partial(local, targets["socket"]),
    }
    if targets["port6"]:
        found["connect to a port of IPv6"] = lambda: socket.create_connection(
            ("::1", targets["port6"]), CONNECT_SECONDS
        ).close()
    if targets["abstract"]:
        found["connect to a socket without a file"] = partial(local, f"\0{targets['abstract']}")
    return found


def _intrusions(pid: int) -> Tries:
    """Ways to another process."""
    libc = ctypes.CDLL(None, use_errno=True)
    place = ctypes.create_string_buffer(struct.pack("PN", 0, 1))

    def memory() -> None:
        # nothing is at address 0, which only those learn who may look
        if libc.process_vm_readv(pid, place, 1, place, 1, 0) < 0 and ctypes.get_errno() != errno.EFAULT:
            raise OSError(ctypes.get_errno(), "process_vm_readv")

    def trace() -> None:
        if libc.ptrace(PTRACE_SEIZE, pid, None, None) < 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    return {
        "signal": partial(os.kill, pid, 0),
        "read its memory": memory,
        "open its memory": partial(os.open, f"/proc/{pid}/mem", os.O_RDONLY),
        "change its limits": lambda: resource.prlimit(
            pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE)
        ),
        "change its priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)),
        "trace it": trace,
    }


def _excesses(targets: dict[str, Any]) -> Tries:
    """More memory, file or processes than one attempt may have."""

    def file() -> None:
        with open("large", "wb") as made:
            made.truncate(targets["file_bytes"] + 1)

    return {
        "take memory": lambda: mmap.mmap(-1, targets["memory_bytes"] + (64 << 20)).close(),
        "make a large file": file,
        "start processes": partial(_start_processes, targets["processes"] + 1),
    }


def _start_processes(count: int) -> None:
    """Start processes that wait; raises OSError if so many cannot be had."""
    children: list[int] = []
    try:
        for _ in range(count):
            child = os.fork()
            if not child:
                signal.pause()
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def _read(path: str) -> bytes:
    return os.read(os.open(path, os.O_RDONLY), 1)


def _unknown(*_: object) -> None:
    """Instead of a call that this system does not have."""


def _require(found: object) -> None:
    if not found:
        raise FileNotFoundError


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, AttributeError, MemoryError, ValueError):  # refused, or unknown to this system
        return False
    return True
