"""Cases written as lines, and read again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard.evalsets import load
from steelyard.evalsets.jsonl import case_json_lines
from steelyard.evalsets.suites import SHIPPED_SUITE_NAMES
from steelyard.records import Case, Dependency, Expectations, Message, Pair, Verify

ROOT = Path(__file__).parents[2]
EXAMPLES = ("*.toml", "own-check/*.toml", "*.jsonl", "human-eval/problems.jsonl")
EVERY = [
    *(f"suite:{name}" for name in SHIPPED_SUITE_NAMES),
    *(str(path) for kind in EXAMPLES for path in (ROOT / "examples").glob(kind)),
]


def again(folder: Path, cases: Sequence[Case]) -> Sequence[Case]:
    """The cases after they were written and read; nothing about them looks odd."""
    file = folder / "cases.jsonl"
    file.write_text("".join(case_json_lines(cases)), "utf-8")
    loaded = load([file])
    assert loaded.problems == ()
    return loaded.cases


def line(case: Case) -> dict[str, Any]:
    (text,) = case_json_lines([case])
    assert text.endswith("\n")
    assert text[:-1].isprintable()
    written: dict[str, Any] = json.loads(text)
    return written


@pytest.mark.parametrize("source", EVERY, ids=lambda source: source.rpartition("/")[2])
def test_every_suite_and_example_is_the_same_after_writing_and_reading(source: str, tmp_path: Path) -> None:
    cases = load([source]).cases
    read = again(tmp_path, cases)
    assert read == cases
    assert [case.tests_digest for case in read] == [case.tests_digest for case in cases]


RESPONSE = Case(follows_reference=True, id="a", prompt="p", suite="s", tags=("x", "y"), timeout_secs=60.0)


def test_a_case_of_the_dialect_is_written_in_its_words_and_nothing_else() -> None:
    common = {"case_id": "a", "suite_id": "s", "prompt": "p"}
    expect = {"type": "json", "schema": {"type": "object"}}
    matched = replace(
        RESPONSE, target="^h", verify=Verify(kind="response", style="regex"), expected_classification="fail"
    )
    said = {"expected_response": "^h", "expected_classification": "fail", "tags": ["x", "y"]}
    assert line(matched) == common | said
    held = replace(RESPONSE, tags=(), verify=Verify(expect=expect), reference="{}", counterexample="[]", max_tokens=9)
    assert line(held) == common | {"expect": expect, "reference": "{}", "counterexample": "[]", "max_tokens": 9}
    assert line(replace(RESPONSE, target="h", verify=Verify(kind="response")))["target"] == "h"


def test_a_conversation_is_written_as_messages() -> None:
    talk = (Message(role="system", content="s"), Message(role="user", content="u"))
    written = line(replace(RESPONSE, prompt=talk))
    assert written["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert "prompt" not in written


CODE = Case(id="a", prompt="p", language="python", timeout_secs=60.0)
ODD = {
    "tests of the expectations": replace(CODE, expectations=Expectations(test_file="assert f()", should_compile=False)),
    "tests with an entry point and no style": replace(CODE, verify=Verify(tests="def check(c): ...", entry_point="f")),
    "tests with a kind of their own": replace(CODE, verify=Verify(kind="python", style="io", pairs=(Pair(input="1"),))),
    "another language": replace(CODE, language="rust", dependencies=(Dependency(name="rand", version="1"),)),
    "code that is expected to fail": replace(CODE, expected_classification="fail", verify=Verify(tests="assert f()")),
    "code without tests, expected to pass": replace(CODE, language="rust", expected_classification="pass"),
    "an exact target": replace(RESPONSE, target="t", verify=Verify(kind="response", style="exact")),
    "a target beside a check": replace(
        RESPONSE, target="t", verify=Verify(kind="response", expect={"type": "refusal"})
    ),
    "a check with its kind": replace(RESPONSE, verify=Verify(kind="response", expect={"type": "refusal"})),
    "a check that is expected to fail": replace(
        RESPONSE, verify=Verify(expect={"type": "refusal"}), expected_classification="fail"
    ),
    "a prompt that looks like a template": replace(
        RESPONSE, prompt="{{name}} {% if %}", target="t", verify=Verify(kind="response")
    ),
    "a prompt that looks like a file": replace(RESPONSE, prompt="file:///etc/passwd"),
    "a prompt that looks like HumanEval": replace(
        CODE, prompt="def f():\n", verify=Verify(tests="f()", entry_point="f")
    ),
    "an empty prompt": replace(RESPONSE, prompt="", tags=()),
    "what nobody sees": replace(RESPONSE, prompt="a\u2028b\u202e\x1b[2J\x9b\U000e0041\U0001f600\xa0é", suite=""),
    "all the rest": replace(
        RESPONSE,
        name="n",
        description="d",
        weight=2.5,
        group="g",
        critical=True,
        timeout_secs=5.0,
        metadata={"k": [1, None]},
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_whatever_a_case_says_survives(what: str, tmp_path: Path) -> None:
    (read,) = again(tmp_path, (ODD[what],))
    assert read == ODD[what]
    assert read.tests_digest == ODD[what].tests_digest
    line(ODD[what])
