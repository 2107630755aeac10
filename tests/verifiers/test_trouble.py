"""Ends of programs that say more about a machine than about an answer."""

from __future__ import annotations

import pytest

from steelyard.protocols import FailureLabel, ProcessLimit, ProcessResult
from steelyard.records import Diagnostic, DiagnosticLevel, Finding, Span
from steelyard.verifiers.trouble import is_refused_text, trouble_sign


def ended(code: int, said: bytes = b"", limit: ProcessLimit = "") -> ProcessResult:
    return ProcessResult(exit_code=code, stdout=b"", stderr=said, limit=limit, seconds=0)


@pytest.mark.parametrize(
    "outcome",
    [
        ended(-9),
        ended(137),
        ended(126),
        ended(127),
        ended(134, b"Aborted"),
        ended(1, b"cc1: fatal error: error closing /tmp/x.s: No space left on device"),
        ended(1, b"sh: 1: Cannot fork: Resource temporarily unavailable"),
        ended(1, b"gcc: internal compiler error: Killed (program cc1)"),
        ended(1, b"node: error while loading shared libraries: libuv.so.1"),
        ended(1, b"Error occurred during initialization of VM\nCould not reserve enough space for object heap"),
        ended(2, b"runtime: failed to create new OS thread (have 2 already; errno=11)"),
        ended(1, b"# Subtest: test.mjs\n  signal: 'SIGABRT'\n  error: 'test failed'"),
        ended(1, b"gcc: fatal error: cannot execute 'cc1': execvp: No such file or directory"),
    ],
)
def test_a_machine_in_trouble_shows_signs(outcome: ProcessResult) -> None:
    assert trouble_sign(outcome)


@pytest.mark.parametrize(
    "outcome",
    [
        ended(0, b"No space left on device"),
        ended(1),
        ended(-6, b"t: t.c:2: main: Assertion `0' failed."),
        ended(-11),
        ended(-9, limit="memory limit"),
    ],
)
def test_a_plain_end_and_a_limit_of_ours_are_no_signs(outcome: ProcessResult) -> None:
    assert trouble_sign(outcome) == ""


def compiler_error(file: str) -> Diagnostic:
    span = Span(file=file, line_start=1, line_end=1, column_start=1, column_end=2)
    return Diagnostic(level=DiagnosticLevel.ERROR, message="mismatched types", spans=(span,))


def refused(reason: str, *diagnostics: Diagnostic, trouble: str = "") -> Finding:
    label = FailureLabel.DOES_NOT_COMPILE
    return Finding(compiled=False, label=label, reason=reason, diagnostics=diagnostics, trouble=trouble)


@pytest.mark.parametrize(
    ("finding", "is_refused"),
    [
        (refused("SyntaxError: invalid syntax"), True),
        (refused("mismatched types", compiler_error("answer.rs")), True),
        (refused("mismatched types", compiler_error("answer.rs"), compiler_error("tests.rs")), False),
        (refused("linking with `cc` failed"), False),
        (refused("mismatched types", compiler_error("answer.rs"), trouble="No space left on device"), False),
        (Finding(compiled=False, label=FailureLabel.DIED, diagnostics=(compiler_error("answer.rs"),)), False),
    ],
)
def test_a_text_is_refused_where_a_compiler_names_places_in_the_answer_alone(
    finding: Finding, is_refused: bool
) -> None:
    assert is_refused_text(finding) is is_refused
