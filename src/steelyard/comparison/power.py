"""What it takes to see a mean drop, and to rule one out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from steelyard.comparison.exact_tests import PairedCase
from steelyard.comparison.gate import ModelDecision, decide
from steelyard.comparison.sides import PairedModel
from steelyard.records import Record
from steelyard.stats.paired import PairedCaseCounts, fisher_worse
from steelyard.stats.power import (
    BaselineRate,
    alarm_chance,
    all_clear_chance,
    baseline_rate,
    least_sufficient_attempts,
    rates_after_drop,
    typical_passes,
)
from steelyard.stats.uneven_drops import naming_chance, rates_after_uneven_drop

OUTLOOK_ATTEMPTS_PER_CASE = (1, 3, 5, 10, 20)
"""The numbers of attempts per case that an outlook covers."""
MAX_PLANNED_ATTEMPTS_PER_CASE = 1000
"""More attempts at each case than this are not advice."""
DETECTABLE_DROP_PRECISION = 1e-6
"""How well the smallest drop that is seen is known."""


class SingleRoundCost(Record, frozen=True, kw_only=True):
    """One attempt at each case of a plan."""

    cost_usd: float | None = None
    """None where a price is not known."""
    at_most: bool = False
    """Whether this is a bound from the price list, rather than what such attempts have cost."""


class RequiredAttempts(Record, frozen=True, kw_only=True):
    """Attempts that are enough."""

    current: int
    """At each case of the current side."""
    baseline: int = 0
    """Those that each case of the baseline must have then; 0 if it may stay as it is."""
    attempts: int
    """All attempts to ask for, of both sides together."""
    cost_usd: float | None = None


class DetectionOutlook(Record, frozen=True, kw_only=True):
    """What a number of attempts would see."""

    current: int
    """At each case of the current side; the baseline stays as it is."""
    attempts: int
    cost_usd: float | None = None
    level: float
    """The level at which the suite as a whole is tested then."""
    drop: float | None = None
    """The smallest mean drop that is seen with the power asked for; None if even a drop to 0 would not be."""
    seen: float
    """How likely the drop that is planned for is seen."""
    cleared: float
    """How likely an unchanged run is shown not to have dropped by as much."""


class ModelPlan(Record, frozen=True, kw_only=True):
    """What it takes with one model."""

    model: str
    cases: int
    fewest: int
    """The smallest number of the baseline's attempts at a case."""
    most: int
    rate: float
    """The mean pass rate of the baseline."""
    once: SingleRoundCost
    seen: RequiredAttempts | None = None
    """What sees the drop with the baseline as it is; None if no number does."""
    seen_with_more: RequiredAttempts | None = None
    """The same with more attempts on both sides, where that takes fewer of them."""
    seen_in_few: RequiredAttempts | None = None
    """What sees the drop where the best cases lose half of their rate, and the others nothing."""
    seen_in_few_with_more: RequiredAttempts | None = None
    cleared: RequiredAttempts | None = None
    """What probably shows of an unchanged run that it did not drop by as much."""
    cleared_with_more: RequiredAttempts | None = None
    outlook: tuple[DetectionOutlook, ...] = ()


class ComparisonPlan(Record, frozen=True, kw_only=True):
    """What it takes to compare an eval set with a baseline."""

    baseline: str
    detect: float
    """The mean drop to detect, or to rule out."""
    power: float
    """The chance to detect it."""
    alpha: float
    """How likely a false alarm may be, over all looks at the run."""
    look_alpha: float
    """What the first look may spend of it."""
    models: tuple[ModelPlan, ...]
    too_low: tuple[str, ...] = ()
    """Models that pass too rarely to drop that far; they are left out of the plan."""
    new_cases: tuple[str, ...] = ()
    """The baseline does not know them."""
    removed_cases: tuple[str, ...] = ()
    tests_changed: tuple[str, ...] = ()
    """The baseline judged them by other tests."""
    unjudged: tuple[str, ...] = ()
    """The baseline has no judged attempt at them."""


class _ModelPlanner(NamedTuple):
    """One model's cases as the baseline lets one expect them, and how they will be tested."""

    model: PairedModel
    levels: Callable[[int, int], Mapping[str, tuple[float, float]]]
    """Up to which p-value the suite of each model and a case of it are worse, by the attempts per case, current and of the baseline."""
    detect: float
    power: float
    alpha: float
    once: SingleRoundCost

    def seen(self, current: int, baseline: int = 0, *, drop: float | None = None, alpha: float | None = None) -> float:
        """How likely the drop is seen with `current` attempts per case and at least `baseline` of the baseline."""
        level = self.levels(current, baseline)[self.model.name][0] if alpha is None else alpha
        return alarm_chance(self.cases(baseline), self.detect if drop is None else drop, current, alpha=level)

    def cleared(self, current: int, baseline: int = 0) -> float:
        """How likely an unchanged run is cleared."""
        return all_clear_chance(self.cases(baseline), self.detect, current, alpha=self.alpha)

    def cases(self, baseline: int) -> list[BaselineRate]:
        """What to expect of each case if the baseline had at least this many attempts."""
        known = (baseline_rate(old.attempts, old.passes) for old, _ in self.model.cases)
        return [case if case.attempts >= baseline else case._replace(attempts=baseline) for case in known]

    def sees(self, current: int, baseline: int) -> bool:
        # a level takes time to find: it is at most alpha, so what is not enough there need not be tried
        return all(self.seen(current, baseline, alpha=level) >= self.power for level in (self.alpha, None))

    def sees_in_few(self, current: int, baseline: int) -> bool:
        """Whether a drop of few cases is seen: in the mean, or because a case is named."""
        cases = self.cases(baseline)
        after = rates_after_uneven_drop(cases, self.detect)
        known = [
            (case.attempts, round(case.attempts * old.passes / old.attempts))
            for case, (old, _) in zip(cases, self.model.cases, strict=True)
        ]
        suite, named = self.levels(current, baseline)[self.model.name]
        missed = 1 - alarm_chance(cases, after, current, alpha=suite)
        return 1 - missed * (1 - naming_chance(known, after, current, level=named)) >= self.power

    def clears(self, current: int, baseline: int) -> bool:
        return self.cleared(current, baseline) >= self.power

    def needs(self, suffices: Callable[[int, int], bool]) -> tuple[RequiredAttempts | None, RequiredAttempts | None]:
        """What is enough with the baseline as it is, and with more attempts in it if that takes fewer in all."""
        alone = least_sufficient_attempts(lambda number: suffices(number, 0), most=MAX_PLANNED_ATTEMPTS_PER_CASE)
        both = least_sufficient_attempts(lambda number: suffices(number, number), most=MAX_PLANNED_ATTEMPTS_PER_CASE)
        as_it_is = self.need(alone, 0) if alone else None
        with_more = self.need(both, both) if both else None
        if as_it_is and with_more and with_more.attempts >= as_it_is.attempts:
            with_more = None
        return as_it_is, with_more

    def need(self, current: int, baseline: int) -> RequiredAttempts:
        """The attempts that these numbers per case require, and what they cost."""
        cases = self.model.cases
        attempts = current * len(cases) + sum(max(0, baseline - old.attempts) for old, _ in cases)
        return RequiredAttempts(current=current, baseline=baseline, attempts=attempts, cost_usd=self.cost(attempts))

    def cost(self, attempts: int) -> float | None:
        """What this many attempts cost, spread evenly over the cases."""
        return None if self.once.cost_usd is None else self.once.cost_usd * attempts / len(self.model.cases)

    def outlook(self, current: int) -> DetectionOutlook:
        """What this many attempts per case would see."""
        attempts = current * len(self.model.cases)
        return DetectionOutlook(
            current=current,
            attempts=attempts,
            cost_usd=self.cost(attempts),
            level=self.levels(current, 0)[self.model.name][0],
            drop=self.smallest_drop(current),
            seen=self.seen(current),
            cleared=self.cleared(current),
        )

    def smallest_drop(self, current: int) -> float | None:
        """The smallest mean drop that this many attempts per case see; None if not even a drop to 0 is seen."""
        low, high = 0.0, math.fsum(case.rate for case in self.cases(0)) / len(self.model.cases)
        if self.seen(current, drop=high) < self.power:
            return None
        while high - low > DETECTABLE_DROP_PRECISION:
            middle = (low + high) / 2
            low, high = (low, middle) if self.seen(current, drop=middle) >= self.power else (middle, high)
        return high

    def plan(self) -> ModelPlan:
        seen, seen_with_more = self.needs(self.sees)
        in_few, in_few_with_more = self.needs(self.sees_in_few)
        cleared, cleared_with_more = self.needs(self.clears)
        known = [old for old, _ in self.model.cases]
        return ModelPlan(
            model=self.model.name,
            cases=len(known),
            fewest=min(old.attempts for old in known),
            most=max(old.attempts for old in known),
            rate=mean_rate(self.model),
            once=self.once,
            seen=seen,
            seen_with_more=seen_with_more,
            seen_in_few=in_few,
            seen_in_few_with_more=in_few_with_more,
            cleared=cleared,
            cleared_with_more=cleared_with_more,
            outlook=tuple(map(self.outlook, OUTLOOK_ATTEMPTS_PER_CASE)),
        )


def model_plans(
    models: Sequence[PairedModel], *, detect: float, power: float, alpha: float, once: Mapping[str, SingleRoundCost]
) -> tuple[ModelPlan, ...]:
    """What each of these models needs to detect a drop by the tests of `decide` at this alpha.

    Their cases are paired with a current side that was not tried yet; of the baseline every case has an attempt. The
    drop is taken to be of the same size in all cases, and never below 0.
    """

    @cache
    def levels(current: int, baseline: int) -> Mapping[str, tuple[float, float]]:
        # how alpha is shared out depends on what will be seen, so the gate is asked about what is expected
        expected = {model.name: _expected_cases(model, detect, current, baseline) for model in models}
        decision = decide(expected, alpha=alpha, margin=detect, threshold=detect)
        return {each.model: (each.overall_level, _naming_level(each)) for each in decision.models}

    return tuple(_ModelPlanner(model, levels, detect, power, alpha, once[model.name]).plan() for model in models)


def _naming_level(model: ModelDecision) -> float:
    """Up to which p-value a case would have been named; 0 if none could."""
    broken = model.smallest_break
    if broken is None:
        return 0.0
    before = broken.baseline_attempts
    return fisher_worse(PairedCaseCounts(before, before, broken.current_attempts, broken.current_passes))


def mean_rate(model: PairedModel) -> float:
    """The mean pass rate of the baseline."""
    return math.fsum(old.passes / old.attempts for old, _ in model.cases) / len(model.cases)


def _expected_cases(model: PairedModel, detect: float, current: int, baseline: int) -> list[PairedCase]:
    """An outcome to expect after the drop."""
    rates = rates_after_drop([baseline_rate(old.attempts, old.passes) for old, _ in model.cases], detect)
    return [
        PairedCase(
            case=new.case,
            baseline_attempts=(before := max(old.attempts, baseline)),
            baseline_passes=round(before * old.passes / old.attempts),
            current_attempts=current,
            current_passes=passes,
            critical=new.critical,
        )
        for (old, new), passes in zip(model.cases, typical_passes(rates, current), strict=True)
    ]
