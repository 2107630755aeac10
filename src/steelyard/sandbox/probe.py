"""What code in a sandbox can reach when it tries: a guest that attempts a few escapes and reports the results.

Only the standard library is used: a bare interpreter loads this module.
"""

from __future__ import annotations

import json
import os
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def main(fds: list[int]) -> None:
    """Try what the other side names, and say of each attempt whether it succeeded."""
    targets: dict[str, Any] = json.loads(os.read(fds[0], 65536))
    tries: dict[str, Callable[[], object]] = {
        "files": lambda: os.read(os.open(targets["secret"], os.O_RDONLY), 1),
        "writing": lambda: os.open(targets["outside"], os.O_WRONLY | os.O_CREAT),
        "network": lambda: socket.create_connection(("127.0.0.1", targets["port"]), 5).close(),
        "secrets": lambda: os.read(os.open(f"/proc/{targets['pid']}/environ", os.O_RDONLY), 1),
        "processes": lambda: os.kill(targets["pid"], 0),
    }
    reached = {}
    for name, attempt in tries.items():
        try:
            attempt()
            reached[name] = True
        except OSError:
            reached[name] = False
    # a sandbox in which nothing works would pass every check and be useless
    with open("works.txt", "w") as file:
        file.write("yes")
    body = json.dumps(reached).encode()
    os.write(fds[0], struct.pack("I", len(body)) + body)
