"""The JSON of `go test -json` and of `jest --json`, read as tests."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from steelyard.records import Test, TestOutcome
from steelyard.text import counted
from steelyard.verifiers.command.results.bounds import (
    MAX_SUITE_DEPTH,
    MAX_TEST_MESSAGE_CHARS,
    MAX_TEST_NAME_CHARS,
    SUITE_SEPARATOR,
    ForgedResultsError,
    UnreadableResultsError,
    check_test_count,
    decoded,
    headline,
    named_in_suite,
    output_lines,
    stored_seconds,
)


class _GoEvent(msgspec.Struct, rename="pascal"):
    """A line of `go test -json`."""

    action: str
    package: str = ""
    test: str = ""
    elapsed: float = 0
    output: str = ""


class _GoKey(NamedTuple):
    package: str
    test: str


GO_OUTCOMES: dict[str, TestOutcome] = {"pass": "passed", "fail": "failed", "skip": "ignored"}


def go(output: bytes) -> list[Test]:
    """The JSON lines of `go test -json`."""
    started: dict[_GoKey, None] = {}
    ends: dict[_GoKey, Test] = {}
    printed: dict[_GoKey, str] = {}
    for number, line in enumerate(output_lines(output)):
        if not line.strip():
            continue
        event = decoded(line, _GoEvent, f"line {number + 1}")
        key, package = _GoKey(event.package, event.test), _GoKey(event.package, "")
        name = event.test or event.package
        if len(name) > MAX_TEST_NAME_CHARS or name.count("/") > MAX_SUITE_DEPTH:
            raise UnreadableResultsError(
                f"a name of more than {MAX_TEST_NAME_CHARS} characters, or with more than {MAX_SUITE_DEPTH} slashes"
            )
        if package in ends and event.package:
            raise ForgedResultsError(f'results of "{event.package}" after its end')
        if event.action in ("start", "run"):
            if event.action == "run" and key in started:
                raise ForgedResultsError(f'"{name}" ran twice')
            started[key] = None
            check_test_count(len(started))
        elif event.action == "output":
            is_said = not event.output.lstrip().startswith(("===", "---", "PASS", "FAIL", "ok "))
            if is_said and len(printed.get(key, "")) < MAX_TEST_MESSAGE_CHARS:
                printed[key] = printed.get(key, "") + event.output[:MAX_TEST_MESSAGE_CHARS]
        elif event.action in GO_OUTCOMES:
            if key in ends or (event.test and key not in started):
                raise ForgedResultsError(f'a result of "{name}", which does not run')
            message = headline(printed.get(key, "")) if event.action == "fail" else ""
            outcome = GO_OUTCOMES[event.action]
            ends[key] = Test(name=name, outcome=outcome, message=message, seconds=stored_seconds(event.elapsed))
    return _go_tests(started, ends)


def _go_tests(started: dict[_GoKey, None], ends: dict[_GoKey, Test]) -> list[Test]:
    """One test for every leaf, and for what failed without one of its leaves having failed."""
    several = len({key.package for key in started}) > 1
    known = dict.fromkeys([*started, *(_GoKey(key.package, "") for key in started), *ends])
    above = {key: [_GoKey(key.package, part) for part in _go_suites(key.test)] for key in known}
    suites = {suite for key in above for suite in above[key]}
    excused = {suite for key in known if _go_failed(ends.get(key)) for suite in above[key]}
    tests = []
    for key in known:
        test = ends.get(key) or Test(name=key.test or key.package, outcome="failed", message="did not end")
        is_suite = key in suites or not key.test
        if not is_suite or (test.outcome == "failed" and key not in excused):
            tests.append(named_in_suite(key.package, test) if several and key.test else test)
    return tests


def _go_failed(test: Test | None) -> bool:
    return test is None or test.outcome == "failed"


def _go_suites(test: str) -> list[str]:
    """The names of the suites around a test, its package last.

    >>> _go_suites("TestAdd/small/zero")
    ['TestAdd', 'TestAdd/small', '']
    """
    return [*(test[: slash.start()] for slash in re.finditer("/", test)), ""] if test else []


class _JestTest(msgspec.Struct, rename="camel"):
    title: str
    status: str
    ancestor_titles: list[str] = []
    duration: float | None = None
    failure_messages: list[str] | None = None


class _JestFile(msgspec.Struct, rename="camel"):
    assertion_results: list[_JestTest]
    name: str = ""
    status: str = ""
    message: str | None = ""


class _JestReport(msgspec.Struct, rename="camel"):
    success: bool
    num_total_tests: int
    num_failed_tests: int
    test_results: list[_JestFile]


JEST_OUTCOMES: dict[str, TestOutcome] = {
    "passed": "passed",
    "pending": "ignored",
    "todo": "ignored",
    "skipped": "ignored",
    "disabled": "ignored",
}


def jest(output: bytes) -> list[Test]:
    """The one JSON document of `jest --json`, which vitest writes as well."""
    try:
        report = decoded(output, _JestReport, "the report")
    except UnreadableResultsError:
        first, *others = [line for line in output_lines(output) if line.strip()] or [""]
        if others and _is_json(first):
            raise ForgedResultsError("something after the end of the report") from None
        raise
    tests = []
    several = len(report.test_results) > 1
    for file in report.test_results:
        # the folder has another name every time
        name = file.name.rpartition("/")[2]
        found = [_jest_test(test, name if several else "") for test in file.assertion_results]
        if file.status == "failed" and all(test.outcome != "failed" for test in found):
            found.append(Test(name=name or "file", outcome="failed", message=headline(file.message or "")))
        tests += found
    reported = sum(len(file.assertion_results) for file in report.test_results)
    wrong = sum(test.outcome == "failed" for test in tests)
    if report.num_total_tests != reported:
        problem = f"{counted(report.num_total_tests, 'test')} stated, {reported} reported"
        tests.append(Test(name="report", outcome="failed", message=problem))
    elif not wrong and (not report.success or report.num_failed_tests):
        tests.append(Test(name="report", outcome="failed", message="the report says that it failed"))
    return tests


def _jest_test(test: _JestTest, file: str) -> Test:
    return Test(
        name=SUITE_SEPARATOR.join(filter(None, [file, *test.ancestor_titles, test.title])),
        outcome=JEST_OUTCOMES.get(test.status, "failed"),
        message=headline("\n".join(test.failure_messages or [])),
        seconds=stored_seconds(test.duration) / 1000,
    )


def _is_json(text: str) -> bool:
    try:
        decoded(text, msgspec.Raw, "")
    except UnreadableResultsError:
        return False
    return True
