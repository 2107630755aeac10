"""Tiers of agent set-ups, as the metrics document of ProjectScylla has them, by files in its shape and by running them.

Beside these: `cli/test_tiers_command.py` (the three worked examples, budgets, judges that are out), `outcomes/test_read_scylla.py` (its trees
of results), `tiers/` (every formula by itself), `engine/tiers/` (winners, judges, escalation), `tiers/test_rubrics.py` (its rubrics).
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.command_line import steelyard
from support.fault_server import Behaviour, FaultServer, Request, says

TIERS = ("T0", "T1", "T2", "T3", "T4", "T5", "T6")
TASKS = ("parse", "sort", "merge")
GRADES = (("A", 0.95), ("B", 0.85), ("C", 0.75), ("D", 0.65), ("F", -math.inf))


class TierRow(NamedTuple):
    """One run, as a row of runs.csv."""

    tier: str
    task: str
    number: int
    passed: bool
    impl_rate: float
    cost: float
    seconds: float

    @property
    def composite(self) -> float:
        return (self.passed + self.impl_rate) / 2

    @property
    def cost_of_pass(self) -> float:
        return self.cost if self.passed else math.inf


def drawn_rows() -> list[TierRow]:
    """Seven tiers, three tasks and ten runs each; later tiers pass more and cost more, and T1 never passes."""
    chance = random.Random(5)
    return [
        TierRow(
            tier,
            task,
            number,
            place != 1 and chance.random() < 0.35 + 0.08 * place,
            round(chance.uniform(0.3, 1.0), 2),
            round(0.05 * (place + 1) + chance.choice((0, 0.01, 0.02)), 2),
            float(chance.randrange(20, 90)),
        )
        for place, tier in enumerate(TIERS)
        for task in TASKS
        for number in range(1, 11)
    ]


ROWS = drawn_rows()


def pooled(tier: str) -> list[TierRow]:
    return [row for row in ROWS if row.tier == tier]


def letter(score: float) -> str:
    return next(letter for letter, least in GRADES if score >= least)


def write_runs(place: Path, rows: Sequence[TierRow]) -> None:
    head = "experiment,agent_model,tier,subtest,run_number,passed,impl_rate,cost_usd,duration_seconds\n"
    lines = [
        f"first,small-1,{row.tier},{row.task},{row.number},{row.passed},{row.impl_rate},{row.cost},{row.seconds}\n"
        for row in rows
    ]
    (place / "runs.csv").write_text(head + "".join(lines), "utf-8")


def analysed(place: Path, *options: str) -> dict[str, Any]:
    ran = steelyard(place, "tiers", "--runs-csv", "runs.csv", *options, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    write_runs(tmp_path, ROWS)
    return analysed(tmp_path)


def tiers_of(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    (model,) = found["models"]
    return {tier["tier"]: tier for tier in model["tiers"]}


# ---- recorded runs


def test_every_run_has_its_pass_its_cost_of_pass_and_its_composite(found: dict[str, Any]) -> None:
    told = {(run["tier"], run["case"], run["number"]): run for run in found["runs"]}
    assert len(told) == len(ROWS) == 210
    for row in ROWS:
        run = told[row.tier, row.task, row.number]
        assert (run["pass_rate"], run["impl_rate"]) == (float(row.passed), row.impl_rate)
        assert (run["cost_usd"], run["duration_seconds"]) == (row.cost, row.seconds)
        assert run["composite"] == pytest.approx(row.composite, abs=1e-15)
        # infinity is no JSON: a run that failed has no figure
        assert run["cost_of_pass"] == (row.cost if row.passed else None)


def test_every_tier_has_the_seven_statistics_of_the_document(found: dict[str, Any]) -> None:
    for name, tier in tiers_of(found).items():
        rows = pooled(name)
        columns = {
            "pass_rate": [float(row.passed) for row in rows],
            "impl_rate": [row.impl_rate for row in rows],
            "composite": [row.composite for row in rows],
            "cost_usd": [row.cost for row in rows],
            "duration_seconds": [row.seconds for row in rows],
        }
        for column, values in columns.items():
            expected = {
                "median": statistics.median(values),
                "mean": statistics.fmean(values),
                "mode": min(statistics.multimode(values)),
                "min": min(values),
                "max": max(values),
                "std_dev": statistics.pstdev(values),
                "count": 30,
            }
            told = {key: value for key, value in tier["statistics"][column].items() if key in expected}
            assert told == {key: pytest.approx(value, abs=1e-14) for key, value in expected.items()}, (name, column)


def test_a_tier_has_its_cost_of_pass_its_grade_and_its_uplift(found: dict[str, Any]) -> None:
    medians = {tier: statistics.median(row.composite for row in pooled(tier)) for tier in TIERS}
    for name, tier in tiers_of(found).items():
        rows = pooled(name)
        passes, cost = sum(row.passed for row in rows), sum(row.cost for row in rows)
        assert tier["cost_usd"] == pytest.approx(cost, abs=1e-12)
        assert tier["pass_rate"]["value"] == pytest.approx(passes / 30, abs=1e-14)
        assert tier["cost_of_pass"]["value"] == (pytest.approx(cost / passes, abs=1e-12) if passes else None)
        assert tier["composite_median"]["value"] == pytest.approx(medians[name], abs=1e-14)
        assert tier["grade"]["letter"] == letter(medians[name])
        uplift = None if name == "T0" else pytest.approx(medians[name] / medians["T0"] - 1, abs=1e-12)
        assert tier["uplift"]["value"] == uplift


def test_tiers_are_told_apart_by_the_variances_and_the_delta_of_their_medians(found: dict[str, Any]) -> None:
    (model,) = found["models"]
    passes, composites, costs = (
        [statistics.median(getattr(row, field) for row in pooled(tier)) for tier in TIERS]
        for field in ("passed", "composite", "cost")
    )
    assert model["pass_rate_variance"] == pytest.approx(statistics.pvariance(map(float, passes)), abs=1e-14)
    assert model["composite_variance"] == pytest.approx(statistics.pvariance(composites), abs=1e-14)
    assert model["cost_variance"] == pytest.approx(statistics.pvariance(costs), abs=1e-14)
    assert model["cost_delta"] == pytest.approx(max(costs) - min(costs), abs=1e-14)


def test_the_frontier_is_the_cheapest_pass_and_the_front_is_of_mean_cost_and_mean_composite(
    found: dict[str, Any],
) -> None:
    per_pass = {
        tier: sum(row.cost for row in pooled(tier)) / passes
        for tier in TIERS
        if (passes := sum(row.passed for row in pooled(tier)))
    }
    best = min(per_pass, key=lambda tier: per_pass[tier])
    assert found["frontier"]["tier"] == best
    assert found["frontier"]["cost_of_pass"]["value"] == pytest.approx(per_pass[best], abs=1e-12)
    means = {
        tier: (statistics.fmean(row.cost for row in rows), statistics.fmean(row.composite for row in rows))
        for tier in TIERS
        for rows in [pooled(tier)]
    }
    front = {
        tier
        for tier, (cost, quality) in means.items()
        if not any((other[0] <= cost and other[1] >= quality) and other != (cost, quality) for other in means.values())
    }
    assert {name for name, tier in tiers_of(found).items() if tier["on_pareto_front"]} == front
    assert front < {*TIERS}


@pytest.mark.parametrize(
    ("impl_rate", "grade"),
    [
        (0.90, "A"),
        (0.89, "B"),
        (0.85, "B"),
        (0.70, "B"),
        (0.69, "C"),
        (0.50, "C"),
        (0.49, "D"),
        (0.30, "D"),
        (0.29, "F"),
    ],
)
def test_a_grade_begins_at_its_threshold(tmp_path: Path, impl_rate: float, grade: str) -> None:
    # a run that passed has the composite (1 + impl rate) / 2
    write_runs(tmp_path, [TierRow("T0", "parse", 1, True, impl_rate, 0.5, 10.0)])
    assert tiers_of(analysed(tmp_path))["T0"]["grade"]["letter"] == grade


def test_over_a_baseline_of_0_there_is_no_uplift(tmp_path: Path) -> None:
    rows = [row._replace(passed=False, impl_rate=0.0) if row.tier == "T0" else row for row in ROWS]
    write_runs(tmp_path, rows)
    tiers = tiers_of(analysed(tmp_path))
    assert tiers["T0"]["grade"]["letter"] == "F"
    assert all(tier["uplift"]["value"] is None for tier in tiers.values())


def test_what_chance_explains_is_said_to_have_bought_nothing(tmp_path: Path) -> None:
    write_runs(tmp_path, [row._replace(passed=row.number % 2 == 0) for row in ROWS if row.tier in ("T0", "T6")])
    ran = steelyard(tmp_path, "tiers", "--runs-csv", "runs.csv")
    assert ran.returncode == 0, ran.stderr
    assert "T6 over T0 buys nothing that can be distinguished from chance" in " ".join(ran.stdout.split())


# ---- ratings of several judges

POINTS = {"correct": 4.0, "clear": 2.0}
JUDGES = {"strict": -0.1, "mild": 0.05, "plain": 0.0}


def share_of_points(row: TierRow, judge: str, category: str) -> float:
    """What a judge gives a run in a category, between 0 and 1."""
    tilt = 0.05 if category == "clear" else 0.0
    return round(min(1.0, max(0.0, row.impl_rate + JUDGES[judge] + tilt - 0.02 * (row.number % 3))), 3)


def rated(row: TierRow, judge: str) -> float:
    """The impl rate that follows from a judge's points."""
    return sum(share_of_points(row, judge, name) * most for name, most in POINTS.items()) / sum(POINTS.values())


def judge_score(row: TierRow, judge: str) -> float:
    """The total that a judge claims, which here is another number."""
    return round(rated(row, judge) * 0.9, 6)


@pytest.fixture
def with_judges(tmp_path: Path) -> Path:
    write_runs(tmp_path, ROWS)
    keys = "experiment,agent_model,tier,subtest,run_number,judge_model,judge_number"
    judges = [f"{keys},judge_score,judge_impl_rate,judge_passed,judge_grade,judge_is_valid\n"]
    criteria = [f"{keys},criterion,criterion_score,criterion_achieved,criterion_max\n"]
    for row in ROWS:
        for number, judge in enumerate(JUDGES, 1):
            run = f"first,small-1,{row.tier},{row.task},{row.number},{judge},{number}"
            judges.append(f"{run},{judge_score(row, judge)},{rated(row, judge)},{row.passed},,True\n")
            for name, most in POINTS.items():
                share = share_of_points(row, judge, name)
                criteria.append(f"{run},{name},{share},{share * most},{most}\n")
    (tmp_path / "judges.csv").write_text("".join(judges), "utf-8")
    (tmp_path / "criteria.csv").write_text("".join(criteria), "utf-8")
    return tmp_path


RATINGS = ("--judges-csv", "judges.csv", "--criteria-csv", "criteria.csv")


@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        ("points", lambda row: statistics.fmean(rated(row, judge) for judge in JUDGES)),
        ("score", lambda row: statistics.fmean(judge_score(row, judge) for judge in JUDGES)),
        ("recorded", lambda row: row.impl_rate),
    ],
)
def test_the_impl_rate_is_the_mean_over_judges_of_the_kind_that_is_asked_for(
    with_judges: Path, kind: str, rate: Any
) -> None:
    found = analysed(with_judges, *RATINGS, "--impl-rate", kind)
    told = {(run["tier"], run["case"], run["number"]): run["impl_rate"] for run in found["runs"]}
    assert told == {(row.tier, row.task, row.number): pytest.approx(rate(row), abs=1e-12) for row in ROWS}
    for name, tier in tiers_of(found).items():
        composites = [(row.passed + rate(row)) / 2 for row in pooled(name)]
        assert tier["composite_median"]["value"] == pytest.approx(statistics.median(composites), abs=1e-12)


def krippendorff(ratings: Sequence[Sequence[float]]) -> float:
    """Alpha for interval data by its definition: 1 - observed / expected disagreement over pairs."""
    observed = statistics.fmean(
        statistics.fmean((a - b) ** 2 for a, b in combinations(of_one, 2)) for of_one in ratings
    )
    everything = [rating for of_one in ratings for rating in of_one]
    return 1 - observed / statistics.fmean((a - b) ** 2 for a, b in combinations(everything, 2))


def test_the_agreement_of_judges_is_krippendorffs_alpha(with_judges: Path) -> None:
    panel = analysed(with_judges, *RATINGS, "--impl-rate", "points")["panel"]
    assert panel["ratings"] == len(ROWS) * len(JUDGES)
    expected = krippendorff([[rated(row, judge) for judge in JUDGES] for row in ROWS])
    assert panel["scores"]["alpha"]["value"] == pytest.approx(expected, abs=1e-9)
    assert panel["passes"]["alpha"]["value"] == 1
    for each in panel["judges"]:
        assert each["mean"]["value"] == pytest.approx(
            statistics.fmean(rated(row, each["judge"]) for row in ROWS), abs=1e-12
        )


# ---- tiers that are run

PRICED = {"anthropic/claude-opus-4-5": (15, 75), "anthropic/claude-sonnet-4": (3, 15), "openai/gpt-4o": (5, 15)}
"""Dollars for a million tokens in and out, as the document has them."""


def test_a_run_costs_its_tokens_at_the_three_prices_of_the_document(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text('price_table = "worked-examples"\n', "utf-8")
    (tmp_path / "set.jsonl").write_text('{"id": "fr", "prompt": "Capital of France?", "target": "Paris"}\n', "utf-8")
    tokens = {model: (1000 * place, 330 * place) for place, model in enumerate(PRICED, 1)}
    replies = [
        {"id": "fr", "model": model, "response": "Paris", "prompt_tokens": given, "completion_tokens": wrote}
        for model, (given, wrote) in tokens.items()
        for _ in range(3)
    ]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(each) + "\n" for each in replies), "utf-8")
    ran = steelyard(tmp_path, "run", "set.jsonl", "-m", "replay:replies.jsonl", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)["aggregate"]["per_model"]
    expected = {
        model: 3 * (tokens[model][0] * given + tokens[model][1] * wrote) / 1e6
        for model, (given, wrote) in PRICED.items()
    }
    assert {model: told[model]["total_cost_usd"] for model in PRICED} == {
        model: pytest.approx(cost, abs=1e-12) for model, cost in expected.items()
    }


SET_UPS = {"T0": 1, "T1": 2, "T2": 3, "T3": 3, "T4": 4}
"""How many of the four cases each set-up solves."""
CASES = ("a", "b", "c", "d")
RUNS = 2
EXPERIMENT = f"""
[experiment]
id = "ladder"
cases = ["cases.jsonl"]
runs = {RUNS}
pass_weight = 1
impl_weight = 3
[judging]
judges = ["openai/judge-1", "openai/judge-2"]
[[tiers]]
name = "T0"
model = "openai/gpt-4o"
system = "Set-up T0."
[[tiers]]
name = "T1"
extends = "T0"
system = "Set-up T1."
[[tiers]]
name = "T2"
extends = "T1"
system = "Set-up T2."
[[tiers]]
name = "T3"
extends = "T2"
system = "Set-up T3."
[[tiers]]
name = "T4"
extends = "T3"
system = "Set-up T4."
[[tiers]]
name = "T5"
extends = ["T3", "T4"]
parameters = {{ top_p = 0.9 }}
[[tiers]]
name = "T6"
extends = "T2"
parameters = {{ top_p = 0.1 }}
"""
CATEGORIES = {
    "functional_correctness": 2.0,
    "completeness": 1.5,
    "code_quality": 1.0,
    "simplicity": 1.0,
    "lack_of_duplication": 0.5,
    "clarity": 1.0,
    "documentation": 0.5,
    "architectural_cleanliness": 0.5,
    "efficiency": 0.5,
    "cleanup_script_quality": 1.0,
}
"""The ten categories of the judge protocol with their weights."""


def opinion(judge: str, *, right: bool) -> dict[str, float]:
    """What a judge gives an answer in each category."""
    least = 0.5 if judge == "judge-1" else 0.4
    return {name: round(least + 0.04 * place + 0.1 * right, 2) for place, name in enumerate(CATEGORIES)}


def weighted(scores: Mapping[str, float]) -> float:
    return sum(CATEGORIES[name] * score for name, score in scores.items()) / sum(CATEGORIES.values())


def tier_of(request: Request) -> str:
    """The tier that a request was sent for."""
    own = {0.9: "T5", 0.1: "T6"}
    return own.get(request.body.get("top_p")) or str(request.body["messages"][0]["content"])[-3:-1]


def script(request: Request) -> Behaviour:
    """Models that solve as many cases as their set-up says, and judges that see which answer is right."""
    if request.body["model"].startswith("judge"):
        scores = opinion(request.body["model"], right="| yes" in request.prompt)
        given = {name: {"reason": "", "score": score} for name, score in scores.items()}
        told = json.dumps({"criteria_scores": given, "score": weighted(scores), "passed": True})
        return says(told, usage={"input": 400, "output": 200})
    set_up = request.body["messages"][0]["content"][-3:-1]
    solved = CASES[: SET_UPS[set_up]]
    usage = {"input": 500 * (1 + TIERS.index(tier_of(request))), "output": 100}
    return says("yes" if request.prompt.split()[1] in solved else "no", usage=usage)


@pytest.fixture
def executed(server: FaultServer, tmp_path: Path) -> dict[str, Any]:
    """The analysis of seven tiers that were run on a server of ours."""
    server.script = script
    lines = [f'{{"id": "{name}", "prompt": "Case {name} please.", "target": "yes"}}\n' for name in CASES]
    (tmp_path / "cases.jsonl").write_text("".join(lines), "utf-8")
    (tmp_path / "experiment.toml").write_text(EXPERIMENT, "utf-8")
    prices = "".join(f'[prices."openai/judge-{number}"]\ninput = 3\noutput = 24\n' for number in (1, 2))
    (tmp_path / "steelyard.toml").write_text(f'price_table = "worked-examples"\n{prices}', "utf-8")
    key = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none"}
    ran = steelyard(tmp_path, "tiers", "experiment.toml", "--output", "run", "--format", "json", **key)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_seven_tiers_are_run_and_the_fifth_takes_the_better_of_two(
    executed: dict[str, Any], server: FaultServer
) -> None:
    tiers = tiers_of(executed)
    assert {*tiers} == {*TIERS}
    solved = SET_UPS | {"T5": SET_UPS["T4"], "T6": SET_UPS["T2"]}
    for name, tier in tiers.items():
        assert tier["runs"] == len(CASES) * RUNS
        assert tier["pass_rate"]["value"] == pytest.approx(solved[name] / len(CASES), abs=1e-14)
    asked = [request for request in server.requests if not request.body["model"].startswith("judge")]
    assert len(asked) == len(TIERS) * len(CASES) * RUNS
    assert {request.body["messages"][0]["content"] for request in asked if tier_of(request) == "T5"} == {"Set-up T4."}


def test_what_tiers_and_judges_cost_is_exact(executed: dict[str, Any]) -> None:
    given, wrote = PRICED["openai/gpt-4o"]
    for name, tier in tiers_of(executed).items():
        each = (500 * (1 + TIERS.index(name)) * given + 100 * wrote) / 1e6
        assert tier["cost_usd"] == pytest.approx(each * len(CASES) * RUNS, abs=1e-12), name
    judgments = len(TIERS) * len(CASES) * RUNS * 2
    assert executed["judges_usd"] == pytest.approx(judgments * (400 * 3 + 200 * 24) / 1e6, abs=1e-12)


def test_a_runs_impl_rate_is_the_weighted_mean_of_ten_categories_and_its_composite_weighs_as_was_said(
    executed: dict[str, Any],
) -> None:
    for run in executed["runs"]:
        judged = [weighted(opinion(judge, right=run["passed"])) for judge in ("judge-1", "judge-2")]
        assert run["impl_rate"] == pytest.approx(statistics.fmean(judged), abs=1e-12)
        assert run["composite"] == pytest.approx((run["passed"] + 3 * statistics.fmean(judged)) / 4, abs=1e-12)


def test_a_run_in_tiers_shows_the_tokens_and_the_latency_of_each_tier(executed: dict[str, Any], tmp_path: Path) -> None:
    shown = steelyard(tmp_path, "show", "run").stdout
    totals = [(500 * (place + 1) + 100) * len(CASES) * RUNS for place in range(len(TIERS))]
    (row,) = [line.split() for line in shown.splitlines() if line.startswith("tokens ")]
    assert [int(number.replace(",", "")) for number in row[1:]] == totals
    assert "mean latency" in shown
