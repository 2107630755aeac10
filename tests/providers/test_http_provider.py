"""Any product behind a URL."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.errors import InputError, ProviderError, Rejected, Unavailable
from steelyard.protocols import OfferedModel, Provider, ProviderSettings
from steelyard.providers.formats.http import connect
from steelyard.records import Message
from support.asking import KEY, answer, attempt, offers
from support.fault_server import FaultServer, Request, in_turn, refuses, sends


def product(
    server: FaultServer, body: str = '{"q": "{{prompt}}"}', path: str = "result.text", **settings: Any
) -> Provider:
    reached = {"base_url": f"{server.url}/answer", "body": body, "answer": path, **settings}
    return connect("v2", ProviderSettings(type="http", **reached))["v2"]


def sent(server: FaultServer) -> Request:
    (request,) = server.requests
    return request


def result(text: Any) -> dict[str, Any]:
    return {"result": {"text": text, "parts": [{"text": "first"}, {"text": "second"}]}}


def test_the_body_is_filled_in_and_sent_to_the_url_as_it_stands(server: FaultServer) -> None:
    server.script = in_turn(sends(result("hi"), headers={"x-request-id": "req-7"}))
    body = '{"q": "{{prompt}}", "by": "{{ model }} for us", "t": "{{temperature}}", "on": true, "n": [1, "{{seed}}"]}'
    said = answer(product(server, body), attempt('say "hi"\n{{model}}', temperature=0.5, seed=3))
    assert (sent(server).method, sent(server).path) == ("POST", "/answer")
    assert sent(server).body == {
        "q": 'say "hi"\n{{model}}',
        "by": "v2 for us",
        "t": 0.5,
        "on": True,
        "n": [1, 3],
    }
    assert (said.text, said.request_id) == ("hi", "req-7")
    assert (said.latency or 0) > 0
    assert (said.input_tokens, said.cost) == (None, None)


def test_every_system_prompt_and_the_whole_conversation_can_be_filled_in(server: FaultServer) -> None:
    server.script = in_turn(sends(result("hi")))
    talk = (
        Message(role="system", content="in the case"),
        Message(role="user", content="a"),
        Message(role="assistant", content="b"),
        Message(role="user", content="c"),
    )
    body = '{"s": "{{system}}", "q": "{{prompt}}", "m": "{{messages}}"}'
    answer(product(server, body), attempt(talk, system="of the run"))
    assert sent(server).body["s"] == "of the run\n\nin the case"
    assert sent(server).body["q"] == "c"
    assert [message["content"] for message in sent(server).body["m"]] == ["of the run", "in the case", "a", "b", "c"]


@pytest.mark.parametrize(
    ("path", "text"),
    [("result.text", "hi"), ("result.parts.1.text", "second"), ("result.parts.0", '{"text":"first"}')],
)
def test_the_path_leads_through_tables_and_lists(server: FaultServer, path: str, text: str) -> None:
    server.script = in_turn(sends(result("hi")))
    assert answer(product(server, path=path)).text == text


@pytest.mark.parametrize("path", ["result.txt", "result.parts.2.text", "result.parts.x", "result.text.0", "0"])
def test_a_response_without_that_path_is_no_answer(server: FaultServer, path: str) -> None:
    server.script = in_turn(sends(result("hi")))
    with pytest.raises(Unavailable, match=f'the response has no "{path}"'):
        answer(product(server, path=path))


def test_the_key_goes_as_a_bearer_unless_a_header_of_that_name_is_given(server: FaultServer) -> None:
    server.script = lambda request: sends(result("hi"))
    answer(product(server))
    answer(product(server, api_key=KEY))
    answer(product(server, api_key=KEY, headers={"Authorization": "Basic x", "x-team": "evals"}))
    without, bearer, own = server.requests
    assert "authorization" not in without.headers
    assert bearer.headers["authorization"] == f"Bearer {KEY}"
    assert (own.headers["authorization"], own.headers["x-team"]) == ("Basic x", "evals")


def test_a_key_that_a_server_quotes_is_in_no_message(server: FaultServer) -> None:
    for behaviour in (refuses(403, f"who is {KEY}?"), sends(KEY.encode(), status=500), sends(KEY.encode())):
        for given in ({"api_key": KEY}, {"headers": {"x-key": KEY}}):
            server.script = in_turn(behaviour)
            with pytest.raises(ProviderError) as caught:
                answer(product(server, **given))
            assert KEY not in str(caught.value)


def test_errors_have_the_same_names_as_everywhere(server: FaultServer) -> None:
    server.script = in_turn(refuses(503), refuses(422))
    with pytest.raises(Unavailable):
        answer(product(server))
    with pytest.raises(Rejected) as caught:
        answer(product(server))
    assert not caught.value.everyone


@pytest.mark.parametrize("left_out", ["base_url", "body", "answer"])
def test_what_is_left_out_is_asked_for_before_anything_is_sent(left_out: str) -> None:
    reached: dict[str, Any] = {"base_url": "http://127.0.0.1:9", "body": "{}", "answer": "text", left_out: ""}
    with pytest.raises(InputError, match="needs base_url, body and answer"):
        connect("v2", ProviderSettings(type="http", **reached))


def test_a_body_that_is_not_json_is_refused_before_anything_is_sent(server: FaultServer) -> None:
    with pytest.raises(InputError, match="body is not JSON"):
        product(server, body="q={{prompt}}")


def test_it_offers_itself(server: FaultServer) -> None:
    assert offers(product(server)) == [OfferedModel("v2", f"{server.url}/answer")]
