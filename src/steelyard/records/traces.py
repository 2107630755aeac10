"""The trace of a conversation: its turns, the tools that were called, and what each turn took."""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import force_setattr

from steelyard.records.base import MAX_NUMBER, Record, is_bounded
from steelyard.records.messages import ToolCall

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
        """Drop impossible numbers from any source."""
        # most turns are sound, and each is made several times
        counts = (self.input_tokens, self.output_tokens, self.cached_tokens, self.cache_write_tokens)
        rest = (self.cache_write_1h_tokens, self.reasoning_tokens, self.latency, self.first_token)
        for number in counts + rest:
            if number is not None and not 0 <= number <= MAX_NUMBER:
                break
        else:
            return
        for name in (*TOKEN_COUNT_FIELDS, "latency", "first_token"):
            if getattr(self, name) is not None and not is_bounded(getattr(self, name)):
                force_setattr(self, name, None)

    @property
    def seconds(self) -> float | None:
        """How long the turn took, its tools included; None if the model's part is unknown."""
        return None if self.latency is None else self.latency + sum(result.seconds or 0 for result in self.results)
