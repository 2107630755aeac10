"""What test runners print, read as tests.

The output may be hostile, so every reader is bounded, and whatever is cut short, contradicts itself or cannot be read
never passes: it holds a failed test, or raises.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from xml.parsers import expat

import msgspec

from steelyard.records import Test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_RESULTS_BYTES = 4 << 20
"""Bytes of results; honest ones have a few thousand."""
MAX_REPORTED_TESTS = 10_000
"""Tests."""
MAX_SUITE_DEPTH = 40
"""Suites in suites."""
MAX_TEST_NAME_CHARS = 300
MAX_TEST_MESSAGE_CHARS = 2000
SUITE_SEPARATOR = " > "
"""Between the name of a suite and that of a test in it."""


class UnreadableResultsError(ValueError):
    """The output is not what its format says."""


class ForgedResultsError(ValueError):
    """The output holds results that no honest runner prints."""


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
                f'{count} results for the test "{name[:MAX_TEST_NAME_CHARS]}"; every test needs a name of its own'
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


def _check_test_count(tests: int) -> None:
    """Refuse so many tests that keeping them would cost us more than printing them cost the answer."""
    if tests > MAX_REPORTED_TESTS:
        raise UnreadableResultsError(f"more than {MAX_REPORTED_TESTS} tests")


def _seconds(value: float | str | None) -> float:
    """A duration that can be stored; 0 when it makes no sense."""
    try:
        seconds = float(value or 0)
    except ValueError:
        return 0
    return seconds if math.isfinite(seconds) and 0 <= seconds < 1e9 else 0


def _headline(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text[:MAX_TEST_MESSAGE_CHARS].split("\n") if line.strip()), "")


def _lines(output: bytes) -> Iterator[str]:
    # not splitlines, for which a form feed inside a printed value would begin a line as well
    for line in output.decode("utf-8", "replace").split("\n"):
        yield line.removesuffix("\r")


# ---- TAP

TAP_POINT_PATTERN = re.compile(r"(not )?ok\b(?:[ \t]+(\d{1,9})\b)?[ \t]*(?:-[ \t]*)?(.*)", re.DOTALL)
TAP_PLAN_PATTERN = re.compile(r"1\.\.(\d{1,9})[ \t]*(?:#.*)?", re.DOTALL)
TAP_DIRECTIVE_PATTERN = re.compile(r"(?:^|[ \t])#[ \t]*(?:skip|todo)", re.IGNORECASE)
TAP_GLUED_RESULT_PATTERN = re.compile(r"\b(?:not )?ok \d+ - ")
"""What a harness printed behind a line that the answer had begun."""
TAP_SUBTEST_INDENT = 4
"""Blanks by which a subtest is indented."""
TAP_DETAIL_PATTERN = re.compile(r"[ \t]*(error|message|duration_ms):[ \t]*(.*)", re.DOTALL)
QUOTED_TEXT_PATTERN = re.compile(r"^(['\"])(.*)\1$", re.DOTALL)
MAX_DETAIL_LINES = 100
"""Lines of details that are looked at."""


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
        _check_test_count(len(self.numbers))
        if self.planned is not None and len(self.numbers) > self.planned:
            raise ForgedResultsError(f"more results than the {self.planned} that were planned")

    def close(self) -> list[Test]:
        """All tests of the suite, with a failed one when the plan was not kept."""
        ran = len(self.numbers)
        if self.planned is None and ran:
            self.tests.append(Test(name="plan", outcome="failed", message="no plan: the results may have been cut off"))
        elif self.planned is not None and ran < self.planned:
            self.tests.append(Test(name="plan", outcome="failed", message=f"{self.planned} tests planned, {ran} ran"))
        return self.tests


def tap(output: bytes) -> list[Test]:
    """The Test Anything Protocol, versions 12 to 14, with subtests."""
    levels = [_TapSuite()]
    details: list[str] | None = None
    end_of_details = ""
    before = -1
    """The depth of the result on the line before; -1 when that was none."""
    for line in _lines(output):
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
    outcome = "ignored" if directive else "failed" if point[1] else "passed"
    inside: list[Test] = []
    while len(levels) > depth + 1:
        deeper = levels.pop()
        deeper.tests += inside
        inside = deeper.close()
    level.tests += [_test_in_suite(name, test) for test in inside]
    # a suite's own result adds nothing to those of its tests, unless it failed in spite of them
    if not inside or (outcome == "failed" and all(test.outcome != "failed" for test in inside)):
        level.tests.append(Test(name=name, outcome=outcome))


def _test_in_suite(suite: str, test: Test) -> Test:
    return msgspec.structs.replace(
        test, name=f"{suite[:MAX_TEST_NAME_CHARS]}{SUITE_SEPARATOR}{test.name}"[: 2 * MAX_TEST_NAME_CHARS]
    )


def _explain(tests: list[Test], details: list[str]) -> None:
    """Put what follows a result into its test."""
    if not tests:
        return
    message, seconds = tests[-1].message, tests[-1].seconds
    for number, line in enumerate(details):
        detail = TAP_DETAIL_PATTERN.fullmatch(line)
        if detail and detail[1] == "duration_ms":
            seconds = _seconds(detail[2]) / 1000
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


# ---- JUnit XML


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
            outcome = {"fail": "failed", "failed": "failed", "error": "failed"}.get(status, "passed")
            outcome = "ignored" if status in ("notrun", "disabled", "skipped") else outcome
            seconds = _seconds(attributes.get("time"))
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
            self._note("failed", _headline("".join(self.failure)))
            self.failure = None
        elif tag == "testcase" and self.case:
            self.tests.append(self.case)
            _check_test_count(len(self.tests))
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
        said = ""
        if suite.stated > suite.tests:
            said = f"{suite.stated} tests stated, {suite.tests} reported"
        elif suite.stated_wrong and not suite.wrong:
            said = f"{suite.stated_wrong} failures stated, none reported"
        if said:
            # two suites may have the same name, and this is no test that could be there twice
            name = f"suite {suite.name} ({len(self.tests) + 1})"
            self.tests.append(Test(name=name, outcome="failed", message=said))


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
    # the encoding is not the document's to choose: it could name one that hides what is said
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


# ---- libtest


@dataclass
class _LibtestSuite:
    """A suite of libtest that is being read."""

    number: int
    stated: int
    tests: dict[str, Test] = field(default_factory=dict)

    def add(self, name: str, word: str, message: str = "", seconds: float = 0) -> None:
        if name in self.tests:
            raise ForgedResultsError(f'two results for the test "{name[:MAX_TEST_NAME_CHARS]}"')
        _check_test_count(len(self.tests))
        outcome = {"ok": "passed", "ignored": "ignored"}.get(word.lower(), "failed")
        self.tests[name] = Test(name=name, outcome=outcome, message=message, seconds=seconds)

    def close(self, counts: dict[str, int] | None) -> list[Test]:
        """Its tests, with a failed one when the counts at its end are others."""
        real = Counter(test.outcome for test in self.tests.values())
        said = ""
        if counts is None:
            said = "the suite was cut off"
        elif self.stated != len(self.tests):
            said = f"{self.stated} tests announced, {len(self.tests)} reported"
        elif any(counts[outcome] != real[outcome] for outcome in counts):
            said = "the counts at the end are not those of the tests"
        tests = list(self.tests.values())
        if said:
            tests.append(Test(name="test result", outcome="failed", message=said))
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
    lines = [line for line in _lines(output) if line.strip()]
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
        elif run and (said := LIBTEST_STDOUT_PATTERN.fullmatch(line)) and said[1] in run.tests:
            run.tests[said[1]] = msgspec.structs.replace(
                run.tests[said[1]], message=_panic_message("\n".join(lines[number + 1 : number + 3]))
            )
    return tests + (run.close(None) if run else [])


def _panic_message(said: str) -> str:
    """What a panic says; the line before it names a thread by a number that is another one every time."""
    first, _, rest = said.strip().partition("\n")
    return _headline(rest if first.startswith("thread '") and rest.strip() else first)


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
        event = _decoded(line, _LibtestEvent, f"line {number + 1}")
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
            run.add(event.name, event.event, event.message or _panic_message(event.stdout), _seconds(event.exec_time))
    return tests + (run.close(None) if run else [])


# ---- go test -json


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


GO_OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "ignored"}


def go(output: bytes) -> list[Test]:
    """The JSON lines of `go test -json`."""
    started: dict[_GoKey, None] = {}
    ends: dict[_GoKey, Test] = {}
    printed: dict[_GoKey, str] = {}
    for number, line in enumerate(_lines(output)):
        if not line.strip():
            continue
        event = _decoded(line, _GoEvent, f"line {number + 1}")
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
            _check_test_count(len(started))
        elif event.action == "output":
            is_said = not event.output.lstrip().startswith(("===", "---", "PASS", "FAIL", "ok "))
            if is_said and len(printed.get(key, "")) < MAX_TEST_MESSAGE_CHARS:
                printed[key] = printed.get(key, "") + event.output[:MAX_TEST_MESSAGE_CHARS]
        elif event.action in GO_OUTCOMES:
            if key in ends or (event.test and key not in started):
                raise ForgedResultsError(f'a result of "{name}", which does not run')
            message = _headline(printed.get(key, "")) if event.action == "fail" else ""
            outcome = GO_OUTCOMES[event.action]
            ends[key] = Test(name=name, outcome=outcome, message=message, seconds=_seconds(event.elapsed))
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
            tests.append(_test_in_suite(key.package, test) if several and key.test else test)
    return tests


def _go_failed(test: Test | None) -> bool:
    return test is None or test.outcome == "failed"


def _go_suites(test: str) -> list[str]:
    """The names of the suites around a test, its package last.

    >>> _go_suites("TestAdd/small/zero")
    ['TestAdd', 'TestAdd/small', '']
    """
    return [*(test[: slash.start()] for slash in re.finditer("/", test)), ""] if test else []


# ---- jest --json


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


JEST_OUTCOMES = {"passed": "passed", **dict.fromkeys(["pending", "todo", "skipped", "disabled"], "ignored")}


def jest(output: bytes) -> list[Test]:
    """The one JSON document of `jest --json`, which vitest writes as well."""
    try:
        report = _decoded(output, _JestReport, "the report")
    except UnreadableResultsError:
        first, *others = [line for line in _lines(output) if line.strip()] or [""]
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
            found.append(Test(name=name or "file", outcome="failed", message=_headline(file.message or "")))
        tests += found
    reported = sum(len(file.assertion_results) for file in report.test_results)
    wrong = sum(test.outcome == "failed" for test in tests)
    if report.num_total_tests != reported:
        said = f"{report.num_total_tests} tests stated, {reported} reported"
        tests.append(Test(name="report", outcome="failed", message=said))
    elif not wrong and (not report.success or report.num_failed_tests):
        tests.append(Test(name="report", outcome="failed", message="the report says that it failed"))
    return tests


def _jest_test(test: _JestTest, file: str) -> Test:
    return Test(
        name=SUITE_SEPARATOR.join(filter(None, [file, *test.ancestor_titles, test.title])),
        outcome=JEST_OUTCOMES.get(test.status, "failed"),
        message=_headline("\n".join(test.failure_messages or [])),
        seconds=_seconds(test.duration) / 1000,
    )


def _is_json(text: str) -> bool:
    try:
        _decoded(text, msgspec.Raw, "")
    except UnreadableResultsError:
        return False
    return True


Event = TypeVar("Event")


def _decoded(text: str | bytes, kind: type[Event], what: str) -> Event:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        start = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).strip()[:80]
        raise UnreadableResultsError(f'{what} cannot be read: {error}: "{start}"') from None


RESULT_PARSERS: dict[str, Callable[[bytes], list[Test]]] = {
    "tap": tap,
    "junit": junit,
    "libtest": libtest,
    "go": go,
    "jest": jest,
}
