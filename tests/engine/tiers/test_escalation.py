"""A panel asks its first judge about every answer and the others about some; what that changes is measured and shown."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.engine.gate.panels import panel_difference
from steelyard.engine.resume import judge
from steelyard.engine.tiers.tier_runs import analysis, tier_experiment
from steelyard.errors import InputError
from steelyard.evalsets import experiments
from steelyard.records import Escalation, Judgment, Panel, Price, Reply, Verify
from steelyard.reports import tiers as tables
from steelyard.store.journal import StoredRun
from steelyard.tiers.agreement import Consensus
from steelyard.tiers.escalation import EscalatedAnswer, escalation_effects, panel_escalation
from steelyard.tiers.rubrics import Rubric, RubricCategory
from support.fault_server import Behaviour, FaultServer, Request, refuses, says

RUBRIC = Rubric(id="r", categories=(RubricCategory(name="works", check="It works."),), pass_threshold=0.6)
JUDGES = ("openai/cheap", "openai/second", "openai/third")
CASES = [Case(id=f"c{n:02}", prompt=f"Say {n}.", verify=Verify(kind="judge")) for n in range(30)]


def panel(**rule: Any) -> Panel:
    return Panel(
        judges=JUDGES,
        rubric=msgspec.to_builtins(RUBRIC),
        digest=RUBRIC.digest,
        escalation=Escalation(**rule) if rule else None,
    )


def means(server: FaultServer, max_cost: float | None = None) -> Means:
    settings = Settings(
        max_retries=0, retry_delay_ms=1, prices={name: Price(input=1, output=1) for name in (*JUDGES, "openai/model")}
    )
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none"}
    return Means(settings=settings, environment=environment, parallelism=1, max_cost=max_cost)


def scored(score: float) -> Behaviour:
    return says(json.dumps({"criteria_scores": {"works": {"reason": "", "score": score}}, "score": score}))


def number_of(request: Request) -> int:
    """Which answer a judge is asked about: the model says the number that the case has."""
    return int(request.body["messages"][-1]["content"].split("| Say ")[1].split(".")[0])


def opinion(request: Request) -> Behaviour:
    """The cheap judge is unsure of every third answer, and wrong about those that end in 4."""
    number, is_cheap = number_of(request), request.body["model"] == "cheap"
    right = 0.9 if number % 2 else 0.1
    if not is_cheap:
        return scored(1 - right if number % 10 == 4 else right)
    return scored(0.55 if number % 3 == 0 else right)


@pytest.fixture
def answered(server: FaultServer, tmp_path: Path) -> Path:
    server.script = lambda request: says("yes")
    done = steelyard.run(CASES, models="openai/model", samples=1, output=tmp_path / "run", means=means(server))
    server.requests.clear()
    server.script = opinion
    return done.folder


def judged(folder: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in JUDGES}
    for fact in StoredRun(folder).facts():
        if isinstance(fact, Judgment):
            found[fact.judge].add(fact.case)
    return found


def test_others_are_asked_where_the_first_is_near_the_threshold_and_where_chance_has_it(
    server: FaultServer, answered: Path
) -> None:
    done = judge(answered, panel(check_share=0.4), means=means(server))
    assert done.stopped == ()
    unsure = {f"c{n:02}" for n in range(0, 30, 3)}
    of = judged(answered)
    assert len(of[JUDGES[0]]) == 30
    assert of[JUDGES[1]] == of[JUDGES[2]] > unsure
    checked = of[JUDGES[1]] - unsure
    assert 2 <= len(checked) <= 14
    found = analysis(tier_experiment(StoredRun(answered)))
    assert found.conclusive
    assert found.escalated is not None
    (effect,) = found.escalated.tiers
    assert (effect.answers, effect.alone, effect.checked) == (30, 20 - len(checked), len(checked))
    assert effect.overruled == len(checked & {"c04", "c14"})
    assert found.escalated.unasked == 2 * effect.alone
    assert found.escalated.saved_usd == pytest.approx(2 * effect.alone * 15e-6)
    assert effect.pass_rate == pytest.approx(found.models[0].tiers[0].pass_rate.value)
    said = " ".join(tables.text(found).split())
    assert "Judges that were asked first" in said
    assert f"{2 * effect.alone} judgments less than if all had judged every answer" in said
    # nothing is owed, and nothing is asked twice
    server.requests.clear()
    judge(answered, panel(check_share=0.4), means=means(server))
    steelyard.resume(answered, means=means(server))
    assert server.requests == []


def test_a_spent_budget_leaves_judgments_for_resume_to_ask_for(server: FaultServer, answered: Path) -> None:
    everything = panel(check_share=1.0)
    # 30 requests to the first judge and a few to the second fit
    stopped = judge(answered, everything, means=means(server, max_cost=1e-9))
    assert stopped.exit_code == 3
    assert judged(answered) == {name: set() for name in JUDGES}
    assert steelyard.resume(answered, means=means(server)).exit_code == 0
    assert {len(cases) for cases in judged(answered).values()} == {30}


def test_others_wait_until_the_first_judge_has_spoken(server: FaultServer, answered: Path) -> None:
    server.script = lambda request: refuses(400, "no") if request.body["model"] == "cheap" else scored(0.9)
    done = judge(answered, panel(ask_first=1), means=means(server))
    assert done.exit_code == 3
    assert not any(judged(answered).values())
    server.script = opinion
    assert steelyard.resume(answered, means=means(server)).exit_code == 0
    assert len(judged(answered)[JUDGES[0]]) == 30


def test_a_first_judge_without_a_usable_answer_is_not_sure(server: FaultServer, answered: Path) -> None:
    server.script = lambda request: says("hm") if request.body["model"] == "cheap" else scored(0.9)
    judge(answered, panel(check_share=0.0), means=means(server))
    assert [len(cases) for cases in judged(answered).values()] == [30, 30, 30]


def test_panels_that_ask_others_at_different_times_are_not_compared() -> None:
    assert panel_difference(panel(ask_first=1), panel(ask_first=1)) == ""
    assert "different judges first" in panel_difference(panel(ask_first=1), panel(ask_first=2))
    assert "different judges first" in panel_difference(panel(), panel(ask_first=1))


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ((3, 3, None, None), "--ask-first is 3, and there are 3 judges"),
        ((1, 1, None, None), "--ask-first is 1, and there is 1 judge;"),
        ((3, None, 0.1, None), "--unsure-within has no effect without --ask-first"),
        ((3, None, None, 0.1), "--check-share has no effect without --ask-first"),
        ((3, 1, None, math.nan), "--check-share is nan; it must be from 0 to 1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(given: Any, what: str) -> None:
    judges, first, within, share = given
    with pytest.raises(InputError, match=what):
        panel_escalation(judges, first, within, share, prefix="--")


def test_an_experiment_says_who_is_asked_first(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "prompt": "Say yes.", "target": "yes"}\n')
    text = """
[experiment]
id = "e"
cases = ["cases.jsonl"]
[judging]
judges = ["openai/a", "openai/b"]
ask_first = {}
check_share = 0.25
[[tiers]]
name = "T0"
model = "openai/m"
"""
    file = tmp_path / "experiment.toml"
    file.write_text(text.format(1))
    loaded = experiments.load(file).panel
    assert loaded is not None
    assert loaded.escalation == Escalation(ask_first=1, check_share=0.25)
    assert (loaded.first_judges, loaded.other_judges) == (("openai/a",), ("openai/b",))
    file.write_text(text.format(2))
    with pytest.raises(InputError, match=r"experiment.toml:7: \[judging\]: ask_first is 2, and there are 2 judges"):
        experiments.load(file)


def simulated_coverage(
    repeats: int, answers: int, share: float, overruled: tuple[float, float], seed: int
) -> list[float]:
    """How often both intervals contain what all judges would have said."""
    chance = random.Random(seed)
    covered, known = [0, 0], [0, 0]
    for _ in range(repeats):
        drawn, passes, scores = [], 0, 0.0
        for _ in range(answers):
            passed, is_unsure = chance.random() < 0.7, chance.random() < 0.2
            truth = passed != (chance.random() < overruled[0 if passed else 1])
            first = chance.choice([0.8, 1.0] if passed else [0.0, 0.2, 0.4])
            change = chance.gauss(-0.05, 0.08) if truth == passed else (-0.4 if passed else 0.4)
            whole = min(max(first + change, 0.0), 1.0)
            passes, scores = passes + truth, scores + whole
            is_checked = not is_unsure and chance.random() < share
            said = Consensus(score=whole, passed=truth) if is_checked or is_unsure else None
            drawn.append(EscalatedAnswer("T0", True, Consensus(score=first, passed=passed), said, is_checked))
        (effect,) = escalation_effects(drawn)
        found = effect.pass_rate_if_all_asked, effect.impl_rate_if_all_asked
        for place, (estimate, true) in enumerate(zip(found, (passes / answers, scores / answers), strict=True)):
            if estimate is not None and estimate.low is not None and estimate.high is not None:
                known[place] += 1
                covered[place] += estimate.low - 1e-9 <= true <= estimate.high + 1e-9
    return [count / of for count, of in zip(covered, known, strict=True)]


def test_the_error_of_asking_fewer_judges_is_covered() -> None:
    for covered in simulated_coverage(60, 200, 0.15, (0.1, 0.05), 3):
        assert covered >= 0.88


@pytest.mark.slow
@pytest.mark.parametrize("answers", [100, 300, 1000])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("overruled", [(0.01, 0.01), (0.1, 0.03), (0.3, 0.2), (0.005, 0.15)])
def test_the_error_of_asking_fewer_judges_is_covered_in_every_setting(
    answers: int, share: float, overruled: tuple[float, float]
) -> None:
    for covered in simulated_coverage(1000, answers, share, overruled, 11):
        assert covered >= 0.93


def test_replies_stay_as_they_are(server: FaultServer, answered: Path) -> None:
    before = [fact.key for fact in StoredRun(answered).facts() if isinstance(fact, Reply)]
    judge(answered, panel(ask_first=2, unsure_within=0.0, check_share=0.0), means=means(server))
    assert [fact.key for fact in StoredRun(answered).facts() if isinstance(fact, Reply)] == before
    of = judged(answered)
    # two first judges: the third is asked where they differ
    assert len(of[JUDGES[0]]) == len(of[JUDGES[1]]) == 30
    assert of[JUDGES[2]] == {case for case in of[JUDGES[0]] if _differ(case)}


def _differ(case: str) -> bool:
    number = int(case[1:])
    cheap = number % 3 != 0 and number % 2 == 1
    return cheap != ((number % 2 == 1) != (number % 10 == 4))
