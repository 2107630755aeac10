"""The extra for any other provider: the real library asks a real server, and what was paid for is kept whatever it makes of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.errors import InputError, Rejected
from steelyard.protocols import Delivery, ProviderSettings
from steelyard.providers.prices import Prices
from steelyard.providers.pydantic_ai import connect
from steelyard.records import Attempt, Price
from support.facts import facts, response_bodies
from support.fault_server import FaultServer, by_prompt, refuses, says, sends

CHAT, MESSAGES = "chat/openai-chat:m", "messages/anthropic:m"
"""One format that our own reader reads, and one that only the library does."""
ENVIRONMENT_KEY = "sk-of-the-environment"
NO_TOTAL = b'{"choices": [{"message": {"content": "answer"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}'
UNREADABLE = b'{"content": [{"type": "text", "text": "a paid answer"}], "stop_reason": "end_turn", "usage": []}'


def test_replies_outages_and_refusals_are_those_of_our_own_adapters(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, ENVIRONMENT_KEY)
    server.script = by_prompt(
        {
            "prompt of flaky": [refuses(503, headers={"retry-after": "0.05"})],
            "prompt of no-total": sends(NO_TOTAL),
            "prompt of unreadable": sends(UNREADABLE),
            "prompt of failed": says("half an ans", finish="error"),
            "prompt of denied": refuses(400, f"no {ENVIRONMENT_KEY}"),
        }
    )
    names = ("fine", "flaky", "no-total", "unreadable", "failed", "denied")
    cases = [Case(id=name, prompt=f"prompt of {name}", target="answer") for name in names]
    table = {
        "chat": ProviderSettings(type="pydantic-ai", base_url=f"{server.url}/v1"),
        "messages": ProviderSettings(type="pydantic-ai", base_url=server.url, api_key="sk-of-the-settings"),
    }
    prices = {CHAT: Price(input=1, output=2)}
    settings = Settings(max_retries=1, retry_delay_ms=5, deadline_secs=60, providers=table, prices=prices)
    done = steelyard.run(
        cases,
        models=["chat:openai-chat:m", "messages:anthropic:m"],
        parameters={"temperature": 0.5, "stop": "END", "custom": 1},
        output=tmp_path / "run",
        means=Means(settings=settings),
    )
    found = facts(done.folder)
    assert found.replied() == Counter([(model, case) for model in (CHAT, MESSAGES) for case in names[:3]])
    assert found.failed() == Counter([(model, case) for model in (CHAT, MESSAGES) for case in names[3:]])
    assert done.exit_code == 3
    answers = {(reply.model, reply.case): reply.answer for reply in found.replies}
    for model in (CHAT, MESSAGES):
        fine = answers[model, "fine"]
        assert (fine.finish, fine.input_tokens, fine.output_tokens) == ("stop", 10, 5)
        assert (fine.latency or 0) > 0
        assert answers[model, "no-total"].text == "answer"
    cost = answers[CHAT, "fine"].cost
    assert cost is not None
    assert cost.usd == pytest.approx(20e-6)
    # a passing fault is asked again by us alone, and what was paid for is never bought twice
    asked = Counter(request.prompt.removeprefix("prompt of ") for request in server.requests)
    assert asked == {"fine": 2, "flaky": 4, "no-total": 2, "unreadable": 2, "failed": 4, "denied": 2}
    kept = {body for _, case, body in response_bodies(done.folder) if case in ("no-total", "unreadable")}
    assert kept == {NO_TOTAL, UNREADABLE}
    messages_of = {(failure.model, failure.case): failure.message for failure in found.failures}
    assert "responses.jsonl" in messages_of[MESSAGES, "unreadable"]
    assert messages_of[CHAT, "denied"].endswith("/v1: 400 no *** (type_400)")
    # a key goes only to its own address
    keys = {request.headers.get("authorization") or request.headers.get("x-api-key") for request in server.requests}
    assert keys == {"Bearer no-key", "Bearer sk-of-the-settings"}
    bodies = [request.body for request in server.requests if "chat" in request.path]
    assert {(body["temperature"], body["custom"]) for body in bodies} == {(0.5, 1)}


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("openai", {}, 'model "openai": pydantic-ai is asked as pydantic-ai:PROVIDER:MODEL'),
        ("nobody:m", {}, 'pydantic-ai knows no provider "nobody"'),
        ("cohere:m", {}, 'pip install "pydantic-ai-slim\\[cohere\\]"'),
        ("cerebras:m", {"base_url": "http://127.0.0.1:1"}, "pydantic-ai:cerebras: takes no base_url"),
    ],
)
def test_what_cannot_be_asked_is_said_before(model: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        connect(model, ProviderSettings(type="pydantic-ai", **settings))


def test_only_whoever_is_asked_needs_a_key_and_is_told_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    (provider,) = connect("deepseek:m", ProviderSettings(type="pydantic-ai")).values()
    case = Case(id="c", prompt="p", target="t")
    told = r'no key; set DEEPSEEK_API_KEY, or api_key in a \[providers.NAME\] table with type = "pydantic-ai"$'
    with pytest.raises(Rejected, match=told) as refused:
        asyncio.run(provider.ask(Attempt(case=case, model="m"), Delivery()))
    assert refused.value.everyone
    with pytest.raises(InputError, match=told):
        steelyard.run([case], models="pydantic-ai:deepseek:m", output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_models_have_the_price_of_their_provider() -> None:
    listed = Prices({}).price("cohere/command-a")
    assert listed is not None
    assert Prices({}).price("pydantic-ai/cohere:command-a") == listed
