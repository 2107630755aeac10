"""Replies turned into verdicts by the nodes of a Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from steelyard.engine.ray.backlog import Backlog, Piece
from steelyard.engine.ray.bundles import KEPT, Bundles
from steelyard.engine.ray.cluster import Cluster, Found, Lost, address, short
from steelyard.engine.ray.wire import Done, Introduction, Item, Needs, Same, Terms, needs, same
from steelyard.engine.steps import failure
from steelyard.engine.verifiers import problems_by_reason
from steelyard.errors import InputError, SteelyardError, VerifierError
from steelyard.records import Case, Failure, Reply, Verdict

if TYPE_CHECKING:
    from steelyard.engine.session import RunOptions
    from steelyard.engine.verifiers import VerifierSet
    from steelyard.protocols import VerdictCallback

WAITING = 256
"""Replies that may wait, besides as many as are in hand, before asking waits as well."""
WAITING_BYTES = 64 << 20
"""How long those may be altogether."""
MOST = 2000
"""Replies that travel to a node at a time."""
MOST_BYTES = 4 << 20
"""How long those may be altogether."""
BATCH = 1.0
"""Seconds of a node's work that a batch aims at: it has one in hand, and one that waits."""
LINGER = 0.1
"""Seconds between batches that are smaller than that."""
LEARNING = 0.2
"""How much the latest batch says about how long such answers take."""
LOOK = 2.0
"""Seconds between looks at which nodes there are."""
SILENCE = 120.0
"""Seconds without a sign of life after which a node is taken for lost; it gives one every ten."""
FIRST = 30.0
"""Seconds that are waited for a first node."""
LOSSES = 5
"""Nodes that may be lost with the same reply in hand before it is left for another day."""
DOUBT = 3
"""Replies in a row that another node could verify after one could not, before it gets no more of the kind."""
GROUPS = 1000
"""Groups of cases about which nodes are asked before anything else is."""
AGAIN = 30.0
"""Seconds at the most before a node that was lost, and is there, is tried again."""


@dataclass(eq=False, slots=True)
class Worker:
    """A node as the driver sees it."""

    found: Found
    actor: int = 0
    """The number of its actor; 0 while it has none."""
    level: str = ""
    at_once: dict[str, int] = field(default_factory=dict)
    unable: dict[Needs, str] = field(default_factory=dict)
    """Why it takes no work of a group."""
    doubted: Counter[Needs] = field(default_factory=Counter)
    in_hand: dict[int, Piece] = field(default_factory=dict)
    load: float = 0.0
    """Seconds that all its processors together need for what it has in hand, about."""
    refused: str = ""
    """Why it gets no work at all."""
    reason: str = ""
    """Why it was lost the last time."""
    lost: int = 0
    hungry: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be something for it to do."""
    busy: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while it has something in hand."""

    def can(self, piece: Piece) -> bool:
        return piece.needs not in self.unable and self.found.id not in piece.failed


async def opened(cases: Sequence[Case], verifying: VerifierSet, means: RunOptions) -> RayPool:
    """A pool whose nodes were asked whether they can do what is needed; raises InputError where none can."""
    pool = RayPool(cases, verifying, means)
    try:
        await pool.open()
    except BaseException:
        await pool.close()
        raise
    return pool


class RayPool:
    """One actor per node, each with sandboxes of its own; batches of about a second of its work, and never too many."""

    def __init__(self, cases: Sequence[Case], verifying: VerifierSet, means: RunOptions) -> None:
        self._means = means
        self._verifying = verifying
        self._bundles = Bundles(cases, verifying)
        self._representatives: dict[Needs, Case] = {}
        kinds: dict[str, Case] = {}
        for case in cases:
            if not case.by_judges:
                kinds.setdefault(case.kind, case)
                if len(self._representatives) < GROUPS:
                    self._representatives.setdefault(needs(case), case)
        for case in kinds.values():
            self._representatives.setdefault(needs(case), case)
        self._kinds = {kind: verifying.of(case).version for kind, case in kinds.items()}
        self._patience = means.settings.ray_wait_secs
        self._backlog = Backlog()
        self._workers: dict[str, Worker] = {}
        self._serving: dict[Worker, asyncio.Task[None]] = {}
        self._cluster: Cluster | None = None
        self._seconds: dict[str, float] = {}
        """How long an answer of each kind takes, about."""
        self._actors = 0
        self._numbers = 0
        self._pending = 0
        """Replies that have not become facts yet."""
        self._room = asyncio.Event()
        self._settled = asyncio.Event()
        self._unserved: dict[Needs, float] = {}
        """Since when nobody is there for a group."""
        self._forsaken = 0.0
        """Since when no node is there at all; 0 while there is one."""
        self._told: list[str] = []
        self.given_up = ""

    @property
    def nodes(self) -> int:
        return sum(worker.actor > 0 for worker in self._workers.values())

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._told))

    # ---- before anything is asked

    async def open(self) -> None:
        """Join the cluster, and find out what its nodes can do."""
        self._place = address(self._means.ray_address, self._means.environment)
        packed = await asyncio.to_thread(self._bundles.bundle, self._representatives.values())
        self._terms = Terms(
            kinds=self._kinds,
            representatives=packed,
            cpus=0,
            require_isolation=self._means.require_isolation,
            allow_weak_sandbox=self._means.allow_weak_sandbox,
            recheck=self._means.recheck,
        )
        self._cluster = await Cluster.joined(self._place)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FIRST
        while True:
            await self._look_or_rejoin()
            await asyncio.gather(*(self._try_to_start(worker) for worker in self._workers.values()))
            refused = [worker for worker in self._workers.values() if worker.refused]
            if self.nodes or 0 < len(refused) == len(self._workers) or loop.time() > deadline:
                break
            await asyncio.sleep(1)
        if not self.nodes:
            raise InputError(self._nobody())
        self._check()

    def _nobody(self) -> str:
        where = f"Ray at {self._place}"
        if self._cluster is None:
            return f"{where}: the way to the cluster was lost, and was not found again within {FIRST:g} s"
        told = [f"{worker.found.name}: {worker.refused or worker.reason}" for worker in self._workers.values()]
        if not told:
            return f"{where}: no node has processors to verify with; start one with: ray start --address HOST:PORT"
        return f"{where}: no node can be used: {'; '.join(told)}"

    def _check(self) -> None:
        """Raise InputError when there are cases that no node can verify."""
        ready = self._ready()
        reasons = {}
        for group, case in self._representatives.items():
            if all(group in worker.unable for worker in ready):
                each = (f"{worker.found.name}: {worker.unable[group]}" for worker in ready)
                reasons[case.id] = f"no node of the cluster can verify it: {'; '.join(each)}"
        if reasons:
            raise InputError(problems_by_reason(reasons))

    # ---- the work

    @asynccontextmanager
    async def at_work(self, told: VerdictCallback, *, alone: bool = False) -> AsyncIterator[None]:
        self._tell, self._alone = told, alone
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._serving = {worker: group.create_task(self._serve(worker)) for worker in self._workers.values()}
            watching = [group.create_task(self._watch()), group.create_task(self._tick())]
            yield
            while self._pending and not self.given_up:
                self._settled.clear()
                await self._settled.wait()
            for task in (*watching, *self._serving.values()):
                task.cancel()

    async def put(self, reply: Reply, case: Case) -> None:
        self._numbers += 1
        answer = reply.answer
        size = 1000 + len(answer.text) + len(answer.transcript) + len(answer.reasoning)
        piece = Piece(self._numbers, reply, case, needs(case), size)
        while self._is_full() and not self.given_up:
            self._room.clear()
            await self._room.wait()
        if self.given_up:
            return
        self._pending += 1
        self._backlog.add(piece)
        self._wake(piece)

    async def close(self) -> None:
        if self._cluster is None:
            return
        cluster, self._cluster = self._cluster, None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                leaving = [
                    cluster.ask("call", actor=worker.actor, method="close", arguments=[]) for worker in self._ready()
                ]
                await asyncio.gather(*leaving, return_exceptions=True)
        await cluster.close()

    def _is_full(self) -> bool:
        in_hand = sum(len(worker.in_hand) for worker in self._workers.values())
        return self._backlog.count >= WAITING + in_hand or self._backlog.size >= WAITING_BYTES

    def _ready(self) -> list[Worker]:
        return [worker for worker in self._workers.values() if worker.actor]

    def _wake(self, piece: Piece) -> None:
        """Let the node look for work that could take a piece and has the least to do."""
        able = [worker for worker in self._ready() if worker.can(piece)]
        if able:
            min(able, key=lambda worker: worker.load).hungry.set()

    def _wake_all(self) -> None:
        for worker in self._ready():
            worker.hungry.set()

    # ---- one node

    async def _serve(self, worker: Worker) -> None:
        """Keep a node at work for as long as it is there."""
        pause = 1.0
        while not worker.refused:
            if not worker.actor and not await self._try_to_start(worker):
                await asyncio.sleep(pause)
                pause = min(2 * pause, AGAIN)
                continue
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._give(worker))
                    both.create_task(self._collect(worker))
            except* Lost as lost:
                self._lose(worker, str(lost.exceptions[0]))
            await asyncio.sleep(pause)
            pause = 1.0

    async def _try_to_start(self, worker: Worker) -> bool:
        """Start the actor of a node and let it introduce itself; says whether it can be given work now."""
        cluster = self._cluster
        if cluster is None or worker.actor or worker.refused:
            return bool(worker.actor)
        self._actors += 1
        actor = self._actors
        try:
            async with asyncio.timeout(2 * SILENCE):
                there = msgspec.json.decode((await cluster.ask("start", node=worker.found.id, actor=actor)).payload)
                worker.refused = _difference(there)
                if worker.refused:
                    self._note(f"{worker.found.name} takes no work: {worker.refused}")
                    cluster.told("stop", actor=actor)
                    return False
                terms = msgspec.json.encode(msgspec.structs.replace(self._terms, cpus=worker.found.cpus))
                said = await cluster.ask("call", terms, actor=actor, method="introduce", arguments=[])
        except asyncio.CancelledError:
            cluster.told("stop", actor=actor)
            raise
        except (Lost, TimeoutError) as error:
            worker.reason = short(str(error) or "it did not start")
            if "No module named 'steelyard" in str(error):
                worker.refused = f"steelyard is not installed there; install {same().steelyard}, as here"
                self._note(f"{worker.found.name} takes no work: {worker.refused}")
            cluster.told("stop", actor=actor)
            return False
        introduced = msgspec.json.decode(said.payload, type=Introduction)
        groups = list(self._representatives)
        worker.level, worker.at_once = introduced.level, introduced.at_once
        worker.unable = {groups[place]: reason for place, reason in introduced.unable.items()}
        for group, reason in worker.unable.items():
            self._note(f"{worker.found.name} takes no {group[0]} work: {reason}")
        worker.actor = actor
        self._forsaken = 0.0
        worker.hungry.set()
        return True

    def _lose(self, worker: Worker, reason: str) -> None:
        """Take back what a node had in hand; nothing is blamed for it."""
        if worker.actor and self._cluster is not None:
            self._cluster.told("stop", actor=worker.actor)
        worker.actor, worker.load = 0, 0.0
        worker.lost += 1
        worker.reason = short(reason)
        worker.busy.clear()
        pieces = list(worker.in_hand.values())
        worker.in_hand.clear()
        self._note(f"{worker.found.name} was lost; what it had in hand was verified elsewhere, or by it later")
        for piece in reversed(pieces):
            piece.losses += 1
            if piece.losses < LOSSES:
                self._backlog.give_back(piece)
            else:
                lost = VerifierError(f"{LOSSES} nodes were lost while they verified it, the last: {worker.reason}")
                self._settle(piece, failure(piece.reply, lost))
        self._wake_all()

    async def _give(self, worker: Worker) -> None:
        """Hand over batches for as long as there is something to hand over."""
        loop = asyncio.get_running_loop()
        last = 0.0
        while True:
            await worker.hungry.wait()
            # a few replies make a batch of their own only now and then
            if loop.time() < last + LINGER and self._backlog.count < MOST:
                await asyncio.sleep(last + LINGER - loop.time())
            worker.hungry.clear()
            pieces = self._batch(worker)
            if not pieces:
                continue
            last = loop.time()
            if (left := self._backlog.next(lambda _: True)) is not None:
                self._wake(left)
            self._room.set()
            await self._send(worker, pieces)

    def _batch(self, worker: Worker) -> list[Piece]:
        """What a node is given next: until it has two batches in hand, the second only if no other node is idle."""
        pieces: list[Piece] = []
        size = 0
        # however quickly they are verified, so many are in memory here and there
        room = 2 * MOST_BYTES - sum(piece.size for piece in worker.in_hand.values())
        most = min(MOST, 2 * MOST - len(worker.in_hand))
        # one that was lost a moment ago must take nothing with it
        while worker.actor and len(pieces) < most and size < min(MOST_BYTES, room):
            piece = self._backlog.next(worker.can)
            if piece is None:
                break
            load = self._load(worker, piece)
            batch = max(BATCH, self._seconds.get(piece.case.kind, BATCH))
            if not pieces:
                batches = 1 if self._others_starve(worker, piece, batch) else 2
            if worker.in_hand and (self._alone or worker.load + load > batches * batch + 1e-9):
                break
            self._backlog.take(piece)
            pieces.append(piece)
            size += piece.size
            worker.in_hand[piece.number] = piece
            worker.load += load
        return pieces

    def _load(self, worker: Worker, piece: Piece) -> float:
        """Seconds that a piece would take if all that a node can do at once were like it."""
        kind = piece.case.kind
        return self._seconds.get(kind, BATCH) / max(1, worker.at_once.get(kind, 1))

    def _others_starve(self, worker: Worker, piece: Piece, batch: float) -> bool:
        return any(
            other is not worker and other.load < batch and other.can(piece) and not (self._alone and other.in_hand)
            for other in self._ready()
        )

    async def _send(self, worker: Worker, pieces: Sequence[Piece]) -> None:
        cluster, actor = self._joined(), worker.actor
        places = [self._bundles.place(piece.case) for piece in pieces]
        wanted = {place.bundle for place in places}
        try:
            missing = {
                bundle: await asyncio.to_thread(self._bundles.packed, bundle)
                for bundle in sorted(wanted - self._bundles.stored.keys())
            }
        except (SteelyardError, OSError) as error:
            self._refuse(worker, pieces, str(error))
            return
        if worker.actor != actor or cluster is not self._cluster:
            raise Lost("it was lost before it had the batch")
        # nobody else's turn comes before the batch is on its way, and what is said first is done first
        for bundle, packed in missing.items():
            if bundle not in self._bundles.stored:
                cluster.told("put", packed.content, bundle=packed.name)
                self._bundles.stored[bundle] = packed.name
        stored = self._bundles.stored
        items = [
            Item(number=piece.number, bundle=stored[place.bundle], place=place.within, reply=piece.reply)
            for piece, place in zip(pieces, places, strict=True)
        ]
        for bundle in wanted:
            stored.move_to_end(bundle)
        sent = cluster.told(
            "call",
            msgspec.json.encode(items),
            actor=worker.actor,
            method="give",
            arguments=[],
            bundles=sorted({stored[bundle] for bundle in wanted}),
        )
        while len(stored) > max(KEPT, len(wanted)):
            cluster.told("drop", bundle=stored.popitem(last=False)[1])
        worker.busy.set()
        try:
            async with asyncio.timeout(SILENCE):
                await sent
        except TimeoutError:
            raise Lost(f"no sign of life for {SILENCE:g} s") from None
        except Lost:
            # perhaps for want of what never came into the object store
            for bundle in wanted & stored.keys():
                cluster.told("drop", bundle=stored.pop(bundle))
            raise

    def _refuse(self, worker: Worker, pieces: Sequence[Piece], reason: str) -> None:
        """Something that these cases name here is not as it was."""
        for piece in pieces:
            del worker.in_hand[piece.number]
            self._settle(piece, failure(piece.reply, VerifierError(reason)))
        if not worker.in_hand:
            worker.load = 0.0

    async def _collect(self, worker: Worker) -> None:
        """Take in facts for as long as the node has something in hand."""
        while True:
            await worker.busy.wait()
            cluster = self._joined()
            low = len(worker.in_hand) // 2
            try:
                async with asyncio.timeout(SILENCE):
                    said = await cluster.ask("call", actor=worker.actor, method="collect", arguments=[low, BATCH])
            except TimeoutError:
                raise Lost(f"no sign of life for {SILENCE:g} s") from None
            self._take_in(worker, msgspec.json.decode(said.payload, type=list[Done]))
            if not worker.in_hand:
                worker.busy.clear()
            worker.hungry.set()

    def _take_in(self, worker: Worker, done: Sequence[Done]) -> None:
        took: dict[str, list[float]] = {}
        for each in done:
            piece = worker.in_hand.pop(each.number, None)
            if piece is None:
                continue
            if each.fact is None:
                worker.unable[piece.needs] = each.unable
                self._note(f"{worker.found.name} takes no {piece.case.kind} work: {each.unable}")
                self._backlog.give_back(piece)
                self._wake(piece)
            elif isinstance(each.fact, Failure):
                self._failed(worker, piece, each.fact)
            else:
                took.setdefault(piece.case.kind, []).append(each.seconds)
                self._verified(worker, piece, each.fact)
        for kind, seconds in took.items():
            mean = sum(seconds) / len(seconds)
            weight = 1 - (1 - LEARNING) ** len(seconds)
            self._seconds[kind] = weight * mean + (1 - weight) * self._seconds.get(kind, mean)
        worker.load = sum(self._load(worker, piece) for piece in worker.in_hand.values())

    def _verified(self, worker: Worker, piece: Piece, verdict: Verdict) -> None:
        worker.doubted.pop(piece.needs, None)
        for node, broken in piece.failed.items():
            # what another could do is no fault of the answer
            if (other := self._workers.get(node)) is not None:
                other.doubted[piece.needs] += 1
                if other.doubted[piece.needs] >= DOUBT:
                    other.unable[piece.needs] = broken.message
                    self._note(f"{other.found.name} takes no more {piece.case.kind} work: {broken.message}")
        self._settle(piece, msgspec.structs.replace(verdict, node=worker.found.name))

    def _failed(self, worker: Worker, piece: Piece, broken: Failure) -> None:
        """What one node could not find out, another may."""
        piece.failed[worker.found.id] = broken
        if any(other.can(piece) for other in self._ready()):
            self._backlog.add(piece)
            self._wake(piece)
        else:
            self._settle(piece, broken)

    def _settle(self, piece: Piece, fact: Verdict | Failure) -> None:
        self._tell(fact, piece.case)
        self._pending -= 1
        if not self._pending:
            self._settled.set()

    # ---- all nodes

    async def _watch(self) -> None:
        """Take up nodes that come, let go of those that leave, and find the way back when it is lost."""
        while True:
            await asyncio.sleep(LOOK)
            await self._look_or_rejoin()
            for worker in self._workers.values():
                if worker not in self._serving and not worker.refused:
                    self._serving[worker] = self._group.create_task(self._serve(worker))

    async def _look_or_rejoin(self) -> None:
        try:
            async with asyncio.timeout(SILENCE):
                await self._look()
        except (Lost, TimeoutError):
            await self._rejoin()

    async def _look(self) -> None:
        """Which nodes there are now."""
        found = {node.id: node for node in await self._joined().nodes()}
        for gone in self._workers.keys() - found.keys():
            self._dismiss(self._workers[gone], "it left the cluster")
        for node in found.keys() - self._workers.keys():
            self._workers[node] = Worker(found[node])

    def _dismiss(self, worker: Worker, reason: str) -> None:
        del self._workers[worker.found.id]
        if worker in self._serving:
            self._serving.pop(worker).cancel()
        if worker.actor or worker.in_hand:
            self._lose(worker, reason)

    def _joined(self) -> Cluster:
        if self._cluster is None:
            raise Lost("the way to the cluster was lost")
        return self._cluster

    async def _rejoin(self) -> None:
        """Start another gateway; all that was in hand is lost with the old one."""
        for worker in list(self._workers.values()):
            self._dismiss(worker, "the way to the cluster was lost")
        if self._cluster is not None:
            await self._cluster.close()
            self._cluster = None
        self._bundles.stored.clear()
        with contextlib.suppress(InputError):
            # to the same one, and to no other that may be here by now
            place = await asyncio.to_thread(address, self._place, self._means.environment)
            self._cluster = await Cluster.joined(place)

    async def _tick(self) -> None:
        """Once a second: see whether there is somebody for all that waits."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1)
            ready = self._ready()
            if not ready:
                self._forsaken = self._forsaken or loop.time()
                if loop.time() - self._forsaken > self._patience:
                    self._give_up()
                continue
            self._wake_all()
            for piece in list(self._backlog.hopeless(self._has_hope)):
                self._settle(piece, self._hopeless(piece))
                self._room.set()

    def _has_hope(self, piece: Piece) -> bool:
        """Whether a node can verify a piece, or one that could may still come."""
        if any(worker.can(piece) for worker in self._ready()):
            self._unserved.pop(piece.needs, None)
            return True
        now = asyncio.get_running_loop().time()
        return not piece.failed and now - self._unserved.setdefault(piece.needs, now) <= self._patience

    def _hopeless(self, piece: Piece) -> Failure:
        if piece.failed:
            return list(piece.failed.values())[-1]
        each = (f"{worker.found.name}: {worker.unable[piece.needs]}" for worker in self._ready())
        return failure(piece.reply, VerifierError(f"no node of the cluster can verify it: {'; '.join(each)}"))

    def _give_up(self) -> None:
        why = next((worker.reason for worker in self._workers.values() if worker.reason), "")
        self.given_up = f"no node of the Ray cluster was there for {self._patience:g} s" + (f" ({why})" if why else "")
        self._room.set()
        self._settled.set()

    def _note(self, what: str) -> None:
        if what not in self._told:
            self._told.append(what)


def _difference(there: object) -> str:
    """Why the verdicts of a node might not be the driver's; empty when they are."""
    here = same()
    try:
        other = msgspec.convert(there, Same)
    except msgspec.ValidationError:
        return f"it has another version of steelyard; install {here.steelyard}, as here"
    if other.python != here.python:
        return f"it has Python {other.python}, and the driver {here.python}; install the same on both"
    if other.steelyard != here.steelyard:
        return f"it has steelyard {other.steelyard}, and the driver {here.steelyard}; install the same on both"
    if other.code != here.code:
        return (
            f"its steelyard {other.steelyard} is another state of the code than the driver's; install the same on both"
        )
    return ""
