"""Batches of Gemini: requests in the call itself, found again by their display name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from steelyard.providers.batch.api import (
    CLOCK_SKEW_SECONDS,
    MAX_RESULT_BYTES,
    BatchRequest,
    BatchResult,
    BatchState,
    custom_id,
    get_object,
    listed_batches,
    post_once,
    required_text,
    seconds_since_epoch,
    whole_number,
)
from steelyard.providers.bodies import as_dict, as_list
from steelyard.providers.wire import HttpEndpoint

PAGE_SIZE = 100
ENDED_STATES = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")


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
        is_ended = bool(found.get("done")) or str(metadata.get("state")).rpartition("_")[2] in ENDED_STATES
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
