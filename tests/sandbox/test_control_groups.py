"""Control groups of version 2: the kernel itself counts what an attempt uses. `tools/virtual-machine` runs these where there are none."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.scenes import interpreter, run_as
from steelyard.sandbox.control_group import CGROUP_ROOT
from steelyard.sandbox.processors import file_words

NOBODY = 65534
IN_GROUP = """
import asyncio, json, os, shutil, sys
from pathlib import Path
group, user, beside = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "beside"
(group / "cgroup.procs").write_text("0")
if beside and (child := os.fork()):
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
from steelyard.protocols import ResourceLimits
from steelyard.sandbox import worker
from steelyard.sandbox.control_group import delegated_group
from steelyard.sandbox.levels import ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.worker import base_interpreter
worker.WATCH_SECONDS = 3600  # nobody looks but the kernel
LIMITS = ResourceLimits(cpu_seconds=120, wall_seconds=600, memory_bytes=96 << 20, processes=24)
HOLD = "import os, time\\nfor _ in range(12):\\n    if not os.fork():\\n        held = b'-' * (64 << 20)\\n        time.sleep(600)\\ntime.sleep(600)"
FORK = '''
import os, time
count = 0
try:
    while not (child := os.fork()) == 0:
        count += 1
    time.sleep(600)
except BlockingIOError:
    print(count)
'''
async def tried(level):
    sandbox, found = ZygoteSandbox(level), []
    async def run(code):
        async with sandbox.workspace({"kept": "here"}) as place:
            ended = await place.run([base_interpreter(), "-c", code], limits=LIMITS)
            found.append([ended.limit, ended.stdout.decode().strip(), (await place.read("kept") or b"gone").decode()])
    await run("print(1)")
    if delegated_group():
        await run(HOLD)
        await run(FORK)
    await run("print(2)")
    await sandbox.close()
    return found
levels = [each for each in ISOLATION_LEVELS[:3] if each.level != "bubblewrap" or shutil.which("bwrap")]
print(json.dumps({each.level: asyncio.run(tried(each)) for each in levels}))
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of version 2 that is made for one process."""
    if os.geteuid() != 0 or not {"memory", "pids"} <= set(file_words(CGROUP_ROOT / "cgroup.subtree_control")):
        pytest.skip("needs root, and control groups of version 2 that count memory and processes")
    made = CGROUP_ROOT / f"test-{os.getpid()}"
    made.mkdir()
    yield made
    for folder in (*made.glob("*/"), made):
        folder.rmdir()


def tried_in(group: Path, user: int, *, beside: bool = False) -> dict[str, list[list[str]]]:
    for name in ("", "cgroup.procs", "cgroup.subtree_control"):
        os.chown(group / name, user, user)
    python = interpreter("nobody") if user else sys.executable
    if not python:
        pytest.skip("no Python of this version with our packages that nobody can read")
    ran = run_as("root", [python, "-c", IN_GROUP, str(group), str(user), "beside" if beside else "alone"])
    assert ran.returncode == 0, ran.stderr
    tried: dict[str, list[list[str]]] = json.loads(ran.stdout)
    return tried


@pytest.mark.parametrize("user", [0, NOBODY])
def test_the_kernel_ends_an_attempt_at_its_memory_and_counts_its_processes(group: Path, user: int) -> None:
    for level, (first, hoarder, forker, last) in tried_in(group, user).items():
        assert first == ["", "1", "here"], level
        # its sandbox ended with it, so its folder is gone, and nothing but the limit is told
        assert hoarder == ["memory limit", "", "gone"], level
        # the user of a sandbox may have one or two processes of ours there
        assert (forker[0], forker[2]) == ("", "here"), level
        assert int(forker[1]) in {21, 22, 23}, level
        assert last == ["", "2", "here"], level
    assert [folder.name for folder in group.glob("*/")] == ["steelyard"], "no group of an attempt is left"


def test_a_group_that_holds_somebody_else_is_left_alone(group: Path) -> None:
    assert all(runs == [["", "1", "here"], ["", "2", "here"]] for runs in tried_in(group, 0, beside=True).values())
    assert [*group.glob("*/")] == []
