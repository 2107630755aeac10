"""Run folders with all that journals can tell, in any order: replaced replies and verdicts, failures, judges, damage."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec

from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.records import (
    Answer,
    Case,
    Cost,
    Expectations,
    Experiment,
    Fact,
    Failure,
    FailureStage,
    Finding,
    Judgment,
    Panel,
    Reply,
    Rule,
    RunInfo,
    Test,
    TestOutcome,
    Tier,
    Verdict,
    Verify,
)
from steelyard.store.journal import Journal, create_run
from steelyard.tiers.rubrics import Rubric, RubricCategory

CASES = (
    Case(id="code", prompt="?", language="python", expectations=Expectations(test_file="t"), group="g"),
    Case(
        id="shaped",
        prompt="?",
        language="rust",
        expectations=Expectations(expected_functions=("f", "g"), max_clippy_warnings=1),
        group="g",
    ),
    Case(id="broken on purpose", prompt="?", language="rust", expectations=Expectations(should_compile=False)),
    Case(id="text", prompt="?", target="x"),
    Case(
        id="answer",
        prompt="?",
        verify=Verify(expect={"type": "json"}),
        suite="json",
        expected_classification="pass",
    ),
    Case(id="opinion", prompt="?", verify=Verify(kind="judge")),
)
MODELS, TIERS = ("p/b", "p/a"), ("", "T1")
RUBRIC = Rubric(id="r", categories=(RubricCategory(name="clear"),))
PANEL = Panel(judges=("j/1", "j/2"), rubric=msgspec.to_builtins(RUBRIC), digest="rubric")
DAMAGE = (b"\n", b"{}\n", b"not json\n", b"\xff\xfe\n", b'{"kind":"reply"}\n', b"\0\0\n", b"[]\n")


def described(chance: random.Random, **fields: Any) -> RunInfo:
    """A run that was planned in one of many ways."""
    tiers: dict[str, Any] = {}
    match chance.randrange(3):
        case 0:
            tiers = {"tiers": TIERS}
        case 1:
            both = tuple(Tier(name=name, model=model) for name, model in zip(("T0", "T1"), MODELS, strict=True))
            tiers = {"experiment": Experiment(id="e", tiers=both), "tiers": ("T0", "T1")}
    return RunInfo(
        **{
            "id": "mixed",
            "started_at": "2026-01-01T00:00:00Z",
            "names": MODELS,
            "samples": chance.choice([None, 1, 3]),
            "k": chance.choice([(1,), (1, 2), (2,)]),
            "rule": chance.choice(["code", "code-structured", "own"]),
            "rules": (Rule(name="own", correct=2, lint=1, structure=1),),
            "unrecorded": chance.choice([{}, {"p/a": 2}]),
            "more": chance.choice([{}, {"p/b": {"code": 4}}]),
            "panel": chance.choice([None, PANEL]),
            **tiers,
            **fields,
        }
    )


def found(chance: random.Random) -> Finding:
    """What a verifier may find out."""
    words: list[TestOutcome] = ["passed", "passed", "failed", "ignored"]
    outcomes = [chance.choice(words) for _ in range(chance.randrange(4))]
    tests = tuple(Test(name=f"t{place}", outcome=outcome) for place, outcome in enumerate(outcomes))
    return Finding(
        code=chance.choice([None, "x = 1\n"]),
        compiled=chance.choice([None, True, True, False]),
        tests=tests,
        warnings=chance.choice([None, 0, 2]),
        missing=chance.choice([None, (), ("f",)]),
        passed=chance.choice([None, None, True, False]),
        score=chance.choice([None, None, 0.5, 1.0]),
        levels=chance.choice([{}, {"plausible": True, "fixed": chance.random() < 0.5}]),
        label=chance.choice(["", "", "refusal", "time  limit\n"]),
        reason=chance.choice(["", "got\n 4", "é" * 300]),
        trust=chance.choice(["", "isolated"]),
        isolation=chance.choice(["", "full"]),
        tampered=chance.choice(["", "", "", "forged"]),
        rechecked=2,
        disagreed=chance.choice([0, 0, 1]),
    )


def line(chance: random.Random, moment: int) -> bytes:
    """One line of a journal: a fact about one of few attempts, or what is left of one."""
    if chance.random() < 0.06:
        return chance.choice(DAMAGE)
    case = chance.choice(CASES)
    model, tier, number = chance.choice([*MODELS, "p/unplanned"]), chance.choice(TIERS), chance.randrange(1, 4)
    keys = [f"{case.id}/{model}/{tier}/{number}/{prompt}" for prompt in ("old", "new")]
    key = chance.choice([*keys, keys[0]])
    fact: dict[str, Any] = {
        "at": f"2026-01-01T00:{moment // 60:02}:{moment % 60:02}Z",
        "case": case.id if chance.random() < 0.95 else "of no case",
        "model": model,
        "tier": tier,
        "number": number,
    }
    match chance.choices(["reply", "verdict", "failure", "appraisal"], [4, 4, 2, 2])[0]:
        case "reply":
            answer = Answer(
                text=chance.choice(["", " \n\u2003", "x = 1", "naïve\x00答案"]),
                finish=chance.choice(["stop", "stop", "length", "timeout", "crash"]),
                input_tokens=chance.choice([None, 0, 7]),
                output_tokens=chance.choice([None, 9]),
                cost=chance.choice([None, Cost(usd=chance.random(), source="s")]),
                latency=chance.choice([0, chance.random() * 9]),
            )
            return encoded(Reply(key=key, answer=answer, asked="a", **fact))
        case "verdict":
            tests = chance.choice([case.tests_digest] * 4 + ["of other tests"])
            return encoded(Verdict(key="v", ask=key, tests=tests, verifier="v", found=found(chance), **fact))
        case "failure":
            stages: list[FailureStage] = ["ask", "verify", "judge"]
            stage, message = chance.choice(stages), chance.choice(["HTTP  503\n", "é" * 300])
            return encoded(Failure(key=key, stage=stage, message=message, **fact))
        case _:
            said = chance.choice(['{"categories": {"clear": {"score": 0.5, "reason": "so"}}}', "no"])
            return encoded(
                Judgment(
                    key="j",
                    ask=key,
                    judge=chance.choice(PANEL.judges),
                    repeat=chance.randrange(1, 3),
                    rubric=chance.choice(["rubric", "rubric", "another"]),
                    answer=Answer(text=said),
                    **fact,
                )
            )


def encoded(fact: Fact) -> bytes:
    return msgspec.json.encode(fact) + b"\n"


def journal(chance: random.Random, lines: int) -> bytes:
    """So many lines."""
    return b"".join(line(chance, moment) for moment in range(lines))


def mixed_run(folder: Path, seed: int, lines: int = 120, **fields: Any) -> Path:
    """A run folder that was left in the middle of a line, in one journal or in several."""
    chance = random.Random(seed)
    create_run(folder, described(chance, **fields), CASES).close()
    for shard in ["attempts-1", "attempts-2"][: chance.randrange(3)]:
        (folder / f"{shard}.jsonl").write_bytes(journal(chance, lines // 3))
    (folder / "attempts.jsonl").write_bytes(journal(chance, lines) + b'{"kind":"reply","key')
    return folder


def prepared(folder: Path) -> Path:
    """The same with what a sitting writes at its end."""
    with Journal(folder) as journal:
        _, notes = summarise_and_cache(journal, journal.info, journal.cases)
        assert notes == ()
    return folder
