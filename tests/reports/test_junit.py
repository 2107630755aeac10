"""JUnit XML, as CI systems read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import junitparser
import msgspec
import pytest

from steelyard.reports.junit import MAX_JUNIT_HEADLINE_CHARACTERS, MAX_JUNIT_MESSAGE_CHARACTERS, report
from steelyard.text import INVISIBLE_CHARACTER_PATTERN

if TYPE_CHECKING:
    from steelyard.analysis.summary import RunResults
    from steelyard.records import Finding

STRONG, WEAK = "openai/gpt-5", "evil/<b>=m`1|"


def read(results: RunResults) -> dict[tuple[str, str], junitparser.TestCase]:
    """The tests as a well-known parser reads them, by class and name."""
    suites = junitparser.JUnitXml.fromstring(report(results).encode())
    return {(case.classname, case.name): case for suite in suites for case in suite}


def outcome(case: junitparser.TestCase) -> junitparser.junitparser.FinalResult:
    (found,) = case.result
    return found


def with_finding(results: RunResults, place: int, finding: Finding) -> RunResults:
    """The same run, but one attempt was found otherwise."""
    attempts = list(results.attempts)
    verdict = attempts[place].verdict
    assert verdict is not None
    attempts[place] = attempts[place]._replace(verdict=msgspec.structs.replace(verdict, found=finding))
    return results._replace(attempts=tuple(attempts))


def finding(results: RunResults, place: int) -> Finding:
    verdict = results.attempts[place].verdict
    assert verdict is not None
    return verdict.found


def test_there_is_a_suite_per_model_and_a_test_per_case(results: RunResults) -> None:
    suites = list(junitparser.JUnitXml.fromstring(report(results).encode()))
    assert [suite.name for suite in suites] == [STRONG, WEAK]
    assert [[case.name for case in suite] for suite in suites] == [["add", "=HYPERLINK(1)", "borrow"]] * 2
    assert [(suite.tests, suite.failures, suite.errors, suite.skipped) for suite in suites] == [
        (3, 1, 0, 0),
        (3, 2, 1, 0),
    ]


def test_counts_and_times_of_the_parts_add_up(results: RunResults) -> None:
    whole = junitparser.JUnitXml.fromstring(report(results).encode())
    suites = list(whole)
    for name in ("tests", "failures", "errors", "skipped", "time"):
        assert getattr(whole, name) == pytest.approx(sum(getattr(suite, name) for suite in suites))
    for suite in suites:
        assert suite.time == pytest.approx(sum(case.time for case in suite))


def test_a_test_passes_when_every_judged_attempt_is_correct_even_if_another_is_missing(results: RunResults) -> None:
    tests = read(results)
    assert tests[STRONG, "add"].is_passed
    assert tests[STRONG, "borrow"].is_passed


def test_a_test_fails_when_one_attempt_of_two_is_wrong_and_says_how_often(results: RunResults) -> None:
    failure = outcome(read(results)[WEAK, "add"])
    assert isinstance(failure, junitparser.Failure)
    assert failure.message == "1/2 correct: no code: the reply holds no code block"
    assert failure.type == "no code"
    assert failure.text == "attempt 2: the reply holds no code block"


def test_a_case_that_nobody_judged_is_an_error_and_no_failure(results: RunResults) -> None:
    error = outcome(read(results)[WEAK, "borrow"])
    assert isinstance(error, junitparser.Error)
    assert error.message == "not judged: ask: HTTP 503"
    assert error.text == "attempt 1: ask: HTTP 503\nattempt 2: verify: the sandbox would not start"


def test_a_case_without_a_trace_of_an_attempt_is_an_error(results: RunResults) -> None:
    error = outcome(read(results._replace(attempts=()))[WEAK, "borrow"])
    assert isinstance(error, junitparser.Error)
    assert error.message == "not judged: ask: not asked yet"


def test_the_time_is_that_of_the_model_and_of_verifying(results: RunResults) -> None:
    assert read(results)[STRONG, "add"].time == pytest.approx(2 * (1.25 + 0.02 + 0.13))


def test_equal_reasons_are_told_once_the_most_frequent_first(results: RunResults) -> None:
    other = msgspec.structs.replace(finding(results, 3), reason="another", label="")
    first, second = results.attempts[3], with_finding(results, 3, other).attempts[3]
    attempts = (second._replace(number=1), first._replace(number=2), first._replace(number=3))
    failure = outcome(read(results._replace(attempts=attempts))[WEAK, "add"])
    assert failure.text == "attempts 2, 3: the reply holds no code block\nattempt 1: another"


def test_a_failure_tells_what_the_failed_tests_said(results: RunResults) -> None:
    found = finding(results, 6)
    tests = tuple(
        msgspec.structs.replace(found.tests[1], name=f"test_{number}", message="left: 1\nright: 2")
        for number in range(7)
    )
    spoken = msgspec.structs.replace(found, tests=tests, reason="it is wrong")
    failure = outcome(read(with_finding(results, 6, spoken))[WEAK, "=HYPERLINK(1)"])
    assert failure.text is not None
    assert "attempt 1: test failed: it is wrong\n  test_0\n    left: 1\n    right: 2\n  test_1\n" in failure.text
    assert "  and 2 more failed tests\n" in failure.text
    assert "test_5" not in failure.text


def test_what_is_said_at_length_is_cut(results: RunResults) -> None:
    found = finding(results, 6)
    tests = (msgspec.structs.replace(found.tests[1], name="n" * 9_999, message="m" * 99_999),)
    long = msgspec.structs.replace(found, tests=tests, reason="r" * 99_999)
    cases = tuple(msgspec.structs.replace(case, why="w" * 9_999) for case in results.summary.cases)
    summary = msgspec.structs.replace(results.summary, cases=cases)
    failure = outcome(read(with_finding(results, 6, long)._replace(summary=summary))[WEAK, "=HYPERLINK(1)"])
    assert failure.message is not None
    assert failure.text is not None
    assert len(failure.message) == MAX_JUNIT_HEADLINE_CHARACTERS
    assert max(map(len, re.findall("r+", failure.text))) < MAX_JUNIT_MESSAGE_CHARACTERS
    assert max(map(len, re.findall("m+", failure.text))) == MAX_JUNIT_MESSAGE_CHARACTERS


def test_properties_tell_estimates_cost_and_isolation(results: RunResults) -> None:
    root = ElementTree.fromstring(report(results))
    told = {entry.get("name"): entry.get("value") for entry in root.findall("testsuite[1]/properties/property")}
    assert told["run"] == results.info.id
    assert told["pass@1"] == "83.3% [40.1, 97.1]"
    assert told["cost"] == "$0.001230"
    assert told["verified"] == "4 isolated, bubblewrap; 1 in-process, bubblewrap"
    of_case = {entry.get("name"): entry.get("value") for entry in root.findall(".//testcase")[0].iter("property")}
    assert (of_case["pass@2"], of_case["pass@1 interval"], of_case["isolation"]) == (
        "1.0000",
        "0.3424 to 1.0000",
        "bubblewrap",
    )


def test_what_is_unknown_has_no_property(results: RunResults) -> None:
    borrow = ElementTree.fromstring(report(results)).findall(".//testcase")[-1]
    assert {entry.get("name") for entry in borrow.iter("property")} == {"summary", "missing attempts"}


def test_a_tier_has_a_suite_of_its_own(results: RunResults) -> None:
    tiered = msgspec.structs.replace(results.summary.models[0], tier="T1")
    cases = tuple(msgspec.structs.replace(case, tier="T1") for case in results.summary.cases if case.model == STRONG)
    attempts = tuple(tried._replace(tier="T1") for tried in results.attempts)
    summary = msgspec.structs.replace(results.summary, models=(tiered,), cases=cases)
    tests = read(results._replace(summary=summary, attempts=attempts))
    assert {model for model, _ in tests} == {f"{STRONG} (T1)"}
    assert not tests[f"{STRONG} (T1)", "=HYPERLINK(1)"].is_passed


def test_hostile_text_stays_text(results: RunResults) -> None:
    root = ElementTree.fromstring(report(results))
    assert {element.tag for element in root.iter()} == {
        *("testsuites", "testsuite", "properties", "property", "testcase", "failure", "error"),
    }
    text = next(element.text for element in root.iter("failure") if element.text)
    assert "<script>alert(1)</script>" in text
    assert "]]>" in text
    assert "<![CDATA[" not in report(results)
    assert "=cmd|'/c calc'!A1" in text


def test_nothing_in_it_commands_a_terminal(results: RunResults) -> None:
    assert INVISIBLE_CHARACTER_PATTERN.search(report(results)) is None


@pytest.mark.parametrize("sign", ["\x00", "\x0b", "\x1b", "\ud800", "\ufffe", "\uffff", "\x85"])
def test_a_character_that_xml_forbids_is_written_out(results: RunResults, sign: str) -> None:
    found = msgspec.structs.replace(finding(results, 3), reason=f"a{sign}b", label=sign)
    cases = tuple(msgspec.structs.replace(case, why=f"a{sign}b") for case in results.summary.cases)
    models = tuple(msgspec.structs.replace(model, model=f"{model.model}{sign}") for model in results.summary.models)
    cases = tuple(msgspec.structs.replace(case, model=f"{case.model}{sign}") for case in cases)
    attempts = tuple(tried._replace(model=f"{tried.model}{sign}") for tried in with_finding(results, 3, found).attempts)
    summary = msgspec.structs.replace(results.summary, models=models, cases=cases)
    written = f"⟨U+{ord(sign):04X}⟩"
    failure = outcome(read(results._replace(summary=summary, attempts=attempts))[WEAK + written, "add"])
    assert failure.message == f"1/2 correct: a{written}b"
    assert failure.type == written
    assert failure.text == f"attempt 2: a{written}b"


def test_two_long_names_that_differ_at_the_end_stay_different(results: RunResults) -> None:
    cases = tuple(
        msgspec.structs.replace(case, case=f"{'x' * 5_000}{number}")
        for number, case in enumerate(results.summary.cases)
    )
    summary = msgspec.structs.replace(results.summary, cases=cases)
    assert len(read(results._replace(summary=summary))) == len(cases)


def test_the_same_run_gives_the_same_bytes(results: RunResults) -> None:
    assert report(results) == report(results)
    assert report(results).startswith('<?xml version="1.0" encoding="utf-8"?>\n')
