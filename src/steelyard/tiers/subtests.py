"""The best subtest of each tier, and how sure that is.

Subtests are variants of a tier: each is run on the same tasks. The best of many looks better than it is, so its score is also
given as others would find it: chosen without one run of each, and scored by that run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from steelyard.records import Record
from steelyard.stats.special import student_quantile
from steelyard.tiers.results import RunFigures

SUBTEST_ERROR_RATE = 0.05
"""The chance that the best subtest of a tier is not among those that could be."""

TaskValues = Mapping[str, Sequence[float]]
"""The values of a subtest's runs, by task."""


class BestSubtest(Record, frozen=True, kw_only=True):
    """The best subtest of one tier of one model."""

    model: str
    tier: str
    subtests: int
    best: str
    by: str
    """What they are ranked by: composite, or pass rate where no run has one."""
    value: float
    """The mean over tasks."""
    held_out: float | None
    """The mean of runs that had no part in choosing; None with a single run of each."""
    could_be: tuple[str, ...]
    """Other subtests that may as well be the best, the best of them first."""


def best_subtests(runs: Sequence[RunFigures]) -> list[BestSubtest]:
    """The best subtest of each tier that has several, in the order of the runs."""
    by = "composite" if any(run.composite is not None for run in runs) else "pass_rate"
    tiers: dict[tuple[str, str], dict[str, dict[str, list[tuple[int, float]]]]] = {}
    for run in runs:
        value = run.composite if by == "composite" else run.pass_rate
        if value is not None:
            of_tier = tiers.setdefault((run.model, run.tier), {})
            of_tier.setdefault(run.case, {}).setdefault(run.experiment, []).append((run.number, value))
    return [_best(model, tier, of_tier, by) for (model, tier), of_tier in tiers.items() if len(of_tier) > 1]


def _best(model: str, tier: str, subtests: Mapping[str, Mapping[str, list[tuple[int, float]]]], by: str) -> BestSubtest:
    values = {
        name: {task: [value for _, value in of_task] for task, of_task in tasks.items()}
        for name, tasks in subtests.items()
    }
    # one that lacks a task is not compared on the others alone
    tasks = {task for of_subtest in values.values() for task in of_subtest}
    whole = {name: of_subtest for name, of_subtest in values.items() if of_subtest.keys() == tasks} or values
    ranked = sorted(whole, key=lambda name: -_mean(whole[name]))
    best, *others = ranked
    level = 1 - SUBTEST_ERROR_RATE / max(1, len(others))
    return BestSubtest(
        model=model,
        tier=tier,
        subtests=len(subtests),
        best=best,
        by=by.replace("_", " "),
        value=_mean(whole[best]),
        held_out=_held_out({name: subtests[name] for name in ranked}),
        could_be=tuple(name for name in others if not _is_surely_better(whole[best], whole[name], level)),
    )


def _mean(tasks: TaskValues) -> float:
    return fmean(fmean(values) for values in tasks.values())


def _is_surely_better(best: TaskValues, other: TaskValues, level: float) -> bool:
    """Whether a one-sided test over runs within tasks refutes that the other is as good (Welch 1947, by task)."""
    terms = []
    for tasks in (best, other):
        for values in tasks.values():
            if len(values) < 2:
                return False
            terms.append((variance(values) / len(values), len(values) - 1))
    spread = math.fsum(term for term, _ in terms)
    gain = _mean(best) - _mean(other)
    if not spread:
        # equal runs say nothing about how much others would differ
        return False
    # rounded down, which is the careful side
    degrees = max(1, math.floor(spread**2 / math.fsum(term**2 / df for term, df in terms)))
    # of the mean over tasks; both sides have the same tasks
    return gain > student_quantile(degrees, level) * math.sqrt(spread) / len(best)


def _held_out(subtests: Mapping[str, Mapping[str, list[tuple[int, float]]]]) -> float | None:
    """What the chosen subtest scores in runs that had no part in the choice, each run number left out in turn."""
    numbers = sorted({number for tasks in subtests.values() for runs in tasks.values() for number, _ in runs})
    found = []
    for left_out in numbers:
        kept, tested = {}, {}
        for name, tasks in subtests.items():
            rest = {task: [value for number, value in runs if number != left_out] for task, runs in tasks.items()}
            out = [value for runs in tasks.values() for number, value in runs if number == left_out]
            if out and all(rest.values()):
                kept[name], tested[name] = _mean(rest), fmean(out)
        if len(kept) > 1:
            found.append(tested[max(kept, key=lambda name: kept[name])])
    return fmean(found) if found else None
