"""Messages of a conversation, their parts, the tools that a model may call with their results, the user that a model plays, and the trace that this leaves."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import msgspec
from msgspec.structs import force_setattr

from steelyard.records.base import MAX_NUMBER, Record, is_bounded

ContentType = Literal["text", "image", "audio", "file"]


class MessageRole(StrEnum):
    """The roles that we distinguish; an eval set may name another one that its provider knows."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(Record, frozen=True, kw_only=True):
    """A tool call that a model requested."""

    name: str
    arguments: str = ""
    """As the model wrote them: JSON, if it followed its instructions."""
    id: str = ""


class ContentPart(Record, frozen=True, kw_only=True):
    """A part of a message: a text, or a file by its path or its URL."""

    type: ContentType
    text: str = ""
    path: str = ""
    """A file beside the eval set; once loaded, its path on this machine."""
    url: str = ""
    """An address that the provider fetches the file from; nothing is fetched here."""
    media_type: str = ""
    """Such as `image/png`; by default it follows from the suffix."""
    digest: str = ""
    """A digest of the file's bytes, filled in by the loader: it represents the file in the ask key."""
    kept: str = ""
    """Where a run has a copy of the file, filled in while it is asked."""

    @property
    def label(self) -> str:
        """The placeholder for the part where only text can be shown."""
        return self.text if self.type == "text" else f"[{self.type}: {self.url or self.path.rpartition('/')[2]}]"


class Message(Record, frozen=True, kw_only=True):
    """One turn of a conversation."""

    role: str
    """A `MessageRole`, or another role that the provider knows; it is sent as it is."""
    content: str | tuple[ContentPart, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    """For `assistant`: the tool calls that it requested."""
    tool_call_id: str = ""
    """For `tool`: the call that this is the result of."""
    is_error: bool = False
    """For `tool`: whether calling it failed."""
    native: tuple[dict[str, Any], ...] = ()
    """For `assistant`: the original message of its provider, which is sent back instead of our form of it."""

    @property
    def text(self) -> str:
        """The message as text; a file is its name in brackets."""
        return self.content if isinstance(self.content, str) else "\n\n".join(part.label for part in self.content)

    @property
    def parts(self) -> tuple[ContentPart, ...]:
        """The content as parts."""
        if isinstance(self.content, str):
            return (ContentPart(type="text", text=self.content),) if self.content else ()
        return self.content

    @property
    def without_paths(self) -> Message:
        """The message by its content, independent of where its files are."""
        if isinstance(self.content, str):
            return self
        parts = tuple(msgspec.structs.replace(part, path="", kept="") for part in self.content)
        return msgspec.structs.replace(self, content=parts)


class Tool(Record, frozen=True, kw_only=True):
    """A tool that a model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """A JSON Schema of its arguments."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments, or an empty one."""
        return self.parameters or {"type": "object", "properties": {}}


DEFAULT_MAX_TURNS = 10
"""Requests to the model of one conversation, where the case does not say."""


class CannedResult(Record, frozen=True, kw_only=True):
    """What calling a tool with such arguments returns."""

    arguments: dict[str, Any] = {}
    """The values that the arguments must have; others may be there as well."""
    result: Any = None
    """What it returns: a text as it is, any other value as JSON."""
    error: str = ""
    """How it fails instead."""


class CaseTool(Tool, frozen=True, kw_only=True):
    """A tool that the model of a case may call, and what calling it does; one that does nothing ends the conversation."""

    python: str = ""
    """A function of yours that is called with the arguments by their names, `tools.py:get_weather`."""
    source: str = ""
    """A digest of that function's file, filled in by the loader."""
    result: Any = None
    """What it always returns, or where none of `results` fits: a text as it is, any other value as JSON."""
    results: tuple[CannedResult, ...] = ()
    """What it returns for arguments; the first that fits counts."""
    error: str = ""
    """How it always fails."""
    timeout_secs: float = 60
    """How long one call of the function may take."""

    @property
    def is_called(self) -> bool:
        """Whether something is called, or known to be returned."""
        return bool(self.python or self.results or self.error or self.result is not None)

    @property
    def definition(self) -> Tool:
        """What a model gets to know about it."""
        return Tool(name=self.name, description=self.description, parameters=self.parameters)

    @property
    def by_content(self) -> tuple[Any, ...]:
        """The tool by what it does, independent of where its file is."""
        function = self.python.rpartition("/")[2]
        return self.definition, function, self.source, self.result, self.results, self.error


class SimulatedUser(Record, frozen=True, kw_only=True):
    """A model that plays the user of a conversation."""

    model: str
    """Provider and model, such as `openai/gpt-5-mini`."""
    script: str
    """Who the user is, what they want and what they know: the instructions of the model that plays them."""
    max_turns: int = 5
    """Messages that it writes at most, after the prompt of the case."""
    stop: str = "[END]"
    """What it writes when the conversation is over."""
    parameters: dict[str, Any] = {}
    """Sent with its requests as they are."""


TurnRole = Literal["assistant", "user"]


class Cost(Record, frozen=True, kw_only=True):
    """An amount of money, and where its price is from."""

    usd: float
    source: str
    """Where the price is from: a price list with its version, the provider, or the settings."""
    date: str = ""
    """The day of that price."""


TOKEN_COUNT_FIELDS = (
    *("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens"),
    "reasoning_tokens",
)
"""The fields of an answer that count tokens."""


class ToolResult(Record, frozen=True, kw_only=True):
    """The result of one tool call."""

    name: str
    content: str
    """The text that was sent to the model."""
    call_id: str = ""
    is_error: bool = False
    """Whether the call failed; the text says why."""
    seconds: float | None = None
    """How long the call took; None if it was not measured."""


def drop_impossible_numbers(said: Any) -> None:
    """Drop the numbers of an answer or a turn that cannot be, from any source: the text beside them was paid for in any case."""
    # most are sound, and each is made several times
    counts = (said.input_tokens, said.output_tokens, said.cached_tokens, said.cache_write_tokens)
    rest = (said.cache_write_1h_tokens, said.reasoning_tokens, said.latency, said.first_token)
    for number in counts + rest:
        if number is not None and not 0 <= number <= MAX_NUMBER:
            break
    else:
        return
    for name in (*TOKEN_COUNT_FIELDS, "latency", "first_token"):
        if getattr(said, name) is not None and not is_bounded(getattr(said, name)):
            force_setattr(said, name, None)


class Turn(Record, frozen=True, kw_only=True):
    """One turn of a conversation: what a model or a simulated user said, and the results of its tool calls."""

    role: TurnRole = "assistant"
    """Who speaks: the model that is tested, or the user that another model plays."""
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    """One for each call, in order; empty before they are called, and without calls."""
    finish: str = "stop"
    """Why the model stopped: a `Finish`, or the provider's own word."""
    model: str = ""
    """Who plays the user; empty for the model that is tested."""
    at: str = ""
    """When the turn was over."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: Cost | None = None
    """None when no price is known: unknown is not free."""
    latency: float | None = None
    """Seconds that the model took, without its tools."""
    first_token: float | None = None
    request_id: str = ""
    native: tuple[dict[str, Any], ...] = ()
    """Data that the provider must get back; kept until the conversation ends."""
    note: str = ""

    def __post_init__(self) -> None:
        drop_impossible_numbers(self)

    @property
    def seconds(self) -> float | None:
        """How long the turn took, its tools included; None if the model's part is unknown."""
        return None if self.latency is None else self.latency + sum(result.seconds or 0 for result in self.results)
