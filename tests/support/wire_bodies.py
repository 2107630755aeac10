"""One answer in every wire format, whole and as a stream, and the provider that reads it."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

from steelyard.plugins import load_plugin
from steelyard.protocols import Provider, ProviderSettings
from support.asking import KEY
from support.fault_server import FaultServer

FORMATS = ("openai", "openai-responses", "azure", "anthropic", "gemini", "bedrock")
STREAM_TYPE = {"content-type": "text/event-stream"}


def provider(server: FaultServer, kind: str, model: str = "m", **settings: Any) -> Provider:
    reached = {"api_key": KEY, "base_url": server.url, **settings}
    connect: Any = load_plugin("providers", kind)
    made: Provider = connect(model, ProviderSettings(type=kind, **reached))[model]
    return made


def sse(*events: Any) -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def frames(*events: tuple[str, Any]) -> bytes:
    """Events as Bedrock frames them."""
    made = b""
    for name, payload in events:
        named = "exception" if name.endswith("Exception") else "event"
        pairs = ((f":{named}-type", name), (":content-type", "application/json"), (":message-type", named))
        headers = b"".join(
            bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
            for key, value in pairs
        )
        content = json.dumps(payload).encode()
        prelude = struct.pack(">II", 16 + len(headers) + len(content), len(headers))
        prelude += struct.pack(">I", zlib.crc32(prelude))
        frame = prelude + headers + content
        made += frame + struct.pack(">I", zlib.crc32(frame))
    return made


def chat(finish: str = "stop", text: str = "hi") -> tuple[Any, bytes]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    message = {"role": "assistant", "content": text, "reasoning_content": "hm", "tool_calls": [call]}
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    whole = {"id": "r1", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}
    first: dict[str, Any] = dict(call)
    last = {"index": 0, "function": {"arguments": " 1}"}}
    first |= {"index": 0, "function": {"name": "look", "arguments": '{"at":'}}

    def delta(finish: str | None = None, **said: Any) -> Any:
        return {"id": "r1", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}

    parts = [delta(role="assistant"), delta(reasoning_content="hm"), *(delta(content=each) for each in text)]
    calls = [delta(tool_calls=[first]), delta(tool_calls=[last]), delta(finish)]
    return whole, sse(*parts, *calls, {"id": "r1", "choices": [], "usage": usage}) + b"data: [DONE]\n\n"


def responses(finish: str = "stop", text: str = "hi") -> tuple[Any, bytes]:
    whole = {
        "id": "r1",
        "status": "completed" if finish == "stop" else "incomplete",
        "incomplete_details": None if finish == "stop" else {"reason": finish},
        "output": [
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
        ],
        "usage": {
            "input_tokens": 9,
            "output_tokens": 5,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens_details": {"reasoning_tokens": 2},
        },
    }
    created = {"type": "response.created", "response": {"id": "r1", "status": "in_progress"}}
    deltas = [{"type": "response.output_text.delta", "delta": each} for each in text]
    kind = "response.completed" if finish == "stop" else "response.incomplete"
    return whole, sse(created, *deltas, {"type": kind, "response": whole})


def messages(finish: str = "tool_use", text: str = "hi") -> tuple[Any, bytes]:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 5}
    usage["output_tokens_details"] = {"thinking_tokens": 2}  # type: ignore[assignment]
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": text},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
    ]
    whole = {"id": "r1", "type": "message", "content": blocks, "stop_reason": finish, "usage": usage}
    empty = [{**blocks[0], "thinking": "", "signature": ""}, {**blocks[1], "text": ""}, {**blocks[2], "input": {}}]
    deltas = [
        [{"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "s"}],
        [{"type": "text_delta", "text": each} for each in text],
        [{"type": "input_json_delta", "partial_json": each} for each in ('{"at":', " 1}")],
    ]
    events: list[Any] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for index, (block, changes) in enumerate(zip(empty, deltas, strict=True)):
        events += [{"type": "content_block_start", "index": index, "content_block": block}, {"type": "ping"}]
        events += [{"type": "content_block_delta", "index": index, "delta": change} for change in changes]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": {"stop_reason": finish}, "usage": usage}, {"type": "message_stop"}]
    return whole, sse(*events)


def gemini(finish: str = "STOP", text: str = "hi") -> tuple[Any, bytes]:
    parts = [
        {"text": "hm", "thought": True},
        {"text": text},
        {"functionCall": {"id": "c1", "name": "look", "args": {"at": 1}}},
    ]
    usage = {
        "promptTokenCount": 9,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2,
        "cachedContentTokenCount": 4,
    }
    content = {"role": "model", "parts": parts}
    candidate = {"content": content, "finishReason": finish, "index": 0}
    whole = {"candidates": [candidate], "usageMetadata": usage, "responseId": "r1"}
    pieces = [parts[0], *({"text": each} for each in text), parts[2]]
    events = [{"candidates": [{"content": {"role": "model", "parts": [part]}}], "responseId": "r1"} for part in pieces]
    return whole, sse(*events, {"candidates": [{"finishReason": finish}], "usageMetadata": usage, "responseId": "r1"})


def converse(finish: str = "tool_use", text: str = "hi") -> tuple[Any, bytes]:
    blocks = [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"text": text},
        {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": 1}}},
    ]
    usage = {"inputTokens": 5, "outputTokens": 5, "totalTokens": 14, "cacheReadInputTokens": 4}
    whole = {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": finish,
        "usage": usage,
        "metrics": {"latencyMs": 7},
    }

    def delta(index: int, **said: Any) -> tuple[str, Any]:
        return "contentBlockDelta", {"contentBlockIndex": index, "delta": said}

    start = {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "c1", "name": "look"}}}
    return whole, frames(
        ("messageStart", {"role": "assistant"}),
        delta(0, reasoningContent={"text": "hm"}),
        delta(0, reasoningContent={"signature": "s"}),
        *(delta(1, text=each) for each in text),
        ("contentBlockStart", start),
        delta(2, toolUse={"input": '{"at":'}),
        delta(2, toolUse={"input": " 1}"}),
        ("messageStop", {"stopReason": finish}),
        ("metadata", {"usage": usage, "metrics": {"latencyMs": 7}}),
    )


BODIES: dict[str, Callable[..., tuple[Any, bytes]]] = {
    "openai": chat,
    "openai-responses": responses,
    "azure": chat,
    "anthropic": messages,
    "gemini": gemini,
    "bedrock": converse,
}
