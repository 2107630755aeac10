"""Agents that declare what they need and want more: `steelyard run` starts a hostile one for each attack."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attacks.agents_driver import ATTACKS
from attacks.scenes import USERS, needs_level, python_of, run_as

DRIVER = Path(__file__).with_name("agents_driver.py")
AGENT_UID = 63_900
SOME = (
    *("read_secret", "links_in_workspace", "git_settings", "print_declared_key", "memory_of_parent"),
    *("proxy_second_request", "leave_processes", "sparse_files", "linked_files", "leave_in_writable"),
)
"""The attacks of every run of the tests."""
MOST_TEMPORARY_BYTES = 600 << 20
"""What an agent's home can hold, and some more: nothing that it does takes more of our disk."""
SCENES = [
    pytest.param("full", USERS[0], SOME, id=f"some, full as {USERS[0]}"),
    *(
        pytest.param(level, user, tuple(ATTACKS), id=f"{level} as {user}", marks=pytest.mark.slow)
        for level in ("full", "bubblewrap")
        for user in USERS
    ),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that every user can find."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o777)
        yield Path(made)


@pytest.mark.parametrize(("level", "user", "attacks"), SCENES)
def test_no_hostile_agent_reaches_what_it_did_not_declare(
    level: str, user: str, attacks: tuple[str, ...], folder: Path
) -> None:
    needs_level(level)
    command = [python_of(user), str(DRIVER), level, str(folder), *attacks]
    done = run_as(user, command, uid=AGENT_UID, timeout=3000)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["exit_code"] == 0, told["stderr"]
    assert "Traceback" not in told["stderr"] + told["stdout"]
    assert {name for name, found in told["attacks"].items() if found is None} == set()
    assert {name: found["failure"] for name, found in told["attacks"].items() if "failure" in found} == {}
    assert {name: found["won"] for name, found in told["attacks"].items() if found["won"]} == {}
    # no server, file, process or folder outside was touched
    assert (told["asked"], told["changed"], told["left_running"], told["canary"]) == ([], [], 0, True)
    assert (told["revealed"], told["left_in_temporary"]) == ([], [])
    assert told["largest_temporary_bytes"] < MOST_TEMPORARY_BYTES
    # no program stays with which somebody else gets the rights of its owner
    assert {
        name: mode for name, mode in told["writable"].items() if "s" in mode.split()[0][1:] and mode[0] == "-"
    } == {}
