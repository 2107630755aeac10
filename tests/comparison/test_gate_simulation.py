"""The gate raises a false alarm, and gives a false all-clear, no more often than it promises."""

from __future__ import annotations

import math
from itertools import product

import msgspec
import numpy as np
import pytest
from scipy import stats

from steelyard.comparison.exact_tests import PairedCase
from steelyard.comparison.gate import NOT_REGRESSED, REGRESSED, decide
from support.gate_simulation import (
    ALPHA,
    ATTEMPTS,
    CHANGES,
    MARGIN,
    POOLED,
    REPEATS,
    SIZES,
    SUITES,
    TOO_MANY,
    VERDICTS,
    Drawn,
    Floats,
    drawn,
    paired,
    rates,
    shares,
    verdicts,
)


@pytest.mark.parametrize(("suite", "attempts"), list(product(SUITES, ATTEMPTS + POOLED)))
def test_the_rule_that_is_simulated_is_the_gate(suite: str, attempts: tuple[int, int]) -> None:
    for change in CHANGES:
        runs = drawn(suite, 50, attempts, change, repeats=8)
        simulated = verdicts(runs)
        for row in range(8):
            assert decide({"model": paired(runs, row)}).verdict == VERDICTS[simulated[row]], (change, row)


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "cases", "attempts"), list(product(SUITES, SIZES, ATTEMPTS + POOLED)))
def test_where_nothing_changed_the_gate_seldom_says_regressed(
    suite: str, cases: int, attempts: tuple[int, int]
) -> None:
    assert round(shares(suite, cases, attempts, "none").regressed * REPEATS) <= TOO_MANY


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "cases", "attempts"), list(product(SUITES, SIZES, ATTEMPTS + POOLED)))
def test_a_drop_of_the_margin_is_seldom_said_to_be_none(suite: str, cases: int, attempts: tuple[int, int]) -> None:
    assert round(shares(suite, cases, attempts, "the margin").not_regressed * REPEATS) <= TOO_MANY


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "cases", "attempts"), list(product(SUITES, SIZES, ATTEMPTS + POOLED)))
def test_the_plain_threshold_cries_wolf(suite: str, cases: int, attempts: tuple[int, int]) -> None:
    assert shares(suite, cases, attempts, "none").naive >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "cases"), list(product(SUITES, SIZES)))
def test_with_ten_attempts_the_gate_sees_what_matters(suite: str, cases: int) -> None:
    assert shares(suite, cases, (10, 10), "10 points").regressed >= 0.96
    assert shares(suite, cases, (10, 10), "1 broken").regressed >= 0.94
    assert shares(suite, cases, (10, 10), "3 broken").regressed >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "cases"), list(product(SUITES, SIZES)))
def test_a_pooled_baseline_finds_a_broken_case_with_five_attempts(suite: str, cases: int) -> None:
    assert shares(suite, cases, (30, 5), "1 broken").regressed >= 0.9
    assert shares(suite, cases, (30, 5), "1 broken").regressed > shares(suite, cases, (5, 5), "1 broken").regressed


@pytest.mark.slow
def test_one_attempt_per_case_cannot_see_a_broken_case() -> None:
    assert all(shares(suite, 100, (1, 1), "1 broken").regressed <= 0.1 for suite in SUITES)
    assert math.isclose(sum(shares("strong", 100, (1, 1), "1 broken")[:3]), 1)


FEWER = 400
TOO_MANY_OF_FEWER = int(stats.binom.isf(0.001, FEWER, ALPHA))


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_graded_scores_seldom_raise_a_false_alarm(suite: str) -> None:
    chance = np.random.default_rng([7, *suite.encode()])
    alarms = cleared = 0
    for _ in range(FEWER):
        rate = rates(suite, 30, 1, chance)[0]
        # the share of ten tests that pass, attempt by attempt
        sides = chance.binomial(10, rate[:, None, None], (30, 2, 5)) / 10
        found = decide({"model": graded(sides)}, on="score").verdict
        alarms += found == REGRESSED
        half = sides.copy()
        half[:, 1] *= 1 - MARGIN / half[:, 1].mean()
        cleared += decide({"model": graded(half)}, on="score").verdict == NOT_REGRESSED
    assert alarms <= TOO_MANY_OF_FEWER
    assert cleared <= TOO_MANY_OF_FEWER


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_several_models_with_critical_cases_seldom_raise_a_false_alarm_together(suite: str) -> None:
    alarms = 0
    for repeat in range(FEWER):
        chance = np.random.default_rng([repeat, *suite.encode()])
        rate = rates(suite, 40, 1, chance)
        models = {}
        for name in ("one", "two", "three"):
            runs = Drawn((10, 10), chance.binomial(10, rate), chance.binomial(10, rate))
            models[name] = [
                msgspec.structs.replace(case, critical=place < 5) for place, case in enumerate(paired(runs, 0))
            ]
        alarms += decide(models).verdict == REGRESSED
    assert alarms <= TOO_MANY_OF_FEWER


def graded(sides: Floats) -> list[PairedCase]:
    """Cases from scores by case, side and attempt; a score of 1 is a pass."""
    return [
        PairedCase(
            case=f"case-{number:03}",
            baseline_attempts=len(before),
            baseline_passes=before.count(1),
            current_attempts=len(after),
            current_passes=after.count(1),
            baseline_scores=tuple(before),
            current_scores=tuple(after),
        )
        for number, (before, after) in enumerate(sides.tolist())
    ]
