"""The doctor says what is true of this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.engine.preflight.doctor import (
    TOOL_REQUIREMENTS,
    ToolRequirement,
    examine_machine,
    find_tool,
    machine_advice,
    ray_tool,
)
from steelyard.reports.lists import MachineHealth
from steelyard.sandbox.levels import ISOLATION_CLAIMS, ISOLATION_LEVEL_NAMES, strongest_isolation

NODE = ToolRequirement(("node", "nodejs"), "JavaScript", apt="nodejs", brew="node")


@pytest.fixture(scope="module")
def health() -> MachineHealth:
    return examine_machine()


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_level_it_names_is_the_one_that_runs_would_use(health: MachineHealth) -> None:
    assert health.level == strongest_isolation().level


def test_every_level_is_tried_and_judged_by_every_claim(health: MachineHealth) -> None:
    assert tuple(level.name for level in health.levels) == ISOLATION_LEVEL_NAMES
    for level in health.levels:
        assert set(level.held) in (set(ISOLATION_CLAIMS.values()), set())
        assert bool(level.held) != bool(level.problem)


def test_what_is_missing_comes_with_a_way_to_get_it(tmp_path: Path) -> None:
    for tool in examine_machine(str(tmp_path)).tools[1:-1]:
        assert (tool.version, tool.problem) == ("", "not found")
        assert tool.remedy


def test_where_processes_are_short_that_is_the_advice_and_nothing_else() -> None:
    script = "from steelyard.engine.preflight.doctor import machine_advice; print(*machine_advice(''), sep='|')"
    command = ["prlimit", "--nproc=40:40", sys.executable, "-c", script]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said.startswith("this user may have 40 processes")
    assert "ulimit -u" in said
    assert "|" not in said


def test_what_a_level_cannot_do_is_said_where_it_is_used() -> None:
    assert any("multiprocessing's pools" in advice for advice in machine_advice("landlock"))
    assert not any("multiprocessing's pools" in advice for advice in machine_advice("full"))


def test_a_program_is_known_by_the_version_it_tells(tmp_path: Path) -> None:
    path = program(tmp_path, "nodejs", "[ $1 = --version ] && echo v20.20.2-beta.1")
    tool = find_tool(NODE, str(tmp_path))
    assert (tool.name, tool.version, tool.path) == ("nodejs", "20.20.2-beta.1", str(path))
    assert (tool.problem, tool.remedy) == ("", "")


def test_a_program_that_does_not_run_is_of_no_use(tmp_path: Path) -> None:
    program(tmp_path, "node", "echo no default toolchain is configured >&2; exit 1")
    tool = find_tool(NODE, str(tmp_path))
    assert tool.version == ""
    assert tool.problem == "does not run: no default toolchain is configured"
    assert tool.remedy


def test_a_program_that_no_sandbox_would_see_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "only-here", "echo 1.2.3")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    tool = find_tool(ToolRequirement(("only-here",), "nothing", apt="only-here"))
    assert tool.version == ""
    assert tool.problem.startswith(f"{path} is not in ")
    outside = find_tool(ToolRequirement(("only-here",), "nothing", anywhere=True))
    assert (outside.version, outside.problem) == ("1.2.3", "")


def test_every_wanted_program_says_what_it_is_for_and_where_it_is_to_be_had() -> None:
    for wanted in TOOL_REQUIREMENTS:
        assert wanted.purpose
        assert wanted.apt or wanted.elsewhere
        assert wanted.brew or wanted.elsewhere


def test_ray_is_told_with_the_cluster_that_would_be_used_and_an_address_that_leads_nowhere(tmp_path: Path) -> None:
    nowhere = {"RAY_TMPDIR": str(tmp_path)}
    assert ray_tool(nowhere).purpose == "verifying on many machines"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        assert ray_tool({**nowhere, "RAY_ADDRESS": place}).purpose.endswith(f"now on the cluster at {place}")
    gone = ray_tool({**nowhere, "RAY_ADDRESS": place}).problem
    assert "no Ray cluster answers there" in gone or gone == "not found"
