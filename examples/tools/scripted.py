"""Stand-ins for the models of examples/tools/orders.toml, so that it can be run without a key."""

from __future__ import annotations

import json
import re
from typing import Any

TOKENS = {"input_tokens": 120, "output_tokens": 15}


def _call(name: str, number: str) -> dict[str, Any]:
    wanted = {"name": name, "arguments": json.dumps({"number": number})}
    return {"text": "", "finish": "tool_calls", "tool_calls": [wanted], **TOKENS}


def assistant(prompt: str, attempt: Any) -> dict[str, Any]:
    """Answers as a model with tools does: it calls one, reads its result, and then says something."""
    number = re.findall(r"A-\d+", prompt)[0]
    results = [message.text for message in attempt.messages if message.role == "tool"]
    if not results:
        return _call("find_order", number)
    if "money back" not in prompt:
        return {"text": f"Your order is in {json.loads(results[0])['place']}.", **TOKENS}
    if len(results) == 1:
        return _call("refund", number)
    return {"text": "Your money was already paid back.", **TOKENS}


def customer(prompt: str) -> dict[str, Any]:
    """Plays the user: asks once more, and then is content."""
    return {"text": "[END]" if "Are you sure?" in prompt else "Are you sure?", **TOKENS}
