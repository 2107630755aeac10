"""Replies turned into verdicts by the nodes of a Ray cluster, which get cases in bundles with the files that they name."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.engine.ray import counting
from steelyard.engine.ray.cluster import GatewayProcess, address
from steelyard.engine.ray.node import surroundings
from steelyard.engine.ray.wire import (
    Bundle,
    ItemResult,
    Needs,
    NodeReport,
    Phase,
    State,
    StoreBundle,
    Terms,
    WitnessReport,
    WorkItem,
    needs,
)
from steelyard.engine.steps import failure
from steelyard.errors import InputError, SteelyardError, VerifierError, problems_by_reason
from steelyard.providers.agent import workspaces
from steelyard.records import Case, Failure, Reply, Verdict, WitnessResult

if TYPE_CHECKING:
    from steelyard.engine.options import RunOptions
    from steelyard.engine.verifiers import VerifierSet
    from steelyard.outcomes.parquet_counts import AttemptColumns, ModelCaseCounts, ParquetSource
    from steelyard.protocols import VerdictCallback


MAX_BUNDLE_CASES = 64
MAX_BUNDLE_BYTES = 4 << 20


class BundlePlace(NamedTuple):
    """Which bundle a case travels in, and where in it."""

    bundle: int
    place: int


class Bundles:
    """The cases of a run, divided into bundles."""

    def __init__(self, cases: Sequence[Case], verifiers: VerifierSet) -> None:
        self._verifiers = verifiers
        self._cases = [case for case in cases if case.has_verifier]
        self._places = {case.id: place for place, case in enumerate(self._cases)}
        self._starts = list(_starts(self._cases))
        self._surroundings: dict[Needs, tuple[str, ...]] = {}

    def place(self, case: Case) -> BundlePlace:
        """Where a case travels."""
        at = self._places[case.id]
        bundle = bisect_right(self._starts, at) - 1
        return BundlePlace(bundle, at - self._starts[bundle])

    def packed(self, bundle: int) -> bytes:
        """A bundle as it travels; raises InputError when a file that its cases name is gone."""
        start, *rest = self._starts[bundle : bundle + 2]
        return msgspec.json.encode(self.bundle(self._cases[start : rest[0] if rest else None]))

    def bundle(self, cases: Iterable[Case]) -> Bundle:
        """Some cases with the files that they name."""
        made = [_with_absolute_paths(case) for case in cases]
        paths = {path for case in made for path in (case.verify.python, case.expectations.custom_check) if path}
        files = {file for path in paths if (file := path.rpartition(":")[0]).endswith(".py")}
        named = {case.workspace for case in made if case.workspace}
        return Bundle(
            cases=tuple(made),
            surroundings=tuple(map(self._surrounding, made)),
            checks={file: Path(file).read_bytes() for file in sorted(files) if Path(file).is_file()},
            workspaces={workspace: dict(workspaces.workspace_files(workspace)) for workspace in sorted(named)},
        )

    def _surrounding(self, case: Case) -> tuple[str, ...]:
        key = needs(case)
        if key not in self._surroundings:
            self._surroundings[key] = surroundings(self._verifiers.of(case), case)
        return self._surroundings[key]


def _with_absolute_paths(case: Case) -> Case:
    if not case.verify.python_env:
        return case
    return replace(case, verify=replace(case.verify, python_env=str(Path(case.verify.python_env).absolute())))


def _starts(cases: Sequence[Case]) -> Iterator[int]:
    """The places of the first cases of bundles; one with a workspace, which may be large, travels alone."""
    count, size = MAX_BUNDLE_CASES, 0
    for place, case in enumerate(cases):
        own = len(msgspec.json.encode(case))
        if count == MAX_BUNDLE_CASES or size + own > MAX_BUNDLE_BYTES or case.workspace:
            yield place
            count, size = 0, 0
        count, size = MAX_BUNDLE_CASES if case.workspace else count + 1, size + own


MAX_WAITING_REPLIES = 256
"""Replies that may wait, in addition to those that Ray is running, before asking waits as well."""
MAX_WAITING_BYTES = 64 << 20
MAX_PROBED_GROUPS = 1000
"""Groups of cases about which nodes are asked before a model is."""
REJOIN_SECONDS = 1.0
"""The pause before a new gateway is started."""


class PendingReply(NamedTuple):
    """A reply that has not become a fact yet."""

    reply: Reply
    case: Case
    size: int


class RayPoolFactory:
    """The entry point of the pool: makes pools whose nodes were asked whether they can do what is needed."""

    verifies_here = False

    async def __call__(self, cases: Sequence[Case], verifying: VerifierSet, means: RunOptions) -> RayPool:
        """A pool that is open; raises InputError where no node can do what is needed."""
        pool = RayPool(cases, verifying, means)
        try:
            await pool.open()
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
    """Sends every reply to the gateway, keeps it until its fact comes back, and starts another gateway when one dies."""

    given_up = ""

    def __init__(self, cases: Sequence[Case], verifying: VerifierSet, means: RunOptions) -> None:
        self._options = means
        self._limits = verifying.limits
        self._bundles = Bundles(cases, verifying)
        self._groups: dict[Needs, int] = {}
        """The number of each group of cases that need the same of a machine."""
        self._group_by_case: dict[str, int] = {}
        self._probed: list[Case] = []
        """A case of each group about which nodes are asked, in the order of their numbers."""
        kinds: dict[str, Case] = {}
        for case in cases:
            if case.has_verifier:
                kinds.setdefault(case.kind, case)
        for case in [*kinds.values(), *cases]:
            if not case.has_verifier:
                continue
            group = needs(case)
            if group not in self._groups:
                self._groups[group] = len(self._groups)
                if len(self._groups) <= MAX_PROBED_GROUPS:
                    self._probed.append(case)
            self._group_by_case[case.id] = self._groups[group]
        self._kinds = {kind: verifying.of(case).version for kind, case in kinds.items()}
        self._gateway: GatewayProcess | None = None
        self._sent_bundles: set[int] = set()
        self._pending: dict[int, PendingReply] = {}
        self._pending_bytes = 0
        self._numbers = 0
        self._state = State(nodes=0, in_hand=0)
        self._notes: dict[str, None] = {}
        self._witness_results: list[WitnessResult] = []
        self._changed = asyncio.Event()
        """Set when something became a fact, or the cluster changed."""
        self._alone = False

    @property
    def nodes(self) -> int:
        return self._state.nodes

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    @property
    def witness_results(self) -> Sequence[WitnessResult]:
        return self._witness_results

    async def open(self) -> None:
        """Join the cluster, and find out what its nodes can do."""
        options = self._options
        self._place = address(options.ray_address, options.variables)
        self._terms = Terms(
            run=secrets.token_hex(16),
            kinds=self._kinds,
            groups=await asyncio.to_thread(self._bundles.bundle, self._probed),
            wait_seconds=options.settings.ray_wait_secs,
            require_isolation=options.require_isolation,
            allow_weak_sandbox=options.allow_weak_sandbox,
            recheck=options.recheck,
            controls=options.controls,
            control_key=options.control_key,
        )
        self._gateway, joined = await GatewayProcess.start(self._place, self._terms)
        ready = [node for node in joined.nodes if not node.capability.refused]
        if not ready:
            raise InputError(f"Ray at {self._place}: {_why_no_node(joined.nodes)}")
        self._state = State(nodes=len(ready), in_hand=0)
        problems = {}
        for group, case in enumerate(self._probed):
            if all(group in node.capability.unable for node in ready):
                each = (f"{node.name}: {node.capability.unable[group]}" for node in ready)
                problems[case.id] = VerifierError(f"no node of the cluster can verify it: {'; '.join(each)}")
        if problems:
            raise InputError(problems_by_reason(problems))

    @asynccontextmanager
    async def at_work(self, report: VerdictCallback, *, alone: bool = False) -> AsyncIterator[None]:
        self._report, self._alone = report, alone
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._receive()), group.create_task(self._watch_for_nodes())]
            if self._gateway is not None:
                self._gateway.send(Phase(alone=alone))
            yield
            while self._pending and not self.given_up:
                await self._change()
            for task in tasks:
                task.cancel()

    async def put(self, reply: Reply, case: Case) -> None:
        while self._is_full() and not self.given_up:
            await self._change()
        if self.given_up:
            return
        self._numbers += 1
        size = 1000 + len(reply.answer.text) + len(reply.answer.transcript) + len(reply.answer.reasoning)
        self._pending[self._numbers] = PendingReply(reply, case, size)
        self._pending_bytes += size
        await self._send([self._numbers])

    async def close(self) -> None:
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            await gateway.close()

    def _is_full(self) -> bool:
        most = MAX_WAITING_REPLIES + 2 * self._state.in_hand
        return len(self._pending) >= most or self._pending_bytes >= MAX_WAITING_BYTES

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _send(self, numbers: Iterable[int]) -> None:
        """Send replies to the gateway; without a gateway they wait for the next one."""
        for number in numbers:
            gateway, pending = self._gateway, self._pending.get(number)
            if gateway is None or pending is None:
                continue
            at = self._bundles.place(pending.case)
            if at.bundle not in self._sent_bundles:
                try:
                    content = await asyncio.to_thread(self._bundles.packed, at.bundle)
                except (SteelyardError, OSError) as error:
                    self._settle(number, failure(pending.reply, VerifierError(str(error))))
                    continue
                if gateway is not self._gateway:
                    # its successor was sent all that is pending
                    continue
                if at.bundle not in self._sent_bundles:
                    self._sent_bundles.add(at.bundle)
                    gateway.send(StoreBundle(bundle=at.bundle, content=content))
            gateway.send(
                WorkItem(
                    number=number,
                    group=self._group_by_case[pending.case.id],
                    kind=pending.case.kind,
                    case=pending.case.id,
                    bundle=at.bundle,
                    place=at.place,
                    reply=msgspec.json.encode(pending.reply),
                    limit=self._limits.known(pending.case),
                    alone=self._alone,
                )
            )
            await gateway.drain()

    async def _receive(self) -> None:
        """Take in what the gateway sends, and start another one when it is gone."""
        while True:
            message = None if self._gateway is None else await self._gateway.receive()
            if message is None:
                await self._rejoin()
            elif isinstance(message, ItemResult):
                self._take_in(message)
            elif isinstance(message, WitnessReport):
                self._witness_results += (replace(result, node=message.node) for result in message.results)
                for limit in message.limits:
                    self._limits.learn(replace(limit, node=message.node), is_new=True)
            elif isinstance(message, State):
                self._state = message
                self._notes.update(dict.fromkeys(message.notes))
                self._changed.set()

    def _take_in(self, settled: ItemResult) -> None:
        pending = self._pending.get(settled.number)
        if pending is None:
            return
        if not settled.fact:
            self._settle(settled.number, failure(pending.reply, VerifierError(settled.problem)))
            return
        fact: Verdict | Failure = msgspec.json.decode(settled.fact, type=Verdict | Failure)
        self._settle(settled.number, replace(fact, node=settled.node) if isinstance(fact, Verdict) else fact)

    def _settle(self, number: int, fact: Verdict | Failure) -> None:
        pending = self._pending.pop(number)
        self._pending_bytes -= pending.size
        self._report(fact, pending.case)
        self._changed.set()

    async def _rejoin(self) -> None:
        """Start another gateway and send it all that has not become a fact; its nodes were asked already."""
        self._state = State(nodes=0, in_hand=0)
        self._notes["the process that talks to Ray was lost; its work was verified again"] = None
        await self.close()
        await asyncio.sleep(REJOIN_SECONDS)
        with contextlib.suppress(InputError):
            # the same cluster, and no other that may run here by now
            place = await asyncio.to_thread(address, self._place, self._options.variables)
            gateway, _ = await GatewayProcess.start(place, self._terms)
            # what is put in from now on is sent when it is put in
            pending = list(self._pending)
            self._gateway = gateway
            self._sent_bundles.clear()
            gateway.send(Phase(alone=self._alone))
            await self._send(pending)

    async def _watch_for_nodes(self) -> None:
        """Give up if there has been no node for too long."""
        loop = asyncio.get_running_loop()
        last_seen = loop.time()
        limit = self._options.settings.ray_wait_secs
        while True:
            await asyncio.sleep(1)
            if self._state.nodes:
                last_seen = loop.time()
            elif loop.time() - last_seen > limit:
                self.given_up = f"no node of the Ray cluster was available for {limit:g} s"
                self._changed.set()


def _why_no_node(nodes: Sequence[NodeReport]) -> str:
    if not nodes:
        return "no node has processors to verify with; start one with: ray start --address HOST:PORT"
    return f"no node can be used: {'; '.join(f'{node.name}: {node.capability.refused}' for node in nodes)}"


opened = RayPoolFactory()
