"""Who may ask what: only this machine, only for reading, within bounds, and with the key where there is one."""

from __future__ import annotations

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

from steelyard.viewer.pages import rendering
from steelyard.viewer.query_params import url_path

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_URL_BYTES = 16 << 10
"""Bytes of an address, and of what it asks for."""
KEYLESS_PATHS = ("/healthz",)
"""What needs no key."""
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-cache, private",
}
"""With every response, unless it has its own."""


class AccessGuard:
    """Stands before the application, and sees to the headers of all that leaves it."""

    def __init__(self, app: ASGIApp, *, port: int, key: str = "") -> None:
        self._app = app
        self._hosts = {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}
        if port == 80:
            self._hosts |= {"127.0.0.1", "localhost", "[::1]"}
        self._key = key.encode()
        self._cookie = f"steelyard-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                own = {name.lower() for name, _ in headers}
                headers += [
                    (name.encode(), SECURITY_HEADERS[name].encode())
                    for name in SECURITY_HEADERS
                    if name.encode() not in own
                ]
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, sent)

    def _refusal(self, scope: Scope) -> Response | None:
        """The refusal to send instead of an answer; None where the request is in order."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "").lower() not in self._hosts:
            # a page elsewhere can let its own name lead here; its script would then read what is shown here
            return error_response(scope, 421, "this viewer answers only to 127.0.0.1 and localhost")
        if scope["method"] not in ("GET", "HEAD"):
            refused = error_response(scope, 405, "this viewer only reads: GET and HEAD are all it knows")
            refused.headers["allow"] = "GET, HEAD"
            return refused
        if len(scope.get("raw_path", b"")) > MAX_URL_BYTES or len(scope["query_string"]) > MAX_URL_BYTES:
            return error_response(scope, 414, f"an address has at most {MAX_URL_BYTES} characters")
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return error_response(scope, 403, "other sites may link to these pages, and nothing else")
        return self._lock(scope, headers) if self._key else None

    def _lock(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        path: str = scope["path"]
        if path in KEYLESS_PATHS or path.startswith("/static/"):
            return None
        if "x-api-key" in headers:
            if _is_same(headers["x-api-key"].encode("latin-1"), self._key):
                return None
            return error_response(scope, 401, "the key in X-API-Key is not the one")
        if _is_same(_cookie(headers.get("cookie", ""), self._cookie).encode(), self._ticket):
            return None
        if is_api_request(scope):
            return error_response(scope, 401, "this viewer has a key: send it as X-API-Key")
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if _is_same(dict(pairs).get("key", "").encode(), self._key):
            # the key must not stay in the address, where others read it
            asked = urlencode([(name, value) for name, value in pairs if name != "key"])
            where = url_path(path.strip("/").split("/")) + (f"?{asked}" if asked else "")
            response = RedirectResponse(where, status_code=303)
            response.set_cookie(self._cookie, self._ticket.decode(), httponly=True, samesite="strict", path="/")
            return response
        return HTMLResponse(rendering.login_page(), status_code=401)

    @property
    def _ticket(self) -> bytes:
        """What a browser keeps: not the key itself, but something that only its owner could have been given."""
        return hmac.new(self._key, b"steelyard viewer", hashlib.sha256).hexdigest().encode()


def is_api_request(scope: Scope) -> bool:
    """Whether JSON is wanted rather than a page."""
    path: str = scope["path"]
    return path.startswith("/api/") or path in ("/api", "/healthz", "/openapi.json") or path.endswith("/pulse")


def error_response(scope: Scope, status: int, message: str) -> Response:
    """Why there is no answer: the envelope for programs, a page for people."""
    if is_api_request(scope):
        return JSONResponse({"error": {"code": status, "message": message}}, status_code=status)
    return HTMLResponse(rendering.error_page(status, message), status_code=status)


def _is_same(given: bytes, key: bytes) -> bool:
    return hmac.compare_digest(given, key)


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""
