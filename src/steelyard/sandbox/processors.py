"""How many processors this process may use: those it is bound to, and no more than its container is granted."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_share: list[int] = []


def take_share(processors: int) -> None:
    """Do no more at a time than these processors can from now on, because other processes of the same run have the others."""
    _share[:] = [processors]


def processor_count() -> int:
    """The number of things that are worth doing at the same time in this process, at least 1."""
    return min(granted_processor_count(), *_share) if _share else granted_processor_count()


@cache
def granted_processor_count() -> int:
    """The processors that this process and all others of its run may use."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        groups = Path("/proc/self/cgroup").read_text("utf-8")
    except OSError:  # not Linux, or the kernel does not say
        return bound
    return max(1, math.ceil(min(bound, cgroup_quota(groups, Path("/sys/fs/cgroup")))))


def machine_processor_count() -> int:
    """The processors of the whole machine, of which we may have a part: what others use is spread over all of them."""
    return os.cpu_count() or 1


def cgroup_quota(groups: str, root: Path) -> float:
    """The processors that the control groups listed in `groups`, mounted at `root`, grant; infinite when none limits them."""
    quotas = [math.inf]
    for folder in cgroup_folders(groups, root, "cpu"):
        # version 2: `max 100000` or `150000 100000`; version 1: -1 where there is no limit
        quota, period = file_words(folder / "cpu.cfs_quota_us"), file_words(folder / "cpu.cfs_period_us")
        quotas += (_quotient(*file_words(folder / "cpu.max")[:2]), _quotient(*quota[:1], *period[:1]))
    return min(quotas)


def cgroup_folders(groups: str, root: Path, controller: str) -> Iterator[Path]:
    """The folders of a controller in the control groups listed in `groups`, mounted at `root`, each before those above it.

    Any of them may set a limit; inside a container only the last one may be there.
    """
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            group = Path(path.strip("/"))
            # version 2 has one hierarchy for all controllers
            for mount in (root / controllers, root / controller) if controllers else (root,):
                yield from (mount / above for above in (group, *group.parents))


def file_words(file: Path) -> list[str]:
    """The words of a file; none where it cannot be read."""
    try:
        return file.read_text("utf-8").split()
    except OSError:
        return []


def _quotient(quota: str = "", period: str = "") -> float:
    if not quota.isdigit() or not period.isdigit() or not int(quota) or not int(period):
        return math.inf
    return int(quota) / int(period)
