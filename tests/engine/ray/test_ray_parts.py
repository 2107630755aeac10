"""The parts of the Ray backend, each without a cluster: addresses, what waits, what travels, and a node by itself."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import pytest

from steelyard.engine.options import RunOptions
from steelyard.engine.ray.cluster import address
from steelyard.engine.ray.gateway import (
    DISPATCH_SECONDS,
    MAX_BATCH_BYTES,
    MAX_BATCH_ITEMS,
    Backlog,
    Gateway,
    QueuedItem,
    exception_line,
)
from steelyard.engine.ray.node import NodeFiles, NodeWorker, surroundings
from steelyard.engine.ray.pool import MAX_BUNDLE_CASES, Bundles
from steelyard.engine.ray.wire import (
    Bundle,
    Capability,
    CodeVersion,
    ItemResult,
    Phase,
    State,
    StoreBundle,
    Terms,
    WorkItem,
    WorkResult,
    package_digest,
    receive,
    send,
)
from steelyard.engine.steps import verify_with_retry
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import InputError
from steelyard.providers.agent import workspaces
from steelyard.records import Answer, Case, CaseLimit, Expectations, Failure, Reply, Verdict, Verify, digest
from support.ray_evals import bare
from support.ray_nodes import SOURCE, needs_ray

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    async def bounded() -> Result:
        async with asyncio.timeout(120):
            return await work

    return asyncio.run(bounded())


def reply(case: Case, text: str, number: int = 1) -> Reply:
    return Reply(
        key=digest(case.id, number, text),
        at="",
        case=case.id,
        model="p/m",
        number=number,
        answer=Answer(text=text),
        asked="",
    )


# ---- where the cluster is


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param("ray://head:10001", "Ray Client is not supported", id="client"),
        pytest.param("head", "not HOST:PORT, such as 10.0.0.5:6379", id="no port"),
        pytest.param("head:port", "not HOST:PORT", id="no number"),
        pytest.param(":6379", "not HOST:PORT", id="no host"),
        pytest.param("head:99999", "not HOST:PORT", id="no port that there is"),
        pytest.param("127.0.0.1:1", "no Ray cluster answers there; start one with: ray start --head", id="nobody"),
        pytest.param("a\x1b[31mb:1", "a\\u001b[31mb:1", id="no word that a terminal obeys"),
    ],
)
def test_an_address_that_cannot_be_one_is_told_in_a_sentence(given: str, said: str) -> None:
    for environment, wanted, option in (({}, given, "--ray-address"), ({"RAY_ADDRESS": given}, "", "RAY_ADDRESS")):
        with pytest.raises(InputError) as told:
            address(wanted, environment)
        assert str(told.value).startswith(option)
        assert said in str(told.value)
        assert "\x1b" not in str(told.value)


def test_without_an_address_the_cluster_that_runs_here_is_taken_and_else_one_of_our_own(tmp_path: Path) -> None:
    environment = {"RAY_TMPDIR": str(tmp_path)}
    assert address("", environment) == address("local", environment) == "local"
    (tmp_path / "ray").mkdir()
    note = tmp_path / "ray" / "ray_current_cluster"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        note.write_text(place)
        assert address("", environment) == address("auto", environment) == place
        assert address("local", environment) == "local"
        assert address("", {**environment, "RAY_ADDRESS": "local"}) == "local"
    assert address("", environment) == "local", "nobody answers there any more"
    note.write_text("nonsense")
    assert address("", environment) == "local"


# ---- what waits, and how Ray is given it


def item(number: int, case: str = "a", kind: str = "python", group: int = 0, size: int = 10) -> WorkItem:
    return WorkItem(number=number, group=group, kind=kind, case=case, bundle=0, place=0, reply=b"x" * size)


def numbers(queued: Sequence[QueuedItem]) -> list[int]:
    return [each.item.number for each in queued]


def test_replies_are_taken_in_order_but_those_of_one_case_together_and_only_with_equal_needs() -> None:
    backlog = Backlog()
    for each in (item(1, "a"), item(2, "b"), item(3, "a"), item(4, "r", "rust", 1), item(5, "b"), item(6, "a")):
        backlog.add(QueuedItem(each))
    python, rust = backlog.waiting()
    assert (backlog.count(python), backlog.count(rust)) == (5, 1)
    assert numbers(backlog.take(python, 2)) == [1, 3]
    assert backlog.waiting() == [rust, python], "the other is next"
    assert numbers(backlog.take(python, 99)) == [6, 2, 5]
    assert numbers(backlog.take(rust, 99)) == [4]
    assert backlog.waiting() == []


class Submitted(NamedTuple):
    nodes: tuple[str, ...]
    cpus: int
    retries: int
    items: list[WorkItem]
    future: asyncio.Future[Any]


class ScriptedRay:
    """Takes tasks and leaves it to the test what becomes of them."""

    NoNodeError = LookupError

    def __init__(self, *cpus: int) -> None:
        self.listed = {f"n{place}": count for place, count in enumerate(cpus)}
        self.unable: dict[str, dict[int, str]] = {}
        self.tasks: list[Submitted] = []

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"Alive": True, "NodeName": f"node-{name[1:]}", "NodeID": name, "Resources": {"CPU": float(cpus)}}
            for name, cpus in self.listed.items()
        ]

    def put(self, content: bytes) -> bytes:
        return content

    def cancel(self, reference: asyncio.Future[Any], *, force: bool) -> None:
        assert force
        reference.set_exception(RuntimeError("cancelled"))

    def submit(self, nodes: Sequence[str], cpus: int, retries: int, function: str, *arguments: Any) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if function == "probe_node":
            at_once = {"python": 1, "response": 1, "rust": 50}
            capability = Capability(at_once=at_once, unable=self.unable.get(nodes[0], {}))
            future.set_result(msgspec.msgpack.encode(capability))
        elif function == "verify_items":
            items = msgspec.msgpack.decode(arguments[1], type=list[WorkItem])
            self.tasks.append(Submitted(tuple(nodes), cpus, retries, items, future))
        else:
            future.set_result(None)
        return future

    def finish(self, task: Submitted, node: str, *, failure: str = "", seconds: float = 0.1) -> None:
        results = [WorkResult(number=it.number, fact=b"fact", failure=failure, seconds=seconds) for it in task.items]
        self.tasks.remove(task)
        task.future.set_result((node, msgspec.msgpack.encode(results)))


class Driver:
    """The run's end of a gateway that has a scripted Ray."""

    def __init__(self, ray: ScriptedRay, *, wait_seconds: float = 60) -> None:
        self.ray = ray
        groups = Bundle(cases=(PYTHON, TEXT), surroundings=((), ()))
        self._terms = Terms(run="r", kinds={}, groups=groups, wait_seconds=wait_seconds)
        self.settled: list[ItemResult] = []
        self.notes: list[str] = []

    async def __aenter__(self) -> Driver:
        ours, theirs = socket.socketpair()
        reader, self.writer = await asyncio.open_unix_connection(sock=ours)
        other, self._theirs = await asyncio.open_unix_connection(sock=theirs)
        self.gateway = gateway = Gateway(cast("Any", self.ray), self._terms, self._theirs)
        self.joined = await gateway.connect()
        self._tasks = [asyncio.create_task(gateway.serve(other)), asyncio.create_task(self._listen(reader))]
        send(self.writer, StoreBundle(bundle=0, content=b""))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        await self._tasks[0]
        self._theirs.close()
        await self._tasks[1]
        for closed in (self.writer, self._theirs):
            # a side that closes before it has read everything resets the connection
            with contextlib.suppress(ConnectionError):
                await closed.wait_closed()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while (message := await receive(reader)) is not None:
            if isinstance(message, ItemResult):
                self.settled.append(message)
            elif isinstance(message, State):
                self.notes += message.notes

    def put(self, *items: WorkItem) -> None:
        for each in items:
            send(self.writer, each)

    async def tasks(self, count: int) -> list[Submitted]:
        """What Ray has once it has this many tasks."""
        while len(self.ray.tasks) < count:  # noqa: ASYNC110  what is waited for happens in the gateway
            await asyncio.sleep(0.01)
        await asyncio.sleep(3 * DISPATCH_SECONDS)
        assert len(self.ray.tasks) == count
        return list(self.ray.tasks)

    async def facts(self, count: int) -> list[ItemResult]:
        while len(self.settled) < count:  # noqa: ASYNC110  what is waited for happens in the gateway
            await asyncio.sleep(0.01)
        return self.settled


def test_ray_gets_two_tasks_per_processor_and_each_is_bounded_however_quickly_it_is_done() -> None:
    async def check() -> None:
        async with Driver(ScriptedRay(1, 2)) as driver:
            driver.put(*(item(number, kind="response", group=1) for number in range(20_000)))
            first = await driver.tasks(6)
            assert {task.nodes for task in first} == {("n0", "n1")}
            assert {(task.cpus, task.retries, len(task.items)) for task in first} == {(1, 4, 1)}, "nothing is known yet"
            (key,) = driver.gateway._backlog.waiting()
            while driver.gateway._backlog.count(key) < 20_000 - 6:  # noqa: ASYNC110  until all have arrived
                await asyncio.sleep(0.01)
            for task in first:
                driver.ray.finish(task, "n0", seconds=1e-6)
            assert {len(task.items) for task in await driver.tasks(6)} == {MAX_BATCH_ITEMS}
        async with Driver(ScriptedRay(1)) as driver:
            long = MAX_BATCH_BYTES // 4
            driver.put(*(item(number, kind="rust", group=1, size=long) for number in range(60)))
            assert max(len(task.items) for task in await driver.tasks(2)) <= 4

    run(check())


def test_what_fails_on_a_node_is_tried_on_another_and_three_in_a_row_end_its_work_of_the_kind() -> None:
    async def check() -> None:
        async with Driver(ScriptedRay(1, 1)) as driver:
            for number in range(3):
                driver.put(item(number))
                (task,) = await driver.tasks(1)
                assert task.nodes == ("n0", "n1")
                driver.ray.finish(task, "n0", failure="broken disk")
                (task,) = await driver.tasks(1)
                assert task.nodes == ("n1",)
                driver.ray.finish(task, "n1")
            assert [(it.number, it.node) for it in await driver.facts(3)] == [
                (0, "node-1"),
                (1, "node-1"),
                (2, "node-1"),
            ]
            driver.put(item(3), item(4, kind="response", group=1))
            for task in await driver.tasks(2):
                assert task.nodes == (("n1",) if task.items[0].kind == "python" else ("n0", "n1"))
            assert driver.notes == ["node-0 takes no more python work: broken disk"]

    run(check())


def test_what_fails_on_every_node_is_a_failure_and_no_node_is_blamed() -> None:
    async def check() -> None:
        async with Driver(ScriptedRay(1, 1)) as driver:
            driver.put(item(1))
            for node in ("n1", "n0"):
                (task,) = await driver.tasks(1)
                driver.ray.finish(task, node, failure="no verdict on this")
            assert [it.fact for it in await driver.facts(1)] == [b"fact"]
            assert driver.notes == []

    run(check())


def test_what_no_node_can_verify_waits_for_one_and_then_says_why() -> None:
    async def check() -> None:
        ray = ScriptedRay(1)
        ray.unable["n0"] = {0: "no compiler"}
        async with Driver(ray, wait_seconds=0.3) as driver:
            assert driver.joined.nodes[0].capability.unable == {0: "no compiler"}
            driver.put(item(1), item(2, kind="response", group=1))
            (task,) = await driver.tasks(1)
            assert numbers([QueuedItem(it) for it in task.items]) == [2]
            (settled,) = await driver.facts(1)
            assert (settled.number, settled.problem) == (1, "no node of the cluster can verify it: node-0: no compiler")

    run(check())


def test_what_lost_all_its_nodes_is_given_to_a_new_one() -> None:
    async def check() -> None:
        async with Driver(ScriptedRay(1)) as driver:
            driver.put(item(1), item(2))
            await driver.tasks(2)
            driver.ray.tasks.clear()
            driver.ray.listed = {"n1": 1}
            again = await driver.tasks(2)
            assert sorted(it.number for task in again for it in task.items) == [1, 2]
            assert {task.nodes for task in again} == {("n1",)}
            assert driver.notes == ["node-0 was lost; its work was verified elsewhere, or by it later"]

    run(check())


def test_a_reply_that_workers_die_of_is_missing_and_those_beside_it_are_not() -> None:
    async def check() -> None:
        async with Driver(ScriptedRay(1)) as driver:
            driver.put(*(item(number, kind="rust", group=1) for number in range(3)))
            (task,) = await driver.tasks(1)
            assert len(task.items) == 3
            driver.ray.tasks.clear()
            task.future.set_exception(RuntimeError("worker died"))
            for task in await driver.tasks(2):
                (own,) = task.items
                if own.number == 1:
                    driver.ray.tasks.remove(task)
                    task.future.set_exception(RuntimeError("worker died"))
                else:
                    driver.ray.finish(task, "n0")
            for task in await driver.tasks(1):
                driver.ray.finish(task, "n0")
            found = {it.number: it.problem for it in await driver.facts(3)}
            assert found == {
                0: "",
                1: "5 workers died while they verified it, the last: RuntimeError: worker died",
                2: "",
            }

    run(check())


def test_a_reply_that_needs_a_machine_to_itself_gets_all_its_processors() -> None:
    async def check() -> None:
        async with Driver(ScriptedRay(4, 2)) as driver:
            send(driver.writer, Phase(alone=True))
            driver.put(*(item(number) for number in range(5)))
            found = await driver.tasks(2)
            assert {(task.nodes, task.cpus, len(task.items)) for task in found} == {(("n0",), 4, 1), (("n1",), 2, 1)}

    run(check())


# ---- what travels


def verifying(cases: Sequence[Case]) -> VerifierSet:
    return VerifierSet(cases, RunOptions(backend="ray"))


def test_only_a_pool_that_verifies_here_needs_a_sandbox_here() -> None:
    VerifierSet([PYTHON], RunOptions(backend="ray", require_isolation="unheard of"))
    with pytest.raises(InputError, match="unheard of"):
        VerifierSet([PYTHON], RunOptions(backend="local", require_isolation="unheard of"))


def test_every_case_is_found_in_the_bundle_that_it_travels_in(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with_workspace = {5, 6, 130}
    cases = [
        Case(id=f"c{number}", prompt="?", target="x", workspace=str(tmp_path) if number in with_workspace else "")
        for number in range(300)
    ]
    cases.insert(50, Case(id="opinion", prompt="?", verify=Verify(kind="judge")))
    cases[0] = msgspec.structs.replace(cases[0], metadata={"larger than 64 bits": 10**30})
    bundles = Bundles(cases, verifying(cases))
    sizes = set()
    for case in cases:
        if case.by_judges:
            continue
        place = bundles.place(case)
        bundle = msgspec.json.decode(bundles.packed(place.bundle), type=Bundle)
        assert bundle.cases[place.place] == case
        assert not case.workspace or len(bundle.cases) == 1
        sizes.add(len(bundle.cases))
    assert max(sizes) == MAX_BUNDLE_CASES


def test_long_cases_travel_few_at_a_time() -> None:
    cases = [Case(id=f"c{number}", prompt="?" * (1 << 20), target="x") for number in range(10)]
    cases[7] = Case(id="c7", prompt="?" * (9 << 20), target="x")
    bundles = Bundles(cases, verifying(cases))
    assert [bundles.place(case).bundle for case in cases] == [0, 0, 0, 1, 1, 1, 2, 3, 4, 4]


def test_what_ray_tells_in_a_traceback_is_told_in_a_line() -> None:
    trace = "\x1b[36mray::Node.__init__()\x1b[39m (pid=1)\n  File \"x.py\", line 3, in y\nModuleNotFoundError: No module named 'z'\n"
    assert exception_line(RuntimeError(trace)) == "ModuleNotFoundError: No module named 'z'"
    assert (
        exception_line(RuntimeError("The actor died.\n\tclass_name: Node\n"))
        == "RuntimeError: The actor died. class_name: Node"
    )


def test_a_check_and_a_workspace_come_along_and_the_tests_stay_the_same(tmp_path: Path) -> None:
    driver = tmp_path / "driver"
    driver.mkdir()
    (driver / "checks.py").write_text("def score(reply):\n    return reply == 'yes'\n")
    (driver / "work").mkdir()
    (driver / "work" / "tool").write_text("#!/bin/sh\n")
    (driver / "work" / "tool").chmod(0o755)
    (driver / "work" / "link").symlink_to("tool")
    case = Case(
        id="a",
        prompt="?",
        workspace=str(driver / "work"),
        verify=Verify(
            python=f"{driver}/checks.py:score",
            workspace_digest=workspaces.workspace_digest(workspaces.workspace_files(str(driver / "work"))),
        ),
        expectations=Expectations(custom_check=f"{driver}/checks.py:score"),
    )
    bundle = Bundles([case], verifying([case])).bundle([case])
    driver.rename(tmp_path / "elsewhere")
    files = NodeFiles("r")
    try:
        settled = files.settled(case, msgspec.msgpack.decode(msgspec.msgpack.encode(bundle), type=Bundle))
        assert settled.tests_digest == case.tests_digest
        assert (
            workspaces.workspace_digest(workspaces.workspace_files(settled.workspace)) == case.verify.workspace_digest
        )
        check = Path(settled.verify.python.rpartition(":")[0])
        assert check.read_text().startswith("def score")
        assert settled.expectations.custom_check == settled.verify.python
        folder = check.parents[2]
    finally:
        files.remove()
    assert not folder.exists()


def test_a_node_removes_what_a_killed_one_left_and_nothing_of_one_that_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    case = Case(id="a", prompt="?", verify=Verify(python="/nowhere/checks.py:score"))
    bundle = Bundle(cases=(case,), surroundings=((),), checks={"/nowhere/checks.py": b"x"})
    first, second, beside = NodeFiles("one"), NodeFiles("two"), NodeFiles("two")
    mine = Path(first.settled(case, bundle).verify.python.rpartition(":")[0])
    theirs = Path(second.settled(case, bundle).verify.python.rpartition(":")[0])
    assert beside.settled(case, bundle) == second.settled(case, bundle), "workers of one node share its files"
    assert mine.exists()
    for killed in (first, beside):
        assert killed._lock is not None
        killed._lock.close()  # as the system does when a process is killed
    third = NodeFiles("three")
    third.settled(case, bundle)
    assert not mine.exists()
    assert theirs.exists()
    for files in (second, third):
        files.remove()
    assert list(tmp_path.glob("*")) == []


# ---- a node


PYTHON = Case(
    id="add",
    prompt="?",
    language="python",
    timeout_secs=5.0,
    expectations=Expectations(test_file="assert add(1, 2) == 3\n"),
)
TEXT = Case(id="says", prompt="?", target="blue")
SHELL = Case(
    id="shell",
    prompt="?",
    verify=Verify(kind="command", answer="answer.sh", test="no-such-tool answer.sh", results="exit code"),
)


class Worked:
    """A worker without Ray around it."""

    def __init__(self, cases: Sequence[Case], **terms: Any) -> None:
        self._cases = cases
        there = verifying(cases)
        self._bundle = Bundles(cases, there).bundle(cases)
        kinds = {case.kind: there.of(case).version for case in cases}
        own = {"run": "r", "wait_seconds": 1.0, "kinds": kinds, "groups": self._bundle, **terms}
        self.worker = NodeWorker(Terms(**own))

    async def verify(self, replies: Sequence[Reply], limit: CaseLimit | None = None) -> list[WorkResult]:
        places = {case.id: place for place, case in enumerate(self._cases)}
        items = [
            WorkItem(
                number=number,
                group=0,
                kind="",
                case=each.case,
                bundle=7,
                place=places[each.case],
                reply=msgspec.json.encode(each),
                limit=limit,
            )
            for number, each in enumerate(replies)
        ]
        assert self.worker.missing([7]) == [7]
        return await self.worker.verify(items, {7: msgspec.json.encode(self._bundle)})


async def capability(cases: Sequence[Case], **terms: Any) -> Capability:
    worked = Worked(cases, **terms)
    try:
        return await worked.worker.capability()
    finally:
        await worked.worker.close()


def test_a_node_reaches_the_verdicts_of_this_machine_and_says_each_once() -> None:
    replies = [
        reply(PYTHON, "```python\ndef add(a, b):\n    return a + b\n```"),
        reply(PYTHON, "```python\ndef add(a, b):\n    return a - b\n```"),
        reply(PYTHON, "```python\nimport os\nos._exit(0)\n```"),
        reply(TEXT, "it is blue"),
        reply(TEXT, "it is red"),
    ]

    async def there() -> list[WorkResult]:
        worked = Worked([PYTHON, TEXT])
        try:
            assert (await worked.worker.capability()).unable == {}
            return await worked.verify(replies)
        finally:
            await worked.worker.close()

    async def here() -> list[Verdict | Failure]:
        own = VerifierSet([PYTHON, TEXT], RunOptions())
        try:
            cases = {case.id: case for case in (PYTHON, TEXT)}
            return [await verify_with_retry(each, cases[each.case], own.of(cases[each.case])) for each in replies]
        finally:
            await own.close()

    found, wanted = run(there()), run(here())
    assert [result.number for result in found] == list(range(len(replies)))
    for result, fact in zip(found, wanted, strict=True):
        assert isinstance(fact, Verdict)
        assert result.failure == ""
        assert bare(msgspec.json.decode(result.fact, type=Verdict)) == bare(fact)


def test_a_node_learns_the_limit_of_a_run_or_tells_it() -> None:
    busy = "import time\ndef add(a, b):\n    while time.process_time() < 3: pass\n    return a + b"
    case = msgspec.structs.replace(PYTHON, follows_reference=True, reference="def add(a, b):\n    return a + b")

    async def there(limit: CaseLimit | None) -> tuple[str, tuple[CaseLimit, ...]]:
        worked = Worked([case])
        try:
            (result,) = await worked.verify([reply(case, f"```python\n{busy}\n```")], limit)
            return msgspec.json.decode(result.fact, type=Verdict).found.label, result.limits
        finally:
            await worked.worker.close()

    label, (found,) = run(there(None))
    assert (label, found.seconds) == ("cpu limit", 2)
    assert run(there(msgspec.structs.replace(found, seconds=10))) == ("", ())


def test_workers_of_a_node_try_a_witness_once_for_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    workers = [NodeFiles("run") for _ in range(3)]
    tried: list[str] = []

    async def attempt() -> str:
        tried.append("tried")
        await asyncio.sleep(0.05)
        return f"problem {len(tried)}"

    async def asked(*, afresh: bool = False) -> list[str]:
        return list(await asyncio.gather(*(one.tried_once_per_node("key", attempt, afresh=afresh) for one in workers)))

    async def failing() -> str:
        raise OSError("killed")

    try:
        assert run(asked()) == ["problem 1"] * 3
        assert run(workers[1].tried_once_per_node("key", attempt, afresh=True)) == "problem 2"
        assert run(asked()) == ["problem 2"] * 3
        with pytest.raises(OSError, match="killed"):
            run(workers[0].tried_once_per_node("other", failing, afresh=False))
        assert run(workers[2].tried_once_per_node("other", attempt, afresh=False)) == "problem 3"
    finally:
        for one in workers:
            one.remove()


def test_a_node_takes_nothing_for_which_it_has_another_verifier_tools_or_surroundings() -> None:
    kinds = {"python": "python 1, CPython 2.7", "response": verifying([TEXT]).of(TEXT).version}
    other = run(capability([PYTHON, TEXT], kinds=kinds)).unable
    assert list(other) == [0]
    assert "and the driver python 1, CPython 2.7" in other[0]
    (missing,) = run(capability([SHELL])).unable.values()
    assert "not found in the sandbox: no-such-tool" in missing
    bundle = Bundles([PYTHON], verifying([PYTHON])).bundle([PYTHON])
    more = msgspec.structs.replace(bundle, surroundings=(("numpy-2.0.0", "pandas-2.2.0"),))
    (lacking,) = run(capability([PYTHON], groups=more)).unable.values()
    assert lacking == "it lacks what the driver has: numpy-2.0.0, pandas-2.2.0"


def test_a_node_whose_sandbox_is_too_weak_still_reads_texts() -> None:
    found = run(capability([PYTHON, TEXT], require_isolation="unheard of"))
    assert list(found.unable) == [0]
    assert found.at_once == {"response": 1}


def test_one_worker_takes_as_many_answers_at_once_as_suit_one_processor() -> None:
    assert run(capability([PYTHON, TEXT])).at_once == {"python": 1, "response": 1}


def test_a_node_with_other_code_is_refused_with_what_to_install() -> None:
    here = CodeVersion(steelyard="1", python="3.11.7", code="a")
    for there, wanted in (
        ({"python": "3.12.0"}, "it has Python 3.12.0, and the driver 3.11.7; install the same on both"),
        ({"steelyard": "2"}, "it has steelyard 2, and the driver 1; install the same on both"),
        ({"code": "b"}, "its steelyard 1 is another state of the code than the driver's; install the same on both"),
        ({}, ""),
    ):
        assert here.difference(msgspec.structs.replace(here, **there)) == wanted


def test_rules_that_are_data_are_a_part_of_the_code_and_compiled_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "rules.toml").write_text("refused = 1\n")
    before = package_digest(tmp_path)
    (tmp_path / "__pycache__" / "code.pyc").write_bytes(b"compiled")
    assert package_digest(tmp_path) == before
    (tmp_path / "rules.toml").write_text("refused = 2\n")
    assert package_digest(tmp_path) != before


def test_the_packages_of_an_environment_are_a_part_of_what_nodes_must_share(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("numpy-2.1.0.dist-info", "idna-3.7.dist-info"):
        (packages / name).mkdir(parents=True)
    case = msgspec.structs.replace(PYTHON, verify=Verify(python_env=str(tmp_path)))
    assert surroundings(verifying([case]).of(case), case) == ("Python 3.11.7", "idna-3.7", "numpy-2.1.0")
    assert surroundings(verifying([PYTHON]).of(PYTHON), PYTHON) == ()


@needs_ray()
def test_the_cluster_file_on_the_page_is_one_that_ray_takes() -> None:
    import yaml
    from ray.autoscaler._private.util import prepare_config, validate_config

    page = (SOURCE.parent / "docs" / "scaling.md").read_text("utf-8")
    config = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    validate_config(prepare_config(config))
    # a cluster must have one version of everything: a release is named, not the newest one
    assert re.search(r"'steelyard\[ray\]==\d+\.\d+\.\d+'", config["setup_commands"][1])
