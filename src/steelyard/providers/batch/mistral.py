"""Batch jobs of Mistral: a file of requests, and a job that names the file."""

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

ENDED_STATUSES = ("SUCCESS", "FAILED", "TIMEOUT_EXCEEDED", "CANCELLED")
PAGE_SIZE = 100


class MistralBatches:
    """Mistral's batches; the model is named once, by the job."""

    max_requests = 50_000
    max_bytes = 190_000_000

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
            is_ended=found.get("status") in ENDED_STATUSES,
            done=whole_number(found.get("completed_requests")),
            total=whole_number(found.get("total_requests")),
            files=tuple(name for field in ("output_file", "error_file") if (name := found.get(field))),
            problem="; ".join(errors)[:300],
        )

    async def results(self, endpoint: HttpEndpoint, state: BatchState) -> AsyncIterator[BatchResult]:
        for file in state.files:
            for line in await result_lines(endpoint, f"/files/{file}/content"):
                yield response_result(line)
