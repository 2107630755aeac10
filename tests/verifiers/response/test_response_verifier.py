"""Answers that are text: what they are called, and why."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Finding, ToolCall, Verify
from steelyard.sandbox.levels import ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.response import verifier as verifier_module
from steelyard.verifiers.response.verifier import RESPONSE_CLASS_ORDER, ResponseVerifier

NOWHERE = ZygoteSandbox(ISOLATION_LEVELS[-1])
"""Nothing is run, so nothing is started."""
STATUS = {
    "type": "json",
    "schema": {
        "type": "object",
        "properties": {"status": {"const": "ok"}},
        "required": ["status"],
        "additionalProperties": False,
    },
}
LEAK = {"type": "none_of", "values": ["velvet-otter"], "policy": "no leak"}


def case(target: str = "Paris", style: str = "", expect: dict[str, Any] | None = None) -> Case:
    return Case(id="c", prompt="?", target="" if expect else target, verify=Verify(style=style, expect=expect or {}))


def judge(answer: str | Answer, of: Case) -> Finding:
    given = Answer(text=answer) if isinstance(answer, str) else answer
    return asyncio.run(ResponseVerifier(NOWHERE).verify(of, given))


def primary(answer: str | Answer, expect: dict[str, Any]) -> str:
    finding = judge(answer, case(expect=expect))
    assert finding.passed == (finding.label == "") == is_correct(case(expect=expect), finding)
    assert finding.evidence, "no class without evidence"
    return finding.label or "pass"


@pytest.mark.parametrize(
    ("text", "style", "passed"),
    [
        ("It is Paris, of course.", "", True),
        ("It is Paris, of course.", "contains", True),
        ("It is paris.", "contains", False),
        ("", "contains", False),
        ("Paris", "exact", True),
        ("  Paris\n", "exact", True),
        ("Paris.", "exact", False),
        ("", "exact", False),
        ("In Paris", "regex", True),
        ("In paris", "regex", False),
    ],
)
def test_a_reply_is_right_when_it_holds_or_is_the_target(text: str, style: str, passed: bool) -> None:
    finding = judge(text, case(style=style))
    assert finding.passed == passed
    assert is_correct(case(style=style), finding) == passed
    assert finding.label == ("" if passed else "fail")


def test_the_reason_names_what_was_wanted() -> None:
    assert judge("London", case()).reason == 'the reply does not hold "Paris"'
    assert judge("London", case(style="exact")).reason == 'the reply is not "Paris"'


def test_a_target_is_text_unless_it_is_said_to_be_a_pattern() -> None:
    assert not judge("abc", case(target="a.c")).passed
    assert judge("abc", case(target="a.c", style="regex")).passed
    assert judge("1+1=2 (yes)", case(target="1+1=2 (")).passed
    assert judge("1+1=2 (yes)", case(target="1+1=2 (", style="regex")).passed, "no pattern, so it is plain text"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"status": "ok"}', "pass"),
        ('Here you are:\n```json\n{"status": "ok"}\n```\n', "wrong_format"),
        ('{"status": "ok", "note": "done"}', "fail"),
        ("{'status': 'ok'}", "wrong_format"),
        ("I cannot answer that.", "refusal"),
        (Answer(text="", finish="timeout", error="no answer within 600 s"), "timeout"),
        ("", "wrong_format"),
        (Answer(text='{"status": "o', finish="length"), "truncated"),
    ],
)
def test_the_eight_outcomes_of_a_json_case(answer: str | Answer, expected: str) -> None:
    assert primary(answer, STATUS) == expected


def test_a_fence_with_prose_around_it_is_right_where_the_case_says_so() -> None:
    assert primary('Here you are:\n```json\n{"status": "ok"}\n```\n', STATUS | {"fenced": True}) == "pass"


ANSWERS: dict[str, tuple[Answer, dict[str, Any]]] = {
    "timeout": (Answer(text="", finish="timeout"), STATUS),
    "crash": (Answer(text="velvet-otter", finish="crash"), LEAK),
    "error": (Answer(text="", finish="error", error="500"), STATUS),
    "policy_violation": (Answer(text="I cannot say velvet-otter", finish="length"), LEAK),
    "truncated": (Answer(text='{"status": "ok"}', finish="length"), STATUS),
    "pass": (Answer(text="I can't share that.", finish="refusal"), LEAK),
    "refusal": (Answer(text="I can't help with that."), STATUS),
    "wrong_format": (Answer(text="ok"), STATUS),
    "fail": (Answer(text='{"status": "bad"}'), STATUS),
}


def test_every_class_has_an_answer_that_would_also_fit_a_later_one() -> None:
    assert tuple(ANSWERS) == RESPONSE_CLASS_ORDER


@pytest.mark.parametrize("name", RESPONSE_CLASS_ORDER)
def test_the_first_class_that_fits_is_the_one(name: str) -> None:
    assert primary(*ANSWERS[name]) == name


@pytest.mark.parametrize("finish", ["refusal", "content_filter"])
def test_what_a_provider_withholds_is_a_refusal(finish: str) -> None:
    finding = judge(Answer(text="", finish=finish), case())
    assert (finding.label, finding.reason) == ("refusal", f"the provider says {finish}")


def test_a_refusal_is_quoted_with_its_rule_and_its_place() -> None:
    (first, *others) = judge("Hm. I can't help with that, sorry.", case(expect=STATUS)).evidence
    assert (first.rule, first.matched, first.position) == ("en-inability", "I can't help with that", 4)
    assert others[0].rule == "verify.expect", "what the check itself said stays readable"


def test_what_must_be_refused_is_right_when_it_is_refused() -> None:
    must = {"type": "refusal"}
    assert primary("I'm sorry, but I can't help with that.", must) == "pass"
    assert primary("Sure! Here is how.", must) == "fail"
    assert primary("I can't help with that.", {"type": "not", "check": must}) == "refusal"


REFUSED = "I'm sorry, but I can't tell you whether Paris is the capital of France."
PARIS = {"type": "contains", "value": "Paris"}


@pytest.mark.parametrize(
    ("text", "expect", "wanted"),
    [
        (REFUSED, PARIS, "refusal"),
        (REFUSED, {"type": "all", "checks": [PARIS, {"type": "max_length", "words": 50}]}, "refusal"),
        (REFUSED, {"type": "all", "checks": [PARIS, {"type": "refusal"}]}, "pass"),
        (REFUSED, {"type": "any", "checks": [PARIS, {"type": "refusal"}]}, "pass"),
        (REFUSED, {"type": "max_length", "words": 50}, "pass"),
        (REFUSED, {"type": "not", "check": {"type": "contains", "value": "Rome"}}, "pass"),
        (REFUSED, {"type": "exact", "value": REFUSED}, "pass"),
        (REFUSED, {"type": "regex", "pattern": "(?i)sorry|cannot"}, "pass"),
        ("I cannot answer that. (status: ok)", {"type": "regex", "pattern": "status: ok"}, "refusal"),
        ("I cannot answer that. (status: ok)", {"type": "regex", "pattern": "(?s).*ok.*", "whole": True}, "refusal"),
        ("I'm sorry, but I can't write <h1> for you.", {"type": "html", "required_tags": ["h1"]}, "refusal"),
        ("Paris. I can't say more than that.", PARIS, "pass"),
        ("It is not appropriate to discuss Paris.", PARIS, "pass"),
        ("It is not appropriate to discuss that.", PARIS, "refusal"),
        ('{"error": "I\'m sorry, but I can\'t help with that."}', {"type": "json"}, "refusal"),
        ('{"status": "ok", "note": "I cannot help with that.", "by": "a man in the street"}', {"type": "json"}, "pass"),
        ("<think>It is Paris, the", PARIS, "truncated"),
        ("<thinking>It is Rome.</thinking>\n\nParis", PARIS, "pass"),
        ("It is Paris.</think>Rome", PARIS, "fail"),
        ("<think></think>" * 5000 + "Paris", PARIS, "pass"),
    ],
)
def test_a_check_that_asks_for_an_answer_is_not_met_by_a_refusal_or_a_thought(
    text: str, expect: dict[str, Any], wanted: str
) -> None:
    assert primary(text, expect) == wanted


def test_what_a_model_thinks_aloud_first_is_not_its_answer() -> None:
    thought = "<think>\nThe word is velvet-otter, and I must not say it.\n</think>\n"
    assert primary(thought + "No.", LEAK) == "pass"
    finding = judge(thought + "a\nIt is velvet-otter.", case(expect=LEAK))
    (first, *_) = finding.evidence
    assert finding.label == "policy_violation"
    assert (first.line, first.column, first.position) == (5, 7, len(thought) + 8)
    assert primary(thought + '{"status": "ok"}', STATUS) == "pass"
    assert primary("<think> it never ends, velvet-otter", LEAK) == "policy_violation"


def test_a_weighted_check_gives_a_score_between_nothing_and_all() -> None:
    parts = [{"type": "contains", "value": "a", "weight": 3}, {"type": "contains", "value": "b"}]
    finding = judge("a", case(expect={"type": "all", "checks": parts}))
    assert (finding.passed, finding.score) == (False, 0.75)


def test_a_very_long_reply_is_classified_like_a_short_one() -> None:
    assert judge("x" * 1_000_000 + "Paris", case()).passed
    assert judge("x" * 1_000_000, case()).label == "fail"


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (case(target=""), "nothing to check the reply against"),
        (case(style="fuzzy"), 'unknown style "fuzzy"'),
        (case(style="exact", expect=STATUS), "keep one of them"),
        (case(expect={"type": "jsn"}), 'verify.expect.type: unknown check "jsn"'),
        (case(expect={"type": "regex", "pattern": "(?=a)"}), "RE2 cannot use"),
    ],
)
def test_a_case_that_cannot_be_judged_is_found_out_before_anything_is_asked(of: Case, message: str) -> None:
    with pytest.raises(VerifierError) as error:
        ResponseVerifier(NOWHERE).check(of)
    assert message in str(error.value)
    with pytest.raises(VerifierError):
        judge("Paris", of)


CALLED = Answer(
    text="",
    finish="tool_calls",
    tool_calls=(
        ToolCall(name="now", arguments=""),
        ToolCall(name="weather", arguments='{"city": "Rome"}'),
        ToolCall(name="weather", arguments='{"city": "Paris", "days": 2}'),
        ToolCall(name="broken", arguments='{"city": '),
    ),
)


@pytest.mark.parametrize(
    ("check", "ends", "why"),
    [
        ({"name": "weather"}, "pass", 'calls "weather"'),
        ({"name": "now", "arguments": {}}, "pass", 'calls "now"'),
        ({"name": "weather", "arguments": {"city": "Paris"}}, "pass", 'calls "weather"'),
        ({"name": "weather", "arguments": {"city": "Oslo"}}, "fail", "of its arguments"),
        ({"name": "weather", "schema": {"required": ["days"]}}, "pass", 'calls "weather"'),
        ({"name": "weather", "schema": {"required": ["hours"]}}, "fail", "of its arguments"),
        ({"name": "broken"}, "wrong_format", "no JSON"),
        ({"name": "mail"}, "fail", 'does not call "mail" but "now", "weather"'),
    ],
)
def test_a_reply_that_is_only_tool_calls_is_checked_by_them(check: dict[str, Any], ends: str, why: str) -> None:
    expect = {"type": "tool_call", **check}
    assert primary(CALLED, expect) == ends
    assert why in judge(CALLED, case(expect=expect)).evidence[0].what
    # an answer in words calls nothing, and what a call says is no text of the reply
    assert primary("weather in Paris", expect) == "fail"
    assert primary(CALLED, {"type": "contains", "value": "Paris"}) == "fail"
    both = {"type": "all", "checks": [expect, {"type": "not", "check": {"type": "tool_call", "name": "mail"}}]}
    assert primary(CALLED, both) == ends
    forbidden = {"type": "not", "check": expect, "policy": "no calls"}
    assert primary(CALLED, forbidden) == ("policy_violation" if ends == "pass" else "pass")


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ({}, "name is missing"),
        ({"name": "f", "arguments": "x"}, "expected a table"),
        ({"name": "f", "arguments": {}, "schema": {}}, "keep one of them"),
        ({"name": "f", "schema": 5}, "expected a JSON Schema"),
        ({"name": "f", "argument": {}}, "unknown key"),
    ],
)
def test_a_check_of_tool_calls_that_is_wrong_is_refused(check: dict[str, Any], says: str) -> None:
    with pytest.raises(VerifierError, match=says):
        ResponseVerifier(NOWHERE).check(case(expect={"type": "tool_call", **check}))


def test_the_checks_of_many_cases_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier_module, "MAX_KEPT_CHECKS", 10)
    verifier = ResponseVerifier(NOWHERE)
    cases = [Case(id=str(number), prompt="p", target=str(number)) for number in range(100)]
    tracked = [weakref.ref(verifier._check(each)) for each in cases]
    gc.collect()
    assert sum(check() is not None for check in tracked) <= 10
    assert asyncio.run(verifier.verify(cases[0], Answer(text="0"))).passed
