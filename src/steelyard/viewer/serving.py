"""Starting the viewer: one port of the loopback interface, and a browser that is sent there."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn

from steelyard.errors import InputError
from steelyard.viewer.app import application
from steelyard.viewer.run_list import RunCatalog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VIEWER_HOST = "127.0.0.1"
LISTEN_BACKLOG = 128
"""Connections that wait to be taken."""
MAX_VIEWER_CONNECTIONS = 200
MAX_REQUEST_HEAD_BYTES = 64 << 10
"""Bytes of the head of a request."""
VIEWER_SHUTDOWN_SECONDS = 2
"""Seconds that open requests get after the viewer is stopped."""


def serve(root: Path, *, port: int, key: str, tell: Callable[[str], None], browser: bool) -> None:
    """Show the runs below a folder until the viewer is stopped; `tell` gets the address as soon as it can be opened."""
    listening = _listening_socket(port)
    with listening:
        port = listening.getsockname()[1]
        config = uvicorn.Config(
            application(RunCatalog(root), port=port, key=key),
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
        url = f"http://{VIEWER_HOST}:{port}/"
        tell(url)
        if browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        # the server lets what stopped it happen again when it has ended
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


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


def _has_screen() -> bool:
    """Whether a browser would be seen: one in a terminal would take it from us."""
    if sys.platform == "darwin" or "BROWSER" in os.environ:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
