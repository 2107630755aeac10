"""The attempts that a gate needs to see a drop from a baseline, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard import evalsets
from steelyard.comparison.power import ComparisonPlan, SingleRoundCost, mean_rate, model_plans
from steelyard.comparison.sides import PairedModel, Side, Trials, pair_sides
from steelyard.engine.gate.gate import LOOK_ALPHA_SHARE, THIN_BASELINE_ATTEMPTS
from steelyard.engine.gate.sides import run_folder, side
from steelyard.engine.pace import max_request_tokens
from steelyard.engine.plan import parameters
from steelyard.engine.results.recordings import is_recorded
from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.providers.prices import Prices
from steelyard.records import Attempt, Case, RunInfo
from steelyard.stats.power import (
    DEFAULT_POWER,
    BaselineRate,
    all_clear_chance,
    baseline_rate,
    least_sufficient_attempts,
)
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER
from steelyard.store.stored_cases import cases_by_id

ADVISED_BASELINE_ATTEMPTS = 20
"""Attempts per case of a baseline that serves many changes."""
EVAL_SET_SUFFIXES = (".toml", ".jsonl", ".yaml", ".csv")


class PlannedSides(NamedTuple):
    """What a plan is made for."""

    cases: Sequence[Case] | None
    """None for those that the baseline has."""
    baseline: Side
    problems: tuple[Problem, ...] = ()
    """Of the eval sets."""


def planned_sides(
    names: Sequence[str], baseline: str | None = None, *, root: Path = DEFAULT_RUNS_FOLDER
) -> PlannedSides:
    """Eval sets and the baseline of their next run; or without a baseline one run, planned for its own cases."""
    if baseline is not None:
        loaded = evalsets.load(names)
        return PlannedSides(loaded.cases, side(baseline, root=root), tuple(loaded.problems))
    if len(names) != 1:
        raise InputError("name one run or baseline, or eval sets and --baseline A")
    (name,) = names
    if Path(name).suffix in EVAL_SET_SUFFIXES and Path(name).is_file() and not is_recorded(name):
        raise InputError(f"{name} is an eval set; say with --baseline A what its run will be compared with")
    folder = run_folder(name, root=root)
    return PlannedSides(StoredRun(folder).cases if folder else None, side(name, root=root))


def gate_plan(
    cases: Sequence[Case] | None,
    baseline: Side,
    prices: Prices,
    *,
    models: Sequence[str] = (),
    detect: float = 0.05,
    power: float = 0.8,
    alpha: float = 0.05,
) -> ComparisonPlan:
    """How many attempts at each case `gate` needs to see such a mean drop from the baseline, and what they cost.

    It is planned for the first look at a run, and by default for all models of the baseline; without cases, for
    those that the baseline has.
    """
    for name, share in (("the drop to detect", detect), ("the power", power), ("alpha", alpha)):
        if not 0 < share < 1:
            raise InputError(f"{name} must be between 0 and 1, not {share:g}")
    chosen = {name: baseline.models[_checked_model(name, baseline)] for name in models or baseline.models}
    if cases is None:
        current = {
            name: tuple(_not_tried(old.case, old.tests, old.critical) for old in trials)
            for name, trials in chosen.items()
        }
    else:
        current = dict.fromkeys(chosen, tuple(_not_tried(case.id, case.tests_digest, case.critical) for case in cases))
    pairing = pair_sides(
        Side(name=baseline.name, rule=baseline.rule, models=chosen),
        Side(name="the eval set", rule=baseline.rule, models=current),
    )
    judged = [PairedModel(model.name, [pair for pair in model.cases if pair[0].attempts]) for model in pairing.models]
    for model in judged:
        if not model.cases:
            raise InputError(
                f"{baseline.name}: {model.name} has no judged attempt at any of these cases by these tests"
            )
    too_low = tuple(model.name for model in judged if mean_rate(model) <= detect)
    if len(too_low) == len(judged):
        highest = max(judged, key=mean_rate)
        raise InputError(
            f"{baseline.name}: {highest.name} passes {mean_rate(highest):.1%} of its attempts, which cannot drop by {detect:g}; "
            "look for a smaller drop with --detect"
        )
    judged = [model for model in judged if model.name not in too_low]
    once = _single_attempt_costs(judged, cases or (), prices)
    return ComparisonPlan(
        baseline=baseline.name,
        detect=detect,
        power=power,
        alpha=alpha,
        look_alpha=LOOK_ALPHA_SHARE * alpha,
        models=model_plans(
            judged,
            detect=detect,
            power=power,
            alpha=LOOK_ALPHA_SHARE * alpha,
            once=once,
        ),
        too_low=too_low,
        new_cases=pairing.new_cases,
        removed_cases=pairing.removed_cases,
        tests_changed=pairing.tests_changed,
        unjudged=tuple(
            pairing.label(old.case, model.name)
            for model in pairing.models
            for old, _ in model.cases
            if not old.attempts
        ),
    )


def _not_tried(case: str, tests: str, critical: bool) -> Trials:
    return Trials(case=case, tests=tests, attempts=0, passes=0, critical=critical)


def _checked_model(model: str, baseline: Side) -> str:
    if model not in baseline.models:
        raise InputError(f'{baseline.name}: no model "{model}" ({did_you_mean(model, baseline.models)})')
    return model


def _single_attempt_costs(
    models: Sequence[PairedModel], cases: Sequence[Case], prices: Prices
) -> dict[str, SingleRoundCost]:
    by_id = cases_by_id(cases)
    return {model.name: _single_attempt_cost(model, by_id, prices) for model in models}


def _single_attempt_cost(model: PairedModel, cases: Mapping[str, Case], prices: Prices) -> SingleRoundCost:
    """What one attempt at each case costs: as in the baseline, or at most, by the prices of today."""
    costs = [old.cost_usd / old.attempts for old, _ in model.cases if old.cost_usd is not None]
    if len(costs) == len(model.cases):
        return SingleRoundCost(cost_usd=math.fsum(costs))
    if not cases:
        return SingleRoundCost()
    info = RunInfo(id="", started_at="")
    bounds = []
    for old, _ in model.cases:
        case = cases[old.case]
        attempt = Attempt(case=case, model=model.name, parameters=parameters(info, case, 1))
        bounds.append(prices.bound(model.name, *max_request_tokens(attempt)))
    known = [bound for bound in bounds if bound is not None]
    return SingleRoundCost(cost_usd=math.fsum(known), at_most=True) if len(known) == len(bounds) else SingleRoundCost()


def thin_baseline_sentence(cases: Sequence[Trials]) -> str | None:
    """What a baseline of 20 attempts per case would save, where one has fewer than 10; None where it saves nothing."""
    tried = [each for each in cases if each.attempts]
    if not tried or min(each.attempts for each in tried) >= THIN_BASELINE_ATTEMPTS:
        return None
    as_it_is = [baseline_rate(each.attempts, each.passes) for each in tried]
    with_more = [
        each if each.attempts >= ADVISED_BASELINE_ATTEMPTS else each._replace(attempts=ADVISED_BASELINE_ATTEMPTS)
        for each in as_it_is
    ]
    now, then = _attempts_to_clear(as_it_is), _attempts_to_clear(with_more)
    if then is None or now == then:
        return None
    need = f"{now}" if now is not None else f"more than {5 * ADVISED_BASELINE_ATTEMPTS}"
    return (
        f"an unchanged run is cleared four times out of five by {need} attempts per case; against a baseline of "
        f"{ADVISED_BASELINE_ATTEMPTS} by {then}: bless several runs"
    )


def _attempts_to_clear(cases: Sequence[BaselineRate]) -> int | None:
    """The attempts per case that clear an unchanged run by the default rule; None if it takes very many."""
    alpha, margin = LOOK_ALPHA_SHARE * 0.05, 0.05
    return least_sufficient_attempts(
        lambda number: all_clear_chance(cases, margin, number, alpha=alpha) >= DEFAULT_POWER,
        most=5 * ADVISED_BASELINE_ATTEMPTS,
    )
