"""The axe-core that tests need is fetched once, by npm, and held to its digest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "axe"
REASON = "some tests need axe-core, which could not be installed: "


def fetched(folder: Path, npm: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the tool does where npm is this script."""
    programs = folder.parent / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "npm").write_text(f"#!/bin/sh\n{npm}\n")
    (programs / "npm").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, TOOL, folder], env={**kept, "PATH": path, **environment}, capture_output=True, text=True
    )


def test_what_is_not_to_be_had_fails_nobody_but_ci(tmp_path: Path) -> None:
    at_home, in_ci = fetched(tmp_path / "axe", "exit 1"), fetched(tmp_path / "axe", "exit 1", CI="1")
    assert (at_home.returncode, in_ci.returncode) == (0, 1)
    assert at_home.stderr == f"{REASON}npm failed\n"


def test_a_package_that_is_not_the_one_we_know_is_refused(tmp_path: Path) -> None:
    ran = fetched(tmp_path / "axe", "echo something else >axe-core-4.14.0.tgz", CI="1")
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"{REASON}axe-core@4.14.0 has changed")
    assert not (tmp_path / "axe").exists()


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "axe").mkdir()
    (tmp_path / "axe" / "axe.min.js").touch()
    ran = fetched(tmp_path / "axe", "exit 1", CI="1")
    assert (ran.returncode, ran.stderr) == (0, "")
