"""The web application: which address leads to which page or answer."""

from __future__ import annotations

import sys
import threading
import traceback
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from steelyard.errors import SteelyardError
from steelyard.text import counted, plain
from steelyard.viewer import api
from steelyard.viewer.guard import AccessGuard, error_response
from steelyard.viewer.pages import compare, rendering, run, runs, scores
from steelyard.viewer.query_params import QueryParameters, ViewerRequestError
from steelyard.viewer.run_cache import RunCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from steelyard.viewer.run_list import RunCatalog

MAX_CONCURRENT_REQUESTS = 8
"""Requests that are worked on at the same time; each may hold some megabytes."""
RUN_READ_TIMEOUT_SECONDS = 1.0
"""Seconds after which a reader sees a page that says the run is being read."""
IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable"


def application(
    library: RunCatalog, *, port: int, key: str = "", patience: float = RUN_READ_TIMEOUT_SECONDS
) -> ASGIApp:
    """The viewer of some runs, for a server that listens on this port of the loopback interface."""
    run_cache = RunCache(library)

    def page(path: str, make: Callable[[QueryParameters, dict[str, str]], str]) -> Route:
        return Route(path, _endpoint_for(lambda asked, parts: HTMLResponse(make(asked, parts))), methods=["GET"])

    def about(path: str, make: Callable[[str, QueryParameters], str]) -> Route:
        """A page about one run, or another one until that run has been read."""

        def answer(asked: QueryParameters, parts: dict[str, str]) -> Response:
            name = parts["name"]
            if not run_cache.is_read(name, patience):
                return HTMLResponse(rendering.loading_page(name), status_code=202, headers={"refresh": "1"})
            return HTMLResponse(make(name, asked))

        return Route(path, _endpoint_for(answer), methods=["GET"])

    def data(path: str, make: Callable[[QueryParameters, dict[str, str]], Response]) -> Route:
        return Route(path, _endpoint_for(make), methods=["GET"])

    routes = [
        page("/", lambda asked, _: runs.runs(run_cache, asked)),
        page("/compare", lambda asked, _: compare.compare(run_cache, asked)),
        about("/runs/{name}", lambda name, asked: run.run(run_cache, name, asked)),
        about("/runs/{name}/attempt", lambda name, asked: run.attempt(run_cache, name, asked)),
        about("/runs/{name}/tiers", lambda name, _: scores.tiers(run_cache, name)),
        about("/runs/{name}/suites", lambda name, _: scores.suites(run_cache, name)),
        data("/runs/{name}/pulse", lambda _, parts: _pulse(run_cache, parts["name"])),
        data("/pulse", lambda *_: _pulse_of_all(run_cache)),
        data("/static/{file}", lambda _, parts: _static(parts["file"])),
        *(data(path, make) for path, make in api.routes(run_cache).items()),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found}, lifespan=_lifespan)
    return AccessGuard(app, port=port, key=key)


@asynccontextmanager
async def _lifespan(_: Starlette) -> AsyncIterator[None]:
    import anyio.to_thread

    anyio.to_thread.current_default_thread_limiter().total_tokens = MAX_CONCURRENT_REQUESTS
    # while the browser opens; the viewer does not wait for it at its end
    threading.Thread(target=rendering.compile_templates, daemon=True).start()
    yield


def _endpoint_for(make: Callable[[QueryParameters, dict[str, str]], Response]) -> Callable[[Request], Response]:
    """An endpoint that runs in a thread, and whose errors are sentences."""

    def endpoint(request: Request) -> Response:
        try:
            return make(QueryParameters(request.scope["query_string"].decode("latin-1")), request.path_params)
        except ViewerRequestError as refused:
            return error_response(request.scope, refused.status, refused.message)
        except SteelyardError as error:
            return error_response(request.scope, 409, str(error))
        except Exception:  # noqa: BLE001  a reader gets a page, and the terminal of the viewer gets the reason
            print(plain(traceback.format_exc()), file=sys.stderr)
            return error_response(request.scope, 500, "this page could not be made; where the viewer runs it says why")

    return endpoint


async def _not_found(request: Request, _: Exception) -> Response:
    return error_response(request.scope, 404, "nothing is here")


def _static(name: str) -> Response:
    if name not in rendering.static_files():
        raise ViewerRequestError(404, "nothing is here")
    content, kind = rendering.static_files()[name]
    return Response(content, media_type=kind, headers={"cache-control": IMMUTABLE_CACHE_CONTROL})


def _pulse(run_cache: RunCache, name: str) -> Response:
    """Whether a run has grown: little enough to be asked for every few seconds."""
    opened = run_cache.run(name)
    judged = [row.outcome for row in opened.rows if row.outcome != "missing"]
    headline = f"{counted(len(judged), 'attempt')}, {judged.count('correct'):,} correct"
    return JSONResponse({"version": opened.version, "growing": opened.is_growing, "headline": headline})


def _pulse_of_all(run_cache: RunCache) -> Response:
    listing = run_cache.listing()
    growing = sum(run.state == "growing" for run in listing.runs)
    headline = f"{counted(len(listing.runs), 'run')}, {growing:,} growing"
    is_growing = bool(growing or listing.pending)
    return JSONResponse({"version": listing.version, "growing": is_growing, "headline": headline})
