"""The Test Anything Protocol, read as tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

from steelyard.records import Test, TestOutcome
from steelyard.text import counted
from steelyard.verifiers.command.results.bounds import (
    MAX_DETAIL_LINES,
    MAX_SUITE_DEPTH,
    ForgedResultsError,
    check_test_count,
    named_in_suite,
    output_lines,
    stored_seconds,
)

TAP_POINT_PATTERN = re.compile(r"(not )?ok\b(?:[ \t]+(\d{1,9})\b)?[ \t]*(?:-[ \t]*)?(.*)", re.DOTALL)
TAP_PLAN_PATTERN = re.compile(r"1\.\.(\d{1,9})[ \t]*(?:#.*)?", re.DOTALL)
TAP_DIRECTIVE_PATTERN = re.compile(r"(?:^|[ \t])#[ \t]*(?:skip|todo)", re.IGNORECASE)
TAP_GLUED_RESULT_PATTERN = re.compile(r"\b(?:not )?ok \d+ - ")
"""What a harness printed behind a line that the answer had begun."""
TAP_SUBTEST_INDENT = 4
"""Blanks by which a subtest is indented."""
TAP_DETAIL_PATTERN = re.compile(r"[ \t]*(error|message|duration_ms):[ \t]*(.*)", re.DOTALL)
QUOTED_TEXT_PATTERN = re.compile(r"^(['\"])(.*)\1$", re.DOTALL)


@dataclass
class _TapSuite:
    """The results of one suite so far."""

    tests: list[Test] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    planned: int | None = None
    is_ended: bool = False
    """The plan came last, so nothing may follow."""

    def plan(self, planned: int) -> None:
        if self.planned is not None:
            raise ForgedResultsError("two plans")
        self.planned, self.is_ended = planned, bool(self.numbers)

    def count(self, number: int) -> None:
        if self.is_ended:
            raise ForgedResultsError("a result after the plan that ends the results")
        if number in self.numbers:
            raise ForgedResultsError(f"two results with the number {number}")
        self.numbers.add(number)
        check_test_count(len(self.numbers))
        if self.planned is not None and len(self.numbers) > self.planned:
            raise ForgedResultsError(f"more results than the {self.planned} that were planned")

    def close(self) -> list[Test]:
        """All tests of the suite, with a failed one when the plan was not kept."""
        ran = len(self.numbers)
        if self.planned is None and ran:
            self.tests.append(Test(name="plan", outcome="failed", message="no plan: the results may have been cut off"))
        elif self.planned is not None and ran < self.planned:
            self.tests.append(
                Test(name="plan", outcome="failed", message=f"{counted(self.planned, 'test')} planned, {ran} ran")
            )
        return self.tests


def tap(output: bytes) -> list[Test]:
    """The Test Anything Protocol, versions 12 to 14, with subtests."""
    levels = [_TapSuite()]
    details: list[str] | None = None
    end_of_details = ""
    before = -1
    """The depth of the result on the line before; -1 if it was not a result."""
    for line in output_lines(output):
        bare = line.lstrip(" ")
        blanks = len(line) - len(bare)
        depth, behind = divmod(blanks, TAP_SUBTEST_INDENT)
        last, before = before, -1
        if details is not None:
            if line == end_of_details:
                _explain(levels[-1].tests, details)
                details = None
            elif len(details) < MAX_DETAIL_LINES:
                details.append(line)
        elif bare == "---" and last >= 0 and blanks == last * TAP_SUBTEST_INDENT + 2:
            details, end_of_details = [], f"{' ' * blanks}..."
        elif bare.startswith("Bail out!"):
            levels[0].tests.append(Test(name="Bail out!", outcome="failed", message=bare[9:].strip()))
        elif behind or depth > MAX_SUITE_DEPTH:
            continue
        elif plan := TAP_PLAN_PATTERN.fullmatch(bare):
            _tap_suite_at(levels, depth).plan(int(plan[1]))
        elif point := TAP_POINT_PATTERN.fullmatch(bare):
            _add_tap_result(levels, depth, point)
            before = depth
        elif bare.startswith("# ") and last == depth and not bare.startswith("# Subtest"):
            _explain(levels[-1].tests, [f"message: {bare[2:]}"])
    if details is not None or len(levels) > 1:
        levels[0].tests.append(Test(name="end", outcome="failed", message="the results were cut off"))
    return levels[0].close()


def _tap_suite_at(levels: list[_TapSuite], depth: int) -> _TapSuite:
    while len(levels) <= depth:
        levels.append(_TapSuite())
    return levels[depth]


def _add_tap_result(levels: list[_TapSuite], depth: int, point: re.Match[str]) -> None:
    """Note a result, and what the suite that it ends held."""
    level = _tap_suite_at(levels, depth)
    if TAP_GLUED_RESULT_PATTERN.search(point[3]):
        raise ForgedResultsError("two results on one line")
    number = int(point[2] or len(level.numbers) + 1)
    level.count(number)
    directive = TAP_DIRECTIVE_PATTERN.search(point[3])
    name = point[3][: directive.start() if directive else None].strip() or f"test {number}"
    outcome: TestOutcome = "ignored" if directive else "failed" if point[1] else "passed"
    inside: list[Test] = []
    while len(levels) > depth + 1:
        deeper = levels.pop()
        deeper.tests += inside
        inside = deeper.close()
    level.tests += [named_in_suite(name, test) for test in inside]
    # a suite's own result adds nothing to those of its tests, unless it failed in spite of them
    if not inside or (outcome == "failed" and all(test.outcome != "failed" for test in inside)):
        level.tests.append(Test(name=name, outcome=outcome))


def _explain(tests: list[Test], details: list[str]) -> None:
    """Put what follows a result into its test."""
    if not tests:
        return
    message, seconds = tests[-1].message, tests[-1].seconds
    for number, line in enumerate(details):
        detail = TAP_DETAIL_PATTERN.fullmatch(line)
        if detail and detail[1] == "duration_ms":
            seconds = stored_seconds(detail[2]) / 1000
        elif detail and not message and tests[-1].outcome == "failed":
            is_block = detail[2][:1] in ("|", ">")
            message = _block(details[number:]) if is_block else QUOTED_TEXT_PATTERN.sub(r"\2", detail[2])
    tests[-1] = msgspec.structs.replace(tests[-1], message=message, seconds=seconds)


def _block(lines: list[str]) -> str:
    """A text of several lines that are indented below its key, as one line."""
    indentation = len(lines[0]) - len(lines[0].lstrip())
    texts = []
    for line in lines[1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= indentation:
            break
        texts.append(line.strip())
    return " ".join(filter(None, texts))
