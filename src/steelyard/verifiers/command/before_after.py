"""What a change did: tests and warnings after it, held against those before it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from steelyard.protocols import FailureLabel
from steelyard.records import Diagnostic, Finding, Test
from steelyard.verifiers.command.output import one_line
from steelyard.verifiers.command.results.bounds import SUITE_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DID_NOT_BUILD_BEFORE = "it did not build before either"


def subtract_baseline(before: Finding, after: Finding, fixes: Sequence[str], *, replaced: bool) -> Finding:
    """What was found after a change, without what was so before it.

    A test that failed before and fails now is ignored, unless it is one of those that the change was to fix; one that passed
    before has to be there and to pass, unless its file was `replaced`, so that it is unknown where the test went.
    """
    if after.tampered:
        return after
    after = replace(after, **_warnings(before, after))
    if after.compiled is False:
        return replace(after, reason=f"{after.reason}; {DID_NOT_BUILD_BEFORE}") if before.compiled is False else after
    then = {test.name: test for test in before.tests}
    tests = [
        _test_against_baseline(test, then.get(test.name), is_fix=_is_one_of(test, fixes), replaced=replaced)
        for test in after.tests
    ]
    if after.tests:
        tests += [*_vanished_tests(before, after, replaced=replaced), *_fixes_not_run(after, fixes)]
    label, reason = _why(after, tests)
    return replace(after, tests=tuple(tests), label=label, reason=reason)


def _test_against_baseline(now: Test, then: Test | None, *, is_fix: bool, replaced: bool) -> Test:
    """One test, with what it was before."""
    if is_fix:
        return (
            replace(now, outcome="failed", message="was to be fixed, and was skipped")
            if now.outcome == "ignored"
            else now
        )
    if then is None:
        return now
    if now.outcome == "failed" and then.outcome == "failed":
        return replace(now, outcome="ignored", message=_with_message("failed before as well", now.message))
    if now.outcome == "failed" and then.outcome == "passed":
        return replace(now, message=_with_message("passed before", now.message))
    if now.outcome == "ignored" and then.outcome == "passed" and not replaced:
        return replace(now, outcome="failed", message="passed before, and is skipped now")
    return now


def _vanished_tests(before: Finding, after: Finding, *, replaced: bool) -> Iterator[Test]:
    """The tests that passed before and did not run any more."""
    there = {test.name for test in after.tests}
    for test in before.tests if not replaced else ():
        if test.outcome == "passed" and test.name not in there:
            yield Test(name=test.name, outcome="failed", message="passed before, and did not run now")


def _fixes_not_run(after: Finding, fixes: Sequence[str]) -> Iterator[Test]:
    """The tests that were to be fixed and did not run."""
    for name in fixes:
        if not any(_is_one_of(test, [name]) for test in after.tests):
            yield Test(name=name, outcome="failed", message="was to be fixed, and did not run")


def _is_one_of(test: Test, names: Sequence[str]) -> bool:
    """Whether a test is named, with its suite or without."""
    return any(test.name == name or test.name.endswith(f"{SUITE_SEPARATOR}{name}") for name in names)


def _why(after: Finding, tests: Sequence[Test]) -> tuple[str, str]:
    """The kind of failure that is left, and the failure in one line."""
    wrong = next((test for test in tests if test.outcome == "failed"), None)
    if wrong is None:
        if not tests or any(test.outcome == "passed" for test in tests):
            return "", ""
        return FailureLabel.WRONG_ANSWER, one_line(
            _with_message("no test passes", _with_message(tests[0].name, tests[0].message))
        )
    if after.label and after.label != FailureLabel.WRONG_ANSWER:
        return after.label, after.reason
    return FailureLabel.WRONG_ANSWER, one_line(_with_message(wrong.name, wrong.message))


def _warnings(before: Finding, after: Finding) -> dict[str, object]:
    """The warnings beyond those before; which line they stand on does not matter."""
    if after.warnings is None or before.warnings is None:
        return {}
    known = Counter(map(_diagnostic_key, before.diagnostics))
    fresh = []
    for diagnostic in after.diagnostics:
        known[_diagnostic_key(diagnostic)] -= 1
        if known[_diagnostic_key(diagnostic)] < 0:
            fresh.append(diagnostic)
    return {"warnings": max(0, after.warnings - before.warnings), "diagnostics": tuple(fresh)}


def _diagnostic_key(diagnostic: Diagnostic) -> tuple[str, str | None, str]:
    return diagnostic.message, diagnostic.code, diagnostic.spans[0].file if diagnostic.spans else ""


def _with_message(what: str, message: str) -> str:
    return f"{what}: {message}" if message else what
