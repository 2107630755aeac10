"""Anthropic messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steelyard.errors import FilteredInput, Rejected, Unavailable
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings
from steelyard.providers.bodies import (
    LenientNumbers,
    as_dict,
    content_text,
    json_value,
    strict_dict,
    strict_list,
    tool_call,
)
from steelyard.providers.faults import (
    FaultKind,
    PhraseMeaning,
    block_reason,
    finish_kind,
    server_phrase,
    settled_finish,
)
from steelyard.providers.formats.base import HttpModel, schema_of
from steelyard.providers.formats.parts import (
    base64_data,
    file_text,
    grouped_turns,
    media_type,
    not_in_format,
    system_text,
)
from steelyard.providers.prompt_cache import PromptCacheMarks
from steelyard.records import Answer, Attempt, ContentPart, Message, ToolCall

ANTHROPIC_API_VERSION = "2023-06-01"
MOST_TOKENS = 128_000
"""The format demands a limit on the reply. Where the user sets none, no model is cut short: this is sent, or what a server says is its most."""
MAX_UNSTREAMED_TOKENS = 21_333
"""Longer answers may take more than ten minutes; the vendor's own clients refuse to wait for them in silence."""


class _AnthropicModel(msgspec.Struct):
    id: str
    display_name: str = ""


class _AnthropicModelList(msgspec.Struct):
    data: list[_AnthropicModel]


class AnthropicProvider(HttpModel):
    """One model behind a messages endpoint."""

    takes_tools = True

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        headers = {"anthropic-version": ANTHROPIC_API_VERSION, "x-api-key": settings.api_key}
        address, mark, query = settings.base_url.partition("?")
        super().__init__(model, settings, headers, base_url=address.rstrip("/").removesuffix("/v1") + mark + query)
        self._most_tokens = MOST_TOKENS
        self._cache_marks = PromptCacheMarks()

    def path(self, *, streams: bool) -> str:  # noqa: ARG002  the body says whether it is a stream
        return "/v1/messages"

    def request(self, attempt: Attempt) -> dict[str, Any]:
        # this format knows no seed and refuses what it does not know
        given = {name: value for name, value in attempt.parameters.items() if name != "seed"}
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self._most_tokens,
            "messages": grouped_turns(attempt.messages, lambda message: _content(message, self.endpoint), _tool_result),
        }
        if system := system_text(attempt.messages):
            body["system"] = system
        if attempt.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in attempt.tools
            ]
        output: dict[str, Any] = dict(as_dict(given.pop("output_config", None)))
        effort, shape = given.pop("reasoning_effort", None), given.pop("response_format", None)
        if effort is not None:
            given.setdefault("thinking", {"type": "disabled" if effort == "none" else "adaptive"})
            output |= {"effort": effort} if effort != "none" else {}
        if shape is not None:
            output["format"] = {"type": "json_schema", "schema": schema_of(shape)[1]}
        whole = body | given | ({"output_config": output} if output else {})
        return self._cache_marks.marked(whole, attempt.samples, attempt.shared_characters)

    def unsupported(self, parameters: Mapping[str, Any]) -> str:
        if parameters.get("reasoning_effort") == "minimal":
            return "has no reasoning effort minimal; it has none, low, medium, high, xhigh and max"
        if "response_format" in parameters and not schema_of(parameters["response_format"])[1]:
            return "supports only a JSON Schema; name a file with one: --response-format schema.json"
        return ""

    def may_be_long(self, sent: Mapping[str, Any]) -> bool:
        limit = sent.get("max_tokens")
        return isinstance(limit, int) and limit > MAX_UNSTREAMED_TOKENS

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        try:
            return await super().ask(attempt, delivery)
        except Rejected as error:
            if "max_tokens" in attempt.parameters or "max_tokens" not in error.parameters:
                raise
            found = server_phrase(PhraseMeaning.MOST_TOKENS, str(error))
            most = int(found[1]) if found else 0
            if not 0 < most < self._most_tokens:
                raise Rejected(f"{error}; set --max-tokens", everyone=error.everyone) from None
            self._most_tokens = most
        return await super().ask(attempt, delivery)

    def answer(self, response: dict[str, Any], sent: Any) -> Answer:
        content = response.get("content")
        if content is None:
            if reason := block_reason(response):
                raise FilteredInput(f"{self.endpoint}: the prompt was blocked: {reason}")
            if finish_kind(response.get("stop_reason")) is FaultKind.ANSWER:
                raise Unavailable(f"{self.endpoint}: sent a message without content")
        # some gateways send plain text, which the format allows in requests only
        blocks = [
            {"type": "text", "text": block} if isinstance(block, str) else strict_dict(block)
            for block in (content if isinstance(content, list) else [content])
        ]
        self.http.check_errors(sent, *blocks)
        text = "".join(content_text(block) for block in blocks if block.get("type") == "text")
        calls = tuple(tool_call(block) for block in blocks if str(block.get("type")).endswith("tool_use"))
        finish, note = settled_finish(response.get("stop_reason"), has_content=bool(text or calls), where=self.endpoint)
        usage, numbers = as_dict(response.get("usage")), LenientNumbers()
        fresh, cached, created = (
            numbers.tokens(name, usage.get(name))
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        details = as_dict(usage.get("output_tokens_details"))
        found = Answer(
            text=text,
            finish=finish,
            reasoning="".join(content_text(block.get("thinking")) for block in blocks),
            # here cached tokens are counted beside the input, elsewhere as a part of it
            input_tokens=None if fresh is None else fresh + (cached or 0) + (created or 0),
            output_tokens=numbers.tokens("output_tokens", usage.get("output_tokens")),
            reasoning_tokens=numbers.tokens("thinking_tokens", details.get("thinking_tokens")),
            cached_tokens=cached,
            cache_write_tokens=created,
            cache_write_1h_tokens=numbers.tokens(
                "ephemeral_1h_input_tokens", as_dict(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")
            ),
            is_batch=usage.get("service_tier") == "batch",
            request_id=str(response.get("id") or ""),
            tool_calls=calls,
            native=_given_back(blocks) if calls else (),
            note="; ".join(filter(None, (note, numbers.note))),
        )
        self._cache_marks.learn(found)
        return found

    def joined(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        return joined_events(events)

    def is_token(self, event: dict[str, Any]) -> bool:
        return event.get("type") == "content_block_delta"

    async def offers(self) -> list[OfferedModel]:
        listed = self.http.decode(await self.http.exchange("GET", "/v1/models?limit=1000"), _AnthropicModelList)
        return [OfferedModel(model.id, model.display_name) for model in listed.data]


def _tool_result(message: Message) -> dict[str, Any]:
    failed = {"is_error": True} if message.is_error else {}
    return {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.text, **failed}


def _given_back(blocks: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The blocks of a message as they have to come back, thinking with its signature included."""
    return tuple(
        block | {"input": arguments_object(block["input"])} if isinstance(block.get("input"), str) else block
        for block in blocks
    )


def _content(message: Message, where: str) -> Any:
    if message.native:
        return list(message.native)
    if message.tool_calls:
        text = [{"type": "text", "text": message.text}] if message.text else []
        return [*text, *map(_tool_use, message.tool_calls)]
    if isinstance(message.content, str):
        return message.content
    return [_block(part, where) for part in message.content]


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call.arguments)}


def arguments_object(arguments: str) -> dict[str, Any]:
    """The arguments of a call as an object; any other value is kept under a name."""
    try:
        value = json_value(arguments.encode()) if arguments.strip() else {}
    except ValueError:
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}


def _block(part: ContentPart, where: str) -> dict[str, Any]:
    if part.type == "text":
        return {"type": "text", "text": part.text}
    kind = media_type(part)
    name = {"image": "image", "file": "document"}.get(part.type)
    if name is None:
        raise not_in_format(part, where)
    if part.url:
        return {"type": name, "source": {"type": "url", "url": part.url}}
    if name == "document" and kind.startswith(("text/", "application/json")):
        return {"type": name, "source": {"type": "text", "media_type": "text/plain", "data": file_text(part)}}
    return {"type": name, "source": {"type": "base64", "media_type": kind, "data": base64_data(part)}}


def joined_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that the events of a stream make; raises ValueError where the stream broke off."""
    message: dict[str, Any] | None = None
    ended: dict[str, Any] = {}
    blocks: list[tuple[Any, dict[str, Any]]] = []
    for event in events:
        kind, delta = event.get("type"), as_dict(event.get("delta"))
        if kind == "message_start":
            if message is not None:
                raise ValueError("the stream has two messages")
            message = as_dict(event.get("message"))
            blocks += enumerate(map(strict_dict, strict_list(message.get("content"))))
        elif kind == "content_block_start":
            blocks.append((event.get("index"), {**strict_dict(event.get("content_block"))}))
        elif kind == "content_block_delta":
            # parts of several blocks may come in turns
            block = next((block for index, block in reversed(blocks) if index == event.get("index")), None)
            if block is None or not delta or ended.get("stop_reason"):
                raise ValueError("a part of the answer has no place in it")
            _add_delta(block, delta)
        elif kind == "message_delta":
            ended |= delta
            ended["usage"] = {**as_dict((message or {}).get("usage")), **as_dict(event.get("usage"))}
        elif kind == "message_stop":
            ended = {"stop_reason": (message or {}).get("stop_reason"), **ended}
        elif kind == "error":
            return {"error": event.get("error") or "error"}
    if not ended.get("stop_reason"):
        raise ValueError("the stream broke off")
    return (message or {}) | ended | {"content": [block for _, block in blocks]}


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    for name in ("text", "thinking", "signature"):
        if name in delta:
            block[name] = content_text(block.get(name)) + content_text(delta[name])
    if "partial_json" in delta:
        begun = block.get("input")
        block["input"] = (begun if isinstance(begun, str) else "") + content_text(delta["partial_json"])


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A messages endpoint, asked for one model."""
    return {model: AnthropicProvider(model, settings)}
