"""What a case asks of a response: a tree of checks, read from data once and applied to any text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from steelyard.errors import VerifierError, nearest, shown
from steelyard.records import Evidence
from steelyard.verifiers.response.csv import csv
from steelyard.verifiers.response.json import json_check
from steelyard.verifiers.response.judged import (
    ENOUGH,
    FAIL,
    PASS,
    POLICY_VIOLATION,
    WRONG_FORMAT,
    Check,
    Judged,
    judged,
)
from steelyard.verifiers.response.language import language
from steelyard.verifiers.response.leaks import none_of
from steelyard.verifiers.response.markup import html, xml
from steelyard.verifiers.response.number import number
from steelyard.verifiers.response.refusals import refuses
from steelyard.verifiers.response.table import Table
from steelyard.verifiers.response.text import (
    Contains,
    Regex,
    compiled,
    contains,
    exact,
    max_length,
    normalised,
    one_of,
    regex,
)
from steelyard.verifiers.response.unicode import quoted

DEEPEST = 32
"""Checks within checks."""
LARGEST = 1000
"""Checks of one case."""

WORST_FIRST = {POLICY_VIOLATION: 0, WRONG_FORMAT: 1, FAIL: 2, PASS: 3}
"""What decides among several that must all hold: a reply in the wrong format cannot be right or wrong."""
BEYOND_RE2 = re.compile(r"\(\?(?:[=!>(]|<[=!])|\\[1-9]")
"""What only somebody who means a regular expression writes, and RE2 does not know: "C++" and "(sic" are plain text."""
NEAREST_FIRST = {PASS: 0, POLICY_VIOLATION: 1, FAIL: 2, WRONG_FORMAT: 3}
"""What decides among several of which one must hold: the alternative that came nearest, but a violation is told."""


@dataclass(frozen=True)
class All:
    """Every part holds; the score is the weighted mean of theirs, and 0 when a policy is violated."""

    rule: str
    parts: tuple[tuple[float, Check], ...]

    def judge(self, text: str) -> Judged:
        found = [(weight, part.judge(text)) for weight, part in self.parts]
        primary = min((one.primary for _, one in found), key=lambda name: WORST_FIRST[name])
        mean = sum(weight * one.score for weight, one in found) / sum(weight for weight, _ in found)
        score = 1.0 if primary == PASS and mean > 1 - 1e-9 else 0.0 if primary == POLICY_VIOLATION else min(mean, 1.0)
        return Judged(primary=primary, score=score, details=_sorted([one for _, one in found], WORST_FIRST))


@dataclass(frozen=True)
class AnyOf:
    """One part holds at least; the score is the best of theirs, each in proportion to the largest weight."""

    rule: str
    parts: tuple[tuple[float, Check], ...]

    def judge(self, text: str) -> Judged:
        found = [(weight, part.judge(text)) for weight, part in self.parts]
        primary = min((one.primary for _, one in found), key=lambda name: NEAREST_FIRST[name])
        largest = max(weight for weight, _ in found)
        score = max(weight * one.score for weight, one in found) / largest if primary != POLICY_VIOLATION else 0.0
        return Judged(primary=primary, score=score, details=_sorted([one for _, one in found], NEAREST_FIRST))


def _sorted(found: list[Judged], order: dict[str, int]) -> tuple[Evidence, ...]:
    """The evidence of the parts, what decided first."""
    ranked = sorted(found, key=lambda one: order[one.primary])
    return tuple(piece for one in ranked for piece in one.details)[:ENOUGH]


@dataclass(frozen=True)
class Not:
    """The part does not hold; where it does, a policy is violated if one is named."""

    rule: str
    part: Check
    policy: str

    def judge(self, text: str) -> Judged:
        found = self.part.judge(text)
        if not found.passed:
            return judged(
                PASS, Evidence(rule=self.rule, what="what must not hold does not hold"), *found.details[: ENOUGH - 1]
            )
        first = found.details[0] if found.details else Evidence(rule=self.rule, what="")
        what = f"what must not hold holds: {first.what}"
        told = replace(first, rule=self.rule, what=what, policy=self.policy)
        return judged(POLICY_VIOLATION if self.policy else FAIL, told, *found.details[1:])


LEAVES: dict[str, Callable[[Table], Check]] = {
    "contains": contains,
    "csv": csv,
    "exact": exact,
    "html": html,
    "json": json_check,
    "language": language,
    "max_length": max_length,
    "none_of": none_of,
    "normalised": normalised,
    "number": number,
    "one_of": one_of,
    "refusal": refuses,
    "regex": regex,
    "xml": xml,
}
TYPES = (*LEAVES, "all", "any", "not")


def check(data: object, path: str = "expect") -> Check:
    """The check that a table declares; VerifierError with one sentence, and the path, for anything else."""
    return _check(Table(data, path), 1, [LARGEST])


def expected(text: str) -> Check:
    """The check of an `expected_response`: searched as a regular expression, or as plain text when it is not one."""
    if not text:
        raise VerifierError("expected_response: must not be empty")
    try:
        return Regex("expected_response", compiled(text), whole=False)
    except ValueError as error:
        if BEYOND_RE2.search(text):
            said = f"RE2 cannot use this regular expression: {quoted(str(error))}"
            raise VerifierError(f"expected_response: {said}") from None
        return Contains("expected_response", (text,), casefold=False)


def _check(table: Table, depth: int, left: list[int], *, is_part: bool = False) -> Check:
    left[0] -= 1
    if depth > DEEPEST or left[0] < 0:
        raise VerifierError(f"{table.path}: more than {DEEPEST} checks within checks, or {LARGEST} in all")
    kind = table.text("type")
    if kind not in TYPES:
        raise table.wrong("type", f"unknown check {shown(kind)} ({nearest(kind[:80], TYPES)})")
    if is_part:
        table.number("weight", 1)
    found: Check
    if kind == "not":
        found = Not(
            table.path,
            _check(Table(table.required("check"), f"{table.path}.check"), depth + 1, left),
            table.text("policy", ""),
        )
    elif kind in ("all", "any"):
        parts = _parts(table, depth, left)
        found = All(table.path, parts) if kind == "all" else AnyOf(table.path, parts)
    else:
        found = LEAVES[kind](table)
    table.close()
    return found


def _parts(table: Table, depth: int, left: list[int]) -> tuple[tuple[float, Check], ...]:
    """The checks of a combination, with their weights."""
    given: Any = table.required("checks")
    if not isinstance(given, list | tuple) or not given:
        raise table.wrong("checks", "expected a list of checks that is not empty")
    inner = [Table(item, f"{table.path}.checks[{position}]") for position, item in enumerate(given)]
    parts = tuple((float(item.number("weight", 1)), _check(item, depth + 1, left, is_part=True)) for item in inner)
    if not 0 < sum(weight for weight, _ in parts) < float("inf"):
        raise table.wrong("checks", "one weight at least must be above 0, and their sum a finite number")
    return parts
