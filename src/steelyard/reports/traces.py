"""The turns of a conversation as a person reads them."""

from __future__ import annotations

from typing import NamedTuple

from steelyard.records import Answer, ToolCall, Turn
from steelyard.reports.figures import money, seconds
from steelyard.text import line


class TurnText(NamedTuple):
    """One turn in words."""

    head: str
    """Who spoke, and what it took."""
    body: str
    """What was said, the tools that were called and what they returned."""


def turn_texts(answer: Answer, limit: int | None = None) -> list[TurnText]:
    """The turns of an answer; none where one request was all. Arguments and results are cut after `limit` characters."""
    return [TurnText(_head(number, turn), _body(turn, limit)) for number, turn in enumerate(answer.turns, 1)]


def call_text(call: ToolCall, limit: int | None = None) -> str:
    """A call of a tool as a person reads it."""
    return f"{_shortened(call.name, limit)}({_shortened(call.arguments, limit)})"


def _shortened(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit:,} more characters)"


def _head(number: int, turn: Turn) -> str:
    who = (
        ""
        if turn.role == "assistant"
        else " · the user, played by " + line(turn.model, 80)
        if turn.model
        else " · user"
    )
    facts = [
        "" if turn.input_tokens is None else f"{turn.input_tokens:,} tokens in",
        "" if turn.output_tokens is None else f"{turn.output_tokens:,} out",
        "" if turn.cost is None else money(turn.cost.usd),
        "" if turn.seconds is None else seconds(turn.seconds),
        "" if turn.finish in ("stop", "tool_calls") else f"finish {line(turn.finish, 40)}",
    ]
    return f"Turn {number}{who}" + "".join(f" · {fact}" for fact in facts if fact)


def _body(turn: Turn, limit: int | None) -> str:
    pieces = [turn.text] if turn.text else []
    if turn.reasoning:
        pieces.insert(0, f"(reasoning) {turn.reasoning}")
    for place, call in enumerate(turn.tool_calls):
        pieces.append(call_text(call, limit))
        if place < len(turn.results):
            result = turn.results[place]
            pieces.append(f"  -> {'error: ' if result.is_error else ''}{_shortened(result.content, limit)}")
    return "\n".join(pieces) or "(empty)"
