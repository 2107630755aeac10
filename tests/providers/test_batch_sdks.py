"""The scripted batch server is as its vendors' own clients expect it, so it is none of our imagination."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from support.batch_server import BatchServer


@pytest.fixture
def batches() -> BatchServer:
    server = BatchServer()
    server.looks_needed = 1
    server.fails = lambda prompt: prompt == "two"
    return server


@pytest.fixture
def url(batches: BatchServer) -> Iterator[str]:
    with batches.serving() as url:
        yield url


def test_the_client_of_openai_reads_every_state_of_a_batch(url: str) -> None:
    lines = [
        {
            "custom_id": f"id-{prompt}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": prompt}]},
        }
        for prompt in ("one", "two")
    ]
    content = io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    from openai import OpenAI  # to load it takes seconds, in each test process

    with OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        file = client.files.create(file=("asked.jsonl", content), purpose="batch")
        made = client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"steelyard_nonce": "n"},
        )
        assert made.status == "in_progress"
        listed = client.batches.list(limit=100).data
        assert [(batch.id, batch.metadata) for batch in listed] == [(made.id, {"steelyard_nonce": "n"})]
        ended = client.batches.retrieve(made.id)
        assert ended.status == "completed"
        assert ended.request_counts is not None
        assert (ended.request_counts.completed, ended.request_counts.failed) == (1, 1)
        assert ended.output_file_id is not None
        assert ended.error_file_id is not None
        (answered,) = map(json.loads, client.files.content(ended.output_file_id).text.splitlines())
        (expired,) = map(json.loads, client.files.content(ended.error_file_id).text.splitlines())
        assert (answered["custom_id"], expired["custom_id"]) == ("id-one", "id-two")
        single = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "three"}])
        assert single.choices[0].message.content == "answer to three"


def test_the_client_of_anthropic_reads_every_state_of_a_batch(url: str) -> None:
    from anthropic import Anthropic  # to load it takes seconds, in each test process

    with Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        made = client.messages.batches.create(
            requests=[
                {
                    "custom_id": f"id-{prompt}",
                    "params": {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": prompt}]},
                }
                for prompt in ("one", "two")
            ]
        )
        assert made.processing_status == "in_progress"
        assert made.request_counts.processing == 2
        assert [batch.id for batch in client.messages.batches.list(limit=100).data] == [made.id]
        ended = client.messages.batches.retrieve(made.id)
        assert ended.processing_status == "ended"
        results = {line.custom_id: line.result for line in client.messages.batches.results(made.id)}
        succeeded = results["id-one"]
        assert succeeded.type == "succeeded"
        assert [block.text for block in succeeded.message.content if block.type == "text"] == ["answer to one"]
        assert results["id-two"].type == "expired"
