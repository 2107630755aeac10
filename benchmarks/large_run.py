"""What every command costs over one large run, in CPU time and memory, for few cases with many attempts and for many cases with one.

    python benchmarks/large_run.py [--attempts 100000] [--cases 1000,100000] [--folder DIR] [--only NAME...]

With fewer cases than attempts the run has two models, otherwise one. Replies have 1 KB with code in them, and two thirds of them are correct. Every command is a process of its own,
start-up included; CPU time is that of all threads, memory is the peak of the largest process. Where a command starts others, the peak of
all of them together stands beside it, shared pages counted once and looked at twice a second. `verify` verifies all
replies again, each by a search for a word; `run` takes recorded replies, half of the attempts in
each of two shards, and `merge` puts them together; `judge` and `pairs` ask a function that always says the same; `view` and `label` are
measured from their start to a page of the run. `import` reads what `report` wrote. Beside it stands the size of what a command wrote.
`tests/tools/test_large_run.py` fails if a command or a report format is missing here.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.records import Answer, Case, Finding, Reply, RunInfo, Test, TestOutcome, Verdict
from steelyard.store.journal import create_run

ALL_MODELS = ("provider/model-a", "provider/model-b")
BAR_MEGABYTES = 400
MOMENT = "2026-01-02T03:04:06Z"
REPORTS = (
    *("report.json", "report.csv", "report.jsonl", "report.md", "report.html", "report.xml", "report.sarif"),
    *("x.human-eval.jsonl", "x.evalplus.jsonl", "x.eee.json", "x.inspect.json", "x.promptfoo.json"),
    *("x.forgetest.json", "x.otlp.json", "x.parquet"),
)

IMPORTED = ("x.human-eval.jsonl", "x.inspect.json", "x.promptfoo.json")
"""Reports that `import` reads; of several models, one has a file of its own for Inspect."""
WITHOUT_ATTEMPTS = {
    "validate": "reads cases",
    "models": "lists models of endpoints",
    "init": "writes a small eval set",
    "demo": "is a small run of its own",
    "allow": "reads what code files name",
    "doctor": "looks at the machine",
    "completion": "prints a script",
}
"""The commands that are not measured, because no attempts go into them or come out of them."""
SERVERS = ("view", "label")
"""Commands that serve pages until they are interrupted."""
RUN = ("run", "cases.jsonl", "--models", "replay:replies.jsonl")
MADE_FIXES = ("made/strong_synthetic_fixes.csv", "made/weak_synthetic_fixes.csv")
JUDGES = """\
async def judge(prompt):
    return '{"reason": "It returns.", "requirements": {"returns": {"reason": "It returns.", "score": 1.0}}}'


async def pair(prompt):
    return '{"reason": "Both return.", "winner": "tie"}'
"""
RUBRIC = {"id": "returns", "requirements": [{"id": "returns", "description": "The function returns something."}]}


class Cost(NamedTuple):
    seconds: float
    wall: float
    megabytes: float
    """Of the largest process."""
    together: float = 0.0
    """Of all processes that the command had at the same time; 0 if it had only one."""


class Shape(NamedTuple):
    """How the attempts of a run are spread."""

    cases: int
    models: tuple[str, ...]
    samples: int
    """Attempts at each case by each model."""

    @property
    def attempts(self) -> int:
        return self.cases * len(self.models) * self.samples

    @classmethod
    def of(cls, attempts: int, cases: int) -> Shape:
        models = ALL_MODELS if attempts > cases else ALL_MODELS[:1]
        return cls(cases, models, attempts // cases // len(models))


def prepare(folder: Path, shape: Shape, seed: int) -> Path:
    """A run as a run leaves it."""
    chance = random.Random(seed)
    asked = [
        Case(id=f"suite/case-{number:06}", prompt=f"Write f, number {number}.", suite="suite", target="return")
        for number in range(shape.cases)
    ]
    info = RunInfo(
        id=folder.name,
        started_at=MOMENT,
        ended_at=MOMENT,
        models=shape.models,
        names=shape.models,
        samples=shape.samples,
        k=(1, 5),
    )
    with create_run(folder, info, asked) as journal:
        for case in asked:
            for model in shape.models:
                for number in range(1, shape.samples + 1):
                    where: dict[str, Any] = {"case": case.id, "model": model, "number": number, "at": MOMENT}
                    key = f"{case.id} {model} {number}"
                    is_right = chance.random() < 2 / 3
                    code = f'def f():\n    return "{chance.randbytes(430).hex()}é"\n'
                    answer = Answer(
                        text=f"Here it is:\n```python\n{code}```\n",
                        input_tokens=50,
                        output_tokens=chance.randrange(300, 400),
                        latency=1 + chance.random(),
                    )
                    journal.append(Reply(key=key, asked="", answer=answer, **where))
                    outcome: TestOutcome = "passed" if is_right else "failed"
                    message = "" if is_right else f"AssertionError: {chance.random()}"
                    found = Finding(code=code, compiled=True, tests=(Test(name="t", outcome=outcome, message=message),))
                    verdict = Verdict(
                        key="v" + key, ask=key, tests=case.tests_digest, verifier="v", found=found, **where
                    )
                    journal.append(verdict)
        summarise_and_cache(journal, journal.info, journal.cases)
    return folder


def record(place: Path, shape: Shape) -> None:
    """An eval set, replies to replay, and files of other tools."""
    chance = random.Random(3)
    names = [f"case-{number:06}" for number in range(shape.cases)]
    replies = shape.attempts // shape.cases
    with (place / "cases.jsonl").open("w") as file:
        for number, name in enumerate(names):
            case = {"id": name, "prompt": f"Write a function f that returns {number}.", "target": "return"}
            file.write(json.dumps(case) + "\n")
    with (place / "replies.jsonl").open("w") as file:
        for name in names:
            for _ in range(replies):
                text = f"def f():\n    return {chance.randbytes(480).hex()}\n"
                file.write(json.dumps({"task_id": name, "solution": text}) + "\n")
    (place / "judges.py").write_text(JUDGES)
    (place / "rubric.json").write_text(json.dumps(RUBRIC))
    fixes = {"fixes_dir": "made", "output_dir": "results", "problems_dataset": "made/problems.csv"}
    (place / "evaluation_config.json").write_text(json.dumps(fixes))
    labels = [f"suite/{name},{model},1,true" for name in names[:200] for model in shape.models]
    (place / "labels.csv").write_text("\n".join(["case,model,number,passed", *labels, ""]))
    with (place / "runs.csv").open("w") as file:
        file.write("experiment,agent_model,tier,subtest,run_number,passed,score,cost_usd\n")
        # a tier without another has nothing to be compared with
        for number in range(shape.attempts):
            task, attempt = divmod(number, max(2, replies))
            passed = chance.random() < 2 / 3
            file.write(f"large,model-a,T{attempt % 2},{names[task]},{attempt // 2 + 1},{passed},{float(passed)},0.01\n")


def measured(command: Sequence[str], place: Path) -> Cost:
    """What a command takes, by the process and its children."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place)
    with TreeMemory(process.pid) as tree:
        cost = _cost(process, began, command)
    return cost._replace(together=tree.most)


class TreeMemory:
    """Looks at the memory of a process and of those that it started, until it is closed."""

    def __init__(self, process: int) -> None:
        self.most = 0.0
        """The most megabytes that several processes had together."""
        self._process = process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> TreeMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            tree = list(_process_tree(self._process))
            if len(tree) > 1:
                self.most = max(self.most, sum(map(_own_megabytes, tree)))


def _process_tree(process: int) -> Iterator[int]:
    yield process
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in path.read_text().split():
                yield from _process_tree(int(child))


def _own_megabytes(process: int) -> float:
    """The memory of a process, with its part of the pages that it shares."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6
    return 0.0


def _cost(process: subprocess.Popen[Any], began: float, command: Sequence[str]) -> Cost:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 3, 130):
        print(f"{' '.join(command[3:])}: ended with {process.returncode}")
    kilobyte = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in kilobytes elsewhere
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss * kilobyte / 1e6)


def measured_viewer(command: Sequence[str], place: Path) -> Cost:
    """What the viewer, or the page to label answers, takes from its start until a page of the run was read."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(address).read()
    base = address.partition("?")[0].rstrip("/")
    if "view" in command:
        opener.open(f"{base}/runs/large").read()
    process.send_signal(2)
    process.stdout.close()
    return _cost(process, began, command)


def commands(steelyard: list[str], shape: Shape) -> dict[str, list[str]]:
    """Each by the name in the table."""
    reports = {f"report -o {name}": ["report", "large", "-o", name] for name in REPORTS}
    own = "x-provider-model-a.inspect.json" if len(shape.models) > 1 else "x.inspect.json"
    imports = {
        f"import {name}": ["import", own if "inspect" in name else name, "-o", f"imported/{name}"] for name in IMPORTED
    }
    halves = {
        f"run --shard {half}/2": [*RUN, "--shard", f"{half}/2", "--output", f"steelyard-runs/half-{half}"]
        for half in (1, 2)
    }
    asks = ("--judges", "python:judges.py:judge", "--allow-code")
    asks_pair = ("--judges", "python:judges.py:pair", "--allow-code")
    problems = ("--problems", str(min(shape.cases, shape.attempts // 2)))
    made = (*problems, "--samples", str(max(1, shape.attempts // shape.cases // 2)), "--models", "strong=0.8,weak=0.3")
    table: dict[str, Sequence[str]] = {
        "list": ["list"],
        "show RUN": ["show", "large"],
        "show RUN CASE": ["show", "large", "suite/case-000007"],
        "show RUN CASE 1": ["show", "large", "suite/case-000007", "1"],
        "show RUN --failed": ["show", "large", "--failed"],
        **reports,
        "report of a report.json: compare": ["compare", "report.json", "other"],
        "compare A B": ["compare", "large", "other"],
        "gate A B": ["gate", "large", "other"],
        "gate A B -o gate.json": ["gate", "large", "other", "-o", "gate.json"],
        "bless": ["bless", "large", "--as", "main"],
        "plan": ["plan", "large"],
        "query, the first, which copies": ["query", "SELECT avg(correct::INT) FROM attempts"],
        "query": ["query", "SELECT model, avg(correct::INT) FROM attempts GROUP BY model"],
        "query -o all.csv": ["query", "SELECT * FROM attempts", "-o", "all.csv"],
        "passk RUN": ["passk", "large"],
        "passk --attempts RUNS": ["passk", "--attempts", "steelyard-runs/large"],
        **imports,
        "run": [*RUN, "--output", "steelyard-runs/whole"],
        "resume, nothing owed": ["resume", "whole"],
        **halves,
        "merge": ["merge", "half-1", "half-2", "--output", "steelyard-runs/merged"],
        "label --import": ["label", "large", "--by", "ada", "--import", "labels.csv"],
        "label --rates": ["label", "large", "--rates"],
        "label --export": ["label", "large", "--export", "exported.csv"],
        "label": ["label", "large", "--port", "0", "--no-browser"],
        "view": ["view", "--port", "0", "--no-browser"],
        "verify": ["verify", "large"],
        "judge": ["judge", "large", "--rubric", "rubric.json", *asks],
        "tiers RUN, judged": ["tiers", "large"],
        "tiers RUN -o tiers.json, judged": ["tiers", "large", "-o", "tiers.json"],
        "report -o report.html, judged": ["report", "large", "-o", "report.html"],
        "label --rates, judged": ["label", "large", "--rates"],
        "pairs": ["pairs", "large", "--output", "steelyard-runs/pairs", *asks_pair],
        "tiers --runs-csv": ["tiers", "--runs-csv", "runs.csv"],
        "synth": ["synth", "--out", "made", *made],
        "passk --fixes-csv": ["passk", "--problems-csv", "made/problems.csv", "--fixes-csv", *MADE_FIXES],
        "repairs": ["repairs", "--config", "evaluation_config.json"],
        "suites --results": ["suites", "--results", "report.jsonl"],
    }
    if len(shape.models) < len(ALL_MODELS):
        # two answers to the same question are compared
        del table["pairs"]
    return {name: [*steelyard, *command] for name, command in table.items()}


def measure_shape(place: Path, shape: Shape, only: Sequence[str]) -> float:
    """Measure and print every command over one run; returns the megabytes of the largest."""
    largest = 0.0
    root = place / "steelyard-runs"
    # in a process of their own: a child's peak counts what its parent had in memory
    for target, *arguments in (
        (prepare, root / "large", shape, 1),
        (prepare, root / "other", shape, 2),
        (record, place, shape),
    ):
        preparation = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
        preparation.start()
        preparation.join()
        if preparation.exitcode:
            raise SystemExit(f"could not make the data: {target.__name__} ended with {preparation.exitcode}")
    title = f"{shape.attempts:,} attempts at {shape.cases:,} cases"
    print(f"\n{title:<42}{'CPU s':>8}{'wall s':>9}{'MB':>7}{'tree MB':>9}{'wrote MB':>10}")
    for name, command in commands([sys.executable, "-m", "steelyard.cli"], shape).items():
        if only and not any(part in name for part in only):
            continue
        cost = (measured_viewer if name in SERVERS else measured)(command, place)
        largest = max(largest, cost.megabytes)
        written = place / command[-1]
        size = f"{written.stat().st_size / 1e6:>10.1f}" if written.is_file() else ""
        together = f"{cost.together:>9.0f}" if cost.together else " " * 9
        print(f"  {name:<40}{cost.seconds:>8.2f}{cost.wall:>9.1f}{cost.megabytes:>7.0f}{together}{size}", flush=True)
    return largest


def numbers(text: str) -> list[int]:
    """Numbers with commas between them; argparse says which text is none."""
    return [int(count) for count in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=100_000, help="attempts of each run (default: 100000)")
    parser.add_argument(
        "--cases",
        type=numbers,
        default="1000,100000",
        help="cases of each run, with commas between (default: 1000,100000)",
    )
    parser.add_argument("--folder", help="where they are written and deleted again (default: the usual place)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only commands whose names contain one of these")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    largest = 0.0
    for cases in given.cases:
        with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-", dir=given.folder) as scratch:
            shape = Shape.of(given.attempts, cases)
            largest = max(largest, measure_shape(Path(scratch), shape, given.only or ()))
    print(f"\nbar: every command under {BAR_MEGABYTES} MB: {'met' if largest < BAR_MEGABYTES else 'missed'}")


if __name__ == "__main__":
    main()
