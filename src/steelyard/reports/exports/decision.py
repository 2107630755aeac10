"""What a gate decided, as files of CI systems: tests in JUnit XML, and results in SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from steelyard.comparison.gate import CANNOT_TELL, REGRESSED, Decision, ModelDecision
from steelyard.reports.comparison import DECISION_FORMATS, VERDICT_WORDS, case_change, open_headline, reasons
from steelyard.reports.junit import JunitSuite, junit_pieces, junit_text
from steelyard.text import escaped_json, line

SUITE_RULE, CASE_RULE, OPEN_RULE, GONE_RULE = "suite-regressed", "case-regressed", "cannot-tell", "case-removed"
GONE_TEXT = "A case of the baseline was removed, or is judged by other tests"
RULE_TEXTS = {
    SUITE_RULE: "The mean over all cases got worse",
    CASE_RULE: "A case got worse",
    OPEN_RULE: "The evidence does not say whether anything got worse",
    GONE_RULE: GONE_TEXT,
}


def decision_texts(decision: Decision, warnings: Sequence[str], gone: Sequence[str] = ()) -> dict[str, str]:
    """A decision in every format; cases that are gone are errors in the files of CI systems."""
    texts = {name: render(decision, warnings) for name, render in DECISION_FORMATS.items()}
    texts["junit"] = decision_junit(decision, warnings, gone)
    texts["sarif"] = decision_sarif(decision, warnings, gone)
    return texts


def decision_junit(decision: Decision, warnings: Sequence[str], gone: Sequence[str] = ()) -> str:
    """A suite per model: one test for the mean over all cases, and a failed one for each case that got worse.

    Where the gate cannot tell, the test of the suite is skipped, with the reason. Cases that only warn are skipped too. Each
    of the cases that are gone is a failed test.
    """
    return "".join(junit_pieces("steelyard gate", _suites(decision, warnings, gone)))


def _suites(decision: Decision, warnings: Sequence[str], gone: Sequence[str]) -> Iterator[JunitSuite]:
    for model in decision.models:
        name = junit_text(model.model)
        yield ElementTree.Element("testsuite", name=name), _tests(model, decision, warnings)
    if gone:
        name = "cases of the baseline"
        yield ElementTree.Element("testsuite", name=name), (_gone_test(name, case) for case in gone)


def _tests(model: ModelDecision, decision: Decision, warnings: Sequence[str]) -> Iterator[ElementTree.Element]:
    about = {"classname": junit_text(model.model), "time": "0"}
    test = ElementTree.Element("testcase", about, name="suite")
    said = "\n".join([*reasons(model, decision), *warnings])
    if model.suite == REGRESSED:
        ElementTree.SubElement(test, "failure", message=VERDICT_WORDS[REGRESSED], type=SUITE_RULE).text = _text(said)
    elif model.suite == CANNOT_TELL:
        why = f"{open_headline([model])}; {said.partition(chr(10))[0]}"
        ElementTree.SubElement(test, "skipped", message=junit_text(why))
    yield test
    for change in model.confirmed:
        test = ElementTree.Element("testcase", about, name=junit_text(change.case))
        if decision.rule.cases == "fail":
            ElementTree.SubElement(test, "failure", message=junit_text(case_change(change)), type=CASE_RULE)
        else:
            ElementTree.SubElement(test, "skipped", message=junit_text(f"a warning: {case_change(change)}"))
        yield test


def _gone_test(suite: str, case: str) -> ElementTree.Element:
    test = ElementTree.Element("testcase", classname=suite, name=junit_text(case), time="0")
    ElementTree.SubElement(test, "failure", message=GONE_TEXT, type=GONE_RULE)
    return test


def _text(said: str) -> str:
    return "\n".join(junit_text(each) for each in said.split("\n"))


def decision_sarif(decision: Decision, warnings: Sequence[str], gone: Sequence[str] = ()) -> str:
    """One result for each suite and each case that got worse, and a note for each model that the gate cannot tell about."""
    driver = {
        "name": "steelyard gate",
        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in RULE_TEXTS.items()],
    }
    notes = [{"level": "warning", "message": {"text": line(warning)}} for warning in warnings]
    whole = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
                "results": [
                    *(result for model in decision.models for result in _results(model, decision)),
                    *(_result(GONE_RULE, "error", f"{GONE_TEXT}: {line(case)}", line(case)) for case in gone),
                ],
            }
        ],
    }
    return escaped_json(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()) + "\n"


def _results(model: ModelDecision, decision: Decision) -> Iterator[dict[str, Any]]:
    name = line(model.model)
    first = next(iter(reasons(model, decision)), "")
    if model.suite == REGRESSED:
        yield _result(SUITE_RULE, "error", f"{name}: {first}", name)
    elif model.suite == CANNOT_TELL:
        yield _result(OPEN_RULE, "note", f"{name}: {open_headline([model])}; {first}", name)
    level = "error" if decision.rule.cases == "fail" else "warning"
    for change in model.confirmed:
        yield _result(CASE_RULE, level, f"{name}: {case_change(change)}", f"{name}/{line(change.case)}")


def _result(rule: str, level: str, text: str, place: str) -> dict[str, Any]:
    # nothing of it is about a line of the repository: the place is a name
    where = {"logicalLocations": [{"fullyQualifiedName": place}]}
    return {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [where]}
