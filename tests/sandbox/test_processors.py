"""As much is done at once as this process has processors for, in a container as well."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.sandbox.process_room import cgroup_process_room
from steelyard.sandbox.processors import cgroup_quota, processor_count


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.mark.parametrize(
    ("listed", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2),
        # the group of the host, which a container does not see
        ("0::/docker/1234\n", {"cpu.max": "50000 100000\n"}, 0.5),
        ("4:cpu,cpuacct:/a\n1:name=systemd:/a\n", {"cpu,cpuacct/a/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n"}, math.inf),
        ("4:cpu,cpuacct:/docker/9\n", {"cpu,cpuacct/cpu.cfs_quota_us": "300000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 3),
        ("4:cpu:/a\n0::/a\n", {"cpu/a/cpu.cfs_quota_us": "400000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 4),
        ("0::/\n", {}, math.inf),
        ("0::/\n", {"cpu.max": "nonsense"}, math.inf),
        ("4:cpuset:/a\n", {"cpu/a/cpu.cfs_quota_us": "100000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, math.inf),
    ],
)  # fmt: skip
def test_the_quota_of_a_container_counts(listed: str, files: dict[str, str], quota: float, tmp_path: Path) -> None:
    assert cgroup_quota(listed, write(tmp_path, files)) == quota


@pytest.mark.parametrize(
    ("listed", "files", "room"),
    [
        ("0::/\n", {"pids.max": "max\n", "pids.current": "7\n"}, math.inf),
        ("0::/a/b\n", {"a/b/pids.max": "500\n", "a/b/pids.current": "7\n", "a/pids.max": "100\n", "a/pids.current": "90\n"}, 10),
        ("8:pids:/docker/9\n", {"pids/pids.max": "60\n", "pids/pids.current": "20\n"}, 40),
        ("8:pids:/\n", {"pids/pids.current": "20\n"}, math.inf),
    ],
)  # fmt: skip
def test_the_processes_of_a_container_count(listed: str, files: dict[str, str], room: float, tmp_path: Path) -> None:
    assert cgroup_process_room(listed, write(tmp_path, files)) == room


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be bound to processors here")
def test_the_processors_that_a_process_is_bound_to_count() -> None:
    first = min(os.sched_getaffinity(0))
    asked = (
        f"import os; os.sched_setaffinity(0, {{{first}}})\n"
        "from steelyard.verifiers.python.verifier import PythonVerifier\nprint(PythonVerifier.at_once)"
    )
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"
    assert 1 <= processor_count() <= (os.cpu_count() or 1)


def test_nobody_asks_how_many_processors_the_host_has() -> None:
    source = Path(__file__).parents[2] / "src" / "steelyard"
    asking = {path.name for path in source.rglob("*.py") if "cpu_count(" in path.read_text("utf-8")}
    assert asking == {"processors.py"}
