"""What the suites of a run score, one by one and together."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.estimates import Estimate, mean
from steelyard.analysis.suites import (
    accuracy,
    case_mean,
    check_suite_rule,
    credit,
    mean_latency_score,
    ordered_class_counts,
    overall,
)
from steelyard.records import Record, SuiteRule
from steelyard.stats.intervals import Stratum, mean_interval, stratified_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from steelyard.stats.intervals import Interval


class SuiteScore(Record, frozen=True, kw_only=True):
    """One suite under one model."""

    suite: str
    cases: int
    attempts: int
    """Attempts that were judged."""
    missing: int
    """Failures of ours and attempts without a verdict: they are in no denominator."""
    score: Estimate
    """The mean over cases of the share of their attempts that passed."""
    classes: dict[str, int]
    """How many of the judged attempts are of each class that occurs, `pass` first."""
    penalised: Estimate | None = None
    """The same mean where a failure costs what its class costs; None where no penalties are given."""
    latency: Estimate
    """The mean over cases of the latency scores of their replies; no value where no latency is known."""
    agreement: Estimate | None = None
    """How often attempts came out as the author of their case expects: the mean over the cases that have an expectation.

    `fail` is met by every class but `pass`. None where no case has an expectation.
    """


class SuiteScores(Record, frozen=True, kw_only=True):
    """All suites under one model; the figures over all suites count each suite once, unless they say otherwise."""

    suites: tuple[SuiteScore, ...]
    """Sorted by name."""
    overall: Estimate
    """The mean of the suite scores; a suite without a score is left out."""
    micro: Estimate
    """The mean over all cases of all suites, where a large suite counts for more."""
    weighted: Estimate | None = None
    """The mean of the suite scores by weight; None where no weights are given."""
    penalised: Estimate | None = None
    latency: Estimate
    agreement: Estimate | None = None


class SuiteCase(NamedTuple):
    """What is to be known of one case of a suite."""

    suite: str
    group: str
    """Cases of one group vary together; one without a group has one of its own."""
    expected: str
    """How its author expects attempts to come out, `pass` or `fail`; empty where nothing is expected."""
    classes: Mapping[str, int]
    """How many judged attempts are of each class."""
    missing: int
    waits: Sequence[float]
    """Seconds until each reply whose latency is known; infinity for one that did not come."""


def suite_scores(cases: Iterable[SuiteCase], rule: SuiteRule, *, names: Iterable[str] = ()) -> SuiteScores:
    """What the suites of some cases score by a rule; `names` are suites that are listed even without a case."""
    check_suite_rule(rule)
    by_name: dict[str, list[SuiteCase]] = {name: [] for name in names}
    for case in cases:
        by_name.setdefault(case.suite, []).append(case)
    suites = [(name, _SuiteValues(by_name[name], rule)) for name in sorted(by_name)]
    parts = [suite for _, suite in suites]
    scored = [(name, suite.accuracy) for name, suite in suites]
    return SuiteScores(
        suites=tuple(_score(name, suite, rule) for name, suite in suites),
        overall=_macro(scored),
        micro=_CaseValues.joined([suite.accuracy for suite in parts]).estimate,
        weighted=_macro(scored, rule.weights) if rule.weights else None,
        penalised=_macro([(name, suite.penalised) for name, suite in suites]) if rule.penalties else None,
        latency=_macro([(name, suite.latency) for name, suite in suites]),
        agreement=_macro([(name, suite.agreement) for name, suite in suites])
        if any(suite.agreement.values for suite in parts)
        else None,
    )


def _score(name: str, suite: _SuiteValues, rule: SuiteRule) -> SuiteScore:
    classes: Counter[str] = Counter()
    for case in suite.cases:
        classes.update(case.classes)
    return SuiteScore(
        suite=name,
        cases=len(suite.cases),
        attempts=classes.total(),
        missing=sum(case.missing for case in suite.cases),
        score=suite.accuracy.estimate,
        classes=ordered_class_counts(classes),
        penalised=suite.penalised.estimate if rule.penalties else None,
        latency=suite.latency.estimate,
        agreement=suite.agreement.estimate if suite.agreement.values else None,
    )


class _SuiteValues:
    """The cases of a suite, with one value for each figure."""

    def __init__(self, cases: Sequence[SuiteCase], rule: SuiteRule) -> None:
        self.cases = cases
        self.accuracy = _attempt_values(cases, accuracy)
        self.penalised = _attempt_values(
            cases if rule.penalties else (), lambda primary: credit(primary, rule.penalties)
        )
        self.agreement = _CaseValues.joined(
            [
                _attempt_values([case for case in cases if case.expected == "pass"], accuracy),
                _attempt_values(
                    [case for case in cases if case.expected == "fail"], lambda primary: 1 - accuracy(primary)
                ),
            ]
        )
        self.latency = _latency_values(cases, rule)


def _attempt_values(cases: Iterable[SuiteCase], of: Callable[[str], float]) -> _CaseValues:
    """The mean over the judged attempts of each case that has some."""
    cases = list(cases)
    worth = {primary: of(primary) for case in cases for primary in case.classes}
    means = [(case, value) for case in cases if (value := case_mean(case.classes, worth.__getitem__)) is not None]
    attempts = sum(sum(case.classes.values()) for case, _ in means)
    return _CaseValues([value for _, value in means], [case.group for case, _ in means], attempts)


def _latency_values(cases: Iterable[SuiteCase], rule: SuiteRule) -> _CaseValues:
    """The mean latency score over the replies to each case that has some."""
    target, limit = rule.latency_target, rule.latency_limit
    scores = [(case, mean_latency_score(case.waits, target=target, limit=limit)) for case in cases]
    means = [(case, value) for case, value in scores if value is not None]
    attempts = sum(len(case.waits) for case, _ in means)
    return _CaseValues([value for _, value in means], [case.group for case, _ in means], attempts)


class _CaseValues:
    """One value in [0, 1] for each of some cases."""

    def __init__(self, values: Sequence[float], groups: Sequence[str], attempts: int) -> None:
        self.values = values
        self.groups = groups
        self.attempts = attempts
        grouped = len(set(groups)) < len(groups)
        tally = Counter(values)
        # many cases share few values, so counting them first is much quicker; only groups forbid it
        self._distinct = values if grouped else sorted(tally)
        self._counts = None if grouped else [tally[value] for value in self._distinct]
        self._groups = groups if grouped else None

    @classmethod
    def joined(cls, parts: Sequence[_CaseValues]) -> _CaseValues:
        """The same cases as one."""
        values = [value for part in parts for value in part.values]
        groups = [group for part in parts for group in part.groups]
        return cls(values, groups, sum(part.attempts for part in parts))

    @cached_property
    def estimate(self) -> Estimate:
        """The mean over cases like these."""
        return mean(self._distinct, self.attempts, counts=self._counts, groups=self._groups)

    def interval(self, level: float) -> Interval | None:
        """The interval of that mean at any level."""
        return mean_interval(
            self._distinct, attempts=self.attempts, counts=self._counts, groups=self._groups, level=level
        )


def _macro(suites: Sequence[tuple[str, _CaseValues]], weights: Mapping[str, float] | None = None) -> Estimate:
    """The mean over suites; their cases are what varies, not the suites."""
    weights = weights or {}
    scored = [(name, part, suite_mean) for name, part in suites if (suite_mean := part.estimate.value) is not None]
    strata = [Stratum(suite_mean, part.interval, weights.get(name, 1.0)) for name, part, suite_mean in scored]
    interval = stratified_interval(strata)
    return Estimate(
        value=overall({name: suite_mean for name, _, suite_mean in scored}, weights=weights),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cases=sum(len(part.values) for _, part, _ in scored),
        attempts=sum(part.attempts for _, part, _ in scored),
    )
