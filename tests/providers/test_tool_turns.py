"""A conversation with a tool in every wire format that has tools: what is sent back in the second turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.protocols import ProviderSettings
from steelyard.records import CaseTool, ToolCall
from support.facts import facts
from support.fault_server import Exchange, FaultServer

TOOL = CaseTool(name="add", parameters={"type": "object", "properties": {"a": {"type": "integer"}}}, result=42)
CASE = Case(id="sum", prompt="How much?", target="42", tools=(TOOL,))
CALL = {"a": 1}

CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": json.dumps(CALL)}}
TURNS: dict[str, tuple[Any, Any]] = {
    "openai": (
        {"choices": [{"message": {"content": None, "tool_calls": [CHAT_CALL]}, "finish_reason": "tool_calls"}]},
        {"choices": [{"message": {"content": "42"}, "finish_reason": "stop"}]},
    ),
    "openai-responses": (
        {
            "status": "completed",
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": json.dumps(CALL)},
            ],
        },
        {"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "42"}]}]},
    ),
    "anthropic": (
        {
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sealed"},
                {"type": "tool_use", "id": "c1", "name": "add", "input": CALL},
            ],
            "stop_reason": "tool_use",
        },
        {"content": [{"type": "text", "text": "42"}], "stop_reason": "end_turn"},
    ),
    "gemini": (
        {
            "candidates": [
                {
                    "content": {
                        "parts": [{"functionCall": {"name": "add", "args": CALL}, "thoughtSignature": "sealed"}]
                    },
                    "finishReason": "STOP",
                }
            ]
        },
        {"candidates": [{"content": {"parts": [{"text": "42"}]}, "finishReason": "STOP"}]},
    ),
    "bedrock": (
        {
            "output": {
                "message": {
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sealed"}}},
                        {"toolUse": {"toolUseId": "c1", "name": "add", "input": CALL}},
                    ]
                }
            },
            "stopReason": "tool_use",
        },
        {"output": {"message": {"content": [{"text": "42"}]}}, "stopReason": "end_turn"},
    ),
}
TURNS["deepseek"] = (
    {
        "choices": [
            {
                "message": {"content": "", "reasoning_content": "sealed", "tool_calls": [CHAT_CALL]},
                "finish_reason": "tool_calls",
            }
        ]
    },
    TURNS["openai"][1],
)
TURNS["openrouter"] = (
    {
        "choices": [
            {
                "message": {"content": "", "reasoning_details": [{"data": "sealed"}], "tool_calls": [CHAT_CALL]},
                "finish_reason": "tool_calls",
            }
        ]
    },
    TURNS["openai"][1],
)

SENT_BACK: dict[str, list[Any]] = {
    "openai": [
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ],
    "openai-responses": [
        *TURNS["openai-responses"][0]["output"],
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
    ],
    "anthropic": [
        {"role": "assistant", "content": TURNS["anthropic"][0]["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]},
    ],
    "gemini": [
        {"role": "model", "parts": TURNS["gemini"][0]["candidates"][0]["content"]["parts"]},
        {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": {"result": "42"}}}]},
    ],
    "bedrock": [
        {"role": "assistant", "content": TURNS["bedrock"][0]["output"]["message"]["content"]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "42"}], "status": "success"}}],
        },
    ],
    "deepseek": [
        {"role": "assistant", "content": "", "tool_calls": [CHAT_CALL], "reasoning_content": "sealed"},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ],
    "openrouter": [
        {"role": "assistant", "content": "", "tool_calls": [CHAT_CALL], "reasoning_details": [{"data": "sealed"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ],
}
TYPES = {"deepseek": "openai", "openrouter": "openai"}


@pytest.mark.parametrize("name", TURNS)
def test_a_tool_is_offered_called_and_answered_and_what_was_thought_comes_back(
    name: str, server: FaultServer, tmp_path: Path
) -> None:
    async def respond(exchange: Exchange) -> None:
        body = TURNS[name][min(len(server.requests), 2) - 1]
        await exchange.send(200, json.dumps(body).encode(), says="42")

    server.script = lambda _: respond
    settings = ProviderSettings(type=TYPES.get(name, name), base_url=server.url, api_key="k", dialect=name)
    means = Means(settings=Settings(max_retries=0, providers={"p": settings}), parallelism=1)
    run = steelyard.run([CASE], models="p/m", output=tmp_path / "run", parameters={"max_tokens": 100}, means=means)
    (reply,) = facts(run.folder).replies
    first, second = (request.body for request in server.requests)
    assert '"add"' in json.dumps(first["tools"] if "tools" in first else first["toolConfig"])
    key = "input" if name == "openai-responses" else "contents" if name == "gemini" else "messages"
    sent_back = second[key][len(first[key]) :]
    for message in sent_back:
        # where the cache of a provider is marked, the text is the same
        for block in message.get("content") or () if isinstance(message.get("content"), list) else ():
            block.pop("cache_control", None)
    assert sent_back == SENT_BACK[name]
    assert reply.answer.text == "42"
    (asked, last) = reply.answer.turns
    assert [(one.name, json.loads(one.arguments)) for one in asked.tool_calls] == [("add", CALL)]
    assert isinstance(asked.tool_calls[0], ToolCall)
    # what is kept to be sent back is no part of the reply
    assert asked.native == last.native == ()
