"""Where a Ray cluster is, and how a run uses it."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from steelyard.engine.ray.wire import LOCAL_CLUSTER, short_line
from steelyard.errors import InputError
from steelyard.sandbox.processors import processor_count
from steelyard.text import printable

CONNECT_SECONDS = 10
"""The time in which something must answer at an address."""
OBJECT_STORE_BYTES = 256 << 20
"""The object store of a cluster of our own."""
TASKS_PER_CPU = 2
"""Tasks that Ray is given for each processor: one that runs, and one that waits."""
AUTH_HINT = "it requires a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as they are on its nodes"


def address(given: str, environment: Mapping[str, str]) -> str:
    """Where the cluster is: as the user says, or the one that `ray start` started here, or one of our own."""
    named = str(given or environment.get("RAY_ADDRESS", ""))
    if named in ("", "auto"):
        running = _running(environment)
        return running if running and _answers(running) else LOCAL_CLUSTER
    if named == LOCAL_CLUSTER:
        return LOCAL_CLUSTER
    option = "--ray-address" if given else "RAY_ADDRESS"
    if "://" in named:
        raise InputError(
            f"{option} {printable(named)}: Ray Client is not supported; run this on a machine of the cluster, or join it "
            "with: ray start --address HOST:PORT, and name HOST:PORT"
        )
    host, colon, port = named.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{option} {printable(named)}: not HOST:PORT, such as 10.0.0.5:6379")
    if not _answers(named):
        raise InputError(
            f"{option} {printable(named)}: no Ray cluster answers there; start one with: ray start --head, or leave the option out"
        )
    return named


def _running(environment: Mapping[str, str]) -> str:
    """The address that the last `ray start` on this machine left behind."""
    note = Path(environment.get("RAY_TMPDIR") or "/tmp", "ray", "ray_current_cluster")  # noqa: S108  it is Ray's
    try:
        # a stranger could leave one as well, to be sent what we verify
        if note.stat().st_uid not in (0, os.geteuid()):
            return ""
        return note.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _answers(place: str) -> bool:
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


class RayTasks:
    """What we use of Ray: objects in its store, and tasks on its nodes."""

    def __init__(self, place: str, store_bytes: int = OBJECT_STORE_BYTES) -> None:
        """Join the cluster at an address, or start one of our own; raises InputError when that fails."""
        if importlib.util.find_spec("ray") is None:
            raise InputError("--backend ray needs the package ray; get it with: pip install 'steelyard[ray]'")
        # the names of its sockets must be short
        self._folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp") if place == LOCAL_CLUSTER else ""
        # also when nobody waits for us any more
        atexit.register(self.close)
        with tempfile.TemporaryFile() as printed:
            try:
                with _printing_to(printed), contextlib.chdir("/"):
                    _join(place, self._folder, store_bytes)
            except Exception as error:  # noqa: BLE001  Ray raises what it likes
                self.close()
                raise InputError(f"Ray at {place}: {_why(error, printed)}") from None
        import ray

        def steelyard_task(function: str, *arguments: Any) -> Any:
            """Run a function of this room on a node."""
            if importlib.util.find_spec("steelyard") is None:
                return None
            module, _, name = function.partition(":")
            return getattr(importlib.import_module(f"steelyard.engine.ray.{module}"), name)(*arguments)

        # Ray sends a function along as it is where no module has it, and shows its name among the processes
        steelyard_task.__qualname__ = steelyard_task.__name__
        found = ray.exceptions
        self.RayError = found.RayError
        self.LOST_NODE_ERRORS = (found.TaskUnschedulableError, found.NodeDiedError, found.LocalRayletDiedError)
        self.own_node = str(ray.get_runtime_context().get_node_id())
        self.put = ray.put
        self.nodes: Any = ray.nodes
        self._task: Any = ray.remote(steelyard_task)

    @property
    def cpus(self) -> int:
        """The processors of all nodes."""
        return max(1, int(sum(node["Resources"].get("CPU", 0) for node in self.nodes() if node["Alive"])))

    def submit(self, node: str, cpus: int, retries: int, function: str, *arguments: Any) -> Awaitable[Any]:
        """Call a function on a node, given by its id; it fails when the node is gone."""
        import ray.util.scheduling_strategies

        affinity: Any = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        options = {"num_cpus": cpus, "max_retries": retries, "scheduling_strategy": affinity(node, soft=False)}
        result: Awaitable[Any] = self._task.options(**options).remote(function, *arguments)
        return result

    def each(self, function: str, arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """The results of a function on any nodes, as they come; a few times as many wait as there are processors."""
        import ray

        left = deque(arguments)
        running: list[Any] = []
        while left or running:
            while left and len(running) < TASKS_PER_CPU * self.cpus:
                running.append(self._task.remote(function, *left.popleft()))
            (ready, *_), running = ray.wait(running)
            yield ray.get(ready)

    def close(self) -> None:
        """Leave the cluster: its workers end, and so does a cluster of our own."""
        import ray

        leave: Any = ray.shutdown
        atexit.unregister(self.close)
        with contextlib.suppress(Exception):
            leave()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _join(place: str, folder: str, store_bytes: int) -> None:
    """Ray lets its workers import from the folder that this is called in first, so no stranger may put a file there."""
    # a run gives up by itself; Ray would end this process
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "1000000")
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if not folder:
        ray.init(address=place, **quiet)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own: dict[str, Any] = {"num_cpus": processor_count(), "include_dashboard": False, "_temp_dir": folder}
    ray.init(address=LOCAL_CLUSTER, object_store_memory=store_bytes, **own, **quiet)


@contextmanager
def _printing_to(file: IO[bytes]) -> Iterator[None]:
    """Keep what is printed as an error from the terminal: Ray prints a line each second while it cannot join."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _why(error: Exception, printed: IO[bytes]) -> str:
    """Why Ray did not let us in; it says to the terminal that it is for want of a token."""
    size = os.fstat(printed.fileno()).st_size
    if b"InvalidAuthToken" in os.pread(printed.fileno(), 4000, max(0, size - 4000)):
        return AUTH_HINT
    return short_line(exception_line(error))


def exception_line(error: Exception) -> str:
    """What went wrong in one line: Ray says it at the end of a traceback, in colours."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[\d;]*m", "", str(error)).splitlines() if line.strip()]
    if any(line.startswith("File ") for line in lines):
        return lines[-1]
    return " ".join([f"{type(error).__name__}:", *lines])
