"""One JSON request over HTTP, with a name for every way it can go wrong."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

import httpx2
import msgspec

from steelyard.errors import InputError, Rejected, Unavailable
from steelyard.protocols import Delivery, RateLimitHeadroom
from steelyard.providers.bodies import as_dict, further_objects, leading_json_value, storable, stream_events
from steelyard.providers.connections import (
    ConnectionTrace,
    check_base_url,
    check_proxies,
    error_description,
    no_cookies,
    proxy_secrets,
    request_body,
    trusted_certificates,
    without_secrets,
)
from steelyard.providers.faults import (
    decoded_error,
    error_message,
    error_status,
    headroom,
    is_error,
    named_parameters,
    names_filter,
    names_finish,
    provider_error,
    retry_after,
)
from steelyard.secret_texts import HiddenFrames

MAX_RESPONSE_BYTES = 32 << 20
"""Bytes of a response that are read at most; no answer of a model is near that."""
KEPT_BYTES = 1 << 20
"""Bytes that are kept of a response that is larger."""
MAX_REQUESTS_PER_ENDPOINT = 64
"""Requests in flight to one endpoint at most; the pace finds out how many it really takes."""

Shape = TypeVar("Shape")
EventReader = Callable[[bytes], Iterable[tuple[int, dict[str, Any]]] | None]
"""The events of a body, each with its end; None if it is not a stream."""
RequestSigner = Callable[[str, str, bytes], Mapping[str, str]]
"""The headers that sign a request: its method, its address and its body."""


class RawBody(NamedTuple):
    """A body that is sent as it is, not as JSON."""

    content: bytes
    content_type: str


class HttpExchange(NamedTuple):
    """A response that arrived whole."""

    body: bytes
    headers: Mapping[str, str]
    seconds: float
    delivery: Delivery
    arrivals: Sequence[tuple[int, float]] = ()
    """How many bytes were there after how many seconds."""


class HttpEndpoint:
    """One base URL with its credentials."""

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        secrets: Iterable[str],
        sign: RequestSigner | None = None,
    ) -> None:
        address, _, self._query = base_url.partition("?")
        self.url = address.rstrip("/")
        check_base_url(base_url)
        self._sign = sign
        check_proxies()
        for name, value in headers.items():
            # an error raised while sending would show the key
            if not (value.isascii() and value.isprintable()):
                raise InputError(
                    f"the header {name} contains a character that cannot be sent, such as a line end; is the key right?"
                )
        self._headers = {"accept": "application/json", "accept-encoding": "identity", **headers}
        given = [secret for secret in secrets if secret]
        self._has_key = bool(given)
        # a short one may be a word in an honest message
        self._secrets = [secret for secret in (*given, *proxy_secrets()) if len(secret) >= 8]
        self._client: httpx2.AsyncClient | None = None
        self._former_clients: list[httpx2.AsyncClient] = []
        self.headroom: RateLimitHeadroom | None = None

    def address(self, path: str) -> str:
        """The full address of a path; the query of the base URL stays at its end."""
        path, _, query = path.partition("?")
        queries = "&".join(filter(None, (query, self._query)))
        return f"{self.url}{path}?{queries}" if queries else f"{self.url}{path}"

    async def exchange(
        self,
        method: str,
        path: str,
        body: Any = None,
        delivery: Delivery | None = None,
        *,
        most: int = MAX_RESPONSE_BYTES,
        sends_again: bool = True,
    ) -> HttpExchange:
        """Send one request; raises Unavailable or Rejected unless a 2xx response of at most `most` bytes arrived whole."""
        delivery = delivery or Delivery()
        if (interceptor := intercepted.get()) is not None:
            delivery.body = interceptor(self, path, body)
            return HttpExchange(delivery.body, {}, 0.0, delivery)
        if self._client is None:
            self._client = self._new_client(MAX_REQUESTS_PER_ENDPOINT)
        content, headers, encoded, address = None, self._headers, b"", self.address(path)
        if body is not None:
            raw = body if isinstance(body, RawBody) else RawBody(msgspec.json.encode(body), "application/json")
            encoded = raw.content
            content = request_body(encoded, delivery)
            headers = {**headers, "content-type": raw.content_type, "content-length": str(len(encoded))}
        if self._sign is not None:
            headers = {**headers, **self._sign(method, address, encoded)}
        started = time.monotonic()
        received, arrivals, is_success = bytearray(), [], False
        response: httpx2.Response | None = None
        trace = ConnectionTrace(delivery, self._keep_no_connection)
        try:
            with HiddenFrames():
                async with self._client.stream(
                    method, address, content=content, headers=headers, extensions={"trace": trace}
                ) as response:
                    is_success = response.is_success
                    if not is_success:
                        delivery.accepted = False
                    async for size in _appended(response.aiter_bytes(), received):
                        arrivals.append((size, time.monotonic() - started))
                        if size > most and is_success:
                            del received[KEPT_BYTES:]
                            raise Rejected(f"{self.url}: the response is larger than {most >> 20} MiB")
                        if size > most:
                            break
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise Rejected(f'"{self.url}" is not an address: {error}', everyone=True) from None
        except (httpx2.RequestError, OSError) as error:
            if sends_again and trace.is_stale and isinstance(error, httpx2.ReadError | httpx2.WriteError):
                # a reset, not an end, of an idle connection: it was closed before the request was read, and leaves the pool
                delivery.accepted = False
                return await self.exchange(method, path, body, delivery, most=most)
            # a status that refuses says enough, also where its explanation broke off
            if response is None or is_success:
                raise Unavailable(self.clean(f"{self.url}: {error_description(error)}")) from None
        finally:
            cleaned = self.without_secrets(bytes(received))
            received.clear()
            if is_success:
                # the beginning of an answer that broke off is stored as well: it was paid for
                delivery.body = cleaned
        self.headroom = headroom(response.headers)
        if not response.is_success:
            self.refuse(response, cleaned, body)
        return HttpExchange(delivery.body, response.headers, time.monotonic() - started, delivery, arrivals)

    def _new_client(self, kept_connections: int) -> httpx2.AsyncClient:
        # no time limit of its own: the deadline of the whole request is the engine's
        return httpx2.AsyncClient(
            timeout=None,
            cookies=no_cookies(),
            verify=trusted_certificates(),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=kept_connections),
        )

    def _keep_no_connection(self) -> None:
        """Use every connection once: a server that sent an extra response may send another one right after a request, where it cannot be detected."""
        if self._client is not None and not self._former_clients:
            self._former_clients.append(self._client)
            self._client = self._new_client(0)

    def decode(self, exchange: HttpExchange, shape: type[Shape]) -> Shape:
        """The decoded body; a server that sends anything else counts as unavailable."""
        try:
            return msgspec.json.decode(exchange.body, type=shape, strict=False)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self.not_expected(exchange, error) from None

    def answer_value(self, exchange: HttpExchange) -> Any:
        """The value that a response is, read leniently; what follows it is left out, with a note."""
        try:
            value, rest = leading_json_value(exchange.body)
            further = further_objects(rest)
            # the first of several lines of a stream says nothing of an end
            if further and not names_finish(value):
                raise ValueError("several JSON values, and the first of them is not whole")
        except ValueError as error:
            raise self.not_expected(exchange, error) from None
        self.check_errors(None, *further)
        if rest:
            exchange.delivery.note = (
                f"{len(rest):,} characters after the answer were left out: {self.clean(rest)[:40]!r}"
            )
        return value

    def answer_object(
        self,
        exchange: HttpExchange,
        joined: Callable[[list[dict[str, Any]]], dict[str, Any]],
        events: EventReader = stream_events,
    ) -> dict[str, Any]:
        """The object that a response is, read leniently; `joined` makes one of the events of a stream."""
        try:
            streamed = events(exchange.body)
            body = self.answer_value(exchange) if streamed is None else self._joined_events(streamed, joined)
        except ValueError as error:
            raise self.not_expected(exchange, error) from None
        if not isinstance(body, dict):
            raise self.not_expected(exchange, ValueError("expected an object"))
        return body

    def _joined_events(
        self, streamed: Iterable[tuple[int, dict[str, Any]]], joined: Callable[[list[dict[str, Any]]], dict[str, Any]]
    ) -> Any:
        events: list[dict[str, Any]] = []
        try:
            events += (event for _, event in streamed)
            # the halves of a character may come in two events
            return storable(joined(events))
        except ValueError:
            # where a stream ends too soon, one of its events may say why
            self.check_errors(None, *events)
            raise

    def check_errors(self, sent: Any, *places: Any) -> None:
        """Raise what the first `error` in these parts of a response means; the status said success."""
        for place in places:
            error = as_dict(place).get("error")
            if is_error(error):
                text = self.clean(error_message(error))[:300]
                raise provider_error(
                    f"{self.url}: sent an error as a success: {text}",
                    error_status(error) or (400 if names_filter(error) else 502),
                    error,
                    parameters=named_parameters(text, sent),
                )

    def not_expected(self, exchange: HttpExchange, error: Exception) -> Unavailable:
        """What to raise for a response that is not an answer."""
        sent = self.clean(exchange.headers.get("content-type", "nothing it would name"))
        start = self.clean(exchange.body[:1000].decode("utf-8", "replace"))[:80]
        return Unavailable(
            f"{self.url}: sent {sent}, not the answer expected ({error}): {start!r}; is the base URL right?"
        )

    def refuse(self, response: httpx2.Response, received: bytes, sent: Any) -> None:
        """Raise what a response without success means."""
        status = response.status_code
        content = decoded_error(received)
        message_text = self.clean(error_message(content))
        message = f"{self.url}: {status} {message_text[:300] or self.clean(response.reason_phrase)}"
        if status < 400:
            target = self.clean(response.headers.get("location", "nowhere"))
            message += f": redirects to {target}; set that as base URL"
        if status in (401, 403) and not self._has_key:
            message += "; no key was sent, because a key goes only to its own address: set api_key next to base_url in the settings file"
        raise provider_error(
            message,
            status,
            content,
            retry_after=retry_after(response.headers),
            parameters=named_parameters(message_text, sent),
        )

    def clean(self, text: str) -> str:
        """The text of a server without our key; clean it before it is cut, because half a key is a secret as well."""
        # some servers quote the key they were given, and messages are stored
        return without_secrets(text, self._secrets)

    def without_secrets(self, body: bytes) -> bytes:
        """A body without our keys."""
        text = body.decode("utf-8", "surrogateescape") if self._secrets else ""
        cleaned = without_secrets(text, self._secrets)
        return body if cleaned == text else cleaned.encode("utf-8", "surrogateescape")

    async def close(self) -> None:
        for client in filter(None, (self._client, *self._former_clients)):
            await client.aclose()


async def _appended(chunks: AsyncIterator[bytes], received: bytearray) -> AsyncIterator[int]:
    """Add each chunk to what was received, and say how much that is; a server may quote a key in one."""
    async for chunk in chunks:
        received += chunk
        yield len(received)


Interceptor = Callable[[HttpEndpoint, str, Any], bytes]
"""Takes the path and the body of a request, and returns the body of its response."""
intercepted: ContextVar[Interceptor | None] = ContextVar("intercepted", default=None)
"""What answers requests in place of the network, where one is only to be written, or its response is only to be read."""
