"""Answers that are text: classified by what they are, and right when they meet the checks of their case."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from steelyard.errors import VerifierError, did_you_mean
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.processors import processor_count
from steelyard.text import short_quote
from steelyard.verifiers.response.checks import declared_check, expected_response_check
from steelyard.verifiers.response.classes import classify_answer

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox
    from steelyard.verifiers.response.judged import ResponseCheck

TARGET_STYLES = ("contains", "exact", "regex")
THREADED_REPLY_CHARACTERS = 100_000
"""Characters from which on a reply is looked at in a thread, so that asking others goes on meanwhile."""


class ResponseVerifier:
    """Holds a reply against the checks of `verify.expect`, or against the case's target in one of three styles."""

    version = "response 2"
    at_once = processor_count()
    runs_code = False

    def __init__(self, sandbox: Sandbox) -> None:  # noqa: ARG002  every verifier is made alike
        """Text is only read, so the sandbox is not needed."""
        self._checks: dict[str, ResponseCheck] = {}

    def check(self, case: Case) -> None:
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
        """Nothing is kept that would have to be let go."""

    def _check(self, case: Case) -> ResponseCheck:
        key = case.tests_digest
        if key not in self._checks:
            self._checks[key] = _case_check(case)
        return self._checks[key]


def _case_check(case: Case) -> ResponseCheck:
    """The check that a case declares, by a table or by its target."""
    style = case.verify.style
    if case.verify.expect:
        if style:
            raise VerifierError("verify.style and verify.expect both say how; keep one of them")
        return declared_check(case.verify.expect, "verify.expect")
    if style not in ("", *TARGET_STYLES):
        raise VerifierError(f"unknown style {short_quote(style)} ({did_you_mean(style[:80], TARGET_STYLES)})")
    if not case.target:
        raise VerifierError('nothing to hold the reply against; give the case a target, or verify.expect with a "type"')
    if style == "regex":
        return expected_response_check(case.target)
    if style == "exact":
        return declared_check({"type": "exact", "value": case.target.strip() or case.target, "strip": True}, "target")
    return declared_check({"type": "contains", "value": case.target}, "target")
