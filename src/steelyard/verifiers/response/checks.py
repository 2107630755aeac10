"""What a case asks of a response: a tree of checks, read from data once and applied to any text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec.structs import replace

from steelyard.errors import VerifierError, did_you_mean
from steelyard.records import Evidence, ToolCall
from steelyard.text import short_quote
from steelyard.verifiers.response.csv import csv_check
from steelyard.verifiers.response.json import JsonCheck, json_check
from steelyard.verifiers.response.judged import (
    FAIL,
    MAX_EVIDENCE_PIECES,
    PASS,
    POLICY_VIOLATION,
    WRONG_FORMAT,
    CheckTable,
    ResponseCheck,
    ResponseCheckResult,
    check_result,
)
from steelyard.verifiers.response.language import language_check
from steelyard.verifiers.response.leaks import none_of_check
from steelyard.verifiers.response.markup import html_check, xml_check
from steelyard.verifiers.response.refusals import RefusalCheck, refusal_check
from steelyard.verifiers.response.schema import compile_schema
from steelyard.verifiers.response.text import (
    ContainsCheck,
    RegexCheck,
    compile_re2,
    contains_check,
    exact_check,
    max_length_check,
    normal_form_check,
    number_check,
    one_of_check,
    regex_check,
)
from steelyard.verifiers.response.unicode import printable_excerpt

MAX_NAMED_CALLS = 5
"""Calls that a sentence names."""


@dataclass(frozen=True)
class ToolCallCheck:
    """The reply calls this tool, with such arguments; of several calls of it one is enough."""

    rule: str
    name: str
    arguments: JsonCheck
    calls: tuple[ToolCall, ...] = ()
    """Those of the reply that is judged: a text does not show them."""
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:  # noqa: ARG002  what a reply says beside its calls does not matter here
        found = [self.arguments.judge(call.arguments or "{}") for call in self.calls if call.name == self.name]
        if not found:
            others = ", ".join(short_quote(call.name) for call in self.calls[:MAX_NAMED_CALLS])
            what = f"the reply does not call {short_quote(self.name)}" + (f" but {others}" if others else "")
            return check_result(FAIL, Evidence(rule=self.rule, what=what))
        best = next((one for one in found if one.passed), found[0])
        (why,) = best.details
        what = f"the reply calls {short_quote(self.name)}" + (
            "" if best.passed else f", but of its arguments: {why.what}"
        )
        detail = Evidence(
            rule=self.rule, what=what, matched=why.matched, schema_path=why.schema_path, value_path=why.value_path
        )
        return check_result(PASS if best.passed else best.primary, detail)


def tool_call_check(table: CheckTable) -> ToolCallCheck:
    """A call by name, with arguments that hold given values, or meet a JSON Schema."""
    name = table.text("name")
    values, schema = table.take("arguments"), table.take("schema")
    if values is not None and schema is not None:
        raise table.wrong("schema", "arguments and schema both say what the arguments are; keep one of them")
    if values is not None:
        if not isinstance(values, dict):
            raise table.wrong("arguments", 'expected a table such as {city = "Paris"}')
        properties = {key: {"const": value} for key, value in values.items()}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
    try:
        known = compile_schema({"type": "object"} if schema is None else schema)
    except ValueError as error:
        raise VerifierError(f"{table.path}.schema: {error}") from None
    return ToolCallCheck(table.path, name, JsonCheck(table.path, fenced=False, schema=known))


MAX_CHECK_NESTING = 32
"""Checks within checks."""
MAX_CHECKS_PER_CASE = 1000
"""Checks of one case."""

WORST_FIRST = {POLICY_VIOLATION: 0, WRONG_FORMAT: 1, FAIL: 2, PASS: 3}
"""What decides among several that must all hold: a reply in the wrong format cannot be right or wrong."""
UNSUPPORTED_BY_RE2 = re.compile(r"\(\?(?:[=!>(]|<[=!])|\\[1-9]")
"""What only somebody who means a regular expression writes, and RE2 does not know: "C++" and "(sic" are plain text."""
NEAREST_FIRST = {PASS: 0, POLICY_VIOLATION: 1, FAIL: 2, WRONG_FORMAT: 3}
"""What decides among several of which one must hold: the alternative that came nearest, but a violation is always reported."""


@dataclass(frozen=True)
class AllOfCheck:
    """Every part holds; the score is the weighted mean of theirs, and 0 when a policy is violated."""

    rule: str
    parts: tuple[tuple[float, ResponseCheck], ...]

    @property
    def asks(self) -> bool:
        parts = [part for _, part in self.parts]
        return any(part.asks for part in parts) and not any(isinstance(part, RefusalCheck) for part in parts)

    def judge(self, text: str) -> ResponseCheckResult:
        found = [(weight, part.judge(text)) for weight, part in self.parts]
        primary = min((one.primary for _, one in found), key=lambda name: WORST_FIRST[name])
        mean = sum(weight * one.score for weight, one in found) / sum(weight for weight, _ in found)
        score = 1.0 if primary == PASS and mean > 1 - 1e-9 else 0.0 if primary == POLICY_VIOLATION else min(mean, 1.0)
        return ResponseCheckResult(
            primary=primary, score=score, details=_ranked_evidence([one for _, one in found], WORST_FIRST)
        )


@dataclass(frozen=True)
class AnyOfCheck:
    """One part holds at least; the score is the best of theirs, each in proportion to the largest weight."""

    rule: str
    parts: tuple[tuple[float, ResponseCheck], ...]

    @property
    def asks(self) -> bool:
        return all(part.asks for _, part in self.parts)

    def judge(self, text: str) -> ResponseCheckResult:
        found = [(weight, part.judge(text)) for weight, part in self.parts]
        primary = min((one.primary for _, one in found), key=lambda name: NEAREST_FIRST[name])
        largest = max(weight for weight, _ in found)
        score = max(weight * one.score for weight, one in found) / largest if primary != POLICY_VIOLATION else 0.0
        return ResponseCheckResult(
            primary=primary, score=score, details=_ranked_evidence([one for _, one in found], NEAREST_FIRST)
        )


def _ranked_evidence(found: list[ResponseCheckResult], order: dict[str, int]) -> tuple[Evidence, ...]:
    """The evidence of the parts, what decided first."""
    ranked = sorted(found, key=lambda one: order[one.primary])
    return tuple(piece for one in ranked for piece in one.details)[:MAX_EVIDENCE_PIECES]


@dataclass(frozen=True)
class NotCheck:
    """The part does not hold; where it does, a policy is violated if one is named."""

    rule: str
    part: ResponseCheck
    policy: str
    asks: ClassVar[bool] = False

    def judge(self, text: str) -> ResponseCheckResult:
        found = self.part.judge(text)
        if not found.passed:
            return check_result(
                PASS,
                Evidence(rule=self.rule, what="what must not hold does not hold"),
                *found.details[: MAX_EVIDENCE_PIECES - 1],
            )
        first = found.details[0] if found.details else Evidence(rule=self.rule, what="")
        what = f"what must not hold holds: {first.what}"
        leading = replace(first, rule=self.rule, what=what, policy=self.policy)
        return check_result(POLICY_VIOLATION if self.policy else FAIL, leading, *found.details[1:])


LEAF_CHECKS: dict[str, Callable[[CheckTable], ResponseCheck]] = {
    "contains": contains_check,
    "csv": csv_check,
    "exact": exact_check,
    "html": html_check,
    "json": json_check,
    "language": language_check,
    "max_length": max_length_check,
    "none_of": none_of_check,
    "normalised": normal_form_check,
    "number": number_check,
    "one_of": one_of_check,
    "refusal": refusal_check,
    "regex": regex_check,
    "tool_call": tool_call_check,
    "xml": xml_check,
}
CHECK_TYPES = (*LEAF_CHECKS, "all", "any", "not")


def declared_check(data: object, path: str = "expect") -> ResponseCheck:
    """The check that a table declares; raises a VerifierError with one sentence and the path if it is invalid."""
    return _check(CheckTable(data, path), 1, [MAX_CHECKS_PER_CASE])


def with_tool_calls(check: ResponseCheck, calls: tuple[ToolCall, ...]) -> ResponseCheck:
    """The check for a reply that calls tools, which its text does not show."""
    if isinstance(check, ToolCallCheck):
        return dataclasses.replace(check, calls=calls)
    if isinstance(check, AllOfCheck | AnyOfCheck):
        return dataclasses.replace(
            check, parts=tuple((weight, with_tool_calls(part, calls)) for weight, part in check.parts)
        )
    if isinstance(check, NotCheck):
        return dataclasses.replace(check, part=with_tool_calls(check.part, calls))
    return check


def expected_response_check(text: str) -> ResponseCheck:
    """The check of an `expected_response`: searched as a regular expression, or as plain text when it is not one."""
    if not text:
        raise VerifierError("expected_response: must not be empty")
    try:
        return RegexCheck("expected_response", compile_re2(text), whole=False)
    except ValueError as error:
        if UNSUPPORTED_BY_RE2.search(text):
            detail = f"RE2 cannot use this regular expression: {printable_excerpt(str(error))}"
            raise VerifierError(f"expected_response: {detail}") from None
        return ContainsCheck("expected_response", (text,), casefold=False)


def _check(table: CheckTable, depth: int, left: list[int], *, is_part: bool = False) -> ResponseCheck:
    left[0] -= 1
    if depth > MAX_CHECK_NESTING or left[0] < 0:
        raise VerifierError(
            f"{table.path}: more than {MAX_CHECK_NESTING} checks within checks, or {MAX_CHECKS_PER_CASE} in all"
        )
    kind = table.text("type")
    if kind not in CHECK_TYPES:
        raise table.wrong("type", f"unknown check {short_quote(kind)} ({did_you_mean(kind[:80], CHECK_TYPES)})")
    if is_part:
        table.number("weight", 1)
    found: ResponseCheck
    if kind == "not":
        found = NotCheck(
            table.path,
            _check(CheckTable(table.required("check"), f"{table.path}.check"), depth + 1, left),
            table.text("policy", ""),
        )
    elif kind in ("all", "any"):
        parts = _parts(table, depth, left)
        found = AllOfCheck(table.path, parts) if kind == "all" else AnyOfCheck(table.path, parts)
    else:
        found = LEAF_CHECKS[kind](table)
    table.close()
    return found


def _parts(table: CheckTable, depth: int, left: list[int]) -> tuple[tuple[float, ResponseCheck], ...]:
    """The checks of a combination, with their weights."""
    given: Any = table.required("checks")
    if not isinstance(given, list | tuple) or not given:
        raise table.wrong("checks", "expected a list of checks that is not empty")
    inner = [CheckTable(item, f"{table.path}.checks[{position}]") for position, item in enumerate(given)]
    parts = tuple((float(item.number("weight", 1)), _check(item, depth + 1, left, is_part=True)) for item in inner)
    if not 0 < sum(weight for weight, _ in parts) < float("inf"):
        raise table.wrong("checks", "one weight at least must be above 0, and their sum a finite number")
    return parts
