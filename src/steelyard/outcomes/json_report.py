"""The results of a run as its JSON report tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.errors import InputError, check_format
from steelyard.records import Case, Expectations, Finding, Test
from steelyard.text import printable

MAX_REPORT_FILE_BYTES = 1 << 30
REPORT_FORMAT = 1
"""The newest format of JSON reports that is read."""


class _ReportedCompilation(msgspec.Struct):
    success: bool | None = None


class _ReportedTests(msgspec.Struct):
    passed: int = 0
    failed: int = 0


class _ReportedLint(msgspec.Struct):
    warning_count: int = 0


class _ReportedResult(msgspec.Struct):
    case_id: str
    model: str
    compilation: _ReportedCompilation = msgspec.field(default_factory=_ReportedCompilation)
    test_execution: _ReportedTests | None = None
    clippy: _ReportedLint | None = None
    correct: bool | None = None
    score: float | None = None


class _ReportedSummary(msgspec.Struct):
    rule: str = ""


class _JsonReport(msgspec.Struct):
    results: list[_ReportedResult]
    format: Any = 0
    summary: _ReportedSummary = msgspec.field(default_factory=_ReportedSummary)


class ReportedAttempt(NamedTuple):
    """One judged attempt of a report."""

    case: str
    model: str
    found: Finding
    correct: bool | None
    """What the report itself says, if it does."""
    score: float | None


class ReportedRun(NamedTuple):
    """What a report tells of its attempts."""

    rule: str
    """The rule of its scores; empty where it has none."""
    attempts: list[ReportedAttempt]


REPORTED_CASE_STUB = Case(id="", prompt="", expectations=Expectations(expected_functions=("not told",)))
"""What is known of a reported case: not which functions were expected of it, so that none counts as defined."""


def reported_run(path: Path) -> ReportedRun:
    """The attempts of a report; raises an InputError for any other file."""
    where = printable(str(path))
    try:
        if path.stat().st_size > MAX_REPORT_FILE_BYTES:
            raise InputError(f"{where}: larger than {MAX_REPORT_FILE_BYTES >> 30} GB; use the run's folder instead")
        report = msgspec.json.decode(path.read_bytes(), type=_JsonReport)
    except OSError as error:
        raise InputError(f"{where}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{where}: not the JSON report of a run: {str(error)[:200]}; write one with: steelyard report RUN -o {where}"
        ) from None
    if isinstance(report.format, int):
        check_format(where, report.format, REPORT_FORMAT)
    return ReportedRun(report.summary.rule, [_attempt(result) for result in report.results])


def _attempt(result: _ReportedResult) -> ReportedAttempt:
    tests = result.test_execution
    outcomes: list[Any] = ["passed"] * tests.passed + ["failed"] * tests.failed if tests else []
    found = Finding(
        code="reported",
        compiled=result.compilation.success,
        tests=tuple(Test(name=str(number), outcome=outcome) for number, outcome in enumerate(outcomes, 1)),
        warnings=result.clippy.warning_count if result.clippy else None,
    )
    return ReportedAttempt(result.case_id, result.model, found, result.correct, result.score)
