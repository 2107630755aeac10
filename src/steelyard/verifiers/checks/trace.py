"""Checks of the way to an answer: how many turns it took, and which tools were called in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from steelyard.errors import VerifierError, did_you_mean
from steelyard.records import Answer, Case
from steelyard.text import counted, short_quote
from steelyard.verifiers.checks.outcome import CheckOutcome, ListedCheck, plain_outcome
from steelyard.verifiers.response.judged import CheckTable

CallOrder = Literal["in order", "exact", "any order"]
MAX_NAMED_TOOLS = 20
"""Calls that a message names."""


@dataclass(frozen=True)
class CountCheck:
    """The trace of the answer has at most this many turns, tool calls or tool errors."""

    name: str
    what: str
    """What is counted: `turns`, `tool_calls` or `tool_errors`."""
    limit: float

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  the text does not matter
        if answer.exit_code is not None and not answer.turns:
            raise VerifierError(f"{self.name}: this agent did not report its turns")
        turns = [turn for turn in answer.turns if turn.role == "assistant"]
        if self.what == "turns":
            count, noun = len(turns) or 1, "turn"
        elif self.what == "tool_calls":
            count, noun = len(answer.all_tool_calls), "call of a tool"
        else:
            count = sum(result.is_error for turn in turns for result in turn.results)
            noun = "call of a tool that failed"
        many = {"call of a tool": "calls of tools", "call of a tool that failed": "calls of tools that failed"}
        return plain_outcome(f"it took {counted(count, noun, many.get(noun, 'turns'))}", passed=count <= self.limit)


@dataclass(frozen=True)
class CalledToolsCheck:
    """These tools were called: in this order with others between them, exactly so, or in any order."""

    name: str
    wanted: tuple[str, ...]
    order: CallOrder

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  the text does not matter
        called = [call.name for call in answer.all_tool_calls]
        if self.order == "exact":
            passed = called == [*self.wanted]
        elif self.order == "any order":
            passed = not Counter(self.wanted) - Counter(called)
        else:
            rest = iter(called)
            passed = all(name in rest for name in self.wanted)
        return plain_outcome(_called_text(called), passed=passed)


def _called_text(called: Sequence[str]) -> str:
    if not called:
        return "it calls no tool"
    more = f" and {len(called) - MAX_NAMED_TOOLS} more" if len(called) > MAX_NAMED_TOOLS else ""
    return f"it calls {', '.join(short_quote(name) for name in called[:MAX_NAMED_TOOLS])}{more}"


def _count_check(key: str, what: str) -> Callable[[CheckTable], ListedCheck]:
    def made(table: CheckTable) -> ListedCheck:
        table.required(key)
        limit = float(table.number(key, 0))
        return CountCheck(f"{what.replace('_', ' ')} below {limit:g}", what, limit)

    return made


def _called_tools_check(table: CheckTable) -> ListedCheck:
    wanted, order = table.texts("tool_calls"), table.text("order", "in order")
    if order not in get_args(CallOrder):
        raise table.wrong(
            "order", f"unknown order {short_quote(order)} ({did_you_mean(order[:80], get_args(CallOrder))})"
        )
    kind: CallOrder = "exact" if order == "exact" else "any order" if order == "any order" else "in order"
    return CalledToolsCheck(f"tool calls {', '.join(wanted)[:60]}", wanted, kind)


TRACE_CHECKS: dict[str, Callable[[CheckTable], ListedCheck]] = {
    "turns_below": _count_check("turns_below", "turns"),
    "tool_calls_below": _count_check("tool_calls_below", "tool_calls"),
    "tool_errors_below": _count_check("tool_errors_below", "tool_errors"),
    "tool_calls": _called_tools_check,
}
