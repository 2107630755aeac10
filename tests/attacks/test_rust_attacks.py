"""Rust answers that want a pass without solving the task, verified side by side with honest ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attacks import rust_attacks
from attacks.scenes import needs_level, sampled_scenes, told_with_rust

DRIVER = Path(rust_attacks.__file__)


@pytest.fixture(scope="module", params=sampled_scenes())
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    level, user, much = request.param
    needs_level(level)
    return told_with_rust(tmp_path_factory, f"rust-{level}-{user}-{much}", user, [str(DRIVER), level, much])


def of(told: dict[str, Any], row: str) -> dict[str, dict[str, Any]]:
    return {name: found for name, found in told.items() if name.startswith(row)}


def test_row_01_and_32_honest_answers_pass_beside_every_attack(told: dict[str, Any]) -> None:
    """All of them are compiled at the same time, and name their function alike."""
    for name, found in of(told, "honest").items():
        assert found.get("passed"), f"{name}: {found}"
    assert told["row 1: wrong"]["label"] == "wrong answer"


def test_row_31_no_attack_passes(told: dict[str, Any]) -> None:
    for name, found in of(told, "row 31").items():
        assert "failure" not in found, f"{name}: {found}"
        assert not found["passed"], f"{name}: {found}"
        assert not found["escaped"], f"{name}: {found}"
        assert found["trust"] in ("in-process", "unproved")
    assert not told["written"]


def test_row_33_silenced_lints_are_counted_all_the_same(told: dict[str, Any]) -> None:
    for name, found in of(told, "row 33").items():
        assert "failure" not in found, f"{name}: {found}"
        assert not found["passed"], f"{name}: {found}"
        assert found["warnings"] or found["label"] in ("not allowed", "tampered"), f"{name}: {found}"


def test_row_08_files_that_tools_would_read_are_not_made(told: dict[str, Any]) -> None:
    assert not told["row 8: build script"]["passed"]
