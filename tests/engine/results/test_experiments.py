"""A whole experiment: agents that are real programs, judges over HTTP, killed twice, and every figure worked out again."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import krippendorff
import pytest

from steelyard.engine.plan import planned_attempts
from steelyard.protocols import Provider
from steelyard.providers.agent.provider import AgentProvider
from steelyard.records import Fact, Failure, Judgment, Reply, Verdict
from steelyard.store.journal import StoredRun
from support.fault_server import Behaviour, FaultServer, Request, refuses, says
from support.toolchains import needs

pytestmark = needs("git")

# ---- what programs and judges are scripted to do

TIERS, CASES, RUNS = ("T0", "T1", "T2"), ("c0", "c1", "c2", "c3"), range(1, 6)
ATTEMPTS = [(tier, case, number) for tier in TIERS for case in CASES for number in RUNS]
JUDGES = ("openai/lenient", "openai/strict")
GARBAGE = ("T1", "c2", 5)
"""What the lenient judge never has a usable word for."""
Attempt = tuple[str, str, int]


def passes(tier: str, case: str, number: int) -> bool:
    """T0 solves a task now and then and half solves the others, T1 nearly always, T2 breaks what worked every third time."""
    place = CASES.index(case)
    return {"T0": (number + place) % 4 == 0, "T1": (place, number) not in {(0, 3), (3, 5)}, "T2": number % 3 > 0}[tier]


def cost(tier: str, case: str, number: int) -> float:
    """Agents tell what they cost, but for that of T2, which tells its tokens."""
    if tier == "T2":
        return ((1000 + number) * 3 + 200 * 15) / 1e6
    return {"T0": 0.01, "T1": 0.03}[tier] + 0.001 * CASES.index(case) + 0.0001 * (number % 3)


def scores(judge: str, tier: str, case: str, number: int) -> dict[str, float | None]:
    """The strict judge gives less, and where the number is even it finds nothing to be documented."""
    right = passes(tier, case, number)
    strict = judge == JUDGES[1]
    works = (1.0 if right else 0.5 if tier == "T0" else 0.25) - (0.25 if strict else 0.0)
    clean = (number % 5) / 5 if strict else 0.5 + (number % 5) / 10
    told = 0.75 if strict else 0.5 + number % 4 / 8
    return {"works": works, "clean": clean, "documented": None if number % 2 == 0 and strict else told}


WEIGHTS = {"works": 3.0, "clean": 1.0, "documented": 2.0}
PRICES = {"openai/lenient": (1.0, 4.0), "openai/strict": (2.0, 8.0)}
USAGE = {"input": 100, "output": 20}


def share(judge: str, attempt: Attempt) -> float | None:
    """What a judge's marks come to."""
    if judge == JUDGES[0] and attempt == GARBAGE:
        return None
    known = {name: score for name, score in scores(judge, *attempt).items() if score is not None}
    return sum(score * WEIGHTS[name] for name, score in known.items()) / sum(WEIGHTS[name] for name in known)


AGENT = """
import json, os, sys
tier, case, number = (os.environ[f"STEELYARD_{name}"] for name in ("TIER", "CASE", "NUMBER"))
log = os.open(os.environ["ASKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, f"{os.environ['ENGINE']} {tier} {case} {number}\\n".encode())
place, number = int(case[1]), int(number)
right = "def double(x):\\n    return 2 * x\\n\\ndef half(x):\\n    return x // 2\\n"
wrong = {WRONG}
text = right if {RIGHT} else wrong
open("tool.py", "w").write(f"# {tier} {case} run {number}\\n" + text)
print(json.dumps([sys.stdin.read(), os.environ.get("HINT"), sorted(os.listdir("."))]))
print(json.dumps({USED}))
"""
HALF_SOLVES = {
    "{WRONG}": r'"def double(x):\n    return 2 * x if x < 5 else x\n\ndef half(x):\n    return x // 2\n"',
    "{RIGHT}": "(number + place) % 4 == 0",
    "{USED}": '{"total_cost_usd": 0.01 + 0.001 * place + 0.0001 * (number % 3)}',
}
SOLVES = {
    "{WRONG}": r'"def double(x):\n    return None\n\ndef half(x):\n    return x // 2\n"',
    "{RIGHT}": "(place, number) not in {(0, 3), (3, 5)}",
    "{USED}": '{"total_cost_usd": 0.03 + 0.001 * place + 0.0001 * (number % 3)}',
}
BREAKS = {
    "{WRONG}": r'"def double(x):\n    return 2 * x\n\ndef half(x):\n    return x\n"',
    "{RIGHT}": "number % 3 > 0",
    "{USED}": '{"usage": {"input_tokens": 1000 + number, "output_tokens": 200}}',
}
BEFORE = "def double(x):\n    return x\n\ndef half(x):\n    return x // 2\n"
CHECK = """
tool = {}
exec(open("tool.py").read(), tool)
tests = [("double", tool["double"](2) == 4), ("double more", tool["double"](9) == 18), ("half", tool["half"](8) == 4)]
tests += [("what nobody can mend", False)] * MORE
print(f"1..{len(tests)}")
for number, (name, passed) in enumerate(tests, 1):
    print("ok" if passed else "not ok", number, "-", name)
raise SystemExit(not all(passed for _, passed in tests))
"""
EXPERIMENT = """
[experiment]
id = "doubling"
cases = ["cases.toml"]
runs = 5

[judging]
judges = ["openai/strict", "openai/lenient"]
rubric = "rubric.toml"

[[tiers]]
name = "T0"
title = "half solves"
agent = "python3 -I -S -B half.py"
system = "Be quick."
environment = { HINT = "none" }

[[tiers]]
name = "T1"
title = "solves"
agent = "python3 -I -S -B solve.py"
prompt = "Think first.\\n{{prompt}}"
files = { "SKILL.md" = "file://skill.md" }
environment = { HINT = "look" }

[[tiers]]
name = "T2"
title = "breaks what worked"
extends = "T1"
agent = "python3 -I -S -B break.py"
model = "local/breaker"
files = { "more/NOTES.md" = "More." }
"""
RUBRIC = """
[categories.works]
weight = 3
check = "It works."
[categories.clean]
weight = 1
check = "It is clean."
[categories.documented]
weight = 2
check = "It is documented."
na_condition = "Nothing is to be documented."
"""


def case_table(name: str) -> str:
    workspace, results = (
        ("exits", "") if name == "c3" else ("taps", 'results = "tap"\nfixes = ["double", "double more"]')
    )
    return f"""
[[cases]]
id = "{name}"
name = "{name}"
prompt = "Mend double, {name}."
workspace = "{workspace}"
[cases.verify]
kind = "command"
test = "python3 -I -S -B check.py"
{results}
[cases.verify.files]
"check.py" = "file://{workspace}/check.py"
"""


def judging(request: Request) -> Behaviour:
    """The scripts of both judges."""
    judge = f"openai/{request.body['model']}"
    if judge == JUDGES[0] and "response_format" in request.body:
        return refuses(400, "response_format is not known here")
    (tier, case, number), repaired = judged_in(request), len(request.body["messages"]) > 2
    attempt = tier, case, number
    if judge == JUDGES[0] and attempt == GARBAGE:
        return says("I would rather not say.", usage=USAGE)
    marks = scores(judge, *attempt)
    given = {name: {"reason": "so", "score": "N/A" if score is None else score} for name, score in marks.items()}
    total = share(judge, attempt)
    assert total is not None
    said = json.dumps({"criteria_scores": given, "reasoning": "", "score": total, "passed": total >= 0.6})
    if judge == JUDGES[1] and number == 4 and not repaired:
        return says(said.replace('"works"', '"worked"'), usage=USAGE)
    return says(
        f"Let me see {{what}} this is.\n```json\n{said}\n```\nThat is all." if number % 3 == 0 else said, usage=USAGE
    )


def judged_in(request: Request) -> Attempt:
    found = re.search(r"\| \+# (T\d) (c\d) run (\d+)", request.body["messages"][1]["content"])
    assert found
    return found[1], found[2], int(found[3])


# ---- the experiment, killed and carried on


class Place:
    """A folder with an experiment, and what came of it."""

    def __init__(self, folder: Path, server: FaultServer) -> None:
        self.folder, self.server = folder, server
        self.run = folder / "run"
        self.stored: list[set[str]] = []
        """After each kill, the keys of what was stored by then."""
        self.asked = 0
        """Requests to judges before the last process began."""
        self.summary = ""
        self.report: dict[str, Any] = {}
        for name, script in ("half", HALF_SOLVES), ("solve", SOLVES), ("break", BREAKS):
            text = AGENT
            for blank, filled in script.items():
                text = text.replace(blank, filled)
            (folder / f"{name}.py").write_text(text)
        for workspace, more in ("taps", "1"), ("exits", "0"):
            (folder / workspace).mkdir()
            (folder / workspace / "tool.py").write_text(BEFORE)
            (folder / workspace / "check.py").write_text(CHECK.replace("MORE", more))
        header = '[eval_set]\nid = "doubling"\nname = "Doubling"\ndefault_language = "python"\n'
        (folder / "cases.toml").write_text(header + "".join(map(case_table, CASES)))
        (folder / "experiment.toml").write_text(EXPERIMENT)
        (folder / "rubric.toml").write_text(RUBRIC)
        (folder / "skill.md").write_text("Double means twice.\n")
        prices = [f'[prices."{judge}"]\ninput = {given}\noutput = {said}' for judge, (given, said) in PRICES.items()]
        prices.append('[prices."local/breaker"]\ninput = 3\noutput = 15')
        (folder / "steelyard.toml").write_text("retry_delay_ms = 1\n" + "\n".join(prices))

    def start(self, engine: str, *command: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "OPENAI_"))}
        given = {"ASKS": str(self.folder / "asks"), "ENGINE": engine, "OPENAI_BASE_URL": self.server.url}
        return subprocess.Popen(
            [sys.executable, "-m", "steelyard.cli", *command],
            cwd=cwd or self.folder,
            env={**clean, **given, "OPENAI_API_KEY": "sk-none"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill_at(self, facts: int, engine: str, *command: str) -> None:
        """Kill a process in the midst of its work, when so many facts are stored."""
        process = self.start(engine, *command)
        journal = self.run / "attempts.jsonl"
        while not journal.exists() or journal.read_bytes().count(b"\n") < facts:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        self.stored += [{fact.key for fact in StoredRun(self.run).facts() if isinstance(fact, Reply | Judgment)}]

    def finish(self, engine: str, *command: str, cwd: Path | None = None) -> str:
        process = self.start(engine, *command, cwd=cwd)
        printed, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return printed

    def asks(self, engine: str) -> list[Attempt]:
        lines = (line.split() for line in (self.folder / "asks").read_text().splitlines())
        return [(tier, case, int(number)) for by, tier, case, number in lines if by == engine]

    @cached_property
    def facts(self) -> list[Any]:
        stored = StoredRun(self.run)
        found = list(stored.facts())
        assert not stored.damaged
        return found

    def kept(self, kind: type[Any]) -> list[Any]:
        return [fact for fact in self.facts if isinstance(fact, kind)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with FaultServer() as server:
        server.script = judging
        place = Place(tmp_path_factory.mktemp("experiment"), server)
        place.kill_at(45, "first", "tiers", "experiment.toml", "--output", "run", "-j", "2")
        place.kill_at(170, "second", "resume", "run", "-j", "2")
        place.asked = len(server.requests)
        # from anywhere: nothing is looked for where the command is typed
        elsewhere = place.folder / "elsewhere"
        elsewhere.mkdir()
        config = str(place.folder / "steelyard.toml")
        place.summary = place.finish("third", "resume", str(place.run), "-j", "2", "--config", config, cwd=elsewhere)
        place.report = json.loads(place.finish("fourth", "tiers", "run", "--format", "json"))
        yield place


def of(fact: Fact) -> Attempt:
    return fact.tier, fact.case, fact.number


def test_every_attempt_is_stored_once_and_none_is_asked_for_after_it_was_stored(place: Place) -> None:
    replies, verdicts = place.kept(Reply), place.kept(Verdict)
    assert sorted(map(of, replies)) == sorted(map(of, verdicts)) == sorted(ATTEMPTS)
    assert {verdict.ask for verdict in verdicts} == {reply.key for reply in replies}
    keys = {of(reply): reply.key for reply in replies}
    for engine, before in zip(("second", "third"), place.stored, strict=True):
        assert not {keys[ask] for ask in place.asks(engine)} & before
        assert max(Counter(place.asks(engine)).values(), default=0) <= 1
    assert len(place.asks("first")) < len(ATTEMPTS)
    assert place.asks("fourth") == []


def test_the_kills_fell_into_both_halves_of_the_work(place: Place) -> None:
    first, second = place.stored
    appraisals = {appraisal.key for appraisal in place.kept(Judgment)}
    assert 0 < len(first) < len(ATTEMPTS)
    assert not first & appraisals
    assert 0 < len(second & appraisals) < 2 * len(ATTEMPTS)


def test_every_judge_is_heard_once_on_every_attempt_and_no_more(place: Place) -> None:
    usable = [fact for fact in place.kept(Judgment) if not fact.unusable]
    heard = Counter((fact.judge, of(fact)) for fact in usable)
    assert set(heard.values()) == {1}
    assert set(heard) == {(judge, one) for judge in JUDGES for one in ATTEMPTS} - {(JUDGES[0], GARBAGE)}
    _, before = place.stored
    done = {(fact.judge, of(fact)) for fact in usable if fact.key in before}
    later = place.server.requests[place.asked :]
    assert not {(f"openai/{each.body['model']}", judged_in(each)) for each in later} & done


def test_an_answer_that_cannot_be_used_is_asked_for_again_and_at_last_a_failure(place: Place) -> None:
    for fact in place.kept(Judgment):
        is_garbage = (fact.judge, of(fact)) == (JUDGES[0], GARBAGE)
        repaired = fact.judge == JUDGES[1] and fact.number == 4
        assert fact.requests == (3 if is_garbage else 2 if repaired else 1)
        assert bool(fact.unusable) == is_garbage
    failures = place.kept(Failure)
    assert {(failure.stage, of(failure)) for failure in failures} == {("judge", GARBAGE)}
    assert "openai/lenient gave no usable judgment: " in failures[0].message


def test_no_tier_is_ahead_of_another_and_each_is_first_equally_often(place: Place) -> None:
    stored = StoredRun(place.run)
    agents: dict[str, Provider] = {tier: AgentProvider("true") for tier in TIERS}
    planned = [(one.tier, one.case.id, one.number) for one in planned_attempts(stored.info, stored.cases, agents)]
    assert sorted(planned) == sorted(ATTEMPTS)
    groups = [planned[at : at + len(TIERS)] for at in range(0, len(planned), len(TIERS))]
    assert all(len({one[1:] for one in group}) == 1 for group in groups)
    first = Counter(group[0][0] for group in groups)
    assert sorted(first[tier] for tier in TIERS) == [6, 7, 7]
    # what the programs say of when they began, two at a time
    begun: Counter[str] = Counter()
    for tier, _, _ in place.asks("first"):
        begun[tier] += 1
        assert max(begun.values()) - min(begun[name] for name in TIERS) <= 4


def test_agents_see_the_prompt_the_files_and_the_environment_of_their_tier(place: Place) -> None:
    for reply in place.kept(Reply):
        prompt, hint, files = json.loads(reply.answer.transcript.splitlines()[0])
        asked = f"Mend double, {reply.case}."
        assert prompt == (f"Be quick.\n\n{asked}" if reply.tier == "T0" else f"Think first.\n{asked}")
        assert hint == ("none" if reply.tier == "T0" else "look")
        added = {"T0": [], "T1": ["SKILL.md"], "T2": ["SKILL.md", "more"]}[reply.tier]
        assert files == sorted([*added, "check.py", "tool.py"])
        assert "SKILL.md" not in reply.answer.text
        assert reply.answer.cost.usd == pytest.approx(cost(*of(reply)))
        assert reply.answer.cost.source == ("the settings file" if reply.tier == "T2" else "the agent")


def test_what_failed_before_is_not_blamed_and_what_broke_is(place: Place) -> None:
    for verdict in place.kept(Verdict):
        outcomes = {test.name: test.outcome for test in verdict.found.tests}
        if verdict.case != "c3":
            assert outcomes["what nobody can mend"] == "ignored"
            assert outcomes["half"] == ("failed" if verdict.tier == "T2" and not passes(*of(verdict)) else "passed")
        assert verdict.found.label == ("" if passes(*of(verdict)) else "wrong answer")
    broken = next(fact for fact in place.kept(Verdict) if fact.tier == "T2" and fact.number == 3 and fact.case == "c0")
    assert broken.found.reason.startswith("half: passed before")


# ---- the figures, worked out again


def voices(attempt: Attempt) -> list[float]:
    return [said for judge in JUDGES if (said := share(judge, attempt)) is not None]


def figures(attempt: Attempt) -> dict[str, float]:
    """The metrics of one run by the words of the formulas."""
    rate, impl, usd = float(passes(*attempt)), statistics.fmean(voices(attempt)), cost(*attempt)
    price = usd / rate if rate else math.inf
    return {
        "pass_rate": rate,
        "impl_rate": impl,
        "composite": (rate + impl) / 2,
        "cost_usd": usd,
        "cost_of_pass": price,
    }


def of_tier(tier: str, metric: str) -> list[float]:
    return [figures(one)[metric] for one in ATTEMPTS if one[0] == tier]


def close(value: float | None) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def test_the_metrics_of_every_run_are_those_of_the_script(place: Place) -> None:
    rows = {(row["tier"], row["case"], row["number"]): row for row in place.report["runs"]}
    assert sorted(rows) == sorted(ATTEMPTS)
    for attempt, row in rows.items():
        expected = figures(attempt)
        assert {name: row[name] for name in ("pass_rate", "impl_rate", "composite", "cost_usd")} == {
            name: close(expected[name]) for name in ("pass_rate", "impl_rate", "composite", "cost_usd")
        }
        assert row.get("cost_of_pass_infinite", False) == (expected["cost_of_pass"] == math.inf)
        assert row["cost_of_pass"] == (None if not expected["pass_rate"] else close(expected["cost_usd"]))
        assert row["passed"] == passes(*attempt)
        assert row["passed_by"] == "record"


@pytest.mark.parametrize("tier", TIERS)
def test_the_statistics_of_every_tier_are_those_of_its_runs(place: Place, tier: str) -> None:
    (model,) = place.report["models"]
    found = next(each for each in model["tiers"] if each["tier"] == tier)
    assert (found["cases"], found["runs"], found["unit"]) == (4, 20, "run")
    for metric in ("pass_rate", "impl_rate", "composite", "cost_usd", "cost_of_pass"):
        values = of_tier(tier, metric)
        counts = Counter(round(value, 12) for value in values)
        mode = min(value for value, count in counts.items() if count == max(counts.values()))
        middle = sorted(values)
        expected = {
            "median": (middle[9] + middle[10]) / 2,
            "mean": sum(values) / 20,
            "mode": mode,
            "min": min(values),
            "max": max(values),
        }
        described = found["statistics"][metric]
        assert described["count"] == 20
        for name, value in expected.items():
            assert described[name] == (None if value == math.inf else close(value)), (metric, name)
            assert (name in described.get("infinite", [])) == (value == math.inf)
        if metric != "cost_of_pass":
            assert described["std_dev"] == close(statistics.pstdev(values))
    assert found["pass_rate"]["value"] == close(statistics.fmean(of_tier(tier, "pass_rate")))
    assert found["impl_rate"]["value"] == close(statistics.fmean(of_tier(tier, "impl_rate")))
    assert found["composite_median"]["value"] == close(statistics.median(of_tier(tier, "composite")))
    assert found["cost_usd"] == close(sum(of_tier(tier, "cost_usd")))
    assert found["cost_of_pass"]["value"] == close(sum(of_tier(tier, "cost_usd")) / sum(of_tier(tier, "pass_rate")))
    median = statistics.median(of_tier(tier, "composite"))
    letter = next((each for each, least in zip("ABCD", (0.95, 0.85, 0.75, 0.65), strict=True) if median >= least), "F")
    assert found["grade"]["letter"] == letter
    waits = [reply.answer.latency for reply in place.kept(Reply) if reply.tier == tier]
    assert found["statistics"]["duration_seconds"]["median"] == close(statistics.median(waits))
    for name in ("pass_rate", "impl_rate", "composite", "composite_median", "cost_of_pass"):
        estimate = found[name]
        if estimate.get("low") is not None and estimate.get("high") is not None:
            assert estimate["low"] <= estimate["value"] <= estimate["high"]


def test_what_tiers_gain_and_how_far_they_lie_apart_follows_from_their_medians(place: Place) -> None:
    (model,) = place.report["models"]
    medians = {
        metric: [statistics.median(of_tier(tier, metric)) for tier in TIERS]
        for metric in ("pass_rate", "composite", "cost_usd")
    }
    base, *others = medians["composite"]
    for tier, median in zip(model["tiers"][1:], others, strict=True):
        assert tier["uplift"]["value"] == close((median - base) / base)
    assert model["tiers"][0]["uplift"]["value"] is None
    assert model["pass_rate_variance"] == close(statistics.pvariance(medians["pass_rate"]))
    assert model["composite_variance"] == close(statistics.pvariance(medians["composite"]))
    assert model["cost_variance"] == close(statistics.pvariance(medians["cost_usd"]))
    assert model["cost_delta"] == close(max(medians["cost_usd"]) - min(medians["cost_usd"]))
    prices = {tier: sum(of_tier(tier, "cost_usd")) / sum(of_tier(tier, "pass_rate")) for tier in TIERS}
    assert place.report["frontier"]["tier"] == min(prices, key=lambda tier: prices[tier])
    assert place.report["frontier"]["cost_of_pass"]["value"] == close(min(prices.values()))
    means = {tier: [statistics.fmean(of_tier(tier, metric)) for metric in ("cost_usd", "composite")] for tier in TIERS}
    for tier in model["tiers"]:
        usd, quality = means[tier["tier"]]
        beaten = any(
            means[other][0] <= usd and means[other][1] >= quality and means[other] != [usd, quality] for other in TIERS
        )
        assert tier["on_pareto_front"] != beaten


def by_brute_force(tier: str, other: str) -> float:
    """Every way in which the passes of each case can fall on the two tiers, weighed by how many ways there are."""
    counts = [[sum(passes(name, case, number) for number in RUNS) for name in (tier, other)] for case in CASES]
    seen = sum(after for after, _ in counts)
    ways: Counter[int] = Counter()
    for after in product(range(6), repeat=4):
        before = [sum(pair) - one for pair, one in zip(counts, after, strict=True)]
        if all(0 <= each <= 5 for each in before):
            weight = math.prod(math.comb(5, each) for each in (*after, *before))
            ways[sum(after)] += weight
    total = sum(ways.values())
    tails = [sum(count for number, count in ways.items() if sign * number <= sign * seen) for sign in (1, -1)]
    return float(min(Fraction(1), 2 * Fraction(min(tails), total)))


def test_the_tests_between_tiers_are_those_of_brute_force_with_holm(place: Place) -> None:
    (model,) = place.report["models"]
    pairs = [("T1", "T0"), ("T2", "T0"), ("T2", "T1")]
    p = {pair: by_brute_force(*pair) for pair in pairs}
    adjusted: dict[tuple[str, str], float] = {}
    least = 0.0
    for place_, pair in enumerate(sorted(pairs, key=lambda pair: p[pair])):
        least = adjusted[pair] = max(least, min(1.0, (len(pairs) - place_) * p[pair]))
    found = {(each["tier"], each["other"]): each for each in (*model["against_baseline"], *model["ablation"])}
    assert set(found) == set(pairs)
    for pair, each in found.items():
        assert each["p"] == pytest.approx(p[pair], rel=1e-9)
        assert each["p_adjusted"] == pytest.approx(adjusted[pair], rel=1e-9)
        for metric in ("pass_rate", "composite", "cost_usd"):
            means = [statistics.fmean(of_tier(name, metric)) for name in pair]
            assert each[metric]["value"] == close(means[0] - means[1])
    assert place.report["tests"] == 3


def test_the_judges_agree_as_far_as_another_package_says(place: Place) -> None:
    panel = place.report["panel"]
    table = [[math.nan if (said := share(judge, one)) is None else said for one in ATTEMPTS] for judge in JUDGES]
    assert panel["scores"]["alpha"]["value"] == pytest.approx(
        krippendorff.alpha(reliability_data=table, level_of_measurement="interval"), rel=1e-7
    )
    votes = [[math.nan if math.isnan(said) else float(said >= 0.6 - 1e-9) for said in row] for row in table]
    assert panel["passes"]["alpha"]["value"] == pytest.approx(
        krippendorff.alpha(reliability_data=votes, level_of_measurement="nominal"), rel=1e-9
    )
    for name in WEIGHTS:
        marks = [
            [
                math.nan if share(judge, one) is None or (mark := scores(judge, *one)[name]) is None else mark
                for one in ATTEMPTS
            ]
            for judge in JUDGES
        ]
        assert panel["categories"][name]["alpha"]["value"] == pytest.approx(
            krippendorff.alpha(reliability_data=marks, level_of_measurement="interval"), rel=1e-7
        )
    both = [(low, high) for high, low in zip(*table, strict=True) if not math.isnan(high)]
    lenient, strict = panel["judges"]
    assert (lenient["judge"], strict["judge"]) == JUDGES
    assert strict["leniency"]["value"] == close(statistics.fmean(low - high for low, high in both))
    assert lenient["leniency"]["value"] == close(statistics.fmean(high - low for low, high in both))
    assert (lenient["ratings"], strict["ratings"]) == (60, 60)
    assert lenient["invalid"]["value"] == close(1 / 60)
    assert strict["invalid"]["value"] == 0


def test_what_judges_cost_is_counted_apart(place: Place) -> None:
    each = {judge: (USAGE["input"] * given + USAGE["output"] * said) / 1e6 for judge, (given, said) in PRICES.items()}
    # one go at the garbage for each process that came to it, three requests each
    goes = sum(of(fact) == GARBAGE and fact.judge == JUDGES[0] for fact in place.kept(Judgment))
    assert goes in (1, 2)
    requests = {JUDGES[0]: 59 + 3 * goes, JUDGES[1]: 60 + 12}
    assert place.report["judges_usd"] == close(sum(each[judge] * count for judge, count in requests.items()))
    total = sum(tier["cost_usd"] for tier in place.report["models"][0]["tiers"])
    assert total == close(sum(cost(*attempt) for attempt in ATTEMPTS))


def test_what_is_missing_is_said_and_where_to_look_next(place: Place) -> None:
    assert place.report["warnings"][0] == "openai/lenient: 1 of 60 judgments are missing"
    assert place.report.get("conclusive", True)
    assert place.report["baseline"] == "T0"
    assert [source["name"] for source in place.report["sources"]] == ["run"]
    assert f"steelyard tiers {place.run}" in place.summary
