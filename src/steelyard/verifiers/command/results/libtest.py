"""The output of Rust's test runner, read as tests."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from steelyard.records import Test, TestOutcome
from steelyard.text import counted
from steelyard.verifiers.command.results.bounds import (
    MAX_TEST_NAME_CHARS,
    ForgedResultsError,
    check_test_count,
    decoded,
    headline,
    output_lines,
    stored_seconds,
)

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
        """Its tests, with a failed one when the counts at its end are others."""
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
