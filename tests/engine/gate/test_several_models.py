"""Several models in one run that asks until decided: each is decided and stopped by itself, and together they seldom err."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from steelyard import Case, Means, Settings, run
from steelyard.comparison.gate import CANNOT_TELL, REGRESSED
from steelyard.comparison.sides import Side, Trials
from steelyard.engine.gate.gate import SamplingRound, gate, gate_sides
from steelyard.engine.gate.rounds import continue_until_decided, run_until_decided
from steelyard.engine.gate.sides import bless
from steelyard.engine.resume import resume
from steelyard.records import StoppingRule
from steelyard.stats.multiplicity import design
from steelyard.store.side_files import gate_looks
from support.facts import facts

CASES = [Case(id=f"case-{number:02}", prompt=f"question {number}", target="right") for number in range(30)]
MODELS = """
def chance(attempt):
    # each attempt has a chance of its own, the same whenever it is asked
    return int(attempt.key[:8], 16) / 2**32

RATES = {"one": 0.97, "two": 0.97}

def one(prompt, attempt):
    return "right" if chance(attempt) < RATES["one"] else "wrong"

def two(prompt, attempt):
    return "right" if chance(attempt) < RATES["two"] else "wrong"
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models.py").write_text(MODELS)


MEANS = Means(settings=Settings(max_retries=0, retry_delay_ms=1), environment={})
BOTH = ["python:models.py:one", "python:models.py:two"]


def test_each_of_several_models_is_stopped_when_it_is_decided_and_asked_again_in_the_same_look() -> None:
    run(CASES, models=BOTH, samples=20, output="base", means=MEANS)
    bless(["base"], "main")
    Path("models.py").write_text(MODELS.replace('"two": 0.97', '"two": 0.4'))
    told: list[str] = []
    done = run_until_decided(
        CASES,
        until=StoppingRule(baseline="main", most=10, cases="fail"),
        models=BOTH,
        means=MEANS,
        tell=told.append,
        base_url="",
        output="run",
    )
    assert done.gated is not None
    verdicts = {model.model: model.verdict for model in done.gated.decision.models}
    assert verdicts == {"python/models.py:one": "not regressed", "python/models.py:two": "regressed"}
    asked = Counter(reply.model for reply in facts(done.run.folder).replies)
    assert asked["python/models.py:two"] <= 2 * len(CASES) < asked["python/models.py:one"]
    # a model that stopped early owes nothing
    assert done.run.complete
    assert [model.missing for model in done.run.summary.models] == [0, 0]
    assert sum("models.py:two:" in line for line in told) == asked["python/models.py:two"] // len(CASES)
    looks = gate_looks(done.run.folder)
    for name in verdicts:
        own = [look for look in looks if look.model == name]
        assert sum(look.spent for look in own) <= 0.05
        assert sum(look.cleared_spent for look in own) <= 0.05
    # once one was found to be worse, the other shares its level with nobody
    assert {look.sharing for look in looks if look.model.endswith("one")} >= {1}
    again = gate("main", "run", cases="fail")
    assert again.decision == done.gated.decision
    assert gate_looks(done.run.folder) == looks
    # carrying on changes nothing, and more attempts are asked of all models
    assert continue_until_decided(done.run, means=MEANS, tell=told.append).asked == done.asked
    longer = resume("run", samples=10, means=MEANS)
    assert set(Counter(reply.model for reply in facts(longer.folder).replies).values()) == {10 * len(CASES)}


def drawn_side(passes: dict[str, list[int]], attempts: dict[str, int]) -> Side:
    return Side(
        name="side",
        rule="code",
        models={
            name: tuple(
                Trials(case=f"case-{place:02}", attempts=attempts[name], passes=count) for place, count in enumerate(of)
            )
            for name, of in passes.items()
        },
    )


def is_alarm_raised(chance: np.random.Generator, folder: Path, most: int = 5, before: int = 10) -> bool:
    """Whether one run of three models that did not change ends in an alarm about any of them."""
    rates = {name: chance.beta(0.5, 0.5, 20) for name in ("one", "two", "three")}
    baseline = drawn_side(
        {name: chance.binomial(before, rate).tolist() for name, rate in rates.items()}, dict.fromkeys(rates, before)
    )
    passes = {name: np.zeros(20, int) for name in rates}
    attempts = dict.fromkeys(rates, 0)
    steps = {step.attempts: step for step in design(most, baseline_attempts=before)}
    open_models = set(rates)
    for number in steps:
        for name in open_models:
            passes[name] = passes[name] + chance.binomial(number - attempts[name], rates[name])
            attempts[name] = number
        found = gate_sides(
            baseline,
            drawn_side({name: each.tolist() for name, each in passes.items()}, attempts),
            folder=folder,
            at={name: SamplingRound(steps[attempts[name]], attempts[name] == most) for name in rates},
        ).decision
        if found.verdict == REGRESSED:
            return True
        open_models = {model.model for model in found.models if model.verdict == CANNOT_TELL}
        if not open_models:
            break
    return False


def alarms(repeats: int) -> int:
    found = 0
    for repeat in range(repeats):
        folder = Path(f"looks-{repeat}")
        folder.mkdir()
        found += is_alarm_raised(np.random.default_rng([26, repeat]), folder)
    return found


def test_three_unchanged_models_seldom_raise_an_alarm() -> None:
    assert alarms(8) <= stats.binom.isf(0.001, 8, 0.05)


@pytest.mark.slow
def test_many_runs_of_three_unchanged_models_hold_the_error_rate_together() -> None:
    assert alarms(600) <= stats.binom.isf(0.001, 600, 0.05)
