"""Verifying on a real Ray cluster of two nodes: the same verdicts, whatever dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

from support.facts import facts
from support.ray_evals import Evals, bare, fenced
from support.ray_nodes import SOURCE, WEAK, RayCluster, below, gone, needs_ray
from support.toolchains import needs

pytestmark = needs_ray()

ATTACK = """
import os, socket, sys

def attempt(what, deed):
    try:
        deed()
    except Exception:
        return
    print("ESCAPED", what)

def dial(address):
    socket.create_connection(address, timeout=1).close()

def connect(path):
    with socket.socket(socket.AF_UNIX) as dialled:
        dialled.connect(path)

for port in @PORTS@:
    for host in ("127.0.0.1", "127.0.0.2", "::1"):
        attempt((host, port), lambda: dial((host, port)))
for path in @SOCKETS@:
    attempt(path, lambda: connect(path))
    if @UNSEEN@:
        attempt(path, lambda: os.stat(path))
for folder in @FOLDERS@:
    attempt(folder, lambda: os.listdir(folder))
if [name for name in os.environ if name.startswith("RAY")]:
    print("ESCAPED into the environment")
for process in range(1, 40000):
    attempt(process, lambda: open(f"/proc/{process}/environ").read().index("RAY_AUTH_TOKEN"))
print("TRIED")

def add(a, b):
    return a + b
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with RayCluster() as running:
        yield running


def on(cluster: RayCluster, *more: str) -> list[str]:
    return ["--backend", "ray", "--ray-address", cluster.address, *more]


def attack(cluster: RayCluster, *, unseen: bool = True) -> str:
    """An answer that is right, and looks for a way to Ray before it says so; where it may not even see that it is there, `unseen`."""
    folders = sorted({str(folder) for socket in cluster.sockets() for folder in Path(socket).parents} - {"/", "/tmp"})
    known: dict[str, list[int] | list[str] | int] = {
        "@PORTS@": cluster.ports(),
        "@SOCKETS@": cluster.sockets(),
        "@FOLDERS@": folders,
        "@UNSEEN@": int(unseen),
    }
    assert len(cluster.ports()) >= 8
    # a raylet that was started again on a busy machine leaves its first ones
    assert len(cluster.sockets()) >= 4
    code = ATTACK
    for word, value in known.items():
        code = code.replace(word, json.dumps(value))
    return fenced(code)


def outputs(evals: Evals, run: str, case: str) -> set[str]:
    return {verdict.found.output for verdict in facts(evals.folder / run).verdicts if verdict.case == case}


def lines(evals: Evals, run: str) -> int:
    journal = evals.folder / run / "attempts.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def wait_for(evals: Evals, run: str, count: int, process: subprocess.Popen[str]) -> None:
    while lines(evals, run) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def workers_and_sandboxes(cluster: RayCluster, *numbers: int) -> set[int]:
    """The processes that verify on some nodes, as soon as there are any: between two tasks there are none."""
    while not (found := [worker for number in numbers for worker in cluster.workers(number)]):
        time.sleep(0.01)
    return set().union(*map(below, found))


def all_there(evals: Evals, run: str, samples: int, stored: Set[str] | None = None) -> None:
    """Every attempt was asked for once and has one verdict, or was never to have one.

    Where the driver died, a request that was in flight is made again, but none whose reply was `stored` by then.
    """
    found = facts(evals.folder / run)
    assert len(found.replies) == len({reply.key for reply in found.replies}) == evals.cases * samples
    assert len(found.verdicts) == len({verdict.key for verdict in found.verdicts})
    judged = {verdict.ask for verdict in found.verdicts}
    assert {reply.case for reply in found.replies if reply.key not in judged} == {"asks"}
    asked = Counter((evals.folder / "asks").read_text().split())
    again = {key for key, times in asked.items() if times > 1}
    assert not again & (asked.keys() if stored is None else stored), "a reply that was stored was asked for again"


def survives(evals: Evals, cluster: RayCluster, samples: int) -> None:
    """A run loses a raylet, then its driver, and comes out as on this machine all the same."""
    # nobody on a node may import what lies where the run was begun
    (evals.folder / "msgspec.py").write_text("raise SystemError('not ours')\n")
    quiet = fenced("def add(a, b):\n    return a + b\n")
    evals.add("reaches", [attack(cluster), *[quiet] * 3], language="python", tests="assert add(1, 2) == 3\n")
    environment = {**cluster.environment, "ASKS": str(evals.folder / "asks")}
    driver = evals.start("there", samples, *on(cluster), environment=environment)
    wait_for(evals, "there", evals.cases * samples + 20, driver)
    cluster.kill_raylet(1)
    wait_for(evals, "there", lines(evals, "there") + samples, driver)
    started = workers_and_sandboxes(cluster, 0)
    driver.kill()
    driver.communicate()
    assert gone(started) == set(), "workers and sandboxes outlive their driver"
    stored = {reply.key for reply in facts(evals.folder / "there").replies}
    said = evals.finish("there", samples, *on(cluster), environment=environment)
    all_there(evals, "there", samples, stored)
    assert set(evals.nodes("there")) == {"node-0", "node-1"}
    evals.finish("here", samples)
    assert evals.verdicts("there") == evals.verdicts("here")
    # a check that raises is no verdict, here as there
    assert {failure.case for failure in facts(evals.folder / "there").failures} == {"asks"}
    assert outputs(evals, "there", "reaches") == {"TRIED\n", ""}
    assert "Traceback" not in said


def test_two_nodes_reach_the_verdicts_of_this_machine_whatever_answers_do_and_whoever_dies(tmp_path: Path) -> None:
    with RayCluster() as cluster:
        survives(Evals(tmp_path, forever=False), cluster, 16)


@pytest.mark.slow
@needs("rustc")
def test_two_thousand_attempts_of_all_kinds_come_out_as_on_this_machine_whoever_dies(tmp_path: Path) -> None:
    with RayCluster() as cluster:
        evals = Evals(tmp_path, rust=True)
        survives(evals, cluster, 2000 // evals.cases)
        assert len(facts(tmp_path / "there").replies) >= 2000


@pytest.mark.slow
def test_all_replies_are_verified_again_on_the_nodes(tmp_path: Path, cluster: RayCluster) -> None:
    evals = Evals(tmp_path, forever=False)
    evals.finish("there", 4)
    here = evals.verdicts("there")
    again = [sys.executable, "-P", "-m", "steelyard.cli", "verify", "there", *on(cluster)]
    subprocess.run(again, cwd=tmp_path, env=cluster.environment, check=True, capture_output=True)
    assert {verdict.node for verdict in facts(tmp_path / "there").verdicts} == {"", "node-0", "node-1"}
    latest = {verdict.key: bare(verdict) for verdict in facts(tmp_path / "there").verdicts if verdict.node}
    assert latest == here


@pytest.mark.slow
def test_a_killed_worker_costs_no_attempt(tmp_path: Path, cluster: RayCluster) -> None:
    evals = Evals(tmp_path, forever=False)
    samples = 60
    environment = {**cluster.environment, "ASKS": str(tmp_path / "asks")}
    driver = evals.start("there", samples, *on(cluster), environment=environment)
    wait_for(evals, "there", evals.cases * samples + 20, driver)
    while not (workers := cluster.workers(1)):
        time.sleep(0.01)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    _, said = driver.communicate(timeout=1000)
    assert driver.returncode == 0, said
    all_there(evals, "there", samples)


@pytest.mark.slow
def test_an_interrupted_run_ends_its_workers_and_sandboxes_and_goes_on_later(
    tmp_path: Path, cluster: RayCluster
) -> None:
    evals = Evals(tmp_path, forever=False)
    samples = 40
    environment = {**cluster.environment, "ASKS": str(tmp_path / "asks")}
    driver = evals.start("there", samples, *on(cluster), environment=environment)
    wait_for(evals, "there", evals.cases * samples + 20, driver)
    started = workers_and_sandboxes(cluster, 0, 1)
    os.kill(driver.pid, signal.SIGINT)
    _, said = driver.communicate(timeout=200)
    assert driver.returncode == 130, said
    assert "resume there" in said
    assert "Traceback" not in said
    assert gone(started) == set()
    evals.finish("there", samples, *on(cluster), environment=environment)
    all_there(evals, "there", samples)


@pytest.mark.slow
def test_a_run_keeps_the_limit_that_a_node_found(tmp_path: Path, cluster: RayCluster) -> None:
    case = {"id": "add", "prompt": "?", "language": "python", "test": "assert add(1, 2) == 3", "entry_point": "add"}
    right = "def add(a, b):\n    return a + b\n"
    (tmp_path / "set.jsonl").write_text(json.dumps({**case, "reference": right}) + "\n")
    texts = [f"```python\ndef add(a, b):\n    while True: pass  # {number}\n```" for number in range(4)]
    lines = [json.dumps({"case_id": "add", "raw_response": text}) for text in texts]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-P", "-m", "steelyard.cli", "run", "set.jsonl", "--models", "replay:samples.jsonl"]
    command += ["--output", "there", *on(cluster)]
    subprocess.run(command, cwd=tmp_path, env=cluster.environment, capture_output=True, check=False)
    assert {verdict.found.label for verdict in facts(tmp_path / "there").verdicts} == {"cpu limit"}
    (limit,) = map(json.loads, (tmp_path / "there" / "limits.jsonl").read_text().splitlines())
    assert (limit["seconds"], limit["node"] in {"node-0", "node-1"}) == (2, True)


@pytest.mark.slow
@needs("rustc")
def test_a_node_without_the_toolchain_takes_no_work_that_needs_it(tmp_path: Path) -> None:
    with RayCluster(1) as cluster:
        cluster.start(1, {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
        evals = Evals(tmp_path, rust=True, forever=False)
        said = evals.finish("there", 20, *on(cluster), environment=cluster.environment)
        nodes = evals.nodes("there")
        assert "rusty" in nodes["node-0"]
        assert nodes["node-1"]
        assert "rusty" not in nodes["node-1"]
        assert "node-1 takes no rust work: no Rust compiler here" in said
        cluster.kill(0)


@pytest.mark.slow
def test_a_weaker_sandbox_reaches_ray_no_more_than_a_strong_one_and_gets_no_work_that_wants_a_strong_one(
    tmp_path: Path,
) -> None:
    with RayCluster(1) as cluster:
        cluster.start(1, wrapper=(sys.executable, "-c", WEAK))
        evals = Evals(tmp_path, forever=False)
        # landlock hides what is in a file, not that there is one
        reaches = attack(cluster, unseen=False)
        evals.add("reaches", [reaches], language="python", tests="assert add(1, 2) == 3\n")
        evals.finish("any", 20, *on(cluster), environment=cluster.environment)
        levels = {
            (verdict.node, verdict.found.isolation)
            for verdict in facts(tmp_path / "any").verdicts
            if verdict.found.trust
        }
        assert levels == {("node-0", "full"), ("node-1", "landlock")}
        assert outputs(evals, "any", "reaches") == {"TRIED\n"}
        strong = on(cluster, "--require-isolation", "bubblewrap")
        said = evals.finish("strong", 20, *strong, environment=cluster.environment)
        assert evals.nodes("strong")["node-1"] <= {"says", "asks"}
        assert "node-1 takes no python work: this machine does not support isolation level bubblewrap" in said


@pytest.mark.slow
def test_a_node_with_another_state_of_the_code_gets_no_work_and_a_cluster_of_such_nodes_is_refused(
    tmp_path: Path,
) -> None:
    states = []
    for name in ("older", "newer"):
        shutil.copytree(SOURCE, tmp_path / name)
        with (tmp_path / name / "steelyard" / "errors.py").open("a") as file:
            file.write(f"# {name}\n")
        states.append(str(tmp_path / name))
    with RayCluster(1) as cluster:
        older, newer = ({"PYTHONPATH": os.pathsep.join([it, cluster.environment["PYTHONPATH"]])} for it in states)
        cluster.start(1, older)
        evals = Evals(tmp_path, forever=False)
        said = evals.finish("there", 2, *on(cluster), environment=cluster.environment)
        assert set(evals.nodes("there")) == {"node-0"}
        assert "node-1 takes no work: its steelyard" in said
        refused = evals.finish("none", 2, *on(cluster), environment={**cluster.environment, **newer}, code=2)
        assert len(refused.strip().splitlines()) == 1
        assert not any((tmp_path / "none").iterdir()), "it was made to see that it can be, and holds no run"


@pytest.mark.slow
def test_a_run_whose_nodes_are_all_gone_stops_with_a_sentence_and_goes_on_later(tmp_path: Path) -> None:
    with RayCluster() as cluster:
        evals = Evals(tmp_path, forever=False)
        (tmp_path / "steelyard.toml").write_text("ray_wait_secs = 5\n")
        samples = 60
        environment = {**cluster.environment, "ASKS": str(tmp_path / "asks")}
        driver = evals.start("there", samples, *on(cluster), environment=environment)
        wait_for(evals, "there", evals.cases * samples + 20, driver)
        cluster.kill(1)
        cluster.kill(0)
        _, said = driver.communicate(timeout=600)
        assert driver.returncode == 3, said
        assert "no node of the Ray cluster was available for 5 s" in said
        assert "Traceback" not in said
        cluster.start(0)
        driver = evals.start("there", samples, *on(cluster), environment=environment)
        wait_for(evals, "there", lines(evals, "there") + samples, driver)
        # Ray may end the driver with its raylet, without a word of ours
        cluster.kill_raylet(0)
        driver.communicate(timeout=600)
        assert driver.returncode in (1, 3)
        cluster.kill(0)
        cluster.start(0)
        evals.finish("there", samples, *on(cluster), environment=environment)
        all_there(evals, "there", samples)


@pytest.mark.slow
def test_where_no_cluster_runs_one_is_started_for_the_run_and_ended_with_it(tmp_path: Path) -> None:
    evals = Evals(tmp_path, forever=False)
    before = set(Path("/tmp").glob("ray-*"))
    environment = {**os.environ, "ASKS": str(tmp_path / "asks"), "RAY_TMPDIR": str(tmp_path)}
    driver = evals.start("there", 10, "--backend", "ray", environment=environment)
    wait_for(evals, "there", evals.cases * 10 + 10, driver)
    started = below(driver.pid)
    _, said = driver.communicate(timeout=1000)
    assert driver.returncode == 0, said
    all_there(evals, "there", 10)
    assert len(started) > 5
    assert gone(started) == set()
    assert set(Path("/tmp").glob("ray-*")) <= before
