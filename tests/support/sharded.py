"""Runs of the same recorded replies, in one go and in shards."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

import steelyard
from steelyard import Case, Means, Settings
from steelyard.analysis.summary import RunResults
from steelyard.engine import plan
from steelyard.records import Answer, Attempt, Cost, Reply, RunInfo
from steelyard.store.journal import StoredRun, create_run
from support.whole_results import run_results

MEANS = Means(settings=Settings(max_retries=0, retry_delay_ms=1), environment={})
CASES = [
    Case(
        id=f"case-{number:02}",
        prompt=f"question {number}",
        target="yes",
        group="alike" if number in (1, 4, 5) else "",
        suite="odd" if number % 2 else "even",
        weight=1 + number % 3,
    )
    for number in range(11)
]
MODELS = ("p/b", "p/a")
SAMPLES = 4


def recorded(path: Path, cases: list[Case] = CASES, seed: int = 7) -> str:
    """A recording with right and wrong, cut off, slow, priced and unpriced replies; the model that gives them again."""
    chance = random.Random(seed)
    lines = [
        Reply(
            key="",
            at="",
            case=case.id,
            model=model,
            number=number,
            asked=Attempt(case=case, model=model).asked,
            answer=Answer(
                text=chance.choice(["yes", "yes", "no", ""]),
                finish=chance.choice(["stop", "stop", "length"]),
                input_tokens=chance.randrange(50),
                output_tokens=chance.randrange(50),
                cost=Cost(usd=chance.random(), source="s"),
                latency=chance.random() * 5,
            ),
        )
        for case in cases
        for model in MODELS
        for number in range(1, SAMPLES + 1)
        # some cases were never recorded, and some not often enough
        if (case.id, model) != ("case-03", "p/a") and not (case.id == "case-06" and number == SAMPLES)
    ]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return f"replay:{path}"


def run(model: str, folder: Path, shard: tuple[int, int] | None = None, **other: Any) -> steelyard.Run:
    """The run of these cases, or of one shard of them."""
    cases = other.pop("cases", CASES)
    asked: dict[str, Any] = {"samples": SAMPLES, "k": (1, 2, 4), "means": MEANS, **other}
    if shard is not None:
        asked["shard"] = shard
    return steelyard.run(cases, models=model, output=folder, **asked)


def sharded(model: str, folder: Path, of: int, **other: Any) -> list[Path]:
    """All shards of a run, each in a folder of its own."""
    return [run(model, folder / str(number), (number, of), **other).folder for number in range(1, of + 1)]


def told(folder: Path) -> RunResults:
    """All that a run has to tell, texts included."""
    stored = StoredRun(folder)
    return run_results(stored.info, stored.cases, stored.facts())


TIMES = ("id", "run_id", "created_at", "duration_ms", "compilation_ms", "test_execution_ms", "total_ms")


def timeless(report: str) -> Any:
    """A report in JSON without ids, and without the times that no two runs share."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(one) for name, one in value.items() if name not in TIMES}
        return [without(one) for one in value] if isinstance(value, list) else value

    return without(json.loads(report))


def crafted(folder: Path, replies: int, size: int, of: int = 2) -> list[Path]:
    """Shards whose journals hold so many replies of so many bytes each, all to the first case of a shard."""
    cases = [Case(id=f"c{number}", prompt="?", target="x") for number in range(of)]
    info = RunInfo(id="", started_at="2026-01-01T00:00:00.000Z", models=("p/m",), names=("p/m",), samples=replies)
    folders = []
    for number, case in enumerate(cases, 1):
        described = replace(info, id=f"s{number}", shard=plan.shard_record(info, cases, number, of))
        create_run(folder / str(number), described, [case]).close()
        with (folder / str(number) / "attempts.jsonl").open("wb") as file:
            for attempt in range(1, replies + 1):
                answer = Answer(text=f"{attempt} " + "x" * size)
                key = f"{case.id}/{attempt}"
                fact = Reply(key=key, at="t", case=case.id, model="p/m", number=attempt, asked="", answer=answer)
                file.write(msgspec.json.encode(fact) + b"\n")
        folders.append(folder / str(number))
    return folders
