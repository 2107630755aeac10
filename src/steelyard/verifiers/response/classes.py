"""What a response is: one of nine classes, decided in one order whatever the case asks for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from steelyard.records import Answer, Evidence
from steelyard.verifiers.response.judged import ENOUGH, FAIL, PASS, POLICY_VIOLATION, WRONG_FORMAT, Judged
from steelyard.verifiers.response.refusals import refusal, told
from steelyard.verifiers.response.unicode import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.verifiers.response.judged import Check

TIMEOUT, CRASH, ERROR, TRUNCATED, REFUSAL = "timeout", "crash", "error", "truncated", "refusal"
ORDER = (TIMEOUT, CRASH, ERROR, POLICY_VIOLATION, TRUNCATED, PASS, REFUSAL, WRONG_FORMAT, FAIL)
"""The first class that fits is the one.

Without an answer there is nothing to look at. A policy is violated whatever else a reply does. A reply that was cut off is
not the whole answer, so nobody can say that it is right. One that meets its case is right, also where it refuses: a case
that is content with a refusal says so by its checks. Of the others a refusal is not a failed attempt at the format.
"""
WITHHELD = ("refusal", "content_filter")
"""How providers say that a reply was refused or taken back."""
THOUGHT = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)
"""What some models think aloud before they reply, where nobody has taken it out; it is no part of the answer."""


def classified(answer: Answer, check: Check) -> Judged:
    """What an answer is, by the check of its case, with the evidence."""
    if answer.finish in (TIMEOUT, CRASH, ERROR):
        what = {TIMEOUT: "no answer in time", CRASH: "it crashed", ERROR: "an error instead of an answer"}
        told_so = f"{what[answer.finish]}: {quoted(answer.error)}" if answer.error else what[answer.finish]
        return Judged(primary=answer.finish, score=0.0, details=(Evidence(rule="finish", what=told_so),))
    thought = THOUGHT.match(answer.text)
    if thought:
        said = replace(answer, text=answer.text[thought.end() :])
        found = classified(said, check)
        return replace(found, details=_moved(found.details, answer.text[: thought.end()]))
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


def _moved(details: Sequence[Evidence], before: str) -> tuple[Evidence, ...]:
    """The evidence with its places counted from the beginning of the reply."""
    lines, last = before.count("\n"), len(before) - before.rfind("\n") - 1
    return tuple(
        one
        if one.position is None or one.line is None or one.column is None
        else replace(
            one,
            position=one.position + len(before),
            line=one.line + lines,
            column=one.column + (last if one.line == 1 else 0),
        )
        for one in details
    )


def _instead(found: Judged, primary: str, why: Evidence) -> Judged:
    """Another class than the check alone would give; what the check said stays readable."""
    return Judged(primary=primary, score=0.0, details=(why, *found.details[: ENOUGH - 1]))
