"""A baseline gets more attempts from its own prompts and models, before the run to compare is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from steelyard.engine.gate.rounds import run_until_decided, stopping_rule
from steelyard.engine.gate.sides import bless, side
from steelyard.engine.gate.top_up import top_up
from steelyard.engine.options import RunOptions
from steelyard.engine.run import run
from steelyard.errors import InputError
from steelyard.records import Case, Price, Verify
from steelyard.settings import Settings

NAME = "python/models.py:model"
MODEL = "python:models.py:model"
ASKED = """
def model(prompt):
    with open("asked.txt", "a") as file:
        print(prompt, file=file)
    return {"text": "yes", "input_tokens": 1000, "output_tokens": 10}
"""


def cases(prompt: str) -> list[Case]:
    return [Case(id=f"c{number}", prompt=prompt, target="yes", verify=Verify(kind="response")) for number in range(2)]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(ASKED)
    run(cases("old prompt"), models=[MODEL], samples=2, seed=5)
    bless(["latest"], "main", cases="warn")
    (tmp_path / "asked.txt").write_text("")


def test_the_old_prompt_is_asked_before_the_new_one_and_pooled() -> None:
    told: list[str] = []
    until = stopping_rule("main", until_decided=True, max_samples=1)
    assert until is not None
    run_until_decided(
        cases("new prompt"), until=until, models=[MODEL], means=RunOptions(), tell=told.append, base_url="", top_up_to=5
    )
    assert Path("asked.txt").read_text().splitlines() == ["old prompt"] * 6 + ["new prompt"] * 2
    baseline = side("main")
    assert [(trials.attempts, trials.passes) for trials in baseline.models[NAME]] == [(5, 5)] * 2
    assert baseline.cases == "warn"
    assert told[0].startswith("tops up main first: 3 more attempts per case as in ")
    assert "6 attempts at 2 cases" in told[0]


def test_a_baseline_that_has_enough_is_left_alone() -> None:
    before = Path("steelyard-baselines/main.json").read_bytes()
    means = RunOptions()
    assert top_up("main", side("main"), {NAME}, 2, means=means, tell=lambda _: None) is means
    assert Path("steelyard-baselines/main.json").read_bytes() == before
    assert Path("asked.txt").read_text() == ""


def test_what_is_spent_on_the_baseline_is_gone_from_the_budget() -> None:
    prices = {NAME: Price(input=1000.0, output=1000.0)}
    means = RunOptions(settings=Settings(prices=prices), max_cost=1e6)
    left = top_up("main", side("main"), {NAME}, 3, means=means, tell=lambda _: None)
    # two attempts at 1,010 tokens of 0.001 dollars
    assert left.max_cost == pytest.approx(1e6 - 2 * 1.01)
    told: list[str] = []
    small = means._replace(max_cost=0.5)
    assert top_up("main", side("main"), {NAME}, 9, means=small, tell=told.append).max_cost == pytest.approx(0.5)
    assert "topped up in part: the budget of $0.5 does not cover" in told[1]
    assert [trials.attempts for trials in side("main").models[NAME]] == [3, 3]


def test_questions_that_are_not_known_any_more_are_refused() -> None:
    with pytest.raises(InputError, match="none of its runs"):
        top_up("main", side("main"), {NAME}, 9, means=RunOptions(settings=Settings(output_dir="empty")), tell=print)
    with pytest.raises(InputError, match="adds to a baseline"):
        top_up("latest", side("latest"), {NAME}, 9, means=RunOptions(), tell=print)
    whole = side("main")
    both = replace(whole, models={**whole.models, "other": whole.models[NAME]})
    with pytest.raises(InputError, match="has none of the models that are compared"):
        top_up("main", both, {"new"}, 9, means=RunOptions(), tell=print)
