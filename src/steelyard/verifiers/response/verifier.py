"""Answers that are text: put in one of nine classes, and right when they meet the checks of their case."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Final, get_args

from msgspec.structs import replace

from steelyard.errors import VerifierError, did_you_mean
from steelyard.protocols import Sandbox
from steelyard.records import Answer, Case, Evidence, Finding, VerifierSettings
from steelyard.sandbox.processors import processor_count
from steelyard.text import short_quote
from steelyard.verifiers.response.checks import declared_check, expected_response_check, with_tool_calls
from steelyard.verifiers.response.judged import (
    MAX_EVIDENCE_PIECES,
    POLICY_VIOLATION,
    ResponseCheck,
    ResponseCheckResult,
    ResponseClass,
)
from steelyard.verifiers.response.refusals import refusal_evidence, refusal_in_data, refusal_match, refusal_rules
from steelyard.verifiers.response.rule_files import rules_version
from steelyard.verifiers.response.unicode import printable_excerpt

TRUNCATED: Final = "truncated"
REFUSAL: Final = "refusal"
RESPONSE_CLASS_ORDER: tuple[ResponseClass, ...] = get_args(ResponseClass)
"""The first class that fits is the one.

Without an answer there is nothing to check. A policy is violated whatever else a reply does. A reply that was cut off is
not the whole answer, so it cannot be called right. A refusal is right where the checks of its case only forbid, or ask for
the refusing words themselves; a check that asks for an answer is not met by one that refuses and names it. Of the others
a refusal is not a failed attempt at the format.
"""
NO_ANSWER_CLASSES: dict[str, tuple[ResponseClass, str]] = {
    "timeout": ("timeout", "no answer in time"),
    "crash": ("crash", "it crashed"),
    "error": ("error", "an error instead of an answer"),
}
REFUSAL_FINISH_REASONS = ("refusal", "content_filter")
"""How providers say that a reply was refused or taken back."""
THINKING_START = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
THINKING_END = re.compile(r"</(think|thinking)>\s*", re.IGNORECASE)


def answer_start(text: str) -> int | None:
    """The start of the answer after a model's thinking, which is not part of it; None if the thinking never ends.

    Some servers leave out the tag that opens it.

    >>> answer_start("<think>Hm.</think> Paris"), answer_start("Hm.</think>Paris"), answer_start("<think>It is")
    (19, 11, None)
    """
    position = 0
    while opened := THINKING_START.match(text, position):
        closed = THINKING_END.search(text, opened.end())
        if closed is None:
            return None
        position = closed.end()
    if position == 0 and (closed := THINKING_END.search(text)) and "<think" not in text[: closed.start()].lower():
        return closed.end()
    return position


def classify_answer(answer: Answer, check: ResponseCheck) -> ResponseCheckResult:
    """What an answer is, by the check of its case, with the evidence."""
    if failure := NO_ANSWER_CLASSES.get(answer.finish):
        primary, what = failure
        what = f"{what}: {printable_excerpt(answer.error)}" if answer.error else what
        return ResponseCheckResult(primary=primary, score=0.0, details=(Evidence(rule="finish", what=what),))
    if calls := answer.all_tool_calls:
        check = with_tool_calls(check, calls)
    start = answer_start(answer.text)
    if start is None:
        found = check.judge(answer.text)
        if found.primary == POLICY_VIOLATION:
            return found
        what = "the reply ends before its thinking does, so there is no answer"
        return ResponseCheckResult(primary=TRUNCATED, score=0.0, details=(Evidence(rule="thinking", what=what),))
    if not start:
        return _classify_text(answer, check)
    found = _classify_text(replace(answer, text=answer.text[start:]), check)
    return replace(found, details=_shifted_evidence(found.details, answer.text[:start]))


def _classify_text(answer: Answer, check: ResponseCheck) -> ResponseCheckResult:
    """What a text is that is all answer."""
    found = check.judge(answer.text)
    if found.primary == POLICY_VIOLATION:
        return found
    if answer.finish == "length":
        return _reclassified(found, TRUNCATED, Evidence(rule="finish", what="the reply was cut off at the token limit"))
    if found.passed and not check.asks:
        return found
    if not found.passed and answer.finish in REFUSAL_FINISH_REASONS:
        return _reclassified(found, REFUSAL, Evidence(rule="finish", what=f"the provider says {answer.finish}"))
    refused = refusal_match(answer.text) or refusal_in_data(answer.text)
    if refused is None or (
        found.passed and (refused.implied or check.judge(answer.text[refused.passage : refused.end]).passed)
    ):
        # a check that the refusing words meet by themselves asks for just these words
        return found
    return _reclassified(found, REFUSAL, refusal_evidence(refused, answer.text))


def _shifted_evidence(details: Sequence[Evidence], before: str) -> tuple[Evidence, ...]:
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


def _reclassified(found: ResponseCheckResult, primary: ResponseClass, why: Evidence) -> ResponseCheckResult:
    """Another class than the check alone would give; the evidence of the check is kept."""
    return ResponseCheckResult(primary=primary, score=0.0, details=(why, *found.details[: MAX_EVIDENCE_PIECES - 1]))


TARGET_STYLES = ("contains", "exact", "regex")
THREADED_REPLY_CHARACTERS = 100_000
"""The length from which a reply is checked in a thread, so that other requests continue."""


MAX_KEPT_CHECKS = 1 << 14
"""Checks of different cases that are kept; an eval set may have any number of them."""


class ResponseSettings(VerifierSettings, frozen=True, kw_only=True):
    """What a case says to the verifier `response`."""

    expect: dict[str, Any] = {}
    """The check that a right answer meets, such as `{type = "json", schema = {...}}`."""


class ResponseVerifier:
    """Holds a reply against the checks of `verify.expect`, or against the case's target in one of three styles."""

    settings = ResponseSettings
    version = "response 9"
    at_once = processor_count()
    runs_code = False

    def __init__(self, sandbox: Sandbox) -> None:  # noqa: ARG002  every verifier is made alike
        """Text is only read, so the sandbox is not needed."""
        self.version = rules_version(type(self).version)
        self._checks: dict[str, ResponseCheck] = {}

    def check(self, case: Case) -> None:
        refusal_rules()  # so that a file of rules that cannot be used is refused before anybody is asked
        self._check(case)

    async def verify(self, case: Case, answer: Answer) -> Finding:
        check = self._check(case)
        if len(answer.text) < THREADED_REPLY_CHARACTERS:
            found = classify_answer(answer, check)
        else:
            found = await asyncio.to_thread(classify_answer, answer, check)
        return Finding(
            passed=found.passed,
            score=found.score,
            label="" if found.passed else found.primary,
            reason="" if found.passed or not found.details else found.details[0].what,
            evidence=found.details,
        )

    async def close(self) -> None:
        """Nothing to release."""

    def _check(self, case: Case) -> ResponseCheck:
        key = case.tests_digest
        if key not in self._checks:
            if len(self._checks) >= MAX_KEPT_CHECKS:
                # every attempt at all cases comes before the next one at any, so that no check is likelier to be needed than another
                self._checks.clear()
            self._checks[key] = case_check(case)
        return self._checks[key]


def case_check(case: Case) -> ResponseCheck:
    """The check that a case declares, by a table or by its target."""
    style = case.verify.style
    if ResponseSettings.of(case).expect:
        if style:
            raise VerifierError("verify.style and verify.expect both say how; keep one of them")
        return declared_check(ResponseSettings.of(case).expect, "verify.expect")
    if style not in ("", *TARGET_STYLES):
        raise VerifierError(f"unknown style {short_quote(style)} ({did_you_mean(style[:80], TARGET_STYLES)})")
    if not case.target:
        raise VerifierError(
            'nothing to check the reply against; give the case a target, or verify.expect with a "type"'
        )
    if style == "regex":
        return expected_response_check(case.target)
    if style == "exact":
        return declared_check({"type": "exact", "value": case.target.strip() or case.target, "strip": True}, "target")
    return declared_check({"type": "contains", "value": case.target}, "target")
