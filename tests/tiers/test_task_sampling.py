"""Intervals of tiers cover what they speak of: these tasks, or tasks like these."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb, prod
from typing import NamedTuple

import numpy as np
import pytest

from steelyard.stats.fixed_tasks import task_mean_interval
from steelyard.tiers.analysis import analyse_tiers
from steelyard.tiers.results import Tasks, TierRun
from steelyard.tiers.run_tables import RunTable

MIN_COVERAGE = 0.93


class Experiment(NamedTuple):
    """How an experiment comes about: tasks, variants of a tier, and runs, each with its own luck."""

    tasks: int
    variants: int
    runs: int
    spread: float
    """How far variants of one task differ in their chance to pass, as a share of the most that they can."""
    base: float
    """The chance to pass of the mean task under T0."""


class World(NamedTuple):
    """What a sample of an experiment is drawn from."""

    experiment: Experiment
    chances: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    """The chance to pass by tier and task."""

    @property
    def truth(self) -> dict[str, float]:
        pass_rates = self.chances.mean(axis=1)
        # what passes has an impl rate of 0.9 on average, what fails one of 0.5
        composites = pass_rates * 0.95 + (1 - pass_rates) * 0.25
        costs = 0.1 * np.arange(1, 3)
        return {
            "pass rate": pass_rates[0],
            "composite": composites[0],
            "cost of pass": costs[0] / pass_rates[0],
            "difference of pass rates": pass_rates[1] - pass_rates[0],
            "difference of composites": composites[1] - composites[0],
            "difference of costs": costs[1] - costs[0],
        }


def world(experiment: Experiment, seed: int) -> World:
    chance = np.random.default_rng(seed)
    easy = np.clip(experiment.base + chance.uniform(-0.08, 0.08, experiment.tasks), 0.02, 0.98)
    return World(experiment, np.stack([easy, np.clip(easy + 0.04, 0.0, 0.99)]))


def sample(of: World, chance: np.random.Generator) -> list[TierRun]:
    found = []
    tasks, variants, runs, spread, _ = of.experiment
    for tier, chances in enumerate(of.chances):
        for task in range(tasks):
            middle = chances[task]
            # a beta distribution with this mean, as wide as the spread says
            size = 1 / spread - 1 if spread else np.inf
            own = chance.beta(middle * size, (1 - middle) * size, variants) if spread else np.full(variants, middle)
            for variant in range(variants):
                for number in range(runs):
                    passed = bool(chance.random() < own[variant])
                    found.append(
                        TierRun(
                            experiment=f"task-{task}",
                            model="m",
                            tier=f"T{tier}",
                            case=f"T{tier}-{variant}",
                            number=number,
                            passed=passed,
                            impl_rate=float(chance.uniform(0.8, 1.0) if passed else chance.uniform(0.3, 0.7)),
                            cost_usd=float(0.1 * (tier + 1) * chance.gamma(4, 0.25)),
                        )
                    )
    return found


def coverage(experiment: Experiment, tasks: Tasks, repeats: int) -> dict[str, float]:
    """How often each interval holds what is true of these tasks, or of all tasks like them."""
    chance = np.random.default_rng([experiment.tasks, experiment.variants, experiment.runs])
    fixed = world(experiment, seed=1)
    whole = world(experiment._replace(tasks=100_000), seed=2)
    hits: dict[str, int] = {}
    for repeat in range(repeats):
        of = fixed if tasks == "fixed" else world(experiment, seed=repeat + 3)
        truth = (fixed if tasks == "fixed" else whole).truth
        analysis = analyse_tiers(sample(of, chance), pair_by="experiment", tasks=tasks, replicates=40)
        (model,) = analysis.models
        (against,) = model.against_baseline
        tier = model.tiers[0]
        found = {
            "pass rate": tier.pass_rate,
            "composite": tier.composite,
            "cost of pass": tier.cost_of_pass,
            "difference of pass rates": against.pass_rate,
            "difference of composites": against.composite,
            "difference of costs": against.cost_usd,
        }
        for name, estimate in found.items():
            low = -np.inf if estimate.low is None else estimate.low
            high = np.inf if estimate.high is None else estimate.high
            hits[name] = hits.get(name, 0) + bool(low <= truth[name] <= high)
    return {name: count / repeats for name, count in hits.items()}


FIXED = [
    Experiment(1, 12, 3, 0.1, 0.8),
    Experiment(2, 6, 1, 0.1, 0.9),
    Experiment(3, 1, 5, 0.0, 0.7),
    Experiment(3, 10, 3, 0.1, 0.9),
    Experiment(3, 24, 3, 0.05, 0.85),
    Experiment(5, 4, 2, 0.2, 0.6),
]
SAMPLED = [
    Experiment(8, 3, 3, 0.1, 0.85),
    Experiment(12, 1, 5, 0.0, 0.7),
    Experiment(30, 1, 1, 0.0, 0.8),
]


@pytest.mark.parametrize(("tasks", "runs"), [(2, 6), (3, 3), (3, 5), (5, 3)])
def test_a_pass_rate_of_a_few_runs_of_fixed_tasks_is_covered_whatever_their_chances(tasks: int, runs: int) -> None:
    # every outcome with its chance, so nothing is left to luck
    outcomes = list(product(range(runs + 1), repeat=tasks))
    by_total = {}
    for total in range(tasks * runs + 1):
        counts = [min(runs, max(0, total - task * runs)) for task in range(tasks)]
        values = [[[1.0]] * count + [[0.0]] * (runs - count) for count in counts]
        by_total[total] = task_mean_interval(values)
    for base, apart in product((0.1, 0.3, 0.5, 0.62, 0.7, 0.8, 0.87, 0.93, 0.98), (0.0, 0.15, 0.4)):
        chances = [min(max(base + apart * (task - (tasks - 1) / 2), 0.01), 0.99) for task in range(tasks)]
        truth = sum(chances) / tasks
        covered = 0.0
        for outcome in outcomes:
            interval = by_total[sum(outcome)]
            assert interval is not None
            if interval.low <= truth <= interval.high:
                covered += prod(
                    comb(runs, count) * chance**count * (1 - chance) ** (runs - count)
                    for count, chance in zip(outcome, chances, strict=True)
                )
        assert covered >= 0.95


def test_intervals_cover_with_few_repeats() -> None:
    # with so few repeats, 19 of 20 look like 17
    assert min(coverage(FIXED[2], "fixed", 60).values()) >= 0.85
    assert min(coverage(SAMPLED[1], "sampled", 40).values()) >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tasks", "experiment"), [*(("fixed", each) for each in FIXED), *(("sampled", each) for each in SAMPLED)]
)
def test_intervals_cover_in_the_whole_study(tasks: Tasks, experiment: Experiment) -> None:
    assert min(coverage(experiment, tasks, 1000).values()) >= MIN_COVERAGE


def runs_of(rates: dict[str, list[int]], of: int) -> list[TierRun]:
    """Runs of tiers: how many of so many variants pass in each task."""
    return [
        TierRun(experiment=f"task-{task}", model="m", tier=tier, case=f"{tier}-{variant}", passed=variant < passes)
        for tier, tasks in rates.items()
        for task, passes in enumerate(tasks)
        for variant in range(of)
    ]


def test_few_tasks_that_agree_have_a_narrow_interval() -> None:
    found = analyse_tiers(runs_of({"T0": [92, 90, 94]}, of=100), pair_by="experiment")
    (tier,) = found.models[0].tiers
    assert (found.tasks, tier.unit) == ("fixed", "variant")
    assert "fewer than 7" in found.tasks_reason
    rate = tier.pass_rate
    assert rate.low is not None
    assert rate.high is not None
    assert 0.87 < rate.low < 0.92 < rate.high < 0.96


def test_tasks_are_sampled_where_there_are_enough_and_where_none_was_run_twice() -> None:
    many = analyse_tiers(runs_of({"T0": [3, 2, 3, 4, 3, 2, 3]}, of=4), pair_by="experiment")
    assert (many.tasks, many.models[0].tiers[0].unit) == ("sampled", "case")
    once = analyse_tiers(runs_of({"T0": [1, 0, 1]}, of=1), pair_by="experiment")
    assert once.tasks == "sampled"
    assert "some were run once" in once.tasks_reason
    alone = analyse_tiers(runs_of({"T0": [1]}, of=1), pair_by="experiment")
    assert [run.tasks_reason.partition(", and ")[2] for run in (once, alone)] == [
        "3 tasks say little of them",
        "1 task says little of them",
    ]


def test_too_few_tasks_say_nothing_of_tasks_like_them() -> None:
    found = analyse_tiers(runs_of({"T0": [92, 90, 94]}, of=100), pair_by="experiment", tasks="sampled")
    rate = found.models[0].tiers[0].pass_rate
    assert rate.value == pytest.approx(0.92)
    assert (rate.low, rate.high) == (None, None)
    assert any("tasks are too few to say anything of tasks like these" in warning for warning in found.warnings)


def test_what_varies_is_the_runs_where_tiers_share_their_cases() -> None:
    given = [
        TierRun(model="m", tier="T0", case=case, number=number, passed=number < 7, cost_usd=1.0)
        for case in "abc"
        for number in range(10)
    ]
    (tier,) = analyse_tiers(given).models[0].tiers
    assert tier.unit == "run"
    # Clopper and Pearson's interval of all their runs
    assert (tier.pass_rate.low, tier.pass_rate.high) == pytest.approx((0.5060, 0.8527), abs=1e-3)
    assert tier.cost_of_pass.value == pytest.approx(10 / 7)


class ColumnsOnly(RunTable):
    """Runs of which no record can be made."""

    def _records(self, start: int, stop: int) -> Iterator[TierRun]:
        raise AssertionError("a record was made for each run")


def test_figures_of_tiers_come_from_columns_and_make_no_record_of_a_run() -> None:
    runs = [tier_run(number) for number in range(200)]
    columns = RunTable.of(runs)
    alone = ColumnsOnly(columns.names, columns.number, columns.passed, columns.amounts)
    found = analyse_tiers(alone)
    assert found.models[0].tiers[0].cost_of_pass.attempts == 200
    assert found == analyse_tiers(runs)
    assert list(columns) == runs


def tier_run(number: int) -> TierRun:
    is_right = number % 3 > 0
    return TierRun(
        model="m", tier="T0", case=f"c{number % 9}", number=number, passed=is_right, impl_rate=0.5, cost_usd=1
    )
