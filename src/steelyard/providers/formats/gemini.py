"""Gemini's generateContent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import msgspec

from steelyard.errors import FilteredInput, Unavailable
from steelyard.protocols import OfferedModel, Provider, ProviderSettings
from steelyard.providers.bodies import LenientNumbers, as_dict, as_list, content_text, strict_dict, strict_list
from steelyard.providers.faults import block_reason, error_message, has_finish, settled_finish
from steelyard.providers.formats.anthropic import arguments_object
from steelyard.providers.formats.base import HttpModel, schema_of
from steelyard.providers.formats.chunks import choice_index
from steelyard.providers.formats.parts import base64_data, media_type, system_text, turns
from steelyard.records import Answer, Attempt, ContentPart, Finish, Message, MessageRole, ToolCall

CONFIG_NAMES = {
    "max_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
"""What this format calls the parameters of others."""
REQUEST_FIELDS = ("safetySettings", "toolConfig", "cachedContent", "labels", "serviceTier")
"""Parameters that stand beside the configuration, not in it."""
THINKING_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
"""Tokens that an effort is for the models before Gemini 3, as the vendor's own server for OpenAI's format has it."""


class _GeminiModel(msgspec.Struct):
    name: str
    displayName: str = ""  # noqa: N815  as it is called there


class _GeminiModelList(msgspec.Struct):
    models: list[_GeminiModel]


class GeminiProvider(HttpModel):
    """One model behind a generateContent endpoint."""

    takes_tools = True
    stream_fields = MappingProxyType({})  # the path says whether it is a stream

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        super().__init__(model, settings, {"x-goog-api-key": settings.api_key} if settings.api_key else {})
        self._is_older = model.removeprefix("models/").startswith(("gemini-1", "gemini-2"))

    def path(self, *, streams: bool) -> str:
        model = quote(self.model.removeprefix("models/"), safe="")
        return f"/models/{model}:" + ("streamGenerateContent?alt=sse" if streams else "generateContent")

    def request(self, attempt: Attempt) -> dict[str, Any]:
        given = dict(attempt.parameters)
        body: dict[str, Any] = {"contents": _contents(attempt.messages)}
        if system := system_text(attempt.messages):
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if attempt.tools:
            declared = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
                for tool in attempt.tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
        body |= {name: given.pop(name) for name in REQUEST_FIELDS if name in given}
        effort, shape = given.pop("reasoning_effort", None), given.pop("response_format", None)
        config = {CONFIG_NAMES.get(name, name): value for name, value in given.items()}
        if isinstance(config.get("stopSequences"), str):
            config["stopSequences"] = [config["stopSequences"]]
        if effort is not None:
            config["thinkingConfig"] = (
                {"thinkingBudget": THINKING_BUDGETS[effort]} if self._is_older else {"thinkingLevel": effort}
            )
        if shape is not None:
            schema = schema_of(shape)[1]
            config |= {"responseMimeType": "application/json"} | ({"responseJsonSchema": schema} if schema else {})
        return body | ({"generationConfig": config} if config else {})

    def unsupported(self, parameters: Mapping[str, Any]) -> str:
        effort = parameters.get("reasoning_effort")
        known = tuple(THINKING_BUDGETS) if self._is_older else ("minimal", "low", "medium", "high")
        return f"has no reasoning effort {effort}; it has {', '.join(known)}" if effort and effort not in known else ""

    def answer(self, response: dict[str, Any], sent: Any) -> Answer:  # noqa: ARG002  errors are looked for before
        candidates = sorted(map(strict_dict, strict_list(response.get("candidates"))), key=choice_index)
        if not candidates:
            if reason := block_reason(response):
                raise FilteredInput(f"{self.endpoint}: the prompt was blocked: {reason}")
            detail = self.http.clean(error_message(response))[:300]
            raise Unavailable(f"{self.endpoint}: sent no candidate: {detail}")
        parts = _parts(candidates[0])
        text = _text(parts)
        calls = tuple(_call(as_dict(part["functionCall"])) for part in parts if part.get("functionCall"))
        finish, note = settled_finish(
            candidates[0].get("finishReason"), has_content=bool(text or calls), where=self.endpoint
        )
        usage, numbers = as_dict(response.get("usageMetadata")), LenientNumbers()
        said, thought = (
            numbers.tokens(name, usage.get(name)) for name in ("candidatesTokenCount", "thoughtsTokenCount")
        )
        return Answer(
            text=text,
            # this format says STOP for a call as well
            finish=Finish.TOOL_CALLS if calls and finish == Finish.STOP else finish,
            reasoning="".join(content_text(part.get("text")) for part in parts if part.get("thought")),
            input_tokens=numbers.tokens("promptTokenCount", usage.get("promptTokenCount")),
            # here reasoning is counted beside the output, elsewhere as a part of it
            output_tokens=None if said is None and thought is None else (said or 0) + (thought or 0),
            cached_tokens=numbers.tokens("cachedContentTokenCount", usage.get("cachedContentTokenCount")),
            reasoning_tokens=thought,
            request_id=str(response.get("responseId") or ""),
            tool_calls=calls,
            other_choices=tuple(_text(_parts(other)) for other in candidates[1:]),
            # with the signatures of what it thought, which the next request must have
            native=tuple(parts) if calls else (),
            note="; ".join(filter(None, (note, numbers.note))),
        )

    def joined(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        candidates: dict[int, dict[str, Any]] = {}
        for event in events:
            whole |= {name: value for name, value in event.items() if name != "candidates"}
            for part in map(strict_dict, strict_list(event.get("candidates"))):
                candidate = candidates.setdefault(choice_index(part), {})
                brings_more = any(piece.get("text") or piece.get("functionCall") for piece in _parts(part))
                # some servers write a finish reason into every event
                if brings_more and has_finish(candidate.get("finishReason")) > has_finish(part.get("finishReason")):
                    raise ValueError("the stream went on after its end")
                said = _parts(candidate)
                for piece in _parts(part):
                    _add_part(said, piece)
                candidate |= {name: value for name, value in part.items() if value is not None}
                candidate["content"] = {"role": "model", "parts": said}
        finished = candidates and all(has_finish(each.get("finishReason")) for each in candidates.values())
        if not (finished or block_reason(whole) or whole.get("error")):
            raise ValueError("the stream broke off")
        return whole | ({"candidates": list(candidates.values())} if candidates else {})

    def is_token(self, event: dict[str, Any]) -> bool:
        candidates = map(as_dict, as_list(event.get("candidates")))
        return any(as_dict(candidate.get("content")).get("parts") for candidate in candidates)

    async def offers(self) -> list[OfferedModel]:
        listed = self.http.decode(await self.http.exchange("GET", "/models?pageSize=1000"), _GeminiModelList)
        return [OfferedModel(model.name.removeprefix("models/"), model.displayName) for model in listed.models]


def _parts(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    return list(map(strict_dict, strict_list(strict_dict(candidate.get("content")).get("parts"))))


def _add_part(parts: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a part of a stream; the halves of a character may come in two of them."""
    is_text = isinstance(piece.get("text"), str) and piece.keys() <= {"text", "thought"}
    if is_text and parts and parts[-1] | {"text": ""} == piece | {"text": ""}:
        parts[-1] = parts[-1] | {"text": content_text(parts[-1].get("text")) + piece["text"]}
    else:
        parts.append(piece)


def _text(parts: list[dict[str, Any]]) -> str:
    return "".join(content_text(part.get("text")) for part in parts if not part.get("thought"))


def _contents(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """A conversation as this format has it: the results of tools are one message of the user's."""
    made: list[dict[str, Any]] = []
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    for is_result, group in groupby(turns(messages), key=lambda message: message.role == MessageRole.TOOL):
        if is_result:
            made.append({"role": "user", "parts": [_result(message, names) for message in group]})
        else:
            made += map(_content, group)
    return made


def _content(message: Message) -> dict[str, Any]:
    role = "model" if message.role == MessageRole.ASSISTANT else message.role
    if message.native:
        return {"role": role, "parts": list(message.native)}
    calls = [
        {"functionCall": {"name": call.name, "args": arguments_object(call.arguments)}} for call in message.tool_calls
    ]
    return {"role": role, "parts": [*map(_part, message.parts), *calls] or [{"text": ""}]}


def _result(message: Message, names: Mapping[str, str]) -> dict[str, Any]:
    told = {"error" if message.is_error else "result": message.text}
    name = names.get(message.tool_call_id, message.tool_call_id)
    # a server that gave the call no id expects none back
    known = {} if message.tool_call_id.startswith(UNNAMED_CALL) else {"id": message.tool_call_id}
    return {"functionResponse": {"name": name, "response": told, **known}}


UNNAMED_CALL = "call-of-"
"""How a call begins that this format gave no id."""


def _call(call: dict[str, Any]) -> ToolCall:
    name = str(call.get("name") or "")
    arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
    return ToolCall(name=name, arguments=arguments, id=str(call.get("id") or f"{UNNAMED_CALL}{name}"))


def _part(part: ContentPart) -> dict[str, Any]:
    if part.type == "text":
        return {"text": part.text}
    if part.url:
        return {"fileData": {"fileUri": part.url, "mimeType": media_type(part)}}
    return {"inlineData": {"mimeType": media_type(part), "data": base64_data(part)}}


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A generateContent endpoint, asked for one model."""
    return {model: GeminiProvider(model, settings)}
