"""Checks of a list that look at the text of the answer, or at the tools that it calls."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Evidence
from steelyard.text import short_quote
from steelyard.verifiers.checks.outcome import CheckOutcome
from steelyard.verifiers.response.checks import declared_check, with_tool_calls
from steelyard.verifiers.response.judged import (
    FAIL,
    PASS,
    CheckTable,
    ResponseCheck,
    ResponseCheckResult,
    check_result,
    evidence,
    value_type_description,
)

MAX_JSON_STARTS = 200
"""Places of a reply at which JSON is looked for."""


@dataclass(frozen=True)
class TextCheck:
    """A check of the text and the calls of tools alone."""

    name: str
    check: ResponseCheck

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  the question does not matter
        found = with_tool_calls(self.check, answer.all_tool_calls).judge(text)
        message = found.details[0].what if found.details else ""
        return CheckOutcome(found.passed, found.score, message, found.details)


@dataclass(frozen=True)
class StartsWithCheck:
    """The reply begins with the value."""

    rule: str
    value: str
    casefold: bool
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:
        given, value = (text.casefold(), self.value.casefold()) if self.casefold else (text, self.value)
        if given.startswith(value):
            return check_result(PASS, evidence(self.rule, "the reply begins with it", text, 0, len(self.value)))
        what = f"the reply does not begin with {short_quote(self.value)}"
        return check_result(FAIL, Evidence(rule=self.rule, what=what))


@dataclass(frozen=True)
class ContainsJsonCheck:
    """Somewhere in the reply stands a JSON object or list that meets the schema, if there is one."""

    rule: str
    whole: ResponseCheck
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:
        last = check_result(FAIL, Evidence(rule=self.rule, what="the reply holds no JSON object or list"))
        for start, end in _json_places(text):
            last = self.whole.judge(text[start:end])
            if last.passed:
                return check_result(PASS, evidence(self.rule, "the reply holds such JSON", text, start, end))
        return last


def _json_places(text: str) -> Iterator[tuple[int, int]]:
    """Where JSON objects and lists stand in a text, the outermost ones."""
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(MAX_JSON_STARTS):
        starts = [at for at in (text.find("{", position), text.find("[", position)) if at >= 0]
        if not starts:
            return
        try:
            _, end = decoder.raw_decode(text, min(starts))
        except (ValueError, RecursionError):
            position = min(starts) + 1
            continue
        yield min(starts), end
        position = end


def text_check(kind: str, table: CheckTable) -> TextCheck:
    """The check of the text that a table declares by its first key."""
    given = table.required(kind)
    name = f"{kind.replace('_', ' ')} {_shown(given)}" if kind != "type" else str(given)
    return TextCheck(name, _TEXT_CHECKS[kind](table, given))


def _shown(given: Any) -> str:
    if isinstance(given, bool):
        return ""
    if isinstance(given, dict):
        return "{...}"
    return short_quote(given)[:60] if isinstance(given, str) else json.dumps(given)[:60]


def _contains(table: CheckTable, given: Any) -> ResponseCheck:
    return _declared(table, {"type": "contains", "value": given, "casefold": table.flag("ignore_case")})


def _contains_any(table: CheckTable, given: Any) -> ResponseCheck:
    if not isinstance(given, list):
        raise table.wrong("contains_any", f"expected a list of texts, got {value_type_description(given)}")
    casefold = table.flag("ignore_case")
    parts = [{"type": "contains", "value": value, "casefold": casefold} for value in given]
    return _declared(table, {"type": "any", "checks": parts})


def _equals(table: CheckTable, given: Any) -> ResponseCheck:
    if not isinstance(given, str):
        return _declared(table, {"type": "json", "schema": {"const": given}})
    options = {"casefold": table.flag("ignore_case"), "strip": table.flag("strip")}
    return _declared(table, {"type": "one_of", "values": [given], **options}) if given else _empty(table)


def _empty(table: CheckTable) -> ResponseCheck:
    return _declared(table, {"type": "max_length", "characters": 0})


def _regex(table: CheckTable, given: Any) -> ResponseCheck:
    return _declared(table, {"type": "regex", "pattern": given, "ignore_case": table.flag("ignore_case")})


def _starts_with(table: CheckTable, given: Any) -> ResponseCheck:  # noqa: ARG001  every one is made alike
    return StartsWithCheck(f"{table.path}.starts_with", table.text("starts_with"), table.flag("ignore_case"))


def _json(table: CheckTable, given: Any) -> ResponseCheck:
    if given is not True:
        raise table.wrong("json", "write json = true, or json_schema = {...}")
    return _declared(table, {"type": "json", "fenced": table.flag("fenced")})


def _json_schema(table: CheckTable, given: Any) -> ResponseCheck:
    return _declared(table, {"type": "json", "schema": given, "fenced": table.flag("fenced")})


def _contains_json(table: CheckTable, given: Any) -> ResponseCheck:
    schema = {} if given is True else {"schema": given}
    return ContainsJsonCheck(f"{table.path}.contains_json", _declared(table, {"type": "json", **schema}))


def _tool_call(table: CheckTable, given: Any) -> ResponseCheck:
    wanted = {key: table.take(key) for key in ("arguments", "schema") if key in table}
    return _declared(table, {"type": "tool_call", "name": given, **wanted})


def _of_response(table: CheckTable, given: Any) -> ResponseCheck:  # noqa: ARG001  the table holds it
    return _declared(table, table.rest())


def _declared(table: CheckTable, data: dict[str, Any]) -> ResponseCheck:
    return declared_check(data, table.path)


_TEXT_CHECKS = {
    "contains": _contains,
    "contains_any": _contains_any,
    "equals": _equals,
    "regex": _regex,
    "starts_with": _starts_with,
    "json": _json,
    "json_schema": _json_schema,
    "contains_json": _contains_json,
    "tool_call": _tool_call,
    "type": _of_response,
}
TEXT_CHECK_KEYS = tuple(_TEXT_CHECKS)


DEFAULT_EMBEDDING_MODEL = "openai/text-embedding-3-small"
DEFAULT_SIMILARITY = 0.8


class Embedder(Protocol):
    """Someone who turns texts into vectors."""

    def require(self, model: str) -> None:
        """Raise VerifierError when no text could be given to this model."""
        ...

    async def vectors(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class SimilarCheck:
    """The reply means the same as one of the texts, according to an embedding model."""

    name: str
    texts: tuple[str, ...]
    at_least: float
    model: str
    embedder: Embedder

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  only the text counts
        if not text.strip():
            return CheckOutcome(False, 0.0, "the reply is empty")
        given, *wanted = await self.embedder.vectors(self.model, [text, *self.texts])
        best = max(_cosine(given, vector) for vector in wanted)
        message = f"a similarity of {best:.3f}, where {self.at_least:g} is asked for"
        return CheckOutcome(best >= self.at_least, min(1.0, max(0.0, best)), message, is_graded=True)


def _cosine(left: list[float], right: list[float]) -> float:
    """The cosine between two vectors; VerifierError where they cannot be compared."""
    lengths = math.hypot(*left) * math.hypot(*right)
    if len(left) != len(right) or not lengths or not math.isfinite(lengths):
        raise VerifierError("similar: the embedding model sent vectors that cannot be compared")
    return math.fsum(one * other for one, other in zip(left, right, strict=True)) / lengths


def similar_check(table: CheckTable, embedder: Embedder | None) -> SimilarCheck:
    """A text or several, how similar the reply must be, and the embedding model."""
    texts = table.texts("similar")
    at_least = float(table.number("at_least", DEFAULT_SIMILARITY))
    model = table.text("model", DEFAULT_EMBEDDING_MODEL)
    if embedder is None:
        raise VerifierError(f"{table.path}: similar needs embeddings, which are not available here")
    embedder.require(model)
    return SimilarCheck(f"similar to {short_quote(texts[0])[:60]}", texts, at_least, model, embedder)
