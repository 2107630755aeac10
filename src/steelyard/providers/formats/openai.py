"""OpenAI chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steelyard.errors import FilteredInput, Unavailable
from steelyard.protocols import OfferedModel, Provider, ProviderSettings
from steelyard.providers.bodies import (
    LenientNumbers,
    as_dict,
    as_list,
    content_text,
    tool_call,
)
from steelyard.providers.faults import FaultKind, block_reason, error_message, finish_kind, settled_finish
from steelyard.providers.formats.base import HttpModel
from steelyard.providers.formats.chunks import DELTAS, called_tools, choice_index, joined_chunks, refusal_text
from steelyard.providers.formats.dialects import chat_dialect, chat_native, in_dialect, unsupported_in
from steelyard.providers.formats.parts import (
    AUDIO_FORMATS,
    base64_data,
    data_url,
    file_name,
    media_type,
    not_in_format,
)
from steelyard.providers.prompt_cache import PromptCacheMarks
from steelyard.records import Answer, Attempt, ContentPart, Finish, Message, MessageRole
from steelyard.secret_texts import Secret


class _OpenAIModel(msgspec.Struct):
    id: str
    owned_by: str | None = None


class _OpenAIModelList(msgspec.Struct):
    data: list[_OpenAIModel]


class OpenAIProvider(HttpModel):
    """One model behind a chat-completions endpoint."""

    takes_tools = True

    def __init__(self, model: str, settings: ProviderSettings, *, base_url: str = "", dialect: str = "") -> None:
        super().__init__(model, settings, self.key_headers(settings), base_url=base_url)
        self.dialect_name, self.dialect = chat_dialect(dialect or settings.dialect, self.endpoint)
        self._cache_marks = PromptCacheMarks()
        if self.dialect.stream_usage:
            self.stream_fields = {"stream": True, "stream_options": {"include_usage": True}}

    def key_headers(self, settings: ProviderSettings) -> dict[str, str]:
        """The headers that say who asks."""
        headers = {"authorization": Secret(f"Bearer {settings.api_key}")} if settings.api_key else {}
        return headers | ({"openai-organization": settings.org_id} if settings.org_id else {})

    def path(self, *, streams: bool) -> str:  # noqa: ARG002  the body says whether it is a stream
        return "/chat/completions"

    def request(self, attempt: Attempt) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [chat_message(message, self.endpoint) for message in attempt.messages],
        }
        if attempt.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in attempt.tools
            ]
        whole = body | in_dialect(attempt.parameters, self.dialect)
        if self.dialect_name != "openrouter" or not self.model.startswith("anthropic/"):
            return whole
        return self._cache_marks.marked_chat(whole, attempt.samples, attempt.shared_characters)

    def unsupported(self, parameters: Mapping[str, Any]) -> str:
        return unsupported_in(self.dialect, parameters)

    def answer(self, response: dict[str, Any], sent: Any) -> Answer:
        choice, others = self.choice(response, sent)
        message = as_dict(choice.get("message"))
        if message.get("content") is None and choice.get("text"):
            message["content"] = choice["text"]  # the older format
        if not message and finish_kind(choice.get("finish_reason")) is FaultKind.ANSWER:
            raise Unavailable(f"{self.endpoint}: sent a choice without a message")
        text, refusal = content_text(message.get("content")), refusal_text(message.get("refusal"))
        calls = called_tools(message)
        finish, note = settled_finish(
            choice.get("finish_reason"), has_content=bool(text or refusal or calls), where=self.endpoint
        )
        answer = Answer(
            text=refusal or text,
            finish=Finish.REFUSAL if message.get("refusal") else finish,
            reasoning=_message_reasoning(message),
            tool_calls=tuple(map(tool_call, calls)),
            other_choices=tuple(content_text(as_dict(other.get("message")).get("content")) for other in others),
            native=chat_native(message, calls, self.dialect_name),
            note=note,
        )
        answer = answer_with_usage(answer, response)
        self._cache_marks.learn(answer)
        return answer

    def choice(self, completion: dict[str, Any], sent: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The first choice and the others; raises if there is none, or an error in it."""
        choices = sorted(map(as_dict, as_list(completion.get("choices"))), key=choice_index)
        if not choices:
            if reason := block_reason(completion):
                raise FilteredInput(f"{self.endpoint}: the prompt was blocked: {reason}")
            detail = self.http.clean(error_message(completion))[:300]
            raise Unavailable(f"{self.endpoint}: sent a completion without choices: {detail}")
        self.http.check_errors(sent, choices[0], choices[0].get("message"))
        return choices[0], choices[1:]

    def joined(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        return joined_chunks(events)

    def is_token(self, event: dict[str, Any]) -> bool:
        parts = map(as_dict, as_list(event.get("choices")))
        return any(part.get("text") or any(as_dict(part.get("delta")).get(name) for name in DELTAS) for part in parts)

    async def offers(self) -> list[OfferedModel]:
        listed = self.http.decode(await self.http.exchange("GET", "/models"), _OpenAIModelList)
        return [OfferedModel(model.id, model.owned_by or "") for model in listed.data]


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A chat-completions endpoint, asked for one model."""
    return {model: OpenAIProvider(model, settings)}


def chat_message(message: Message, where: str) -> dict[str, Any]:
    """A message as chat completions have it."""
    if message.role == MessageRole.TOOL:
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    if message.native:
        return message.native[0]
    if message.tool_calls:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
        return {"role": message.role, "content": message.text or None, "tool_calls": calls}
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content}
    return {"role": message.role, "content": [_chat_part(part, where) for part in message.content]}


def _chat_part(part: ContentPart, where: str) -> dict[str, Any]:
    match part.type:
        case "text":
            return {"type": "text", "text": part.text}
        case "image":
            return {"type": "image_url", "image_url": {"url": data_url(part)}}
        case "audio" if not part.url and media_type(part) in AUDIO_FORMATS:
            return {
                "type": "input_audio",
                "input_audio": {"data": base64_data(part), "format": AUDIO_FORMATS[media_type(part)]},
            }
        case "file" if not part.url:
            return {"type": "file", "file": {"filename": file_name(part), "file_data": data_url(part)}}
    raise not_in_format(part, where)


# ---- the bodies of responses


def _message_reasoning(message: dict[str, Any]) -> str:
    """What the model thought aloud: beside its text, or in parts of it as Mistral sends them."""
    parts = [part.get("thinking") for part in map(as_dict, as_list(message.get("content")))]
    return content_text(message.get("reasoning_content") or message.get("reasoning") or parts)


def answer_with_usage(bare_answer: Answer, completion: dict[str, Any]) -> Answer:
    """The answer with its usage, as far as the server reports it."""
    usage, numbers = as_dict(completion.get("usage")), LenientNumbers()
    inputs, outputs = as_dict(usage.get("prompt_tokens_details")), as_dict(usage.get("completion_tokens_details"))
    cached = inputs.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    answer = msgspec.structs.replace(
        bare_answer,
        input_tokens=numbers.tokens("prompt_tokens", usage.get("prompt_tokens")),
        output_tokens=numbers.tokens("completion_tokens", usage.get("completion_tokens")),
        cached_tokens=numbers.tokens("cached_tokens", cached),
        cache_write_tokens=numbers.tokens("cache_write_tokens", inputs.get("cache_write_tokens")),
        reasoning_tokens=numbers.tokens("reasoning_tokens", outputs.get("reasoning_tokens")),
        cost=numbers.cost("cost", usage.get("cost"), "the provider"),
        request_id=str(completion.get("id") or ""),
    )
    return msgspec.structs.replace(answer, note="; ".join(filter(None, (answer.note, numbers.note))))
