"""A pass counts only where its tests ran as far apart from the answer as the user asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from steelyard.analysis.summary import summarise
from steelyard.cli.main import main
from steelyard.errors import ExitCode
from steelyard.records import Case, Fact, Finding, RunInfo, Trust, Verdict, Verify
from steelyard.records import Test as CaseTest
from support.suite_facts import attempt

if TYPE_CHECKING:
    from pathlib import Path

CASE = Case(id="one", prompt="Write one().", language="python", verify=Verify(tests="assert one() == 1"))
INFO = RunInfo(id="r", started_at="2026-01-01T00:00:00Z", names=("m",), models=("m",), samples=3)


def judged(number: int, trust: Trust, *, passed: bool = True) -> list[Fact]:
    reply, verdict = attempt(CASE, "pass", number)
    assert isinstance(verdict, Verdict)
    tests = (CaseTest(name="t", outcome="passed" if passed else "failed"),)
    return [reply, replace(verdict, found=Finding(compiled=True, tests=tests, trust=trust))]


def test_only_passes_that_are_trusted_enough_count() -> None:
    facts = [*judged(1, "isolated"), *judged(2, "in-process"), *judged(3, "in-process", passed=False)]
    (all_passes,) = summarise(INFO, [CASE], facts).models
    assert (all_passes.correct, all_passes.attempts) == (2, 3)
    assert {way.trust: (way.attempts, way.correct) for way in all_passes.verified} == {
        "isolated": (1, 1),
        "in-process": (2, 1),
    }
    (isolated,) = summarise(replace(INFO, require_trust="isolated"), [CASE], facts).models
    assert (isolated.correct, isolated.attempts) == (1, 3)
    # the first has all its score, the second none, and the third half: it compiles and its test fails
    assert isolated.score.value == pytest.approx(0.5)
    (any_trust,) = summarise(replace(INFO, require_trust="in-process"), [CASE], facts).models
    assert any_trust.correct == 2


def test_a_run_keeps_which_passes_count_and_show_can_ask_for_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "set.jsonl").write_text(
        '{"id": "one", "prompt": "Write one().", "language": "python", "verify": {"style": "unittest", "tests":'
        ' "import types, unittest\\nfrom answer import one\\nclass T(unittest.TestCase):\\n'
        '    def test_one(self):\\n        self.assertIs(type(one), types.FunctionType)\\n"}}\n'
    )
    answer = "```python\\ndef one():\\n    return 1\\n```"
    (tmp_path / "replies.jsonl").write_text(f'{{"task_id": "one", "model": "m", "completion": "{answer}"}}\n')
    asked = ["run", str(tmp_path / "set.jsonl"), "--models", f"replay:{tmp_path / 'replies.jsonl'}"]
    assert main([*asked, "--output", str(tmp_path / "run")]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "correct       1/1" in shown
    assert "1 in-process, " in shown
    assert "(1 correct)" in shown
    assert main(["show", str(tmp_path / "run"), "--require-trust", "isolated"]) == ExitCode.OK
    assert "correct       0/1" in capsys.readouterr().out
    assert main([*asked, "--output", str(tmp_path / "strict"), "--require-trust", "isolated"]) == ExitCode.OK
    assert "correct       0/1" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "strict")]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "correct       0/1" in shown
    assert "only isolated passes count" in shown
