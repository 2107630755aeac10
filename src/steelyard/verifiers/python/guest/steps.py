"""Asserts one after the other, pairs and examples: each is a test that tells how it went."""

from __future__ import annotations

import contextlib
import doctest
import time
from typing import NamedTuple

from steelyard.verifiers.python.guest.wire import TestFailure, difference, raised_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from steelyard.records import TestFailureCause

STEP_NAME = "__steelyard_step__"
"""What the plan of a case calls the teller in its tests."""


class TestResultLine(NamedTuple):
    """How one test went."""

    name: str
    outcome: str
    """`passed`, `failed`, `skipped` or `expected`: it failed, as its file says that it will."""
    message: str
    seconds: float
    cause: TestFailureCause = ""
    undefined: str = ""
    """An undefined name that the tests use."""


def result_line(name: str, failure: TestFailure, began: float) -> TestResultLine:
    """How a test went that began then and failed so, if it did."""
    outcome = "failed" if failure.text else "passed"
    return TestResultLine(name, outcome, failure.text, time.perf_counter() - began, *failure[1:])


class StepTeller:
    """Wraps each asserting statement of tests: the next one is run even if this one fails."""

    def __init__(self, tell: Callable[[TestResultLine], None]) -> None:
        self._tell = tell

    def __call__(self, number: int) -> _Step:
        return _Step(self._tell, number)

    def equal(self, got: Any, wanted: Any) -> None:
        """What `assert got == wanted` does, but it can say what came instead."""
        if not got == wanted:
            raise _DifferentError(difference(got, wanted))

    def same(self, got: Any, wanted: Any) -> None:
        """Compare with a value in a file, where a list may stand for a tuple."""
        if not is_same(got, wanted):
            raise _DifferentError(difference(got, wanted))


class _DifferentError(AssertionError):
    """A comparison that did not hold."""

    def __init__(self, failure: TestFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class _Step:
    """One test."""

    def __init__(self, tell: Callable[[TestResultLine], None], number: int) -> None:
        self._tell = tell
        self._number = number

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        failure = TestFailure()
        if error is not None:
            failure = error.failure if isinstance(error, _DifferentError) else raised_failure(error)
        self._tell(result_line(str(self._number), failure, self._began))
        return True


def is_same(got: Any, wanted: Any) -> bool:
    """Whether a value is the one in a file: files have no tuples."""
    if isinstance(wanted, list):
        return (
            isinstance(got, list | tuple)
            and len(got) == len(wanted)
            and all(is_same(one, other) for one, other in zip(got, wanted, strict=True))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(got, dict) and got.keys() == wanted.keys() and all(is_same(got[key], wanted[key]) for key in got)
        )
    return bool(got == wanted) and isinstance(got, bool) == isinstance(wanted, bool)


def run_examples(source: str, names: dict[str, Any], tell: Callable[[TestResultLine], None]) -> str:
    """Run the examples of a doctest; what an example raised that only prepares others, or nothing."""
    test = doctest.DocTestParser().get_doctest(source, {}, "tests", None, 0)
    test.globs = names
    teller = _ExampleTeller(tell)
    with contextlib.suppress(_PreparationError):
        teller.run(test, out=lambda _: None, clear_globs=False)
    return teller.problem


class _PreparationError(Exception):
    """An example without output has raised: those after it cannot be judged."""


class _ExampleTeller(doctest.DocTestRunner):
    """Tells how each example went that has an expected output."""

    def __init__(self, tell: Callable[[TestResultLine], None]) -> None:
        super().__init__(verbose=False)
        self._tell_line = tell
        self._count = 0
        self.problem = ""

    def report_start(self, *_: Any) -> None:
        self._began = time.perf_counter()

    def report_success(self, _out: Any, _test: Any, example: Any, _got: str) -> None:
        self._report(example, TestFailure())

    def report_failure(self, _out: Any, _test: Any, example: Any, got: str) -> None:
        said = f"raised nothing, expected {example.exc_msg}" if example.exc_msg else ""
        self._report(example, TestFailure(said or f"got {got[:200]!r}, expected {example.want[:200]!r}", "comparison"))

    def report_unexpected_exception(self, _out: Any, _test: Any, example: Any, exc_info: Any) -> None:
        self._report(example, raised_failure(exc_info[1]))

    def _report(self, example: Any, failure: TestFailure) -> None:
        if not example.want:
            if failure.text:
                self.problem = failure.text
                raise _PreparationError
            return
        self._tell_line(result_line(str(self._count), failure, self._began))
        self._count += 1
