"""OpenAI chat completions, and completions of base models, which continue the code of a case."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from steelyard.errors import InputError, Rejected, Unavailable
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings, RateLimitHeadroom
from steelyard.providers.wire import MAX_REQUESTS_PER_ENDPOINT, HttpEndpoint, HttpExchange, named_parameters
from steelyard.records import Answer, Attempt, Cost, Finish, Verify
from steelyard.text import verbatim_reply

OPENAI_FINISH_REASONS: dict[str, str] = {"stop": "stop", "length": Finish.LENGTH, "content_filter": Finish.REFUSAL}


class _ChatMessage(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _ChatChoice(msgspec.Struct):
    message: _ChatMessage
    finish_reason: str | None = None


class OpenAIUsage(msgspec.Struct):
    """The tokens of an answer, as far as the server reports them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: dict[str, Any] | None = None
    completion_tokens_details: dict[str, Any] | None = None
    cost: float | None = None


class _ChatCompletion(msgspec.Struct):
    choices: list[_ChatChoice] = []
    id: str | None = None
    usage: OpenAIUsage | None = None
    error: Any = None


class _OpenAIModel(msgspec.Struct):
    id: str
    owned_by: str | None = None


class _OpenAIModelList(msgspec.Struct):
    data: list[_OpenAIModel]


class OpenAIProvider:
    """One model behind a chat-completions endpoint."""

    at_once = MAX_REQUESTS_PER_ENDPOINT

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        if not settings.base_url:
            raise InputError(f"provider {settings.type}: no base_url; give one with --base-url or in the settings file")
        headers = dict(settings.headers)
        if settings.api_key:
            headers["authorization"] = f"Bearer {settings.api_key}"
        if settings.org_id:
            headers["openai-organization"] = settings.org_id
        self._model = model
        self._http = HttpEndpoint(settings.base_url, headers, secrets=(settings.api_key, *settings.headers.values()))
        self.endpoint = self._http.url
        # OpenAI's own models refuse the older name, other servers do not know the newer one
        self._longest = (
            "max_completion_tokens" if urlsplit(self.endpoint).hostname == "api.openai.com" else "max_tokens"
        )

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        parameters = dict(attempt.parameters)
        if "max_tokens" in parameters:
            parameters[self._longest] = parameters.pop("max_tokens")
        body = {"model": self._model, "messages": attempt.messages, **parameters}
        exchange = await self._http.exchange("POST", "/chat/completions", body, delivery)
        completion = self._http.decode(exchange, _ChatCompletion)
        if not completion.choices:
            detail = f": {self._http.clean(str(completion.error))[:300]}" if completion.error else ""
            raise Unavailable(
                f"{self.endpoint}: sent a completion without choices{detail}",
                parameters=named_parameters(detail, body),
            )
        choice, usage = completion.choices[0], completion.usage or OpenAIUsage()
        message = choice.message
        finish = choice.finish_reason or "stop"
        answer = Answer(
            text=message.refusal or _text(message.content),
            finish=Finish.REFUSAL if message.refusal else OPENAI_FINISH_REASONS.get(finish, finish),
            reasoning=message.reasoning_content or message.reasoning or "",
        )
        return answer_with_usage(answer, exchange, usage, completion.id)

    def headroom(self) -> RateLimitHeadroom | None:
        return self._http.headroom

    def available(self, case: str) -> None:  # noqa: ARG002  a live model answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        listed = self._http.decode(await self._http.exchange("GET", "/models"), _OpenAIModelList)
        return [OfferedModel(model.id, model.owned_by or "") for model in listed.data]

    async def close(self) -> None:
        await self._http.close()


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""


def _count(details: dict[str, Any] | None, name: str) -> int | None:
    count = (details or {}).get(name)
    return count if isinstance(count, int) else None


def answer_with_usage(
    bare_answer: Answer, exchange: HttpExchange, usage: OpenAIUsage, identifier: str | None
) -> Answer:
    """The answer with what it took."""
    return msgspec.structs.replace(
        bare_answer,
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cached_tokens=_count(usage.prompt_tokens_details, "cached_tokens"),
        reasoning_tokens=_count(usage.completion_tokens_details, "reasoning_tokens"),
        cost=None if usage.cost is None else Cost(usd=usage.cost, source="the provider"),
        latency=exchange.seconds,
        request_id=exchange.headers.get("x-request-id") or identifier or "",
    )


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A chat-completions endpoint, asked for one model."""
    return {model: OpenAIProvider(model, settings)}


FUNCTION_STOPS = {
    "python": ("\nclass", "\ndef", "\n#", "\nif", "\nprint"),
    "rust": ("\nfn", "\npub", "\nmod", "\n#[", "\n//", "\n/*"),
}
"""What ends the body of a function; for Python as in the paper on HumanEval."""
PROGRAM_STOPS = ('\n"""', "\nassert", "\nif __name__", "\nprint")
"""What ends a program that a docstring began."""
MAX_STOP_SEQUENCES = 4
"""OpenAI takes no more; at the others we cut the text ourselves."""
DEFAULT_COMPLETION_MAX_TOKENS = 512
"""Sent where nothing else is asked for: servers stop after 16 tokens by themselves."""


class _TextCompletionChoice(msgspec.Struct):
    text: str = ""
    finish_reason: str | None = None


class _TextCompletion(msgspec.Struct):
    choices: list[_TextCompletionChoice] = []
    id: str | None = None
    usage: OpenAIUsage | None = None
    error: Any = None


class OpenAICompletionsProvider(OpenAIProvider):
    """One model behind a completions endpoint."""

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        case = attempt.case
        if not case.verify.stub:
            raise Rejected(f'case "{case.id}" has no stub, and a base model only continues code; ask a chat model')
        stops = () if "stop" in attempt.parameters else _stops(case.verify, case.language)
        body = {
            "model": self._model,
            "prompt": case.verify.stub,
            "max_tokens": DEFAULT_COMPLETION_MAX_TOKENS,
            **({"stop": stops[:MAX_STOP_SEQUENCES]} if stops else {}),
            **attempt.parameters,
        }
        exchange = await self._http.exchange("POST", "/completions", body, delivery)
        completion = self._http.decode(exchange, _TextCompletion)
        if not completion.choices:
            detail = f": {self._http.clean(str(completion.error))[:300]}" if completion.error else ""
            raise Unavailable(f"{self.endpoint}: sent a completion without choices{detail}")
        choice = completion.choices[0]
        end = min((at for at in map(choice.text.find, stops) if at >= 0), default=None)
        finish = "stop" if end is not None else choice.finish_reason or "stop"
        text = verbatim_reply(case.verify.stub + choice.text[:end], case.language)
        return answer_with_usage(
            Answer(text=text, finish=OPENAI_FINISH_REASONS.get(finish, finish)),
            exchange,
            completion.usage or OpenAIUsage(),
            completion.id,
        )


def _stops(verify: Verify, language: str) -> tuple[str, ...]:
    """What ends a completion, when it begins inside a function or before one."""
    head = rf"^[ \t]*(?:\w+[ \t]+)*(?:def|fn)[ \t]+{re.escape(verify.entry_point)}\b"
    if language == "python" and not re.search(head, verify.stub or "", re.MULTILINE):
        return PROGRAM_STOPS
    return FUNCTION_STOPS.get(language, ())


def connect_completions(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A completions endpoint, asked for one model."""
    return {model: OpenAICompletionsProvider(model, settings)}
