"""Verdicts that can be trusted on a busy machine: doubts are looked into, and an outage is never a wrong answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import Means, run
from steelyard.engine.steps import is_verified_again_alone
from steelyard.engine.verifier_processes.reply_order import RepliesByCase
from steelyard.errors import InputError
from steelyard.records import Answer, Case, Expectations, Failure, Reply, Verdict, Verify
from steelyard.sandbox.fair_clock import has_fair_clock
from steelyard.store.journal import StoredRun

CHECKS = """
from pathlib import Path

calls = Path(__file__).with_name("calls")

def count():
    so_far = len(calls.read_text()) if calls.exists() else 0
    calls.write_text("x" * (so_far + 1))
    return so_far

def wavers(reply):
    return count() % 2 == 0

def recovers(reply):
    if count() == 0:
        raise OSError("the sandbox was killed")
    return True

def never(reply):
    count()
    raise OSError("the sandbox was killed")
"""


def judged(tmp_path: Path, function: str, recheck: int = 0) -> list[Verdict | Failure]:
    (tmp_path / "checks.py").write_text(CHECKS)
    case = Case(id="a", prompt="?", verify=Verify(python=f"{tmp_path}/checks.py:{function}"))
    recorded(tmp_path, case.id, "an answer")
    done = run([case], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run", means=Means(recheck=recheck))
    return [fact for fact in StoredRun(done.folder).facts() if isinstance(fact, Verdict | Failure)]


def recorded(tmp_path: Path, case: str, *texts: str) -> None:
    lines = [json.dumps({"case_id": case, "raw_response": text}) for text in texts]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines) + "\n")


def test_a_verdict_that_wavers_is_told_when_it_is_rechecked(tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, "wavers", recheck=3)
    assert isinstance(verdict, Verdict)
    assert verdict.found.passed
    assert (verdict.found.rechecked, verdict.found.disagreed) == (3, 2)


def test_nothing_is_rechecked_unasked(tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, "wavers")
    assert isinstance(verdict, Verdict)
    assert (verdict.found.rechecked, len((tmp_path / "calls").read_text())) == (0, 1)


def test_an_outage_of_ours_is_tried_once_more_before_it_is_a_failure(tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, "recovers")
    assert isinstance(verdict, Verdict)
    assert verdict.found.passed


def test_an_outage_that_stays_is_a_failure_and_no_wrong_answer(tmp_path: Path) -> None:
    (failure,) = judged(tmp_path, "never")
    assert isinstance(failure, Failure)
    assert "the sandbox was killed" in failure.message
    assert len((tmp_path / "calls").read_text()) == 2


def test_an_answer_that_sleeps_is_ended_once(tmp_path: Path) -> None:
    case = Case(
        id="nap",
        prompt="?",
        language="python",
        timeout_secs=0.1,
        expectations=Expectations(test_file="assert nap() == 1"),
    )
    sleepy = "```python\nimport time\ndef nap():\n    time.sleep(60)\n    return 1\n```"
    quick = "```python\ndef nap():\n    return 1\n```"
    recorded(tmp_path, case.id, sleepy, quick)
    done = run([case], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run")
    verdicts = [fact for fact in StoredRun(done.folder).facts() if isinstance(fact, Verdict)]
    assert [(verdict.number, verdict.found.label) for verdict in verdicts] == [(2, ""), (1, "time limit")]
    assert is_verified_again_alone(verdicts[1].found) != has_fair_clock()


def test_a_level_that_is_not_to_be_had_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    case = Case(id="a", prompt="?", language="python", expectations=Expectations(test_file="assert f()"))
    recorded(tmp_path, "a", "x")
    asked: dict[str, Any] = {"models": f"replay:{tmp_path}/samples.jsonl", "output": tmp_path / "run"}
    with pytest.raises(InputError, match=r'unknown level "fulll" .*did you mean "full"'):
        run([case], means=Means(require_isolation="fulll"), **asked)
    assert not (tmp_path / "run").exists()


def test_what_is_wrong_with_many_cases_is_said_once_and_everything_at_once(tmp_path: Path) -> None:
    def case(name: str, language: str = "python", style: str = "") -> Case:
        tests = Expectations(test_file="assert f()")
        return Case(id=name, prompt="?", language=language, expectations=tests, verify=Verify(style=style))

    cases = [case("a", style="chek"), case("b", style="chek"), case("c", language="cobol"), case("d")]
    with pytest.raises(InputError) as refused:
        run(cases, models="replay:nowhere")
    first, second = map(str, refused.value.problems)
    assert first.startswith('2 cases ("a", "b"): unknown style "chek"')
    assert second.startswith('case "c": unknown verifier "cobol" (known: ')


def test_an_environment_that_is_none_is_refused_in_one_sentence(tmp_path: Path) -> None:
    cases = [
        Case(id=name, prompt="?", language="python", expectations=Expectations(test_file="assert f()")) for name in "ab"
    ]
    recorded(tmp_path, "a", "x")
    with pytest.raises(
        InputError, match=r"^--python-env .*env: not a virtual environment; create one with: "
    ) as refused:
        run(cases, models=f"replay:{tmp_path}/samples.jsonl", means=Means(python_env=str(tmp_path / "env")))
    assert len(refused.value.problems) == 1


def test_what_runs_no_code_needs_no_sandbox(tmp_path: Path) -> None:
    recorded(tmp_path, "a", "It is Paris.")
    case = Case(id="a", prompt="?", target="Paris")
    means = Means(require_isolation="seatbelt")
    done = run([case], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run", means=means)
    assert done.summary.models[0].solved == 1


def test_replies_to_one_case_are_verified_together() -> None:
    def reply(case: Case, number: int) -> tuple[Reply, Case]:
        answer = Answer(text="")
        return Reply(key="", at="", case=case.id, model="m", number=number, answer=answer, asked=""), case

    waiting = RepliesByCase()
    cases = [Case(id=name, prompt="?") for name in "ab"]
    for number in (1, 2):
        for case in cases:
            waiting.append(reply(case, number))
    taken = [waiting.popleft() for _ in range(len(waiting))]
    assert [(case.id, reply.number) for reply, case in taken] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert len(waiting) == 0
