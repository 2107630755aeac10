"""The parts of the Ray backend, each without a cluster: addresses, what waits, what travels, and a node by itself."""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import pytest

from steelyard.engine.options import RunOptions
from steelyard.engine.ray.bundles import MAX_BUNDLE_CASES, Bundles
from steelyard.engine.ray.cluster import address, exception_line
from steelyard.engine.ray.node import NodeFiles, NodeWorker, surroundings
from steelyard.engine.ray.pool import DISPATCH_SECONDS, MAX_BATCH_BYTES, Backlog, QueuedReply, RayPool
from steelyard.engine.ray.wire import Bundle, Capability, CodeVersion, Terms, WorkItem, WorkResult, package_digest
from steelyard.engine.steps import failure, verify_with_retry
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import InputError, VerifierError
from steelyard.providers.agent import workspaces
from steelyard.records import Answer, Case, CaseLimit, Expectations, Failure, Finding, Reply, Verdict, Verify, digest
from steelyard.settings import Settings
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


def queued(case: Case, number: int, group: int = 0) -> QueuedReply:
    return QueuedReply(reply(case, "x" * 10, number), case, group)


def numbers(taken: Sequence[QueuedReply]) -> list[int]:
    return [each.reply.number for each in taken]


def test_replies_are_taken_in_order_but_those_of_one_case_together_and_only_with_equal_needs() -> None:
    a, b, c = (Case(id=name, prompt="?", target="x") for name in "abc")
    backlog = Backlog()
    for case, number in ((a, 1), (b, 2), (a, 3), (c, 4), (b, 5), (a, 6)):
        backlog.add(queued(case, number, group=int(case is c)))
    first, second = backlog.waiting()
    assert (backlog.count(first), backlog.count(second)) == (5, 1)
    assert numbers(backlog.take(first, 2)) == [1, 3]
    assert backlog.waiting() == [second, first], "the other is next"
    assert numbers(backlog.take(first, 99)) == [6, 2, 5]
    assert numbers(backlog.take(second, 99)) == [4]
    assert backlog.waiting() == []


class Submitted(NamedTuple):
    node: str
    cpus: int
    retries: int
    items: list[Reply]
    future: asyncio.Future[Any]


class ScriptedRay:
    """Takes tasks and leaves it to the test what becomes of them."""

    LOST_NODE_ERRORS = (LookupError,)
    own_node = "head"

    def __init__(self, *cpus: int, at_once: int = 1) -> None:
        self.listed = {"head": 0, **{f"n{place}": count for place, count in enumerate(cpus)}}
        self.at_once = at_once
        self.unable: dict[str, dict[int, str]] = {}
        self.tasks: list[Submitted] = []
        self.removed: list[str] = []

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"Alive": True, "NodeName": f"node-{name[1:]}", "NodeID": name, "Resources": {"CPU": float(cpus)}}
            for name, cpus in self.listed.items()
        ]

    def put(self, content: bytes) -> bytes:
        return content

    def submit(self, node: str, cpus: int, retries: int, function: str, *arguments: Any) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if function == "node:probe_node":
            capability = Capability(at_once={"python": self.at_once, "response": 1}, unable=self.unable.get(node, {}))
            future.set_result(msgspec.msgpack.encode(capability))
        elif function == "node:verify_items":
            items = msgspec.msgpack.decode(arguments[1], type=list[WorkItem])
            replies = [msgspec.json.decode(it.reply, type=Reply) for it in items]
            self.tasks.append(Submitted(node, cpus, retries, replies, future))
        else:
            assert function == "node:remove_files"
            self.removed.append(node)
            future.set_result(None)
        return future

    def finish(self, task: Submitted, *, fails: str = "", seconds: float = 0.1) -> None:
        results = [WorkResult(fact=fact(it, fails), failure=fails, seconds=seconds) for it in task.items]
        self.tasks.remove(task)
        task.future.set_result(msgspec.msgpack.encode(results))

    def break_down(self, task: Submitted, error: Exception) -> None:
        self.tasks.remove(task)
        task.future.set_exception(error)

    def close(self) -> None:
        self.listed = {}


def fact(of: Reply, message: str) -> bytes:
    if message:
        return msgspec.json.encode(failure(of, VerifierError(message)))
    return msgspec.json.encode(
        Verdict(
            key=digest(of.key),
            at="",
            case=of.case,
            model=of.model,
            number=of.number,
            ask=of.key,
            tests="t",
            verifier="v",
            found=Finding(),
        )
    )


class Driver:
    """A run's pool over a scripted Ray."""

    def __init__(self, ray: ScriptedRay, *, wait_seconds: float = 60) -> None:
        self.ray = ray
        options = RunOptions(backend="ray", settings=Settings(ray_wait_secs=wait_seconds))
        self.pool = RayPool([PYTHON, TEXT], verifying([PYTHON, TEXT]), options, cast("Any", ray))
        self.settled: list[Verdict | Failure] = []
        self._numbers = 0

    @asynccontextmanager
    async def at_work(self, *, alone: bool = False) -> AsyncIterator[None]:
        await self.pool.open("here")
        try:
            async with self.pool.at_work(lambda found, _: self.settled.append(found), alone=alone):
                yield
        finally:
            await self.pool.close()

    async def put(self, *cases: Case, text: str = "x") -> None:
        for case in cases:
            self._numbers += 1
            await self.pool.put(reply(case, text, self._numbers), case)

    async def tasks(self, count: int) -> list[Submitted]:
        """What Ray has once it has this many tasks."""
        while len(self.ray.tasks) < count:  # noqa: ASYNC110  what is waited for happens in the pool
            await asyncio.sleep(0.01)
        await asyncio.sleep(3 * DISPATCH_SECONDS)
        assert len(self.ray.tasks) == count
        return list(self.ray.tasks)

    async def finish(self, count: int) -> None:
        """Let every task come to its end until there are so many facts."""
        while len(self.settled) < count:
            for task in list(self.ray.tasks):
                self.ray.finish(task)
            await asyncio.sleep(0.01)

    async def facts(self, count: int) -> list[Verdict | Failure]:
        while len(self.settled) < count:  # noqa: ASYNC110  what is waited for happens in the pool
            await asyncio.sleep(0.01)
        return self.settled


def test_ray_gets_two_tasks_per_processor_and_each_is_bounded_however_quickly_it_is_done() -> None:
    async def check() -> None:
        driver = Driver(ScriptedRay(1, 2))
        async with driver.at_work():
            await driver.put(*[TEXT] * 200)
            first = await driver.tasks(6)
            assert Counter(task.node for task in first) == {"n0": 2, "n1": 4}
            assert {(task.cpus, task.retries, len(task.items)) for task in first} == {(1, 4, 1)}, "nothing is known yet"
            for task in first:
                driver.ray.finish(task, seconds=1e-6)
            again = await driver.tasks(6)
            assert max(len(task.items) for task in again) == -(-194 // 3), "no processor waits for another's share"
            await driver.finish(200)
        assert driver.ray.removed == ["n0", "n1"]
        driver = Driver(ScriptedRay(1, at_once=50))
        async with driver.at_work():
            await driver.put(*[PYTHON] * 20, text="x" * (MAX_BATCH_BYTES // 4))
            assert max([len(task.items) for task in await driver.tasks(2)]) <= 4
            await driver.finish(20)

    run(check())


def test_what_fails_on_a_node_is_tried_on_another_and_three_in_a_row_end_its_work_of_the_kind() -> None:
    async def check() -> None:
        driver = Driver(ScriptedRay(2, 1))
        async with driver.at_work():
            for number in range(3):
                await driver.put(PYTHON)
                (task,) = await driver.tasks(1)
                assert task.node == "n0"
                driver.ray.finish(task, fails="broken disk")
                (task,) = await driver.tasks(1)
                assert task.node == "n1"
                driver.ray.finish(task)
                await driver.facts(number + 1)
            assert [(it.number, it.node) for it in driver.settled if isinstance(it, Verdict)] == [
                (1, "node-1"),
                (2, "node-1"),
                (3, "node-1"),
            ]
            await driver.put(PYTHON, TEXT)
            for task in await driver.tasks(2):
                assert task.node == ("n1" if task.items[0].case == PYTHON.id else "n0")
                driver.ray.finish(task)
        assert driver.pool.notes == ("node-0 takes no more python work: broken disk",)

    run(check())


def test_what_fails_on_every_node_is_a_failure_and_no_node_is_blamed() -> None:
    async def check() -> None:
        driver = Driver(ScriptedRay(2, 1))
        async with driver.at_work():
            await driver.put(PYTHON)
            for node in ("n0", "n1"):
                (task,) = await driver.tasks(1)
                assert task.node == node
                driver.ray.finish(task, fails="no verdict on this")
        (found,) = driver.settled
        assert isinstance(found, Failure)
        assert found.message.endswith("no verdict on this")
        assert driver.pool.notes == ()

    run(check())


def test_what_no_node_can_verify_waits_for_one_and_then_says_why() -> None:
    async def check() -> None:
        driver = Driver(ScriptedRay(1, 1), wait_seconds=0.3)
        async with driver.at_work():
            for node in driver.pool._nodes.values():
                node.unable[0] = "no compiler"
            await driver.put(PYTHON, TEXT)
            (task,) = await driver.tasks(1)
            assert [it.case for it in task.items] == [TEXT.id]
            (found,) = await driver.facts(1)
            assert isinstance(found, Failure)
            assert found.message.endswith(
                "no node of the cluster can verify it: node-0: no compiler; node-1: no compiler"
            )
            driver.ray.finish(task)

    run(check())


def test_what_lost_all_its_nodes_is_given_to_a_new_one() -> None:
    async def check() -> None:
        driver = Driver(ScriptedRay(1))
        async with driver.at_work():
            await driver.put(PYTHON, PYTHON)
            first = await driver.tasks(2)
            driver.ray.listed = {"head": 0, "n1": 1}
            for task in first:
                driver.ray.break_down(task, LookupError("gone"))
            again = await driver.tasks(2)
            assert sorted(it.number for task in again for it in task.items) == [1, 2]
            assert {task.node for task in again} == {"n1"}
            for task in again:
                driver.ray.finish(task)
        assert driver.pool.notes == ("node-0 was lost; its work was verified elsewhere, or by it later",)

    run(check())


def test_a_run_gives_up_when_no_node_comes_back_or_this_machine_is_no_node_any_more() -> None:
    async def left(listed: dict[str, int]) -> str:
        driver = Driver(ScriptedRay(1), wait_seconds=0.2)
        async with driver.at_work():
            await driver.put(PYTHON)
            await driver.tasks(1)
            driver.ray.listed = listed
        assert driver.settled == []
        return driver.pool.given_up

    assert run(left({"head": 0})) == "no node of the Ray cluster was available for 0.2 s"
    assert run(left({"n0": 1})) == "Ray ended on this machine, which must be a node itself"


def test_a_reply_that_workers_die_of_is_missing_and_those_beside_it_are_not() -> None:
    async def check() -> None:
        driver = Driver(ScriptedRay(1, at_once=50))
        async with driver.at_work():
            await driver.put(*[PYTHON] * 3)
            (task,) = await driver.tasks(1)
            assert len(task.items) == 3
            driver.ray.break_down(task, RuntimeError("worker died"))
            for task in await driver.tasks(2):
                (own,) = task.items
                if own.number == 2:
                    driver.ray.break_down(task, RuntimeError("worker died"))
                else:
                    driver.ray.finish(task)
            for task in await driver.tasks(1):
                driver.ray.finish(task)
        found = {it.number: it.message if isinstance(it, Failure) else "" for it in driver.settled}
        assert {number: message.rpartition(": ")[0] for number, message in found.items() if message} == {
            2: "5 workers died while they verified it, the last: RuntimeError"
        }
        assert len(found) == 3

    run(check())


def test_a_reply_that_needs_a_machine_to_itself_gets_all_its_processors() -> None:
    async def check() -> None:
        driver = Driver(ScriptedRay(4, 2))
        async with driver.at_work(alone=True):
            await driver.put(*[PYTHON] * 5)
            found = await driver.tasks(2)
            assert {(task.node, task.cpus, len(task.items)) for task in found} == {("n0", 4, 1), ("n1", 2, 1)}
            await driver.finish(5)

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
        own = {"run": "r", "kinds": kinds, "groups": self._bundle, **terms}
        self.worker = NodeWorker(Terms(**own))

    async def verify(self, replies: Sequence[Reply], limit: CaseLimit | None = None) -> list[WorkResult]:
        places = {case.id: place for place, case in enumerate(self._cases)}
        items = [
            WorkItem(bundle=7, place=places[each.case], reply=msgspec.json.encode(each), limit=limit)
            for each in replies
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
