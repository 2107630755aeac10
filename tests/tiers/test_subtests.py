"""The best subtest of a tier is named with those that may as well be it, and with a score that the choice did not flatter."""

from __future__ import annotations

import random

import pytest

from steelyard.tiers.results import RunFigures, best_subtests


def runs(rates: dict[str, float], *, tasks: int = 3, each: int = 5, seed: int = 1) -> list[RunFigures]:
    """Runs of one tier whose composites scatter around the rate of their subtest."""
    chance = random.Random(seed)
    return [
        RunFigures(
            experiment=f"task-{task}",
            model="m",
            tier="T1",
            case=name,
            number=number,
            passed=True,
            pass_rate=1.0,
            impl_rate=None,
            composite=rate + chance.gauss(0, 0.05),
            cost_usd=None,
            duration_seconds=None,
            cost_of_pass=None,
        )
        for name, rate in rates.items()
        for task in range(tasks)
        for number in range(1, each + 1)
    ]


def test_a_clear_winner_stands_alone() -> None:
    (found,) = best_subtests(runs({"01": 0.3, "02": 0.8, "03": 0.4}))
    assert (found.best, found.subtests, found.could_be, found.by) == ("02", 3, (), "composite")
    assert found.held_out == pytest.approx(found.value, abs=0.02)


def test_the_true_best_is_named_or_among_those_that_could_be() -> None:
    rates = {f"{number:02}": 0.5 for number in range(19)} | {"best": 0.52}
    named = 0
    for seed in range(20):
        (found,) = best_subtests(runs(rates, seed=seed))
        named += "best" in (found.best, *found.could_be)
        assert len(found.could_be) < 20
    assert named >= 17, "at least 95%, less what 20 experiments scatter"


def test_runs_left_out_do_not_flatter_the_winner_of_equals() -> None:
    rates = {f"{number:02}": 0.5 for number in range(20)}
    flattered, honest = [], []
    for seed in range(20):
        (found,) = best_subtests(runs(rates, seed=seed))
        flattered.append(found.value)
        assert found.held_out is not None
        honest.append(found.held_out)
    assert sum(flattered) / 20 > 0.515
    assert sum(honest) / 20 == pytest.approx(0.5, abs=0.006)


def test_one_run_of_each_proves_nothing() -> None:
    (found,) = best_subtests(runs({"01": 0.1, "02": 0.9}, each=1))
    assert (found.best, found.could_be, found.held_out) == ("02", ("01",), None)
