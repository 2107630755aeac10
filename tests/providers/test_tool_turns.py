"""A conversation with a tool in every wire format that has tools: what is sent back in the second turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.protocols import ProviderSettings
from steelyard.records import CaseTool, ToolCall
from support.facts import facts
from support.fault_server import Exchange, FaultServer
from support.tool_turns import CALL, SENT_BACK, TURNS

TOOL = CaseTool(name="add", parameters={"type": "object", "properties": {"a": {"type": "integer"}}}, result=42)
CASE = Case(id="sum", prompt="How much?", target="42", tools=(TOOL,))
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
