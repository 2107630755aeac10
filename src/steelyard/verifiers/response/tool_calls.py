"""Checks of the tool calls that a model requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.errors import VerifierError
from steelyard.records import Evidence, ToolCall
from steelyard.text import short_quote
from steelyard.verifiers.response.json import JsonCheck
from steelyard.verifiers.response.judged import FAIL, PASS, CheckTable, ResponseCheckResult, check_result
from steelyard.verifiers.response.schema import compile_schema

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
