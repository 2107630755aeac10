"""What changed between two runs by the plain rule: a case whose mean score dropped by more than a threshold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.analysis.case_means import shared_groups
from steelyard.analysis.suites import ordered_class_counts
from steelyard.comparison.sides import (
    PairedModel,
    Side,
    Trials,
    pair_group,
    pair_sides,
    replies_shared_sentence,
    rules_changed_sentence,
)
from steelyard.errors import InputError, NotComparableError
from steelyard.records import Record
from steelyard.stats.paired import PairedCaseCounts, PairedCaseScores
from steelyard.stats.power import expected_flags
from steelyard.stats.stratified import StratumDifferences, stratified_difference_interval

SCORE_CHANGE_TOLERANCE = 1e-9
"""A drop of exactly the threshold is not a regression, whatever its rounding."""


class CaseScoreChange(Record, frozen=True, kw_only=True):
    """One case under one model, before and after."""

    case_id: str
    model: str
    baseline_score: float
    current_score: float
    delta: float
    """Current minus baseline."""


class SuiteChange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One suite under one model, before and after, on the cases that both sides judged."""

    suite: str
    model: str
    cases: int
    baseline_score: float
    """The mean over cases of the share of their attempts that passed."""
    current_score: float
    delta: float
    """Current minus baseline."""
    low: float | None
    high: float | None
    """The 95% interval of the difference over cases like these; None below 2 cases."""
    baseline_classes: dict[str, int]
    """How many attempts were of each class; empty if a side does not say."""
    current_classes: dict[str, int]


class OverallChange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """All suites under one model, before and after: the means of their scores."""

    model: str
    suites: int
    baseline_score: float
    current_score: float
    delta: float
    low: float | None
    high: float | None


class ThresholdComparison(Record, frozen=True, kw_only=True, omit_defaults=False):
    """All that changed between two sides, by a threshold on mean scores."""

    baseline: str
    current: str
    rule: str
    threshold: float
    regressions: tuple[CaseScoreChange, ...]
    """The worst first."""
    improvements: tuple[CaseScoreChange, ...]
    """The best first."""
    unchanged: int
    """Cases, once per model, whose score moved by no more than the threshold."""
    new_cases: tuple[str, ...]
    removed_cases: tuple[str, ...]
    tests_changed: tuple[str, ...]
    """Cases that are judged by other tests now: they are not compared."""
    rules_changed: tuple[str, ...]
    """Cases that our verifiers judge by other rules now: they are not compared."""
    replies_shared: tuple[str, ...]
    """Cases at which one side took replies of the other from the reply cache: they are not compared."""
    unscored: tuple[str, ...]
    """Cases that one of the sides has no score for."""
    new_models: tuple[str, ...]
    removed_models: tuple[str, ...]
    compared: int
    """Cases that were compared, once per model."""
    expected_regressions: float
    """How many regressions noise alone would raise, if nothing had changed."""
    suites: tuple[SuiteChange, ...] = ()
    """What became of the suites, where cases belong to some: by model, then by name."""
    overall: tuple[OverallChange, ...] = ()
    """What became of all suites together, by model."""


def compare(baseline: Side, current: Side, *, threshold: float = 0.05) -> ThresholdComparison:
    """What changed; cases pair by id and tests, models by name, or as they are where each side has one."""
    if not 0 <= threshold < 1:
        raise InputError(f"the threshold must be between 0 and 1, not {threshold}")
    if baseline.rule != current.rule:
        raise InputError(
            f'{baseline.name} is scored by rule "{baseline.rule}" and {current.name} by "{current.rule}"; '
            "name one with --rule"
        )
    pairing = pair_sides(baseline, current)
    unscored: list[str] = []
    changes: list[CaseScoreChange] = []
    alike: Counter[PairedCaseCounts | PairedCaseScores] = Counter()
    for model in pairing.models:
        for old, new in model.cases:
            if old.score is None or new.score is None:
                unscored.append(pairing.label(new.case, model.name))
                continue
            alike[PairedCaseScores(old.every_score, new.every_score)] += 1
            change = _change(model.name, old, new)
            if abs(change.delta) > threshold + SCORE_CHANGE_TOLERANCE:
                changes.append(change)
    compared = alike.total()
    if not compared and pairing.rules_changed:
        raise NotComparableError(rules_changed_sentence(baseline.name, pairing.rules_changed))
    if not compared and pairing.replies_shared:
        raise NotComparableError(replies_shared_sentence(baseline.name, pairing.replies_shared))
    suites = [(model.name, _suites(model)) for model in pairing.models]
    return ThresholdComparison(
        baseline=baseline.name,
        current=current.name,
        rule=current.rule,
        threshold=threshold,
        regressions=tuple(sorted((one for one in changes if one.delta < 0), key=_worst_first)),
        improvements=tuple(sorted((one for one in changes if one.delta > 0), key=_best_first)),
        unchanged=compared - len(changes),
        new_cases=pairing.new_cases,
        removed_cases=pairing.removed_cases,
        tests_changed=pairing.tests_changed,
        rules_changed=pairing.rules_changed,
        replies_shared=pairing.replies_shared,
        unscored=tuple(unscored),
        new_models=pairing.new_models,
        removed_models=pairing.removed_models,
        compared=compared,
        expected_regressions=expected_flags(alike, threshold),
        suites=tuple(_suite_change(name, suite) for name, found in suites for suite in found),
        overall=tuple(_overall_change(name, found) for name, found in suites if found),
    )


def _change(model: str, old: Trials, new: Trials) -> CaseScoreChange:
    before, after = old.score or 0.0, new.score or 0.0
    return CaseScoreChange(
        case_id=new.case, model=model, baseline_score=before, current_score=after, delta=after - before
    )


def _worst_first(change: CaseScoreChange) -> tuple[float, str, str]:
    return change.delta, change.case_id, change.model


def _best_first(change: CaseScoreChange) -> tuple[float, str, str]:
    return -change.delta, change.case_id, change.model


class _PairedSuite(NamedTuple):
    """The cases of a suite that both sides judged."""

    name: str
    cases: list[tuple[Trials, Trials]]

    @property
    def before(self) -> float:
        return math.fsum(old.passes / old.attempts for old, _ in self.cases) / len(self.cases)

    @property
    def after(self) -> float:
        return math.fsum(new.passes / new.attempts for _, new in self.cases) / len(self.cases)

    @property
    def has_groups(self) -> bool:
        return any(old.group or new.group for old, new in self.cases)

    @property
    def differences(self) -> StratumDifferences:
        inverse = math.fsum(1 / old.attempts + 1 / new.attempts for old, new in self.cases)
        return StratumDifferences(
            [new.passes / new.attempts - old.passes / old.attempts for old, new in self.cases],
            2 * len(self.cases) / inverse,
            shared_groups([pair_group(old, new) for old, new in self.cases]) if self.has_groups else None,
        )


def _suites(model: PairedModel) -> list[_PairedSuite]:
    """The suites of a model, sorted; what a side does not say of a case, the other may."""
    found: dict[str, list[tuple[Trials, Trials]]] = {}
    for pair in model.cases:
        old, new = pair
        suite = new.suite or old.suite
        if suite and old.attempts and new.attempts:
            found.setdefault(suite, []).append(pair)
    return [_PairedSuite(name, found[name]) for name in sorted(found)]


def _suite_change(model: str, suite: _PairedSuite) -> SuiteChange:
    interval = stratified_difference_interval([suite.differences])
    return SuiteChange(
        suite=suite.name,
        model=model,
        cases=len(suite.cases),
        baseline_score=suite.before,
        current_score=suite.after,
        delta=suite.after - suite.before,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        baseline_classes=_classes(old for old, _ in suite.cases),
        current_classes=_classes(new for _, new in suite.cases),
    )


def _overall_change(model: str, suites: Sequence[_PairedSuite]) -> OverallChange:
    """The suites count once each, and their cases are what varies."""
    before = math.fsum(suite.before for suite in suites) / len(suites)
    after = math.fsum(suite.after for suite in suites) / len(suites)
    interval = stratified_difference_interval([suite.differences for suite in suites])
    return OverallChange(
        model=model,
        suites=len(suites),
        baseline_score=before,
        current_score=after,
        delta=after - before,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def _classes(trials: Iterable[Trials]) -> dict[str, int]:
    """How many attempts are of each class; nothing if some trials do not say."""
    counts: Counter[str] = Counter()
    for each in trials:
        if sum(count for _, count in each.classes) != each.attempts:
            return {}
        counts.update(dict(each.classes))
    return ordered_class_counts(counts)
