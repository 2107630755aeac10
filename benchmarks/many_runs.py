"""What questions over thousands of runs cost, and that a question about one model or suite is a small scan of them.

    python benchmarks/many_runs.py [--runs 1000] [--cases 10] [--samples 5] [--folder DIR]

Each run has two of 40 models, two of ten suites, and 200 attempts with replies of 1 KB (10 cases in a suite, 5 samples). What `list`, `latest` and
the viewer need hardly depends on the attempts, so `--runs 10000 --cases 2 --samples 1` is enough for them. The viewer is measured to its start, to its
first page, and to ten more pages. The runs are made on all processors, with their copies but for the last 200, which the first question
writes; the questions after it are what anybody pays. Every command is a process of its own, start-up
included; CPU time is that of all threads, memory is the peak of the whole process. Beside it stands how many of the copies'
files the question opens, as DuckDB tells it. The floor is what it takes to read the
description and the sizes of every run folder, which every question must do; a second one is Python with DuckDB alone, and a third
is DuckDB alone, which counts in a list of the files that a question is about.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.engine.results.query import fact_scores
from steelyard.records import Answer, Case, EvalSetFile, Finding, Reply, RunInfo, Test, TestOutcome, Verdict
from steelyard.store.archive import open_run_database
from steelyard.store.journal import Journal, create_run

MODELS = [f"provider/model-{number:02}" for number in range(40)]
SUITES = [f"suite-{number}" for number in range(10)]
KINDS = 20
"""Runs that differ in more than their names; each has two models of its own."""
RUNS_PER_PART = 50
"""Runs that one process makes at a time, and asks one question about."""
UNCOPIED = 200
"""Runs that get their copies from the first question that is measured."""
VIEWER_START_SECONDS = 2
BAR_MEGABYTES = 1500
BAR_SHARE = 0.1
"""Of the copies that a question about one model may open, where one run in twenty has it."""
MOMENT = "2026-01-02T03:04:06Z"
DUCKDB_FLOOR = "import duckdb; duckdb.connect(config={'threads': 1}).execute('SELECT 1').fetchall()"
FILES_FLOOR = """
import sys, duckdb
files = open(sys.argv[1]).read().split("\\n")
sql = "SELECT avg(correct::INT), count(DISTINCT run) FROM read_parquet(?, hive_partitioning = true)"
duckdb.connect(config={"threads": 2}).execute(sql, [files]).fetchall()
"""
FLOOR = """
import os, sys
for entry in os.scandir(sys.argv[1]):
    with open(f"{entry.path}/run.json", "rb") as file:
        file.read()
    sum(each.stat().st_size for each in os.scandir(entry.path))
"""


class Cost(NamedTuple):
    seconds: float
    wall: float
    megabytes: float


def template(folder: Path, kind: int, cases_per_suite: int, samples: int) -> Path:
    """A run of a kind."""
    chance = random.Random(kind)
    models = MODELS[2 * kind : 2 * kind + 2]
    suites = [SUITES[kind % 10], SUITES[(kind + 1 + kind // 10) % 10]]
    cases = [
        Case(id=f"{suite}/{number}", prompt="?", suite=suite) for suite in suites for number in range(cases_per_suite)
    ]
    eval_set = EvalSetFile(path=f"evals/set-{kind}.toml", digest="")
    info = RunInfo(id="", started_at=MOMENT, ended_at=MOMENT, models=tuple(models), eval_sets=(eval_set,))
    with create_run(folder, info, cases) as journal:
        for case in cases:
            for model in models:
                for number in range(1, samples + 1):
                    where: dict[str, Any] = {"case": case.id, "model": model, "number": number, "at": MOMENT}
                    key = f"{case.id} {model} {number}"
                    text = chance.randbytes(500).hex()
                    journal.append(Reply(key=key, asked="", answer=Answer(text=text), **where))
                    outcome: TestOutcome = "passed" if chance.random() < 0.7 else "failed"
                    found = Finding(code=text, compiled=True, tests=(Test(name="t", outcome=outcome),), warnings=0)
                    verdict = Verdict(
                        key="v" + key, ask=key, tests=case.tests_digest, verifier="v", found=found, **where
                    )
                    journal.append(verdict)
    return folder


def prepare(root: Path, runs: int, cases: int, samples: int, scratch: Path, uncopied: int = UNCOPIED) -> None:
    """So many run folders as runs and questions leave them, made on all processors; some, the last ones, are without copies."""
    kinds = [template(scratch / str(kind), kind, cases, samples) for kind in range(KINDS)]
    root.mkdir()
    parts = [range(start, min(start + RUNS_PER_PART, runs)) for start in range(0, runs, RUNS_PER_PART)]
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        made = [processes.submit(_prepare_part, root, kinds, part, runs - uncopied) for part in parts]
        for each in made:
            each.result()


def _prepare_part(root: Path, kinds: list[Path], numbers: range, first_uncopied: int) -> None:
    part = kinds[0].parent / f"part-{numbers.start}"
    part.mkdir()
    for number in numbers:
        folder = part / f"run-{number:05}"
        shutil.copytree(kinds[number % KINDS], folder)
        described = msgspec.json.decode((folder / "run.json").read_bytes())
        (folder / "run.json").write_bytes(msgspec.json.encode(described | {"id": folder.name}))
        with Journal(folder) as journal:
            summarise_and_cache(journal, journal.info, journal.cases)
    if numbers.stop <= first_uncopied:
        with open_run_database(part, fact_scores):
            pass
    for number in numbers:
        (part / f"run-{number:05}").rename(root / f"run-{number:05}")


def measured(command: list[str], place: Path) -> Cost:
    """What a command takes, by the process and its children."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=place)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command}: ended with {os.waitstatus_to_exitcode(status)}")
    return _cost(used, began)


def measured_viewer(command: list[str], place: Path, pages: int) -> Cost:
    """What the viewer takes until it has shown so many pages of the list."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    base = address.partition("?")[0]
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(f"{base}healthz").read()
    for page in range(pages):
        opener.open(f"{base}?page={page + 1}" if page else address).read()
    # templates are compiled beside the first requests
    time.sleep(VIEWER_START_SECONDS)
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    _, _, used = os.wait4(process.pid, 0)
    return _cost(used, began)


def _cost(used: resource.struct_rusage, began: float) -> Cost:
    kilobyte = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in kilobytes elsewhere
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss * kilobyte / 1e6)


def warm_up(steelyard: list[str], place: Path, run: Path) -> None:
    """Run each command once over one run: on a fresh machine the first start of each compiles its modules."""
    shutil.copytree(run, place / "steelyard-runs" / "run-0")
    measured([*steelyard, "show", "latest"], place)
    measured([*steelyard, "query", ATTEMPTS], place)
    measured_viewer([*steelyard, "view", "--port", "0", "--no-browser"], place, 1)


def write_file_list(path: Path, root: Path, model: str = "*") -> None:
    """The paths of all copies, or those of one model."""
    found = root.glob(f"*/attempts/model={model.replace('/', '%2F')}/*/*.parquet")
    path.write_text("\n".join(sorted(map(str, found))))


def opened(sql: str, root: Path) -> tuple[int, int]:
    """How many files of copies a question opens, and how many there are."""
    with open_run_database(root, fact_scores) as archive:
        ((_, told),) = archive._database.execute(f"EXPLAIN ANALYZE {sql}").fetchall()
    files = sum(int(count) for count in re.findall(r"Total Files Read: (\d+)", told))
    return files, sum(1 for _ in root.glob("*/attempts/*/*/*.parquet"))


COUNT = "SELECT count(*) FROM attempts"
WRITES_COPIES = "the first question, which writes copies"
LONGEST_OF_ALL = "query: longest replies of all"
ATTEMPTS = "SELECT avg(correct::INT), count(DISTINCT run) FROM attempts"
QUESTIONS = {
    "query: one run": f"{ATTEMPTS} WHERE run = 'run-00007'",
    "query: all attempts": ATTEMPTS,
    "query: one model": f"{ATTEMPTS} WHERE model = '{MODELS[7]}'",
    "query: one suite": f"{ATTEMPTS} WHERE suite = '{SUITES[3]}'",
    "query: one model in one suite": f"{ATTEMPTS} WHERE model = '{MODELS[7]}' AND suite = '{SUITES[3]}'",
    LONGEST_OF_ALL: "SELECT max(length(reply)) FROM attempts",
    "query: longest replies of one model": f"SELECT max(length(reply)) FROM attempts WHERE model = '{MODELS[7]}'",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="run folders (default: 1000)")
    parser.add_argument("--cases", type=int, default=10, help="of each of a run's two suites (default: 10)")
    parser.add_argument("--samples", type=int, default=5, help="attempts of each model at a case (default: 5)")
    parser.add_argument("--no-scans", action="store_true", help="ask nothing about the attempts of many runs")
    parser.add_argument("--folder", help="where they are written and deleted again (default: the usual place)")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-", dir=given.folder) as scratch:
        place = Path(scratch)
        root = place / "steelyard-runs"
        prepare(
            root, given.runs, given.cases, given.samples, place / "kinds", given.runs if given.no_scans else UNCOPIED
        )
        steelyard = [sys.executable, "-m", "steelyard.cli"]
        commands: dict[str, list[str] | int] = {
            "floor: look at every folder": [sys.executable, "-c", FLOOR, str(root)],
            "floor: Python with DuckDB": [sys.executable, "-c", DUCKDB_FLOOR],
            "list": [*steelyard, "list"],
            "show latest": [*steelyard, "show", "latest"],
            "view: start": 0,
            "view: with the first page": 1,
            "view: with ten more pages": 11,
        }
        lists = {"*": place / "all", MODELS[7]: place / "one-model"}
        if not given.no_scans:
            floor = [sys.executable, "-c", FILES_FLOOR]
            commands |= {
                WRITES_COPIES: [*steelyard, "query", COUNT],
                "query: no attempts": [*steelyard, "query", "SELECT count(*) FROM runs"],
                **{name: [*steelyard, "query", sql] for name, sql in QUESTIONS.items()},
                "floor: DuckDB, files of all attempts": [*floor, str(lists["*"])],
                "floor: DuckDB, files of one model": [*floor, str(lists[MODELS[7]])],
            }
        warm_up([*steelyard], place / "warm", place / "kinds" / "0")
        title = f"{given.runs:,} runs, {given.runs * 4 * given.cases * given.samples:,} attempts"
        print(f"\n{title:<44}{'CPU s':>8}{'wall s':>9}{'MB':>7}{'files opened':>17}", flush=True)
        largest, files = 0.0, dict[str, tuple[int, int]]()
        for name, command in commands.items():
            if isinstance(command, int):
                cost = measured_viewer([*steelyard, "view", "--port", "0", "--no-browser"], place, command)
            else:
                cost = measured(command, place)
            if name == WRITES_COPIES:
                for model, path in lists.items():
                    write_file_list(path, root, model)
            if name in QUESTIONS:
                files[name] = opened(QUESTIONS[name], root) if name != LONGEST_OF_ALL else files["query: all attempts"]
            told = f"{files[name][0]:,} of {files[name][1]:,}" if name in files else ""
            print(f"  {name:<42}{cost.seconds:>8.2f}{cost.wall:>9.1f}{cost.megabytes:>7.0f}{told:>17}", flush=True)
            largest = max(largest, cost.megabytes)
    if given.no_scans:
        return
    few, many = files["query: one model"]
    met = largest < BAR_MEGABYTES and few < BAR_SHARE * many
    bars = f"under {BAR_MEGABYTES} MB, and less than {BAR_SHARE:.0%} of the files for one model"
    print(f"\nbar: {bars}: {'met' if met else 'missed'}")


if __name__ == "__main__":
    main()
