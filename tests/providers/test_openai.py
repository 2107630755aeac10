"""What goes to a chat-completions server, and what is made of what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.errors import InputError, ProviderError, Rejected, Unavailable
from steelyard.protocols import OfferedModel, Provider, ProviderSettings
from steelyard.providers.formats.openai import connect
from steelyard.records import Message
from support.asking import KEY, answer, attempt, offers
from support.fault_server import FaultServer, Request, in_turn, refuses, says, sends


def openai(server: FaultServer, **settings: Any) -> Provider:
    reached = {"api_key": KEY, "base_url": f"{server.url}/v1", **settings}
    return connect("gpt-x", ProviderSettings(type="openai", **reached))["gpt-x"]


def sent(server: FaultServer) -> Request:
    (request,) = server.requests
    return request


def completion(message: dict[str, Any], finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **fields}


def test_a_request_names_the_model_and_the_messages_and_nothing_that_was_not_given(server: FaultServer) -> None:
    answer(openai(server))
    request = sent(server)
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.body == {"model": "gpt-x", "messages": [{"role": "user", "content": "say hi"}]}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert "openai-organization" not in request.headers


def test_parameters_are_sent_as_they_are(server: FaultServer) -> None:
    given: dict[str, Any] = {"temperature": 0.8, "max_tokens": 64, "seed": 7, "stop": ["END"], "logit_bias": None}
    answer(openai(server), attempt(**given))
    body = sent(server).body
    assert {name: value for name, value in body.items() if name not in ("model", "messages")} == given


def test_openai_itself_is_told_the_longest_reply_under_its_newer_name(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    answer(openai(server, base_url="http://api.openai.com/v1"), attempt(max_tokens=64))
    request = sent(server)
    assert request.path == "http://api.openai.com/v1/chat/completions"
    assert request.body["max_completion_tokens"] == 64
    assert "max_tokens" not in request.body


def test_a_system_prompt_and_a_conversation_are_messages_in_their_order(server: FaultServer) -> None:
    talk = (
        Message(role="user", content="a"),
        Message(role="assistant", content="b"),
        Message(role="user", content="c"),
    )
    answer(openai(server), attempt(talk, system="be brief"))
    assert [(message["role"], message["content"]) for message in sent(server).body["messages"]] == [
        ("system", "be brief"),
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]


def test_a_server_without_a_key_is_asked_without_one(server: FaultServer) -> None:
    answer(openai(server, api_key=""))
    assert "authorization" not in sent(server).headers


def test_organisation_and_headers_of_the_settings_are_sent(server: FaultServer) -> None:
    answer(openai(server, org_id="org-1", headers={"X-Team": "evals"}))
    assert sent(server).headers["openai-organization"] == "org-1"
    assert sent(server).headers["x-team"] == "evals"


def test_a_slash_at_the_end_of_the_address_does_not_matter(server: FaultServer) -> None:
    answer(openai(server, base_url=f"{server.url}/v1/"))
    assert sent(server).path == "/v1/chat/completions"


def test_an_answer_keeps_text_reasoning_every_kind_of_token_cost_latency_and_request_id(server: FaultServer) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 80},
        "completion_tokens_details": {"reasoning_tokens": 30},
        "cost": 0.0125,
    }
    message = {"role": "assistant", "content": "hi", "reasoning_content": "hm"}
    body = completion(message, id="chatcmpl-7", usage=usage, system_fingerprint="unknown fields do no harm")
    server.script = in_turn(sends(body, headers={"x-request-id": "req-7"}))
    said = answer(openai(server))
    assert (said.text, said.finish, said.reasoning, said.request_id) == ("hi", "stop", "hm", "req-7")
    assert (said.input_tokens, said.output_tokens, said.cached_tokens, said.reasoning_tokens) == (100, 50, 80, 30)
    assert said.cost is not None
    assert (said.cost.usd, said.cost.source) == (0.0125, "the provider")
    assert (said.latency or 0) > 0


def test_what_a_server_does_not_tell_is_unknown_not_zero(server: FaultServer) -> None:
    server.script = in_turn(sends(completion({"content": "hi"}, id="chatcmpl-7")))
    said = answer(openai(server))
    assert said.request_id == "chatcmpl-7"
    assert (said.input_tokens, said.output_tokens, said.cached_tokens, said.reasoning_tokens) == (None,) * 4
    assert said.cost is None


@pytest.mark.parametrize(
    ("message", "finish", "text", "meaning"),
    [
        ({"content": "half an ans"}, "length", "half an ans", "length"),
        ({"content": ""}, "stop", "", "stop"),
        ({"content": None}, "stop", "", "stop"),
        ({"content": None, "refusal": "I will not."}, "stop", "I will not.", "refusal"),
        ({"content": ""}, "content_filter", "", "refusal"),
        ({"content": "hi"}, None, "hi", "stop"),
        ({"content": None, "tool_calls": []}, "tool_calls", "", "tool_calls"),
        ({"content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}, "stop", "hi", "stop"),
    ],
)
def test_truncated_empty_and_refused_are_replies(
    server: FaultServer, message: dict[str, Any], finish: str | None, text: str, meaning: str
) -> None:
    server.script = in_turn(sends(completion(message, finish)))
    said = answer(openai(server))
    assert (said.text, said.finish) == (text, meaning)


@pytest.mark.parametrize(
    "body",
    [{"choices": []}, {"id": "x"}, {"error": {"message": "overloaded", "code": 502}}, {"choices": [{}]}, [], "hi"],
)
def test_a_response_without_an_answer_in_it_may_be_asked_for_again(server: FaultServer, body: object) -> None:
    server.script = in_turn(sends(body))
    with pytest.raises(Unavailable):
        answer(openai(server))


def test_an_error_that_comes_as_success_is_quoted(server: FaultServer) -> None:
    server.script = in_turn(sends({"error": {"message": "the model is overloaded", "code": 502}}))
    with pytest.raises(Unavailable, match="the model is overloaded"):
        answer(openai(server))


def test_a_key_that_a_server_quotes_is_in_no_message(server: FaultServer) -> None:
    padding = "x" * 290
    for behaviour in (
        refuses(401, f"Incorrect API key provided: {KEY}"),
        refuses(500, f"{padding} {KEY}"),
        sends(f"{KEY} is not known here".encode(), status=403),
        sends({"error": {"message": f"bad key {KEY}"}}),
        sends(f"{'x' * 70}{KEY}".encode()),
        sends(b"", status=302, headers={"location": f"/login?key={KEY}"}),
    ):
        server.script = in_turn(behaviour)
        with pytest.raises(ProviderError) as caught:
            answer(openai(server))
        assert KEY[:8] not in str(caught.value)


def test_a_key_with_a_line_end_in_it_is_in_no_message(server: FaultServer) -> None:
    for key in (f"{KEY}\n", f"{KEY}\r\nx", f"{KEY}…"):
        with pytest.raises(InputError, match="the header authorization") as caught:
            openai(server, api_key=key)
        assert KEY not in str(caught.value)


def test_models_are_listed_with_who_owns_them(server: FaultServer) -> None:
    server.script = in_turn(sends({"object": "list", "data": [{"id": "b", "owned_by": "us"}, {"id": "a"}]}))
    assert offers(openai(server)) == [OfferedModel("b", "us"), OfferedModel("a", "")]
    assert (sent(server).method, sent(server).path) == ("GET", "/v1/models")


def test_a_server_that_cannot_be_reached_may_be_asked_again(server: FaultServer) -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9/v1: ConnectError"):
        answer(openai(server, base_url="http://127.0.0.1:9/v1"))


def test_an_address_that_is_none_is_of_no_use_to_anyone(server: FaultServer) -> None:
    for base_url in ("localhost:8080", "ftp://example.invalid", "http://[::1"):
        with pytest.raises((Rejected, InputError)) as caught:
            answer(openai(server, base_url=base_url))
        assert not isinstance(caught.value, Rejected) or caught.value.everyone


def test_a_password_in_the_address_is_refused_because_addresses_are_stored(server: FaultServer) -> None:
    with pytest.raises(InputError, match="must not contain a name and password"):
        openai(server, base_url="http://me:secret@127.0.0.1/v1")


def test_no_address_at_all_says_how_to_give_one() -> None:
    with pytest.raises(InputError, match="--base-url"):
        connect("m", ProviderSettings(type="openai"))


def test_an_answer_of_many_bytes_and_any_characters_arrives_as_it_was_sent(server: FaultServer) -> None:
    text = "π≠\u2028\U0001f600\x00\\\"'" * 50_000
    server.script = in_turn(says(text))
    assert answer(openai(server)).text == text
