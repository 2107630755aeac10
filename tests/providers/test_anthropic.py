"""What goes to a messages server, and what is made of what comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steelyard.errors import InputError, ProviderError, Rejected, Unavailable
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings
from steelyard.providers.formats.anthropic import connect
from steelyard.records import Message
from support.asking import KEY, answer, attempt, offers
from support.fault_server import FaultServer, Request, in_turn, refuses, sends


def anthropic(server: FaultServer, **settings: Any) -> Provider:
    reached = {"api_key": KEY, "base_url": server.url, **settings}
    return connect("claude-x", ProviderSettings(type="anthropic", **reached))["claude-x"]


def sent(server: FaultServer) -> Request:
    (request,) = server.requests
    return request


def test_a_request_holds_what_the_format_demands_and_nothing_that_was_not_given(server: FaultServer) -> None:
    answer(anthropic(server))
    request = sent(server)
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.body == {
        "model": "claude-x",
        # the most that any model writes: no model is cut short where others are not
        "max_tokens": 128_000,
        "messages": [{"role": "user", "content": "say hi"}],
        "stream": True,
    }


def test_a_server_that_names_a_lower_limit_is_asked_again_with_that_one_and_from_then_on(server: FaultServer) -> None:
    told = "max_tokens: 128000 > 8192, which is the maximum allowed number of output tokens for claude-x"
    server.script = in_turn(refuses(400, told))
    asked = anthropic(server)

    async def twice() -> None:
        await asked.ask(attempt(), Delivery())
        await asked.ask(attempt(), Delivery())
        await asked.close()

    asyncio.run(twice())
    assert [request.body["max_tokens"] for request in server.requests] == [128_000, 8192, 8192]
    assert [request.body.get("stream") for request in server.requests] == [True, None, None]


def test_a_limit_of_the_users_is_never_changed(server: FaultServer) -> None:
    server.script = in_turn(refuses(400, "max_tokens: 9000 > 8192, which is the maximum"))
    with pytest.raises(Rejected):
        answer(anthropic(server), attempt(max_tokens=9000))
    assert len(server.requests) == 1


def test_parameters_are_sent_as_they_are_but_no_seed_which_the_format_refuses(server: FaultServer) -> None:
    answer(anthropic(server), attempt(temperature=0.8, max_tokens=64, seed=7, top_k=3))
    body = sent(server).body
    assert {name: value for name, value in body.items() if name not in ("model", "messages")} == {
        "temperature": 0.8,
        "max_tokens": 64,
        "top_k": 3,
    }


def test_system_prompts_stand_beside_the_messages_not_among_them(server: FaultServer) -> None:
    talk = (
        Message(role="system", content="in the case"),
        Message(role="user", content="a"),
        Message(role="assistant", content="b"),
        Message(role="user", content="c"),
    )
    answer(anthropic(server), attempt(talk, system="of the run"))
    body = sent(server).body
    assert body["system"] == "of the run\n\nin the case"
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


def test_an_address_with_or_without_its_version_is_the_same(server: FaultServer) -> None:
    for base_url in (server.url, f"{server.url}/", f"{server.url}/v1", f"{server.url}/v1/"):
        answer(anthropic(server, base_url=base_url))
    assert {request.path for request in server.requests} == {"/v1/messages"}


def test_an_answer_keeps_text_reasoning_every_kind_of_token_latency_and_request_id(server: FaultServer) -> None:
    body = {
        "id": "msg_7",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "h"},
            {"type": "text", "text": "i"},
        ],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 10,
            "output_tokens": 50,
            "cache_read_input_tokens": 80,
            "cache_creation_input_tokens": 5,
        },
    }
    server.script = in_turn(sends(body, headers={"request-id": "req-7"}))
    said = answer(anthropic(server))
    assert (said.text, said.finish, said.reasoning, said.request_id) == ("hi", "stop", "hm", "req-7")
    # cached tokens are part of the input, whoever counts them apart
    assert (said.input_tokens, said.output_tokens, said.cached_tokens) == (95, 50, 80)
    assert said.cost is None
    assert (said.latency or 0) > 0


def test_what_a_server_does_not_tell_is_unknown_not_zero(server: FaultServer) -> None:
    server.script = in_turn(sends({"id": "msg_7", "content": [{"type": "text", "text": "hi"}]}))
    said = answer(anthropic(server))
    assert said.request_id == "msg_7"
    assert (said.input_tokens, said.output_tokens, said.cached_tokens, said.reasoning_tokens) == (None,) * 4


@pytest.mark.parametrize(
    ("content", "reason", "text", "meaning"),
    [
        ([{"type": "text", "text": "half"}], "max_tokens", "half", "length"),
        ([], "end_turn", "", "stop"),
        ([], "refusal", "", "refusal"),
        ([{"type": "text", "text": "hi"}], "stop_sequence", "hi", "stop"),
        ([{"type": "text", "text": "hi"}], None, "hi", "stop"),
        ([{"type": "tool_use", "id": "t", "name": "f", "input": {}}], "tool_use", "", "tool_calls"),
    ],
)
def test_truncated_empty_and_refused_are_replies(
    server: FaultServer, content: list[object], reason: str | None, text: str, meaning: str
) -> None:
    server.script = in_turn(sends({"content": content, "stop_reason": reason}))
    said = answer(anthropic(server))
    assert (said.text, said.finish) == (text, meaning)


@pytest.mark.parametrize(
    "body", [{"type": "error", "error": {"type": "overloaded_error"}}, {"content": None}, [], "hi"]
)
def test_a_response_without_an_answer_in_it_may_be_asked_for_again(server: FaultServer, body: object) -> None:
    server.script = in_turn(sends(body))
    with pytest.raises(Unavailable):
        answer(anthropic(server))


def test_an_overloaded_server_may_be_asked_again(server: FaultServer) -> None:
    server.script = in_turn(
        sends({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, status=529)
    )
    with pytest.raises(Unavailable, match=r"529 Overloaded \(overloaded_error\)"):
        answer(anthropic(server))


def test_a_wrong_key_is_of_no_use_to_anyone_and_is_in_no_message(server: FaultServer) -> None:
    server.script = in_turn(refuses(401, f"invalid x-api-key {KEY}"))
    with pytest.raises(Rejected) as caught:
        answer(anthropic(server))
    assert caught.value.everyone
    assert KEY not in str(caught.value)


def test_a_key_that_a_server_quotes_in_a_success_is_in_no_message(server: FaultServer) -> None:
    server.script = in_turn(sends({"error": f"{KEY}"}))
    with pytest.raises(ProviderError) as caught:
        answer(anthropic(server))
    assert KEY not in str(caught.value)


def test_models_are_listed_by_their_names(server: FaultServer) -> None:
    server.script = in_turn(sends({"data": [{"type": "model", "id": "claude-x", "display_name": "Claude X"}]}))
    assert offers(anthropic(server)) == [OfferedModel("claude-x", "Claude X")]
    assert (sent(server).method, sent(server).path) == ("GET", "/v1/models?limit=1000")


def test_no_address_at_all_says_how_to_give_one() -> None:
    with pytest.raises(InputError, match="--base-url"):
        connect("m", ProviderSettings(type="anthropic"))
