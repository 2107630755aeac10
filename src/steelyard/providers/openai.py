"""OpenAI chat completions, and completions of base models, which continue the code of a case."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from steelyard.errors import FilteredInput, InputError, Rejected, Unavailable
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings, RateLimitHeadroom
from steelyard.providers.bodies import as_dict, as_list, content_text, tool_call
from steelyard.providers.completion_stops import completion_stops
from steelyard.providers.faults import block_reason, error_message, settled_finish
from steelyard.providers.openai_bodies import answer_with_usage, choice_index, joined_chunks, message_reasoning
from steelyard.providers.wire import MAX_REQUESTS_PER_ENDPOINT, HttpEndpoint
from steelyard.records import Answer, Attempt, Finish
from steelyard.text import verbatim_reply


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
        completion = self._http.answer_object(exchange, joined_chunks)
        choice, others = self._choice(completion, body)
        message = as_dict(choice.get("message"))
        text, refusal = content_text(message.get("content")), content_text(message.get("refusal"))
        calls = [*as_list(message.get("tool_calls")), *filter(None, [message.get("function_call")])]
        finish, note = settled_finish(
            choice.get("finish_reason"), has_content=bool(text or refusal or calls), where=self.endpoint
        )
        answer = Answer(
            text=refusal or text,
            finish=Finish.REFUSAL if refusal else finish,
            reasoning=message_reasoning(message),
            tool_calls=tuple(map(tool_call, calls)),
            other_choices=tuple(content_text(as_dict(other.get("message")).get("content")) for other in others),
            note=note,
        )
        return answer_with_usage(answer, exchange, completion)

    def _choice(self, completion: dict[str, Any], sent: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The first choice and the others; raises where the response is an error."""
        self._http.check_errors(sent, completion)
        choices = sorted(map(as_dict, as_list(completion.get("choices"))), key=choice_index)
        if not choices:
            if reason := block_reason(completion):
                raise FilteredInput(f"{self.endpoint}: the prompt was blocked: {reason}")
            detail = self._http.clean(error_message(completion))[:300]
            raise Unavailable(f"{self.endpoint}: sent a completion without choices: {detail}")
        self._http.check_errors(sent, choices[0], choices[0].get("message"))
        return choices[0], choices[1:]

    def headroom(self) -> RateLimitHeadroom | None:
        return self._http.headroom

    def available(self, case: str) -> None:  # noqa: ARG002  a live model answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        listed = self._http.decode(await self._http.exchange("GET", "/models"), _OpenAIModelList)
        return [OfferedModel(model.id, model.owned_by or "") for model in listed.data]

    async def close(self) -> None:
        await self._http.close()


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A chat-completions endpoint, asked for one model."""
    return {model: OpenAIProvider(model, settings)}


MAX_STOP_SEQUENCES = 4
"""OpenAI takes no more; at the others we cut the text ourselves."""
DEFAULT_COMPLETION_MAX_TOKENS = 512
"""Sent where nothing else is asked for: servers stop after 16 tokens by themselves."""


class OpenAICompletionsProvider(OpenAIProvider):
    """One model behind a completions endpoint."""

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        case = attempt.case
        if not case.verify.stub:
            raise Rejected(f'case "{case.id}" has no stub, and a base model only continues code; ask a chat model')
        stops = () if "stop" in attempt.parameters else completion_stops(case.verify, case.language)
        body = {
            "model": self._model,
            "prompt": case.verify.stub,
            "max_tokens": DEFAULT_COMPLETION_MAX_TOKENS,
            **({"stop": stops[:MAX_STOP_SEQUENCES]} if stops else {}),
            **attempt.parameters,
        }
        exchange = await self._http.exchange("POST", "/completions", body, delivery)
        completion = self._http.answer_object(exchange, joined_chunks)
        choice, others = self._choice(completion, body)
        continued = content_text(choice.get("text"))
        end = min((at for at in map(continued.find, stops) if at >= 0), default=None)
        reason = "stop" if end is not None else choice.get("finish_reason")
        finish, note = settled_finish(reason, has_content=bool(continued), where=self.endpoint)
        answer = Answer(
            text=verbatim_reply(case.verify.stub + continued[:end], case.language),
            finish=finish,
            other_choices=tuple(content_text(other.get("text")) for other in others),
            note=note,
        )
        return answer_with_usage(answer, exchange, completion)


def connect_completions(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A completions endpoint, asked for one model."""
    return {model: OpenAICompletionsProvider(model, settings)}
