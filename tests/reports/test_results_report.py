"""The results of a suite, line by line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from steelyard.records import Answer, Case, Evidence, Finding, Verify
from steelyard.reports.exports.attempt_rows import results_report
from support.facts import facts
from support.forked import forked

if TYPE_CHECKING:
    from steelyard.analysis.summary import RunResults

CASE = Case(id="c", prompt="p", suite="s", target="t", verify=Verify(kind="response"))
CODE = Case(id="c", prompt="p", language="python")


def lines(results: RunResults) -> list[dict[str, Any]]:
    text = results_report(results)
    assert text.isascii()
    return [json.loads(line) for line in text.splitlines()]


def line(
    results: RunResults, found: Finding, answer: Answer, *, correct: bool = False, case: Case = CASE
) -> dict[str, Any]:
    """What is said of one attempt with this answer and this finding."""
    tried = next(tried for tried in results.attempts if tried.verdict is not None)
    assert tried.verdict is not None
    assert tried.reply is not None
    one = tried._replace(
        case=case,
        reply=msgspec.structs.replace(tried.reply, answer=answer),
        verdict=msgspec.structs.replace(tried.verdict, found=found),
        correct=correct,
    )
    (said,) = lines(results._replace(attempts=(one,)))
    return said


def test_a_result_has_the_fields_of_the_format_and_only_the_evidence_that_is_set(results: RunResults) -> None:
    found = Finding(passed=True, evidence=(Evidence(rule="target", what="the reply holds t", matched="t", position=0),))
    assert line(results, found, Answer(text="t\u2028"), correct=True) == {
        "case_id": "c",
        "suite_id": "s",
        "run_id": results.info.id,
        "model_id": "openai/gpt-5",
        "timestamp_utc": "2026-02-03T04:05:06.123456789+00:00",
        "attempt": 1,
        "raw_response": "t\u2028",
        "error": None,
        "classification": {
            "primary": "pass",
            "details": {"evidence": [{"rule": "target", "what": "the reply holds t", "matched": "t", "position": 0}]},
        },
        "scores": {"accuracy": 1},
    }


@pytest.mark.parametrize("primary", ["timeout", "crash", "error"])
def test_what_came_instead_of_an_answer_has_no_reply(results: RunResults, primary: str) -> None:
    said = line(results, Finding(passed=False, label=primary), Answer(text="", finish=primary, error="why"))
    assert (said["raw_response"], said["error"], said["classification"]["primary"]) == (None, "why", primary)
    assert said["scores"] == {"accuracy": 0}
    assert "finish_reason" not in said


def test_an_empty_reply_is_a_reply(results: RunResults) -> None:
    assert line(results, Finding(passed=False, label="fail"), Answer(text=""))["raw_response"] == ""


@pytest.mark.parametrize(
    ("label", "primary"),
    [
        ("refusal", "refusal"),
        ("policy_violation", "policy_violation"),
        ("wrong_format", "wrong_format"),
        ("odd", "fail"),
    ],
)
def test_a_class_keeps_its_name_where_the_format_knows_it(results: RunResults, label: str, primary: str) -> None:
    said = line(results, Finding(passed=False, label=label), Answer(text="x"))
    assert said["classification"]["primary"] == primary


def test_a_reply_that_was_cut_off_is_a_fail_that_says_so(results: RunResults) -> None:
    said = line(results, Finding(passed=False, label="truncated"), Answer(text="x", finish="length"))
    assert (said["classification"]["primary"], said["finish_reason"]) == ("fail", "length")


@pytest.mark.parametrize(
    ("label", "primary"), [("time limit", "timeout"), ("cpu limit", "timeout"), ("crash", "fail"), ("no code", "fail")]
)
def test_code_passes_fails_or_runs_out_of_time(results: RunResults, label: str, primary: str) -> None:
    said = line(results, Finding(code="x", label=label, reason="because"), Answer(text="```x```"), case=CODE)
    assert said["classification"]["primary"] == primary
    assert said["classification"]["details"]["reason"].endswith("because")
    assert line(results, Finding(code="x"), Answer(text="x"), correct=True, case=CODE)["classification"] == {
        "primary": "pass",
        "details": {},
    }


def test_every_judged_attempt_is_a_line_and_one_of_ours_that_broke_is_none(results: RunResults) -> None:
    judged = [tried for tried in results.attempts if tried.verdict is not None]
    assert len(judged) < len(results.attempts)
    assert [(one["case_id"], one["model_id"], one["attempt"]) for one in lines(results)] == [
        (tried.case.id, tried.model, tried.number) for tried in judged
    ]


def test_tiers_of_one_model_are_told_apart(results: RunResults) -> None:
    one = results.attempts[0]._replace(tier="T1")
    assert lines(results._replace(attempts=(one,)))[0]["model_id"] == "openai/gpt-5 (T1)"


CASES = [
    {
        "case_id": name,
        "suite_id": "s",
        "prompt": name,
        "expect": {"type": "json", "schema": {"type": "object", "required": ["ok"]}},
    }
    for name in ("right", "wrong", "broken", "refused", "empty", "cut", "withheld", "hangs")
] + [
    {
        "case_id": "said",
        "suite_id": "t",
        "prompt": "said",
        "expected_response": "^hi",
        "expected_classification": "fail",
    }
]
MODEL = """
import time
SAID = {
    "right": '{"ok": 1}', "wrong": '{}', "broken": '{"ok": ', "refused": "I'm sorry, but I can't help with that.",
    "empty": "", "cut": {"text": '{"ok": 1}', "finish": "length"}, "withheld": {"text": "", "finish": "refusal"},
    "said": "hi \\u2028\\x1b[2J",
}
def ask(prompt, attempt):
    if prompt == "hangs":
        time.sleep(1000)
    return SAID[prompt]
"""


def steelyard(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "CI"))}
    ran = forked("steelyard", arguments, place, clean)
    assert ran.returncode == 0, ran.stderr
    return ran


def labels(folder: Path) -> dict[tuple[str, int], str]:
    return {(verdict.case, verdict.number): verdict.found.label for verdict in facts(folder).verdicts}


def test_results_that_are_replayed_come_out_the_same(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "steelyard.toml").write_text("deadline_secs = 2\nmax_retries = 0\n")
    run = ("run", "cases.jsonl", "--output")
    steelyard(tmp_path, *run, "first", "-m", "python:model.py:ask", "-n", "2", "-o", "results.jsonl")
    steelyard(tmp_path, *run, "again", "-m", "replay:results.jsonl", "-o", "again.jsonl")
    first = labels(tmp_path / "first")
    assert {case: label for (case, _), label in first.items()} == {
        "right": "",
        "wrong": "fail",
        "broken": "wrong_format",
        "refused": "refusal",
        "empty": "wrong_format",
        "cut": "truncated",
        "withheld": "refusal",
        "hangs": "timeout",
        "said": "",
    }
    assert labels(tmp_path / "again") == first
    one, other = ((tmp_path / name).read_text().splitlines() for name in ("results.jsonl", "again.jsonl"))
    assert len(one) == 2 * len(CASES)

    def told(text: str) -> dict[str, Any]:
        line: dict[str, Any] = json.loads(text)
        return {key: value for key, value in line.items() if key not in ("run_id", "timestamp_utc")}

    assert list(map(told, one)) == list(map(told, other))


def test_code_that_is_replayed_from_results_comes_out_the_same(tmp_path: Path) -> None:
    place = Path(__file__).parents[2] / "examples" / "human-eval"
    run = ("run", str(place / "problems.jsonl"), "--output")
    steelyard(tmp_path, *run, "first", "-m", f"replay:{place}/samples.jsonl", "-o", "results.jsonl")
    steelyard(tmp_path, *run, "again", "-m", "replay:results.jsonl")
    told = (tmp_path / "results.jsonl").read_text().splitlines()
    primaries = [json.loads(line)["classification"]["primary"] for line in told]
    assert {"pass", "fail"} <= set(primaries)
    assert labels(tmp_path / "again") == labels(tmp_path / "first")
