"""Terraform answers that want to run something, read something or call someone get nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attacks import terraform_attacks
from attacks.scenes import needs_level, python_of, run_as, sampled_scenes, told_once
from support.toolchains import terraform, unavailable

DRIVER = Path(terraform_attacks.__file__)


@pytest.fixture(scope="module", params=sampled_scenes())
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    level, user, much = request.param
    needs_level(level)
    if not terraform().exists():
        unavailable("no Terraform here")
    python = python_of(user)
    if run_as(user, ["test", "-x", str(terraform())]).returncode:
        unavailable(f"no Terraform that {user} can run")
    command = [python, str(DRIVER), str(terraform()), level, much]
    return told_once(tmp_path_factory, f"terraform-{level}-{user}-{much}", user, command)


def test_row_34_nothing_is_run_and_nobody_is_called(told: dict[str, Any]) -> None:
    assert told["calls"] == 0
    assert told["left"] == ["main.tf", "secret"]


def test_row_34_nothing_is_read_but_the_module(told: dict[str, Any]) -> None:
    for name, found in told["found"].items():
        assert not found.get("secret"), f"{name}: {found}"
    said = told["found"]["files of others"]["said"]
    # where names lead to files of others, these cannot be opened
    refused = [message for message in said if "no file exists at" in message or "permission denied" in message]
    assert len(refused) == 5


@pytest.mark.parametrize("name", [name for name in terraform_attacks.ATTACKS if "backend" not in name])
def test_row_34_what_is_not_there_makes_an_answer_wrong(told: dict[str, Any], name: str) -> None:
    assert told["found"][name].get("passed") is False, told["found"][name]


def test_row_34_a_backend_is_not_asked(told: dict[str, Any]) -> None:
    assert told["found"]["a backend, and a state elsewhere"].get("passed"), told["found"]


def test_row_34_an_answer_without_end_is_stopped_and_the_next_one_is_judged(told: dict[str, Any]) -> None:
    assert (told["found"]["bomb"]["passed"], told["found"]["bomb"]["label"]) in (
        (False, "cpu limit"),
        (False, "memory limit"),
        (False, "died"),
    )
    for name, found in told["bombs"].items():
        assert found.get("passed") is False, f"{name}: {found}"
    assert told["found"]["honest"].get("passed"), told["found"]["honest"]
