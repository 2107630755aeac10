"""A plan reads as reviewed, whatever a case is called."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from steelyard.comparison.power import ComparisonPlan, DetectionOutlook, ModelPlan, RequiredAttempts, SingleRoundCost
from steelyard.reports.comparison import PLAN_FORMATS
from steelyard.text import INVISIBLE_CHARACTER_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = "=1+1 <b>|`\x1b]0;x\x07@octocat"


def model(
    name: str,
    once: SingleRoundCost,
    *,
    seen: RequiredAttempts | None,
    seen_with_more: RequiredAttempts | None = None,
    seen_in_few: RequiredAttempts | None = None,
    cleared: RequiredAttempts | None = None,
) -> ModelPlan:
    rows = tuple(
        DetectionOutlook(
            current=current,
            attempts=40 * current,
            cost_usd=None if once.cost_usd is None else current * once.cost_usd,
            level=0.04,
            drop=None if current == 1 else 0.2 / current,
            seen=1 - 0.9 / current,
            cleared=1 - 0.95 / current,
        )
        for current in (1, 3, 20)
    )
    return ModelPlan(
        model=name,
        cases=40,
        fewest=3,
        most=10,
        rate=0.8125,
        once=once,
        seen=seen,
        seen_with_more=seen_with_more,
        seen_in_few=seen_in_few,
        cleared=cleared,
        outlook=rows,
    )


def need(current: int, once: SingleRoundCost, baseline: int = 0) -> RequiredAttempts:
    attempts = 40 * (current + baseline)
    cost = None if once.cost_usd is None else once.cost_usd * attempts / 40
    return RequiredAttempts(current=current, baseline=baseline, attempts=attempts, cost_usd=cost)


KNOWN, BOUND, UNKNOWN = SingleRoundCost(cost_usd=0.5), SingleRoundCost(cost_usd=0.5, at_most=True), SingleRoundCost()


def plan(*models: ModelPlan) -> ComparisonPlan:
    return ComparisonPlan(
        baseline="main",
        detect=0.05,
        power=0.8,
        alpha=0.05,
        look_alpha=0.04,
        models=models,
        new_cases=(HOSTILE,),
        removed_cases=("a", "b", "c", "d", "e", "f"),
        tests_changed=("g",),
        unjudged=("h", "i"),
    )


EVERY = plan(
    model(
        "known",
        KNOWN,
        seen=need(24, KNOWN),
        seen_with_more=need(9, KNOWN, 9),
        seen_in_few=need(6, KNOWN),
        cleared=need(31, KNOWN),
    ),
    model(HOSTILE, BOUND, seen=need(7, BOUND), seen_in_few=need(3, BOUND), cleared=need(1, BOUND)),
    model("thin", UNKNOWN, seen=None, seen_with_more=need(61, UNKNOWN, 61)),
)


def headline(*models: ModelPlan) -> str:
    return PLAN_FORMATS["text"](plan(*models)).partition("\n")[0]


def test_the_text_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("plan.txt", PLAN_FORMATS["text"](EVERY))


def test_the_comment_reads_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("plan.md", PLAN_FORMATS["markdown"](EVERY))


def test_the_headline_is_what_suffices_for_every_model() -> None:
    known, bound, thin = EVERY.models
    what = "to see a mean drop of 5 points from main with a chance of 80%"
    assert headline(known, bound) == f"24 attempts per case {what}"
    assert headline(bound, thin) == f"61 attempts per case on both sides {what}"
    assert headline(bound, model("never", KNOWN, seen=None)) == f"More than 1,000 attempts per case {what}"


def test_a_program_gets_every_number() -> None:
    told = json.loads(PLAN_FORMATS["json"](EVERY))
    known, bound, thin = told["models"]
    assert (known["seen"]["current"], known["seen"]["cost_usd"]) == (24, 12.0)
    assert bound["once"]["at_most"] is True
    assert "seen" not in thin
    assert "cost_usd" not in thin["seen_with_more"]
    assert told["unjudged"] == ["h", "i"]


def test_no_name_commands_a_terminal() -> None:
    for form in PLAN_FORMATS.values():
        assert INVISIBLE_CHARACTER_PATTERN.search(form(EVERY).replace("@\u200b", "@")) is None
