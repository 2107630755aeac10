"""Rust answers that want a pass without solving the task, verified side by side with honest ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from attacks import rust_attacks
from attacks.scenes import NOBODY, needs_level, python_of, run_as, scenes, told_once
from support.toolchains import unavailable

DRIVER = Path(rust_attacks.__file__)


@pytest.fixture(scope="module", params=scenes())
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    level, user = request.param
    needs_level(level)
    rustc = shutil.which("rustc")
    if rustc is None:
        unavailable("no Rust here")
    python = python_of(user)
    if _runs(user, str(rustc)):
        return told_once(tmp_path_factory, f"rust-{level}-{user}", user, [python, str(DRIVER), level])
    # root's toolchain, shown to an ordinary user in another place
    toolchain = subprocess.run([str(rustc), "--print", "sysroot"], check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        for folder in ("toolchain", "cache"):
            Path(place, folder).mkdir()
            os.chown(Path(place, folder), NOBODY, NOBODY)
        command = ["unshare", "--mount", "sh", "-c", SHOWN, "sh", toolchain.stdout.strip(), place, str(NOBODY)]
        return told_once(tmp_path_factory, f"rust-{level}-{user}", "root", [*command, python, str(DRIVER), level])


SHOWN = """
mount --bind "$1" "$2/toolchain" && export PATH="$2/toolchain/bin:$PATH" XDG_CACHE_HOME="$2/cache" && user=$3 && shift 3 &&
exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
"""


def _runs(user: str, program: str) -> bool:
    try:
        return run_as(user, [program, "--version"]).returncode == 0
    except OSError:
        return False


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
