"""What people write for a request and a file may hold: a system prompt, and the form of replies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import InputError


def text_or_file(given: str | Path | None) -> str:
    """The text itself, or that of the file it names."""
    if not given:
        return ""
    try:
        return Path(given).read_text("utf-8") if Path(given).is_file() else str(given)
    except (OSError, ValueError):
        return str(given)


def response_format(given: str | Path | Mapping[str, Any], word: str) -> dict[str, Any]:
    """What replies are held to: `json`, a JSON Schema or its file, in the words of OpenAI's format; `word` is how the user calls it."""
    if given == "json":
        return {"type": "json_object"}
    schema: Any = given
    if isinstance(given, str | Path):
        try:
            schema = msgspec.json.decode(Path(given).read_bytes(), type=dict)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or f"not a JSON Schema: {error}"
            raise InputError(
                f"{word} {given}: {reason}; write json, or the name of a file with a JSON Schema"
            ) from None
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": True}}
