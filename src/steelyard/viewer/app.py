"""The web application: who may ask what, which address leads to which page or answer, and the server on loopback."""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import secrets
import socket
import sys
import tempfile
import threading
import traceback
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from steelyard.errors import InputError, SteelyardError
from steelyard.text import counted, plain
from steelyard.viewer import api, labelling, run_cache, run_list
from steelyard.viewer.pages import compare, history, rendering, run, runs
from steelyard.viewer.query_params import QueryParameters, ViewerRequestError, url_path

if TYPE_CHECKING:
    from starlette.requests import Request
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

    def __init__(self, app: ASGIApp, *, port: int, key: str, writes_to: str = "") -> None:
        """`writes_to` is the one path that takes a POST, if any does."""
        self._app = app
        self._writes_to = writes_to
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
        if refusal is None and is_api_request(scope):
            # a key is for us alone; to the API it would be an unknown parameter
            pairs = _query_pairs(scope)
            if "key" in dict(pairs):
                asked = urlencode([(name, value) for name, value in pairs if name != "key"])
                scope = {**scope, "query_string": asked.encode("latin-1")}
        await (refusal or self._app)(scope, receive, sent)

    def _refusal(self, scope: Scope) -> Response | None:
        """The refusal to send instead of an answer; None if the request is in order."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "").lower() not in self._hosts:
            # a page elsewhere can let its own name lead here; its script would then read what is shown here
            return error_response(scope, 421, "this viewer answers only to 127.0.0.1 and localhost")
        if scope["method"] == "POST" and self._writes_to and scope["path"] == self._writes_to:
            if headers.get("origin", f"http://{headers['host']}") != f"http://{headers['host']}":
                return error_response(scope, 403, "only the pages of this viewer may write")
        elif scope["method"] not in ("GET", "HEAD"):
            refused = error_response(scope, 405, "this viewer only reads: GET and HEAD are all it knows")
            refused.headers["allow"] = "GET, HEAD"
            return refused
        if len(scope.get("raw_path", b"")) > MAX_URL_BYTES or len(scope["query_string"]) > MAX_URL_BYTES:
            return error_response(scope, 414, f"an address has at most {MAX_URL_BYTES} characters")
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return error_response(scope, 403, "other sites may link to these pages, and nothing else")
        return self._lock(scope, headers)

    def _lock(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        path: str = scope["path"]
        if path in KEYLESS_PATHS or path.startswith("/static/"):
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = headers.get("x-api-key", token.strip() if scheme.lower() == "bearer" else None)
        if given is not None:
            if _is_same(given.encode("latin-1"), self._key):
                return None
            return error_response(scope, 401, "the key in Authorization or X-API-Key is not the one of this viewer")
        if _is_same(_cookie(headers.get("cookie", ""), self._cookie).encode(), self._ticket):
            return None
        pairs = _query_pairs(scope)
        has_key = _is_same(dict(pairs).get("key", "").encode(), self._key)
        if is_api_request(scope):
            way_out = "this viewer has a key, which it printed: send it as Authorization: Bearer KEY, or as ?key=KEY"
            return None if has_key else error_response(scope, 401, way_out)
        if has_key:
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


def _query_pairs(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _is_same(given: bytes, key: bytes) -> bool:
    return hmac.compare_digest(given, key)


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


MAX_CONCURRENT_REQUESTS = 8
"""Requests that are worked on at the same time; each may hold some megabytes."""
RUN_READ_TIMEOUT_SECONDS = 1.0
"""Seconds after which a reader sees a page that says the run is being read."""
IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable"


class Site:
    """What the pages of one viewer share, made with the first of them."""

    def __init__(self, catalog: Callable[[], run_list.RunCatalog]) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._runs: run_cache.RunCache | None = None

    @property
    def runs(self) -> run_cache.RunCache:
        """The runs that the pages are about."""
        with self._lock:
            self._runs = self._runs or run_cache.RunCache(self._catalog())
            return self._runs


def application(
    catalog: Callable[[], run_list.RunCatalog], *, port: int, key: str, patience: float = RUN_READ_TIMEOUT_SECONDS
) -> ASGIApp:
    """The viewer of some runs, for a server that listens on this port of the loopback interface."""
    site = Site(catalog)

    def page(path: str, make: Callable[[QueryParameters, dict[str, str]], str]) -> Route:
        return Route(path, _endpoint_for(lambda asked, parts: HTMLResponse(make(asked, parts))), methods=["GET"])

    def about(path: str, make: Callable[[str, QueryParameters], str]) -> Route:
        """A page about one run, or another one until that run has been read."""

        def answer(asked: QueryParameters, parts: dict[str, str]) -> Response:
            name = parts["name"]
            if not site.runs.is_read(name, patience):
                return HTMLResponse(rendering.loading_page(name), status_code=202, headers={"refresh": "1"})
            return HTMLResponse(make(name, asked))

        return Route(path, _endpoint_for(answer), methods=["GET"])

    def data(path: str, make: Callable[[QueryParameters, dict[str, str]], Response]) -> Route:
        return Route(path, _endpoint_for(make), methods=["GET"])

    def program(path: str) -> Route:
        """An address of the API."""
        # the id of a case may hold a slash
        route = path.replace("{case_id}", "{case_id:path}")
        return data(route, lambda asked, parts: api.answer(site.runs, path, asked, parts))

    routes = [
        page("/", lambda asked, _: runs.runs(site.runs, asked)),
        page("/compare", lambda asked, _: compare.compare(site.runs, asked)),
        page("/history", lambda *_: history.history()),
        about("/runs/{name}", lambda name, asked: run.run(site.runs, name, asked)),
        about("/runs/{name}/attempt", lambda name, asked: run.attempt(site.runs, name, asked)),
        about("/runs/{name}/tiers", lambda name, _: run.tiers(site.runs, name)),
        about("/runs/{name}/suites", lambda name, _: run.suites(site.runs, name)),
        data("/runs/{name}/pulse", lambda _, parts: _pulse(site.runs, parts["name"])),
        data("/pulse", lambda *_: _pulse_of_all(site.runs)),
        data("/static/{file}", lambda _, parts: _static(parts["file"])),
        *(program(path) for path in api.ANSWERS),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found}, lifespan=_lifespan)
    return AccessGuard(app, port=port, key=key)


def label_application(session: labelling.LabelSession, *, port: int, key: str) -> ASGIApp:
    """The pages on which one person labels one run; nothing else of it is shown, because that would reveal the judges' opinions."""
    csrf = labelling.csrf_token(key)

    def page(asked: QueryParameters, _: dict[str, str]) -> Response:
        # without any referrer a browser does not say either where a form comes from
        headers = {"cache-control": "no-store", "referrer-policy": "same-origin"}
        return HTMLResponse(session.page(asked, csrf), headers=headers)

    async def mark(request: Request) -> Response:
        content = b""
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_URL_BYTES:
                return error_response(request.scope, 413, f"a form has at most {MAX_URL_BYTES} bytes")

        def answer(form: QueryParameters, _: dict[str, str]) -> Response:
            if not _is_same(form.text("csrf").encode(), csrf.encode()):
                raise ViewerRequestError(403, "this form is not from this viewer; open the page again")
            return RedirectResponse(session.mark(form), status_code=303)

        return await run_in_threadpool(_answered, answer, content.decode("latin-1"), request)

    routes = [
        Route("/", lambda _: RedirectResponse("/label", status_code=303), methods=["GET"]),
        Route("/label", _endpoint_for(page), methods=["GET"]),
        Route("/label", mark, methods=["POST"]),
        Route("/static/{file}", _endpoint_for(lambda _, parts: _static(parts["file"])), methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found}, lifespan=_lifespan)
    return AccessGuard(app, port=port, key=key, writes_to="/label")


@asynccontextmanager
async def _lifespan(_: Starlette) -> AsyncIterator[None]:
    import anyio.to_thread

    anyio.to_thread.current_default_thread_limiter().total_tokens = MAX_CONCURRENT_REQUESTS
    yield


def _endpoint_for(make: Callable[[QueryParameters, dict[str, str]], Response]) -> Callable[[Request], Response]:
    """An endpoint that runs in a thread, and whose errors are sentences."""

    def endpoint(request: Request) -> Response:
        return _answered(make, request.scope["query_string"].decode("latin-1"), request)

    return endpoint


def _answered(make: Callable[[QueryParameters, dict[str, str]], Response], asked: str, request: Request) -> Response:
    """The answer to a request, or the sentence that says why there is none."""
    try:
        return make(QueryParameters(asked), request.path_params)
    except ViewerRequestError as refused:
        return error_response(request.scope, refused.status, refused.message)
    except SteelyardError as error:
        return error_response(request.scope, 409, str(error))
    except Exception:  # noqa: BLE001  a reader gets a page, and the terminal of the viewer gets the reason
        print(plain(traceback.format_exc()), file=sys.stderr)
        return error_response(request.scope, 500, "this page could not be made; where the viewer runs it says why")


async def _not_found(request: Request, _: Exception) -> Response:
    return error_response(request.scope, 404, "nothing is here")


def _static(name: str) -> Response:
    if name not in rendering.static_files():
        raise ViewerRequestError(404, "nothing is here")
    content, kind = rendering.static_files()[name]
    return Response(content, media_type=kind, headers={"cache-control": IMMUTABLE_CACHE_CONTROL})


def _pulse(cache: run_cache.RunCache, name: str) -> Response:
    """Whether a run has grown: little enough to be asked for every few seconds."""
    opened = cache.run(name)
    judged = [row.outcome for row in opened.rows if row.outcome != "missing"]
    headline = f"{counted(len(judged), 'attempt')}, {judged.count('correct'):,} correct"
    return JSONResponse({"version": opened.version, "growing": opened.is_growing, "headline": headline})


def _pulse_of_all(cache: run_cache.RunCache) -> Response:
    listing = cache.listing()
    growing = sum(run.state == "growing" for run in listing.runs)
    headline = f"{counted(len(listing.runs), 'run')}, {growing:,} growing"
    is_growing = bool(growing or listing.pending)
    return JSONResponse({"version": listing.version, "growing": is_growing, "headline": headline})


VIEWER_HOST = "127.0.0.1"
VIEWER_KEY_BYTES = 24
"""Random bytes of a key that the viewer makes."""
LISTEN_BACKLOG = 128
"""Connections that wait to be taken."""
MAX_VIEWER_CONNECTIONS = 200
MAX_REQUEST_HEAD_BYTES = 64 << 10
"""Bytes of the head of a request."""
VIEWER_SHUTDOWN_SECONDS = 2
"""Seconds that open requests get after the viewer is stopped."""


def serve(
    root: Path,
    *,
    port: int,
    key: str = "",
    tell: Callable[[str], None],
    browser: bool,
    session: labelling.LabelSession | None = None,
) -> None:
    """Show the runs below a folder until the viewer is stopped; `tell` gets the address as soon as it can be opened.

    Without a key the viewer makes one, and the address has it. With a `session` one run is labelled instead.
    """
    listening = _listening_socket(port)
    own_key = "" if key else secrets.token_urlsafe(VIEWER_KEY_BYTES)
    with listening, ExitStack() as files:
        port = listening.getsockname()[1]
        secret = key or own_key
        config = uvicorn.Config(
            label_application(session, port=port, key=secret)
            if session
            else application(lambda: run_list.RunCatalog(root), port=port, key=secret),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="on",
            access_log=False,
            log_level="error",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_VIEWER_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_REQUEST_HEAD_BYTES,
            timeout_graceful_shutdown=VIEWER_SHUTDOWN_SECONDS,
        )
        url = f"http://{VIEWER_HOST}:{port}/" + (f"?key={own_key}" if own_key else "")
        tell(url)
        if browser and has_screen():
            page = files.enter_context(_redirect_page(url))
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
            # while the browser opens; the viewer does not wait for it at its end
            threading.Thread(target=lambda: runs.compile_templates(), daemon=True).start()
        # the server lets what stopped it happen again when it has ended
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _redirect_page(url: str) -> Iterator[str]:
    """A page that leads to the viewer, readable for this user alone: others see what a browser is started with."""
    with tempfile.NamedTemporaryFile("w", prefix="steelyard-", suffix=".html", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={url}"><a href="{url}">Open the viewer</a>\n'
        )
        file.flush()
        yield Path(file.name).as_uri()


def _listening_socket(port: int) -> socket.socket:
    """A socket that takes connections already; other machines cannot reach it."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((VIEWER_HOST, port))
        found.listen(LISTEN_BACKLOG)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} is taken, perhaps by another viewer at http://{VIEWER_HOST}:{port}/; take any other with --port 0"
            ) from None
        raise InputError(f"port {port} cannot be used: {error.strerror}; take any other with --port 0") from None
    except OverflowError:
        found.close()
        raise InputError(f"a port is a number from 0 to 65535, not {port}") from None
    return found


def has_screen() -> bool:
    """Whether a browser would be seen: one in a terminal would take it from us."""
    if sys.platform == "darwin" or "BROWSER" in os.environ:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
