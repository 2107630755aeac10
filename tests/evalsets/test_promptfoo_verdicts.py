"""The verdicts of promptfoo on a config, and ours on the same replies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine.options import RunOptions
from steelyard.engine.preflight.named_code import case_code, own_code
from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.checks.verifier import ScriptedChecksVerifier

FOLDER = Path(__file__).parents[1] / "data" / "promptfoo"
NOT_CARRIED = "levenshtein"


def test_every_verdict_and_score_is_that_of_promptfoo() -> None:
    recorded = json.loads((FOLDER / "verdicts.json").read_text("utf-8"))["verdicts"]
    cases = load([FOLDER / "promptfooconfig.yaml"]).cases

    async def judged() -> list[tuple[Case, dict[str, Any], Finding]]:
        sandbox = ZygoteSandbox(strongest_isolation("", allow_weak=False))
        verifier = ScriptedChecksVerifier(sandbox)
        found = []
        try:
            for case, row in zip(cases, recorded, strict=True):
                assert case.prompt == row["prompt"]
                found.append((case, row, await verifier.verify(case, Answer(text=row["reply"], latency=0.1))))
            return found
        finally:
            await sandbox.close()

    for case, row, finding in asyncio.run(judged()):
        assert finding.passed is row["passed"], (case.id, row, finding)
        if NOT_CARRIED not in row["assertions"]:
            assert finding.score == pytest.approx(row["score"]), (case.id, row, finding)
            assert [test.outcome == "passed" for test in finding.tests] == row["passes"], (case.id, row, finding)


def test_code_of_a_config_is_refused_until_the_user_agrees(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = FOLDER / "promptfooconfig.yaml"
    code = case_code(load([path]).cases, RunOptions())
    with pytest.raises(InputError, match=r"runs code of checks that you have not agreed to.*steelyard allow"):
        own_code(code, RunOptions(), path).__enter__()
    with own_code(code, RunOptions(allow_code=True), path):
        pass
