"""Whether anything is lost, doubled or cut in half when a command is killed or its disk is full, at any moment of any command.

    python benchmarks/nightly/kills.py [--minutes 10] [--seed 1]

Commands are started and stopped at random moments, by SIGKILL, SIGTERM, Ctrl-C or a closed terminal, or they meet a limit on the size of
files, which is a full disk. After each, what they write is held to its promise: every reply that was stored is still there once, and a file
is the old one, the new one or absent. Now and then a run is resumed to its end. Printed are the kills by command and how they ended; the
exit code is 1 if something was lost, doubled or cut, if a command hung, or if it ended with a traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard.records import Judgment, Reply, Verdict
from steelyard.store.journal import StoredRun

ROOT = Path(__file__).resolve().parent.parent.parent
CASES, SAMPLES = 10, 8
HANG_SECONDS = 60
"""Seconds after a signal in which a command must have ended, on a machine that may be busy."""
MODEL = """
import asyncio, os

log = os.open(os.environ["ASKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def ask(prompt, attempt):
    await asyncio.sleep(0.01)
    os.write(log, (attempt.key + "\\n").encode())
    return "blue"

def judge(prompt):
    return '{"score": 0.5, "passed": true, "reasoning": "r"}'
"""
EXPERIMENT = """
[experiment]
id = "e"
name = "e"
eval_sets = ["evals.toml"]
samples = 4
[[tiers]]
name = "T0"
model = "python:model.py:ask"
[[tiers]]
name = "T1"
model = "python:model.py:ask"
system = "think"
"""


class Command(NamedTuple):
    """A command that is killed, and what must hold afterwards."""

    name: str
    arguments: Callable[[Path], Sequence[str]]
    check: Callable[[Path], str]
    """Says what is wrong, if anything is."""


def prepare(folder: Path) -> None:
    """An eval set, models, two shards and a run."""
    (folder / "model.py").write_text(MODEL)
    cases = [
        f'[[cases]]\nid = "c{number}"\nname = "c"\nprompt = "{number}?"\ntarget = "blue"' for number in range(CASES)
    ]
    (folder / "evals.toml").write_text("\n".join(['[eval_set]\nid = "s"\nname = "s"', *cases]))
    (folder / "experiment.toml").write_text(EXPERIMENT)
    shutil.copytree(ROOT / "examples" / "repairs", folder / "repairs")
    asking = ("run", "evals.toml", "-m", "python:model.py:ask", "-n", str(SAMPLES))
    for further in (["--output", "done"], ["--shard", "1/2", "--output", "1"], ["--shard", "2/2", "--output", "2"]):
        ended = subprocess.run(
            _command([*asking, *further]), cwd=folder, env=_environment(folder), capture_output=True, check=False
        )
        assert ended.returncode == 0, ended.stderr


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "steelyard.cli", *arguments]


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "ASKS": str(folder / "asks"), "TMPDIR": str(folder)}


def stored(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """The keys of replies, verdicts and judgments of a run."""
    facts = list(StoredRun(folder).facts())
    replies = [fact.key for fact in facts if isinstance(fact, Reply)]
    verdicts = [fact.key for fact in facts if isinstance(fact, Verdict)]
    return replies, verdicts, [fact.key for fact in facts if isinstance(fact, Judgment) and not fact.unusable]


class KeptReplies:
    """Whether every reply that was once seen in a run is still there, and once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: set[str] = set()

    def check(self, folder: Path) -> str:
        run = folder / self._name
        if not (run / "run.json").exists():
            return "" if not self._seen else "the run is gone"
        replies, verdicts, judgments = stored(run)
        lost = self._seen - set(replies)
        self._seen |= set(replies)
        doubled = [keys for keys in (replies, verdicts, judgments) if len(keys) != len(set(keys))]
        return f"{len(lost)} replies lost" if lost else "facts doubled" if doubled else ""

    def arguments(self, folder: Path, begin: Sequence[str], planned: int) -> Sequence[str]:
        """Begin the run or carry it on; one that is complete is put away."""
        run = folder / self._name
        if not (run / "run.json").exists():
            shutil.rmtree(run, ignore_errors=True)
            return begin
        if len(stored(run)[1]) >= planned:
            shutil.rmtree(run)
            self._seen = set()
            return begin
        return ["resume", self._name]


def whole_json(*names: str) -> Callable[[Path], str]:
    """Each file is absent, or JSON to its end."""

    def check(folder: Path) -> str:
        for name in names:
            try:
                json.loads((folder / name).read_text())
            except FileNotFoundError:
                continue
            except ValueError:
                return f"{name} is cut"
        return ""

    return check


def merged(folder: Path) -> str:
    """A merged run is absent or whole; it is put away."""
    if not (folder / "merged").exists():
        return ""
    count = len(stored(folder / "merged")[0])
    shutil.rmtree(folder / "merged")
    return "" if count == CASES * SAMPLES else f"the merged run has {count} replies"


def commands() -> list[Command]:
    """All commands that write something, and some that only read."""
    run, experiment, judged = KeptReplies("run"), KeptReplies("experiment"), KeptReplies("done")
    asked = ("-m", "python:model.py:ask", "-n", str(SAMPLES), "-j", "2", "--output", "run")
    tiers = ("tiers", "experiment.toml", "--output", "experiment", "-j", "2")
    judging = ("judge", "done", "--judges", "python:model.py:judge", "--allow-self", "--allow-code", "-j", "2")

    def fixed(*arguments: str) -> Callable[[Path], Sequence[str]]:
        return lambda _: arguments

    return [
        Command(
            "run and resume",
            lambda folder: run.arguments(folder, ("run", "evals.toml", *asked), CASES * SAMPLES),
            run.check,
        ),
        Command("tiers and resume", lambda folder: experiment.arguments(folder, tiers, CASES * 8), experiment.check),
        Command("verify", fixed("verify", "done", "--allow-code"), judged.check),
        Command("judge", fixed(*judging), judged.check),
        Command("merge", fixed("merge", "1", "2", "--output", "merged"), merged),
        Command("bless", fixed("bless", "done", "--as", "main"), whole_json("steelyard-baselines/main.json")),
        Command("report", fixed("report", "done", "-o", "r.json", "-o", "r.html"), whole_json("r.json")),
        Command(
            "gate", fixed("gate", "--baseline", "done", "--current", "done", "-o", "gate.json"), whole_json("gate.json")
        ),
        Command("query", fixed("query", "SELECT * FROM attempts", "-o", "q.json"), whole_json("q.json")),
        Command("repairs", fixed("repairs", "--config", "repairs/evaluation_config.json"), whole_json()),
        Command("import with passk", fixed("passk", "done", "--format", "json"), whole_json()),
        Command("list", fixed("list"), whole_json()),
    ]


SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def kill_once(command: Command, folder: Path, chance: random.Random, usual: float) -> tuple[str, str]:
    """Start a command, stop it at some moment, and say how it ended and what is wrong."""
    arguments = (
        [*command.arguments(folder), "--config", "settings.toml"]
        if command.name != "repairs"
        else command.arguments(folder)
    )
    limit = chance.choice([2_000, 10_000, 40_000, 200_000]) if chance.random() < 0.2 else resource.RLIM_INFINITY

    def limited() -> None:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    process = subprocess.Popen(
        _command(arguments),
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limited,  # noqa: PLW1509  there are no threads
    )
    number = chance.choice(SIGNALS)
    try:
        process.wait(chance.uniform(0, 1.1 * usual) if limit == resource.RLIM_INFINITY else HANG_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    try:
        said = process.communicate(timeout=HANG_SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return "hung", f"it hung after {number.name}"
    # Python itself ends so where the signal comes before a line of ours was run
    is_startup = process.returncode == -signal.SIGINT or "steelyard" not in said
    problem = command.check(folder)
    if not problem and process.returncode != -signal.SIGKILL and process.returncode == 70:
        problem = said
    if not problem and "Traceback" in said and not is_startup:
        problem = said[-1500:]
    return f"{process.returncode}", problem


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    chance = random.Random(given.seed)
    kills: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    problems = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "settings.toml").write_text('output_dir = "."\n')
        began = time.monotonic()
        prepare(folder)
        usual = (time.monotonic() - began) / 3
        known = commands()
        while time.monotonic() - began < 60 * given.minutes:
            command = chance.choices(known, [6, 4, *(2 for _ in known[2:])])[0]
            end, problem = kill_once(command, folder, chance, usual)
            kills[command.name] += 1
            ends[end] += 1
            if problem:
                problems += 1
                print(f"{command.name}: {problem}", flush=True)
        minutes = (time.monotonic() - began) / 60
    print(f"killed: {', '.join(f'{name} {count}x' for name, count in kills.most_common())}")
    print(f"exit codes: {', '.join(f'{code} {count}x' for code, count in ends.most_common())}")
    print(
        f"{kills.total():,} kills in {minutes:.1f} minutes ({kills.total() / minutes:.0f} per minute), seed {given.seed}: {problems} problems"
    )
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
