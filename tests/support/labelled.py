"""A run that judges decide about, made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from steelyard.records import Answer, Attempt, Case, Judgment, Panel, Reply, RunInfo, Verify
from steelyard.store.journal import create_run
from steelyard.tiers.rubrics import Rubric, RubricCategory

RUBRIC = Rubric(
    id="r",
    categories=(
        RubricCategory(name="right", check="It is right."),
        RubricCategory(name="kind", check="It is kind."),
    ),
)
JUDGES = ("j/one", "j/two")
MODELS = ("m/first", "m/second")
AT = "2026-01-02T03:04:05.000Z"


def case(number: int) -> Case:
    return Case(id=f"case-{number:02}", prompt=f"Say {number}.", verify=Verify(kind="judge"))


def scores(number: int, judge: str) -> float:
    """The judges differ about every fifth answer, and the first fails every third."""
    if number % 5 == 4 and judge == JUDGES[1]:
        return 0.1
    return 0.2 if number % 3 == 2 else 0.95


def judged_run(folder: Path, *, cases: int = 30, models: tuple[str, ...] = MODELS, panel: bool = True) -> Path:
    """A run of some cases that only judges can decide about."""
    asked = [case(number) for number in range(cases)]
    judges = Panel(judges=JUDGES, rubric=msgspec.to_builtins(RUBRIC), digest=RUBRIC.digest) if panel else None
    info = RunInfo(id=folder.name, started_at=AT, ended_at=AT, models=models, names=models, samples=1, panel=judges)
    with create_run(folder, info, asked) as journal:
        for number, one in enumerate(asked):
            for model in models:
                attempt = Attempt(case=one, model=model, number=1)
                about: dict[str, Any] = {"at": AT, "case": one.id, "model": model, "number": 1}
                answer = Answer(text=f"{model} says {number}.", input_tokens=1, output_tokens=1, latency=0.1)
                journal.append(Reply(key=attempt.key, asked=attempt.asked, answer=answer, **about))
                for judge in JUDGES if panel else ():
                    score = scores(number, judge)
                    said = {name: {"reason": "So it is.", "score": score} for name in ("right", "kind")}
                    text = json.dumps({"criteria_scores": said, "score": score, "passed": score >= 0.6})
                    judged = Answer(text=text, input_tokens=1, output_tokens=1, latency=0.1)
                    key = f"{attempt.key}-{judge}"
                    journal.append(
                        Judgment(key=key, ask=attempt.key, judge=judge, rubric=RUBRIC.digest, answer=judged, **about)
                    )
    return folder
