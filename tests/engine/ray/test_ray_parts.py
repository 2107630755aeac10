"""The parts of the Ray backend, each without a cluster: addresses, what waits, what travels, and a node by itself."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from steelyard.engine.ray.backlog import Backlog, Piece
from steelyard.engine.ray.bundles import KEPT, TOGETHER, Bundles
from steelyard.engine.ray.cluster import Found, address
from steelyard.engine.ray.gateway import reason
from steelyard.engine.ray.node import Disk, Node, surroundings
from steelyard.engine.ray.pool import MOST, MOST_BYTES, RayPool, Worker
from steelyard.engine.ray.wire import Bundle, Done, Introduction, Item, Terms, needs
from steelyard.engine.session import RunOptions
from steelyard.engine.steps import verify_with_retry
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import InputError
from steelyard.providers.agent import workspaces
from steelyard.records import Answer, Case, Expectations, Failure, Reply, Verdict, Verify, digest
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


# ---- what waits


def piece(number: int, case: str = "a", kind: str = "python") -> Piece:
    made = Case(id=case, prompt="?", verify=Verify(kind=kind))
    return Piece(number, reply(made, "x", number), made, needs(made), 10)


def taken(backlog: Backlog, kinds: Sequence[str] = ("python", "rust"), node: str = "") -> list[int]:
    order = []
    while (waiting := backlog.next(lambda it: it.case.kind in kinds and node not in it.failed)) is not None:
        backlog.take(waiting)
        order.append(waiting.number)
    return order


def test_pieces_are_taken_in_order_but_those_of_one_case_together_and_by_whoever_can() -> None:
    backlog = Backlog()
    for each in (piece(1, "a"), piece(2, "b"), piece(3, "a"), piece(4, "r", "rust"), piece(5, "b")):
        backlog.add(each)
    assert (backlog.count, backlog.size) == (5, 50)
    assert taken(backlog, ["python"]) == [1, 3, 2, 5]
    assert backlog.next(lambda it: it.case.kind == "python") is None
    assert taken(backlog) == [4]
    assert (backlog.count, backlog.size) == (0, 0)


def test_what_a_lost_node_had_is_taken_next_in_the_order_it_had_it() -> None:
    backlog = Backlog()
    first, second, third = piece(1, "a"), piece(2, "b"), piece(3, "b")
    for each in (first, second, third, piece(4, "c")):
        backlog.add(each)
    for each in (first, second, third):
        assert backlog.next(lambda _: True) is each
        backlog.take(each)
    for each in (third, second, first):
        backlog.give_back(each)
    assert taken(backlog) == [1, 2, 3, 4]


def test_what_failed_on_a_node_waits_for_another_and_does_not_hold_up_the_rest() -> None:
    backlog = Backlog()
    broken = piece(1)
    broken.failed["node"] = Failure(key="", at="", case="a", model="", number=1, stage="verify", message="?")
    backlog.add(broken)
    backlog.add(piece(2))
    assert taken(backlog, node="node") == [2]
    assert taken(backlog, node="other") == [1]


def test_what_nobody_is_left_for_is_taken_out_and_nothing_else() -> None:
    backlog = Backlog()
    for each in (piece(1), piece(2, "r", "rust"), piece(3, "s", "rust"), piece(4, "b")):
        backlog.add(each)
    assert [each.number for each in backlog.hopeless(lambda it: it.case.kind != "rust")] == [2, 3]
    assert taken(backlog) == [1, 4]


# ---- what travels


def verifying(cases: Sequence[Case]) -> VerifierSet:
    return VerifierSet(cases, RunOptions(backend="ray"))


def test_every_case_is_found_in_the_bundle_that_it_travels_in(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with_workspace = {5, 6, 130}
    cases = [
        Case(id=f"c{number}", prompt="?", target="x", workspace=str(tmp_path) if number in with_workspace else "")
        for number in range(300)
    ]
    cases.insert(50, Case(id="opinion", prompt="?", verify=Verify(kind="judge")))
    bundles = Bundles(cases, verifying(cases))
    sizes = set()
    for case in cases:
        if case.by_judges:
            continue
        place = bundles.place(case)
        bundle = msgspec.json.decode(bundles.packed(place.bundle).content, type=Bundle)
        assert bundle.cases[place.within] == case
        assert not case.workspace or len(bundle.cases) == 1
        sizes.add(len(bundle.cases))
    assert max(sizes) == TOGETHER
    assert KEPT > 2


def test_long_cases_travel_few_at_a_time() -> None:
    cases = [Case(id=f"c{number}", prompt="?" * (1 << 20), target="x") for number in range(10)]
    cases[7] = Case(id="c7", prompt="?" * (9 << 20), target="x")
    bundles = Bundles(cases, verifying(cases))
    assert [bundles.place(case).bundle for case in cases] == [0, 0, 0, 1, 1, 1, 2, 3, 4, 4]


def test_what_a_node_has_in_hand_is_bounded_however_quickly_it_verifies_and_however_long_replies_are() -> None:
    async def in_hand(text: str) -> int:
        pool = RayPool([TEXT], verifying([TEXT]), RunOptions(backend="ray"))
        pool._alone = False
        pool._seconds["response"] = 1e-6
        worker = Worker(Found("a", "a", 64), actor=1, at_once={"response": 64})
        for number in range(3 * MOST):
            pool._backlog.add(Piece(number, reply(TEXT, "", number), TEXT, needs(TEXT), len(text)))
        while pool._batch(worker):
            pass
        return len(worker.in_hand)

    assert run(in_hand("short")) == 2 * MOST
    assert run(in_hand("long" * (1 << 18))) == 2 * MOST_BYTES >> 20


def test_what_ray_tells_in_a_traceback_is_told_in_a_line() -> None:
    trace = "\x1b[36mray::Node.__init__()\x1b[39m (pid=1)\n  File \"x.py\", line 3, in y\nModuleNotFoundError: No module named 'z'\n"
    assert reason(RuntimeError(trace)) == "ModuleNotFoundError: No module named 'z'"
    assert (
        reason(RuntimeError("The actor died.\n\tclass_name: Node\n"))
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
    disk = Disk()
    try:
        settled = disk.settled(case, msgspec.json.decode(msgspec.json.encode(bundle), type=Bundle))
        assert settled.tests_digest == case.tests_digest
        assert (
            workspaces.workspace_digest(workspaces.workspace_files(settled.workspace)) == case.verify.workspace_digest
        )
        check = Path(settled.verify.python.rpartition(":")[0])
        assert check.read_text().startswith("def score")
        assert settled.expectations.custom_check == settled.verify.python
        folder = check.parents[2]
    finally:
        disk.remove()
    assert not folder.exists()


def test_a_node_removes_what_a_killed_one_left_and_nothing_of_one_that_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    case = Case(id="a", prompt="?", verify=Verify(python="/nowhere/checks.py:score"))
    bundle = Bundle(cases=(case,), surroundings=((),), checks={"/nowhere/checks.py": b"x"})
    first, second = Disk(), Disk()
    mine = Path(first.settled(case, bundle).verify.python.rpartition(":")[0])
    second.settled(case, bundle)
    assert mine.exists()
    assert first._lock is not None
    first._lock.close()  # as the system does when a process is killed
    third = Disk()
    third.settled(case, bundle)
    assert not mine.exists()
    for disk in (second, third):
        disk.remove()
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


class Driven:
    """A node without Ray around it."""

    def __init__(self, cases: Sequence[Case], *, cpus: float = 2, **terms: Any) -> None:
        self._cases = cases
        there = verifying(cases)
        self._bundle = Bundles(cases, there).bundle(cases)
        kinds = {case.kind: there.of(case).version for case in cases}
        self._terms = Terms(**{"kinds": kinds, "representatives": self._bundle, "cpus": cpus, **terms})
        self.node = Node()

    async def introduced(self) -> Introduction:
        return msgspec.json.decode(await self.node.introduce(msgspec.json.encode(self._terms)), type=Introduction)

    async def give(self, replies: Sequence[Reply]) -> None:
        places = {case.id: place for place, case in enumerate(self._cases)}
        items = [
            Item(number=number, bundle="b", place=places[each.case], reply=each) for number, each in enumerate(replies)
        ]

        async def fetched() -> bytes:
            return msgspec.json.encode(self._bundle)

        bundles = {"b": fetched()}
        await self.node.give(msgspec.json.encode(items), bundles)
        for unused in bundles.values():
            unused.close()

    async def collected(self, count: int) -> dict[int, Done]:
        found: dict[int, Done] = {}
        while len(found) < count:
            for done in msgspec.json.decode(await self.node.collect(0, 0.2), type=list[Done]):
                assert done.number not in found
                found[done.number] = done
        return found


def test_a_node_reaches_the_verdicts_of_this_machine_and_says_each_once() -> None:
    replies = [
        reply(PYTHON, "```python\ndef add(a, b):\n    return a + b\n```"),
        reply(PYTHON, "```python\ndef add(a, b):\n    return a - b\n```"),
        reply(PYTHON, "```python\nimport os\nos._exit(0)\n```"),
        reply(TEXT, "it is blue"),
        reply(TEXT, "it is red"),
    ]

    async def there() -> dict[int, Done]:
        driven = Driven([PYTHON, TEXT])
        introduced = await driven.introduced()
        assert introduced.unable == {}
        assert introduced.level
        try:
            await driven.give(replies)
            return await driven.collected(len(replies))
        finally:
            await driven.node.close()

    async def here() -> list[Verdict | Failure]:
        own = VerifierSet([PYTHON, TEXT], RunOptions())
        try:
            cases = {case.id: case for case in (PYTHON, TEXT)}
            return [await verify_with_retry(each, cases[each.case], own.of(cases[each.case])) for each in replies]
        finally:
            await own.close()

    found, wanted = run(there()), run(here())
    for number, fact in enumerate(wanted):
        told = found[number].fact
        assert isinstance(fact, Verdict)
        assert isinstance(told, Verdict)
        assert bare(told) == bare(fact)


def test_a_node_takes_nothing_for_which_it_has_another_verifier_tools_or_surroundings() -> None:
    async def unable(cases: Sequence[Case], **terms: Any) -> dict[int, str]:
        driven = Driven(cases, **terms)
        try:
            return (await driven.introduced()).unable
        finally:
            await driven.node.close()

    kinds = {"python": "python 1, CPython 2.7", "response": verifying([TEXT]).of(TEXT).version}
    other = run(unable([PYTHON, TEXT], kinds=kinds))
    assert list(other) == [0]
    assert "and the driver python 1, CPython 2.7" in other[0]
    (missing,) = run(unable([SHELL])).values()
    assert "not found in the sandbox: no-such-tool" in missing
    bundle = Bundles([PYTHON], verifying([PYTHON])).bundle([PYTHON])
    more = msgspec.structs.replace(bundle, surroundings=(("numpy-2.0.0", "pandas-2.2.0"),))
    (lacking,) = run(unable([PYTHON], representatives=more)).values()
    assert lacking == "it lacks what the driver has: numpy-2.0.0, pandas-2.2.0"


def test_a_node_whose_sandbox_is_too_weak_still_reads_texts() -> None:
    async def introduced() -> Introduction:
        driven = Driven([PYTHON, TEXT], require_isolation="full" if sys.platform == "darwin" else "seatbelt")
        driven._terms = msgspec.structs.replace(driven._terms, require_isolation="unheard of")
        try:
            return await driven.introduced()
        finally:
            await driven.node.close()

    found = run(introduced())
    assert list(found.unable) == [0]
    assert found.level == ""
    assert list(found.at_once) == ["response"]


def test_a_node_uses_as_many_processors_as_ray_says_it_has() -> None:
    async def rooms(cpus: float) -> dict[str, int]:
        driven = Driven([PYTHON, TEXT], cpus=cpus)
        try:
            return (await driven.introduced()).at_once
        finally:
            await driven.node.close()

    assert run(rooms(1)) == {"python": 1, "response": 1}
    assert run(rooms(6)) == {"python": 6, "response": 6}


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
    assert f"steelyard[ray]=={version('steelyard')}" in str(config["setup_commands"])
