"""How many more processes can be started here, before answers are promised some."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from steelyard.errors import VerifierError
from steelyard.protocols import ResourceLimits
from steelyard.sandbox.fair_clock import task_count
from steelyard.sandbox.processors import cgroup_folders, file_words
from steelyard.sandbox.zygote import tasks_of_this_user

PROMISED_PROCESSES = ResourceLimits().processes
"""Processes and threads that every answer may have at the same time."""
SMALL_OPEN_FILES_LIMIT = 128
"""Open files with which a sandbox can fail to start, in many ways."""
PROCESS_ROOM_TTL_SECONDS = 0.5
"""Seconds for which a look at the processes of this machine is good enough."""


def process_shortage() -> str:
    """Why an answer could not have the processes that it is promised; empty if it could.

    An answer that cannot start a thread fails or waits forever, and its end does not show whether the machine or the answer is to blame.
    """
    # one file has the total number of processes and threads: if even that leaves room, no user has to be counted
    load = file_words(Path("/proc/loadavg"))
    most = user_process_limit()
    if not load or most - int(load[3].partition("/")[2]) < PROMISED_PROCESSES:
        count = (
            0 if os.geteuid() == 0 else tasks_of_this_user() or 0
        )  # answers that root verifies have a user of their own
        if most - count < PROMISED_PROCESSES:
            return (
                f"this user may have {most:.0f} processes and threads and has {count}, but each answer may start {PROMISED_PROCESSES}; "
                "raise the limit with ulimit -u"
            )
    if (room := cgroup_process_room()) < PROMISED_PROCESSES:
        return (
            f"the control group of this process allows {room:.0f} more processes and threads, but each answer may start "
            f"{PROMISED_PROCESSES}; raise its pids.max (docker: --pids-limit)"
        )
    return ""


class ProcessRoom:
    """Whether answers can have the processes that they are promised, checked regularly."""

    def __init__(self) -> None:
        self._looked = -PROCESS_ROOM_TTL_SECONDS

    def require(self) -> None:
        """Raise VerifierError where an answer could not have them."""
        if (now := time.monotonic()) - self._looked < PROCESS_ROOM_TTL_SECONDS:
            return
        if shortage := process_shortage():
            raise VerifierError(shortage)
        self._looked = now


class CrowdWatch:
    """Whether code in one sandbox used up the processes that code in another one needed.

    Where the code of all sandboxes runs as one user, a limit on processes counts them together.
    """

    def __init__(self) -> None:
        self._seen = -math.inf

    def look(self, pids: Sequence[int]) -> None:
        """Count what there is below these processes."""
        if task_count(pids) >= PROMISED_PROCESSES // 2:
            self._seen = time.monotonic()

    def has_seen_since(self, moment: float) -> bool:
        """Whether there was a crowd after a moment of the monotonic clock."""
        return self._seen >= moment


def user_process_limit() -> float:
    """The maximum number of processes and threads of a user, as seen by this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = hard if os.geteuid() == 0 else soft
    return math.inf if most == resource.RLIM_INFINITY else most


def cgroup_process_room(listed: str = "", root: Path = Path("/sys/fs/cgroup")) -> float:
    """How many more processes and threads the control groups that are listed, by default our own, allow."""
    if not listed:
        with contextlib.suppress(OSError):
            listed = Path("/proc/self/cgroup").read_text("utf-8")
    rooms = [math.inf]
    for folder in cgroup_folders(listed, root, "pids"):
        most, count = file_words(folder / "pids.max"), file_words(folder / "pids.current")
        if most and count and most[0].isdigit():
            rooms.append(int(most[0]) - int(count[0]))
    return min(rooms)
