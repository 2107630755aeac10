"""Response bodies as servers really send them: JSON with odd characters and numbers, whole or as the events of a stream."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from steelyard.records import TOKEN_COUNT_FIELDS, Answer, Cost, ToolCall
from steelyard.records.bounds import is_bounded

MAX_INTEGER_DIGITS = 400
"""Digits of a number that are read at all; beyond that it is infinite to us."""
STREAM_START_PATTERN = re.compile(rb"\s*(?:data|event|id|retry)?:")
STREAM_END = "[DONE]"


def storable_text(text: str) -> str:
    r"""The text with U+FFFD in place of each half of a surrogate pair, which cannot be stored.

    >>> storable_text("a\ud83d b"), storable_text("\ud83d\ude00")
    ('a\ufffd b', '\U0001f600')
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def json_value(body: bytes) -> Any:
    """The value of a JSON text, read leniently: a broken character becomes U+FFFD, and NaN is a number.

    Raises ValueError where it is no JSON.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        try:
            lenient = json.loads(body.decode("utf-8-sig", "replace"), parse_int=_integer, strict=False)
            return storable(lenient)
        except (ValueError, RecursionError):
            raise ValueError(str(error)) from None
    except RecursionError as error:
        raise ValueError(str(error)) from None


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else math.inf


def storable(value: Any) -> Any:
    """The value with all its texts as they can be stored."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    return value


def is_event_stream(body: bytes) -> bool:
    """Whether a body is a stream of server-sent events; none was asked for, but some servers know nothing else."""
    return STREAM_START_PATTERN.match(body) is not None


def stream_events(body: bytes) -> list[dict[str, Any]]:
    """The objects in the events of a stream; raises ValueError where one is not whole."""
    events = []
    for block in re.split(rb"\r?\n\r?\n|\r\r", body):
        lines = (line for line in re.split(rb"\r\n|\n|\r", block) if line.startswith(b"data:"))
        data = b"\n".join(line.removeprefix(b"data:").strip() for line in lines)
        if data and data != STREAM_END.encode():
            events.append(as_dict(json_value(data)))
    return events


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def content_text(content: Any) -> str:
    """The text of a message's content: a string, or a list of parts; what is neither, as servers send that read JSON for us, is JSON again.

    >>> content_text([{"type": "text", "text": "a"}, {"type": "image_url"}, "b"]), content_text({"status": "ok"}), content_text(5)
    ('ab', '{"status": "ok"}', '5')
    """
    if isinstance(content, list):
        return "".join(map(content_text, content))
    if isinstance(content, dict) and ("text" in content or "type" in content):
        return content_text(content.get("text"))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)


def tool_call(value: Any) -> ToolCall:
    """A tool call in the formats of OpenAI, Anthropic and Ollama."""
    call = as_dict(value)
    function = as_dict(call.get("function")) or call
    arguments = function.get("arguments", function.get("input"))
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(
        name=str(function.get("name") or ""), arguments=arguments, id=str(call.get("id") or call.get("call_id") or "")
    )


class LenientNumbers:
    """The numbers of a response; one that cannot be is None, with a note."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @property
    def note(self) -> str:
        return "; ".join(self.notes)

    def tokens(self, name: str, value: Any) -> int | None:
        """A count of tokens."""
        number = self._number(name, value, "no count of tokens")
        return None if number is None else int(number)

    def cost(self, name: str, value: Any, source: str) -> Cost | None:
        """A number of dollars."""
        if isinstance(value, dict) and "total_cost" in value:  # Perplexity
            value = value["total_cost"]
        number = self._number(name, value, "no cost")
        return None if number is None else Cost(usd=number, source=source)

    def seconds(self, name: str, value: Any) -> float | None:
        """A span of time; None where it is not known."""
        return self._number(name, value, "no time")

    def _number(self, name: str, value: Any, what: str) -> float | None:
        if value is None:
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if is_bounded(number):
            return number
        self.notes.append(f"{name} is {str(value)[:40]}, which is {what}")
        return None


def sound_answer(returned: Any) -> Answer:
    """What a provider returned, as it can be stored: text without half characters, numbers that can be."""
    if not isinstance(returned, Answer):
        raise TypeError(f"it returned {type(returned).__name__}, not Answer")
    numbers = LenientNumbers()
    cost = returned.cost
    sound = msgspec.structs.replace(
        returned,
        text=storable_text(returned.text),
        error=storable_text(returned.error),
        reasoning=storable_text(returned.reasoning),
        transcript=storable_text(returned.transcript),
        **{name: numbers.tokens(name, getattr(returned, name)) for name in TOKEN_COUNT_FIELDS},
        cost=cost if cost is None or numbers.cost("cost", cost.usd, cost.source) else None,
        latency=numbers.seconds("latency", returned.latency),
    )
    through_cache = (sound.cached_tokens or 0) + (sound.cache_write_tokens or 0)
    if through_cache > (sound.input_tokens if sound.input_tokens is not None else math.inf):
        # they would make the rest of the input cost less than nothing
        numbers.notes.append("cached_tokens are more than the input tokens that they are part of")
        sound = msgspec.structs.replace(sound, cached_tokens=None, cache_write_tokens=None, cache_write_1h_tokens=None)
    note = "; ".join(filter(None, (returned.note, numbers.note)))
    return msgspec.structs.replace(sound, note=note)
