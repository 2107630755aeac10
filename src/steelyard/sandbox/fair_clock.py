"""The wall time that a wall limit counts: not the time in which processes could run and wait for a processor.

A busy machine must not turn right into timed out. CPU time is limited by the kernel; a wall limit is for what sleeps or waits for
something that never comes. /proc shows how long a process waited for a processor; it is read from outside, where an
answer has no say, a few times a second and only of what runs longer than that.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from steelyard.sandbox.processors import granted_processor_count, machine_processor_count

MAX_OTHERS_CROWD = 8
"""Threads per processor that may be waiting because of other programs; more of them would slow down each other in any case."""
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROC_READ_BYTES = 1 << 14
MAX_STARVED_FACTOR = 6
"""How many times its wall limit something may take that waits for a processor; after that we have failed it."""
MIN_STARVED_SECONDS = 60.0
"""What it may take at least: a busy machine does not become quiet sooner because a limit is short."""


_own_root: list[int] = []


def count_own_from(pid: int) -> None:
    """Take all processes below this one for our own, because it shares its work with this process and others."""
    _own_root[:] = [pid]


@cache
def has_fair_clock() -> bool:
    """Whether this machine reports how long processes wait for a processor; where it does not, all time counts."""
    return Path("/proc/self/schedstat").exists()


def patience_seconds(wall_seconds: float) -> float:
    """How long to wait for something with this wall limit that waits for a processor itself."""
    return max(MIN_STARVED_SECONDS, MAX_STARVED_FACTOR * wall_seconds)


class FairClock:
    """Counts the seconds in which the processes below some others sleep or run."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._began = self._last = time.monotonic()
        self._usage: TreeUsage | None = None
        self._most_cpu_seconds = 0.0
        self.counted = 0.0
        """Seconds in which they slept or ran, up to the last look."""

    @property
    def elapsed(self) -> float:
        """Seconds since the start, up to the last look."""
        return self._last - self._began

    def look(self) -> None:
        """Count the time since the last look."""
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        usage, before = tree_usage(self._pids) if has_fair_clock() else None, self._usage
        self._usage = usage
        if usage is None:
            self.counted += seconds
            return
        ran, waited = 0.0, 0.0
        if before is not None:
            # who ends while we look is missing once and comes back with its parent
            ran = max(0.0, usage.cpu_seconds - self._most_cpu_seconds)
            waited = min(seconds, sum(delay - before.delays.get(task, 0.0) for task, delay in usage.delays.items()))
        self._most_cpu_seconds = max(self._most_cpu_seconds, usage.cpu_seconds)
        if usage.runnable:
            # one that is ready to run now was so for a while: short-lived ones take what they waited with them;
            # but processes that multiply until they block each other wait only for themselves
            waited = 0.0 if is_in_its_own_way(usage.runnable) else seconds
        self.counted += max(seconds - waited, min(seconds, ran))


class TreeUsage(NamedTuple):
    """The CPU time that processes and their descendants have used so far."""

    cpu_seconds: float
    """Of the living and of those that their parents have reaped."""
    delays: dict[int, float]
    """By thread: seconds in which it waited for a processor."""
    runnable: int
    """How many of their threads run or could run at this moment."""


def tree_usage(pids: Sequence[int]) -> TreeUsage:
    """What these processes and those below them have used up."""
    cpu_seconds, runnable = 0.0, 0
    delays: dict[int, float] = {}
    for pid in process_tree_pids(*pids):
        # one that ends while we look at it is skipped
        with contextlib.suppress(OSError, IndexError, ValueError):
            user, system, *reaped = (
                int(field) / TICKS_PER_SECOND for field in _stat_fields(f"/proc/{pid}/stat")[11:15]
            )
            ran = 0.0
            for task in _tasks(pid):
                on_processor, waiting, *_ = file_bytes(f"/proc/{pid}/task/{task}/schedstat").split()
                ran += int(on_processor) / 1e9
                delays[int(task)] = int(waiting) / 1e9
                runnable += _stat_fields(f"/proc/{pid}/task/{task}/stat")[0] == b"R"
            # ticks count threads that have ended; nanoseconds count what many had who never had a whole tick
            cpu_seconds += max(user + system, ran) + sum(reaped)
    return TreeUsage(cpu_seconds, delays, runnable)


def is_in_its_own_way(runnable: int) -> bool:
    """Whether this number of runnable threads is explained by threads that wait for each other, not for others on this machine."""
    crowd = runnable / granted_processor_count()
    if crowd <= 1 or crowd > MAX_OTHERS_CROWD:
        return crowd > 1
    # the load of our own sandboxes does not count as an excuse: two answers that multiply would excuse each other;
    # and others are counted on the whole machine, of which we may have a part
    others = runnable_tasks() - tree_usage(_own_root or [os.getpid()]).runnable
    return crowd > others / machine_processor_count()


def runnable_tasks() -> int:
    """How many threads of this machine run or could run at this moment."""
    return int(Path("/proc/loadavg").read_text("utf-8").split()[3].partition("/")[0])


def _stat_fields(path: str) -> list[bytes]:
    """The fields of a stat file behind the name, which may hold anything: the state first, CPU ticks from the twelfth on."""
    return file_bytes(path).rpartition(b")")[2].split()


def file_bytes(path: str) -> bytes:
    """What is in a file of /proc; several hundred are read for each second that an answer runs, so without any layers."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(file, PROC_READ_BYTES)
        # a long list comes a page at a time
        while more := os.read(file, PROC_READ_BYTES):
            found += more
        return found
    finally:
        os.close(file)


def process_tree_pids(*pids: int) -> list[int]:
    """Processes and those below them, whichever thread started them."""
    found = list(pids)
    for one in found:
        for task in _tasks(one):
            with contextlib.suppress(OSError):  # a thread that has just ended has none
                found += map(int, file_bytes(f"/proc/{one}/task/{task}/children").split())
    return found


def task_count(pids: Sequence[int]) -> int:
    """How many threads these processes and those below them have."""
    return sum(len(_tasks(pid)) for pid in process_tree_pids(*pids))


def _tasks(pid: int) -> list[str]:
    """The names of a process's threads; none when it has just ended."""
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  paths would take longer than the kernel
    except OSError:
        return []
