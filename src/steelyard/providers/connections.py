"""What becomes of the connection that a request goes over."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import getproxies

import httpx2

from steelyard.errors import InputError
from steelyard.protocols import Delivery
from steelyard.records import is_secret
from steelyard.secret_texts import hidden_texts
from steelyard.text import short_quote

PLAIN_PORT_SSL_REASONS = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "PACKET_LENGTH_TOO_LONG",
)
"""What OpenSSL says of a peer that does not speak TLS."""
TLS_SILENCE_HINT = "; the TLS handshake was not answered: write http:// instead of https:// if the port is a plain one"


PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


def check_base_url(url: str) -> None:
    """Raises an InputError if no request could be sent to an address."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise InputError(f'"{url}" is not an address: {error}') from None
    if not is_address:
        raise InputError(f'"{url}" is not an address; write one such as http://127.0.0.1:8000/v1')
    pairs = [parse_qsl(part) for part in (parts.query, parts.fragment, *re.split("[;/]", parts.path))]
    if any(is_secret(name, value) for named in pairs for name, value in named):
        raise InputError(
            "a base URL must not contain a key in its query: it is stored with the run; use api_key or headers"
        )
    if "@" in parts.netloc:
        raise InputError(
            "a base URL must not contain a name and password: it is stored with the run; use api_key or headers"
        )


def check_proxies() -> None:
    """Raise an InputError for a proxy in the environment that no request could go through; its password is not shown."""
    for name, proxy in hidden_texts(getproxies()).items():
        if name not in ("http", "https", "all") or "://" not in proxy:
            continue
        scheme = proxy.partition("://")[0]
        if scheme not in PROXY_SCHEMES:
            raise InputError(
                f"{name.upper()}_PROXY in the environment begins with {short_quote(scheme) if scheme.isalnum() else 'no scheme'}; "
                f"a proxy begins with {', '.join(PROXY_SCHEMES)}"
            )
        if scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
            raise InputError(
                f"{name.upper()}_PROXY in the environment is a SOCKS proxy, which needs: pip install socksio"
            )


def proxy_secrets() -> list[str]:
    """The passwords of the proxies in the environment, as they are and as they are sent."""
    found = []
    for proxy in getproxies().values():
        user, _, password = proxy.rpartition("@")[0].rpartition("/")[2].partition(":")
        if password:
            sent = f"{unquote(user)}:{unquote(password)}".encode()
            found += [password, unquote(password), base64.b64encode(sent).decode()]
    return found


_ESCAPED_ASCII = re.compile(r"\\u00([2-7][0-9a-fA-F])")


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    r"""The text with each secret replaced, also one that is written with JSON's or an address's escapes.

    >>> without_secrets("key sk-12345678", ["sk-12345678"]), without_secrets("k=s\u006b-12345678", ["sk-12345678"])
    ('key ***', 'k=***')
    """
    for secret in secrets:
        text = text.replace(secret, "***")
        if "\\" in text:
            plain = _ESCAPED_ASCII.sub(lambda found: chr(int(found[1], 16)), text).replace("\\/", "/")
            text = plain.replace(secret, "***") if secret in plain else text
        if "%" in text:
            plain = unquote(text)
            text = plain.replace(secret, "***") if secret in plain else text
    return text


def _proxy_hint() -> str:
    """That a proxy may be to blame for a connection that cannot be made, where one is set."""
    named = [f"{name.upper()}_PROXY" for name in getproxies() if name in ("http", "https", "all")]
    return f"; the environment sets {' and '.join(named)}" if named else ""


class ConnectionTrace:
    """What the client reports about the connection of one request."""

    def __init__(self, delivery: Delivery, on_unasked_response: Callable[[], None]) -> None:
        self._delivery = delivery
        self._on_unasked_response = on_unasked_response
        self._is_new = False
        self._is_answered = False
        self._has_waited = False

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
        elif event.endswith("receive_response_headers.started"):
            # later data arrives in a later iteration of the loop
            asyncio.get_running_loop().call_soon(self._wait)
        elif event.endswith("receive_response_headers.complete"):
            if not (self._is_new or self._has_waited):
                self._on_unasked_response()
                raise httpx2.RemoteProtocolError("a response was there before the request: it answers another one")
            self._is_answered = True

    def _wait(self) -> None:
        self._has_waited = True


def _tls_hint(error: BaseException | None) -> str:
    """A hint for a port that does not speak TLS, or speaks only TLS."""
    while error is not None:
        if isinstance(error, ssl.SSLError) and error.reason in PLAIN_PORT_SSL_REASONS:
            return "; the port does not speak TLS: write http:// instead of https:// if it is a plain one"
        error = error.__cause__ or error.__context__
    return ""


async def request_body(content: bytes, delivery: Delivery) -> AsyncIterator[bytes]:
    """The body of a request; it is accepted when the client asks for more, because all of it is sent by then."""
    yield content
    delivery.accepted = True


def no_cookies() -> CookieJar:
    """A jar that keeps nothing: requests do not depend on each other, and do not grow with each answer."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The certificates to trust; reading them takes longer than many requests, and they are the same for all."""
    return httpx2.create_ssl_context()


def error_description(error: Exception) -> str:
    """What an error of the client says, with its name and the way out where we know one."""
    name = type(error).__name__
    hint = _tls_hint(error) or (_proxy_hint() if isinstance(error, httpx2.ConnectError | httpx2.ProxyError) else "")
    return f"{name}: {error}{hint}" if str(error) else f"{name}{hint}"
