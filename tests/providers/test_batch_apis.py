"""What providers say of their batches, read as they really send it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steelyard.errors import Unavailable
from steelyard.providers.batch.api import BatchApi, BatchResult
from steelyard.providers.batch.offered import AnthropicBatches, GeminiBatches, MistralBatches, OpenAIBatches
from steelyard.providers.wire import HttpEndpoint
from support.fault_server import Behaviour, Exchange, FaultServer, Request, sends

ENDED = {"status": "completed", "output_file_id": "f"}


def _found(behaviour: Behaviour, api: BatchApi) -> str | None:
    async def found(url: str) -> str | None:
        endpoint = HttpEndpoint(url, {}, secrets=())
        try:
            return await api.find(endpoint, "sy1", 0.0, 1)
        finally:
            await endpoint.close()

    with FaultServer() as server:
        server.script = lambda _: behaviour
        return asyncio.run(found(server.url))


@pytest.mark.parametrize("api", [OpenAIBatches(), AnthropicBatches(), MistralBatches(), GeminiBatches()])
@pytest.mark.parametrize(
    "page", [None, {"data": "x", "operations": "x"}, {"error": {"message": "slow"}, "data": [], "operations": []}]
)
def test_a_list_of_batches_that_is_none_does_not_say_that_a_batch_is_absent(api: BatchApi, page: Any) -> None:
    with pytest.raises(Unavailable):
        _found(sends(page), api)
    assert _found(sends({"data": [], "operations": []}), api) is None


def test_an_empty_page_of_gemini_is_not_the_end_of_its_list() -> None:
    async def pages(exchange: Exchange) -> None:
        batch = {"name": "batches/7", "metadata": {"displayName": "sy1", "createTime": "2026-11-17T07:00:00Z"}}
        is_second = exchange.request.path.endswith("&pageToken=a%2Bb%3D")
        await sends({"operations": [batch]} if is_second else {"nextPageToken": "a+b="})(exchange)

    assert _found(pages, GeminiBatches()) == "batches/7"


def _results(sent: bytes) -> Callable[[Request], Behaviour]:
    return lambda request: sends(ENDED if request.path == "/batches/b" else sent)


@pytest.mark.parametrize("broken", [b"\\ud83d", b"\xff", b'", "cost": NaN, "x": "'])
def test_a_broken_character_in_one_result_of_a_batch_costs_no_answer(broken: bytes) -> None:
    response = b'{"text": "hi ' + broken + b'"}'
    line = b'{"custom_id": "sy1-0", "response": {"status_code": 200, "body": ' + response + b"}}"
    inlined = b'{"metadata": {"key": "sy1-0"}, "response": ' + response + b"}"
    whole = b'{"done": true, "response": {"inlinedResponses": {"inlinedResponses": [' + inlined + b"]}}}"

    async def read(url: str, api: BatchApi) -> list[BatchResult]:
        endpoint = HttpEndpoint(url, {}, secrets=())
        state = await api.state(endpoint, "b")
        results = [result async for result in api.results(endpoint, state)]
        await endpoint.close()
        return results

    for api, sent in ((OpenAIBatches(), line), (GeminiBatches(), whole)):
        with FaultServer() as server:
            server.script = _results(sent)
            (result,) = asyncio.run(read(server.url, api))
        assert result.custom_id == "sy1-0"
        assert (result.body or b"").startswith(b'{"text":"hi ')
