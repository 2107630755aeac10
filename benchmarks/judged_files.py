"""Rates of real judges, corrected by real labels: by our commands and by those of the package truescore, from the same files.

    python -m benchmarks.judges --repositories DIR [--repeats 300]

DIR has the git directory of the public repository paul-rottger/exaggerated-safety, OWNER+NAME/repo. It has 450 replies of each
of five models, which people labelled (does the reply answer in full?) and two judges: GPT-4, and a search for phrases. Some labels
are drawn, written to a file and given to both programs; the rate of all 450 labels is what both should find. The package
truescore must be installed.
"""

from __future__ import annotations

import csv
import importlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import refusals

from steelyard.stats.intervals import Interval
from steelyard.stats.judged import JudgedAnswer, corrected_rate

LABELS = (50, 200)
JUDGES = {"GPT-4": ("gpteval", "gpt4_label"), "phrases": ("streval", "strmatch_label")}
RUBRIC = {"id": "answered", "requirements": [{"id": "answers", "description": "The reply answers in full."}]}


class JudgedReply(NamedTuple):
    """A reply, what a judge says of it, and what people say."""

    case: str
    prompt: str
    text: str
    judge: bool
    person: bool


def judged_replies(repositories: Path) -> Iterator[tuple[str, str, list[JudgedReply]]]:
    """By model and judge, all replies."""
    for judge, (ending, column) in JUDGES.items():
        for path, table in refusals.files(repositories, refusals.XSTEST, f"_{ending}.csv"):
            model = Path(path).stem.split("_")[3]
            rows = list(refusals.rows(table))
            yield (
                model,
                judge,
                [
                    JudgedReply(
                        row["id"],
                        row["prompt"],
                        row["completion"],
                        row[column].startswith("1"),
                        row["final_label"].startswith("1"),
                    )
                    for row in rows
                ],
            )


def steelyard(*arguments: str | Path) -> str:
    """What a command of ours prints."""
    command = [sys.executable, "-m", "steelyard.cli", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def write_run(folder: Path, replies: list[JudgedReply]) -> Path:
    """A run of these replies with what the judge said, by our commands."""
    cases = [{"id": each.case, "prompt": each.prompt, "verify": {"kind": "judge"}} for each in replies]
    said = [{"case_id": each.case, "model_id": "recorded", "raw_response": each.text} for each in replies]
    marks = []
    for each in replies:
        score = int(each.judge)
        text = {"criteria_scores": {"answers": {"reason": "As recorded.", "score": score}}, "score": score}
        marks.append({"case_id": each.case, "model_id": "judge", "raw_response": json.dumps(text)})
    for name, rows in (("cases", cases), ("replies", said), ("marks", marks)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    run = folder / "run"
    steelyard("run", folder / "cases.jsonl", "--models", f"replay:{folder / 'replies.jsonl'}", "--output", run)
    steelyard("judge", run, "--judges", f"replay:{folder / 'marks.jsonl'}", "--rubric", folder / "rubric.json")
    return run


def write_table(path: Path, head: list[str], rows: list[list[Any]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def by_commands(folder: Path, replies: list[JudgedReply], order: list[int]) -> Iterator[tuple[int, Interval, Interval]]:
    """By the number of labels, the interval of ours and that of truescore, from the same file of labels."""
    run = write_run(folder, replies)
    for count in LABELS:
        picked = set(order[:count])
        rows = [
            [each.case, int(each.judge), int(each.person) if place in picked else ""]
            for place, each in enumerate(replies)
        ]
        labels = write_table(folder / f"labels-{count}.csv", ["case", "judge", "passed"], rows)
        steelyard("label", run, "--import", labels, "--by", "people")
        steelyard("report", run, "-o", folder / "report.json")
        (ours,) = json.loads((folder / "report.json").read_text())["summary"]["judged"]["models"]
        audit = ["audit", labels, "--judge", "judge", "--gold", "passed", "--id-column", "case"]
        audit += ["--json", folder / "audit.json"]
        command = [sys.executable, "-m", "truescore.cli", *map(str, audit)]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        if ended.returncode == 1:
            raise SystemExit(f"truescore: {ended.stderr}")
        theirs = json.loads((folder / "audit.json").read_text())["corrected"]
        yield (
            count,
            Interval(ours["corrected"]["low"], ours["corrected"]["high"]),
            Interval(theirs["low"], theirs["high"]),
        )


def held(replies: list[JudgedReply], count: int, repeats: int, package: Any) -> tuple[int, int]:
    """In how many draws of labels the interval of ours, and that of truescore, holds the rate of all labels."""
    chance = random.Random(count)
    truth = sum(each.person for each in replies) / len(replies)
    judged = [float(each.judge) for each in replies]
    ours = theirs = 0
    for _ in range(repeats):
        picked = sorted(chance.sample(range(len(replies)), count))
        chosen = set(picked)
        answers = [
            JudgedAnswer(each.case, each.judge, label=float(each.person) if place in chosen else None)
            for place, each in enumerate(replies)
        ]
        found = corrected_rate(answers)
        ours += found is not None and found.interval.low <= truth <= found.interval.high
        other = package.ppi_estimate(judged, [float(replies[place].person) for place in picked], picked)
        theirs += other.low <= truth <= other.high
    return ours, theirs


def print_comparison(repositories: Path, repeats: int) -> None:
    """Print a table with a row for each model, judge and number of labels."""
    try:
        package = importlib.import_module("truescore")
    except ImportError:
        raise SystemExit("the package truescore is not installed; install it with: pip install truescore") from None
    print(
        "| replies of | judge | labels | by all labels | judge says | corrected | by truescore | held | truescore held |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for model, judge, replies in judged_replies(repositories):
        print_rows(model, judge, replies, repeats, package)


def print_rows(model: str, judge: str, replies: list[JudgedReply], repeats: int, package: Any) -> None:
    """Print the rows of one model and judge, one for each number of labels."""
    truth = sum(each.person for each in replies) / len(replies)
    raw = sum(each.judge for each in replies) / len(replies)
    order = random.Random(model + judge).sample(range(len(replies)), len(replies))
    with tempfile.TemporaryDirectory() as folder:
        for count, ours, theirs in by_commands(Path(folder), replies, order):
            counts = [f"{each / repeats:.1%}" for each in held(replies, count, repeats, package)]
            spans = [f"{each.low:.1%} to {each.high:.1%}" for each in (ours, theirs)]
            print(
                "|",
                " | ".join([model, judge, str(count), f"{truth:.1%}", f"{raw:.1%}", *spans, *counts]),
                "|",
                flush=True,
            )
