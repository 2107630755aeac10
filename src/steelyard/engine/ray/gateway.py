"""The one process of a run that talks to Ray: it hands Ray batches of replies as tasks, and sends back what they become.

Ray ends the process of a driver whose own raylet dies, without a message and with an exit code that has another
meaning for us; and it prints what its daemons say. So a run starts this process. When it dies, the run starts another one and sends
again what had not become a fact. Ray chooses the node and the processor, retries after a crash, and bounds what runs at
the same time; we choose only which nodes are able, since Ray learns nothing about toolchains, sandboxes and versions.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import os
import re
import select
import shutil
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from steelyard.engine.ray.wire import (
    LOCAL_CLUSTER,
    Capability,
    ItemResult,
    Join,
    JoinResult,
    MessageWriter,
    NodeReport,
    Phase,
    State,
    StoreBundle,
    Terms,
    WitnessReport,
    WorkItem,
    WorkResult,
    code_version,
    receive,
    send,
    short_line,
)
from steelyard.sandbox.processors import processor_count

OBJECT_STORE_BYTES = 256 << 20
"""The object store of a cluster of our own."""
PROBE_SECONDS = 240
"""The time in which a node must have answered what it can do, even on a busy machine."""
FIRST_NODE_SECONDS = 30
"""How long a run waits for a first node."""
NODE_REFRESH_SECONDS = 2.0
MAX_PROBE_PAUSE_SECONDS = 30
"""The longest wait before a node that could not be asked is asked again."""
DISPATCH_SECONDS = 0.05
"""The time between rounds of handing out work, so that replies that come one by one make a batch."""
BATCH_SECONDS = 1.0
"""The work that one task aims at."""
MAX_BATCH_ITEMS = 2000
MAX_BATCH_BYTES = 4 << 20
TASKS_PER_CPU = 2
"""Tasks that Ray is given for each processor: one that runs, and one that waits."""
MAX_WORKER_CRASHES = 5
"""Workers that may die with the same reply before it is left for another day."""
MAX_LONE_FAILURES = 3
"""Consecutive replies of a kind that a node failed to verify and another verified, after which the node gets no more of that kind."""
NEWEST_WEIGHT = 0.2
"""The weight of the latest batch in the moving average of verification times."""
EXIT_SECONDS = 20
"""The time in which everything must have ended once the run is gone."""
CLEAN_UP_SECONDS = 5


@dataclass(eq=False, slots=True)
class ClusterNode:
    """A node that Ray lists."""

    id: str
    name: str
    cpus: int
    capability: Capability | None = None
    """None until it was asked."""
    unable: dict[int, str] = field(default_factory=dict)
    """Why it takes no work of a group."""
    lone_failures: Counter[int] = field(default_factory=Counter)
    problem: str = ""
    """Why it could not be asked."""
    probe: asyncio.Task[None] | None = None
    probes: int = 0

    @property
    def is_ready(self) -> bool:
        return self.capability is not None and not self.capability.refused


Key = tuple[int, str, tuple[str, ...], int]
"""Group, kind, nodes that failed, and a number where a reply gets a task of its own: equal keys may share a task."""


@dataclass(eq=False, slots=True)
class QueuedItem:
    """A reply on its way through the cluster."""

    item: WorkItem
    failures: dict[str, WorkResult] = field(default_factory=dict)
    """The failures that it became, by the ids of their nodes."""
    crashed: bool = False
    """Its task died too often, so it gets its own task."""

    @property
    def key(self) -> Key:
        return self.item.group, self.item.kind, tuple(self.failures), self.item.number if self.crashed else 0


@dataclass(eq=False, slots=True)
class Batch:
    """A task of Ray's."""

    key: Key
    nodes: tuple[str, ...]
    """The ids of the nodes that it may run on."""
    items: list[QueuedItem]
    reference: Any
    is_lost: bool = False
    """All of its nodes are gone."""


class Backlog:
    """Replies that wait, in their order, but those to one case together: a worker then need not learn its tests again."""

    def __init__(self) -> None:
        self._queues: dict[Key, dict[str, deque[QueuedItem]]] = {}
        self._counts: Counter[Key] = Counter()

    def add(self, queued: QueuedItem) -> None:
        self._queues.setdefault(queued.key, {}).setdefault(queued.item.case, deque()).append(queued)
        self._counts[queued.key] += 1

    def waiting(self) -> list[Key]:
        """What waits, the key that was served longest ago first."""
        return list(self._queues)

    def count(self, key: Key) -> int:
        return self._counts[key]

    def take(self, key: Key, most: int, most_bytes: int = MAX_BATCH_BYTES) -> list[QueuedItem]:
        """Take out the next items of a key."""
        cases = self._queues.pop(key)
        taken: list[QueuedItem] = []
        size = 0
        while cases and len(taken) < most and size < most_bytes:
            case, queue = next(iter(cases.items()))
            taken.append(queue.popleft())
            size += len(taken[-1].item.reply)
            if not queue:
                del cases[case]
        self._counts[key] -= len(taken)
        if cases:
            self._queues[key] = cases
        return taken


class RayTasks:
    """What we use of Ray: objects in its store, tasks on its nodes."""

    def __init__(self, address: str, folder: str) -> None:
        import ray

        connect_to_ray(address, folder, OBJECT_STORE_BYTES)
        self.put, self.cancel, self.nodes = ray.put, ray.cancel, ray.nodes
        self.NoNodeError = ray.exceptions.TaskUnschedulableError
        self._task: Any = ray.remote(steelyard_task)

    def submit(self, nodes: Sequence[str], cpus: int, retries: int, function: str, *arguments: Any) -> Awaitable[Any]:
        """Call a function of `node.py` on one of these nodes, given by their ids."""
        there = {"ray.io/node-id": f"in({','.join(nodes)})"}
        task = self._task.options(num_cpus=cpus, max_retries=retries, label_selector=there)
        result: Awaitable[Any] = task.remote(function, *arguments)
        return result


class Gateway:
    """The nodes of a cluster, what waits for them, and the tasks that Ray is running."""

    def __init__(self, ray: RayTasks, terms: Terms, writer: asyncio.StreamWriter) -> None:
        self._ray = ray
        self._terms = terms
        self._terms_reference = ray.put(msgspec.json.encode(terms))
        self._writer = MessageWriter(writer)
        self._nodes: dict[str, ClusterNode] = {}
        self._backlog = Backlog()
        self._bundles: dict[int, Any] = {}
        """The references of stored bundles; for one that could not be stored, the reason."""
        self._batches: dict[Batch, asyncio.Task[None]] = {}
        self._seconds: dict[str, float] = {}
        """How long an answer of each kind takes, about."""
        self._unserved: dict[Key, float] = {}
        """Since when no node is able."""
        self._alone = False
        self._state = State(nodes=-1, in_hand=0)
        self._notes: list[str] = []

    async def connect(self) -> JoinResult:
        """Ask the nodes what they can do."""
        deadline = time.monotonic() + FIRST_NODE_SECONDS
        while True:
            await self._refresh_nodes()
            await asyncio.gather(*(node.probe for node in self._nodes.values() if node.probe))
            all_asked = self._nodes and all(node.capability for node in self._nodes.values())
            if self._ready() or all_asked or time.monotonic() > deadline:
                break
            await asyncio.sleep(1)
        found = [(node.name, node.capability or Capability(refused=node.problem)) for node in self._nodes.values()]
        return JoinResult(nodes=tuple(NodeReport(name=name, capability=capability) for name, capability in found))

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Take work until the run hangs up."""
        tasks = [
            asyncio.create_task(work) for work in (self._read(reader), self._dispatch_rounds(), self._refresh_rounds())
        ]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in (*tasks, *self._batches.values()):
            task.cancel()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLEAN_UP_SECONDS):
                removals = [
                    self._ray.submit([node.id], 0, 0, "remove_files", self._terms.run) for node in self._ready()
                ]
                await asyncio.gather(*removals)
        for task in done:
            task.result()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while (message := await receive(reader)) is not None:
            if isinstance(message, WorkItem):
                self._backlog.add(QueuedItem(message))
            elif isinstance(message, StoreBundle):
                try:
                    self._bundles[message.bundle] = self._ray.put(message.content)
                except Exception as error:  # noqa: BLE001  its replies become failures that say so
                    self._bundles[message.bundle] = exception_line(error)
            elif isinstance(message, Phase):
                self._alone = message.alone

    # ---- the nodes

    def _ready(self) -> list[ClusterNode]:
        return [node for node in self._nodes.values() if node.is_ready]

    def _able(self, key: Key) -> list[ClusterNode]:
        group, _, failed_on, _ = key
        return [node for node in self._ready() if group not in node.unable and node.id not in failed_on]

    async def _refresh_rounds(self) -> None:
        while True:
            await asyncio.sleep(NODE_REFRESH_SECONDS)
            await self._refresh_nodes()

    async def _refresh_nodes(self) -> None:
        """Add new nodes, drop lost ones, and ask those that have not answered yet."""
        listed = [node for node in await asyncio.to_thread(self._ray.nodes) if node["Alive"]]
        names = Counter(node["NodeName"] for node in listed)
        found = {str(node["NodeID"]): node for node in listed if node["Resources"].get("CPU", 0) >= 1}
        for gone in self._nodes.keys() - found.keys():
            self._lose(self._nodes.pop(gone))
        for node_id in sorted(found.keys() - self._nodes.keys()):
            name = str(found[node_id]["NodeName"])
            # two nodes may run on one machine
            unique = name if names[name] == 1 else f"{name} {node_id[:6]}"
            self._nodes[node_id] = ClusterNode(node_id, unique, int(found[node_id]["Resources"]["CPU"]))
        for node in self._nodes.values():
            if node.capability is None and (node.probe is None or node.probe.done()):
                node.probe = asyncio.create_task(self._probe(node))

    def _lose(self, node: ClusterNode) -> None:
        if node.probe is not None:
            node.probe.cancel()
        if node.is_ready:
            self._note(f"{node.name} was lost; its work was verified elsewhere, or by it later")
        for batch in self._batches:
            # Ray would wait for one of its nodes to come back
            if not any(node_id in self._nodes for node_id in batch.nodes):
                batch.is_lost = True
                self._ray.cancel(batch.reference, force=True)

    async def _probe(self, node: ClusterNode) -> None:
        """Ask a node what it can do; the longer it fails, the longer this takes."""
        await asyncio.sleep(min(node.probes, MAX_PROBE_PAUSE_SECONDS))
        node.probes += 1
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                version = msgspec.msgpack.encode(code_version())
                content = await self._ray.submit([node.id], 0, 0, "probe_node", version, [self._terms_reference])
        except Exception as error:  # noqa: BLE001  Ray raises what it likes
            node.problem = short_line(exception_line(error))
            return
        missing = f"steelyard is not installed there; install {code_version().steelyard}, as here"
        node.capability = msgspec.msgpack.decode(content, type=Capability) if content else Capability(refused=missing)
        node.unable = dict(node.capability.unable)
        if node.capability.refused:
            self._note(f"{node.name} takes no work: {node.capability.refused}")
        for group, reason in node.unable.items():
            self._note(f"{node.name} takes no {self._terms.groups.cases[group].kind} work: {reason}")

    # ---- the work

    async def _dispatch_rounds(self) -> None:
        while True:
            for key in self._backlog.waiting():
                self._dispatch(key)
            in_hand = sum(len(batch.items) for batch in self._batches)
            state = State(nodes=len(self._ready()), in_hand=in_hand, notes=tuple(self._notes))
            if state != self._state:
                self._notes.clear()
                self._state = msgspec.structs.replace(state, notes=())
                self._writer.send(state)
            await self._writer.drain()
            await asyncio.sleep(DISPATCH_SECONDS)

    def _dispatch(self, key: Key) -> None:
        """Hand Ray the next replies of a key, as many as it can make use of."""
        able = self._able(key)
        if not able:
            self._wait_for_a_node(key)
            return
        self._unserved.pop(key, None)
        if self._alone:
            busy = {node_id for batch in self._batches for node_id in batch.nodes}
            for node in able:
                if node.id not in busy and self._backlog.count(key):
                    self._start(key, self._backlog.take(key, 1), [node], cpus=node.cpus)
            return
        cpus = sum(node.cpus for node in able)
        total = sum(node.cpus for node in self._ready())
        while count := self._backlog.count(key):
            running = sum(batch.key == key for batch in self._batches)
            if running >= TASKS_PER_CPU * cpus or len(self._batches) >= TASKS_PER_CPU * total:
                break
            at_once = min(node.capability.at_once.get(key[1], 1) for node in able if node.capability)
            size = max(at_once, int(BATCH_SECONDS * at_once / self._seconds.get(key[1], BATCH_SECONDS)))
            if running < cpus:
                # no processor should wait for another's share
                size = min(size, -(-count // (cpus - running)))
            self._start(key, self._backlog.take(key, min(size, MAX_BATCH_ITEMS)), able, cpus=1)

    def _start(self, key: Key, items: list[QueuedItem], nodes: Sequence[ClusterNode], *, cpus: int) -> None:
        bundles = {queued.item.bundle: self._bundles[queued.item.bundle] for queued in items}
        for reason in bundles.values():
            if isinstance(reason, str):
                for queued in items:
                    self._settle(queued, f"the object store of the cluster does not accept the tests: {reason}")
                return
        ids = tuple(node.id for node in nodes)
        content = msgspec.msgpack.encode([queued.item for queued in items])
        reference = self._ray.submit(
            ids, cpus, MAX_WORKER_CRASHES - 1, "verify_items", [self._terms_reference], content, bundles
        )
        batch = Batch(key, ids, items, reference)
        self._batches[batch] = asyncio.create_task(self._finish(batch))

    async def _finish(self, batch: Batch) -> None:
        try:
            node_id, content = await batch.reference
        except Exception as error:  # noqa: BLE001  Ray raises what it likes
            is_lost = batch.is_lost or isinstance(error, self._ray.NoNodeError)
            if is_lost:
                # before it is handed out again, to other nodes
                await self._refresh_nodes()
            for queued in batch.items:
                if is_lost or not queued.crashed:
                    queued.crashed = queued.crashed or not is_lost
                    self._backlog.add(queued)
                else:
                    reason = short_line(exception_line(error))
                    self._settle(
                        queued, f"{MAX_WORKER_CRASHES} workers died while they verified it, the last: {reason}"
                    )
            return
        finally:
            del self._batches[batch]
        results = {result.number: result for result in msgspec.msgpack.decode(content, type=list[WorkResult])}
        for queued in batch.items:
            self._take_in(queued, results[queued.item.number], node_id)
        seconds = [result.seconds for result in results.values() if result.fact and not result.failure]
        if seconds:
            kind, mean = batch.key[1], max(1e-6, sum(seconds) / len(seconds))
            weight = 1 - (1 - NEWEST_WEIGHT) ** len(seconds)
            self._seconds[kind] = weight * mean + (1 - weight) * self._seconds.get(kind, mean)

    def _take_in(self, queued: QueuedItem, result: WorkResult, node_id: str) -> None:
        group, kind = queued.item.group, queued.item.kind
        node = self._nodes.get(node_id)
        name = node.name if node else node_id[:6]
        if result.witnesses or result.limits:
            self._writer.send(WitnessReport(node=name, results=result.witnesses, limits=result.limits))
        if result.unable:
            if node is not None and group not in node.unable:
                node.unable[group] = result.unable
                self._note(f"{node.name} takes no {kind} work: {result.unable}")
            self._backlog.add(queued)
            return
        if result.failure:
            queued.failures[node_id] = result
            if self._able(queued.key):
                # what one node could not find out, another may
                self._backlog.add(queued)
                return
        else:
            for failed_on, failed in queued.failures.items():
                if (other := self._nodes.get(failed_on)) is not None:
                    other.lone_failures[group] += 1
                    if other.lone_failures[group] >= MAX_LONE_FAILURES:
                        other.unable[group] = failed.failure
                        self._note(f"{other.name} takes no more {kind} work: {failed.failure}")
            if node is not None:
                node.lone_failures.pop(group, None)
        self._writer.send(ItemResult(number=queued.item.number, fact=result.fact, node=name))

    def _wait_for_a_node(self, key: Key) -> None:
        """Settle what no node can verify, unless one that can may still come."""
        group, _, failed_on, _ = key
        ready = self._ready()
        now = time.monotonic()
        since = self._unserved.setdefault(key, now)
        if not ready or (not failed_on and now - since <= self._terms.wait_seconds):
            return
        reasons = "; ".join(f"{node.name}: {node.unable[group]}" for node in ready if group in node.unable)
        for queued in self._backlog.take(key, self._backlog.count(key), sys.maxsize):
            if queued.failures:
                last = list(queued.failures.values())[-1]
                self._writer.send(ItemResult(number=queued.item.number, fact=last.fact))
            else:
                self._settle(queued, f"no node of the cluster can verify it: {reasons}")

    def _settle(self, queued: QueuedItem, problem: str) -> None:
        self._writer.send(ItemResult(number=queued.item.number, problem=problem))

    def _note(self, text: str) -> None:
        self._notes.append(text)


def steelyard_task(function: str, *arguments: Any) -> Any:
    """Run a function of `node.py` on a node; None if steelyard is missing.

    Ray takes this one along as it is, since it is part of the main program.
    """
    if importlib.util.find_spec("steelyard") is None:
        return None
    return getattr(importlib.import_module("steelyard.engine.ray.node"), function)(*arguments)


def connect_to_ray(address: str, folder: str, store_bytes: int) -> None:
    """Join the cluster at an address, or start one of our own in a folder."""
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address != LOCAL_CLUSTER:
        ray.init(address=address, **quiet)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cpus = processor_count()
    own: dict[str, Any] = {"num_cpus": cpus, "include_dashboard": False, "_temp_dir": folder}
    ray.init(address=LOCAL_CLUSTER, object_store_memory=store_bytes, **own, **quiet)


def leave_working_directory() -> None:
    """Change to the root folder, where no stranger can put a file: Ray lets its workers import from our folder first."""
    if "PYTHONPATH" in os.environ:
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, os.environ["PYTHONPATH"].split(os.pathsep)))
    os.chdir("/")


def exception_line(error: Exception) -> str:
    """What went wrong in one line: Ray says it at the end of a traceback, in colours."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[\d;]*m", "", str(error)).splitlines() if line.strip()]
    if any(line.startswith("File ") for line in lines):
        return lines[-1]
    return " ".join([f"{type(error).__name__}:", *lines])


def _exit_after_hang_up(connection: socket.socket) -> None:
    """End this process when the run is gone and Ray keeps us from noticing."""
    watched = select.poll()
    watched.register(connection, getattr(select, "POLLRDHUP", select.POLLHUP))
    watched.poll()
    time.sleep(EXIT_SECONDS)
    os._exit(1)


async def _serve(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    join = await receive(reader)
    if not isinstance(join, Join):
        return
    try:
        try:
            gateway = Gateway(RayTasks(join.address, join.folder), join.terms, writer)
            answer = await gateway.connect()
        except Exception as error:  # noqa: BLE001  the run hears of whatever Ray raises
            answer = JoinResult(problem=exception_line(error))
        send(writer, answer)
        await writer.drain()
        if not answer.problem:
            await gateway.serve(reader)
    finally:
        import ray

        with contextlib.suppress(Exception):
            ray.shutdown()
        if join.folder:
            shutil.rmtree(join.folder, ignore_errors=True)


def main() -> None:
    """Serve the run that started this process, over the socket whose number it gives."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    leave_working_directory()
    threading.Thread(target=_exit_after_hang_up, args=[connection], daemon=True).start()
    asyncio.run(_serve(connection))


if __name__ == "__main__":
    main()
