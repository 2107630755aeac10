"""A decision reads as reviewed, whatever a case is called."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import junitparser

from steelyard.comparison.exact_tests import PairedCase
from steelyard.comparison.gate import decide
from steelyard.reports.comparison import DECISION_FORMATS
from steelyard.reports.exports.decision import decision_junit, decision_sarif
from steelyard.text import INVISIBLE_CHARACTER_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.comparison.gate import Decision

HOSTILE = "=1+1 <b>|`\x1b]0;x\x07@octocat"


def decision() -> Decision:
    def case(name: str, before: int, after: int, *, critical: bool = False) -> PairedCase:
        return PairedCase(
            case=name,
            baseline_attempts=30,
            baseline_passes=before,
            current_attempts=10,
            current_passes=after,
            critical=critical,
        )

    steady = [case(f"c{place}", 30, 10) for place in range(30)]
    worse = [case(HOSTILE, 30, 1), case("login", 30, 10, critical=True), case("shaky", 20, 5), *steady]
    thin = [case(f"c{place}", 15, 5) for place in range(6)]
    return decide({"strong": worse, "weak": thin, "same": steady}, attempt_cost=0.01)


def test_the_text_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("decision.txt", DECISION_FORMATS["text"](decision(), ["main is thin"]))


def test_the_comment_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("decision.md", DECISION_FORMATS["markdown"](decision(), ["main is thin"]))


def test_a_program_gets_every_verdict_and_its_reasons() -> None:
    told = json.loads(DECISION_FORMATS["json"](decision(), ["main is thin"]))
    verdicts = {model["model"]: model["verdict"] for model in told["decision"]["models"]}
    assert verdicts == {"same": "not regressed", "strong": "regressed", "weak": "cannot tell"}
    assert told["warnings"] == ["main is thin"]


def test_a_test_runner_sees_what_got_worse_and_what_is_open() -> None:
    suites = junitparser.JUnitXml.fromfile(io.StringIO(decision_junit(decision(), ["main is thin"])))
    outcomes = {suite.name: [type(outcome).__name__ for test in suite for outcome in test.result] for suite in suites}
    assert outcomes == {"same": [], "strong": ["Failure", "Failure"], "weak": ["Skipped"]}
    assert (suites.tests, suites.failures, suites.skipped) == (4, 2, 1)


def test_a_scanner_gets_one_result_for_each_suite_and_case_that_got_worse() -> None:
    (run,) = json.loads(decision_sarif(decision(), ["main is thin"]))["runs"]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("suite-regressed", "error"),
        ("case-regressed", "error"),
        ("cannot-tell", "note"),
    ]
    assert {result["ruleId"] for result in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"] == "main is thin"


def test_every_format_says_what_would_decide_where_the_gate_cannot_tell() -> None:
    thin = [
        PairedCase(case=f"c{each}", baseline_attempts=30, baseline_passes=15, current_attempts=10, current_passes=5)
        for each in range(6)
    ]
    found = decide({"weak": thin}, attempt_cost=0.01)
    (further,) = [model.further for model in found.models]
    assert further is not None
    assert further.cost_usd is not None
    needed = f"CANNOT TELL: {further.attempts:,} more attempts, about ${further.cost_usd:.2f}, would probably decide"
    text, comment = (DECISION_FORMATS[name](found, []).splitlines()[0] for name in ("text", "markdown"))
    assert (text, comment) == (needed, f"### {needed}")
    assert needed in decision_junit(found, [])
    assert needed in decision_sarif(found, [])
    assert json.loads(DECISION_FORMATS["json"](found, []))["decision"]["models"][0]["further"]["attempts"] > 0


def test_no_case_commands_a_terminal() -> None:
    for form in (*DECISION_FORMATS.values(), decision_junit, decision_sarif):
        assert INVISIBLE_CHARACTER_PATTERN.search(form(decision(), [HOSTILE]).replace("@\u200b", "@")) is None


def test_no_drop_is_larger_than_everything_and_a_rise_is_called_one() -> None:
    def told(before: int, after: int, attempts: int, cases: int, min_effect: float = 0.0) -> str:
        paired = [
            PairedCase(
                case=f"c{place}",
                baseline_attempts=attempts,
                baseline_passes=before if place == 0 else attempts,
                current_attempts=attempts,
                current_passes=after if place == 0 else attempts,
            )
            for place in range(cases)
        ]
        return DECISION_FORMATS["text"](decide({"m": paired}, min_effect=min_effect), [])

    thin = told(1, 1, 1, 1)
    assert "a drop of up to 100.0 points cannot be ruled out" in thin
    assert "no mean drop would have been seen four times out of five" in thin
    assert "these cases dropped by less than 5 points: they rose by 3." in told(0, 10, 10, 20)
    assert "these cases dropped by less than 5 points: by 1." in told(10, 10, 10, 20)
    assert "the drop is real, but below 10 points, the least that counts" in told(10, 0, 10, 20, min_effect=0.1)
