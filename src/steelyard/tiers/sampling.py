"""What the figures of tiers are a sample of: tasks like these, or these tasks with other variants and runs.

A tier's figures pool all its runs. Where tasks are sampled, the task is the sampling unit. Where they are fixed, the units
are the variants of a task, such as subtests that one tier alone has, or its runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.analysis import estimates
from steelyard.analysis.estimates import Estimate, price_of_pass, share
from steelyard.stats.cost import cost_of_pass
from steelyard.stats.descriptive import median, median_interval, plain_mean, uplift_interval
from steelyard.stats.fixed_tasks import (
    Task,
    task_cost_interval,
    task_difference_interval,
    task_mean_interval,
    task_median_interval,
    task_uplift_interval,
)
from steelyard.stats.intervals import (
    Interval,
    independent_difference_interval,
    standard_error,
)
from steelyard.stats.paired import difference_interval
from steelyard.stats.special import student_quantile
from steelyard.text import counted
from steelyard.tiers import formulas
from steelyard.tiers.results import SamplingUnit, Tasks
from steelyard.tiers.run_tables import TierCaseKey, TierRuns

MAX_CACHED_TASKS = 20_000
"""Tasks up to which their values are held for further figures; those of more are taken from the columns again."""
MIN_SAMPLED_TASKS = 7
"""With fewer tasks nothing useful can be said of tasks like these: a median has no bounds, and a mean hardly any."""


class TaskSampling(NamedTuple):
    """What intervals speak of, and why."""

    tasks: Tasks
    reason: str


def chosen_sampling(tiers: Sequence[TierRuns], wanted: Tasks | None) -> TaskSampling:
    """The requested choice; otherwise tasks are sampled if there are enough of them or no task was run twice."""
    fewest = min(len(tier.tasks) for tier in tiers)
    tasks = counted(fewest, "task")
    meanings = {
        "fixed": "intervals speak of these tasks with other variants or runs",
        "sampled": "intervals speak of tasks like these",
    }
    if wanted is not None:
        return TaskSampling(wanted, f"tasks are {wanted}, as wanted: {meanings[wanted]}")
    if fewest >= MIN_SAMPLED_TASKS:
        return TaskSampling("sampled", f"tasks are sampled, because there are {fewest:,}: {meanings['sampled']}")
    if any(min(map(len, tier.units("pass_rate").values()), default=0) < 2 for tier in tiers):
        return TaskSampling(
            "sampled",
            f"tasks are sampled, because some were run once: {meanings['sampled']}, and {tasks} {'says' if fewest == 1 else 'say'} little of them",
        )
    few = f"there are fewer than {MIN_SAMPLED_TASKS} of them" if fewest > 1 else "there is 1 of them"
    return TaskSampling("fixed", f"tasks are fixed, because {few}: {meanings['fixed']}")


class TierSample:
    """The runs of a tier, and what they are a sample of; what several figures need is computed once."""

    def __init__(self, runs: TierRuns, tasks: Tasks) -> None:
        self.runs, self.tasks = runs, tasks
        self._values: dict[str, Mapping[TierCaseKey, list[float]]] = {}

    @cached_property
    def cases(self) -> dict[TierCaseKey, None]:
        """Its tasks in the order of its runs."""
        return dict.fromkeys(self.runs.tasks)

    def by_case(self, metric: str) -> Mapping[TierCaseKey, list[float]]:
        """The known values of each task that has any, sorted by name."""
        if (known := self._values.get(metric)) is None:
            known = self.runs.by_task(metric)
            if len(known) <= MAX_CACHED_TASKS:
                self._values[metric] = known
        return known

    @cached_property
    def unit(self) -> SamplingUnit:
        if self.tasks == "sampled":
            return "case" if len(self.cases) > 1 else "run"
        return "variant" if self.runs.has_variants else "run"

    @cached_property
    def is_withheld(self) -> bool:
        """Whether tasks are sampled, and too few to say anything although each of them was run again and again."""
        if self.unit != "case" or self.runs.known_tasks("pass_rate") >= MIN_SAMPLED_TASKS:
            return False
        return min(map(len, self.runs.units("pass_rate").values()), default=0) > 1

    def strata(self, metric: str, cases: Sequence[TierCaseKey] | None = None) -> list[Task]:
        """The sampled units of each task that has a value."""
        units = self.runs.units(metric)
        return [units[case] for case in (units if cases is None else cases)]

    def mean(self, metric: str) -> Estimate:
        """The mean over all runs, each in [0, 1]."""
        cases = [*self.by_case(metric).values()]
        values = [value for of_case in cases for value in of_case]
        if self.tasks == "fixed":
            found = _estimate(
                plain_mean(values) if values else None, task_mean_interval(self.strata(metric)) if values else None
            )
        elif self.unit == "run":
            yes = sum(value == 1 for value in values)
            found = share(yes, len(values)) if set(values) <= {0.0, 1.0} else estimates.mean(values, len(values))
        elif len({len(of_case) for of_case in cases}) == 1:
            found = estimates.mean([math.fsum(each) / len(each) for each in cases], len(values))
        else:
            # every run counts the same, so a case counts as often as it was run
            names = [str(number) for number, of_case in enumerate(cases) for _ in of_case]
            found = estimates.mean(values, len(values), groups=names)
        return self._counted(found, len(cases), len(values))

    def median(self, metric: str) -> Estimate:
        """The median over all runs."""
        cases = [*self.by_case(metric).values()]
        values = [value for of_case in cases for value in of_case]
        if self.tasks == "fixed":
            interval = task_median_interval(self.strata(metric)) if values else None
        else:
            interval = median_interval([[each] for each in values] if self.unit == "run" else cases)
        return self._counted(_estimate(median(values), interval), len(cases), len(values))

    def price(self) -> Estimate:
        """What a pass costs, from the runs of which it is known whether they passed."""
        known = self.runs.known()
        sample = TierSample(known, self.tasks)
        costs, passes = sample.by_case("cost_usd"), sample.by_case("pass_rate")
        if self.tasks == "fixed":
            value = cost_of_pass(
                [cost for of_case in costs.values() for cost in of_case],
                [int(passed) for of_case in passes.values() for passed in of_case],
            )
            interval = task_cost_interval(sample.strata("cost_usd"), sample.strata("pass_rate")) if len(known) else None
            is_infinite = value is not None and math.isinf(value)
            found = replace(_estimate(None if is_infinite else value, interval), infinite=is_infinite)
            return self._counted(found, len(costs), len(known))
        # where runs are sampled, each of them is a unit
        units = [
            unit
            for case in costs
            for unit in (
                zip(([cost] for cost in costs[case]), ([passed] for passed in passes[case]), strict=True)
                if self.unit == "run"
                else [(costs[case], passes[case])]
            )
        ]
        found = price_of_pass(
            [math.fsum(spent) for spent, _ in units],
            [int(sum(passed)) for _, passed in units],
            [len(spent) for spent, _ in units],
        )
        return self._counted(found, len(costs), found.attempts)

    def _counted(self, found: Estimate, cases: int, attempts: int) -> Estimate:
        ends = {"low": None, "high": None} if self.is_withheld else {}
        return replace(found, cases=cases, attempts=attempts, **ends)


def median_uplift(before: TierSample, after: TierSample, *, seed: int, replicates: int) -> Estimate:
    """How much greater the median composite is than the baseline's, as a share of it."""
    sides = [side.by_case("composite") for side in (before, after)]
    values = [[value for of_case in side.values() for value in of_case] for side in sides]
    value = formulas.uplift(*(median(each) for each in reversed(values)))
    cases = sorted({*sides[0], *sides[1]})
    interval = None
    if value is not None and before.tasks == "fixed":
        old, new = (side.strata("composite") for side in (before, after))
        interval = task_uplift_interval(old, new, seed=seed, replicates=replicates)
    # runs are resampled only where they are all of a single case
    elif value is not None and (len(cases) > 1 or len({*before.cases, *after.cases}) == 1):
        old_cases, new_cases = ([side.get(case, []) for case in cases] for side in sides)
        interval = uplift_interval(old_cases, new_cases, seed=seed, replicates=replicates)
    if interval is not None and math.isinf(interval.high):
        found = Estimate(value=value, low=interval.low)
    else:
        found = _estimate(value, interval)
    return replace(found, cases=len(cases), attempts=sum(map(len, values)))


def score_difference(before: TierSample, after: TierSample, metric: str) -> Estimate:
    """The mean over shared tasks of how much the mean of the runs differs."""
    old, new = (side.by_case(metric) for side in (before, after))
    shared = [case for case in new if case in old]
    if not shared:
        return Estimate(value=None)
    means = [[math.fsum(side[case]) / len(side[case]) for case in shared] for side in (old, new)]
    sizes = [len(side[case]) for side in (old, new) for case in shared]
    differences = [now - then for then, now in zip(*means, strict=True)]
    if before.tasks == "fixed" and not _are_outcomes(old, new):
        interval = task_difference_interval(
            before.strata(metric, shared), after.strata(metric, shared), are_scores=True
        )
    elif before.tasks == "fixed":
        around = [task_mean_interval(side.strata(metric, shared), alike=True) for side in (before, after)]
        middles = [math.fsum(side) / len(side) for side in means]
        interval = None
        if around[0] is not None and around[1] is not None:
            interval = independent_difference_interval(middles[0], around[0], middles[1], around[1])
    else:
        interval = difference_interval(*means, attempts=len(sizes) / math.fsum(1 / size for size in sizes))
    return difference_estimate(differences, interval, sum(sizes))


def _are_outcomes(*sides: Mapping[TierCaseKey, Sequence[float]]) -> bool:
    """Whether all values are yes or no, which says more of what may still happen than their spread does."""
    return all(value in (0.0, 1.0) for side in sides for of_case in side.values() for value in of_case)


def cost_difference(before: TierSample, after: TierSample) -> Estimate:
    """The mean over shared tasks of how much a run's cost differs, with Student's interval; None if any is unknown."""
    if before.runs.missing("cost_usd") or after.runs.missing("cost_usd"):
        return Estimate(value=None)
    old, new = (side.by_case("cost_usd") for side in (before, after))
    shared = [case for case in new if case in old]
    if not shared:
        return Estimate(value=None)
    differences = [math.fsum(new[case]) / len(new[case]) - math.fsum(old[case]) / len(old[case]) for case in shared]
    interval = None
    if before.tasks == "fixed":
        interval = task_difference_interval(before.strata("cost_usd", shared), after.strata("cost_usd", shared))
    elif (error := standard_error(differences)) is not None:
        middle, half = math.fsum(differences) / len(shared), student_quantile(len(shared) - 1, 0.975) * error
        interval = Interval(middle - half, middle + half)
    return difference_estimate(differences, interval, sum(len(side[case]) for side in (old, new) for case in shared))


def difference_estimate(differences: Sequence[float], interval: Interval | None, attempts: int) -> Estimate:
    """The mean of differences with its interval."""
    found = _estimate(math.fsum(differences) / len(differences), interval)
    return replace(found, cases=len(differences), attempts=attempts)


def _estimate(value: float | None, interval: Interval | None) -> Estimate:
    if interval is None:
        return Estimate(value=value)
    return Estimate(value=value, low=interval.low, high=None if math.isinf(interval.high) else interval.high)
