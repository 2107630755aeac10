"""Batches: submitted once, found again after a kill at any point, and read once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.engine.results.merge import merge
from steelyard.errors import InputError
from steelyard.providers.batch.api import BatchRequest
from steelyard.providers.batch.offered import GeminiBatches
from steelyard.providers.wire import HttpEndpoint
from steelyard.records import Price
from steelyard.store.journal import StoredRun
from steelyard.store.side_files import stored_batches
from support.batch_server import BatchServer
from support.facts import facts

PRICE = Price(input=1, output=1, batch_discount=0.5)
MODELS = {"openai": "openai/m", "anthropic": "anthropic/m", "mistral": "mistral/m"}
OTHERS = ("gemini/m", "azure/m", "openai-responses/m")
MEANS = Means(
    settings=Settings(
        max_retries=0, retry_delay_ms=1, max_wait_secs=5, prices=dict.fromkeys((*MODELS.values(), *OTHERS), PRICE)
    ),
    environment=dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY", "GEMINI_API_KEY"), "k"),
    batch=True,
)


def cases(count: int = 3) -> list[Case]:
    return [Case(id=f"c{number}", prompt=f"prompt {number}", target="answer") for number in range(count)]


@pytest.fixture
def batches() -> BatchServer:
    return BatchServer()


@pytest.fixture
def url(batches: BatchServer) -> Iterator[str]:
    with batches.serving() as url:
        yield url


def asked(url: str, folder: Path, model: str = "openai/m", means: Means = MEANS, count: int = 3) -> steelyard.Run:
    return steelyard.run(cases(count), models=model, samples=2, base_url=url, output=folder, means=means)


@pytest.mark.parametrize("model", [*MODELS.values(), *OTHERS])
def test_a_batch_brings_every_answer_at_the_batch_rate(
    batches: BatchServer, url: str, tmp_path: Path, model: str
) -> None:
    said: list[str] = []
    done = asked(url, tmp_path / "run", model, MEANS._replace(say=said.append))
    assert batches.singles == []
    assert len(batches.batches) == 1
    found = facts(done.folder)
    assert found.texts == sorted(f"answer to prompt {number}" for number in range(3) for _ in range(2))
    assert all(reply.answer.is_batch and reply.answer.latency is None for reply in found.replies)
    assert found.spent == pytest.approx(6 * 1100 / 1e6 / 2)
    assert done.complete
    assert done.summary.models[0].correct == 6
    assert [batch.is_settled for batch in stored_batches(StoredRun(done.folder))] == [True]
    assert said[-1] == f"{model}: batch of 6 asks: ended, 6 answers"


@pytest.mark.parametrize("model", MODELS.values())
def test_what_expires_in_a_batch_is_asked_by_itself(batches: BatchServer, url: str, tmp_path: Path, model: str) -> None:
    batches.fails = lambda prompt: prompt == "prompt 1"
    done = asked(url, tmp_path / "run", model)
    assert batches.singles == ["prompt 1"] * 2
    assert len(facts(done.folder).replies) == 6
    assert done.complete


FAILED = {"index": 0, "message": {"content": "half an ans"}, "finish_reason": "error"}
OVERLOADED = {"error": {"message": "overloaded"}}
SUCCEEDED = {"type": "succeeded"}
OPENAI_FAULTS: list[Any] = [
    {"status_code": 200, "body": {"choices": [FAILED]}},
    {"status_code": 500, "body": {"error": {"message": "died"}}},
    {"status_code": 200, "body": OVERLOADED},
    {"status_code": 200, "body": "<html>"},
    {"status_code": 200},
    ["no response"],
]
FAULTS: dict[str, list[Any]] = {
    "openai/m": OPENAI_FAULTS,
    "mistral/m": OPENAI_FAULTS,
    "anthropic/m": [
        {"type": "errored", "error": {"type": "error", "error": {"type": "overloaded_error", "message": "half"}}},
        {"type": "canceled"},
        SUCCEEDED | {"message": {"type": "error", **OVERLOADED}},
        SUCCEEDED | {"message": "<html>"},
        SUCCEEDED,
        ["no result"],
    ],
    "gemini/m": [
        {
            "response": {
                "candidates": [{"content": {"parts": [{"text": "half an ans"}]}, "finishReason": "MALFORMED_RESPONSE"}]
            }
        },
        {"error": {"code": 13, "message": "died"}},
        {"response": OVERLOADED},
        {"response": "<html>"},
        {"response": {"candidates": []}},
        ["no response"],
    ],
}
"""What stands in a file of results in place of an answer, one for each prompt."""
ODD_USAGE: dict[str, Any] = {
    "usage": {
        "prompt_tokens": -5,
        "completion_tokens": "abc",
        "input_tokens": -5,
        "output_tokens": "abc",
        "cost": 1e308,
    },
    "usageMetadata": {"promptTokenCount": -5, "candidatesTokenCount": "abc"},
}
PLACES = {"openai/m": "body", "mistral/m": "body", "anthropic/m": "message", "gemini/m": "response"}
"""Where a result has the response itself."""
CALLS = {
    "openai/m": ("POST /batches", "GET /batches/"),
    "mistral/m": ("POST /batch/jobs", "GET /batch/jobs/"),
    "anthropic/m": ("POST /v1/messages/batches", "GET /v1/messages/batches/"),
    "gemini/m": ("POST /models/m:batchGenerateContent", "GET /batches/"),
}
"""How a batch is submitted, and how it is looked at."""


@pytest.mark.parametrize("model", FAULTS)
def test_an_outage_inside_a_batch_is_asked_again_and_odd_accounting_costs_no_answer(
    batches: BatchServer, url: str, tmp_path: Path, model: str
) -> None:
    faults = {f"prompt {number}": fault for number, fault in enumerate(FAULTS[model])}

    def changed(prompt: str, result: dict[str, Any]) -> Any:
        place = PLACES[model]
        return faults.get(prompt) or (result | {place: result[place] | ODD_USAGE})

    batches.changed = changed
    done = asked(url, tmp_path / "run", model, count=8)
    found = facts(done.folder)
    assert not any("half" in reply.answer.text or "html" in reply.answer.text for reply in found.replies)
    assert Counter(batches.singles) == Counter(dict.fromkeys(faults, 2))
    assert found.texts == sorted(f"answer to prompt {number}" for number in range(8) for _ in range(2))
    by_batch = [reply.answer for reply in found.replies if reply.answer.is_batch]
    assert [(answer.input_tokens, "no count of tokens" in answer.note) for answer in by_batch] == [(None, True)] * 4


@pytest.mark.parametrize("model", CALLS)
def test_a_provider_that_refuses_the_batch_is_asked_one_by_one(
    batches: BatchServer, url: str, tmp_path: Path, model: str
) -> None:
    batches.refusal = CALLS[model][0], 400
    said: list[str] = []
    done = asked(url, tmp_path / "run", model, MEANS._replace(say=said.append))
    assert len(batches.singles) == 6
    assert done.complete
    assert "refused, so asked one by one" in said[0]


@pytest.mark.parametrize("model", CALLS)
def test_a_batch_that_cannot_be_read_is_neither_lost_nor_asked_again(
    batches: BatchServer, url: str, tmp_path: Path, model: str
) -> None:
    batches.refusal = CALLS[model][1], 401
    done = asked(url, tmp_path / "run", model)
    assert batches.singles == []
    assert not done.complete
    assert "a batch of 6 asks is not read yet" in done.stopped[0]
    batches.refusal = None
    # days later, without the option
    again = steelyard.resume(done.folder, means=MEANS._replace(batch=False))
    assert batches.singles == []
    assert len(batches.batches) == 1
    assert len(facts(again.folder).replies) == 6
    assert again.complete


def test_a_shard_that_waits_for_a_batch_is_not_merged(batches: BatchServer, url: str, tmp_path: Path) -> None:
    batches.refusal = "GET /batches/", 401
    shards = [
        steelyard.run(
            cases(),
            models="openai/m",
            base_url=url,
            output=tmp_path / f"{n}",
            means=MEANS._replace(batch=n == 2),
            shard=(n, 2),
        ).folder
        for n in (1, 2)
    ]
    with pytest.raises(InputError, match=r"shard 2 of 2 .* waits for a batch; first run: steelyard resume"):
        merge(shards, output=tmp_path / "whole")


@pytest.mark.parametrize("model", CALLS)
def test_a_submission_whose_answer_was_lost_is_looked_for_and_not_repeated(
    batches: BatchServer, url: str, tmp_path: Path, model: str
) -> None:
    lost = iter([True])
    handled = batches.handled

    def losing(call: str, content: bytes, content_type: str) -> tuple[int, object]:
        found = handled(call, content, content_type)
        return (502, {}) if call == CALLS[model][0] and next(lost, False) else found

    batches.handled = losing  # type: ignore[method-assign]
    done = asked(url, tmp_path / "run", model)
    assert len(batches.batches) == 1
    assert len(facts(done.folder).replies) == 6
    assert batches.singles == []


def test_what_is_too_much_for_one_batch_goes_into_several_and_each_model_has_its_own(
    batches: BatchServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.engine.asking.batches.MAX_CHUNK_REQUESTS", 4)
    done = steelyard.run(
        cases(), models=["openai/m", "openai/n"], samples=2, base_url=url, output=tmp_path / "run", means=MEANS
    )
    assert sorted(len(batch["asked"]) for batch in batches.batches.values()) == [2, 2, 4, 4]
    assert len(facts(done.folder).replies) == 12
    assert batches.singles == []


def test_a_budget_bounds_what_is_submitted(batches: BatchServer, url: str, tmp_path: Path) -> None:
    done = steelyard.run(
        [Case(id=f"c{n}", prompt=f"prompt {n}", target="answer", max_tokens=1000) for n in range(10)],
        models="openai/m",
        base_url=url,
        output=tmp_path / "run",
        means=MEANS._replace(max_cost=0.0025),
    )
    # 10 asks of at most 1,024 tokens, at half of $1 for a million of them
    assert batches.submitted.total() == 4
    assert facts(done.folder).spent <= 0.0025


def client(url: str, folder: Path, model: str, count: int, server: BatchServer) -> int:
    """Begin or go on with a run in a process that may be killed; returns how it ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the threads of the server stay behind
        child = os.fork()
    if not child:
        code = 70
        with contextlib.suppress(BaseException):
            if (folder / "run.json").exists():
                steelyard.resume(folder, means=MEANS)
            else:
                asked(url, folder, model, count=count)
            code = 0
        os._exit(code)
    server.client = child
    return os.waitpid(child, 0)[1]


KILLS = [
    ("openai/m", "POST /files", True),
    ("openai/m", "POST /batches", True),
    ("openai/m", "POST /batches", False),
    ("openai/m", "GET /batches/", False),
    ("openai/m", "GET /files/", False),
    ("anthropic/m", "POST /v1/messages/batches", True),
    ("anthropic/m", "POST /v1/messages/batches", False),
    ("anthropic/m", "GET /v1/messages/batches/", False),
    ("mistral/m", "POST /batch/jobs", False),
    ("gemini/m", "POST /models/m:batchGenerateContent", False),
]


@pytest.mark.parametrize(("model", "call", "before"), KILLS)
def test_a_kill_at_any_call_submits_nothing_twice_and_loses_nothing(
    batches: BatchServer, url: str, tmp_path: Path, model: str, call: str, *, before: bool
) -> None:
    batches.kill = call, before
    assert os.WTERMSIG(client(url, tmp_path / "run", model, 3, batches)) == signal.SIGKILL
    assert client(url, tmp_path / "run", model, 3, batches) == 0
    assert batches.singles == []
    assert set(batches.submitted.values()) == {2}
    assert facts(tmp_path / "run").replied() == Counter({(model, f"c{number}"): 2 for number in range(3)})


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai/m", "anthropic/m"])
def test_thirty_kills_during_a_batch_of_2000(batches: BatchServer, url: str, tmp_path: Path, model: str) -> None:
    chance, kills = random.Random(25), 0
    for number in range(20):
        folder = tmp_path / f"run {number}"
        batches.batches.clear()
        batches.looks_needed = chance.randint(1, 20)
        ended, in_this_run = -1, 0
        while ended != 0:
            batches.client = 0
            # now and then one may live, so that every run ends
            wait = chance.uniform(0.05, 1.5) if in_this_run < 8 else 100.0
            timer = threading.Thread(target=_kill_later, args=(batches, wait), daemon=True)
            timer.start()
            ended = client(url, folder, model, 1000, batches)
            in_this_run += os.WIFSIGNALED(ended)
            assert ended == 0 or os.WIFSIGNALED(ended)
        kills += in_this_run
        assert batches.singles == []
        assert set(batches.submitted.values()) == {2}
        assert len(batches.submitted) == 1000
        assert set(facts(folder).replied().values()) == {2}
        if kills >= 30:
            break
    assert kills >= 30


def _kill_later(server: BatchServer, seconds: float) -> None:
    while not server.client:
        time.sleep(0.01)
    child = server.client
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def test_batches_of_gemini_are_found_by_their_name_and_bring_their_responses(batches: BatchServer, url: str) -> None:
    batches.fails = lambda prompt: prompt == "two"

    async def go() -> tuple[list[str | None], dict[str, bytes | None]]:
        endpoint, api = HttpEndpoint(url, {}, secrets=()), GeminiBatches()
        requests = [
            BatchRequest(endpoint, "/models/g:generateContent", {"contents": [{"parts": [{"text": prompt}]}]})
            for prompt in ("one", "two")
        ]
        try:
            name = await api.submit(endpoint, "nonce", requests)
            found = [await api.find(endpoint, nonce, time.time(), 2) for nonce in ("nonce", "another")]
            while not (state := await api.state(endpoint, name)).is_ended:
                pass
            assert (state.done, state.total) == (2, 2)
            return [name, *found], {result.custom_id: result.body async for result in api.results(endpoint, state)}
        finally:
            await endpoint.close()

    (name, found, other), results = asyncio.run(go())
    assert (found, other) == (name, None)
    assert b"answer to one" in (results["nonce-0"] or b"")
    assert results["nonce-1"] is None
