"""The probe behind `steelyard doctor`: each of its attempts succeeds where nothing stops it, so that none of them passes by itself."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from attacks.scenes import NOBODY, interpreter, run_as
from steelyard.sandbox import probe
from steelyard.sandbox.levels import ISOLATION_CLAIMS, _probe_in_sandbox, probe_isolation
from support.toolchains import isolation_level, unavailable

TARGETS = {
    **dict.fromkeys(("folder", "writable", "movable", "removable", "socket", "abstract"), "x"),
    **dict.fromkeys(("port", "port6", "datagrams", "memory_bytes", "file_bytes", "processes"), 1),
}
ATTEMPTS = {
    "writing": {*probe._writes(TARGETS), "change a mode", "change times", "change attributes", "change content"},
    "network": {*probe._connections(TARGETS), "send a datagram"},
    "processes": {*probe._intrusions(1)},
    "limits": {*probe._excesses(TARGETS)},
    "names": {"list a folder", "ask about a file"},
    "secrets": {"read our environment", "find our variables in its own"},
    "files": {"read /etc/passwd"},
}
OPEN_LEVEL = """
import asyncio, json, os
from steelyard.protocols import ResourceLimits
from steelyard.sandbox import levels, worker
os.environ["SOME_KEY"] = "x"
bare = worker.sandbox_environment
worker.sandbox_environment = lambda home: {**os.environ, **bare(home)}
worker.kernel.prctl = lambda *_: None  # we do not hide from our own user
large = ResourceLimits(memory_bytes=8 << 30, file_bytes=1 << 30, processes=300)
found = asyncio.run(levels._probe_in_sandbox(worker.IsolationLevel("process"), large))
print(json.dumps([found.held, found.reached, found.problem]))
"""
"""The probe as an ordinary user, with every mechanism taken away: the filter, landlock, clean variables, limits, and our own cover."""


def test_every_attempt_of_the_probe_succeeds_where_nothing_stops_it() -> None:
    user = "nobody" if os.geteuid() == 0 else "ourselves"
    python = interpreter(user)
    if not python:
        unavailable("no Python of this version with our packages that nobody can read")
    done = run_as(user, [python, "-c", OPEN_LEVEL], uid=NOBODY - 1002)
    assert done.returncode == 0, done.stderr
    held, reached, problem = json.loads(done.stdout)
    assert problem == ""
    assert {claim for claim in ISOLATION_CLAIMS if held[claim]} == set()
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    spared = (
        {"read its memory", "open its memory", "trace it"} if scope.exists() and scope.read_text() != "0\n" else set()
    )
    if not Path("/proc/net/if_inet6").exists():
        spared.add("connect to a port of IPv6")
    assert [name for claim, attempts in ATTEMPTS.items() for name in attempts - set(reached[claim]) - spared] == []


@pytest.mark.parametrize(
    ("kept", "broken"),
    [("landlock", {"writing", "network"}), ("filter", {"files", "writing", "names"})],
)
def test_a_mechanism_that_is_missing_is_noticed(kept: str, broken: set[str]) -> None:
    level = isolation_level("landlock")._replace(landlock=kept == "landlock", filter=kept == "filter")
    found = asyncio.run(_probe_in_sandbox(level))
    assert {claim for claim, held in found.held.items() if not held} >= broken
    assert not found.holds


@pytest.mark.parametrize("level", ["full", "bubblewrap", "landlock"])
def test_each_level_keeps_what_its_page_promises(level: str) -> None:
    isolation_level(level)  # or it is skipped
    broken = {claim for claim, held in probe_isolation(level).held.items() if not held}
    assert broken == ({"names"} if level == "landlock" else set())
