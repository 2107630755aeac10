"""The one process of a run that talks to Ray: what Ray prints, and how it ends those who use it, stays in here.

Ray ends the process of a driver whose own raylet dies, without a word and with an exit code that means something else to
us; and it prints what its daemons say. So a run starts this process, and when it dies, nothing but the nodes is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import select
import shutil
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from steelyard.engine.ray.wire import Frame, received, send

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

STORE = 256 << 20
"""Bytes of the object store of a cluster of our own."""
PATIENCE = 120
"""Seconds in which an actor must have started, even on a busy machine."""
GRACE = 20
"""Seconds in which everything must have ended once the run is gone."""
LOCAL = "local"
"""The address of a cluster of our own."""


class Gateway:
    """Answers what a run asks of a Ray cluster, many things at once."""

    def __init__(self) -> None:
        self._actors: dict[int, Any] = {}
        self._bundles: dict[str, Any] = {}
        self._unstored: dict[str, str] = {}
        """Why the object store did not take a bundle."""
        self._folder = ""
        """Of a cluster of our own."""

    async def serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        answering: set[asyncio.Task[None]] = set()
        while (frame := await received(reader)) is not None:
            task = asyncio.create_task(self._answer(frame, writer))
            answering.add(task)
            task.add_done_callback(answering.discard)
        self._end()

    async def _answer(self, frame: Frame, writer: asyncio.StreamWriter) -> None:
        asked = frame.header
        requests: dict[str, Callable[[dict[str, Any], bytes], Awaitable[Any]]] = {
            "connect": self._connect,
            "nodes": self._nodes,
            "start": self._start,
            "call": self._call,
            "put": self._put,
            "drop": self._drop,
            "stop": self._stop,
        }
        try:
            found = await requests[asked["do"]](asked, frame.payload)
        except Exception as error:  # noqa: BLE001  whatever Ray raises is told to the run
            send(writer, {"number": asked["number"], "error": reason(error)})
        else:
            said, payload = (None, found) if isinstance(found, bytes) else (found, b"")
            send(writer, {"number": asked["number"], "said": said}, payload)
        with contextlib.suppress(ConnectionError):
            await writer.drain()

    async def _connect(self, asked: dict[str, Any], payload: bytes) -> str:  # noqa: ARG002  all requests look alike
        """Join the cluster at an address, or start one of our own."""
        self._folder = asked["folder"]
        join(asked["address"], self._folder, STORE)
        return str(asked["address"])

    async def _nodes(self, asked: dict[str, Any], payload: bytes) -> list[dict[str, Any]]:  # noqa: ARG002
        import ray

        return [
            {"id": node["NodeID"], "name": node["NodeName"], "cpus": node["Resources"].get("CPU", 0.0)}
            for node in await asyncio.to_thread(ray.nodes)
            if node["Alive"]
        ]

    async def _start(self, asked: dict[str, Any], payload: bytes) -> bytes:  # noqa: ARG002
        """Start the one actor of a node; what it says of its versions."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from steelyard.engine.ray.node import Node

        there = NodeAffinitySchedulingStrategy(node_id=asked["node"], soft=False)
        actors: Any = ray.remote(Node)
        made = actors.options(num_cpus=0, scheduling_strategy=there, max_restarts=0, max_task_retries=0)
        self._actors[asked["actor"]] = actor = made.remote()
        async with asyncio.timeout(PATIENCE):
            said: bytes = await actor.same.remote()
        return said

    async def _call(self, asked: dict[str, Any], payload: bytes) -> bytes:
        actor, arguments = self._actors[asked["actor"]], list(asked["arguments"])
        if payload:
            arguments.append(payload)
        if "bundles" in asked:
            for name in asked["bundles"]:
                if name in self._unstored:
                    raise RuntimeError(f"the object store of the cluster takes no tests: {self._unstored[name]}")
            arguments.append({name: self._bundles[name] for name in asked["bundles"]})
        said: bytes | None = await getattr(actor, asked["method"]).remote(*arguments)
        return said or b""

    async def _put(self, asked: dict[str, Any], payload: bytes) -> None:
        import ray

        self._unstored.pop(asked["bundle"], None)
        try:
            self._bundles[asked["bundle"]] = ray.put(payload)
        except Exception as error:  # noqa: BLE001  whoever needs it is told
            self._unstored[asked["bundle"]] = reason(error)

    async def _drop(self, asked: dict[str, Any], payload: bytes) -> None:  # noqa: ARG002
        self._bundles.pop(asked["bundle"], None)
        self._unstored.pop(asked["bundle"], None)

    async def _stop(self, asked: dict[str, Any], payload: bytes) -> None:  # noqa: ARG002
        import ray

        actor = self._actors.pop(asked["actor"], None)
        if actor is not None:
            await asyncio.to_thread(ray.kill, actor, no_restart=True)

    def _end(self) -> None:
        """Leave the cluster; its actors end with us, and one of our own ends altogether."""
        import ray

        with contextlib.suppress(Exception):
            ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def join(address: str, folder: str, store: int) -> None:
    """Join the cluster at an address, or start one of our own in a folder, with so many bytes of object store."""
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address != LOCAL:
        ray.init(address=address, **quiet)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address=LOCAL,
        num_cpus=os.cpu_count() or 1,
        include_dashboard=False,
        object_store_memory=store,
        _temp_dir=folder,
        **quiet,
    )


def leave_the_folder() -> None:
    """Stand where nobody else can put a file: Ray lets its workers import from where we stand, before anything else."""
    if "PYTHONPATH" in os.environ:
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, os.environ["PYTHONPATH"].split(os.pathsep)))
    os.chdir("/")


def reason(error: Exception) -> str:
    """What went wrong in one line: Ray tells it at the end of a traceback, in colours."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[\d;]*m", "", str(error)).splitlines() if line.strip()]
    if any(line.startswith("File ") for line in lines):
        return lines[-1]
    return " ".join([f"{type(error).__name__}:", *lines])


def _watch(connection: socket.socket) -> None:
    """End ourselves when the run is gone and Ray keeps us from noticing."""
    watched = select.poll()
    watched.register(connection, getattr(select, "POLLRDHUP", select.POLLHUP))
    watched.poll()
    time.sleep(GRACE)
    os._exit(1)


def main() -> None:
    """Serve the run that started us, over the socket whose number it gives."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    leave_the_folder()
    threading.Thread(target=_watch, args=[connection], daemon=True).start()
    asyncio.run(Gateway().serve(connection))


if __name__ == "__main__":
    main()
