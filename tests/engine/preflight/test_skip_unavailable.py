"""Cases that this machine cannot verify stop nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.cli.main import main
from steelyard.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

EVAL_SET = """
[eval_set]
id = "mixed"
name = "Mixed"

[[cases]]
id = "double"
name = "Double"
prompt = "Write double(x)."
language = "python"
[cases.expectations]
test_file = "assert double(2) == 4"

[[cases]]
id = "elsewhere-1"
name = "One"
prompt = "Write a program."
[cases.verify]
kind = "command"
answer = "answer.txt"
test = "a-program-that-nobody-has answer.txt"

[[cases]]
id = "elsewhere-2"
name = "Two"
prompt = "Write another."
[cases.verify]
kind = "command"
answer = "answer.txt"
test = "a-program-that-nobody-has answer.txt"

[[cases]]
id = "crate"
name = "Crate"
prompt = "Write one()."
language = "rust"
dependencies = [{ name = "a-crate-that-nobody-has", version = "1", features = [] }]
[cases.expectations]
test_file = "#[test]\\nfn a() { assert_eq!(one(), 1); }"
"""


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    (tmp_path / "mixed.toml").write_text(EVAL_SET)
    answer = "```python\\ndef double(x): return 2 * x\\n```"
    (tmp_path / "replies.jsonl").write_text(f'{{"task_id": "double", "model": "m", "completion": "{answer}"}}\n')
    run = ["run", str(tmp_path / "mixed.toml"), "--models", f"replay:{tmp_path / 'replies.jsonl'}"]
    return [*run, "--output", str(tmp_path / "run"), "--allow-weak-sandbox"]


def test_a_refusal_names_every_case_that_lacks_something(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert '2 cases ("elsewhere-1", "elsewhere-2")' in said
    assert 'case "crate"' in said
    assert "--skip-unavailable" in said


def test_what_cannot_be_verified_here_can_be_left_out(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*asked, "--skip-unavailable"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "correct       1/1" in shown
    assert "2 cases were left out (elsewhere-1, elsewhere-2): not found in the sandbox" in shown
    assert "1 case was left out (crate)" in shown
    assert main(["show", str(tmp_path / "run")]) == ExitCode.OK
    assert "left out (elsewhere-1, elsewhere-2)" in capsys.readouterr().out


def test_nothing_left_is_bad_input(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*asked, "--skip-unavailable", "--exclude", "double"]) == ExitCode.BAD_INPUT
    assert "none of 3 cases can be verified here" in capsys.readouterr().err


def test_cases_are_left_out_by_their_ids(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*asked, "--exclude", "elsewhere-*", "--exclude", "crate"]) == ExitCode.OK
    assert "correct       1/1" in capsys.readouterr().out
