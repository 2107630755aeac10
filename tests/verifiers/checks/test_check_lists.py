"""A list of checks as the judge of an answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.scoring import SCORING_RULES, is_correct, score
from steelyard.errors import InputError, VerifierError
from steelyard.evalsets import load
from steelyard.evalsets.jsonl import case_json_lines
from steelyard.records import Answer, Case, Cost, Finding, ToolCall, Verify
from steelyard.sandbox.levels import ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.checks.verifier import ChecksVerifier, ScriptedChecksVerifier

NOWHERE = ZygoteSandbox(ISOLATION_LEVELS[-1])
"""Nothing is run, so nothing is started."""


def case(*checks: dict[str, Any], **settings: Any) -> Case:
    return Case(id="c", prompt="?", verify=Verify(kind="checks", settings={"checks": list(checks), **settings}))


def finding(given: Case, answer: Answer | str) -> Finding:
    judged = answer if isinstance(answer, Answer) else Answer(text=answer)
    return asyncio.run(ChecksVerifier(NOWHERE).verify(given, judged))


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        ({"contains": "Paris"}, "It is Paris.", "It is paris."),
        ({"contains": ["a", "b"]}, "b a", "a"),
        ({"contains": "paris", "ignore_case": True}, "PARIS", "Rome"),
        ({"contains_any": ["a", "b"]}, "b", "c"),
        ({"equals": "yes"}, "yes", "yes."),
        ({"equals": "yes", "strip": True, "ignore_case": True}, " Yes\n", "no"),
        ({"equals": ""}, "", "x"),
        ({"equals": {"a": [1, True]}}, '{"a": [1, true]}', '{"a": [1, 1]}'),
        ({"regex": "^[0-9]+$"}, "42", "x42"),
        ({"starts_with": "Dear"}, "Dear all", "My dear"),
        ({"json": True}, "[1]", "{a}"),
        ({"json_schema": {"type": "object", "required": ["a"]}}, '{"a": 1}', '{"b": 1}'),
        ({"contains_json": True}, 'Here: {"a": 1}.', "Here: {a}."),
        ({"contains_json": {"required": ["a"]}}, 'x [1] {"a": 1}', 'x {"b": 1}'),
        ({"type": "number", "value": 4}, "It is 4.", "It is 5."),
        ({"contains": "sorry", "not": True}, "Here.", "I am sorry."),
    ],
)
def test_a_check_of_the_text_says_yes_and_no(check: dict[str, Any], right: str, wrong: str) -> None:
    assert finding(case(check), right).passed is True
    assert finding(case(check), wrong).passed is False


def test_each_check_is_a_test_with_its_own_outcome_and_the_first_that_fails_is_the_reason() -> None:
    found = finding(case({"contains": "a"}, {"contains": "b"}, {"contains": "b"}), "a")
    assert [(test.name, test.outcome) for test in found.tests] == [
        ('contains "a"', "passed"),
        ('contains "b"', "failed"),
        ('contains "b" #2', "failed"),
    ]
    assert found.reason == 'contains "b": the reply does not hold "b" (and 1 more)'


def test_weights_make_the_score_and_a_weight_of_0_decides_nothing() -> None:
    checks = {"contains": "a", "weight": 3}, {"contains": "b"}, {"contains": "c", "weight": 0}
    found = finding(case(*checks), "a")
    assert found.score == pytest.approx(0.75)
    assert not is_correct(case(*checks), found)
    assert score(case(*checks), found, SCORING_RULES["code"]) == pytest.approx(0.75)
    met = finding(case(*checks), "a b")
    assert is_correct(case(*checks), met)
    assert [test.outcome for test in met.tests] == ["passed", "passed", "ignored"]


def test_with_a_threshold_the_score_decides() -> None:
    given = case({"contains": "a", "weight": 3}, {"contains": "b"}, threshold=0.75)
    assert is_correct(given, finding(given, "a"))
    assert not is_correct(given, finding(given, "b"))


def test_time_cost_and_tool_calls_are_what_the_answer_says() -> None:
    call = ToolCall(name="get_weather", arguments='{"city": "Rome", "unit": "C"}')
    answer = Answer(text="", latency=1.5, cost=Cost(usd=0.02, source="test"), tool_calls=(call,))
    outcomes: list[tuple[dict[str, Any], bool]] = [
        ({"latency_below": 2}, True),
        ({"latency_below": 1}, False),
        ({"cost_below": 0.02}, True),
        ({"cost_below": 0.01}, False),
        ({"tool_call": "get_weather", "arguments": {"city": "Rome"}}, True),
        ({"tool_call": "get_weather", "arguments": {"city": "Oslo"}}, False),
        ({"tool_call": "get_time"}, False),
        ({"tool_call": "get_time", "not": True}, True),
    ]
    for check, expected in outcomes:
        assert finding(case(check), answer).passed is expected, check


@pytest.mark.parametrize("check", [{"latency_below": 2}, {"cost_below": 1}])
def test_what_nobody_measured_is_missing_and_not_wrong(check: dict[str, Any]) -> None:
    with pytest.raises(VerifierError, match="below"):
        finding(case(check), "x")


def test_thinking_is_not_part_of_the_answer_and_a_cut_off_reply_is_not_right() -> None:
    given = case({"contains": "a", "not": True})
    assert finding(given, "<think>a</think>b").passed is True
    assert finding(given, Answer(text="b", finish="length")).label == "truncated"
    assert finding(given, Answer(text="", finish="timeout")).label == "timeout"


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ([], "expected 1 to 1000"),
        ([{"contians": "a"}], 'unknown check "contians".*did you mean "contains"'),
        ([{"contains": "a", "regex": "b"}], "are two checks"),
        ([{"contains": "a", "weigth": 1}], "unknown key"),
        ([{"contains": 4}], "expected text"),
        ([{"contains": "a", "weight": 0}], "one weight at least must be above 0"),
        ([{"regex": "(?=x)"}], "RE2 cannot use"),
        ([{"json": False}], "write json = true"),
        ([{"latency_below": "2"}], "expected a number"),
        ([{"tool_call": "f", "arguments": [1]}], "expected a table such as"),
        ([{"python_code": "True"}], "need verify.kind"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_before_anything_is_paid_for(checks: list[Any], message: str) -> None:
    with pytest.raises(VerifierError, match=message):
        ChecksVerifier(NOWHERE).check(case(*checks))


EVAL_SET = """
[eval_set]
id = "s"
name = "S"
default_language = ""

[[cases]]
id = "capital"
name = "Capital"
prompt = "Which city is the capital of {{country}}?"
vars = {country = "France"}
checks = [{contains = "Paris"}, {python = "own.py:brief"}, {javascript_code = "return output.includes(context.vars.country)"}]
"""
OWN = "def brief(output, context):\n    return {'score': 1 if len(output) < 20 else 0.5, 'reason': context['vars']['country']}\n"


@pytest.fixture
def eval_set(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "s.toml").write_text(EVAL_SET)
    return tmp_path / "s.toml"


def test_code_of_checks_travels_with_the_case_and_is_part_of_its_tests(eval_set: Path) -> None:
    (loaded,) = load([eval_set]).cases
    assert loaded.kind == "scripted-checks"
    assert loaded.verify.settings["checks"][1] == {"python": "own.py:brief", "code": OWN}
    (eval_set.parent / "own.py").write_text(OWN.replace("20", "30"))
    (changed,) = load([eval_set]).cases
    assert changed.tests_digest != loaded.tests_digest
    written = eval_set.parent / "again.jsonl"
    written.write_text("".join(case_json_lines([loaded])))
    (again,) = load([written]).cases
    assert again.tests_digest == loaded.tests_digest


def test_code_of_checks_judges_in_the_sandbox(eval_set: Path) -> None:
    (loaded,) = load([eval_set]).cases

    async def judged() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation("", allow_weak=False))
        verifier = ScriptedChecksVerifier(sandbox)
        try:
            replies = ("Paris, France", "Paris is the capital of Spain")
            return [await verifier.verify(loaded, Answer(text=text)) for text in replies]
        finally:
            await sandbox.close()

    right, wrong = asyncio.run(judged())
    assert right.passed
    assert [test.outcome for test in wrong.tests] == ["passed", "failed", "failed"]
    assert wrong.tests[1].message == "France"
    assert wrong.score == pytest.approx(0.5)


def test_a_list_in_a_file_is_refused_with_its_place(tmp_path: Path) -> None:
    lines = [
        {"id": "a", "prompt": "?", "checks": "x"},
        {"id": "b", "prompt": "?", "checks": [{"python": "gone.py:f"}]},
        {"id": "c", "prompt": "?", "checks": [{"contains": "x"}], "expect": {"type": "json"}},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError) as refused:
        load([tmp_path / "s.jsonl"])
    text = str(refused.value)
    assert 's.jsonl:1: case "a": checks: expected a list of tables' in text
    assert 's.jsonl:2: case "b": checks[0]: ' in text
    assert 's.jsonl:3: case "c": checks: the case also has verify.expect' in text
