"""Ten million attempts on one machine, and what each command over them takes, in CPU time and memory.

    python benchmarks/ten_million.py [--attempts 10000000] [--cases 10000] [--shards N] [--folder DIR] [--minutes 15] [--copied]

The model is a script, and the verifier looks for a word: what is measured is ours alone. There is one shard per processor, or one
run with `--shards 1`; `merge` makes one run of them. With `--copied`, four attempts at each case are run, and the facts of all others
are copies of theirs under other keys and numbers: then the commands over a run are measured without the time that the run itself takes.
All commands over the run are processes at the same time, as far as there are processors; one that has not ended after `--minutes`
is ended, and its line says so. A second run of a hundredth of the attempts is there to be compared with. Each line is
printed when its command has ended. Memory is the peak of a process, sampled by the kernel.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

AIM_MEGABYTES = 150
SCRIPT = """\
import itertools

count = itertools.count()


async def answer(prompt):
    number = next(count) * 2654435761 & 0xFFFFFFFF
    word = "return" if number % 3 else "yield"
    text = f"The function keeps the numbers that it has seen in a set, so each is looked at once: {number:x} {word} {prompt}"
    return {"text": text, "input_tokens": 24, "output_tokens": 86 + number % 50}
"""
QUESTION = "SELECT count(*), avg(correct::INT) FROM attempts"
COPIED_SAMPLES = 4
"""Attempts at each case that are run where the others are copies."""
WRITE_INDEX = """\
from pathlib import Path
from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.store.journal import Journal

with Journal(Path("steelyard-runs/large")) as journal:
    summarise_and_cache(journal, journal.info, journal.cases)
"""
STEELYARD = (sys.executable, "-m", "steelyard.cli")


def run_commands(samples: int, shards: int, name: str) -> dict[str, Sequence[str]]:
    """The runs that make up one, by the names of their folders."""
    command = (*STEELYARD, "run", "cases.jsonl", "--models", "python:scripted.py:answer", "--samples", str(samples))
    if shards == 1:
        return {name: (*command, "--output", f"steelyard-runs/{name}")}
    return {
        f"{name}-{number}": (*command, "--shard", f"{number}/{shards}", "--output", f"steelyard-runs/{name}-{number}")
        for number in range(1, shards + 1)
    }


def end_commands() -> dict[str, Sequence[str]]:
    """What is asked of the large run, by the names in the table."""
    return {
        "show RUN": (*STEELYARD, "show", "large"),
        "show RUN CASE": (*STEELYARD, "show", "large", "case-000007"),
        "report -o x.md": (*STEELYARD, "report", "large", "-o", "x.md"),
        "report -o x.csv": (*STEELYARD, "report", "large", "-o", "x.csv"),
        "report -o x.json": (*STEELYARD, "report", "large", "-o", "x.json"),
        "report -o x.html": (*STEELYARD, "report", "large", "-o", "x.html"),
        "compare": (*STEELYARD, "compare", "large", "small"),
        "gate": (*STEELYARD, "gate", "large", "small"),
        "first query": (*STEELYARD, "query", QUESTION),
    }


class Measured:
    """A process whose memory is known also while it runs."""

    def __init__(self, name: str, command: Sequence[str], place: Path) -> None:
        self.name, self._began = name, time.monotonic()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  the process writes to it
        self._process = subprocess.Popen(command, cwd=place, stdout=self._output, stderr=subprocess.STDOUT)

    def poll(self, deadline: float) -> bool:
        """Whether it has ended, or was ended because the time is over; then its line is printed."""
        pid, status, used = os.wait4(self._process.pid, os.WNOHANG)
        note = ""
        if not pid and time.monotonic() > deadline:
            self._process.kill()
            pid, status, used = os.wait4(self._process.pid, 0)
            note = "  not finished"
        if not pid:
            return False
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        if code not in (0, 1, 3) and not note:
            self._output.seek(0)
            note = f"  ended with {code}: {self._output.read()[-300:].decode(errors='replace')}"
        seconds, wall = used.ru_utime + used.ru_stime, time.monotonic() - self._began
        print(f"  {self.name:<22}{seconds:>9.1f}{wall:>9.1f}{used.ru_maxrss * 1024 / 1e6:>7.0f}{note}", flush=True)
        return True


def measure(commands: Mapping[str, Sequence[str]], place: Path, seconds: float, at_once: int) -> None:
    """Run commands, some at a time, and print what each took."""
    deadline = time.monotonic() + seconds
    waiting, running = list(commands.items()), list[Measured]()
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(Measured(*waiting.pop(0), place))
        time.sleep(0.2)
        running = [each for each in running if not each.poll(deadline)]


def write_cases(place: Path, cases: int) -> None:
    names: Iterable[str] = (f"case-{number:06}" for number in range(cases))
    with (place / "cases.jsonl").open("w") as file:
        file.writelines(
            json.dumps({"id": name, "prompt": f"Write {name}.", "target": "return"}) + "\n" for name in names
        )
    (place / "scripted.py").write_text(SCRIPT)


def copy_run(base: Path, target: Path, copies: int) -> None:
    """A run with so many times the attempts of another one: its facts under other keys and numbers."""
    target.mkdir()
    info = json.loads((base / "run.json").read_text())
    described = {**info, "id": target.name, "samples": info["samples"] * copies}
    (target / "run.json").write_text(json.dumps(described, indent=2))
    (target / "cases.jsonl").write_bytes((base / "cases.jsonl").read_bytes())
    with (target / "attempts.jsonl").open("wb") as file:
        for copy in range(copies):
            begin, before = f"{copy * 2654435761 & 0xFFFFFFFF:08x}".encode(), copy * info["samples"]
            with (base / "attempts.jsonl").open("rb") as lines:
                file.writelines(copied_line(line, begin, before) for line in lines)


def copied_line(line: bytes, begin: bytes, before: int) -> bytes:
    """A fact whose keys begin with other bytes, about the attempt whose number is so much larger."""
    renamed = re.sub(rb'(?<="(?:key|ask)":")[0-9a-f]{8}', begin, line)
    head, number, rest = re.split(rb'(?<="number":)(\d+)', renamed, maxsplit=1)
    return b"%b%d%b" % (head, int(number) + before, rest)


def make_runs(place: Path, samples: int, shards: int) -> None:
    """Run the large run, in shards that are merged where there are several, and print what that took."""
    runs = run_commands(samples, shards, "large")
    measure(runs, place, 1e9, os.cpu_count() or 1)
    if shards > 1:
        measure({"merge": (*STEELYARD, "merge", *runs, "--output", "steelyard-runs/large")}, place, 1e9, 1)
        # the shards are left out of questions, and their disk is needed
        for name in runs:
            shutil.rmtree(place / "steelyard-runs" / name)


def copy_runs(place: Path, samples: int) -> None:
    """Make the large run of copies of a small one, and print what the small one and the index of the large one took."""
    measure(run_commands(COPIED_SAMPLES, 1, "base"), place, 1e9, 1)
    runs = place / "steelyard-runs"
    copy_run(runs / "base", runs / "large", samples // COPIED_SAMPLES)
    shutil.rmtree(runs / "base")
    measure({"its index": (sys.executable, "-c", WRITE_INDEX)}, place, 1e9, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=10_000_000, help="attempts of the run (default: 10000000)")
    parser.add_argument("--cases", type=int, default=10_000, help="its cases (default: 10000)")
    parser.add_argument("--shards", type=int, default=os.cpu_count() or 1, help="default: one for each processor")
    parser.add_argument("--folder", help="where it is written and deleted again (default: the usual place)")
    parser.add_argument("--minutes", type=float, default=15, help="for all commands over the run (default: 15)")
    parser.add_argument("--copied", action="store_true", help="run four attempts at each case, and copy the others")
    given = parser.parse_args()
    samples, processors = max(1, given.attempts // given.cases), os.cpu_count() or 1
    print(f"{platform.machine()}, {processors} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-", dir=given.folder) as scratch:
        place = Path(scratch)
        write_cases(place, given.cases)
        print(f"\n  {samples * given.cases:,} attempts{'CPU s':>13}{'wall s':>9}{'MB':>7}", flush=True)
        if given.copied:
            copy_runs(place, samples)
        else:
            make_runs(place, samples, given.shards)
        measure(run_commands(max(1, samples // 100), 1, "small"), place, 1e9, 1)
        journals = sum(path.stat().st_size for path in (place / "steelyard-runs" / "large").glob("attempts*.jsonl"))
        print(f"  the journals have {journals / 1e9:.1f} GB; now at the same time:", flush=True)
        deadline = time.monotonic() + 60 * given.minutes
        measure(end_commands(), place, 60 * given.minutes, processors)
        later = {"query again": (*STEELYARD, "query", QUESTION)}
        measure(later, place, max(60.0, deadline - time.monotonic()), 1)
    print(f"\naim: every line under {AIM_MEGABYTES} MB")


if __name__ == "__main__":
    main()
