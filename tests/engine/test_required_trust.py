"""A pass counts only where its tests ran as far apart from the answer as the user asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from steelyard import run
from steelyard.analysis.attempts import AttemptTableBuilder
from steelyard.analysis.summary import summarise
from steelyard.cli.main import main
from steelyard.engine.results.attempt_tables import SpilledTableBuilder
from steelyard.errors import ExitCode
from steelyard.records import Case, Fact, Finding, RunInfo, Trust, Verdict, Verify
from steelyard.records import Test as CaseTest
from steelyard.store.journal import StoredRun
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


def counted(*facts: list[Fact], reference: str = "", required: str = "isolated") -> tuple[int, int, int]:
    """Correct, judged and missing attempts."""
    info = replace(INFO, samples=len(facts), require_trust=required)
    info = replace(info, reference_trust={"one": reference} if reference else {})
    (model,) = summarise(info, [CASE], [fact for each in facts for fact in each]).models
    return model.correct, model.attempts, model.missing


def test_a_pass_that_is_not_trusted_enough_is_missing_and_not_wrong() -> None:
    facts = judged(1, "isolated"), judged(2, "in-process"), judged(3, "isolated", passed=False)
    assert counted(*facts) == (1, 2, 1)
    assert counted(*facts, required="in-process") == (2, 3, 0)
    assert counted(*facts, required="") == (2, 3, 0)
    beside = judged(2, "in-process"), judged(3, "in-process", passed=False)
    assert counted(judged(1, "recorded"), *beside, required="in-process") == (1, 2, 1)


def test_at_a_case_that_cannot_be_judged_apart_no_attempt_counts_whether_right_or_wrong() -> None:
    half = judged(1, "in-process"), judged(2, "in-process", passed=False)
    assert counted(*half) == (0, 0, 2)
    assert counted(judged(1, "in-process", passed=False)) == (0, 0, 1)
    # that one right answer came out isolated says nothing of the wrong ones
    assert counted(*half, judged(3, "isolated")) == (0, 0, 3)


def test_the_reference_tells_whether_a_case_can_be_judged_apart() -> None:
    half = judged(1, "in-process"), judged(2, "in-process", passed=False), judged(3, "isolated")
    assert counted(*half, reference="isolated") == (1, 2, 1)
    assert counted(*half, reference="in-process") == (0, 0, 3)
    assert counted(judged(1, "in-process", passed=False), reference="isolated") == (0, 1, 0)


def test_what_was_left_out_on_purpose_does_not_make_a_run_inconclusive() -> None:
    other = replace(CASE, id="two")
    of_other = [replace(fact, case="two") for fact in judged(1, "in-process")]
    info = replace(INFO, samples=1, require_trust="isolated")
    summary = summarise(info, [CASE, other], [*judged(1, "isolated"), *of_other])
    (model,) = summary.models
    assert (model.correct, model.attempts, model.missing) == (1, 1, 1)
    assert summary.conclusive
    assert any("left out: no answer to its case can be judged isolated" in warning for warning in summary.warnings)


def test_large_runs_leave_out_the_same(tmp_path: Path) -> None:
    facts = [*judged(1, "in-process"), *judged(2, "in-process", passed=False), *judged(3, "isolated", passed=False)]
    info = replace(INFO, require_trust="isolated")
    builders = AttemptTableBuilder(info, [CASE]), SpilledTableBuilder(info, [CASE], tmp_path)
    for place, fact in enumerate(facts):
        for builder in builders:
            builder.add(place, fact)
    small, large = (builder.table() for builder in builders)
    assert list(small.rows) == list(large.rows)
    assert [row.outcome for row in small.rows] == ["missing", "wrong", "wrong"]


def test_a_growing_run_takes_back_what_a_later_verdict_leaves_out() -> None:
    builder = AttemptTableBuilder(replace(INFO, require_trust="isolated"), [CASE])
    outcomes = []
    for number, trust in enumerate(("isolated", "in-process"), 1):
        for place, fact in enumerate(judged(number, "isolated" if trust == "isolated" else "in-process")):
            builder.add(2 * number + place, fact)
        outcomes.append([row.outcome for row in builder.table().rows])
    assert outcomes == [["correct"], ["missing", "missing"]]


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
    assert "correct       1/1" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "run")]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "1 in-process, " in shown
    assert "(1 correct)" in shown
    assert main(["show", str(tmp_path / "run"), "--require-trust", "isolated"]) == ExitCode.OK
    assert "correct       0/0" in capsys.readouterr().out
    assert main([*asked, "--output", str(tmp_path / "strict"), "--require-trust", "isolated"]) == ExitCode.CANNOT_TELL
    assert "correct       0/0" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "strict")]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "correct       0/0" in shown
    assert "left out: no answer to its case can be judged isolated" in " ".join(shown.split())
    assert main(["show", str(tmp_path / "strict"), "one", "1"]) == ExitCode.OK
    assert "left out: no answer to its case can be judged isolated" in " ".join(capsys.readouterr().out.split())


def test_a_run_keeps_how_far_the_verdict_on_a_reference_can_be_trusted(tmp_path: Path) -> None:
    files = {"tests.sh": 'set -e\n[[ $(one) = "1" ]]\n[[ $(one) = "1" ]]\n'}
    verify = Verify(
        kind="command", answer="answer.sh", files=files, test="cat answer.sh tests.sh > all.sh && bash all.sh"
    )
    case = Case(id="one", prompt="?", language="sh", reference="one() { echo 1; }", verify=verify)
    (tmp_path / "samples.jsonl").write_text(
        '{"case_id": "one", "raw_response": "```sh\\none() { echo $((2 - 1)); }\\n```"}'
    )
    done = run([case], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run")
    assert StoredRun(done.folder).info.reference_trust == {"one": "in-process"}
