"""JUnit XML, read as tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

import msgspec

from steelyard.records import Test, TestOutcome
from steelyard.text import counted
from steelyard.verifiers.command.results.bounds import (
    MAX_DETAIL_LINES,
    MAX_SUITE_DEPTH,
    MAX_TEST_MESSAGE_CHARS,
    SUITE_SEPARATOR,
    UnreadableResultsError,
    check_test_count,
    headline,
    stored_seconds,
)


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
            # two suites may have the same name, and this is no test that could be there twice
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
        raise UnreadableResultsError("XML with a document type, which results have no need of")

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
