"""Replies turned into verdicts by the nodes of a Ray cluster, each in batches of about a second that it can verify."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from steelyard.engine.ray import counting
from steelyard.engine.ray.bundles import Bundles
from steelyard.engine.ray.cluster import TASKS_PER_CPU, RayTasks, address, exception_line
from steelyard.engine.ray.wire import Capability, Needs, Terms, WorkItem, WorkResult, code_version, needs, short_line
from steelyard.engine.steps import failure
from steelyard.errors import InputError, SteelyardError, VerifierError, problems_by_reason
from steelyard.records import Case, Failure, Reply, Verdict, WitnessResult

if TYPE_CHECKING:
    from steelyard.engine.options import RunOptions
    from steelyard.engine.verifiers import VerifierSet
    from steelyard.outcomes.parquet_counts import AttemptColumns, ModelCaseCounts, ParquetSource
    from steelyard.protocols import VerdictCallback

Result = TypeVar("Result")

MAX_WAITING_REPLIES = 256
"""Replies that may wait, in addition to those that Ray is running, before asking waits as well."""
MAX_WAITING_BYTES = 64 << 20
MAX_PROBED_GROUPS = 1000
"""Groups of cases about which nodes are asked before a model is."""
PROBE_SECONDS = 240
"""The time in which a node must have answered what it can do, even on a busy machine."""
MAX_PROBE_PAUSE_SECONDS = 30
"""The longest wait before a node that could not be asked is asked again."""
FIRST_NODE_SECONDS = 30
"""How long a run waits for a first node."""
NODE_REFRESH_SECONDS = 2.0
LISTING_SECONDS = 10
"""The time in which the cluster must have said which nodes it has."""
DISPATCH_SECONDS = 0.05
"""The time between rounds of handing out work, so that replies that come one by one make a batch."""
BATCH_SECONDS = 1.0
"""The work that one task aims at."""
MAX_BATCH_ITEMS = 2000
MAX_BATCH_BYTES = 4 << 20
MAX_WORKER_CRASHES = 5
"""Workers that may die with the same reply before it is left for another day."""
MAX_LONE_FAILURES = 3
"""Consecutive replies of a kind that a node failed to verify and another verified, after which the node gets no more of that kind."""
NEWEST_WEIGHT = 0.2
"""The weight of the latest batch in the moving average of verification times."""
CLEAN_UP_SECONDS, EXIT_SECONDS = 5, 15
"""The time in which the nodes must have removed our files, and Ray have let us go."""


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
    tasks: int = 0
    """What Ray has for it."""

    @property
    def is_ready(self) -> bool:
        return self.capability is not None and not self.capability.refused

    def is_able(self, key: Key) -> bool:
        group, _, failed_on, _ = key
        return self.is_ready and group not in self.unable and self.id not in failed_on


Key = tuple[int, str, tuple[str, ...], int]
"""Group, kind, nodes that failed, and a number where a reply gets a task of its own: equal keys may share a task."""


@dataclass(eq=False, slots=True)
class QueuedReply:
    """A reply on its way through the cluster."""

    reply: Reply
    case: Case
    group: int
    failures: dict[str, WorkResult] = field(default_factory=dict)
    """The failures that it became, by the ids of their nodes."""
    crashed: bool = False
    """Its task died too often, so it gets its own task."""

    @property
    def size(self) -> int:
        answer = self.reply.answer
        return 1000 + len(answer.text) + len(answer.transcript) + len(answer.reasoning)

    @property
    def key(self) -> Key:
        return self.group, self.case.kind, tuple(self.failures), id(self) if self.crashed else 0


class Backlog:
    """Replies that wait, in their order, but those to one case together: a worker then need not learn its tests again."""

    def __init__(self) -> None:
        self._queues: dict[Key, dict[str, deque[QueuedReply]]] = {}
        self._counts: Counter[Key] = Counter()

    def add(self, queued: QueuedReply) -> None:
        self._queues.setdefault(queued.key, {}).setdefault(queued.case.id, deque()).append(queued)
        self._counts[queued.key] += 1

    def waiting(self) -> list[Key]:
        """What waits, the key that was served longest ago first."""
        return list(self._queues)

    def count(self, key: Key) -> int:
        return self._counts[key]

    def take(self, key: Key, most: int, most_bytes: int = MAX_BATCH_BYTES) -> list[QueuedReply]:
        """Take out the next replies of a key."""
        cases = self._queues.pop(key)
        taken: list[QueuedReply] = []
        size = 0
        while cases and len(taken) < most and size < most_bytes:
            case, queue = next(iter(cases.items()))
            taken.append(queue.popleft())
            size += taken[-1].size
            if not queue:
                del cases[case]
        self._counts[key] -= len(taken)
        if cases:
            self._queues[key] = cases
        return taken


class RayPoolFactory:
    """The entry point of the pool: makes pools whose nodes were asked whether they can do what is needed."""

    verifies_here = False

    async def __call__(self, cases: Sequence[Case], verifying: VerifierSet, means: RunOptions) -> RayPool:
        """A pool that is open; raises InputError where no node can do what is needed."""
        place = address(means.ray_address, means.variables)
        pool = RayPool(cases, verifying, means, await asyncio.to_thread(RayTasks, place))
        try:
            await pool.open(place)
        except BaseException:
            await pool.close()
            raise
        return pool

    def count_attempts(
        self, sources: Sequence[ParquetSource], columns: AttemptColumns, address: str
    ) -> ModelCaseCounts:
        """The attempts in Parquet files that all nodes can read, counted by case."""
        return counting.counts(sources, columns, address=address)


class RayPool:
    """Ray chooses the processor, retries after a crash, and bounds what runs at the same time.

    We choose the node, since Ray learns nothing about toolchains, sandboxes and versions. A reply stays here until its fact has come back.
    """

    def __init__(self, cases: Sequence[Case], verifying: VerifierSet, means: RunOptions, ray: RayTasks) -> None:
        self._options = means
        self._limits = verifying.limits
        self._bundles = Bundles(cases, verifying)
        verified = [case for case in cases if case.has_verifier]
        kinds: dict[str, Case] = {}
        for case in verified:
            kinds.setdefault(case.kind, case)
        first: dict[Needs, Case] = {}
        for case in [*kinds.values(), *verified]:
            first.setdefault(needs(case), case)
        self._groups = {need: group for group, need in enumerate(first)}
        """The number of each group of cases that need the same of a machine."""
        self._probed = list(first.values())[:MAX_PROBED_GROUPS]
        """A case of each group about which nodes are asked, in the order of their numbers."""
        self._kinds = {kind: verifying.of(case).version for kind, case in kinds.items()}
        self._ray = ray
        self._run = secrets.token_hex(16)
        """A random name, the same on all nodes."""
        self._nodes: dict[str, ClusterNode] = {}
        self._stored_bundles: dict[int, Any] = {}
        self._backlog = Backlog()
        self._batches: set[asyncio.Task[None]] = set()
        self._pending = self._pending_bytes = self._in_hand = 0
        """Replies that are no facts yet, their bytes, and how many of them Ray has."""
        self._seconds: dict[str, float] = {}
        """How long an answer of each kind takes, about."""
        self._unserved: dict[Key, float] = {}
        """Since when no node is able."""
        self._notes: dict[str, None] = {}
        self._witness_results: list[WitnessResult] = []
        self._changed = asyncio.Event()
        """Set when something became a fact, or the cluster changed."""
        self._alone = False
        self.given_up = ""

    @property
    def nodes(self) -> int:
        return len(self._ready())

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        return self._witness_results

    async def open(self, place: str) -> None:
        """Find out what the nodes of a cluster can do."""
        options = self._options
        terms = Terms(
            run=self._run,
            kinds=self._kinds,
            groups=await asyncio.to_thread(self._bundles.bundle, self._probed),
            require_isolation=options.require_isolation,
            allow_weak_sandbox=options.allow_weak_sandbox,
            recheck=options.recheck,
            controls=options.controls,
            control_key=options.control_key,
        )
        self._terms = self._ray.put(msgspec.json.encode(terms))
        deadline = time.monotonic() + FIRST_NODE_SECONDS
        while True:
            await self._refresh_nodes()
            await asyncio.gather(*(node.probe for node in self._nodes.values() if node.probe))
            all_asked = self._nodes and all(node.capability for node in self._nodes.values())
            if self._ready() or all_asked or time.monotonic() > deadline:
                break
            await asyncio.sleep(1)
        ready = self._ready()
        if not ready:
            raise InputError(f"Ray at {place}: {_why_no_node([*self._nodes.values()])}")
        problems = {}
        for group, case in enumerate(self._probed):
            if all(group in node.unable for node in ready):
                each = (f"{node.name}: {node.unable[group]}" for node in ready)
                problems[case.id] = VerifierError(f"no node of the cluster can verify it: {'; '.join(each)}")
        if problems:
            raise InputError(problems_by_reason(problems))

    @asynccontextmanager
    async def at_work(self, report: VerdictCallback, *, alone: bool = False) -> AsyncIterator[None]:
        self._report, self._alone = report, alone
        async with asyncio.TaskGroup() as group:
            rounds = [
                group.create_task(self._dispatch_rounds(group)),
                group.create_task(self._refresh_rounds()),
            ]
            yield
            while self._pending and not self.given_up:
                await self._change()
            for task in (*rounds, *self._batches):
                task.cancel()

    async def put(self, reply: Reply, case: Case) -> None:
        while self._is_full() and not self.given_up:
            await self._change()
        if not self.given_up:
            queued = QueuedReply(reply, case, self._groups[needs(case)])
            self._pending += 1
            self._pending_bytes += queued.size
            self._backlog.add(queued)

    async def close(self) -> None:
        for node in self._nodes.values():
            if node.probe is not None:
                node.probe.cancel()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLEAN_UP_SECONDS):
                removals = [self._ray.submit(node.id, 0, 0, "node:remove_files", self._run) for node in self._ready()]
                await asyncio.gather(*removals)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(EXIT_SECONDS):
                await _in_a_thread(self._ray.close)

    def _is_full(self) -> bool:
        most = MAX_WAITING_REPLIES + 2 * self._in_hand
        return self._pending >= most or self._pending_bytes >= MAX_WAITING_BYTES

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    # ---- the nodes

    def _ready(self) -> list[ClusterNode]:
        return [node for node in self._nodes.values() if node.is_ready]

    async def _refresh_rounds(self) -> None:
        """Look for nodes, and give up if there has been none for too long."""
        last_seen = time.monotonic()
        limit = self._options.settings.ray_wait_secs
        while True:
            await asyncio.sleep(min(NODE_REFRESH_SECONDS, limit))
            await self._refresh_nodes()
            if self._ready():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > limit:
                self._give_up(f"no node of the Ray cluster was available for {limit:g} s")

    def _give_up(self, reason: str) -> None:
        self.given_up = reason
        self._changed.set()

    async def _refresh_nodes(self) -> None:
        """Add new nodes, drop lost ones, and ask those that have not answered yet."""
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                listed = [node for node in await _in_a_thread(self._ray.nodes) if node["Alive"]]
        except Exception:  # noqa: BLE001  Ray raises what it likes, and a cluster that does not answer has no nodes
            listed = []
        if listed and all(node["NodeID"] != self._ray.own_node for node in listed):
            self._give_up("Ray ended on this machine, which must be a node itself")
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

    def _lose(self, node: ClusterNode | None) -> None:
        if node is not None and node.probe is not None:
            node.probe.cancel()
        if node is not None and node.is_ready:
            self._note(f"{node.name} was lost; its work was verified elsewhere, or by it later")

    async def _probe(self, node: ClusterNode) -> None:
        """Ask a node what it can do; the longer it fails, the longer this takes."""
        await asyncio.sleep(min(node.probes, MAX_PROBE_PAUSE_SECONDS))
        node.probes += 1
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                version = msgspec.msgpack.encode(code_version())
                content = await self._ray.submit(node.id, 0, 0, "node:probe_node", version, [self._terms])
        except Exception as error:  # noqa: BLE001  Ray raises what it likes
            node.problem = short_line(exception_line(error))
            return
        missing = f"steelyard is not installed there; install {code_version().steelyard}, as here"
        node.capability = msgspec.msgpack.decode(content, type=Capability) if content else Capability(refused=missing)
        node.unable = dict(node.capability.unable)
        if node.capability.refused:
            self._note(f"{node.name} takes no work: {node.capability.refused}")
        for group, reason in node.unable.items():
            self._note(f"{node.name} takes no {self._probed[group].kind} work: {reason}")

    def _note(self, text: str) -> None:
        self._notes[text] = None

    # ---- the work

    async def _dispatch_rounds(self, group: asyncio.TaskGroup) -> None:
        while not self.given_up:
            for key in self._backlog.waiting():
                able = [node for node in self._ready() if node.is_able(key)]
                if able:
                    self._unserved.pop(key, None)
                    await self._dispatch(group, key, able)
                else:
                    self._wait_for_a_node(key)
            await asyncio.sleep(DISPATCH_SECONDS)

    async def _dispatch(self, group: asyncio.TaskGroup, key: Key, able: Sequence[ClusterNode]) -> None:
        """Hand Ray the next replies of a key, as many as the nodes can make use of."""
        cpus = sum(node.cpus for node in able)
        while count := self._backlog.count(key):
            node = min(able, key=lambda node: node.tasks / node.cpus)
            if node.tasks >= (1 if self._alone else TASKS_PER_CPU * node.cpus):
                return
            size = 1
            if not self._alone and node.capability:
                at_once = node.capability.at_once.get(key[1], 1)
                size = max(at_once, int(BATCH_SECONDS * at_once / self._seconds.get(key[1], BATCH_SECONDS)))
                # no processor should wait for another's share
                size = min(size, -(-count // cpus), MAX_BATCH_ITEMS)
            if items := await self._with_bundles(self._backlog.take(key, size)):
                node.tasks += 1
                self._in_hand += len(items)
                task = group.create_task(self._verified_by(node, items))
                self._batches.add(task)
                task.add_done_callback(self._batches.discard)

    async def _with_bundles(self, taken: Sequence[QueuedReply]) -> list[QueuedReply]:
        """Those of some replies whose tests the nodes can fetch."""
        able = []
        for queued in taken:
            bundle = self._bundles.place(queued.case).bundle
            try:
                if bundle not in self._stored_bundles:
                    content = await asyncio.to_thread(self._bundles.packed, bundle)
                    self._stored_bundles[bundle] = self._ray.put(content)
                able.append(queued)
            except (SteelyardError, OSError) as error:
                self._settle(queued, failure(queued.reply, VerifierError(str(error))))
            except Exception as error:  # noqa: BLE001  Ray raises what it likes
                problem = f"the object store of the cluster does not accept the tests: {exception_line(error)}"
                self._settle(queued, failure(queued.reply, VerifierError(problem)))
        return able

    async def _verified_by(self, node: ClusterNode, items: Sequence[QueuedReply]) -> None:
        """Let a node verify some replies; those that it cannot verify wait for another."""
        work = [
            WorkItem(
                bundle=at.bundle,
                place=at.place,
                reply=msgspec.json.encode(queued.reply),
                limit=self._limits.known(queued.case),
                alone=self._alone,
            )
            for queued in items
            for at in (self._bundles.place(queued.case),)
        ]
        bundles = {item.bundle: self._stored_bundles[item.bundle] for item in work}
        cpus = node.cpus if self._alone else 1
        content = msgspec.msgpack.encode(work)
        try:
            answer = await self._ray.submit(
                node.id, cpus, MAX_WORKER_CRASHES - 1, "node:verify_items", [self._terms], content, bundles
            )
        except Exception as error:  # noqa: BLE001  Ray raises what it likes
            if isinstance(error, self._ray.LOST_NODE_ERRORS):
                # it is asked again if it is there after all
                self._lose(self._nodes.pop(node.id, None))
            await self._refresh_nodes()
            self._crashed(items, short_line(exception_line(error)), is_lost=self._nodes.get(node.id) is not node)
            return
        finally:
            node.tasks -= 1
            self._in_hand -= len(items)
        results = msgspec.msgpack.decode(answer, type=list[WorkResult])
        for queued, result in zip(items, results, strict=True):
            self._take_in(queued, result, node)
        seconds = [result.seconds for result in results if result.fact and not result.failure]
        if seconds:
            kind, mean = items[0].case.kind, max(1e-6, sum(seconds) / len(seconds))
            weight = 1 - (1 - NEWEST_WEIGHT) ** len(seconds)
            self._seconds[kind] = weight * mean + (1 - weight) * self._seconds.get(kind, mean)

    def _crashed(self, items: Sequence[QueuedReply], reason: str, *, is_lost: bool) -> None:
        for queued in items:
            if is_lost or not queued.crashed:
                queued.crashed = queued.crashed or not is_lost
                self._backlog.add(queued)
            else:
                problem = f"{MAX_WORKER_CRASHES} workers died while they verified it, the last: {reason}"
                self._settle(queued, failure(queued.reply, VerifierError(problem)))

    def _take_in(self, queued: QueuedReply, result: WorkResult, node: ClusterNode) -> None:
        group, kind = queued.group, queued.case.kind
        self._witness_results += (replace(found, node=node.name) for found in result.witnesses)
        for limit in result.limits:
            self._limits.learn(replace(limit, node=node.name), is_new=True)
        if result.unable:
            if group not in node.unable:
                node.unable[group] = result.unable
                self._note(f"{node.name} takes no {kind} work: {result.unable}")
            self._backlog.add(queued)
            return
        if result.failure:
            queued.failures[node.id] = result
            if any(other.is_able(queued.key) for other in self._ready()):
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
            node.lone_failures.pop(group, None)
        fact = msgspec.json.decode(result.fact, type=Verdict | Failure)
        self._settle(queued, replace(fact, node=node.name) if isinstance(fact, Verdict) else fact)

    def _wait_for_a_node(self, key: Key) -> None:
        """Settle what no node can verify, unless one that can may still come."""
        group, _, failed_on, _ = key
        ready = self._ready()
        now = time.monotonic()
        since = self._unserved.setdefault(key, now)
        if not ready or (not failed_on and now - since <= self._options.settings.ray_wait_secs):
            return
        reasons = "; ".join(f"{node.name}: {node.unable[group]}" for node in ready if group in node.unable)
        for queued in self._backlog.take(key, self._backlog.count(key), sys.maxsize):
            if queued.failures:
                last = list(queued.failures.values())[-1]
                self._settle(queued, msgspec.json.decode(last.fact, type=Failure))
            else:
                problem = f"no node of the cluster can verify it: {reasons}"
                self._settle(queued, failure(queued.reply, VerifierError(problem)))

    def _settle(self, queued: QueuedReply, fact: Verdict | Failure) -> None:
        self._pending -= 1
        self._pending_bytes -= queued.size
        self._report(fact, queued.case)
        self._changed.set()


def _in_a_thread(function: Callable[[], Result]) -> asyncio.Future[Result]:
    """What a function gives, in a thread that this process may leave behind: a cluster that is gone answers never."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Result] = loop.create_future()

    def settle(found: Result | None, error: Exception | None) -> None:
        if not result.done():
            result.set_exception(error) if error else result.set_result(cast("Result", found))

    def work() -> None:
        found, problem = None, None
        try:
            found = function()
        except Exception as error:  # noqa: BLE001  Ray raises what it likes
            problem = error
        with contextlib.suppress(RuntimeError):
            # the run may be over by now
            loop.call_soon_threadsafe(settle, found, problem)

    threading.Thread(target=work, daemon=True).start()
    return result


def _why_no_node(nodes: Sequence[ClusterNode]) -> str:
    if not nodes:
        return "no node has processors to verify with; start one with: ray start --address HOST:PORT"
    each = (f"{node.name}: {node.capability.refused if node.capability else node.problem}" for node in nodes)
    return f"no node can be used: {'; '.join(each)}"


opened = RayPoolFactory()
