"""The request that a provider would send for an attempt, and the answer that it reads from a response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.protocols import Delivery, Provider
from steelyard.providers.wire import HttpEndpoint, intercepted
from steelyard.records import Answer, Attempt

STREAM_FIELDS = ("stream", "stream_options")
"""Fields of a request that say how its response is sent; in a batch it comes whole."""


class BatchRequest(NamedTuple):
    """One request of a batch."""

    endpoint: HttpEndpoint
    path: str
    body: dict[str, Any]


class _Written(BaseException):
    """A request was written; it is not sent."""

    def __init__(self, request: BatchRequest) -> None:
        self.request = request


async def batch_request(provider: Provider, attempt: Attempt) -> BatchRequest | None:
    """What a provider would send; None if it would not send JSON. Raises what the provider raises before it sends."""

    def written(endpoint: HttpEndpoint, path: str, body: Any) -> bytes:
        raise _Written(BatchRequest(endpoint, path, body if isinstance(body, dict) else {}))

    try:
        await _with_interceptor(written, provider, attempt)
    except _Written as caught:
        request = caught.request
        body = {name: value for name, value in request.body.items() if name not in STREAM_FIELDS}
        return request._replace(body=body) if body else None
    return None


async def batch_answer(provider: Provider, attempt: Attempt, body: bytes) -> Answer:
    """The answer that the body of a response is; raises what the provider raises for it."""
    answer = await _with_interceptor(lambda *_: body, provider, attempt)
    # how long a batch takes says nothing about the model
    return replace(answer, is_batch=True, latency=None)


async def _with_interceptor(
    interceptor: Callable[[HttpEndpoint, str, Any], bytes], provider: Provider, attempt: Attempt
) -> Answer:
    token = intercepted.set(interceptor)
    try:
        return await provider.ask(attempt, Delivery())
    finally:
        intercepted.reset(token)
