"""Marks for providers that cache the beginning of a prompt only on request, and what they save."""

from __future__ import annotations

from typing import Any

import msgspec

from steelyard.providers.prices import Prices
from steelyard.records import Answer

MIN_CACHED_CHARACTERS = 3500
"""Characters of a prompt below which no provider caches it: about 1,024 tokens."""
WRITE_SURCHARGE, READ_DISCOUNT = 0.25, 0.9
"""What writing a token to the cache costs more than reading it as usual, and what reading it from there costs less."""
TRIAL_WRITTEN_TOKENS = 100_000
"""Tokens that are written to the cache before it is asked whether they were read again."""
MARK = {"type": "ephemeral"}
CACHE_POINT = {"cachePoint": {"type": "default"}}


class PromptCacheMarks:
    """Marks the end of what later requests begin with as well, as long as that saves money at an endpoint."""

    def __init__(self, *, as_blocks: bool = False) -> None:
        self._as_blocks = as_blocks
        """Whether a mark is a block of its own, as in Converse, and not a field of the block before it."""
        self._written = 0
        self._read = 0
        self._is_refused = False

    @property
    def saves(self) -> bool:
        """Whether reads from the cache paid for the writes, or too little was written to tell."""
        if self._is_refused:
            return False
        return self._written < TRIAL_WRITTEN_TOKENS or self._read * READ_DISCOUNT >= self._written * WRITE_SURCHARGE

    def marked(self, body: dict[str, Any], samples: int, shared: int = 0) -> dict[str, Any]:
        """A request in the format of Anthropic or Converse with its marks; the text stays as it is.

        There is one after a long system prompt, which all cases share, one after a long prompt that is asked several times,
        and one after the first `shared` characters of the first message, with which other requests begin as well.
        """
        if not self.saves:
            return body
        system, messages = body.get("system"), list(body.get("messages") or ())
        system_size = _size(system)
        if system_size >= MIN_CACHED_CHARACTERS:
            body = {**body, "system": self._with_mark(system)}
        whole = system_size + sum(_size(_content(message)) for message in messages)
        asked = max((at for at, message in enumerate(messages) if _role(message) == "user"), default=-1)
        if samples > 1 and asked >= 0 and whole >= MIN_CACHED_CHARACTERS and _content(messages[asked]):
            last = msgspec.to_builtins(messages[asked])
            messages[asked] = {**last, "content": self._with_mark(last["content"])}
            body = {**body, "messages": messages}
        elif messages and shared and system_size + shared >= MIN_CACHED_CHARACTERS:
            first = msgspec.to_builtins(messages[0])
            if (text := _only_text(first["content"])) is not None:
                rest = [self._block(text[shared:])] if text[shared:] else []
                blocks = self._with_mark(text[:shared]) + rest
                body = {**body, "messages": [{**first, "content": blocks}, *messages[1:]]}
        return body

    def marked_chat(self, body: dict[str, Any], samples: int, shared: int = 0) -> dict[str, Any]:
        """The same for chat completions, where the system prompt is the first of the messages."""
        first, *rest = body["messages"]
        if first.get("role") != "system":
            return self.marked(body, samples, shared)
        done = self.marked({**body, "system": first["content"], "messages": rest}, samples, shared)
        return body | {"messages": [{**first, "content": done["system"]}, *done["messages"]]}

    def refuse(self) -> None:
        """Set no more marks: the model does not know them."""
        self._is_refused = True

    def _block(self, text: str) -> dict[str, Any]:
        return {"text": text} if self._as_blocks else {"type": "text", "text": text}

    def _with_mark(self, content: Any) -> list[Any]:
        """The content as blocks, the last of which is marked."""
        blocks = [self._block(content)] if isinstance(content, str) else list(content)
        if self._as_blocks:
            return [*blocks, CACHE_POINT]
        if isinstance(blocks[-1], dict):
            blocks[-1] = {**blocks[-1], "cache_control": MARK}
        return blocks

    def learn(self, answer: Answer) -> None:
        """Count what a request wrote and read."""
        self._written += answer.cache_write_tokens or 0
        self._read += answer.cached_tokens or 0


def _content(message: Any) -> Any:
    return message.get("content") if isinstance(message, dict) else message.content


def _size(content: Any) -> int:
    if isinstance(content, str):
        return len(content)
    return sum(len(part.get("text") or "") for part in content or () if isinstance(part, dict))


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else message.role


def _only_text(content: Any) -> str | None:
    """The text of a content that is nothing else."""
    if isinstance(content, str):
        return content
    return content[0]["text"] if len(content) == 1 and isinstance(content[0].get("text"), str) else None


def prompt_cache_savings(prices: Prices, model: str, answer: Answer) -> float:
    """What an answer would have cost more without a cache of prompts; negative where the cache was only written."""
    if not (answer.cached_tokens or answer.cache_write_tokens) or answer.cost is None:
        return 0.0
    plain = msgspec.structs.replace(
        answer, cost=None, cached_tokens=None, cache_write_tokens=None, cache_write_1h_tokens=None
    )
    without = prices.cost(model, plain)
    return 0.0 if without is None else without.usd - answer.cost.usd
