"""Signs that a machine is in trouble: ends of programs that say more about the machine than about the answer."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from steelyard.protocols import FailureLabel, ProcessResult
from steelyard.records import DiagnosticLevel, Finding, Test

CANNOT_START_EXIT_CODES = (126, 127)
"""What a shell says of a program that could not be started."""
MAX_SEARCHED_OUTPUT_BYTES = 64 << 10
"""Bytes at the end of each output in which signs are looked for."""
TROUBLE_PATTERN = re.compile(
    rb"No space left on device|Disk quota exceeded|Resource temporarily unavailable|Cannot allocate memory|"
    rb"internal compiler error|error while loading shared libraries|cannot execute|Exec format error|"
    rb"Input/output error|Stale file handle|uv_thread_create|signal: 'SIG(?:ABRT|KILL)'|unable to create (?:native )?thread|signal: 9, SIGKILL|"
    rb"Error occurred during initialization of VM|insufficient memory for the Java Runtime|failed to create new OS thread",
    re.IGNORECASE,
)
"""What programs print when a machine runs out of something, or lacks a part of them."""

SYNTAX_ERROR_NAMES = ("SyntaxError", "IndentationError", "TabError")
"""What Python's parser says of a text; a lack of memory on the machine is not part of it."""

ANSWER_FILE = "answer.rs"
"""The name of an answer's file in messages of a compiler that checks it without its tests."""


def trouble_sign(outcome: ProcessResult) -> str:
    """The sign of a machine in trouble in the end of a program; empty if there is none.

    An answer can fake such a sign. It is then verified once more, alone and with a witness, and gains nothing.
    """
    code = outcome.exit_code
    if outcome.limit or not code:
        return ""
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "killed from outside"
    if code in CANNOT_START_EXIT_CODES:
        return f"exit code {code}: a program did not start"
    if code in (-signal.SIGABRT, 128 + signal.SIGABRT) and b"ssert" not in outcome.stderr:
        # a failed assertion names itself; a runtime that gets no thread just aborts
        return "aborted without a reason"
    for output in (outcome.stderr, outcome.stdout):
        if found := TROUBLE_PATTERN.search(output[-MAX_SEARCHED_OUTPUT_BYTES:]):
            return found[0].decode("utf-8", "replace")
    return ""


def is_own_exception(tests: Sequence[Test]) -> bool:
    """Whether the first failed test raised an error that no machine can cause."""
    failed = next((test for test in tests if test.outcome == "failed"), None)
    return failed is not None and failed.cause == "computation"


def is_refused_text(finding: Finding) -> bool:
    """Whether a compiler refused the text of an answer before anything of it ran: Python's parser, or one that names places in it."""
    if finding.compiled is not False or finding.label != FailureLabel.DOES_NOT_COMPILE or finding.trouble:
        return False
    if finding.reason.partition(":")[0] in SYNTAX_ERROR_NAMES:
        return True
    errors = [one for one in finding.diagnostics if one.level == DiagnosticLevel.ERROR]
    return bool(errors) and all(one.spans and {span.file for span in one.spans} == {ANSWER_FILE} for one in errors)
