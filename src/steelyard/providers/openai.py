"""OpenAI chat completions, and completions of base models, which continue the code of a case."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from steelyard.errors import FilteredInput, InputError, Rejected, Unavailable
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings, RateLimitHeadroom
from steelyard.providers.bodies import LenientNumbers, as_dict, as_list, content_text, tool_call
from steelyard.providers.faults import FaultKind, block_reason, error_message, finish_kind, settled_finish
from steelyard.providers.wire import MAX_REQUESTS_PER_ENDPOINT, HttpEndpoint, HttpExchange
from steelyard.records import Answer, Attempt, Finish, Verify
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
        completion = self._http.answer_object(exchange, _joined_chunks)
        choice, others = self._choice(completion, body)
        message = as_dict(choice.get("message"))
        if message.get("content") is None and choice.get("text"):
            message["content"] = choice["text"]  # the older format
        if not message and finish_kind(choice.get("finish_reason")) is FaultKind.ANSWER:
            raise Unavailable(f"{self.endpoint}: sent a choice without a message")
        text, refusal = content_text(message.get("content")), content_text(message.get("refusal"))
        calls = [*as_list(message.get("tool_calls")), *filter(None, [message.get("function_call")])]
        finish, note = settled_finish(
            choice.get("finish_reason"), has_content=bool(text or refusal or calls), where=self.endpoint
        )
        answer = Answer(
            text=refusal or text,
            finish=Finish.REFUSAL if refusal else finish,
            reasoning=_message_reasoning(message),
            tool_calls=tuple(map(tool_call, calls)),
            other_choices=tuple(content_text(as_dict(other.get("message")).get("content")) for other in others),
            note=note,
        )
        return _answer_with_usage(answer, exchange, completion)

    def _choice(self, completion: dict[str, Any], sent: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The first choice and the others; raises where the response is an error."""
        self._http.check_errors(sent, completion)
        choices = sorted(map(as_dict, as_list(completion.get("choices"))), key=_choice_index)
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
FUNCTION_STOPS = {
    "python": ("\nclass", "\ndef", "\n#", "\nif", "\nprint"),
    "rust": ("\nfn", "\npub", "\nmod", "\n#[", "\n//", "\n/*"),
}
"""What ends the body of a function; for Python as in the paper on HumanEval."""
PROGRAM_STOPS = ('\n"""', "\nassert", "\nif __name__", "\nprint")
"""What ends a program that a docstring began."""


class OpenAICompletionsProvider(OpenAIProvider):
    """One model behind a completions endpoint."""

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        case = attempt.case
        if not case.verify.stub:
            raise Rejected(f'case "{case.id}" has no stub, and a base model only continues code; ask a chat model')
        stops = () if "stop" in attempt.parameters else _completion_stops(case.verify, case.language)
        body = {
            "model": self._model,
            "prompt": case.verify.stub,
            "max_tokens": DEFAULT_COMPLETION_MAX_TOKENS,
            **({"stop": stops[:MAX_STOP_SEQUENCES]} if stops else {}),
            **attempt.parameters,
        }
        exchange = await self._http.exchange("POST", "/completions", body, delivery)
        completion = self._http.answer_object(exchange, _joined_chunks)
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
        return _answer_with_usage(answer, exchange, completion)


def connect_completions(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A completions endpoint, asked for one model."""
    return {model: OpenAICompletionsProvider(model, settings)}


def _completion_stops(verify: Verify, language: str) -> tuple[str, ...]:
    """What ends a completion, when it begins inside a function or before one."""
    head = rf"^[ \t]*(?:\w+[ \t]+)*(?:def|fn)[ \t]+{re.escape(verify.entry_point)}\b"
    if language == "python" and not re.search(head, verify.stub or "", re.MULTILINE):
        return PROGRAM_STOPS
    return FUNCTION_STOPS.get(language, ())


# ---- the bodies of responses, whole or in the chunks of a stream


def _choice_index(choice: dict[str, Any]) -> int:
    """Which choice of a response this is; 0 where it does not say."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _message_reasoning(message: dict[str, Any]) -> str:
    """What the model thought aloud: beside its text, or in parts of it as Mistral sends them."""
    parts = [part.get("thinking") for part in map(as_dict, as_list(message.get("content")))]
    return content_text(message.get("reasoning_content") or message.get("reasoning") or parts)


def _joined_chunks(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The completion that the chunks of a stream make; raises ValueError where the stream broke off."""
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        whole |= {name: value for name, value in chunk.items() if name != "choices" and value is not None}
        for part in map(as_dict, as_list(chunk.get("choices"))):
            choice = choices.setdefault(_choice_index(part), {"message": {}, "index": _choice_index(part)})
            for name in ("finish_reason", "error"):
                choice[name] = part.get(name) or choice.get(name)
            _add_delta(choice["message"], as_dict(part.get("delta") or part.get("message")))
            choice["text"] = choice.get("text", "") + content_text(part.get("text"))
    unfinished = [choice for choice in choices.values() if not (choice["finish_reason"] or choice["error"])]
    if unfinished and not whole.get("error"):
        raise ValueError("the stream broke off")
    return whole | {"choices": list(choices.values())}


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name in ("content", "refusal", "reasoning_content", "reasoning"):
        if text := content_text(delta.get(name)):
            message[name] = message.get(name, "") + text
    calls = message.setdefault("tool_calls", [])
    for part in map(as_dict, [*as_list(delta.get("tool_calls")), delta.get("function_call")]):
        function = as_dict(part.get("function")) or part
        # parts of several calls may come in turns; without a number, a name begins a call
        index = part.get("index")
        call = next((each for each in calls if index is not None and each["index"] == index), None)
        if call is None and (function.get("name") or part.get("index") is not None):
            call = {"index": index, "id": part.get("id"), "function": {"name": function.get("name"), "arguments": ""}}
            calls.append(call)
        if call or calls:
            (call or calls[-1])["function"]["arguments"] += content_text(function.get("arguments"))


def _answer_with_usage(bare_answer: Answer, exchange: HttpExchange, completion: dict[str, Any]) -> Answer:
    """The answer with what it took, as far as the server tells."""
    usage, numbers = as_dict(completion.get("usage")), LenientNumbers()
    inputs, outputs = as_dict(usage.get("prompt_tokens_details")), as_dict(usage.get("completion_tokens_details"))
    cached = inputs.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    answer = msgspec.structs.replace(
        bare_answer,
        input_tokens=numbers.tokens("prompt_tokens", usage.get("prompt_tokens")),
        output_tokens=numbers.tokens("completion_tokens", usage.get("completion_tokens")),
        cached_tokens=numbers.tokens("cached_tokens", cached),
        reasoning_tokens=numbers.tokens("reasoning_tokens", outputs.get("reasoning_tokens")),
        cost=numbers.cost("cost", usage.get("cost"), "the provider"),
        latency=exchange.seconds,
        request_id=exchange.headers.get("x-request-id") or str(completion.get("id") or ""),
    )
    return msgspec.structs.replace(answer, note="; ".join(filter(None, (answer.note, numbers.note))))
