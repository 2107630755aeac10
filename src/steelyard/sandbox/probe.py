"""What code in a sandbox can reach when it tries: a guest that attempts a few escapes and reports the results.

Only the standard library is used: a bare interpreter loads this module.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROBE_MODE, PROBE_SECONDS = 0o755, 86_400
"""The mode and the times that a probe tries to give to a file."""


def main(fds: list[int]) -> None:
    """Try what the other side names, and say of each attempt whether it succeeded."""
    targets: dict[str, Any] = json.loads(os.read(fds[0], 65536))
    tries: dict[str, list[Callable[[], object]]] = {
        "files": [partial(_read, path) for path in targets["secrets"]],
        "writing": [
            lambda: os.open(targets["outside"], os.O_WRONLY | os.O_CREAT),
            lambda: os.open(targets["writable"], os.O_WRONLY),
            lambda: os.truncate(targets["writable"], 0),
            lambda: os.rename(targets["writable"], targets["outside"]),
            lambda: os.unlink(targets["writable"]),
        ],
        "network": [
            lambda: socket.create_connection(("127.0.0.1", targets["port"]), 5).close(),
            lambda: socket.socket(socket.AF_UNIX).connect(targets["socket"]),
        ],
        "secrets": [partial(_read, f"/proc/{targets['pid']}/environ")],
        "processes": [lambda: os.kill(targets["pid"], 0)],
    }
    for path in (targets["writable"], os.path.dirname(targets["writable"])):
        # these may seem to succeed: what became of the file is looked at from outside
        for change in (
            partial(os.chmod, path, PROBE_MODE),
            partial(os.utime, path, (PROBE_SECONDS, PROBE_SECONDS)),
            partial(getattr(os, "setxattr", _unknown), path, "user.steelyard", b"-"),
        ):
            _succeeds(change)
    reached = {name: any(_succeeds(attempt) for attempt in attempts) for name, attempts in tries.items()}
    # a sandbox in which nothing works would pass every check and be useless
    with open("works.txt", "w") as file:
        file.write("yes")
    body = json.dumps(reached).encode()
    os.write(fds[0], struct.pack("I", len(body)) + body)


def _read(path: str) -> bytes:
    return os.read(os.open(path, os.O_RDONLY), 1)


def _unknown(*_: object) -> None:
    """Instead of a call that this system does not have."""


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True
