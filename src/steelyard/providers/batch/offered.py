"""The batches of OpenAI, Anthropic, Mistral and Gemini: how each is spoken to, and which providers have them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from steelyard.providers.batch.api import (
    CLOCK_SKEW_SECONDS,
    MAX_RESULT_BYTES,
    NONCE_FIELD,
    BatchApi,
    BatchRequest,
    BatchResult,
    BatchState,
    BatchUndecidedError,
    custom_id,
    get_object,
    listed_batches,
    post_once,
    required_text,
    response_result,
    result_lines,
    seconds_since_epoch,
    upload_lines,
    whole_number,
)
from steelyard.providers.bodies import as_dict, as_list
from steelyard.providers.wire import HttpEndpoint

PAGE_SIZE = 100
OPENAI_ENDED_STATUSES = ("completed", "expired", "cancelled", "failed")
MISTRAL_ENDED_STATUSES = ("SUCCESS", "FAILED", "TIMEOUT_EXCEEDED", "CANCELLED")
GEMINI_ENDED_STATES = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
ANTHROPIC_BATCHES_PATH = "/v1/messages/batches"
ANTHROPIC_COUNT_FIELDS = ("processing", "succeeded", "errored", "canceled", "expired")


class FileBatches:
    """Batches whose requests and results are files of the provider's."""

    max_requests = 50_000
    max_bytes = 190_000_000

    async def results(self, endpoint: HttpEndpoint, state: BatchState) -> AsyncIterator[BatchResult]:
        for file in state.files:
            for line in await result_lines(endpoint, f"/files/{file}/content"):
                yield response_result(line)


class OpenAIBatches(FileBatches):
    """OpenAI's batches: at most 50,000 requests and 200 MB each."""

    async def submit(self, endpoint: HttpEndpoint, nonce: str, requests: Sequence[BatchRequest]) -> str:
        url = f"/v1{requests[0].path.partition('?')[0]}"
        lines = [
            {"custom_id": custom_id(nonce, index), "method": "POST", "url": url, "body": request.body}
            for index, request in enumerate(requests)
        ]
        file = await upload_lines(endpoint, "/files", nonce, lines)
        body = {
            "input_file_id": file,
            "endpoint": url,
            "completion_window": "24h",
            "metadata": {NONCE_FIELD: nonce},
        }
        return required_text(endpoint, await post_once(endpoint, "/batches", body), "id")

    async def find(self, endpoint: HttpEndpoint, nonce: str, since: float, count: int) -> str | None:  # noqa: ARG002  the nonce tells
        path = f"/batches?limit={PAGE_SIZE}"
        while True:
            page = await get_object(endpoint, path)
            batches = listed_batches(endpoint, page, "data")
            for batch in batches:
                if as_dict(batch.get("metadata")).get(NONCE_FIELD) == nonce:
                    return required_text(endpoint, batch, "id")
            oldest = min((seconds_since_epoch(batch.get("created_at")) for batch in batches), default=0.0)
            if not page.get("has_more") or not batches or oldest < since - CLOCK_SKEW_SECONDS:
                return None
            path = f"/batches?limit={PAGE_SIZE}&after={required_text(endpoint, batches[-1], 'id')}"

    async def state(self, endpoint: HttpEndpoint, batch: str) -> BatchState:
        found = await get_object(endpoint, f"/batches/{batch}")
        counts = as_dict(found.get("request_counts"))
        files = tuple(name for field in ("output_file_id", "error_file_id") if (name := found.get(field)))
        errors = [str(as_dict(error).get("message")) for error in as_list(as_dict(found.get("errors")).get("data"))]
        return BatchState(
            id=batch,
            is_ended=found.get("status") in OPENAI_ENDED_STATUSES,
            done=whole_number(counts.get("completed")) + whole_number(counts.get("failed")),
            total=whole_number(counts.get("total")),
            files=files,
            problem="; ".join(errors)[:300],
        )


class MistralBatches(FileBatches):
    """Mistral's batches; the model is named once, by the job."""

    async def submit(self, endpoint: HttpEndpoint, nonce: str, requests: Sequence[BatchRequest]) -> str:
        lines = [
            {
                "custom_id": custom_id(nonce, index),
                "body": {name: value for name, value in request.body.items() if name != "model"},
            }
            for index, request in enumerate(requests)
        ]
        file = await upload_lines(endpoint, "/files", nonce, lines)
        body = {
            "input_files": [file],
            "model": requests[0].body.get("model"),
            "endpoint": "/v1/chat/completions",
            "metadata": {NONCE_FIELD: nonce},
        }
        return required_text(endpoint, await post_once(endpoint, "/batch/jobs", body), "id")

    async def find(self, endpoint: HttpEndpoint, nonce: str, since: float, count: int) -> str | None:  # noqa: ARG002  the nonce tells
        page_number = 0
        while True:
            page = await get_object(endpoint, f"/batch/jobs?page={page_number}&page_size={PAGE_SIZE}")
            jobs = listed_batches(endpoint, page, "data", can_lack=True)
            for job in jobs:
                if as_dict(job.get("metadata")).get(NONCE_FIELD) == nonce:
                    return required_text(endpoint, job, "id")
            oldest = min((seconds_since_epoch(job.get("created_at")) for job in jobs), default=0.0)
            if len(jobs) < PAGE_SIZE or oldest < since - CLOCK_SKEW_SECONDS:
                return None
            page_number += 1

    async def state(self, endpoint: HttpEndpoint, batch: str) -> BatchState:
        found = await get_object(endpoint, f"/batch/jobs/{batch}")
        errors = [str(as_dict(error).get("message")) for error in as_list(found.get("errors"))]
        return BatchState(
            id=batch,
            is_ended=found.get("status") in MISTRAL_ENDED_STATUSES,
            done=whole_number(found.get("completed_requests")),
            total=whole_number(found.get("total_requests")),
            files=tuple(name for field in ("output_file", "error_file") if (name := found.get(field))),
            problem="; ".join(errors)[:300],
        )


class AnthropicBatches:
    """Anthropic's batches: at most 100,000 requests and 256 MB each."""

    max_requests = 100_000
    max_bytes = 240_000_000

    async def submit(self, endpoint: HttpEndpoint, nonce: str, requests: Sequence[BatchRequest]) -> str:
        body = {
            "requests": [
                {"custom_id": custom_id(nonce, index), "params": request.body} for index, request in enumerate(requests)
            ]
        }
        return required_text(endpoint, await post_once(endpoint, ANTHROPIC_BATCHES_PATH, body), "id")

    async def find(self, endpoint: HttpEndpoint, nonce: str, since: float, count: int) -> str | None:
        path, undecided = f"{ANTHROPIC_BATCHES_PATH}?limit={PAGE_SIZE}", False
        while True:
            page = await get_object(endpoint, path)
            batches = listed_batches(endpoint, page, "data")
            for batch in batches:
                is_young = seconds_since_epoch(batch.get("created_at")) >= since - CLOCK_SKEW_SECONDS
                if not is_young or _total(batch) != count:
                    continue
                if batch.get("processing_status") != "ended":
                    undecided = True
                elif await self._is_ours(endpoint, required_text(endpoint, batch, "id"), nonce):
                    return required_text(endpoint, batch, "id")
            oldest = min((seconds_since_epoch(batch.get("created_at")) for batch in batches), default=0.0)
            if not page.get("has_more") or not batches or oldest < since - CLOCK_SKEW_SECONDS:
                break
            path = f"{ANTHROPIC_BATCHES_PATH}?limit={PAGE_SIZE}&after_id={required_text(endpoint, batches[-1], 'id')}"
        if undecided:
            raise BatchUndecidedError
        return None

    async def _is_ours(self, endpoint: HttpEndpoint, batch: str, nonce: str) -> bool:
        lines = await result_lines(endpoint, f"{ANTHROPIC_BATCHES_PATH}/{batch}/results")
        return any(str(line.get("custom_id")).startswith(f"{nonce}-") for line in lines[:1])

    async def state(self, endpoint: HttpEndpoint, batch: str) -> BatchState:
        found = await get_object(endpoint, f"{ANTHROPIC_BATCHES_PATH}/{batch}")
        waiting = whole_number(as_dict(found.get("request_counts")).get("processing"))
        total = _total(found)
        return BatchState(batch, found.get("processing_status") == "ended", total - waiting, total, (batch,))

    async def results(self, endpoint: HttpEndpoint, state: BatchState) -> AsyncIterator[BatchResult]:
        for line in await result_lines(endpoint, f"{ANTHROPIC_BATCHES_PATH}/{state.id}/results"):
            name, result = str(line.get("custom_id") or ""), as_dict(line.get("result"))
            if result.get("type") == "succeeded" and isinstance(result.get("message"), dict):
                yield BatchResult(name, msgspec.json.encode(result["message"]))
            else:
                yield BatchResult(name, None, str(result.get("error") or result.get("type"))[:300])


def _total(batch: dict[str, Any]) -> int:
    counts = as_dict(batch.get("request_counts"))
    return sum(whole_number(counts.get(name)) for name in ANTHROPIC_COUNT_FIELDS)


class GeminiBatches:
    """Gemini's batches; requests that are in the call may come to 20 MB."""

    max_requests = 10_000
    max_bytes = 18_000_000

    async def submit(self, endpoint: HttpEndpoint, nonce: str, requests: Sequence[BatchRequest]) -> str:
        listed = [
            {"request": request.body, "metadata": {"key": custom_id(nonce, index)}}
            for index, request in enumerate(requests)
        ]
        body = {"batch": {"display_name": nonce, "input_config": {"requests": {"requests": listed}}}}
        model = requests[0].path.partition(":")[0]
        return required_text(endpoint, await post_once(endpoint, f"{model}:batchGenerateContent", body), "name")

    async def find(self, endpoint: HttpEndpoint, nonce: str, since: float, count: int) -> str | None:  # noqa: ARG002  the nonce tells
        token = ""
        while True:
            page = await get_object(endpoint, f"/batches?pageSize={PAGE_SIZE}{token}")
            batches = listed_batches(endpoint, page, "operations", can_lack=True)
            for batch in batches:
                if as_dict(batch.get("metadata")).get("displayName") == nonce:
                    return required_text(endpoint, batch, "name")
            created = (seconds_since_epoch(as_dict(batch.get("metadata")).get("createTime")) for batch in batches)
            if not page.get("nextPageToken") or min(created, default=since) < since - CLOCK_SKEW_SECONDS:
                return None
            # a page may be empty although others follow
            token = f"&pageToken={quote(str(page['nextPageToken']), safe='')}"

    async def state(self, endpoint: HttpEndpoint, batch: str) -> BatchState:
        found = await get_object(endpoint, f"/{batch}", most=MAX_RESULT_BYTES)
        metadata = as_dict(found.get("metadata"))
        stats = as_dict(metadata.get("batchStats"))
        # 64-bit numbers are texts in this format
        counts = [_number(stats.get(name)) for name in ("successfulRequestCount", "failedRequestCount", "requestCount")]
        is_ended = bool(found.get("done")) or str(metadata.get("state")).rpartition("_")[2] in GEMINI_ENDED_STATES
        problem = str(as_dict(found.get("error")).get("message") or "")[:300]
        return BatchState(batch, is_ended, counts[0] + counts[1], counts[2], (batch,), problem)

    async def results(self, endpoint: HttpEndpoint, state: BatchState) -> AsyncIterator[BatchResult]:
        found = await get_object(endpoint, f"/{state.id}", most=MAX_RESULT_BYTES)
        inlined = as_dict(as_dict(found.get("response")).get("inlinedResponses"))
        for line in map(as_dict, as_list(inlined.get("inlinedResponses"))):
            name = str(as_dict(line.get("metadata")).get("key") or "")
            response = line.get("response")
            if isinstance(response, dict):
                yield BatchResult(name, msgspec.json.encode(response))
            else:
                yield BatchResult(name, None, str(line.get("error") or "no response")[:300])


def _number(value: Any) -> int:
    return int(value) if isinstance(value, str) and value.isdecimal() else whole_number(value)


BATCH_APIS: dict[str, BatchApi] = {
    "openai": OpenAIBatches(),
    "anthropic": AnthropicBatches(),
    "mistral": MistralBatches(),
    "gemini": GeminiBatches(),
}
BATCH_API_BY_PROVIDER = {
    "openai": "openai",
    "openai-responses": "openai",
    "azure": "openai",
    "anthropic": "anthropic",
    "mistral": "mistral",
    "gemini": "gemini",
}
"""Providers whose batches can be listed and identify who submitted them."""


def batch_api_name(model: str) -> str:
    """The batches that the provider of a model, `provider/model`, has; empty if we support none."""
    return BATCH_API_BY_PROVIDER.get(model.partition("/")[0], "")
