"""Whether anything is lost or doubled when whatever can die does, over and over.

    python benchmarks/chaos.py [--minutes 60] [--attempts 50000] [--nodes 3] [--seed 1]

A real Ray cluster runs on this machine. A run of cheap attempts is verified on it, while workers, sandboxes, raylets and
the driver are killed at random; the driver is resumed and raylets are started again, until the time is over. Then the run
may end in peace. It must have every reply once, every verdict once, and the verdicts that this machine alone reaches.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from steelyard.analysis.scoring import is_correct
from steelyard.records import Failure, Reply, Verdict
from steelyard.store.journal import StoredRun
from support.ray_nodes import RayCluster, below, end_nodes_on_sigterm

CASES = 50
REFUSALS = 20
"""Drivers that may find no node to begin with; if there are more, it is not the storm that keeps them from it."""
MODEL = """
import asyncio, os
log = os.open(os.environ["ASKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def ask(prompt, attempt):
    await asyncio.sleep(float(os.environ["PAUSE"]))
    os.write(log, (attempt.key + "\\n").encode())
    word = "blue" if int(attempt.key, 16) % 3 else "red"
    return f"```sh\\necho {word}\\n```"
"""
SLOW = """
import time

def score(reply):
    time.sleep(0.002)
    return "blue" in reply
"""


def evals(folder: Path) -> None:
    """Cases that are cheap: most are read or judged by a function, and one runs a shell."""
    (folder / "model.py").write_text(MODEL)
    (folder / "checks.py").write_text(SLOW)
    lines = ["[eval_set]", 'id = "chaos"', 'name = "chaos"']
    for number in range(CASES):
        lines += ["[[cases]]", f'id = "case-{number}"', f'name = "{number}"', f'prompt = "{number}?"']
        if number == 0:
            lines += ["[cases.verify]", 'kind = "command"', 'answer = "answer"', 'results = "exit code"']
            lines += ["test = 'grep -q blue answer'"]
        elif number % 2:
            lines += ['verify = {python = "checks.py:score"}']
        else:
            lines += ['target = "blue"']
    (folder / "evals.toml").write_text("\n".join(lines))
    (folder / "steelyard.toml").write_text("ray_wait_secs = 600\n")


class Storm:
    """The run, the cluster under it, and who kills what."""

    def __init__(self, folder: Path, cluster: RayCluster, options: argparse.Namespace) -> None:
        self._folder = folder
        self._cluster = cluster
        self._nodes = options.nodes
        self._chance = random.Random(options.seed)
        self._samples: int = options.attempts // CASES
        self._pause = options.minutes * 60 * 16 / options.attempts
        """So long does the model think, sixteen at a time, that asking takes about as long as the storm."""
        self._backend = ("--backend", "ray", "--ray-address", cluster.address)
        self._driver: subprocess.Popen[bytes] | None = None
        self._down: dict[int, float] = {}
        self.killed: Counter[str] = Counter()
        self.codes: Counter[int] = Counter()

    def start(self, pause: float | None = None) -> subprocess.Popen[bytes]:
        begin = ["run", "evals.toml", "-m", "python:model.py:ask", "-n", str(self._samples), "--output", "run"]
        command = ["resume", "run"] if (self._folder / "run" / "run.json").exists() else begin
        thinking = str(self._pause if pause is None else pause)
        environment = {**self._cluster.environment, "ASKS": str(self._folder / "asks"), "PAUSE": thinking}
        with (self._folder / "said").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "steelyard.cli", *command, "-j", "16", *self._backend],
                cwd=self._folder,
                env=environment,
                stdout=said,
                stderr=said,
            )

    def rage(self, seconds: float) -> None:
        """Kill for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._driver is None:
                self._driver = self.start()
            time.sleep(self._chance.uniform(2, 12))
            if self._driver.poll() is not None:
                self.codes[self._driver.returncode] += 1
                self._driver = None
                assert self.codes[2] < REFUSALS, (self._folder / "said").read_text()[-3000:]
                if self._is_complete():
                    return
                continue
            self._revive()
            deeds = [self._worker, self._sandbox, self._raylet, self._lose_driver, self._interrupt]
            self._chance.choices(deeds, [8, 6, 2, 2, 1])[0]()

    def calm(self) -> None:
        """Let the run come to its end."""
        for number in list(self._down):
            self._restart(number)
        driver = self._driver or self.start(0)
        while True:
            self.codes[driver.wait()] += 1
            if driver.returncode == 0 and self._is_complete():
                return
            driver = self.start(0)

    def _is_complete(self) -> bool:
        found = StoredRun(self._folder / "run")
        return len({fact.ask for fact in found.facts() if isinstance(fact, Verdict)}) == self._samples * CASES

    def _kill(self, pid: int, what: str, kind: signal.Signals = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, kind)
            self.killed[what] += 1

    def _up(self) -> list[int]:
        return [number for number in range(self._nodes) if number not in self._down]

    def _worker(self) -> None:
        for pid in self._cluster.workers(self._chance.choice(self._up()), idle=True):
            self._kill(pid, "worker")

    def _sandbox(self) -> None:
        for worker in self._cluster.workers(self._chance.choice(self._up()), idle=True):
            started = sorted(below(worker) - {worker})
            if started:
                self._kill(self._chance.choice(started), "sandbox")

    def _raylet(self) -> None:
        """Not that of the driver's own node, the head: nobody else knows who is there."""
        others = [number for number in self._up() if number]
        if others:
            number = self._chance.choice(others)
            self._cluster.kill_raylet(number)
            self.killed["raylet"] += 1
            self._down[number] = time.monotonic() + self._chance.uniform(0, 60)

    def _interrupt(self) -> None:
        if self._driver is not None:
            self._kill(self._driver.pid, "driver, by Ctrl-C", signal.SIGINT)
            self.codes[self._driver.wait()] += 1
            self._driver = None

    def _lose_driver(self) -> None:
        if self._driver is not None:
            self._kill(self._driver.pid, "driver")
            self.codes[self._driver.wait()] += 1
            self._driver = None

    def _revive(self) -> None:
        for number, moment in list(self._down.items()):
            if time.monotonic() > moment:
                self._restart(number)

    def _restart(self, number: int) -> None:
        self._cluster.kill(number)
        self._cluster.start(number)
        del self._down[number]


def verdicts(folder: Path) -> tuple[dict[str, bool], Counter[str], int]:
    """The outcome of each attempt, how many each node verified, and the failures on the way; raises when one is doubled."""
    stored = StoredRun(folder)
    replies: set[str] = set()
    outcomes: dict[str, bool] = {}
    cases = {case.id: case for case in stored.cases}
    nodes: Counter[str] = Counter()
    failures = 0
    for fact in stored.facts():
        if isinstance(fact, Reply):
            assert fact.key not in replies, f"two replies: {fact}"
            replies.add(fact.key)
        elif isinstance(fact, Verdict):
            assert fact.ask not in outcomes, f"two verdicts: {fact}"
            outcomes[fact.ask] = is_correct(cases[fact.case], fact.found)
            nodes[fact.node] += 1
        elif isinstance(fact, Failure):
            failures += 1
    assert not stored.damaged
    assert outcomes.keys() == replies, f"{len(replies - outcomes.keys())} replies without a verdict"
    return outcomes, nodes, failures


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("--attempts", type=int, default=50_000)
    options.add_argument("--nodes", type=int, default=3)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    end_nodes_on_sigterm()
    with tempfile.TemporaryDirectory() as scratch, RayCluster(given.nodes) as cluster:
        folder = Path(scratch)
        evals(folder)
        storm = Storm(folder, cluster, given)
        began = time.monotonic()
        storm.rage(60 * given.minutes)
        storm.calm()
        minutes = (time.monotonic() - began) / 60
        outcomes, nodes, failures = verdicts(folder / "run")
        wrong = [key for key, passed in outcomes.items() if passed != bool(int(key, 16) % 3)]
        asks = Counter((folder / "asks").read_text().split())
        print(
            f"killed in {minutes:.1f} minutes: {', '.join(f'{what} {count}x' for what, count in storm.killed.items())}"
        )
        print(f"exit codes of the driver: {dict(storm.codes)}")
        print(f"attempts: {len(outcomes):,}, each with one reply and one verdict, {len(wrong)} of them wrong")
        print(f"verified by: {', '.join(f'{node} {count:,}' for node, count in sorted(nodes.items()))}")
        print(
            f"failures that were made good: {failures}; asked for again because the answer was lost: {asks.total() - len(asks)}"
        )
        said = (folder / "said").read_text()
        print(f"tracebacks: {said.count('Traceback')}")
        assert len(outcomes) == given.attempts // CASES * CASES
        assert not wrong
        assert "Traceback" not in said, said[-3000:]


if __name__ == "__main__":
    main()
