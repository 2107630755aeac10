"""What went wrong with a Python answer, as findings say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.protocols import FailureLabel
from steelyard.records import Diagnostic, DiagnosticLevel, Finding, Span, Test, TestFailureCause

MAX_ANSWER_OUTPUT_CHARS = 64 << 10
"""Characters of what an answer printed that are kept."""

LABELS_BY_CAUSE: Mapping[TestFailureCause, FailureLabel] = {
    "comparison": FailureLabel.WRONG_ANSWER,
    "memory": FailureLabel.MEMORY_LIMIT,
    "cpu": FailureLabel.CPU_LIMIT,
    "death": FailureLabel.DIED,
}
"""What a failed test is called; every other cause is an exception."""


def compile_failure(error: str, line: int | None, seconds: float) -> Finding:
    """The finding about an answer that does not compile."""
    place = line or 1
    span = Span(file="answer.py", line_start=place, line_end=place, column_start=1, column_end=1)
    return Finding(
        compiled=False,
        diagnostics=(Diagnostic(level=DiagnosticLevel.ERROR, message=error, spans=(span,)),),
        label=FailureLabel.DOES_NOT_COMPILE,
        reason=error,
        compile_seconds=seconds,
    )


def failure_label(tests: Sequence[Test], broken: str, ended: str, otherwise: str) -> tuple[str, str]:
    """The kind of failure, and the failure in one line; both empty when nothing failed."""
    if broken:
        return FailureLabel.EXCEPTION, f"raised before any test: {broken}"
    if ended:
        return ended, otherwise
    wrong = next((test for test in tests if test.outcome == "failed"), None)
    if wrong is None:
        return "", ""
    return LABELS_BY_CAUSE.get(wrong.cause, FailureLabel.EXCEPTION), f"{wrong.name}: {wrong.message}"
