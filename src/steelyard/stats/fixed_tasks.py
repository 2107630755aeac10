"""Intervals of figures over tasks that stay the same, each with a sample of its own: variants of a set-up, or runs.

A task is its sampled units, and a unit the values of its runs. Every run counts the same, so a task counts as often as it was
run, unless tasks are to count alike. What is said is said of these tasks, with other variants or runs like these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

from steelyard.stats.cost import cost_of_pass
from steelyard.stats.descriptive import PooledValues, lower_median_bound
from steelyard.stats.intervals import (
    Interval,
    binomial_tail_interval,
    mean_interval,
    standard_error,
    upper_tail,
    wilson,
)
from steelyard.stats.special import student_quantile
from steelyard.stats.stratified import Stratum, stratified_interval

if TYPE_CHECKING:
    import numpy as np

Task = Sequence[Sequence[float]]
"""The values of the runs of each unit."""
MIN_RESAMPLED_UNITS = 5
"""With fewer units to draw from, the draws are too few."""


def task_mean_interval(tasks: Sequence[Task], *, alike: bool = False, level: float = 0.95) -> Interval | None:
    """Interval for the mean of values in [0, 1]; None if a task has a single unit with a single run.

    Intervals of the tasks are combined as those of strata are (`stratified_interval`). `alike` counts each task once.
    Runs of several tasks that pass or fail are counted together instead, as if all had the same chance: the number that passes varies most
    then (Hoeffding 1956, "On the distribution of the number of successes in independent trials", Annals of Mathematical
    Statistics 27, 713-721), so Clopper and Pearson's interval covers at its level whatever the tasks' chances are.

    >>> low, high = task_mean_interval([[[1], [1], [0], [1]], [[1], [0], [1], [1]]])
    >>> f"{low:.4f} {high:.4f}"
    '0.3491 0.9681'
    """
    trials = [value for task in tasks for unit in task for value in unit]
    are_trials = all(len(unit) == 1 for task in tasks for unit in task) and set(trials) <= {0.0, 1.0}
    if are_trials and not alike and len(tasks) > 1 and min(map(len, tasks)) > 1:
        passed = math.fsum(trials)
        return binomial_tail_interval(passed, len(trials) - passed, 1 - upper_tail(level))
    return stratified_interval([_stratum(task, 1.0 if alike else None) for task in tasks], level=level)


def _stratum(task: Task, weight: float | None = None) -> Stratum:
    values = [value for unit in task for value in unit]
    interval = partial(_unit_interval, [list(unit) for unit in task])
    return Stratum(math.fsum(values) / len(values), interval, len(values) if weight is None else weight)


def _unit_interval(units: list[list[float]], level: float) -> Interval | None:
    values = [value for unit in units for value in unit]
    sizes = {len(unit) for unit in units}
    if sizes == {1} and set(values) <= {0.0, 1.0}:
        # a run that was done once says as much as any trial
        return wilson(int(sum(values)), len(values), level=level) if len(values) > 1 else None
    if len(sizes) == 1:
        return mean_interval([math.fsum(unit) / len(unit) for unit in units], attempts=len(values), level=level)
    names = [place for place, unit in enumerate(units) for _ in unit]
    return mean_interval(values, attempts=len(values), groups=names, level=level)


def task_median_interval(tasks: Sequence[Task], *, level: float = 0.95) -> Interval | None:
    """Interval for the median of all runs, of values in [0, 1], as `median_interval` has it for sampled cases.

    >>> tasks = [[[0.9], [0.8], [0.85], [0.95]], [[0.7], [0.75], [0.8], [0.9]], [[0.8], [0.8], [0.9], [0.95]]]
    >>> task_median_interval(tasks)
    Interval(low=0.8, high=0.9)
    """
    if task_mean_interval(tasks, level=level) is None:
        return None
    mirrored = [[[-value for value in unit] for unit in task] for task in tasks]
    ends = []
    for side in (tasks, mirrored):
        is_less = partial(_is_less_than_half, side, level=level)
        ends.append(lower_median_bound([value for task in side for unit in task for value in unit], is_less))
    low, high = ends
    return Interval(0.0 if low is None else low, 1.0 if high is None else -high)


def _is_less_than_half(tasks: Sequence[Task], value: float, *, level: float) -> bool:
    shares = [[[float(each <= value) for each in unit] for unit in task] for task in tasks]
    interval = task_mean_interval(shares, level=level)
    return interval is not None and interval.high < 0.5


def task_uplift_interval(
    baseline: Sequence[Task], current: Sequence[Task], *, seed: int, replicates: int = 2000, level: float = 0.95
) -> Interval | None:
    """Interval for how much greater the current median is than the baseline's, as a share of the baseline's.

    Units are drawn again within each task, on each side by itself, as in `uplift_interval`. None where a task has a
    single unit, below 5 units of a side, and where both medians of a draw are 0.

    >>> task = [[0.8]] * 5
    >>> low, high = task_uplift_interval([task], [[[0.9]] * 5], seed=1)
    >>> f"{low:.4f} {high:.4f}"
    '0.1250 0.1250'
    """
    import numpy as np

    upper = upper_tail(level)
    if any(len(task) < 2 for side in (baseline, current) for task in side):
        return None
    if min(sum(map(len, side)) for side in (baseline, current)) < MIN_RESAMPLED_UNITS:
        return None
    chance = np.random.Generator(np.random.PCG64(seed))
    before, after = (_drawn_medians(chance, side, replicates) for side in (baseline, current))
    if ((before == 0) & (after == 0)).any():
        return None
    with np.errstate(divide="ignore"):
        uplifts = np.sort((after - before) / before)
    beyond = int(replicates * (1 - upper))
    return Interval(float(uplifts[beyond]), float(uplifts[replicates - 1 - beyond]))


def _drawn_medians(
    chance: np.random.Generator, tasks: Sequence[Task], replicates: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    import numpy as np

    sizes = [len(task) for task in tasks]
    drawn = [chance.multinomial(size, np.full(size, 1 / size), size=replicates) for size in sizes]
    return PooledValues([unit for task in tasks for unit in task]).medians(np.concatenate(drawn, axis=1))


def task_cost_interval(costs: Sequence[Task], passes: Sequence[Task], *, level: float = 0.95) -> Interval | None:
    """Interval for the cost of a pass, from what each run cost and whether it passed; None if a task has a single unit.

    Fieller's, as `cost_interval` has it, with the variances of stratified totals: Cochran 1977, "Sampling Techniques",
    section 6.11. An end is let out as far as the pass rate lets out its own. Where nothing passed it is a lower bound.
    """
    # halving is exact, and the square of an enormous cost does not fit a float
    scale = math.frexp(max((cost for task in costs for unit in task for cost in unit), default=0.0))[1]
    costs = [[[math.ldexp(cost, -scale) for cost in unit] for unit in task] for task in costs]
    flat_costs, flat_passes = ([math.fsum(unit) for task in side for unit in task] for side in (costs, passes))
    passed = math.fsum(flat_passes)
    runs = sum(len(unit) for task in passes for unit in task)
    if not passed:
        greatest_rate = -math.expm1(math.log1p(-level) / runs)
        return Interval(math.ldexp(math.fsum(flat_costs) / runs / greatest_rate, scale), math.inf)
    if any(len(task) < 2 for task in costs):
        return None
    value = cost_of_pass(flat_costs, [round(each) for each in flat_passes]) or 0.0
    freedom = sum(len(task) - 1 for task in costs)
    squared = student_quantile(freedom, upper_tail(level)) ** 2
    total = math.fsum(flat_costs)
    square = passed**2 - squared * _total_covariance(passes, passes)
    product = total * passed - squared * _total_covariance(costs, passes)
    constant = total**2 - squared * _total_covariance(costs, costs)
    root = math.sqrt(max(product**2 - square * constant, 0.0))
    high = (product + root) / square if square > 0 else math.inf
    low = 0.0 if constant <= 0 else constant / (product + root) if product > 0 else (product - root) / square
    rate = task_mean_interval(passes, level=level)
    if rate is not None:
        low = min(low, value * passed / runs / rate.high)
        high = max(high, value * passed / runs / rate.low if rate.low else math.inf)
    return Interval(math.ldexp(low, scale), math.ldexp(high, scale))


def _total_covariance(one: Sequence[Task], other: Sequence[Task]) -> float:
    """The covariance of two totals, from how far the units' totals lie from the mean of their task."""
    parts = []
    for left, right in zip(one, other, strict=True):
        sums = [[math.fsum(unit) for unit in task] for task in (left, right)]
        means = [math.fsum(each) / len(each) for each in sums]
        units = len(sums[0])
        joint = math.fsum((a - means[0]) * (b - means[1]) for a, b in zip(*sums, strict=True))
        parts.append(joint * units / (units - 1))
    return math.fsum(parts)


def task_difference_interval(
    before: Sequence[Task], after: Sequence[Task], *, are_scores: bool = False, level: float = 0.95
) -> Interval | None:
    """Student's interval for the mean over tasks, each once, of how much a mean differs; None if a task has one unit.

    The degrees of freedom are those of Satterthwaite 1946, "An approximate distribution of estimates of variance
    components", Biometrics Bulletin 2, 110-114. Scores lie in [0, 1], and units that came out alike may hide one that
    would not: each side's variance then counts two more units, half of the range to either side of its mean, as
    Agresti and Caffo 2000, "Simple and effective confidence intervals for proportions and differences of proportions
    result from adding two successes and two failures", The American Statistician 54, 280-288, add them.

    >>> low, high = task_difference_interval([[[1.0], [2.0], [3.0], [2.0]]], [[[2.0], [3.0], [4.0], [3.0]]])
    >>> f"{low:.4f} {high:.4f}"
    '-0.4127 2.4127'
    """
    differences, variances, weighed = [], [], []
    for old, new in zip(before, after, strict=True):
        means = []
        for task in (old, new):
            values = [value for unit in task for value in unit]
            error = standard_error(values, groups=[place for place, unit in enumerate(task) for _ in unit])
            if error is None:
                return None
            means.append(math.fsum(values) / len(values))
            variances.append(error**2)
            weighed.append(error**4 / (len(task) - 1))
        differences.append(means[1] - means[0])
    tasks = len(differences)
    middle, variance = math.fsum(differences) / tasks, math.fsum(variances)
    freedom = math.floor(variance**2 / math.fsum(weighed) + 1e-9) if math.fsum(weighed) else 1
    half = student_quantile(max(freedom, 1), upper_tail(level)) * math.sqrt(variance) / tasks
    if not are_scores:
        return Interval(middle - half, middle + half)
    unseen = math.fsum(0.5 / (sum(map(len, side)) + 2) ** 2 for side in (before, after))
    half = math.hypot(half, NormalDist().inv_cdf(upper_tail(level)) * math.sqrt(unseen))
    return Interval(max(-1.0, middle - half), min(1.0, middle + half))
