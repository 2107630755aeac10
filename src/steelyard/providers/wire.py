"""One JSON request over HTTP, with a name for every way it can go wrong."""

from __future__ import annotations

import math
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from steelyard.errors import InputError, Rejected, Unavailable
from steelyard.protocols import Delivery, RateLimitHeadroom
from steelyard.providers.bodies import as_dict, is_event_stream, json_value, stream_events
from steelyard.providers.faults import decoded_error, error_status, is_error, provider_error

MAX_RESPONSE_BYTES = 32 << 20
"""Bytes of a response that are read at most; no answer of a model is near that."""
MAX_REQUESTS_PER_ENDPOINT = 64
"""Requests in flight to one endpoint at most; the pace finds out how many it really takes."""

PLAIN_PORT_SSL_REASONS = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "PACKET_LENGTH_TOO_LONG",
)
"""What OpenSSL says of a peer that does not speak TLS."""
TLS_SILENCE_HINT = "; the TLS handshake was not answered: write http:// instead of https:// if the port is a plain one"

Shape = TypeVar("Shape")


class HttpExchange(NamedTuple):
    """A response that arrived whole."""

    body: bytes
    headers: Mapping[str, str]
    seconds: float


class HttpEndpoint:
    """One base URL with its credentials."""

    def __init__(self, base_url: str, headers: Mapping[str, str], *, secrets: Iterable[str]) -> None:
        self.url = base_url.rstrip("/")
        try:
            place = urlsplit(self.url).netloc
        except ValueError as error:
            raise InputError(f'"{base_url}" is not an address: {error}') from None
        if "@" in place:
            raise InputError(
                "a base URL must not hold a name and password: it is stored with the run; use api_key or headers"
            )
        for name, value in headers.items():
            # an error raised while sending would show the key
            if not (value.isascii() and value.isprintable()):
                raise InputError(
                    f"the header {name} holds a character that cannot be sent, such as a line end; is the key right?"
                )
        self._headers = {"accept": "application/json", "accept-encoding": "identity", **headers}
        given = [secret for secret in secrets if secret]
        self._has_key = bool(given)
        # a short one is a word that stands in honest messages too
        self._secrets = [secret for secret in given if len(secret) >= 8]
        self._client: httpx2.AsyncClient | None = None
        self.headroom: RateLimitHeadroom | None = None

    async def exchange(
        self, method: str, path: str, body: Any = None, delivery: Delivery | None = None
    ) -> HttpExchange:
        """Send one request; raises Unavailable or Rejected unless a 2xx response arrived whole."""
        delivery = delivery or Delivery()
        if self._client is None:
            # no time limit of its own: the deadline of the whole request is the engine's
            self._client = httpx2.AsyncClient(
                timeout=None,
                verify=_certificates(),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=MAX_REQUESTS_PER_ENDPOINT),
            )
        content, headers = None, self._headers
        if body is not None:
            encoded = msgspec.json.encode(body)
            content = _request_body(encoded, delivery)
            headers = {**headers, "content-type": "application/json", "content-length": str(len(encoded))}
        started = time.monotonic()
        received = bytearray()
        trace = _ConnectionTrace(delivery)
        try:
            async with self._client.stream(
                method, self.url + path, content=content, headers=headers, extensions={"trace": trace}
            ) as response:
                if not response.is_success:
                    delivery.accepted = False
                async for chunk in response.aiter_bytes():
                    received += chunk
                    if len(received) > MAX_RESPONSE_BYTES:
                        raise Rejected(f"{self.url}: the response is larger than {MAX_RESPONSE_BYTES >> 20} MiB")
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise Rejected(f'"{self.url}" is not an address: {error}', everyone=True) from None
        except (httpx2.RequestError, OSError) as error:
            if trace.is_stale and isinstance(error, httpx2.TransportError):
                # the server closed a connection that had been idle: it has not read the request; the pool drops the connection
                delivery.accepted = False
                return await self.exchange(method, path, body, delivery)
            raise Unavailable(self.clean(f"{self.url}: {_error_description(error)}{_tls_hint(error)}")) from None
        self.headroom = headroom(response.headers)
        if not response.is_success:
            self._refuse(response, bytes(received), body)
        delivery.body = self._without_secrets(bytes(received))
        return HttpExchange(delivery.body, response.headers, time.monotonic() - started)

    def decode(self, exchange: HttpExchange, shape: type[Shape]) -> Shape:
        """The body as it ought to be; a server that sends something else is out of order."""
        try:
            return msgspec.json.decode(exchange.body, type=shape, strict=False)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._not_expected(exchange, error) from None

    def answer_value(self, exchange: HttpExchange) -> Any:
        """The value that a response is, read leniently."""
        try:
            return json_value(exchange.body)
        except ValueError as error:
            raise self._not_expected(exchange, error) from None

    def answer_object(
        self, exchange: HttpExchange, joined: Callable[[list[dict[str, Any]]], dict[str, Any]]
    ) -> dict[str, Any]:
        """The object that a response is, read leniently; `joined` makes one of the events of a stream."""
        try:
            is_stream = is_event_stream(exchange.body)
            body = joined(stream_events(exchange.body)) if is_stream else json_value(exchange.body)
        except ValueError as error:
            raise self._not_expected(exchange, error) from None
        if not isinstance(body, dict):
            raise self._not_expected(exchange, ValueError("expected an object"))
        return body

    def check_errors(self, sent: Any, *places: Any) -> None:
        """Raise what the first `error` in these parts of a response means; the status said success."""
        for place in places:
            error = as_dict(place).get("error")
            if is_error(error):
                text = self.clean(error_message(error))[:300]
                raise provider_error(
                    f"{self.url}: sent an error as a success: {text}",
                    error_status(error) or 502,
                    error,
                    parameters=named_parameters(text, sent),
                )

    def _not_expected(self, exchange: HttpExchange, error: Exception) -> Unavailable:
        sent = exchange.headers.get("content-type", "nothing it would name")
        start = self.clean(exchange.body[:1000].decode("utf-8", "replace"))[:80]
        return Unavailable(
            f"{self.url}: sent {sent}, not the answer expected ({error}): {start!r}; is the base URL right?"
        )

    def _refuse(self, response: httpx2.Response, received: bytes, sent: Any) -> None:
        status = response.status_code
        content = decoded_error(received)
        message_text = self.clean(error_message(content))
        message = f"{self.url}: {status} {message_text[:300] or response.reason_phrase}"
        if status < 400:
            target = self.clean(response.headers.get("location", "nowhere"))
            message += f": redirects to {target}; set that as base URL"
        if status in (401, 403) and not self._has_key:
            message += "; no key was sent, because a key goes only to its own address: set api_key beside base_url in the settings file"
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
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def _without_secrets(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret.encode(), b"***")
        return body

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


class _ConnectionTrace:
    """What the client tells about the connection of one request."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._is_new = False
        self._is_answered = False

    @property
    def is_stale(self) -> bool:
        """Whether the request went over a connection from before, and nothing came back."""
        return not self._is_new and not self._is_answered

    async def __call__(self, event: str, details: dict[str, Any]) -> None:  # noqa: ARG002  the name of the event is enough
        if event == "connection.connect_tcp.started":
            self._is_new = True
        elif event == "connection.start_tls.started":
            self._delivery.obstacle = TLS_SILENCE_HINT
        elif event == "connection.start_tls.complete":
            self._delivery.obstacle = ""
        elif event.endswith("receive_response_headers.complete"):
            self._is_answered = True


def _tls_hint(error: BaseException | None) -> str:
    """The way out where a port does not speak TLS, or speaks nothing else."""
    while error is not None:
        if isinstance(error, ssl.SSLError) and error.reason in PLAIN_PORT_SSL_REASONS:
            return "; the port does not speak TLS: write http:// instead of https:// if it is a plain one"
        error = error.__cause__ or error.__context__
    return ""


async def _request_body(content: bytes, delivery: Delivery) -> AsyncIterator[bytes]:
    """The body of a request; it is accepted when the client asks for more, because all of it is sent by then."""
    yield content
    delivery.accepted = True


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates to trust; reading them takes longer than many requests, and they are the same for all."""
    return httpx2.create_ssl_context()


def _error_description(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def named_parameters(message: str, body: Any) -> list[str]:
    """The parameters of a request that an error message names.

    Servers have no common field for the parameter that they do not support, but their message names it.
    """
    return [name for name in body if name in message] if isinstance(body, dict) else []


def error_message(content: Any) -> str:
    """What an error says, in one line.

    >>> error_message({"error": {"message": "no such model", "code": "model_not_found"}})
    'no such model (model_not_found)'
    """
    code = ""
    for name in ("error", "message", "detail"):
        if isinstance(content, dict) and name in content:
            code = str(content.get("code") or content.get("type") or code)
            content = content[name]
    if isinstance(content, dict):
        code = str(content.get("code") or content.get("type") or code)
        content = content.get("message", content)
    text = " ".join(str(content).split())
    return f"{text} ({code})" if code and code not in text else text


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks us to wait, if it says so in a way that can be understood."""
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return _seconds_from_now(milliseconds) if milliseconds >= MIN_EPOCH_SECONDS else milliseconds / 1000
    return seconds_until(headers.get("retry-after", ""))


def headroom(headers: Mapping[str, str]) -> RateLimitHeadroom | None:
    """What rate-limit headers leave, in the spellings of OpenAI, Anthropic and the IETF draft."""
    tightest = None
    for left, reset in (
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ):
        remaining = _number(headers.get(left, ""))
        seconds = seconds_until(headers.get(reset, ""))
        if remaining is None or seconds is None:
            continue
        if tightest is None or (remaining, -seconds) < (tightest.requests, -tightest.reset):
            tightest = RateLimitHeadroom(int(remaining), seconds)
    return tightest


def seconds_until(text: str) -> float | None:
    """A moment or a span of time, as servers write them, in seconds from now.

    >>> seconds_until("6m0.5s"), seconds_until("20"), seconds_until("120ms"), seconds_until("soon")
    (360.5, 20.0, 0.12, None)
    """
    if (plain := _number(text)) is not None:
        return _seconds_from_now(plain)
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
    if re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", text):
        return math.fsum(float(n) * units[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text))
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
        except (ValueError, TypeError):
            continue
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None


MIN_EPOCH_SECONDS = 1e9
"""Nobody asks for a wait of thirty years: such a number is a moment since 1970, in seconds or in a fraction of them."""


def _seconds_from_now(number: float) -> float:
    """A number of seconds, or a moment in seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if number < MIN_EPOCH_SECONDS:
        return number
    while number >= 1000 * MIN_EPOCH_SECONDS:
        number /= 1000
    return max(0.0, number - time.time())


def _number(text: str) -> float | None:
    """A number of things that can be waited for; servers also send nan, infinity and words."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
