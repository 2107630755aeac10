"""What looking at runs costs, and how that grows with their size.

    python benchmarks/viewer.py [--attempts 1000 10000 100000] [--runs 1000] [--repeat 3]

Every figure is taken in a process of its own, in which nothing was opened before; of several rounds the cheapest counts,
because a busy machine can only add to it. Each stands beside a floor, measured in the same process: the least that any
program would have to do for the same answer.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard import store
from steelyard.engine.preparing import summed_up
from steelyard.estimates import mean
from steelyard.records import Answer, Case, Cost, Expectations, Finding, Reply, RunInfo, Test, Verdict, digest
from steelyard.viewer.library import Library

AIM_MILLISECONDS = 300
AIM_MEGABYTES = 300
MODELS = tuple(f"openai/model-{number}" for number in range(4))
SAMPLES = 25
TEXT = "def first_repeated(numbers):\n    return next(n for n in numbers if numbers.count(n) > 1)\n" * 6


class Figure(NamedTuple):
    """What one thing took."""

    what: str
    milliseconds: float
    """Of CPU time."""
    floor: float
    """The same for the least that has to be done."""


# The runs that are looked at.


def stored_run(folder: Path, attempts: int, *, seed: int = 0) -> Path:
    """A run that has come to its end, of this many attempts or a few more."""
    chance = random.Random(seed)
    count = max(1, attempts // (len(MODELS) * SAMPLES))
    cases = [
        Case(id=f"case-{number}", prompt="Find it.", language="python", expectations=Expectations(test_file="t"))
        for number in range(count)
    ]
    day = f"{seed % 28 + 1:02}"
    info = RunInfo(
        id=folder.name,
        started_at=f"2026-01-{day}T00:00:00Z",
        ended_at="2026-02-01T00:00:00Z",
        names=MODELS,
        samples=SAMPLES,
    )
    with store.create(folder, info, cases) as journal:
        for number in range(1, min(SAMPLES, -(-attempts // (count * len(MODELS)))) + 1):
            for case in cases:
                for model in MODELS:
                    for fact in attempt(chance, case, model, number):
                        journal.append(fact)
        summed_up(journal, info, cases)
    return folder


def attempt(chance: random.Random, case: Case, model: str, number: int) -> tuple[Reply, Verdict]:
    """A reply with its verdict; no two failures give the same reason."""
    key = digest(case.id, model, number)
    fact: dict[str, Any] = {
        "at": f"2026-01-01T{chance.randrange(24):02}:{chance.randrange(60):02}:00.000Z",
        "case": case.id,
        "model": model,
        "number": number,
    }
    passes = chance.random() < 0.7
    tests = tuple(Test(name=f"test_{one}", outcome="passed" if passes or one else "failed") for one in range(4))
    answer = Answer(
        text=TEXT,
        latency=chance.random() * 9,
        input_tokens=chance.randrange(999),
        output_tokens=chance.randrange(999),
        cost=Cost(usd=chance.random() / 100, source="list"),
    )
    found = Finding(
        code=TEXT,
        compiled=True,
        tests=tests,
        label="" if passes else "wrong answer",
        reason="" if passes else f"expected {chance.random()}",
        trust="isolated",
        isolation="full",
    )
    verdict = Verdict(key=f"v{key}", ask=key, tests=case.tests_digest, verifier="v", found=found, **fact)
    return Reply(key=key, answer=answer, asked="a", **fact), verdict


# What is measured; each in a process of its own, with a folder of runs.


def taken(do: Callable[[], Any]) -> float:
    """Milliseconds of CPU time."""
    begin = time.process_time()
    do()
    return 1000 * (time.process_time() - begin)


def opening(root: Path) -> list[Figure]:
    """Two finished runs of the same size, opened for the first time; floor: their rows as plain values."""
    one, two = sorted(path.name for path in root.iterdir())
    floor = taken(lambda: msgspec.msgpack.decode((root / one / store.INDEX).read_bytes()))
    library = Library(root)
    figures = [Figure("open a finished run", taken(lambda: library.open(one)), floor)]
    opened = library.open(one)
    figures.append(Figure("its summary", taken(opened.summary), floor))
    case, seat = opened.cases[-1], opened.seats[-1]
    figures.append(Figure("one attempt with texts", taken(lambda: opened.attempt(case.id, *seat, 1)), floor))
    figures.append(Figure("open it again", taken(lambda: library.open(one)), floor))
    figures.append(Figure("open another as large", taken(lambda: library.open(two)), floor))
    return figures


def growing(root: Path) -> list[Figure]:
    """A run that is being written; floor: its lines as plain facts."""
    folder = min(root.iterdir())
    for name in (store.HEADLINE, store.INDEX):
        (folder / name).unlink(missing_ok=True)
    with store.Journal(folder) as journal:
        floor = taken(lambda: sum(1 for _ in journal.facts()))
        library = Library(root)
        figures = [Figure("open a growing run", taken(lambda: library.open(folder.name)), floor)]
        case = journal.cases[0]
        for fact in attempt(random.Random(1), case, MODELS[0], SAMPLES + 1):
            journal.append(fact)
        figures.append(Figure("one attempt later", taken(lambda: library.open(folder.name)), floor))
        figures.append(Figure("its headline figures", taken(lambda: library.open(folder.name).headlines), floor))
        figures.append(Figure("its summary then", taken(library.open(folder.name).summary), floor))
    return figures


def listing(root: Path) -> list[Figure]:
    """Many runs; floor: what is written down of each, as plain values."""

    def plain() -> None:
        for folder in root.iterdir():
            json.loads((folder / "run.json").read_bytes())
            json.loads((folder / store.HEADLINE).read_bytes())

    floor = taken(plain)
    library = Library(root)
    return [
        Figure("list the runs", taken(library.listed), floor),
        Figure("list them again", taken(library.listed), floor),
    ]


def peak() -> float:
    """The most memory that this process had, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # what getrusage tells begins with the memory of whoever started us
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


MEASURES: dict[str, Callable[[Path], list[Figure]]] = {"opening": opening, "growing": growing, "listing": listing}


class Round(NamedTuple):
    """What came of one process."""

    figures: list[Figure]
    megabytes: float
    """Memory at its peak."""


def measured(name: str, root: Path) -> Round:
    """Take the figures of one kind in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "--only", name, "--folder", str(root)], check=True, capture_output=True
    )
    return msgspec.json.decode(done.stdout, type=Round)


def cheapest(rounds: list[Round]) -> Round:
    """The best of each figure."""
    figures = [
        Figure(same[0].what, min(one.milliseconds for one in same), min(one.floor for one in same))
        for same in zip(*(one.figures for one in rounds), strict=True)
    ]
    return Round(figures, min(one.megabytes for one in rounds))


def lines(size: str, found: Round) -> list[str]:
    """A line per figure."""
    return [
        f"{size:>16}  {figure.what:24}{figure.milliseconds:>10.1f}{figure.floor:>10.1f}"
        f"{figure.milliseconds / figure.floor if figure.floor else 0:>9.2f}{found.megabytes:>8.0f}"
        for figure in found.figures
    ]


def main() -> None:
    """Make the runs, look at them, and print what that costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the cheapest counts")
    parser.add_argument("--only", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        # the first interval that a process works out loads libraries, which is not what is asked here
        mean([0.0, 0.5, 1.0], 3)
        figures = MEASURES[given.only](given.folder)
        sys.stdout.buffer.write(msgspec.json.encode(Round(figures, peak())))
        return
    print(f"best of {given.repeat}; Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs\n")
    print(f"{'':18}{'':24}{'CPU ms':>10}{'floor':>10}{'/floor':>9}{'MB':>8}")
    worst, most = 0.0, 0.0
    for size in given.attempts:
        with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-") as folder:
            root = Path(folder)
            for name in ("one", "two"):
                stored_run(root / name, size, seed=len(name))
            for name in ("opening", "growing"):
                found = cheapest([measured(name, root) for _ in range(given.repeat)])
                print("\n".join(lines(f"{size:,} attempts", found)), flush=True)
                if name == "opening":
                    worst = max(worst, *(figure.milliseconds for figure in found.figures))
                    most = max(most, found.megabytes)
    with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-") as folder:
        for number in range(given.runs):
            stored_run(Path(folder) / f"run-{number}", 20, seed=number)
        found = cheapest([measured("listing", Path(folder)) for _ in range(given.repeat)])
        print("\n".join(lines(f"{given.runs:,} runs", found)))
    worst, most = max(worst, *(figure.milliseconds for figure in found.figures)), max(most, found.megabytes)
    met = worst <= AIM_MILLISECONDS and most <= AIM_MEGABYTES
    print(
        f"\naim: lists and finished runs within {AIM_MILLISECONDS} CPU ms and {AIM_MEGABYTES} MB: "
        f"{'met' if met else 'missed'} ({worst:.0f} ms, {most:.0f} MB)"
    )


if __name__ == "__main__":
    main()
