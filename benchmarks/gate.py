"""What a gate costs, from the shell's point of view: 1,000 cases with 10 attempts each, start-up included.

    python benchmarks/gate.py [--cases 1000] [--attempts 10]

The floor is a Python that imports numpy and msgspec and does nothing; beside it are a Python that does nothing at all, and numpy alone. A run folder
costs reading its journal; a report or a baseline costs its counts alone. Compiled modules are kept between commands, as after an installation.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from steelyard.comparison.sides import Side, Trials
from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.records import Answer, Case, Finding, Reply, RunInfo, Test, TestOutcome, Verdict, digest
from steelyard.store.journal import create_run

BAR = 0.5
"""CPU seconds that a decision may take."""
REPEATS = 7
ONE_THREAD = "import os; os.environ.setdefault('OPENBLAS_NUM_THREADS', '1'); "
"""As the command imports numpy: threads that it does not use spin at the import."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--cases", type=int, default=1000)
    asked.add_argument("--attempts", type=int, default=10)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        baseline(options.cases, 3 * options.attempts)
        stored_run(options.cases, options.attempts)
        steelyard = [sys.executable, "-m", "steelyard.cli", "gate", "--baseline", "main", "--current"]
        bare, numpy, floor = (
            measured([sys.executable, "-c", ONE_THREAD + code])
            for code in ("pass", "import numpy", "import numpy, msgspec")
        )
        counts = measured([*steelyard, "steelyard-baselines/now.json"])
        journal = measured([*steelyard, "run"])
    print(f"gate of {options.cases:,} cases, {options.attempts} attempts each, against {3 * options.attempts}")
    for name, seconds in (("bare Python", bare), ("numpy", numpy), ("floor: with msgspec", floor)):
        print(f"{name:20} {seconds:6.2f} CPU s")
    for name, seconds in (("counts of a baseline", counts), ("journal of a run", journal)):
        print(f"{name:20} {seconds:6.2f} CPU s  {seconds / floor:.1f} times the floor")
    print(f"bar of {BAR:g} CPU s: {'met' if max(counts, journal) <= BAR else 'missed'}")
    return 0


def measured(command: list[str]) -> float:
    """The least of several runs, by the CPU time of the process and its children."""
    costs = []
    for _ in range(REPEATS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            raise SystemExit(f"{' '.join(command)} failed")
        costs.append(usage.ru_utime + usage.ru_stime)
    return min(costs)


def passes(chance: random.Random, attempts: int, place: int) -> int:
    """A suite as they are: most cases always pass or never do."""
    rate = 1.0 if place % 10 < 6 else 0.0 if place % 10 == 6 else 0.1 + 0.8 * (place % 7) / 6
    return sum(chance.random() < rate for _ in range(attempts))


def baseline(cases: int, attempts: int) -> None:
    import msgspec

    Path("steelyard-baselines").mkdir()
    for name, seed in (("main", 0), ("now", 1)):
        chance = random.Random(seed)
        trials = tuple(
            Trials(case=f"case-{place}", attempts=attempts, passes=passes(chance, attempts, place))
            for place in range(cases)
        )
        side = Side(name=name, rule="code", models={"m": trials})
        Path(f"steelyard-baselines/{name}.json").write_bytes(msgspec.json.encode(side))


def stored_run(count: int, attempts: int) -> None:
    chance = random.Random(2)
    cases = [Case(id=f"case-{place}", prompt="Add two numbers.", language="python") for place in range(count)]
    info = RunInfo(id="r", started_at="2026-01-01T00:00:00Z", models=("m",), names=("m",), samples=attempts)
    text = "def add(a, b):\n    return a + b\n" * 20
    with create_run(Path("run"), info, cases) as journal:
        for place, case in enumerate(cases):
            passed = passes(chance, attempts, place)
            for number in range(1, attempts + 1):
                fact: dict[str, Any] = {"at": "2026-01-01T00:00:00Z", "case": case.id, "model": "m", "number": number}
                key = digest(case.id, number)
                outcome: TestOutcome = "passed" if number <= passed else "failed"
                found = Finding(code=text, compiled=True, tests=(Test(name="t", outcome=outcome),))
                journal.append(Reply(key=key, answer=Answer(text=text), asked="a", **fact))
                verdict = Verdict(key=f"v{key}", ask=key, tests=case.tests_digest, verifier="v", found=found, **fact)
                journal.append(verdict)
        # as a run does at its end
        summarise_and_cache(journal, info, cases)


if __name__ == "__main__":
    sys.exit(main())
