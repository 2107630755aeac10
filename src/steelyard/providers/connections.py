"""What becomes of the connection that a request goes over."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import httpx2

from steelyard.protocols import Delivery

PLAIN_PORT_SSL_REASONS = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "PACKET_LENGTH_TOO_LONG",
)
"""What OpenSSL says of a peer that does not speak TLS."""
TLS_SILENCE_HINT = "; the TLS handshake was not answered: write http:// instead of https:// if the port is a plain one"


class ConnectionTrace:
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


async def request_body(content: bytes, delivery: Delivery) -> AsyncIterator[bytes]:
    """The body of a request; it is accepted when the client asks for more, because all of it is sent by then."""
    yield content
    delivery.accepted = True


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The certificates to trust; reading them takes longer than many requests, and they are the same for all."""
    return httpx2.create_ssl_context()


def error_description(error: Exception) -> str:
    """What an error of the client says, with its name and the way out where we know one."""
    name = type(error).__name__
    return f"{name}: {error}{_tls_hint(error)}" if str(error) else name
