"""Amazon Bedrock's Converse."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from steelyard.errors import InputError, Rejected
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings
from steelyard.providers.bodies import LenientNumbers, as_dict, content_text, json_value, strict_dict, strict_list
from steelyard.providers.faults import FaultKind, PhraseMeaning, finish_kind, server_phrase, settled_finish
from steelyard.providers.formats.anthropic import arguments_object
from steelyard.providers.formats.base import HttpModel, schema_of
from steelyard.providers.formats.parts import (
    base64_data,
    file_name,
    grouped_turns,
    media_type,
    not_in_format,
    system_text,
)
from steelyard.providers.prompt_cache import PromptCacheMarks
from steelyard.providers.wire import RequestSigner
from steelyard.records import Answer, Attempt, ContentPart, Message, ToolCall
from steelyard.secret_texts import Secret


class AwsCredentials(NamedTuple):
    """Who asks."""

    access_key: str
    secret_key: str
    session_token: str = ""


def signed_headers(
    credentials: AwsCredentials, method: str, url: str, body: bytes, *, region: str, service: str, at: datetime
) -> dict[str, str]:
    """The headers that sign a request, by the rules that AWS publishes for Signature Version 4."""
    parts = urlsplit(url)
    timestamp = at.strftime("%Y%m%dT%H%M%SZ")
    # as the client sends it: without the port that goes without saying
    host = parts.netloc.lower().removesuffix({"http": ":80", "https": ":443"}.get(parts.scheme, ""))
    headers = {"host": host, "x-amz-date": timestamp}
    if credentials.session_token:
        headers["x-amz-security-token"] = credentials.session_token
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    names = ";".join(sorted(headers))
    request = "\n".join(
        (
            method,
            # the path is encoded a second time, everywhere but at S3
            quote(parts.path or "/", safe="/-_.~"),
            _canonical_query(parts.query),
            *(f"{name}:{headers[name]}" for name in sorted(headers)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    to_sign = "\n".join(("AWS4-HMAC-SHA256", timestamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for piece in scope.split("/"):
        key = _hmac(key, piece)
    signature = _hmac(key, to_sign).hex()
    authorization = Secret(
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return _without_host(headers) | {"authorization": authorization}


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _canonical_query(query: str) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query, True))
    return "&".join(f"{name}={value}" for name, value in pairs)


def _without_host(headers: Mapping[str, str]) -> dict[str, str]:
    # the client sends it by itself
    return {name: value for name, value in headers.items() if name != "host"}


REGION_PATTERN = re.compile(r"//(?:[^/]*\.)?bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")
DEFAULT_REGION = "us-east-1"
INFERENCE_NAMES = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
"""Parameters of all models; the others are passed on to the model as they are."""
REQUEST_FIELDS = ("guardrailConfig", "performanceConfig", "serviceTier", "requestMetadata")
"""Parameters of the format's own."""
CACHING_MODEL_PATTERN = re.compile(r"anthropic\.claude-(?!v|instant|3-(haiku|sonnet|opus))|amazon\.nova")
"""Models that cache the beginning of a prompt where a request says so; others refuse the mark, or do it by themselves."""
EVENT_PRELUDE = struct.Struct(">III")
STRING_HEADER = 7


class BedrockProvider(HttpModel):
    """One model behind the runtime of Bedrock."""

    takes_tools = True
    stream_fields = MappingProxyType({})  # the path says whether it is a stream

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        if not settings.base_url:
            raise InputError("provider bedrock: no region; set AWS_REGION, such as us-east-1, or give --base-url")
        headers, sign, secrets = _authentication(settings)
        super().__init__(model, settings, headers, sign=sign, secrets=secrets)
        self._cache_marks = PromptCacheMarks(as_blocks=True)

    def path(self, *, streams: bool) -> str:
        return f"/model/{quote(self.model, safe='')}/converse" + ("-stream" if streams else "")

    def request(self, attempt: Attempt) -> dict[str, Any]:
        # this format knows no seed
        given = {name: value for name, value in attempt.parameters.items() if name != "seed"}
        body: dict[str, Any] = {
            "messages": grouped_turns(attempt.messages, lambda message: _content(message, self.endpoint), _tool_result)
        }
        if system := system_text(attempt.messages):
            body["system"] = [{"text": system}]
        if attempt.tools:
            specs = [
                {"name": tool.name, "inputSchema": {"json": tool.schema}}
                # a description must not be empty
                | ({"description": tool.description} if tool.description else {})
                for tool in attempt.tools
            ]
            body["toolConfig"] = {"tools": [{"toolSpec": spec} for spec in specs]}
        body |= {name: given.pop(name) for name in REQUEST_FIELDS if name in given}
        if isinstance(given.get("stop"), str):
            given["stop"] = [given["stop"]]
        config = {theirs: given.pop(ours) for ours, theirs in INFERENCE_NAMES.items() if ours in given}
        output: dict[str, Any] = {}
        if "reasoning_effort" in given:
            output["effort"] = given.pop("reasoning_effort")
        if "response_format" in given:
            name, schema = schema_of(given.pop("response_format"))
            described = {"name": name, "schema": json.dumps(schema)}
            output["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": described}}
        filled = {"inferenceConfig": config, "outputConfig": output, "additionalModelRequestFields": given}
        whole = body | {name: value for name, value in filled.items() if value}
        if not CACHING_MODEL_PATTERN.search(self.model):
            return whole
        return self._cache_marks.marked(whole, attempt.samples, attempt.shared_characters)

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        try:
            return await super().ask(attempt, delivery)
        except Rejected as error:
            if not self._cache_marks.saves or not server_phrase(PhraseMeaning.CACHE_MARKS, str(error)):
                raise
            self._cache_marks.refuse()
        return await super().ask(attempt, delivery)

    def unsupported(self, parameters: Mapping[str, Any]) -> str:
        if parameters.get("reasoning_effort") in ("none", "minimal"):
            return "has the reasoning efforts low, medium, high, xhigh and max"
        if "response_format" in parameters and not schema_of(parameters["response_format"])[1]:
            return "supports only a JSON Schema; name a file with one: --response-format schema.json"
        return ""

    def answer(self, response: dict[str, Any], sent: Any) -> Answer:  # noqa: ARG002  errors are looked for before
        message = strict_dict(strict_dict(response.get("output")).get("message"))
        if not message and finish_kind(response.get("stopReason")) is FaultKind.ANSWER:
            raise ValueError("it has no message")
        blocks = list(map(strict_dict, strict_list(message.get("content"))))
        text = "".join(content_text(block.get("text")) for block in blocks)
        calls = tuple(_call(as_dict(block["toolUse"])) for block in blocks if block.get("toolUse"))
        finish, note = settled_finish(response.get("stopReason"), has_content=bool(text or calls), where=self.endpoint)
        usage, numbers = as_dict(response.get("usage")), LenientNumbers()
        fresh, cached, created = (
            numbers.tokens(name, usage.get(name))
            for name in ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
        )
        thoughts = [as_dict(as_dict(block.get("reasoningContent")).get("reasoningText")) for block in blocks]
        found = Answer(
            text=text,
            finish=finish,
            reasoning="".join(content_text(thought.get("text")) for thought in thoughts),
            # here cached tokens are counted beside the input, elsewhere as a part of it
            input_tokens=None if fresh is None else fresh + (cached or 0) + (created or 0),
            output_tokens=numbers.tokens("outputTokens", usage.get("outputTokens")),
            cached_tokens=cached,
            cache_write_tokens=created,
            tool_calls=calls,
            native=tuple(blocks) if calls else (),
            note="; ".join(filter(None, (note, numbers.note))),
        )
        self._cache_marks.learn(found)
        return found

    def events(self, body: bytes) -> Iterator[tuple[int, dict[str, Any]]] | None:
        return _events(body) if body.startswith(b"\0") else None

    def joined(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        blocks: dict[str, dict[str, Any]] = {}
        if sum("messageStart" in event for event in events) > 1:
            raise ValueError("the stream has two messages")
        for event in events:
            (kind, value), *_ = event.items()
            value = strict_dict(value)
            if kind.endswith(("Exception", "Error")):
                return {"error": {"type": kind, "message": value.get("message") or kind}}
            block = blocks.setdefault(str(value.get("contentBlockIndex")), {})
            if kind == "contentBlockStart" and "toolUse" in as_dict(value.get("start")):
                block["toolUse"] = {**as_dict(value["start"]["toolUse"]), "input": ""}
            elif kind == "contentBlockDelta":
                _add_delta(block, strict_dict(value.get("delta")))
            elif kind in ("messageStop", "metadata"):
                whole |= value
        if not whole.get("stopReason"):
            raise ValueError("the stream broke off")
        made = [_finished(block) for block in blocks.values() if block]
        return whole | {"output": {"message": {"role": "assistant", "content": made}}}

    def is_token(self, event: dict[str, Any]) -> bool:
        return "contentBlockDelta" in event

    async def offers(self) -> list[OfferedModel]:
        # models are listed by another service of theirs
        return []


def _authentication(settings: ProviderSettings) -> tuple[dict[str, str], RequestSigner | None, tuple[str, ...]]:
    """The headers, the signer and the secrets of a key: `ACCESS:SECRET`, `ACCESS:SECRET:SESSION`, or a key of Bedrock's own."""
    if ":" not in settings.api_key:
        return ({"authorization": Secret(f"Bearer {settings.api_key}")} if settings.api_key else {}), None, ()
    pieces = [Secret(piece) for piece in settings.api_key.split(":")]
    if len(pieces) > 3 or not all(pieces[:2]):
        raise InputError(
            "provider bedrock: api_key must be ACCESS_KEY:SECRET_KEY, with :SESSION_TOKEN where there is one"
        )
    credentials = AwsCredentials(*pieces)
    found = REGION_PATTERN.search(settings.base_url)
    region = found[1] if found else settings.region or DEFAULT_REGION

    def sign(method: str, url: str, body: bytes) -> Mapping[str, str]:
        return signed_headers(credentials, method, url, body, region=region, service="bedrock", at=datetime.now(UTC))

    return {}, sign, tuple(filter(None, credentials))


def _content(message: Message, where: str) -> Any:
    if message.native:
        return list(message.native)
    calls = [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments_object(call.arguments)}}
        for call in message.tool_calls
    ]
    return [*(_block(part, where) for part in message.parts), *calls]


def _tool_result(message: Message) -> dict[str, Any]:
    status = "error" if message.is_error else "success"
    return {"toolResult": {"toolUseId": message.tool_call_id, "content": [{"text": message.text}], "status": status}}


def _block(part: ContentPart, where: str) -> dict[str, Any]:
    if part.type == "text":
        return {"text": part.text}
    if part.url:
        raise not_in_format(part, where)
    source = {"bytes": base64_data(part)}
    suffix = media_type(part).partition("/")[2].removeprefix("x-")
    if part.type == "file":
        # a name may hold letters, digits, spaces, hyphens and brackets
        name = re.sub(r"[^\w\s()\[\]-]|_", "-", Path(file_name(part)).stem) or "file"
        ending = Path(file_name(part)).suffix.removeprefix(".").lower()
        return {"document": {"format": ending or suffix, "name": name, "source": source}}
    return {part.type: {"format": {"mpeg": "mp3"}.get(suffix, suffix), "source": source}}


def _call(used: dict[str, Any]) -> ToolCall:
    arguments = json.dumps(used.get("input") or {}, ensure_ascii=False)
    return ToolCall(name=str(used.get("name") or ""), arguments=arguments, id=str(used.get("toolUseId") or ""))


# ---- streams: frames with a length, headers, a payload and two checksums


def _events(body: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of a stream, each under its name; raises ValueError where one is not whole."""
    start = 0
    while start < len(body):
        if len(body) - start < EVENT_PRELUDE.size:
            raise ValueError("the stream broke off")
        size, header_size, _ = EVENT_PRELUDE.unpack_from(body, start)
        frame = body[start : start + size]
        if size < EVENT_PRELUDE.size + header_size + 4 or len(frame) < size:
            raise ValueError("the stream broke off")
        if zlib.crc32(frame[:-4]) != int.from_bytes(frame[-4:]):
            raise ValueError("an event of the stream is damaged")
        headers = _event_headers(frame[EVENT_PRELUDE.size : EVENT_PRELUDE.size + header_size])
        name = headers.get(":event-type") or headers.get(":exception-type") or "error"
        start += size
        yield start, {name: json_value(frame[EVENT_PRELUDE.size + header_size : -4] or b"{}")}


def _event_headers(data: bytes) -> dict[str, str]:
    """The headers of an event; all that Bedrock sends are texts."""
    headers, at = {}, 0
    while at < len(data):
        name_end = at + 1 + data[at]
        if data[name_end : name_end + 1] != bytes([STRING_HEADER]):
            raise ValueError("an event of the stream is damaged")
        value_start = name_end + 3
        value_end = value_start + int.from_bytes(data[name_end + 1 : value_start])
        headers[data[at + 1 : name_end].decode("utf-8", "replace")] = data[value_start:value_end].decode(
            "utf-8", "replace"
        )
        at = value_end
    return headers


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    if "text" in delta:
        block["text"] = content_text(block.get("text")) + content_text(delta["text"])
    if "toolUse" in delta:
        used = block.setdefault("toolUse", {"input": ""})
        used["input"] += content_text(as_dict(delta["toolUse"]).get("input"))
    if thought := as_dict(delta.get("reasoningContent")):
        kept = block.setdefault("reasoningContent", {})
        for name in ("text", "signature"):
            if name in thought:
                held = kept.setdefault("reasoningText", {})
                held[name] = content_text(held.get(name)) + content_text(thought[name])
        if "redactedContent" in thought:
            begun = base64.b64decode(kept.get("redactedContent", ""))
            piece = base64.b64decode(content_text(thought["redactedContent"]))
            kept["redactedContent"] = base64.b64encode(begun + piece).decode()


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    """A block of a stream as a whole response has it: the input of a call is an object."""
    used = block.get("toolUse")
    return block | {"toolUse": used | {"input": arguments_object(used["input"])}} if used else block


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """The runtime of Bedrock, asked for one model."""
    return {model: BedrockProvider(model, settings)}
