"""A model behind an HTTP endpoint: what all wire formats have in common."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from steelyard.errors import InputError, Rejected, Unavailable
from steelyard.protocols import Delivery, OfferedModel, ProviderSettings, RateLimitHeadroom
from steelyard.providers.bodies import stream_events
from steelyard.providers.wire import MAX_REQUESTS_PER_ENDPOINT, HttpEndpoint, HttpExchange, RequestSigner, intercepted
from steelyard.records import Answer, Attempt

IDLE_SECONDS = 25.0
"""Silence after which something on the way may have cut the connection; load balancers wait 30 to 100 seconds."""
NAMED_OPTIONS = ("reasoning_effort", "response_format")
"""Parameters that each format writes in its own way."""


class HttpModel:
    """One model behind one endpoint; a wire format says what is sent and what a response means."""

    at_once = MAX_REQUESTS_PER_ENDPOINT
    takes_tools = False
    """Whether a request can offer tools, and a conversation hold their results."""
    stream_fields: Mapping[str, Any] = MappingProxyType({"stream": True})
    """What a request for a stream has in addition."""

    def __init__(
        self,
        model: str,
        settings: ProviderSettings,
        headers: Mapping[str, str],
        *,
        base_url: str = "",
        sign: RequestSigner | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        if not settings.base_url:
            raise InputError(f"provider {settings.type}: no base_url; give one with --base-url or in the settings file")
        self.model = model
        self.http = HttpEndpoint(
            base_url or settings.base_url,
            {**headers, **settings.headers},
            secrets=(settings.api_key, *secrets, *settings.headers.values()),
            sign=sign,
        )
        self.endpoint = self.http.url
        self._stream_mode = settings.stream
        self._was_cut_off = False
        self._refused_mode: bool | None = None

    # ---- what a format says

    def path(self, *, streams: bool) -> str:
        """Where a request goes, below the base URL."""
        raise NotImplementedError

    def request(self, attempt: Attempt) -> dict[str, Any]:
        """The body of a request for one whole answer."""
        raise NotImplementedError

    def answer(self, response: dict[str, Any], sent: Any) -> Answer:
        """What a whole response says; raises Unavailable, Rejected or ValueError where it is not an answer."""
        raise NotImplementedError

    def joined(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        """The response that the events of a stream make; raises ValueError where the stream broke off."""
        raise NotImplementedError

    def events(self, body: bytes) -> Iterable[tuple[int, dict[str, Any]]] | None:
        """The events of a body, each with its end; None if it is not a stream."""
        return stream_events(body)

    def is_token(self, event: dict[str, Any]) -> bool:
        """Whether an event of a stream contains a part of the answer, reasoning included."""
        raise NotImplementedError

    def unsupported(self, parameters: Mapping[str, Any]) -> str:  # noqa: ARG002  many formats have all
        """Why these parameters cannot be sent in this format; empty if they can."""
        return ""

    # ---- asking

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        sent = self.request(attempt)
        streams = self._streams(sent)
        started = time.monotonic()
        try:
            exchange = await self._exchange(sent, delivery, streams=streams)
        except Unavailable:
            # silence was long enough for something between us and the model to lose patience
            self._was_cut_off = self._was_cut_off or time.monotonic() - started >= IDLE_SECONDS
            raise
        except Rejected as error:
            if self._stream_mode != "auto" or self._refused_mode is not None or not error.about_stream:
                raise
            self._refused_mode = streams
            exchange = await self._exchange(sent, delivery, streams=not streams)
        return self.answer_of(exchange, sent)

    async def _exchange(self, sent: dict[str, Any], delivery: Delivery, *, streams: bool) -> HttpExchange:
        body = {**sent, **self.stream_fields} if streams else sent
        return await self.http.exchange("POST", self.path(streams=streams), body, delivery)

    def _streams(self, sent: Mapping[str, Any]) -> bool:
        """Whether a request asks for a stream; what comes back is read either way."""
        if intercepted.get() is not None:
            return False
        if self._stream_mode != "auto":
            return self._stream_mode == "on"
        if self._refused_mode is not None:
            return not self._refused_mode
        return self._was_cut_off or self.may_be_long(sent)

    def may_be_long(self, sent: Mapping[str, Any]) -> bool:  # noqa: ARG002  only some formats say how long it may be
        """Whether an answer may take longer than connections stay open in silence."""
        return False

    def answer_of(self, exchange: HttpExchange, sent: Any) -> Answer:
        """The answer that a response is, with its times."""
        response = self.http.answer_object(exchange, self.joined, self.events)
        try:
            self.http.check_errors(sent, response)
            answer = self.answer(response, sent)
        except (ValueError, RecursionError) as error:
            raise self.http.not_expected(exchange, error) from None
        names = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid")
        request_id = next((exchange.headers[name] for name in names if exchange.headers.get(name)), answer.request_id)
        return msgspec.structs.replace(
            answer, latency=exchange.seconds, first_token=self._first_token(exchange), request_id=request_id
        )

    def _first_token(self, exchange: HttpExchange) -> float | None:
        """Seconds until the first part of a streamed answer was there."""
        for end, event in self.events(exchange.body) or ():
            if self.is_token(event):
                return next((seconds for size, seconds in exchange.arrivals if size >= end), exchange.seconds)
        return None

    def headroom(self) -> RateLimitHeadroom | None:
        return self.http.headroom

    def available(self, case: str) -> None:  # noqa: ARG002  a live model answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        raise NotImplementedError

    async def close(self) -> None:
        await self.http.close()


def schema_of(response_format: Any) -> tuple[str, dict[str, Any]]:
    """The name and the JSON Schema of a `response_format` in OpenAI's words; no schema where any JSON will do."""
    described = response_format.get("json_schema") if isinstance(response_format, dict) else None
    if not isinstance(described, dict):
        return "", {}
    schema = described.get("schema")
    return str(described.get("name") or "reply"), schema if isinstance(schema, dict) else {}
