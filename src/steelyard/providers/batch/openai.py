"""Batches of OpenAI, and of Azure at its v1 address: a file of requests, and a batch that names the file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from steelyard.providers.batch.api import (
    CLOCK_SKEW_SECONDS,
    NONCE_FIELD,
    BatchRequest,
    BatchResult,
    BatchState,
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

ENDED_STATUSES = ("completed", "expired", "cancelled", "failed")
PAGE_SIZE = 100


class OpenAIBatches:
    """OpenAI's batches: at most 50,000 requests and 200 MB each."""

    max_requests = 50_000
    max_bytes = 190_000_000

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
            is_ended=found.get("status") in ENDED_STATUSES,
            done=whole_number(counts.get("completed")) + whole_number(counts.get("failed")),
            total=whole_number(counts.get("total")),
            files=files,
            problem="; ".join(errors)[:300],
        )

    async def results(self, endpoint: HttpEndpoint, state: BatchState) -> AsyncIterator[BatchResult]:
        for file in state.files:
            for line in await result_lines(endpoint, f"/files/{file}/content"):
                yield response_result(line)
