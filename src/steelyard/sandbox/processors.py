"""How many processors this process may use: those it is bound to, and no more than its container is granted."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def processor_count() -> int:
    """The number of things that are worth doing at the same time here, at least 1."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        groups = Path("/proc/self/cgroup").read_text("utf-8")
    except OSError:  # not Linux, or nothing is told
        return bound
    return max(1, math.ceil(min(bound, cgroup_quota(groups, Path("/sys/fs/cgroup")))))


def cgroup_quota(groups: str, root: Path) -> float:
    """The processors that the control groups listed in `groups`, mounted at `root`, grant; infinite when none limits them."""
    quotas = [math.inf]
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            # version 2: `max 100000` or `150000 100000`
            quotas += (_quotient(*_words(folder / "cpu.max")[:2]) for folder in _with_parents(root, path))
        elif "cpu" in controllers.split(","):
            for mount in (root / controllers, root / "cpu"):
                for folder in _with_parents(mount, path):
                    # version 1: -1 where there is no limit
                    quota, period = _words(folder / "cpu.cfs_quota_us"), _words(folder / "cpu.cfs_period_us")
                    quotas.append(_quotient(*quota[:1], *period[:1]))
    return min(quotas)


def _with_parents(mount: Path, path: str) -> Iterator[Path]:
    """A group and those above it, each of which may limit it; inside a container only the last one may be there."""
    group = Path(path.strip("/"))
    for above in (group, *group.parents):
        yield mount / above


def _words(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8").split()
    except OSError:
        return []


def _quotient(quota: str = "", period: str = "") -> float:
    if not quota.isdigit() or not period.isdigit() or not int(quota) or not int(period):
        return math.inf
    return int(quota) / int(period)
