"""What the batches of all providers have in common: submit, find again, look after, and read."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from steelyard.errors import Unavailable
from steelyard.protocols import Delivery, Provider
from steelyard.providers.bodies import as_dict, json_value
from steelyard.providers.wire import MAX_RESPONSE_BYTES, HttpEndpoint, HttpExchange, RawBody, intercepted
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


MAX_RESULT_BYTES = 1 << 30
"""Bytes of the results of one batch."""
CLOCK_SKEW_SECONDS = 3600.0
"""By how much a provider's clock may differ from ours."""
NONCE_FIELD = "steelyard_nonce"
"""The key of a batch's metadata that identifies the submission."""


class BatchState(NamedTuple):
    """How far a batch is."""

    id: str
    is_ended: bool
    done: int
    total: int
    files: tuple[str, ...] = ()
    """Where its results are, as the provider names them."""
    problem: str = ""
    """Why it has no results, if so."""


class BatchResult(NamedTuple):
    """The result of one request."""

    custom_id: str
    body: bytes | None
    """The body of the response; None if there is none."""
    problem: str = ""


class BatchUndecidedError(Exception):
    """Whether a batch is ours is known only once it has ended."""


class BatchApi(Protocol):
    """The batches of one provider."""

    max_requests: int
    max_bytes: int

    async def submit(self, endpoint: HttpEndpoint, nonce: str, requests: Sequence[BatchRequest]) -> str:
        """Submit requests as one batch that carries the nonce; returns its id. It is sent once."""
        ...

    async def find(self, endpoint: HttpEndpoint, nonce: str, since: float, count: int) -> str | None:
        """The id of the batch of `count` requests that was submitted with this nonce; None if there is none.

        Raises a BatchUndecidedError if that is not known yet.
        """
        ...

    async def state(self, endpoint: HttpEndpoint, batch: str) -> BatchState:
        """How far a batch is."""
        ...

    def results(self, endpoint: HttpEndpoint, state: BatchState) -> AsyncIterator[BatchResult]:
        """The results of the requests of a batch that has ended."""
        ...


def custom_id(nonce: str, index: int) -> str:
    """By what a result is known as that of one request."""
    return f"{nonce}-{index}"


def new_nonce() -> str:
    """A name for one submission that no other has."""
    return f"sy{secrets.token_hex(10)}"


async def get_object(endpoint: HttpEndpoint, path: str, *, most: int = MAX_RESPONSE_BYTES) -> dict[str, Any]:
    """A JSON object of the provider."""
    return response_object(endpoint, await endpoint.exchange("GET", path, most=most))


async def post_once(endpoint: HttpEndpoint, path: str, body: Any) -> dict[str, Any]:
    """What comes back for a request that must not be sent twice."""
    return response_object(endpoint, await endpoint.exchange("POST", path, body, sends_again=False))


def response_object(endpoint: HttpEndpoint, exchange: HttpExchange) -> dict[str, Any]:
    """The object that a response is, read leniently: one broken character in an answer must not hide the others."""
    try:
        value = json_value(exchange.body)
    except ValueError as error:
        raise endpoint.not_expected(exchange, error) from None
    if not isinstance(value, dict):
        raise endpoint.not_expected(exchange, ValueError("expected an object"))
    return value


def listed_batches(
    endpoint: HttpEndpoint, page: dict[str, Any], name: str, *, can_lack: bool = False
) -> list[dict[str, Any]]:
    """The batches on a page of a list; a malformed page must not cause a second submission."""
    endpoint.check_errors(None, page)
    batches = page.get(name, [] if can_lack else None)
    if not isinstance(batches, list):
        raise Unavailable(f"{endpoint.url}: sent a list of batches without {name}")
    return list(map(as_dict, batches))


async def upload_lines(endpoint: HttpEndpoint, path: str, name: str, lines: Sequence[Any]) -> str:
    """Upload JSON lines for a batch; returns the id of the file. A file that nobody uses costs nothing."""
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    boundary = f"steelyard-{secrets.token_hex(16)}"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    ).encode()
    body += content + f"\r\n--{boundary}--\r\n".encode()
    exchange = await endpoint.exchange("POST", path, RawBody(body, f"multipart/form-data; boundary={boundary}"))
    return required_text(endpoint, response_object(endpoint, exchange), "id")


async def result_lines(endpoint: HttpEndpoint, path: str) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; a line that is not an object is left out, so its request counts as failed."""
    exchange = await endpoint.exchange("GET", path, most=MAX_RESULT_BYTES)
    return list(_objects(exchange.body))


def _objects(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        try:
            value = json_value(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def response_result(line: dict[str, Any]) -> BatchResult:
    """A line of OpenAI's or Mistral's results."""
    name, response = str(line.get("custom_id") or ""), as_dict(line.get("response"))
    if response.get("status_code") == 200 and isinstance(response.get("body"), dict):
        return BatchResult(name, msgspec.json.encode(response["body"]))
    return BatchResult(name, None, str(line.get("error") or response.get("body") or "no response")[:300])


def required_text(endpoint: HttpEndpoint, found: dict[str, Any], name: str) -> str:
    """A text that a response must have."""
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise Unavailable(f"{endpoint.url}: sent a response without {name}")
    return value


def whole_number(value: Any) -> int:
    """A count; 0 if the value is not one."""
    return value if isinstance(value, int) and value >= 0 else 0


def seconds_since_epoch(value: Any) -> float:
    """A timestamp from a number or ISO 8601 text; infinity for anything else, so that nothing counts as too old."""
    if isinstance(value, int | float):
        return float(value)
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return float("inf")
