"""What a response is: one of nine classes, decided in one order whatever the case asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.records import Answer, Evidence
from steelyard.verifiers.response_judged import ENOUGH, FAIL, PASS, POLICY_VIOLATION, WRONG_FORMAT, Judged
from steelyard.verifiers.response_refusals import refusal, told
from steelyard.verifiers.response_unicode import quoted

if TYPE_CHECKING:
    from steelyard.verifiers.response_judged import Check

TIMEOUT, CRASH, ERROR, TRUNCATED, REFUSAL = "timeout", "crash", "error", "truncated", "refusal"
ORDER = (TIMEOUT, CRASH, ERROR, POLICY_VIOLATION, TRUNCATED, PASS, REFUSAL, WRONG_FORMAT, FAIL)
"""The first class that fits is the one.

Without an answer there is nothing to look at. A policy is violated whatever else a reply does. A reply that was cut off is
not the whole answer, so nobody can say that it is right. One that meets its case is right, also where it refuses: a case
that is content with a refusal says so by its checks. Of the others a refusal is not a failed attempt at the format.
"""
WITHHELD = ("refusal", "content_filter")
"""How providers say that a reply was refused or taken back."""


def classified(answer: Answer, check: Check) -> Judged:
    """What an answer is, by the check of its case, with the evidence."""
    if answer.finish in (TIMEOUT, CRASH, ERROR):
        what = {TIMEOUT: "no answer in time", CRASH: "it crashed", ERROR: "an error instead of an answer"}
        told_so = f"{what[answer.finish]}: {quoted(answer.error)}" if answer.error else what[answer.finish]
        return Judged(primary=answer.finish, score=0.0, details=(Evidence(rule="finish", what=told_so),))
    found = check.judge(answer.text)
    if found.primary == POLICY_VIOLATION:
        return found
    if answer.finish == "length":
        return _instead(found, TRUNCATED, Evidence(rule="finish", what="the reply was cut off at the token limit"))
    if found.passed:
        return found
    if answer.finish in WITHHELD:
        return _instead(found, REFUSAL, Evidence(rule="finish", what=f"the provider says {answer.finish}"))
    refused = refusal(answer.text)
    return found if refused is None else _instead(found, REFUSAL, told(refused, answer.text))


def _instead(found: Judged, primary: str, why: Evidence) -> Judged:
    """Another class than the check alone would give; what the check said stays readable."""
    return Judged(primary=primary, score=0.0, details=(why, *found.details[: ENOUGH - 1]))
