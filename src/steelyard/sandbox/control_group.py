"""A control group for each worker: the kernel counts what an attempt uses, and ends all of it at the limit."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from functools import cache
from pathlib import Path

from steelyard.protocols import ResourceLimits
from steelyard.sandbox.fair_clock import process_tree_pids
from steelyard.sandbox.folders import SANDBOX_TMPFS_SIZE
from steelyard.sandbox.private_root import SHARED_MEMORY_SIZE
from steelyard.sandbox.processors import file_words

CGROUP_ROOT = Path("/sys/fs/cgroup")
WORKSPACE_MEMORY_BYTES = sum(int(size[:-1]) << 20 for size in (SANDBOX_TMPFS_SIZE, SHARED_MEMORY_SIZE))
"""Bytes that a group may hold beyond the limit on memory: a workspace can be in memory, and has a limit of its own."""
REMOVAL_TIMEOUT_SECONDS = 2
_numbers = itertools.count(1)


class ControlGroup:
    """The group of one worker, for one attempt at a time; if anything in it runs out of memory, everything in it ends."""

    def __init__(self, above: Path) -> None:
        self._folder = above / f"steelyard-{os.getpid()}-{next(_numbers)}"
        self._folder.mkdir()
        self._limits: ResourceLimits | None = None
        try:
            (self._folder / "memory.oom.group").write_text("1")
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap does not have it
                (self._folder / "memory.swap.max").write_text("0")
            self.door = os.open(self._folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            """A file; the process that writes 0 to it joins."""
        except OSError:
            self._folder.rmdir()
            raise

    def set_limits(self, limits: ResourceLimits) -> None:
        """What the next attempt may use."""
        if limits != self._limits:
            (self._folder / "memory.max").write_text(str(limits.memory_bytes + WORKSPACE_MEMORY_BYTES))
            (self._folder / "pids.max").write_text(str(limits.processes + 1))  # the zygote is one
            self._limits = limits

    def is_out_of_memory(self) -> bool:
        """Whether the kernel has ended it at its own limit; the memory of the whole machine is another matter."""
        words = file_words(self._folder / "memory.events")
        events = dict(zip(words[::2], words[1::2], strict=False))
        return events.get("oom", "0") != "0" and events.get("oom_kill", "0") != "0"

    def remove(self) -> None:
        """End all processes in it."""
        os.close(self.door)
        with contextlib.suppress(OSError):
            (self._folder / "cgroup.kill").write_text("1")
        deadline = time.monotonic() + REMOVAL_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                return self._folder.rmdir()
            except FileNotFoundError:
                return None
            except OSError:  # what was ended needs a moment to be gone
                time.sleep(0.005)
        return None


def new_control_group() -> ControlGroup | None:
    """A group with nothing in it; None if we cannot have one."""
    if (above := delegated_group()) is not None:
        with contextlib.suppress(OSError):
            return ControlGroup(above)
    return None


_divided: list[Path] = []


def use_divided_group(above: Path) -> None:
    """Make groups below one that was made ready by the process that started this one."""
    _divided[:] = [above]


def delegated_group() -> Path | None:
    """The control group below which workers have theirs; None if there is none of version 2."""
    return _divided[0] if _divided else _own_delegated_group()


@cache
def _own_delegated_group() -> Path | None:
    """The control group that was made for this process, ready to be divided; None if there is none of version 2.

    A group that has members cannot be divided, so we move into one below it. We do that only where no other process is in it.
    """
    try:
        listed = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
        above = CGROUP_ROOT / next(line[4:] for line in listed if line.startswith("0::/"))
        members = set(map(int, file_words(above / "cgroup.procs")))
        if os.getpid() not in members or not members <= set(process_tree_pids(os.getpid())):
            return None
        if not {"memory", "pids"} <= set(file_words(above / "cgroup.controllers")):
            return None
        own = above / "steelyard"
        own.mkdir(exist_ok=True)
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                (own / "cgroup.procs").write_text(str(pid))
        (above / "cgroup.subtree_control").write_text("+memory +pids")
    except (OSError, StopIteration):
        return None
    return above
