"""Message batches of Anthropic; they have no metadata, so the names of their requests identify the submission."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from steelyard.providers.batch.api import (
    CLOCK_SKEW_SECONDS,
    BatchRequest,
    BatchResult,
    BatchState,
    BatchUndecidedError,
    custom_id,
    get_object,
    listed_batches,
    post_once,
    required_text,
    result_lines,
    seconds_since_epoch,
    whole_number,
)
from steelyard.providers.bodies import as_dict
from steelyard.providers.wire import HttpEndpoint

BATCHES_PATH = "/v1/messages/batches"
PAGE_SIZE = 100
REQUEST_COUNT_FIELDS = ("processing", "succeeded", "errored", "canceled", "expired")


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
        return required_text(endpoint, await post_once(endpoint, BATCHES_PATH, body), "id")

    async def find(self, endpoint: HttpEndpoint, nonce: str, since: float, count: int) -> str | None:
        path, undecided = f"{BATCHES_PATH}?limit={PAGE_SIZE}", False
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
            path = f"{BATCHES_PATH}?limit={PAGE_SIZE}&after_id={required_text(endpoint, batches[-1], 'id')}"
        if undecided:
            raise BatchUndecidedError
        return None

    async def _is_ours(self, endpoint: HttpEndpoint, batch: str, nonce: str) -> bool:
        lines = await result_lines(endpoint, f"{BATCHES_PATH}/{batch}/results")
        return any(str(line.get("custom_id")).startswith(f"{nonce}-") for line in lines[:1])

    async def state(self, endpoint: HttpEndpoint, batch: str) -> BatchState:
        found = await get_object(endpoint, f"{BATCHES_PATH}/{batch}")
        waiting = whole_number(as_dict(found.get("request_counts")).get("processing"))
        total = _total(found)
        return BatchState(batch, found.get("processing_status") == "ended", total - waiting, total, (batch,))

    async def results(self, endpoint: HttpEndpoint, state: BatchState) -> AsyncIterator[BatchResult]:
        for line in await result_lines(endpoint, f"{BATCHES_PATH}/{state.id}/results"):
            name, result = str(line.get("custom_id") or ""), as_dict(line.get("result"))
            if result.get("type") == "succeeded" and isinstance(result.get("message"), dict):
                yield BatchResult(name, msgspec.json.encode(result["message"]))
            else:
                yield BatchResult(name, None, str(result.get("error") or result.get("type"))[:300])


def _total(batch: dict[str, Any]) -> int:
    counts = as_dict(batch.get("request_counts"))
    return sum(whole_number(counts.get(name)) for name in REQUEST_COUNT_FIELDS)
