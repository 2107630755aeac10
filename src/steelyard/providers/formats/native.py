"""Turns as providers want them back: reasoning models refuse the results of tools without what they thought before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.providers.bodies import as_dict

REASONING_FIELDS = {"deepseek": "reasoning_content", "openrouter": "reasoning_details"}
"""By dialect of chat completions where a message holds its reasoning, which has to come back with it."""


def chat_native(message: dict[str, Any], calls: Sequence[Any], dialect: str) -> tuple[dict[str, Any], ...]:
    """A message of chat completions that calls tools, to be sent back; empty if our own words say as much.

    A call keeps what its server added to it, such as a signature.
    """
    field = REASONING_FIELDS.get(dialect, "")
    known = [as_dict(call) for call in calls]
    is_plain = all(call.keys() <= {"index", "id", "type", "function"} for call in known)
    if not calls or not all(call.get("id") for call in known) or (is_plain and not field):
        return ()
    kept = [{"type": "function"} | {key: value for key, value in call.items() if key != "index"} for call in known]
    said: dict[str, Any] = {"role": "assistant", "content": message.get("content"), "tool_calls": kept}
    if field == "reasoning_content":
        # there it has to be, even if it is empty
        said[field] = message.get(field) or ""
    elif field and message.get(field):
        said[field] = message[field]
    return (said,)
