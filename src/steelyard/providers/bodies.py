"""Response bodies as servers really send them: JSON with odd characters and numbers, whole or as the events of a stream."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from steelyard.records import TOKEN_COUNT_FIELDS, Answer, Cost, ToolCall
from steelyard.records.base import is_bounded

MAX_INTEGER_DIGITS = 400
"""The maximum digits of a number; a longer one counts as infinite."""
STREAM_START_PATTERN = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
DATA_LINE_PATTERN = re.compile(rb"(?:\A|(?<=[\r\n]))[\xef\xbb\xbf \t]*data:([^\r\n]*)")
"""A line with data; before it may stand a mark of the encoding, or blanks."""
STREAM_END = b"[DONE]"
MAX_STREAM_EVENTS = 1 << 20
"""The maximum number of stream events that are read; no answer has that many tokens."""
EVENT_END_PATTERN = re.compile(rb"\r?\n\r?\n|\r\r")


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
    """The value of a JSON text, read leniently; raises ValueError where it is not JSON, or more than one value."""
    value, rest = leading_json_value(body)
    if rest:
        raise ValueError(f"something follows the JSON value: {rest[:40]!r}")
    return value


def leading_json_value(body: bytes) -> tuple[Any, str]:
    """The first value of a JSON text and what follows it, read leniently: a broken character becomes U+FFFD, and NaN is a number.

    Raises ValueError where it does not begin with a whole value.

    >>> leading_json_value(b'{"a": [NaN]} <html>')
    ({'a': [nan]}, '<html>')
    """
    value, rest, is_sound = _lenient_value(body)
    try:
        return value if is_sound else storable(value), rest
    except RecursionError as error:
        raise ValueError(str(error)) from None


def _lenient_value(body: bytes) -> tuple[Any, str, bool]:
    """The first value of a JSON text, what follows it, and whether it holds no half of a character."""
    try:
        return msgspec.json.decode(body), "", True
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        text = body.decode("utf-8-sig", "replace").strip()
        try:
            value, end = _LENIENT_JSON.raw_decode(text)
            return value, text[end:].strip(), False
        except (ValueError, RecursionError):
            raise ValueError(str(error)) from None
    except RecursionError as error:
        raise ValueError(str(error)) from None


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else math.inf


_LENIENT_JSON = json.JSONDecoder(parse_int=_integer, strict=False)
_CHARACTER_PATTERN = re.compile(r"\S")


def further_objects(rest: str) -> list[dict[str, Any]]:
    """The JSON objects with which a text begins, such as the further lines of a stream.

    >>> further_objects('{"a": 1} {"b": 2} and so on')
    [{'a': 1}, {'b': 2}]
    """
    objects: list[dict[str, Any]] = []
    end = 0
    while rest[end : end + 1] == "{":
        try:
            value, end = _LENIENT_JSON.raw_decode(rest, end)
        except (ValueError, RecursionError):
            break
        objects.append(storable(value))
        end = len(rest) if (following := _CHARACTER_PATTERN.search(rest, end)) is None else following.start()
    return objects


def storable(value: Any) -> Any:
    """The value with all its texts as they can be stored."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    return value


def stream_events(body: bytes) -> Iterator[tuple[int, dict[str, Any]]] | None:
    """The objects in the events of a stream, each with the place where its event ends; None if a body is not a stream.

    They raise ValueError where one is not whole. Some servers stream without being asked to.
    """
    return _stream_events(body) if STREAM_START_PATTERN.match(body) else None


def _stream_events(body: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    lines: list[bytes] = []
    line_end = count = 0
    for found in DATA_LINE_PATTERN.finditer(body):
        ended = EVENT_END_PATTERN.search(body, line_end, found.start())
        if ended or STREAM_END in lines:
            for value in _event_values(lines):
                yield ended.end() if ended else line_end, value
            if STREAM_END in lines:
                return
            lines = []
        lines.append(found[1].strip())
        line_end, count = found.end(), count + 1
        if count > MAX_STREAM_EVENTS:
            raise ValueError("it has more events than an answer can have")
    ended = EVENT_END_PATTERN.search(body, line_end)
    for value in _event_values(lines):
        yield ended.end() if ended else len(body), value


def _event_values(lines: list[bytes]) -> list[dict[str, Any]]:
    """The object that the lines of an event are; several where a server parts its events by one line end only."""
    said = lines[: lines.index(STREAM_END)] if STREAM_END in lines else lines
    written = b"\n".join(said)
    try:
        return [_event_value(written)] if written else []
    except ValueError:
        if len(said) == 1:
            raise
        return [_event_value(line) for line in said if line]


def _event_value(data: bytes) -> dict[str, Any]:
    value, rest, _ = _lenient_value(data)
    if rest:
        raise ValueError(f"something follows the JSON value: {rest[:40]!r}")
    return strict_dict(value)


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


def strict_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, an empty one where it is null; raises ValueError for anything else, which could hide a part of the answer."""
    if value is None or isinstance(value, dict):
        return value or {}
    raise ValueError(f"{type(value).__name__} in place of an object")


def strict_list(value: Any) -> list[Any]:
    """The value if it is a list, an empty one where it is null; raises ValueError for anything else, which could hide a part of the answer."""
    if value is None or isinstance(value, list):
        return value or []
    raise ValueError(f"{type(value).__name__} in place of a list")


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
    """The numbers of a response; an impossible one becomes None, with a note."""

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
        """A span of time; None if it is not known."""
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


_answer_decoder = msgspec.json.Decoder(Answer)


def sound_answer(returned: Any, note: str = "") -> Answer:
    """What a provider returned, as it will be read back: text without half characters, numbers that can be."""
    if not isinstance(returned, Answer):
        raise TypeError(f"it returned {type(returned).__name__}, not Answer")
    numbers = LenientNumbers()
    cost = returned.cost
    sound = msgspec.structs.replace(
        returned,
        **{name: numbers.tokens(name, getattr(returned, name)) for name in TOKEN_COUNT_FIELDS},
        cost=cost if cost is None or numbers.cost("cost", cost.usd, cost.source) else None,
        latency=numbers.seconds("latency", returned.latency),
    )
    through_cache = (sound.cached_tokens or 0) + (sound.cache_write_tokens or 0)
    if through_cache > (sound.input_tokens if sound.input_tokens is not None else math.inf):
        # they would make the rest of the input cost less than nothing
        numbers.notes.append("cached_tokens are more than the input tokens that they are part of")
        sound = msgspec.structs.replace(sound, cached_tokens=None, cache_write_tokens=None, cache_write_1h_tokens=None)
    if note or numbers.notes:
        whole_note = "; ".join(filter(None, (returned.note, note, numbers.note)))
        sound = msgspec.structs.replace(sound, note=whole_note)
    return _answer_decoder.decode(_encoded_answer(sound))


def _encoded_answer(answer: Answer) -> bytes:
    """The answer with U+FFFD in place of half characters, wherever they are: in its text, in calls of tools, in its trace."""
    try:
        return msgspec.json.encode(answer)
    except UnicodeEncodeError:
        return msgspec.json.encode(storable(msgspec.to_builtins(answer)))
