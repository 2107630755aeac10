"""The lines that human-eval's evaluator writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.records import Case, Finding, Verdict, Verify
from steelyard.reports.exports.attempt_rows import human_eval_report

if TYPE_CHECKING:
    from steelyard.analysis.summary import RunResults

STUB = "def f(x):\n"
CASE = Case(id="HumanEval/0", prompt="Complete f.", language="python", verify=Verify(stub=STUB, entry_point="f"))


def lines(results: RunResults) -> list[dict[str, Any]]:
    return [json.loads(line) for line in human_eval_report(results).splitlines()]


def line(
    results: RunResults, found: Finding | None, *, correct: bool | None = False, case: Case = CASE
) -> dict[str, Any]:
    """What is said of one attempt with this finding."""
    tried = next(tried for tried in results.attempts if tried.verdict is not None)
    assert tried.verdict is not None
    verdict: Verdict | None = msgspec.structs.replace(tried.verdict, found=found) if found else None
    one = tried._replace(case=case, verdict=verdict, correct=correct)
    (said,) = lines(results._replace(attempts=(one,)))
    return said


def test_a_sample_that_passed_keeps_its_completion(results: RunResults) -> None:
    said = line(results, Finding(code=f"{STUB}    return x\n"), correct=True)
    assert list(said.items()) == [
        ("task_id", "HumanEval/0"),
        ("completion", "    return x\n"),
        ("result", "passed"),
        ("passed", True),
    ]


def test_failures_are_told_in_human_evals_words(results: RunResults) -> None:
    wrong = Finding(code=STUB, label="exception", reason="NameError: name 'y' is not defined")
    assert line(results, wrong)["result"] == "failed: exception: NameError: name 'y' is not defined"
    for limit in ("cpu limit", "time limit"):
        said = line(results, Finding(code=STUB, label=limit, reason="stopped"))
        assert (said["result"], said["passed"]) == ("timed out", False)


def test_a_program_that_does_not_continue_the_stub_is_a_solution(results: RunResults) -> None:
    said = line(results, Finding(code="def f(y):\n    return y\n"), correct=True)
    assert said["solution"] == "def f(y):\n    return y\n"
    assert "completion" not in said


def test_a_reply_without_code_is_an_empty_completion(results: RunResults) -> None:
    said = line(results, Finding(label="no code", reason="no code in the reply"))
    assert (said["completion"], said["passed"]) == ("", False)


def test_an_outage_is_neither_passed_nor_failed(results: RunResults) -> None:
    said = line(results, None, correct=None)
    assert said["passed"] is None
    assert said["result"].startswith("missing: ")


def test_every_attempt_is_a_line_and_several_models_are_told_apart(results: RunResults) -> None:
    said = lines(results)
    assert len(said) == len(results.attempts)
    assert {sample["model"] for sample in said} == {tried.model for tried in results.attempts}


def test_what_a_model_wrote_commands_no_terminal(results: RunResults) -> None:
    text = human_eval_report(results)
    assert text.isascii()
    assert all(character.isprintable() or character == "\n" for character in text)
