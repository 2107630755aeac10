"""Anthropic messages."""

from __future__ import annotations

from typing import Any

import msgspec

from steelyard.errors import InputError
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings, RateLimitHeadroom
from steelyard.providers.bodies import LenientNumbers, as_dict, as_list, content_text, tool_call
from steelyard.providers.faults import settled_finish
from steelyard.providers.wire import MAX_REQUESTS_PER_ENDPOINT, HttpEndpoint
from steelyard.records import Answer, Attempt, MessageRole

ANTHROPIC_API_VERSION = "2023-06-01"
ANTHROPIC_DEFAULT_MAX_TOKENS = 4096
"""The format demands a limit on the reply; this one is sent when the user gives none."""


class _AnthropicModel(msgspec.Struct):
    id: str
    display_name: str = ""


class _AnthropicModelList(msgspec.Struct):
    data: list[_AnthropicModel]


class AnthropicProvider:
    """One model behind a messages endpoint."""

    at_once = MAX_REQUESTS_PER_ENDPOINT

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        if not settings.base_url:
            raise InputError("provider anthropic: no base_url; give one with --base-url or in the settings file")
        headers = {"anthropic-version": ANTHROPIC_API_VERSION, "x-api-key": settings.api_key, **settings.headers}
        self._model = model
        self._http = HttpEndpoint(
            settings.base_url.rstrip("/").removesuffix("/v1"),
            headers,
            secrets=(settings.api_key, *settings.headers.values()),
        )
        self.endpoint = self._http.url

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        system = "\n\n".join(message.content for message in attempt.messages if message.role == MessageRole.SYSTEM)
        body = {
            "model": self._model,
            "max_tokens": ANTHROPIC_DEFAULT_MAX_TOKENS,
            "messages": [message for message in attempt.messages if message.role != MessageRole.SYSTEM],
            # this format knows no seed and refuses what it does not know
            **{name: value for name, value in attempt.parameters.items() if name != "seed"},
        }
        if system:
            body["system"] = system
        exchange = await self._http.exchange("POST", "/v1/messages", body, delivery)
        answer = self._http.answer_object(exchange, joined_events)
        self._http.check_errors(body, answer)
        blocks = list(map(as_dict, as_list(answer.get("content"))))
        text = "".join(content_text(block) for block in blocks if block.get("type") == "text")
        calls = tuple(tool_call(block) for block in blocks if str(block.get("type")).endswith("tool_use"))
        finish, note = settled_finish(answer.get("stop_reason"), has_content=bool(text or calls), where=self._http.url)
        usage, numbers = as_dict(answer.get("usage")), LenientNumbers()
        fresh, cached, created = (
            numbers.tokens(name, usage.get(name))
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        return Answer(
            text=text,
            finish=finish,
            reasoning="".join(content_text(block.get("thinking")) for block in blocks),
            # here cached tokens are counted beside the input, elsewhere as a part of it
            input_tokens=None if fresh is None else fresh + (cached or 0) + (created or 0),
            output_tokens=numbers.tokens("output_tokens", usage.get("output_tokens")),
            cached_tokens=cached,
            cache_write_tokens=created,
            cache_write_1h_tokens=numbers.tokens(
                "ephemeral_1h_input_tokens", as_dict(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")
            ),
            is_batch=usage.get("service_tier") == "batch",
            latency=exchange.seconds,
            request_id=exchange.headers.get("request-id") or str(answer.get("id") or ""),
            tool_calls=calls,
            note="; ".join(filter(None, (note, numbers.note))),
        )

    def headroom(self) -> RateLimitHeadroom | None:
        return self._http.headroom

    def available(self, case: str) -> None:  # noqa: ARG002  a live model answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        listed = self._http.decode(await self._http.exchange("GET", "/v1/models?limit=1000"), _AnthropicModelList)
        return [OfferedModel(model.id, model.display_name) for model in listed.data]

    async def close(self) -> None:
        await self._http.close()


def joined_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that the events of a stream make; raises ValueError where the stream broke off."""
    whole: dict[str, Any] = {}
    blocks: list[dict[str, Any]] = []
    for event in events:
        kind, delta = event.get("type"), as_dict(event.get("delta"))
        if kind == "message_start":
            whole |= as_dict(event.get("message"))
        elif kind == "content_block_start":
            blocks.append({**as_dict(event.get("content_block"))})
        elif kind == "content_block_delta" and blocks:
            for name in ("text", "thinking"):
                blocks[-1][name] = content_text(blocks[-1].get(name)) + content_text(delta.get(name))
            if "partial_json" in delta:
                begun = blocks[-1].get("input")
                blocks[-1]["input"] = (begun if isinstance(begun, str) else "") + content_text(delta["partial_json"])
        elif kind == "message_delta":
            whole |= delta
            whole["usage"] = {**as_dict(whole.get("usage")), **as_dict(event.get("usage"))}
        elif kind == "error":
            return {"error": event.get("error") or "error"}
    if not whole.get("stop_reason"):
        raise ValueError("the stream broke off")
    return whole | {"content": blocks}


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A messages endpoint, asked for one model."""
    return {model: AnthropicProvider(model, settings)}
