"""Answers judged by a list of checks: one test for each, and a weighted score."""

from __future__ import annotations

import copy
import math
from typing import Self

from steelyard.errors import VerifierError
from steelyard.protocols import FailureLabel, Sandbox
from steelyard.records import Answer, Case, Evidence, Finding, Test
from steelyard.sandbox.processors import processor_count
from steelyard.verifiers.checks.declared import CheckList, CheckListSettings, WeightedCheck, declared_check_list
from steelyard.verifiers.checks.outcome import CheckOutcome
from steelyard.verifiers.checks.rubric import ReplyJudges
from steelyard.verifiers.checks.similar import Embedder
from steelyard.verifiers.response.judged import MAX_EVIDENCE_PIECES
from steelyard.verifiers.response.verifier import NO_ANSWER_CLASSES, TRUNCATED, answer_start

SCORE_TOLERANCE = 1e-9
"""How far a mean of weights may be below the threshold because of rounding."""

MAX_WAITING_ANSWERS = 32
"""Concurrent answers whose checks run no code: their time is spent on waiting for judges and embeddings."""


class ChecksVerifier:
    """Holds an answer against every check of its case."""

    settings = CheckListSettings
    version = "checks 2"
    at_once = MAX_WAITING_ANSWERS
    runs_code = False

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._lists: dict[str, CheckList] = {}
        self._embedder: Embedder | None = None
        self._judges: ReplyJudges | None = None

    def use_embedder(self, embedder: Embedder) -> None:
        """Take over who turns texts into vectors for the check `similar`."""
        self._embedder = embedder

    def judged_by(self, judges: ReplyJudges) -> Self:
        """The same verifier, for a reply about which these judges can be asked."""
        other = copy.copy(self)
        other._judges = judges
        return other

    def check(self, case: Case) -> None:
        self._list(case)

    async def verify(self, case: Case, answer: Answer) -> Finding:
        checks = self._list(case)
        if failure := NO_ANSWER_CLASSES.get(answer.finish):
            label, reason = failure
            return Finding(passed=False, score=0.0, label=label, reason=reason)
        start = answer_start(answer.text)
        if start is None or answer.finish == "length":
            what = (
                "the reply was cut off at the token limit"
                if start is not None
                else "the reply ends before its thinking does"
            )
            return Finding(passed=False, score=0.0, label=TRUNCATED, reason=what)
        text = answer.text[start:]
        return _finding(checks, [await one.outcome(case, answer, text, self._judges) for one in checks.checks])

    async def close(self) -> None:
        if self._embedder is not None:
            await self._embedder.close()

    def _list(self, case: Case) -> CheckList:
        key = case.tests_digest
        if key not in self._lists:
            found = declared_check_list(case, self._sandbox, self._embedder)
            if found.runs_code and not self.runs_code:
                raise VerifierError(f'checks that are code need verify.kind = "{ScriptedChecksVerifier.kind}"')
            self._lists[key] = found
        return self._lists[key]


class ScriptedChecksVerifier(ChecksVerifier):
    """The same for lists with checks that are code, which need a sandbox."""

    kind = "scripted-checks"
    version = "scripted-checks 2"
    at_once = processor_count()
    runs_code = True


def _finding(checks: CheckList, outcomes: list[CheckOutcome]) -> Finding:
    pairs = list(zip(checks.checks, outcomes, strict=True))
    weights = math.fsum(one.weight for one, _ in pairs)
    score = math.fsum(one.weight * found.score for one, found in pairs) / weights
    unmet = [(one, found) for one, found in pairs if one.weight and not found.passed]
    passed = not unmet if checks.threshold is None else score >= checks.threshold - SCORE_TOLERANCE
    reason = ""
    if not passed and unmet:
        more = f" (and {len(unmet) - 1} more)" if len(unmet) > 1 else ""
        reason = f"{unmet[0][0].name}: {unmet[0][1].message}{more}"
    elif not passed:
        reason = f"a score of {score:.3g}, below {checks.threshold:g}"
    return Finding(
        passed=passed,
        score=1.0 if score > 1 - SCORE_TOLERANCE else score,
        tests=tuple(_test(one, found) for one, found in pairs),
        label="" if passed else FailureLabel.WRONG_ANSWER,
        reason=reason,
        evidence=_evidence(pairs),
    )


def _test(one: WeightedCheck, found: CheckOutcome) -> Test:
    if found.passed:
        return Test(name=one.name, outcome="passed")
    if not one.weight:
        return Test(name=one.name, outcome="ignored", message=f"does not hold, and does not count: {found.message}")
    return Test(name=one.name, outcome="failed", message=found.message)


def _evidence(pairs: list[tuple[WeightedCheck, CheckOutcome]]) -> tuple[Evidence, ...]:
    """The evidence of all checks, of those that do not hold first."""
    ranked = sorted(pairs, key=lambda pair: pair[1].passed)
    return tuple(piece for _, found in ranked for piece in found.evidence)[:MAX_EVIDENCE_PIECES]
