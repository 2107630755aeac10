"""The text that test runners print, TAP and libtest, read as tests within limits."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from steelyard.records import Test, TestOutcome
from steelyard.text import counted

MAX_RESULTS_BYTES = 4 << 20
"""Bytes of results; honest ones have a few thousand."""
MAX_REPORTED_TESTS = 10_000
MAX_SUITE_DEPTH = 40
"""Levels of suites in suites."""
MAX_TEST_NAME_CHARS = 300
MAX_TEST_MESSAGE_CHARS = 2000
MAX_DETAIL_LINES = 100
"""The maximum number of lines of details that are read."""
SUITE_SEPARATOR = " > "
"""Between the name of a suite and that of a test in it."""


class UnreadableResultsError(ValueError):
    """The output is not what its format says."""


class ForgedResultsError(ValueError):
    """The output holds results that no honest runner prints."""


def check_test_count(tests: int) -> None:
    """Refuse more tests than it is worth keeping: printing them is cheap for an answer."""
    if tests > MAX_REPORTED_TESTS:
        raise UnreadableResultsError(f"more than {MAX_REPORTED_TESTS} tests")


def stored_seconds(value: float | str | None) -> float:
    """A duration that can be stored; 0 when it makes no sense."""
    try:
        seconds = float(value or 0)
    except ValueError:
        return 0
    return seconds if math.isfinite(seconds) and 0 <= seconds < 1e9 else 0


def headline(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text[:MAX_TEST_MESSAGE_CHARS].split("\n") if line.strip()), "")


def output_lines(output: bytes) -> Iterator[str]:
    """The lines of the output, without their ends."""
    # not splitlines, for which a form feed inside a printed value would begin a line as well
    for line in output.decode("utf-8", "replace").split("\n"):
        yield line.removesuffix("\r")


def named_in_suite(suite: str, test: Test) -> Test:
    """The test, named after its suite as well."""
    return msgspec.structs.replace(
        test, name=f"{suite[:MAX_TEST_NAME_CHARS]}{SUITE_SEPARATOR}{test.name}"[: 2 * MAX_TEST_NAME_CHARS]
    )


Event = TypeVar("Event")


def decoded(text: str | bytes, kind: type[Event], what: str) -> Event:
    """The value that a JSON text holds; `what` names the text in the error."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        start = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).strip()[:80]
        raise UnreadableResultsError(f'{what} cannot be read: {error}: "{start}"') from None


TAP_POINT_PATTERN = re.compile(r"(not )?ok\b(?:[ \t]+(\d{1,9})\b)?[ \t]*(?:-[ \t]*)?(.*)", re.DOTALL)
TAP_PLAN_PATTERN = re.compile(r"1\.\.(\d{1,9})[ \t]*(?:#.*)?", re.DOTALL)
TAP_DIRECTIVE_PATTERN = re.compile(r"(?:^|[ \t])#[ \t]*(?:skip|todo)", re.IGNORECASE)
TAP_GLUED_RESULT_PATTERN = re.compile(r"\b(?:not )?ok \d+ - ")
"""What a harness printed behind a line that the answer had begun."""
TAP_HIDDEN_FAILURE_PATTERN = re.compile(r"not ok (?:(\d{1,9})\b|- )")
"""A failed test's result in a line that is none, because the answer had begun that line: `# not ok 1 - adds`."""
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
    hidden: set[int] = set()
    """The numbers of failed tests in lines that are no results."""
    for line in output_lines(output):
        bare = line.lstrip(" ")
        blanks = len(line) - len(bare)
        depth, behind = divmod(blanks, TAP_SUBTEST_INDENT)
        last, before = before, -1
        if details is not None:
            hidden |= _hidden_failures(bare)
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
            hidden |= _hidden_failures(bare)
        elif plan := TAP_PLAN_PATTERN.fullmatch(bare):
            _tap_suite_at(levels, depth).plan(int(plan[1]))
        elif point := TAP_POINT_PATTERN.fullmatch(bare):
            _add_tap_result(levels, depth, point)
            before = depth
        else:
            hidden |= _hidden_failures(bare)
            if bare.startswith("# ") and last == depth and not bare.startswith("# Subtest"):
                _explain(levels[-1].tests, [f"message: {bare[2:]}"])
    if details is not None or len(levels) > 1:
        levels[0].tests.append(Test(name="end", outcome="failed", message="the results were cut off"))
    tests = levels[0].close()
    # a summary such as `# not ok 1` stands where a test failed
    if (-1 in hidden or hidden & levels[0].numbers) and all(test.outcome != "failed" for test in tests):
        raise ForgedResultsError("a failed test's result is behind other text, and another one stands for it")
    return tests


def _hidden_failures(line: str) -> set[int]:
    """The numbers of failed tests that a line which is no result holds; -1 for one without a number."""
    return {int(number or -1) for number in TAP_HIDDEN_FAILURE_PATTERN.findall(line)}


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


LIBTEST_OUTCOMES: dict[str, TestOutcome] = {"ok": "passed", "ignored": "ignored"}
"""By libtest's word; any other word is a failure."""


@dataclass
class _LibtestSuite:
    """A suite of libtest that is being read."""

    number: int
    stated: int
    tests: dict[str, Test] = field(default_factory=dict)

    def add(self, name: str, word: str, message: str = "", seconds: float = 0) -> None:
        if name in self.tests:
            raise ForgedResultsError(f'two results for the test "{name[:MAX_TEST_NAME_CHARS]}"')
        check_test_count(len(self.tests))
        outcome = LIBTEST_OUTCOMES.get(word.lower(), "failed")
        self.tests[name] = Test(name=name, outcome=outcome, message=message, seconds=seconds)

    def close(self, counts: dict[str, int] | None) -> list[Test]:
        """Its tests, with a failed one added if the final counts differ."""
        real: Counter[str] = Counter(test.outcome for test in self.tests.values())
        problem = ""
        if counts is None:
            problem = "the suite was cut off"
        elif self.stated != len(self.tests):
            problem = f"{counted(self.stated, 'test')} announced, {len(self.tests)} reported"
        elif any(counts[outcome] != real[outcome] for outcome in counts):
            problem = "the counts at the end are not those of the tests"
        tests = list(self.tests.values())
        if problem:
            tests.append(Test(name="test result", outcome="failed", message=problem))
        if self.number == 1:
            return tests
        # crates of one project often have tests of the same name
        return [msgspec.structs.replace(test, name=f"{test.name} (suite {self.number})") for test in tests]


LIBTEST_START_PATTERN = re.compile(r"running (\d{1,9}) tests?")
LIBTEST_RESULT_PATTERN = re.compile(
    r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, .*| <[\d.]+s>)?", re.DOTALL
)
LIBTEST_COUNTS_PATTERN = re.compile(
    r"test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;.*", re.DOTALL
)
LIBTEST_STDOUT_PATTERN = re.compile(r"---- (.+) stdout ----", re.DOTALL)


def libtest(output: bytes) -> list[Test]:
    """Rust's test runner: its JSON lines, or the text that it prints for people."""
    lines = [line for line in output_lines(output) if line.strip()]
    is_json = bool(lines) and lines[0].startswith("{")
    return _libtest_json(lines) if is_json else _libtest_text(lines)


def _libtest_text(lines: list[str]) -> list[Test]:
    tests: list[Test] = []
    run: _LibtestSuite | None = None
    runs = 0
    for number, line in enumerate(lines):
        if running := LIBTEST_START_PATTERN.fullmatch(line):
            if run:
                raise ForgedResultsError("a suite that begins before the one before it has ended")
            runs += 1
            run = _LibtestSuite(runs, int(running[1]))
        elif result := LIBTEST_RESULT_PATTERN.fullmatch(line):
            if not run:
                raise ForgedResultsError("a result outside of a suite")
            run.add(result[1], result[2])
        elif counts := LIBTEST_COUNTS_PATTERN.fullmatch(line):
            if not run:
                raise ForgedResultsError("the end of a suite that has not begun")
            passed, failed, ignored = map(int, counts.groups())
            tests += run.close({"passed": passed, "failed": failed, "ignored": ignored})
            run = None
        elif run and (problem := LIBTEST_STDOUT_PATTERN.fullmatch(line)) and problem[1] in run.tests:
            run.tests[problem[1]] = msgspec.structs.replace(
                run.tests[problem[1]], message=_panic_message("\n".join(lines[number + 1 : number + 3]))
            )
    return tests + (run.close(None) if run else [])


def _panic_message(problem: str) -> str:
    """What a panic says; the line before it names a thread by a number that is another one every time."""
    first, _, rest = problem.strip().partition("\n")
    return headline(rest if first.startswith("thread '") and rest.strip() else first)


class _LibtestEvent(msgspec.Struct):
    """A line of libtest's JSON."""

    type: str
    event: str
    name: str = ""
    test_count: int = 0
    passed: int = 0
    failed: int = 0
    ignored: int = 0
    stdout: str = ""
    message: str = ""
    exec_time: float = 0


def _libtest_json(lines: list[str]) -> list[Test]:
    tests: list[Test] = []
    run: _LibtestSuite | None = None
    runs = 0
    for number, line in enumerate(lines):
        event = decoded(line, _LibtestEvent, f"line {number + 1}")
        if event.type == "suite" and event.event == "started":
            if run:
                raise ForgedResultsError("a suite that begins before the one before it has ended")
            runs += 1
            run = _LibtestSuite(runs, event.test_count)
        elif event.type not in ("suite", "test") or event.event in ("started", "timeout"):
            continue
        elif not run:
            raise ForgedResultsError("a result after the suite has ended")
        elif event.type == "suite":
            tests += run.close({"passed": event.passed, "failed": event.failed, "ignored": event.ignored})
            run = None
        else:
            run.add(
                event.name, event.event, event.message or _panic_message(event.stdout), stored_seconds(event.exec_time)
            )
    return tests + (run.close(None) if run else [])
