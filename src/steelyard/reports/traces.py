"""The turns of a conversation as a person reads them."""

from __future__ import annotations

from typing import NamedTuple

from steelyard.records import Answer, Turn
from steelyard.reports.figures import money, seconds
from steelyard.text import line


class TurnText(NamedTuple):
    """One turn in words."""

    head: str
    """Who spoke, and what it took."""
    body: str
    """What was said, the tools that were called and what they returned."""


def turn_texts(answer: Answer) -> list[TurnText]:
    """The turns of an answer; none where one request was all."""
    return [TurnText(_head(number, turn), _body(turn)) for number, turn in enumerate(answer.turns, 1)]


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


def _body(turn: Turn) -> str:
    pieces = [turn.text] if turn.text else []
    if turn.reasoning:
        pieces.insert(0, f"(reasoning) {turn.reasoning}")
    for place, call in enumerate(turn.tool_calls):
        pieces.append(f"{call.name}({call.arguments})")
        if place < len(turn.results):
            result = turn.results[place]
            pieces.append(f"  -> {'error: ' if result.is_error else ''}{result.content}")
    return "\n".join(pieces) or "(empty)"
