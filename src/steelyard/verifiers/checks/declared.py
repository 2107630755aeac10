"""The list of checks of a case, read from data once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from steelyard.errors import VerifierError, did_you_mean
from steelyard.protocols import Sandbox
from steelyard.records import Answer, Case, VerifierSettings
from steelyard.text import short_quote
from steelyard.verifiers.checks.outcome import CheckOutcome, ListedCheck, MeasuredCheck, MeasuredFact
from steelyard.verifiers.checks.rubric import ReplyJudges, RubricCheck, rubric_check
from steelyard.verifiers.checks.scripts import ScriptCheck, script_check
from steelyard.verifiers.checks.similar import Embedder, similar_check
from steelyard.verifiers.checks.text import TEXT_CHECK_KEYS, text_check
from steelyard.verifiers.checks.trace import TRACE_CHECKS
from steelyard.verifiers.response.judged import CheckTable

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
