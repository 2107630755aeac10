"""Replies that an earlier version recorded are still found, and get the verdicts that they always got."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import steelyard
from support.toolchains import needs

ROOT = Path(__file__).parents[2]


def correct_attempts(place: Path, language: str, *more: str) -> dict[str, str]:
    """By model, how many of its old replies are correct, of how many."""
    eval_set = ROOT / "examples" / f"{language}-basics.toml"
    recording = ROOT / "tests" / "data" / "recordings" / f"{language}-basics.jsonl.gz"
    ran = steelyard(place, "run", str(eval_set), "-m", f"replay:{recording}", "--format", "json", *more)
    assert ran.returncode == 0, ran.stderr
    models = json.loads(ran.stdout)["summary"]["models"]
    return {model["model"]: f"{model['correct']}/{model['attempts']}" for model in models}


def test_old_replies_to_a_python_case_keep_their_verdicts(tmp_path: Path) -> None:
    found = correct_attempts(tmp_path, "python", "--case", "count-even")
    assert found == {"qwen/qwen2.5-coder-0.5b": "10/10", "smollm/smollm2-135m": "1/10"}


@pytest.mark.slow
@needs("rustc")
def test_old_replies_to_rust_cases_keep_their_verdicts(tmp_path: Path) -> None:
    found = correct_attempts(tmp_path, "rust")
    assert found == {"qwen/qwen2.5-coder-0.5b": "8/160", "smollm/smollm2-135m": "0/160"}
