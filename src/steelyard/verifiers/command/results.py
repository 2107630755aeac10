"""What test runners report, in any format that we know, read as tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

import msgspec

from steelyard.records import Test, TestOutcome
from steelyard.text import counted
from steelyard.verifiers.command.text_results import (
    MAX_DETAIL_LINES,
    MAX_RESULTS_BYTES,
    MAX_SUITE_DEPTH,
    MAX_TEST_MESSAGE_CHARS,
    MAX_TEST_NAME_CHARS,
    SUITE_SEPARATOR,
    ForgedResultsError,
    UnreadableResultsError,
    check_test_count,
    decoded,
    headline,
    libtest,
    named_in_suite,
    output_lines,
    stored_seconds,
    tap,
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


@dataclass
class _JUnitSuite:
    """A suite of JUnit, what it says of itself and what is in it."""

    name: str
    stated: int
    stated_wrong: int
    tests: int = 0
    wrong: int = 0


@dataclass
class _JUnitHandler:
    """The events of an XML parser, made into tests."""

    tests: list[Test] = field(default_factory=list)
    suites: list[_JUnitSuite] = field(default_factory=list)
    depth: int = 0
    case: Test | None = None
    failure: list[str] | None = None
    """The text of the failure that is being read."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_SUITE_DEPTH:
            raise UnreadableResultsError(f"XML nested more than {MAX_SUITE_DEPTH} levels deep")
        if self.depth == 1 and tag not in ("testsuites", "testsuite"):
            raise UnreadableResultsError(f"not JUnit: the document is a <{tag[:50]}>")
        if tag in ("testsuites", "testsuite"):
            wrong = _count(attributes, "failures") + _count(attributes, "errors")
            self.suites.append(_JUnitSuite(attributes.get("name", tag), _count(attributes, "tests"), wrong))
        elif tag == "testcase":
            if self.case:
                raise UnreadableResultsError("a testcase in a testcase")
            suite, name = attributes.get("classname", ""), attributes.get("name", "")
            status = attributes.get("status", "").lower()
            outcome: TestOutcome = "failed" if status in ("fail", "failed", "error") else "passed"
            outcome = "ignored" if status in ("notrun", "disabled", "skipped") else outcome
            seconds = stored_seconds(attributes.get("time"))
            self.case = Test(
                name=f"{suite}{SUITE_SEPARATOR}{name}" if suite else name, outcome=outcome, seconds=seconds
            )
        elif self.case and tag in ("failure", "error"):
            self.failure = []
            self._note("failed", attributes.get("message", ""))
        elif self.case and tag == "skipped" and self.case.outcome != "failed":
            self._note("ignored", attributes.get("message", ""))

    def text(self, text: str) -> None:
        if self.failure is not None and len(self.failure) < MAX_DETAIL_LINES:
            self.failure.append(text[:MAX_TEST_MESSAGE_CHARS])

    def end(self, tag: str) -> None:
        self.depth -= 1
        if tag in ("failure", "error") and self.failure is not None:
            self._note("failed", headline("".join(self.failure)))
            self.failure = None
        elif tag == "testcase" and self.case:
            self.tests.append(self.case)
            check_test_count(len(self.tests))
            for suite in self.suites:
                suite.tests += 1
                suite.wrong += self.case.outcome == "failed"
            self.case = None
        elif tag in ("testsuites", "testsuite"):
            self._close(self.suites.pop())

    def _note(self, outcome: str, message: str) -> None:
        if self.case:
            message = self.case.message or message.strip()
            self.case = msgspec.structs.replace(self.case, outcome=outcome, message=message)

    def _close(self, suite: _JUnitSuite) -> None:
        problem = ""
        if suite.stated > suite.tests:
            problem = f"{counted(suite.stated, 'test')} stated, {suite.tests} reported"
        elif suite.stated_wrong and not suite.wrong:
            problem = f"{counted(suite.stated_wrong, 'failure')} stated, none reported"
        if problem:
            # two suites may have the same name, and this is not a test that could be there twice
            name = f"suite {suite.name} ({len(self.tests) + 1})"
            self.tests.append(Test(name=name, outcome="failed", message=problem))


def _count(attributes: dict[str, str], key: str) -> int:
    number = attributes.get(key) or "0"
    if not re.fullmatch(r"[0-9]{1,9}", number):
        raise UnreadableResultsError(f'{key}="{number[:50]}" is not a number')
    return int(number)


def junit(output: bytes) -> list[Test]:
    """The XML that JUnit began and most runners can write."""

    def refuse(*_: object) -> None:
        raise UnreadableResultsError("XML with a document type, which results do not need")

    found = _JUnitHandler()
    # the encoding is not the document's to choose: it could name one that hides the results
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    # no document type, no entities: neither bombs nor files of ours
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = found.start
    parser.CharacterDataHandler = found.text
    parser.EndElementHandler = found.end
    try:
        parser.Parse(output.strip(), True)
    except expat.ExpatError as error:
        raise UnreadableResultsError(f"not XML: {error}") from None
    return found.tests


RESULT_PARSERS: dict[str, Callable[[bytes], list[Test]]] = {
    "tap": tap,
    "junit": junit,
    "libtest": libtest,
    "go": go,
    "jest": jest,
}


def parse_results(output: bytes, kind: str) -> list[Test]:
    r"""The tests that a runner reports, in the format `kind`; none when it ran none.

    >>> [(test.name, test.outcome) for test in parse_results(b"1..2\nok 1 - adds\nnot ok 2 - carries\n", "tap")]
    [('adds', 'passed'), ('carries', 'failed')]
    """
    if len(output) > MAX_RESULTS_BYTES:
        raise UnreadableResultsError(f"more than {MAX_RESULTS_BYTES >> 20} MB of results")
    tests = RESULT_PARSERS[kind](output)
    for name, count in Counter(test.name for test in tests).items():
        if count > 1:
            raise ForgedResultsError(
                f'{count} results for the test "{name[:MAX_TEST_NAME_CHARS]}"; every test needs a unique name'
            )
    return [
        Test(
            name=test.name[:MAX_TEST_NAME_CHARS],
            outcome=test.outcome,
            message=test.message[:MAX_TEST_MESSAGE_CHARS],
            seconds=test.seconds,
        )
        for test in tests
    ]
