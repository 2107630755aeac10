"""A run that asks until the gate can decide errs no more often than promised, and asks for little."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from steelyard.comparison.gate import NOT_REGRESSED, CasesPolicy, decide
from steelyard.comparison.sides import Side, Trials
from steelyard.engine.gate.gate import SamplingRound, gate_sides
from steelyard.engine.gate.rounds import DEFAULT_MAX_SAMPLES, SUSPICIOUS_P_VALUE
from steelyard.stats.multiplicity import FINAL_TEST_SHARE, design
from support.gate_simulation import (
    ALPHA,
    CHANGES,
    REPEATS,
    SIZES,
    SUITES,
    THRESHOLD,
    TOO_MANY,
    VERDICTS,
    Drawn,
    Integers,
    changed,
    paired,
    rates,
    tables,
    verdicts,
)

BASELINES = (1, 5, 10, 30)
"""Attempts at each case of the baseline."""


class Course(NamedTuple):
    """What the current side would show after each look, all of it drawn beforehand: one row per repeat."""

    baseline_attempts: int
    baseline: Integers
    current: dict[int, Integers]
    """Passes by the number of attempts."""


class Ended(NamedTuple):
    """How each repeat ended."""

    verdict: Integers
    """As a place in VERDICTS."""
    rounds: Integers
    """Attempts that every case got."""
    topped_up: Integers
    """Cases that got all attempts there are."""


class Shares(NamedTuple):
    regressed: float
    not_regressed: float
    cannot_tell: float
    rounds: float
    """The median of the attempts that every case got."""
    attempts: float
    """The mean of all attempts, per case."""


def course(suite: str, cases: int, before: int, change: str, repeats: int = REPEATS) -> Course:
    chance = np.random.default_rng([cases, before, *suite.encode(), *change.encode()])
    old = rates(suite, cases, repeats, chance)
    new = changed(old, change)
    baseline = chance.binomial(before, old)
    current, so_far, last = {}, np.zeros_like(baseline), 0
    for step in design(DEFAULT_MAX_SAMPLES, baseline_attempts=before):
        so_far = so_far + chance.binomial(step.attempts - last, new)
        last = step.attempts
        current[last] = so_far
    return Course(before, baseline, current)


def ended(drawn: Course) -> Ended:
    """The rule of a run that asks in rounds once more, for many runs at once."""
    before, baseline, current = drawn
    repeats, cases = baseline.shape
    all_in = tables(before, DEFAULT_MAX_SAMPLES)
    named = (
        all_in.p[all_in.place[baseline + current[DEFAULT_MAX_SAMPLES], current[DEFAULT_MAX_SAMPLES]]] * cases
        <= FINAL_TEST_SHARE * ALPHA
    )
    verdict, rounds, topped_up = np.full(repeats, 2), np.full(repeats, DEFAULT_MAX_SAMPLES), np.zeros(repeats, int)
    going = np.arange(repeats)
    for step in design(DEFAULT_MAX_SAMPLES, baseline_attempts=before):
        old, new = baseline[going], current[step.attempts][going]
        found = verdicts(Drawn((before, step.attempts), old, new), step.alarm, step.cleared_level)
        if step.attempts == DEFAULT_MAX_SAMPLES:
            verdict[going] = np.where(named[going].any(axis=1), 0, found)
            break
        known = tables(before, step.attempts)
        doubted = known.p[known.place[old + new, new]] <= SUSPICIOUS_P_VALUE
        doubted &= old / before - new / step.attempts > THRESHOLD + 1e-9
        doubted &= (found == 1)[:, None]
        found = np.where((doubted & named[going]).any(axis=1), 0, found)
        over = found != 2
        verdict[going[over]], rounds[going[over]] = found[over], step.attempts
        topped_up[going[over]] = doubted[over].sum(axis=1)
        going = going[~over]
    return Ended(verdict, rounds, topped_up)


@cache
def shares(suite: str, cases: int, before: int, change: str) -> Shares:
    found = ended(course(suite, cases, before, change))
    attempts = found.rounds + found.topped_up * (DEFAULT_MAX_SAMPLES - found.rounds) / cases
    regressed, not_regressed, cannot_tell = np.bincount(found.verdict, minlength=3) / REPEATS
    return Shares(
        regressed=float(regressed),
        not_regressed=float(not_regressed),
        cannot_tell=float(cannot_tell),
        rounds=float(np.median(found.rounds)),
        attempts=float(attempts.mean()),
    )


def table(baselines: Iterable[int]) -> str:
    """The figures of this study, as the page shows them."""
    heads = ["suite", "cases", "baseline", "regressed / not / cannot tell", "attempts", "margin: not regressed"]
    heads += CHANGES[2:]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for suite, cases, before in product(SUITES, SIZES, baselines):
        none, margin, *found = (shares(suite, cases, before, change) for change in CHANGES)
        cells = [
            *(suite, str(cases), str(before)),
            f"{none.regressed:.1%} / {none.not_regressed:.0%} / {none.cannot_tell:.0%}",
            f"{none.rounds:g}, {none.attempts:.1f}",
            f"{margin.not_regressed:.1%}",
            *(f"{each.regressed:.0%}, {each.attempts:.1f}" for each in found),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def side(attempts: int, passes: Iterable[int], further: dict[int, int] | None = None) -> Side:
    trials = tuple(
        Trials(
            case=f"case-{number:03}",
            attempts=attempts,
            passes=count,
            further_attempts=None if further is None or number not in further else DEFAULT_MAX_SAMPLES - attempts,
            further_passes=(further or {}).get(number, count) - count,
        )
        for number, count in enumerate(passes)
    )
    return Side(name="side", rule="code", models={"model": trials})


@pytest.mark.parametrize(("suite", "change"), list(product(SUITES, CHANGES)))
def test_the_rule_that_is_simulated_is_the_one_of_the_rounds(suite: str, change: str) -> None:
    drawn = course(suite, 50, 30, change, repeats=4)
    expected = ended(drawn)
    for row in range(4):
        baseline = side(30, drawn.baseline[row].tolist())
        verdict, topped_up, rounds = "cannot tell", 0, 0
        for step in design(DEFAULT_MAX_SAMPLES, baseline_attempts=30):
            passes, rounds = drawn.current[step.attempts][row].tolist(), step.attempts
            found = gate_sides(
                baseline, side(rounds, passes), at=SamplingRound(step, rounds == DEFAULT_MAX_SAMPLES)
            ).decision
            verdict = found.verdict
            if verdict == NOT_REGRESSED and rounds < DEFAULT_MAX_SAMPLES:
                doubted = [each.case for each in found.models[0].suspects if each.p <= SUSPICIOUS_P_VALUE]
                topped_up = len(doubted)
                if doubted:
                    every = drawn.current[DEFAULT_MAX_SAMPLES][row].tolist()
                    further = {int(name[5:]): every[int(name[5:])] for name in doubted}
                    found = gate_sides(baseline, side(rounds, passes, further), at=SamplingRound(step, True)).decision
                    verdict = found.verdict
            if verdict != "cannot tell":
                break
        assert (verdict, topped_up) == (VERDICTS[expected.verdict[row]], expected.topped_up[row]), row
        assert rounds == expected.rounds[row]


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "cases", "before"), list(product(SUITES, SIZES, BASELINES)))
def test_where_nothing_changed_asking_on_seldom_ends_in_an_alarm(suite: str, cases: int, before: int) -> None:
    assert round(shares(suite, cases, before, "none").regressed * REPEATS) <= TOO_MANY


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "cases", "before"), list(product(SUITES, SIZES, BASELINES)))
def test_asking_on_seldom_clears_a_drop_of_the_margin(suite: str, cases: int, before: int) -> None:
    assert round(shares(suite, cases, before, "the margin").not_regressed * REPEATS) <= TOO_MANY


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_with_a_pooled_baseline_an_unchanged_suite_is_cleared_by_five_attempts(suite: str) -> None:
    found = shares(suite, 50, 30, "none")
    assert found.not_regressed >= 0.8
    assert found.rounds <= 5


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "cases", "before"), list(product(SUITES, SIZES, (10, 30))))
def test_what_matters_is_found_with_less_than_the_fixed_design_asks(suite: str, cases: int, before: int) -> None:
    for change, power in (("10 points", 0.9), ("1 broken", 0.95), ("3 broken", 0.99)):
        found = shares(suite, cases, before, change)
        assert found.regressed >= power
        assert found.attempts < 10


def test_one_look_of_the_rounds_is_a_gate_at_its_own_levels() -> None:
    drawn = course("strong", 50, 30, "none", repeats=1)
    (first, *_) = design(DEFAULT_MAX_SAMPLES, baseline_attempts=30)
    passes = drawn.current[1][0]
    cases = paired(Drawn((30, 1), drawn.baseline, passes[None, :]), 0)
    policy = CasesPolicy("fail", "the model is the same")
    plain = decide({"model": cases}, alpha=first.alarm, cleared_level=first.cleared_level, policy=policy)
    looked = gate_sides(
        side(30, drawn.baseline[0].tolist()), side(1, passes.tolist()), at=SamplingRound(first, False)
    ).decision
    assert plain == looked
