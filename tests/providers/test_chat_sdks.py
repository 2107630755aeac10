"""The vendors' own clients read the scripted servers and send what we send, so neither is of our imagination."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.fault_server import Exchange, FaultServer
from support.tool_turns import SENT_BACK, TURNS

RESULT = "42"


@pytest.fixture
def scripted(server: FaultServer, request: pytest.FixtureRequest) -> FaultServer:
    """A server that answers in the turns of one vendor."""

    async def respond(exchange: Exchange) -> None:
        body = TURNS[request.param][min(len(server.requests), 2) - 1]
        await exchange.send(200, json.dumps(body).encode(), says=RESULT)

    server.script = lambda _: respond
    return server


def without_nothing(value: Any) -> Any:
    """A request without the fields that say nothing, which clients send and we do not."""
    if isinstance(value, dict):
        return {key: without_nothing(each) for key, each in value.items() if each is not None}
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("scripted", ["openai"], indirect=True)
def test_the_client_of_openai_holds_the_conversation_that_we_hold(scripted: FaultServer) -> None:
    tools: Any = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    asked: list[Any] = [{"role": "user", "content": "How much?"}]
    from openai import OpenAI  # to load it takes seconds, in each test process

    with OpenAI(base_url=scripted.url, api_key="k", max_retries=0, _strict_response_validation=True) as client:
        first = client.chat.completions.create(model="m", messages=asked, tools=tools)
        called = first.choices[0].message
        assert called.tool_calls is not None
        asked += [called, {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": RESULT}]
        last = client.chat.completions.create(model="m", messages=asked, tools=tools)
    assert last.choices[0].message.content == RESULT
    sent = without_nothing(scripted.requests[1].body["messages"][1:])
    assert sent == without_nothing(SENT_BACK["openai"])


@pytest.mark.parametrize("scripted", ["openai-responses"], indirect=True)
def test_the_client_of_openai_sends_the_items_of_responses_back_as_we_do(scripted: FaultServer) -> None:
    tools: Any = [{"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}]
    asked: list[Any] = [{"role": "user", "content": "How much?"}]
    from openai import OpenAI  # to load it takes seconds, in each test process

    with OpenAI(base_url=scripted.url, api_key="k", max_retries=0, _strict_response_validation=True) as client:
        first = client.responses.create(model="m", input=asked, tools=tools)
        asked += [*first.output, {"type": "function_call_output", "call_id": "c1", "output": RESULT}]
        last = client.responses.create(model="m", input=asked, tools=tools)
    assert last.output_text == RESULT
    sent = without_nothing(scripted.requests[1].body["input"][1:])
    assert sent == without_nothing(SENT_BACK["openai-responses"])


@pytest.mark.parametrize("scripted", ["anthropic"], indirect=True)
def test_the_client_of_anthropic_sends_thinking_and_results_back_as_we_do(scripted: FaultServer) -> None:
    tools: Any = [{"name": "add", "input_schema": {"type": "object"}}]
    asked: list[Any] = [{"role": "user", "content": "How much?"}]
    from anthropic import Anthropic  # to load it takes seconds, in each test process

    with Anthropic(base_url=scripted.url, api_key="k", max_retries=0, _strict_response_validation=True) as client:
        first = client.messages.create(model="m", max_tokens=100, messages=asked, tools=tools)
        result = {"type": "tool_result", "tool_use_id": "c1", "content": RESULT}
        asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        last = client.messages.create(model="m", max_tokens=100, messages=asked, tools=tools)
    assert [getattr(block, "text", "") for block in last.content] == [RESULT]
    sent = without_nothing(scripted.requests[1].body["messages"][1:])
    assert sent == without_nothing(SENT_BACK["anthropic"])
