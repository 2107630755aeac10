"""Answers judged by a list of checks: one test for each, and a weighted score."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from steelyard.errors import VerifierError, did_you_mean
from steelyard.protocols import FailureLabel, Sandbox
from steelyard.records import Answer, Case, Evidence, Finding, Test, VerifierSettings
from steelyard.sandbox.processors import processor_count
from steelyard.text import short_quote
from steelyard.verifiers.checks.outcome import CheckOutcome, ListedCheck, MeasuredCheck, MeasuredFact
from steelyard.verifiers.checks.rubric import ReplyJudges, RubricCheck, rubric_check
from steelyard.verifiers.checks.scripts import ScriptCheck, script_check
from steelyard.verifiers.checks.text import TEXT_CHECK_KEYS, Embedder, similar_check, text_check
from steelyard.verifiers.checks.trace import TRACE_CHECKS
from steelyard.verifiers.response.judged import MAX_EVIDENCE_PIECES, CheckTable
from steelyard.verifiers.response.verifier import NO_ANSWER_CLASSES, TRUNCATED, answer_start

MAX_LISTED_CHECKS = 1000
"""Checks of one case."""
SCRIPT_CHECK_KEYS = ("python", "python_code", "javascript", "javascript_code")
FACT_CHECKS: dict[str, Callable[[CheckTable], ListedCheck]] = {
    "latency_below": lambda table: _measured(table, "latency_below", "latency", "s"),
    "cost_below": lambda table: _measured(table, "cost_below", "cost", "USD"),
    **TRACE_CHECKS,
}
CHECK_KEYS = (*TEXT_CHECK_KEYS, *FACT_CHECKS, *SCRIPT_CHECK_KEYS, "similar", "rubric")
"""The keys of which each check has exactly one."""


class CheckListSettings(VerifierSettings, frozen=True, kw_only=True):
    """What a case says about its checks."""

    checks: tuple[dict[str, Any], ...] = ()
    """The checks; all must hold unless a weight or the threshold says otherwise."""
    threshold: float | None = None
    """The weighted mean from which on an answer is right although some check does not hold."""
    vars: dict[str, Any] = {}
    """The values that filled in the prompt, for checks that are code."""
    imported: str = ""
    """The tool whose file the checks are from; empty for eval sets of ours."""


@dataclass(frozen=True)
class WeightedCheck:
    """One check of a list, and its weight."""

    check: ListedCheck
    name: str
    weight: float
    is_negated: bool

    async def outcome(self, case: Case, answer: Answer, text: str, judges: ReplyJudges | None = None) -> CheckOutcome:
        """What it says, turned round where it is negated."""
        if isinstance(self.check, RubricCheck):
            found = await self.check.judged(case, text, judges)
        else:
            found = await self.check.outcome(case, answer, text)
        if not self.is_negated or found.is_error:
            return found
        return found._replace(passed=not found.passed, score=1 - found.score)


@dataclass(frozen=True)
class CheckList:
    """All checks of a case."""

    checks: tuple[WeightedCheck, ...]
    threshold: float | None

    @property
    def runs_code(self) -> bool:
        """Whether one of them is code."""
        return any(isinstance(one.check, ScriptCheck) for one in self.checks)


def declared_check_list(case: Case, sandbox: Sandbox, embedder: Embedder | None = None) -> CheckList:
    """The checks that a case declares; raises a VerifierError with one sentence and the path if they are invalid."""
    try:
        settings = CheckListSettings.of(case)
    except msgspec.ValidationError as error:
        raise VerifierError(f"checks: {error}") from None
    if not 0 < len(settings.checks) <= MAX_LISTED_CHECKS:
        raise VerifierError(f'checks: expected 1 to {MAX_LISTED_CHECKS} checks, such as [{{contains = "ok"}}]')
    checks = [
        _weighted(CheckTable(table, f"checks[{number}]"), settings, sandbox, embedder)
        for number, table in enumerate(settings.checks)
    ]
    if not 0 < sum(one.weight for one in checks) < float("inf"):
        raise VerifierError("checks: one weight at least must be above 0, and their sum a finite number")
    if settings.threshold is not None and not 0 <= settings.threshold <= 1:
        raise VerifierError("checks: the threshold is a number from 0 to 1")
    for one in checks:
        if isinstance(one.check, ScriptCheck):
            one.check.require_program()
    return CheckList(tuple(_with_distinct_names(checks)), settings.threshold)


def _measured(table: CheckTable, key: str, what: MeasuredFact, unit: str) -> MeasuredCheck:
    table.required(key)
    limit = float(table.number(key, 0))
    return MeasuredCheck(f"{what} below {limit:g} {unit}", what, limit)


def _weighted(
    table: CheckTable, settings: CheckListSettings, sandbox: Sandbox, embedder: Embedder | None
) -> WeightedCheck:
    keys = [key for key in CHECK_KEYS if key in table]
    if len(keys) != 1:
        raise VerifierError(f"{table.path}: {_which(table, keys)}")
    weight, is_negated = float(table.number("weight", 1)), table.flag("not")
    check: ListedCheck
    if keys[0] in TEXT_CHECK_KEYS:
        check = text_check(keys[0], table)
    elif keys[0] in FACT_CHECKS:
        check = FACT_CHECKS[keys[0]](table)
    elif keys[0] == "similar":
        check = similar_check(table, embedder)
    elif keys[0] == "rubric":
        check = rubric_check(table)
    else:
        check = script_check(keys[0], table, settings.vars, sandbox)
    table.close()
    return WeightedCheck(check, f"not {check.name}" if is_negated else check.name, weight, is_negated)


def _which(table: CheckTable, keys: list[str]) -> str:
    if keys:
        return f"{' and '.join(keys)} are two checks; write each in a separate table"
    given = next(iter(table.rest()), "")
    return f"unknown check {short_quote(str(given))} ({did_you_mean(str(given)[:80], CHECK_KEYS)})"


def _with_distinct_names(checks: list[WeightedCheck]) -> list[WeightedCheck]:
    """The checks, with a number appended to duplicate names."""
    seen: Counter[str] = Counter()
    named = []
    for one in checks:
        seen[one.name] += 1
        number = f" #{seen[one.name]}" if seen[one.name] > 1 else ""
        named.append(WeightedCheck(one.check, one.name + number, one.weight, one.is_negated))
    return named


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
        graded=(checks.threshold is None and any(found.is_graded for found in outcomes)) or None,
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
