"""How much memory the processes of an attempt use together, the buffers of their sockets included."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from steelyard.sandbox.fair_clock import file_bytes, process_tree_pids

DEFAULT_SOCKET_BUFFER_BYTES = 212_992
"""What a socket can hold back if the kernel does not report it; the filter keeps answers from asking for more."""


def process_tree_memory_bytes(pid: int, most: int) -> int:
    """Bytes that a process and those below it use; what they share is counted once where it would be too much otherwise."""
    family = process_tree_pids(pid)
    held = len({socket for one in family for socket in _sockets(one)})
    # a connection that nobody has accepted yet holds memory, too, and belongs to no process
    sockets = max(held, _local_sockets_in_own_networks(family)) * _socket_buffer_bytes()
    total = sum(_kilobytes(f"/proc/{one}/status", (b"RssAnon:", b"RssShmem:")) for one in family)
    if (total << 10) + sockets > most:
        with contextlib.suppress(PermissionError):  # reading this file may need more rights
            total = sum(_kilobytes(f"/proc/{one}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) for one in family)
    return (total << 10) + sockets


def _sockets(pid: int) -> list[str]:
    """The sockets of a process, by the kernel's names; none where we may not look."""
    found = []
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208  paths would take longer than the kernel
            with contextlib.suppress(OSError):  # closed meanwhile
                if (name := os.readlink(f"/proc/{pid}/fd/{fd}")).startswith("socket:"):  # noqa: PTH115  as above
                    found.append(name)
    return found


def _local_sockets_in_own_networks(pids: Iterable[int]) -> int:
    """How many local sockets there are in the networks of processes that do not share ours."""
    ours = _network("self")
    networks = {network: pid for pid in pids if (network := _network(pid)) not in (ours, None)}
    count = 0
    for pid in networks.values():
        with contextlib.suppress(OSError), Path(f"/proc/{pid}/net/unix").open("rb") as lines:
            count += sum(1 for _ in lines) - 1  # the first names the columns
    return count


def _network(pid: int | str) -> int | None:
    """The kernel's number of a process's network; None where we may not look."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino  # noqa: PTH116  as above
    except OSError:
        return None


@cache
def _socket_buffer_bytes() -> int:
    try:
        return int(Path("/proc/sys/net/core/wmem_default").read_text())
    except (OSError, ValueError):
        return DEFAULT_SOCKET_BUFFER_BYTES


def _kilobytes(path: str, names: tuple[bytes, ...]) -> int:
    """The sum of some lines of a file about a process; nothing when it has just ended."""
    try:
        lines = file_bytes(path).splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(names))
