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
from steelyard.reports.figures import counted, plain
from steelyard.viewer import api, pages
from steelyard.viewer.guard import Guard, told
from steelyard.viewer.query_params import Asked, Refused
from steelyard.viewer.run_cache import Shelf

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from steelyard.viewer.run_list import Library

AT_ONCE = 8
"""Requests that are worked on at the same time; each may hold some megabytes."""
PATIENCE = 1.0
"""Seconds after which a reader is told that a run is being read."""
FOREVER = "public, max-age=31536000, immutable"


def application(library: Library, *, port: int, key: str = "", patience: float = PATIENCE) -> ASGIApp:
    """The viewer of some runs, for a server that listens on this port of the loopback interface."""
    shelf = Shelf(library)

    def page(path: str, make: Callable[[Asked, dict[str, str]], str]) -> Route:
        return Route(path, _answering(lambda asked, parts: HTMLResponse(make(asked, parts))), methods=["GET"])

    def about(path: str, make: Callable[[str, Asked], str]) -> Route:
        """A page about one run, or another one until that run has been read."""

        def answer(asked: Asked, parts: dict[str, str]) -> Response:
            name = parts["name"]
            if not shelf.is_read(name, patience):
                return HTMLResponse(pages.reading(name), status_code=202, headers={"refresh": "1"})
            return HTMLResponse(make(name, asked))

        return Route(path, _answering(answer), methods=["GET"])

    def data(path: str, make: Callable[[Asked, dict[str, str]], Response]) -> Route:
        return Route(path, _answering(make), methods=["GET"])

    routes = [
        page("/", lambda asked, _: pages.runs(shelf, asked)),
        page("/compare", lambda asked, _: pages.compare(shelf, asked)),
        about("/runs/{name}", lambda name, asked: pages.run(shelf, name, asked)),
        about("/runs/{name}/attempt", lambda name, asked: pages.attempt(shelf, name, asked)),
        about("/runs/{name}/tiers", lambda name, _: pages.tiers(shelf, name)),
        about("/runs/{name}/suites", lambda name, _: pages.suites(shelf, name)),
        data("/runs/{name}/pulse", lambda _, parts: _pulse(shelf, parts["name"])),
        data("/pulse", lambda *_: _pulse_of_all(shelf)),
        data("/static/{file}", lambda _, parts: _static(parts["file"])),
        *(data(path, make) for path, make in api.routes(shelf).items()),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _nowhere}, lifespan=_lifespan)
    return Guard(app, port=port, key=key)


@asynccontextmanager
async def _lifespan(_: Starlette) -> AsyncIterator[None]:
    import anyio.to_thread

    anyio.to_thread.current_default_thread_limiter().total_tokens = AT_ONCE
    # while the browser opens, and nobody waits for it when the viewer ends
    threading.Thread(target=pages.prepare, daemon=True).start()
    yield


def _answering(make: Callable[[Asked, dict[str, str]], Response]) -> Callable[[Request], Response]:
    """An endpoint that runs in a thread, and whose errors are sentences."""

    def endpoint(request: Request) -> Response:
        try:
            return make(Asked(request.scope["query_string"].decode("latin-1")), request.path_params)
        except Refused as refused:
            return told(request.scope, refused.status, refused.message)
        except SteelyardError as error:
            return told(request.scope, 409, str(error))
        except Exception:  # noqa: BLE001  a reader gets a page, and whoever started the viewer the reason
            print(plain(traceback.format_exc()), file=sys.stderr)
            return told(request.scope, 500, "this page could not be made; where the viewer runs it says why")

    return endpoint


async def _nowhere(request: Request, _: Exception) -> Response:
    return told(request.scope, 404, "nothing is here")


def _static(name: str) -> Response:
    if name not in pages.statics():
        raise Refused(404, "nothing is here")
    content, kind = pages.statics()[name]
    return Response(content, media_type=kind, headers={"cache-control": FOREVER})


def _pulse(shelf: Shelf, name: str) -> Response:
    """Whether a run has grown: little enough to be asked for every few seconds."""
    opened = shelf.run(name)
    judged = [row.outcome for row in opened.rows if row.outcome != "missing"]
    headline = f"{counted(len(judged), 'attempt')}, {judged.count('correct'):,} correct"
    return JSONResponse({"version": opened.version, "growing": opened.is_growing, "headline": headline})


def _pulse_of_all(shelf: Shelf) -> Response:
    listing = shelf.listing()
    growing = sum(run.state == "growing" for run in listing.runs)
    headline = f"{counted(len(listing.runs), 'run')}, {growing:,} growing"
    is_growing = bool(growing or listing.pending)
    return JSONResponse({"version": listing.version, "growing": is_growing, "headline": headline})
