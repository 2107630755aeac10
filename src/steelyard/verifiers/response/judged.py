"""What a check has found out about a response, with the evidence."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from steelyard.records import Evidence, Record
from steelyard.verifiers.response.unicode import printable_excerpt

ResponseClass = Literal[
    "timeout", "crash", "error", "policy_violation", "truncated", "pass", "refusal", "wrong_format", "fail"
]
"""What a response is; `classes` says in which order the classes are tried."""
PASS: Final = "pass"  # noqa: S105  the class of a response, no password
FAIL: Final = "fail"
WRONG_FORMAT: Final = "wrong_format"
POLICY_VIOLATION: Final = "policy_violation"
MAX_EVIDENCE_PIECES = 20
"""Pieces of evidence that are kept, the one that decided first."""


class ResponseCheckResult(Record, frozen=True, kw_only=True):
    """What a check says of one response."""

    primary: ResponseClass
    """A check alone says `pass`, `fail`, `wrong_format` or `policy_violation`."""
    score: float
    """From 0 to 1: how much of the check is met, by the weights of its parts."""
    details: tuple[Evidence, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the response is what the case asks for."""
        return self.primary == PASS


class ResponseCheck(Protocol):
    """Something that a case asks of a response."""

    def judge(self, text: str) -> ResponseCheckResult:
        """What the check says of any text whatever: it never raises, and takes time bounded by the text's length."""
        ...


def line_and_column(text: str, start: int) -> tuple[int, int]:
    r"""The line and the column of a position, both from 1.

    >>> line_and_column("a\nbc", 3)
    (2, 2)
    """
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def evidence(rule: str, what: str, text: str, start: int, end: int) -> Evidence:
    """Evidence with the part of the reply that it speaks of."""
    line, column = line_and_column(text, start)
    matched = printable_excerpt(text[start : min(end, start + 101)])
    return Evidence(rule=rule, what=what, matched=matched, position=start, line=line, column=column)


def check_result(primary: ResponseClass, *details: Evidence) -> ResponseCheckResult:
    """A judgement without degrees: 1 for a pass, 0 for anything else."""
    return ResponseCheckResult(primary=primary, score=1.0 if primary == PASS else 0.0, details=details)
