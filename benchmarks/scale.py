"""What a Ray cluster costs and gains: CPU per attempt, two nodes against one, and the driver's memory.

    python benchmarks/scale.py [overhead] [speedup] [memory] [--attempts 1000] [--repeat 3] [--memory 100000,1000000]

Every cluster is a real one of raylets on this machine. CPU time is that of a run's processes: the driver, the
workers and all that they start; what Ray's own daemons use meanwhile is printed beside it. What does not depend on the number
of attempts, such as the start of Python and Ray, is taken out: what is used between the tenth part of the verdicts and the last ones counts. Of
several rounds, local and on Ray in turns, the cheapest counts, because a busy machine can only add to it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.ray_nodes import SOURCE, RayCluster, below, end_nodes_on_sigterm

AIM_OVERHEAD = 0.10
AIM_SPEEDUP = {"computing": 1.75, "waiting": 1.9}
AIM_GROWTH = 1.2
TICK = os.sysconf("SC_CLK_TCK")
MODEL = """
import itertools
import json
from pathlib import Path

answer = json.loads((Path(__file__).parent / "answer.json").read_text())
numbers = itertools.count()

async def ask(prompt):
    return answer.replace("def squeeze", f"# answer {next(numbers)}\\ndef squeeze", 1)
"""
"""No two answers are alike: equal ones would be verified once."""
PLAIN = "for _ in range(@LOOPS@):\n    pass\n"
QUICK = """```python
def squeeze(text):
    kept = []
    for letter in text:
        if not kept or kept[-1] != letter:
            kept.append(letter)
    return "".join(kept)
```
"""
COMPUTES = QUICK.replace("    kept = []\n", "    for _ in range(@LOOPS@):\n        pass\n    kept = []\n", 1)
WAITS = QUICK.replace("    kept = []\n", "    import time\n    time.sleep(0.05)\n    kept = []\n", 1)
TESTS = "".join(
    f"assert squeeze({word!r}) == {out!r}\n" for word, out in [("aab", "ab"), ("", ""), ("abba", "aba"), ("xxx", "x")]
)


class Window(NamedTuple):
    """CPU seconds of everything that runs, at one time or between two."""

    at: float
    nodes: float
    driver: float
    daemons: float
    machine: float
    """All that ran on this machine, other people's work included."""
    verdicts: float
    """Verdicts that were written."""

    def since(self, before: Window) -> Window:
        return Window(*(now - then for now, then in zip(self, before, strict=True)))


class Spent(NamedTuple):
    """What a run used up."""

    cpu: float
    """Seconds of the run's own processes, on all nodes."""
    daemons: float
    """Seconds of Ray's own meanwhile."""
    wall: float
    """Seconds from the first verdict to the last."""
    peak: float
    """Megabytes of the driver at the most, while it verified."""
    whole: float
    """Megabytes of the driver at the most, its summary included."""
    window: Window | None = None
    """What was used between the first verdict and the last, as nearly as the meter looks."""


class Meter(threading.Thread):
    """Looks at a cluster's processes several times a second: those that are gone have left their time to their parents."""

    def __init__(self, cluster: RayCluster | None, driver: int, journal: Path, attempts: int, skipped: int) -> None:
        """The window begins after so many verdicts were `skipped`."""
        super().__init__(daemon=True)
        self._cluster, self._driver, self._journal, self._attempts = cluster, driver, journal, attempts
        self._from = skipped
        self._ended = threading.Event()
        self.workers = self.peak = self.whole = 0.0
        self._seen: set[int] = set()
        """Workers that were in a task of ours: between two tasks they look like any other."""
        self._before = self._daemons()
        self.daemons = 0.0
        self.first: Window | None = None
        self.last: Window | None = None

    def run(self) -> None:
        verified = 0
        while not self._ended.wait(0.25):
            # one that has ended and is not buried yet tells of no memory
            with contextlib.suppress(OSError, IndexError):
                status = Path(f"/proc/{self._driver}/status").read_text()
                memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024
                self.whole = max(self.whole, memory)
                if verified < self._attempts:
                    self.peak = max(self.peak, memory)
                    verified = _verdicts(self._journal) if self._journal.exists() else 0
            if self._cluster is not None:
                self._seen.update(pid for number in self._cluster.numbers for pid in self._cluster.workers(number))
                self.workers = max(self.workers, sum(map(_cpu, set().union(*map(below, self._seen)))))
                self.daemons = max(self.daemons, self._daemons() - self._before)
            if self._from < verified < self._attempts:
                driver = sum(map(_cpu, below(self._driver)))
                self.last = Window(time.monotonic(), self.workers, driver, self.daemons, _machine(), verified)
                self.first = self.first or self.last

    @property
    def window(self) -> Window | None:
        """What was used from about the first verdict to about the last."""
        return self.last.since(self.first) if self.first and self.last else None

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _daemons(self) -> float:
        if self._cluster is None:
            return 0.0
        own = {pid for number in self._cluster.numbers for pid in self._cluster.processes(number)}
        return sum(_cpu(pid, with_children=False) for pid in own - self._seen)


def _cpu(pid: int, *, with_children: bool = True) -> float:
    """Seconds of a process, and of those of its children that it has buried."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11:15] if with_children else fields[11:13])) / TICK
    return 0.0


def _machine() -> float:
    """CPU seconds of all processes of this machine."""
    user, nice, system, _idle, _waiting, *rest = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + sum(rest)) / TICK


_seen: dict[Path, tuple[int, int]] = {}


def _verdicts(journal: Path) -> int:
    """How many verdicts a journal has; only what is new since the last time is read."""
    place, count = _seen.get(journal, (0, 0))
    with journal.open("rb") as file:
        file.seek(place)
        while chunk := file.read(16 << 20):
            count += chunk.count(b'{"kind":"verdict"')
        _seen[journal] = file.tell(), count
    return count


def evals(folder: Path, cases: int, answer: str, *, code: bool) -> None:
    """An eval set of equal cases, all answered alike."""
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "answer.json").write_text(json.dumps(answer))
    lines = ["[eval_set]", 'id = "scale"', 'name = "scale"']
    for number in range(cases):
        lines += ["[[cases]]", f'id = "case-{number}"', f'name = "{number}"', f'prompt = "squeeze, {number}"']
        lines += (
            ['language = "python"', "[cases.expectations]", f"test_file = {json.dumps(TESTS)}"]
            if code
            else ['target = "kept"']
        )
    (folder / "evals.toml").write_text("\n".join(lines))


def spent(folder: Path, samples: int, attempts: int, cluster: RayCluster | None, skipped: int = 0) -> Spent:
    """Run it here, or on a cluster; the window begins after so many verdicts were `skipped`."""
    name = f"run-{time.monotonic_ns()}"
    backend = ["--backend", "ray", "--ray-address", cluster.address] if cluster else []
    command = ["run", "evals.toml", "-m", "python:model.py:ask", "-n", str(samples), "--output", name, *backend]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "said").open("wb") as said:
        driver = subprocess.Popen(
            [sys.executable, "-m", "steelyard.cli", *command],
            cwd=folder,
            # the same code here as on the nodes
            env=cluster.environment if cluster else {**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=said,
            stderr=said,
        )
        meter = Meter(cluster, driver.pid, folder / name / "attempts.jsonl", attempts, skipped)
        meter.start()
        try:
            code = driver.wait()
        finally:
            # also when this program is ended: nothing may outlive it
            driver.kill()
    meter.end()
    assert code == 0, (folder / "said").read_text()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(own + meter.workers, meter.daemons, _span(folder / name), meter.peak, meter.whole, meter.window)


def _span(run: Path) -> float:
    """Seconds from the first verdict to the last."""
    first, last = "", ""
    with (run / "attempts.jsonl").open("rb") as file:
        for line in file:
            if line.startswith(b'{"kind":"verdict"'):
                last = line.partition(b'"at":"')[2].partition(b'"')[0].decode()
                first = first or last
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def overhead(scratch: Path, attempts: int, repeat: int) -> None:
    """CPU per attempt here and on a cluster of one node, with as many processors."""
    print("\nCPU per attempt, local and on one node of Ray (milliseconds; the start of everything taken out)")
    with RayCluster(1, cpus=os.cpu_count() or 1) as cluster:
        for title, code, size in (
            ("Python, in a sandbox", True, 3 * attempts),
            ("text, only read", False, 30 * attempts),
        ):
            folder = scratch / f"overhead-{code}"
            cases = 20
            evals(folder, cases, QUICK, code=code)
            places = {"local": None, "ray": cluster}
            each: dict[str, float] = {}
            for turn in range(repeat):
                for name, where in places.items():
                    found = spent(folder, size // cases, size, where, skipped=size // 10)
                    window = found.window
                    assert window, "too few attempts to measure anything between"
                    used = 1000 * (window.nodes + window.driver) / window.verdicts
                    each[name] = min(used, each.get(name, used))
                    print(
                        f"  {title}, {name}, turn {turn + 1}: {used:.3f} each, {found.cpu - used * size / 1000:.1f} s to start and end; "
                        f"Ray's daemons {1000 * window.daemons / window.verdicts:.3f} each; load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
            more = each["ray"] / each["local"] - 1
            verdict = _met(more <= AIM_OVERHEAD, f"at most {AIM_OVERHEAD:.0%}") if code else "no aim"
            print(f"  {title}: {more:+.1%}, {1000 * (each['ray'] - each['local']):+.0f} µs per attempt; {verdict}")


def speedup(scratch: Path, attempts: int, repeat: int) -> None:
    """Two nodes against one, each with one processor, with answers that take 0.2 s each, beside plain processes."""
    print("\nTwo nodes against one, one processor each, 0.2 s per attempt (seconds from the first verdict to the last)")
    loops = _loops(0.05)
    answers = {"computing": COMPUTES.replace("@LOOPS@", str(loops)), "waiting": WAITS}
    for name, answer in answers.items():
        evals(scratch / name, 10, answer, code=True)
    walls: dict[tuple[str, int], float] = {}
    with RayCluster(1) as cluster:
        for nodes in (1, 2):
            if nodes == 2:
                cluster.start(1)
            for name in answers:
                found = []
                for _ in range(repeat):
                    found.append(spent(scratch / name, attempts // 10, attempts, cluster))
                    if name == "computing":
                        plain = _plain(4 * loops * attempts, nodes)
                        walls["plain", nodes] = min(plain, walls.get(("plain", nodes), plain))
                least = min(found, key=lambda it: it.wall)
                walls[name, nodes] = least.wall
                print(f"  {name}, {nodes}: {least.wall:.1f}{_shares(least.window)}", flush=True)
    for name in answers:
        aim = AIM_SPEEDUP[name]
        times = walls[name, 1] / walls[name, 2]
        print(
            f"  {name}: {times:.2f} times as fast with a load of {os.getloadavg()[0]:.1f}; {_met(times >= aim, f'at least {aim}')}"
        )
    print(f"  plain processes with the same loops: {walls['plain', 1] / walls['plain', 2]:.2f} times as fast in turns")


def _shares(window: Window | None) -> str:
    """Where the processors of this machine were meanwhile, in seconds of one, and what that allows."""
    if window is None:
        return ""
    ours = window.nodes + window.driver + window.daemons
    return (
        f"; in {window.at:.1f} s: nodes {window.nodes:.1f}, driver {window.driver:.1f}, Ray's daemons {window.daemons:.1f}, "
        f"others {window.machine - ours:.1f} CPU s; nodes have at most "
        f"{window.nodes / ours * (os.cpu_count() or 1):.2f} processors beside driver and daemons"
    )


def _plain(loops: int, processes: int) -> float:
    """Seconds in which so many processes go round so many empty loops together."""
    program = PLAIN.replace("@LOOPS@", str(loops // processes))
    began = time.monotonic()
    started = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(processes)]
    for one in started:
        one.wait()
    return time.monotonic() - began


def _loops(seconds: float) -> int:
    """How often an empty loop goes round in so long."""
    began = time.process_time()
    for _ in range(5_000_000):
        pass
    return int(5_000_000 * seconds / (time.process_time() - began))


def memory(scratch: Path, sizes: list[int]) -> None:
    """The driver's memory at different numbers of attempts."""
    print("\nMemory of the driver, with texts that are only read (megabytes)")
    peaks = []
    with RayCluster(1, cpus=os.cpu_count() or 1) as cluster:
        for size in sizes:
            folder = scratch / f"memory-{size}"
            evals(folder, 1000, QUICK, code=False)
            found = spent(folder, size // 1000, size, cluster)
            peaks.append(found.peak)
            print(
                f"  {size:,} attempts: {found.peak:.0f} while it verified, {found.whole:.0f} with its summary; "
                f"{1e6 * found.cpu / size:.0f} CPU µs each, {size / found.wall:,.0f} per second",
                flush=True,
            )
    growth = peaks[-1] / peaks[0]
    verdict = _met(growth <= AIM_GROWTH, f"at most {AIM_GROWTH}")
    print(f"  {growth:.2f} times the memory for {sizes[-1] / sizes[0]:g} times the attempts; {verdict}")


def _met(is_met: bool, aim: str) -> str:
    return f"aim {aim}: {'met' if is_met else 'MISSED'}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", choices=["overhead", "speedup", "memory", []])
    options.add_argument("--attempts", type=int, default=1000)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--memory", default="100000,1000000")
    given = options.parse_args()
    end_nodes_on_sigterm()
    chosen = given.what or ["overhead", "speedup", "memory"]
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as scratch:
        if "overhead" in chosen:
            overhead(Path(scratch), given.attempts, given.repeat)
        if "speedup" in chosen:
            speedup(Path(scratch), given.attempts // 10, given.repeat)
        if "memory" in chosen:
            memory(Path(scratch), [int(size) for size in given.memory.split(",")])


if __name__ == "__main__":
    main()
