"""schemathesis asks the running server all that its description allows, and much that it does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steelyard.records import Case
from support.studies import with_slow
from support.toolchains import SCHEMATHESIS, needs_schemathesis
from support.viewed import Came, Viewer, cases, made

pytestmark = needs_schemathesis()

STRONG, WEAK = "openai/strong", "openai/weak"
KEY = "open sesame"
KNOWN = """
[parameters]
"path.run_id" = "day-1"
"path.case_id" = "case-1"
"query.case_id" = "case-2"
"query.model_id" = "openai/weak"
"query.baseline" = "day-1"
"query.current" = "day-2@openai/weak"
"""
"""What is there to be found: names that were thought up lead to none of it."""


ANY_KEY_WILL_DO = ("--exclude-checks", "ignored_auth")
"""One right key among wrong ones is enough, which this check does not know; test_api.py holds that a wrong one alone is refused."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("conformance") / "runs"
    asked = [*cases(4), Case(id="in/a/folder", prompt="?", target="yes", suite="injection")]
    for day in (1, 2):
        attempts = [
            (case, model, number, Came("wrong", "no\x1b[2J\u202e") if (model, number) == (WEAK, day) else Came())
            for case in asked
            for model in (STRONG, WEAK)
            for number in (1, 2)
        ]
        made(root, f"day-{day}", asked, attempts, started_at=f"2026-03-0{day}T10:00:00.000Z")
    (root / "broken").mkdir()
    (root / "broken" / "run.json").write_text("{")
    return root


def checked(viewer: Viewer, place: Path, *options: str, known: str = "") -> str:
    """What schemathesis says of a server; it must be content."""
    (place / "schemathesis.toml").write_text(known)
    key = viewer.own.get("X-API-Key", KEY)
    ran = subprocess.run(
        [
            SCHEMATHESIS,
            "run",
            f"{viewer.url}openapi.json",
            "--seed",
            "1",
            *ANY_KEY_WILL_DO,
            "--header",
            f"X-API-Key: {key}",
            *options,
        ],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=570,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_the_api_is_as_its_description_says_whatever_is_asked(runs: Path, tmp_path: Path) -> None:
    with Viewer(runs) as viewer:
        checked(viewer, tmp_path, "--max-examples", "10", "--phases", "coverage,fuzzing")
        code, complaints = viewer.stop()
    assert code == 0
    assert "Traceback" not in complaints


@pytest.mark.parametrize("examples", with_slow([3], [10]))
def test_with_a_key_and_about_runs_that_are_there_it_is_so_as_well(runs: Path, tmp_path: Path, examples: int) -> None:
    with Viewer(runs, key=KEY) as viewer:
        options = ("--max-examples", str(examples), "--phases", "fuzzing")
        checked(viewer, tmp_path, *options, known=KNOWN)
        code, complaints = viewer.stop()
    assert code == 0
    assert "Traceback" not in complaints
