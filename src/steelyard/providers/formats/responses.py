"""OpenAI Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.protocols import Provider, ProviderSettings
from steelyard.providers.bodies import (
    LenientNumbers,
    as_dict,
    content_text,
    strict_dict,
    strict_list,
    tool_call,
)
from steelyard.providers.faults import settled_finish
from steelyard.providers.formats.base import schema_of
from steelyard.providers.formats.chunks import refusal_text
from steelyard.providers.formats.openai import OpenAIProvider
from steelyard.providers.formats.parts import data_url, file_name, not_in_format
from steelyard.records import Answer, Attempt, ContentPart, Finish, Message, MessageRole

FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
"""Events that contain the whole response."""


class OpenAIResponsesProvider(OpenAIProvider):
    """One model behind a responses endpoint."""

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        super().__init__(model, settings)
        self.stream_fields = {"stream": True}

    def path(self, *, streams: bool) -> str:  # noqa: ARG002  the body says whether it is a stream
        return "/responses"

    def request(self, attempt: Attempt) -> dict[str, Any]:
        # this format knows no seed and refuses what it does not know
        given = {name: value for name, value in attempt.parameters.items() if name != "seed"}
        body: dict[str, Any] = {
            "model": self.model,
            "input": [item for message in attempt.messages for item in _items(message, self.endpoint)],
        }
        if attempt.tools:
            body["tools"] = [
                {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema}
                | {"strict": False}
                for tool in attempt.tools
            ]
        else:
            # with tools, the reasoning of one turn is looked up for the next
            body["store"] = False
        if "max_tokens" in given:
            given["max_output_tokens"] = given.pop("max_tokens")
        if "reasoning_effort" in given:
            given["reasoning"] = {**as_dict(given.get("reasoning")), "effort": given.pop("reasoning_effort")}
        if "response_format" in given:
            given["text"] = {**as_dict(given.get("text")), "format": _text_format(given.pop("response_format"))}
        return body | given

    def unsupported(self, parameters: Mapping[str, Any]) -> str:  # noqa: ARG002  this format has all of them
        return ""

    def answer(self, response: dict[str, Any], sent: Any) -> Answer:  # noqa: ARG002  errors are looked for before
        items = list(map(strict_dict, strict_list(response.get("output"))))
        said = [strict_list(item.get("content")) for item in items if item.get("type") == "message"]
        parts = [strict_dict(part) for content in said for part in content]
        text = "".join(content_text(part.get("text")) for part in parts if part.get("type") == "output_text")
        refusal = "".join(refusal_text(part.get("refusal")) for part in parts)
        calls = tuple(_call(item) for item in items if str(item.get("type")).endswith("_call") and item.get("name"))
        reason = as_dict(response.get("incomplete_details")).get("reason") or response.get("status")
        if reason == "completed":
            if not items:
                raise ValueError("it is completed and has no output")
            reason = "tool_calls" if calls else "stop"
        finish, note = settled_finish(reason, has_content=bool(text or refusal or calls), where=self.endpoint)
        usage, numbers = as_dict(response.get("usage")), LenientNumbers()
        inputs, outputs = as_dict(usage.get("input_tokens_details")), as_dict(usage.get("output_tokens_details"))
        return Answer(
            text=refusal or text,
            finish=Finish.REFUSAL if refusal else finish,
            reasoning="".join(_reasoning(item) for item in items if item.get("type") == "reasoning"),
            input_tokens=numbers.tokens("input_tokens", usage.get("input_tokens")),
            output_tokens=numbers.tokens("output_tokens", usage.get("output_tokens")),
            cached_tokens=numbers.tokens("cached_tokens", inputs.get("cached_tokens")),
            reasoning_tokens=numbers.tokens("reasoning_tokens", outputs.get("reasoning_tokens")),
            request_id=str(response.get("id") or ""),
            tool_calls=calls,
            native=tuple(items) if calls else (),
            note="; ".join(filter(None, (note, numbers.note))),
        )

    def joined(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        for event in reversed(events):
            if event.get("type") in FINAL_EVENTS:
                whole = as_dict(event.get("response"))
                # some servers leave the output out of the last event
                items = [each.get("item") for each in events if each.get("type") == "response.output_item.done"]
                return whole if whole.get("output") or not items else whole | {"output": items}
            if event.get("type") == "error":
                return {"error": event.get("error") or event}
        raise ValueError("the stream broke off")

    def is_token(self, event: dict[str, Any]) -> bool:
        return str(event.get("type")).endswith(".delta")


def _items(message: Message, where: str) -> list[Any]:
    """What a message is in the input."""
    if message.role == MessageRole.TOOL:
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}]
    if message.native:
        return list(message.native)
    if message.tool_calls:
        said = [{"role": message.role, "content": message.text}] if message.text else []
        calls = [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
        return [*said, *calls]
    if isinstance(message.content, str):
        return [{"role": message.role, "content": message.content}]
    return [{"role": message.role, "content": [_input_part(part, where) for part in message.content]}]


def _input_part(part: ContentPart, where: str) -> dict[str, Any]:
    match part.type:
        case "text":
            return {"type": "input_text", "text": part.text}
        case "image":
            return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
        case "file":
            if part.url:
                return {"type": "input_file", "file_url": part.url}
            return {"type": "input_file", "filename": file_name(part), "file_data": data_url(part)}
    raise not_in_format(part, where)


def _text_format(response_format: Any) -> Any:
    name, schema = schema_of(response_format)
    if not schema:
        return response_format
    described = response_format["json_schema"]
    return {"type": "json_schema", "name": name, "schema": schema, "strict": bool(described.get("strict"))}


def _call(item: dict[str, Any]) -> Any:
    return tool_call({**item, "id": item.get("call_id") or item.get("id")})


def _reasoning(item: dict[str, Any]) -> str:
    """What the model thought aloud, or a summary of it."""
    return content_text(item.get("content")) or content_text(item.get("summary"))


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A responses endpoint, asked for one model."""
    return {model: OpenAIResponsesProvider(model, settings)}
