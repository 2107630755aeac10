"""Anthropic messages."""

from __future__ import annotations

import msgspec

from steelyard.errors import InputError
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings, RateLimitHeadroom
from steelyard.providers.wire import MAX_REQUESTS_PER_ENDPOINT, HttpEndpoint
from steelyard.records import Answer, Attempt, Finish, MessageRole

ANTHROPIC_API_VERSION = "2023-06-01"
ANTHROPIC_DEFAULT_MAX_TOKENS = 4096
"""The format demands a limit on the reply; this one is sent when the user gives none."""
ANTHROPIC_FINISH_REASONS: dict[str, str] = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": Finish.LENGTH}


class _AnthropicContentBlock(msgspec.Struct):
    type: str
    text: str = ""
    thinking: str = ""


class _AnthropicUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _AnthropicMessage(msgspec.Struct):
    content: list[_AnthropicContentBlock]
    stop_reason: str | None = None
    usage: _AnthropicUsage = msgspec.field(default_factory=_AnthropicUsage)
    id: str = ""


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
        answer = self._http.decode(exchange, _AnthropicMessage)
        usage, finish = answer.usage, answer.stop_reason or "stop"
        cached = usage.cache_read_input_tokens or 0
        return Answer(
            text="".join(block.text for block in answer.content if block.type == "text"),
            finish=ANTHROPIC_FINISH_REASONS.get(finish, finish),
            reasoning="".join(block.thinking for block in answer.content),
            # here cached tokens are counted beside the input, elsewhere as a part of it
            input_tokens=None
            if usage.input_tokens is None
            else usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0),
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cache_read_input_tokens,
            latency=exchange.seconds,
            request_id=exchange.headers.get("request-id") or answer.id,
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


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A messages endpoint, asked for one model."""
    return {model: AnthropicProvider(model, settings)}
