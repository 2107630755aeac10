"""The exact tests behind a gate: of the suite, of every case, and of the critical ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from steelyard.analysis.case_means import shared_groups
from steelyard.analysis.measure import ComparedMeasure
from steelyard.comparison.sides import PairedCounts
from steelyard.records import Record
from steelyard.stats.multiplicity import holm
from steelyard.stats.paired import (
    PairedCaseCounts,
    PairedCaseScores,
    SmallestPDistribution,
    fisher_worse,
    scores_worse,
    smallest_p_distribution,
    stratified_worse,
)
from steelyard.stats.power import CaseEvidence, evidence, mean_drop_p

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value = TypeVar("Value")
CasesRule = Literal["fail", "warn", "off"]
"""What single cases that got worse mean: a failed gate, a warning, or nothing."""

DECISION_TOLERANCE = 1e-9
"""The rounding error that a sum of floats may have."""
MIN_ATTEMPTS_TO_NAME_CASE = 3
"""With fewer attempts than this on either side a case is not named."""
SCORE_PERMUTATIONS = 10_000


class PairedCase(Record, frozen=True, kw_only=True, gc=False):
    """One case that both sides tried, with the same tests."""

    case: str
    baseline_attempts: int
    baseline_passes: int
    current_attempts: int
    current_passes: int
    critical: bool = False
    """This case alone may fail the gate; see `CriticalCase`."""
    group: str = ""
    """Cases of one group may change together; empty for a case of its own."""
    baseline_scores: tuple[float, ...] = ()
    """One score in [0, 1] per attempt, where scores are compared."""
    current_scores: tuple[float, ...] = ()
    further_attempts: int | None = None
    """Attempts beyond those that all cases got, because this one looked worse; they count only where it is named.

    None while more may follow, 0 where all that were planned are among the others.
    """
    further_passes: int = 0
    further_scores: tuple[float, ...] = ()
    """Their scores, where scores are compared."""


class CriticalCase(Record, frozen=True, kw_only=True):
    """A case that must not break, even if the others improve.

    It is held to k of n: given the baseline's passes, fewer than k current ones have a one-sided Fisher p-value of at
    most half of alpha (over the number of models), adjusted by Holm for the critical cases of the model. The k shown is
    the one that holds given what the other critical cases did.
    """

    case: str
    passes: int
    attempts: int
    needed: int | None
    """k: with fewer passes it is broken; None when even no pass at all could be chance."""
    p: float
    p_adjusted: float
    broken: bool


class CaseKind(NamedTuple):
    """All that is compared of a case; many cases are alike in it."""

    counts: PairedCaseCounts
    scores: PairedCaseScores | None
    """Where scores are compared."""
    further_attempts: int | None
    further_passes: int
    further_scores: tuple[float, ...] = ()

    @property
    def data(self) -> PairedCaseCounts | PairedCaseScores:
        return self.scores or self.counts

    @property
    def can_be_named(self) -> bool:
        return min(self.counts.baseline_attempts, self.counts.current_attempts) >= MIN_ATTEMPTS_TO_NAME_CASE

    @property
    def with_further(self) -> PairedCaseCounts:
        """The figures over all attempts, including those that only some cases got."""
        before, passes_before, after, passes_after = self.counts
        return PairedCaseCounts(
            before, passes_before, after + (self.further_attempts or 0), passes_after + self.further_passes
        )

    @property
    def current_with_further(self) -> float:
        """What the current side scored over all attempts, including those that only some cases got."""
        if self.scores is not None:
            every = self.scores.current + self.further_scores
            return math.fsum(every) / len(every)
        return self.with_further.current_passes / self.with_further.current_attempts

    @property
    def p_with_further(self) -> float:
        """The p-value of the case over all attempts."""
        if self.scores is not None:
            whole = PairedCaseScores(self.scores.baseline, self.scores.current + self.further_scores)
            return scores_worse([whole], seed=0, replicates=1).cases[0]
        return fisher_worse(self.with_further)


class PairedModelCases(NamedTuple):
    """The cases of one model, sorted by name."""

    names: Sequence[str]
    critical: Sequence[int]
    """The places of those that must not break."""
    kinds: Sequence[CaseKind]
    """In ascending order."""
    sizes: Sequence[int]
    """How many cases are of each kind."""
    of: NDArray[np.int64]
    """The kind of each case, by its place among them."""
    groups: Sequence[str] | None = None
    """The group of each case; None if no two share one."""

    @property
    def counts(self) -> Counter[PairedCaseCounts]:
        """How many cases have each."""
        return summed_counts((kind.counts, size) for kind, size in zip(self.kinds, self.sizes, strict=True))

    def each(self, values: Sequence[Value]) -> list[Value]:
        """A value for every case from one for every kind."""
        return [values[kind] for kind in self.of.tolist()]


class ModelTests(NamedTuple):
    """The exact tests of one model."""

    overall: float
    kinds: list[float]
    """The p-value of a case of each kind."""
    adjusted: list[float | None]
    smallest: SmallestPDistribution
    """Over the cases that can be named."""
    exact: bool


class ErrorLevels(NamedTuple):
    """How the error rate of one model is shared out between its tests."""

    critical: float
    case: float
    overall: float


class TestedModel(NamedTuple):
    """One model and what its tests found."""

    name: str
    cases: PairedModelCases
    known: Sequence[CaseEvidence]
    """What is known of a case of each kind."""
    tests: ModelTests
    levels: ErrorLevels
    critical: tuple[CriticalCase, ...]
    final: Sequence[float | None]
    """The p-value of each kind of case whose attempts are all in, over all of them, adjusted for the number of cases."""
    can_cases_fail: bool
    """Whether cases that got worse are an alarm, so that their test shares the error rate."""

    @property
    def evidence(self) -> Counter[CaseEvidence]:
        """How many cases have each."""
        return summed_counts(zip(self.known, self.cases.sizes, strict=True))

    @property
    def p(self) -> float:
        """One p-value for all tests that can raise an alarm: Bonferroni's, with half of the weight on critical cases where there are any."""
        least = min(self.p_suite, self.p_worst) if self.can_cases_fail else self.p_suite
        critical = (2 * each.p_adjusted for each in self.critical)
        return min(1.0, self.tests_sharing * least, *critical)

    @property
    def tests_sharing(self) -> int:
        """By how much the p-values of the suite and of its worst case are multiplied."""
        return (2 if self.can_cases_fail else 1) * (2 if self.critical else 1)

    @property
    def p_suite(self) -> float:
        """That the suite looks as bad when nothing changed, or when cases changed but not their mean: the larger of both."""
        return max(self.tests.overall, mean_drop_p(self.evidence))

    @property
    def p_worst(self) -> float:
        """The adjusted p-value of the worst case; 1 where none can be named."""
        return min((p for p in self.tests.adjusted if p is not None), default=1.0)

    @property
    def is_at_floor(self) -> bool:
        """Whether both sides are at 0 everywhere: nothing can have got worse, so nothing is known to be as good."""
        return not any(each.baseline or each.current for each in self.known)

    @property
    def broken(self) -> bool:
        """Whether a critical case broke."""
        return any(each.broken for each in self.critical)


def tested_model(
    name: str,
    given: Sequence[PairedCase] | PairedCounts,
    *,
    alpha: float,
    models: int,
    on: ComparedMeasure,
    seed: int,
    can_cases_fail: bool,
) -> TestedModel:
    """One model and what its tests found; `models` says how many share alpha."""
    cases = _from_counts(name, given, on) if isinstance(given, PairedCounts) else _from_cases(name, given, on)
    tests = _tests(cases, on, seed)
    levels = _levels(cases, tests.smallest, alpha, models, can_cases_fail=can_cases_fail)
    critical = _critical(cases, levels.critical)
    final = [_final_p_value(kind, len(cases.names) * models) for kind in cases.kinds]
    known = [evidence(kind.data) for kind in cases.kinds]
    return TestedModel(name, cases, known, tests, levels, critical, final, can_cases_fail)


def _from_cases(model: str, given: Sequence[PairedCase], on: ComparedMeasure) -> PairedModelCases:
    import numpy as np

    cases = sorted(given, key=lambda each: each.case)
    _check_cases(model, cases, on)
    # many cases are alike: only the number of its kind is kept of each
    numbers: dict[CaseKind, int] = {}
    of = np.fromiter((numbers.setdefault(_kind(each, on), len(numbers)) for each in cases), np.int64, len(cases))
    kinds = sorted(numbers, key=_order)
    places = np.empty(len(kinds), np.int64)
    places[[numbers[kind] for kind in kinds]] = np.arange(len(kinds))
    of = places[of]
    return PairedModelCases(
        names=[each.case for each in cases],
        critical=[place for place, each in enumerate(cases) if each.critical],
        kinds=kinds,
        sizes=np.bincount(of, minlength=len(kinds)).tolist(),
        of=of,
        groups=shared_groups([each.group or f"case {each.case}" for each in cases])
        if any(each.group for each in cases)
        else None,
    )


def _kind(case: PairedCase, on: ComparedMeasure) -> CaseKind:
    return CaseKind(
        _counts(case),
        PairedCaseScores(case.baseline_scores, case.current_scores) if on == "score" else None,
        case.further_attempts,
        case.further_passes,
        tuple(sorted(case.further_scores)),
    )


def _order(kind: CaseKind) -> tuple[PairedCaseCounts, PairedCaseScores, int, int, tuple[float, ...]]:
    further = -1 if kind.further_attempts is None else kind.further_attempts
    return kind.counts, kind.scores or PairedCaseScores((), ()), further, kind.further_passes, kind.further_scores


def _from_counts(model: str, given: PairedCounts, on: ComparedMeasure) -> PairedModelCases:
    import numpy as np

    if on != "passed":
        raise ValueError("counts have passes and no scores")
    names, counts = given
    if counts.shape != (len(names), 4):
        raise ValueError(f"{model}: {len(names)} cases need four counts each, got {counts.shape}")
    order = sorted(range(len(names)), key=names.__getitem__)
    names = [names[place] for place in order]
    twice = next((case for case, after in pairwise(names) if case == after), None)
    if twice is not None:
        raise ValueError(f"{model}: case {twice!r} is paired more than once")
    untried = next(iter(np.flatnonzero((counts[:, [0, 2]] <= 0).any(axis=1))), None)
    if untried is not None:
        raise ValueError(f"{model}: case {given.cases[int(untried)]!r} needs an attempt on both sides")
    counts = counts[order]
    _, first, of, sizes = np.unique(_codes(counts), return_index=True, return_inverse=True, return_counts=True)
    return PairedModelCases(
        names=names,
        critical=(),
        kinds=[CaseKind(PairedCaseCounts(*kind), None, None, 0) for kind in counts[first].tolist()],
        sizes=sizes.tolist(),
        of=of,
    )


def _codes(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each row, equal where rows are equal and in their order."""
    import numpy as np

    codes = counts[:, 0]
    for column in counts.T[1:]:
        # ranks stay small, so that their product with those of the next column does too
        values, ranks = np.unique(column, return_inverse=True)
        codes = np.unique(codes, return_inverse=True)[1] * values.size + ranks
    return codes


def summed_counts(pairs: Iterable[tuple[Value, int]]) -> Counter[Value]:
    """The sums of counts of equal things."""
    found: Counter[Value] = Counter()
    for thing, count in pairs:
        found[thing] += count
    return found


def _tests(cases: PairedModelCases, on: ComparedMeasure, seed: int) -> ModelTests:
    """The p-values of the suite and of its cases."""
    nameable = [kind.can_be_named for kind in cases.kinds]
    exact = True
    if on == "score":
        scores = cases.each([kind.scores or PairedCaseScores((), ()) for kind in cases.kinds])
        found = scores_worse(scores, seed=seed, replicates=SCORE_PERMUTATIONS)
        overall, exact = found.overall, found.exact
        alone = dict(zip(cases.of.tolist(), found.cases, strict=True))
        p = [alone[place] for place in range(len(cases.kinds))]
        # whether a case can be named depends on its attempts alone, so leaving the others out spends nothing
        kept = [each for each, can in zip(scores, cases.each(nameable), strict=True) if can]
        smallest = found.smallest if all(nameable) else scores_worse(kept, seed=0, replicates=1).smallest
    else:
        overall = stratified_worse(cases.counts)
        p = [fisher_worse(kind.counts) for kind in cases.kinds]
        smallest = smallest_p_distribution(
            summed_counts(
                (kind.counts, size) for kind, size in zip(cases.kinds, cases.sizes, strict=True) if kind.can_be_named
            )
        )
    chances = {each: smallest.chance(each) for each in set(p)}
    adjusted = [chances[each] if can else None for each, can in zip(p, nameable, strict=True)]
    return ModelTests(overall, p, adjusted, smallest, exact)


def _levels(
    cases: PairedModelCases, smallest: SmallestPDistribution, alpha: float, models: int, *, can_cases_fail: bool
) -> ErrorLevels:
    """What each test of a model may spend of alpha, given how many models share it."""
    watched = [cases.kinds[cases.of[place]].counts for place in cases.critical]
    half = alpha / 2 / models
    if models > 1:
        overall = half if can_cases_fail else 2 * half
        return ErrorLevels(half, half / 2, overall / 2) if watched else ErrorLevels(half, half, overall)
    # cases that only warn take nothing from the suite
    spent = smallest.spent(half + DECISION_TOLERANCE) if can_cases_fail else 0.0
    if watched:
        # Holm rejects anything exactly when Bonferroni does, so this is all that it can spend where nothing changed
        spent += smallest_p_distribution(watched).chance(half / len(watched) + DECISION_TOLERANCE)
    return ErrorLevels(half, half, max(0.0, alpha - spent))


def improved_kinds(cases: PairedModelCases, level: float) -> dict[int, float]:
    """The kinds of cases that got better, with their p-values: the test of worse cases with the sides exchanged."""
    turned = {
        place: PairedCaseCounts(*kind.counts[2:], *kind.counts[:2])
        for place, kind in enumerate(cases.kinds)
        if kind.can_be_named
    }
    smallest = smallest_p_distribution(summed_counts((counts, cases.sizes[place]) for place, counts in turned.items()))
    p = {place: fisher_worse(counts) for place, counts in turned.items()}
    return {place: each for place, each in p.items() if is_at_most(smallest.chance(each), level)}


def _critical(cases: PairedModelCases, level: float) -> tuple[CriticalCase, ...]:
    """Every critical case under its own rule."""
    watched = [(cases.names[place], cases.kinds[cases.of[place]].counts) for place in cases.critical]
    p = [fisher_worse(counts) for _, counts in watched]
    found = []
    for (case, counts), alone, adjusted in zip(watched, p, holm(p), strict=True):
        # the others that are rejected make room: against what is left of them this one is held
        others = sorted(p)
        others.remove(alone)
        rejected = 0
        while rejected < len(others) and is_at_most(others[rejected], level / (len(p) - rejected)):
            rejected += 1
        own_level = level / (len(p) - rejected)
        needed = _needed_passes(counts, own_level)
        found.append(
            CriticalCase(
                case=case,
                passes=counts.current_passes,
                attempts=counts.current_attempts,
                needed=needed,
                p=alone,
                p_adjusted=adjusted,
                broken=needed is not None and counts.current_passes < needed,
            )
        )
    return tuple(found)


def _needed_passes(case: PairedCaseCounts, level: float) -> int | None:
    """The fewest current passes that chance explains at this level; None when it explains having none."""
    for passes in range(case.current_attempts + 1):
        if not is_at_most(fisher_worse(case._replace(current_passes=passes)), level):
            return passes or None
    raise AssertionError("as many passes as attempts are never worse")


def _final_p_value(kind: CaseKind, tests: int) -> float | None:
    """The p-value of a case whose attempts are all in, adjusted for the number of tests; None if more may follow."""
    every = kind.with_further
    if (
        kind.further_attempts is None
        or min(every.baseline_attempts, every.current_attempts) < MIN_ATTEMPTS_TO_NAME_CASE
    ):
        return None
    return min(1.0, tests * kind.p_with_further)


def _counts(case: PairedCase) -> PairedCaseCounts:
    return PairedCaseCounts(case.baseline_attempts, case.baseline_passes, case.current_attempts, case.current_passes)


def is_at_most(p: float, level: float) -> bool:
    """Whether a p-value reaches a level, but for rounding."""
    return p <= level + DECISION_TOLERANCE


def _check_cases(model: str, cases: Sequence[PairedCase], on: ComparedMeasure) -> None:
    for case, group in groupby(cases, key=lambda each: each.case):
        if (times := sum(1 for _ in group)) > 1:
            raise ValueError(f"{model}: case {case!r} is paired {times} times")
    for each in cases:
        if not (each.baseline_attempts > 0 and each.current_attempts > 0):
            raise ValueError(f"{model}: case {each.case!r} needs an attempt on both sides")
        scored = len(each.baseline_scores), len(each.current_scores)
        if on == "score" and scored != (each.baseline_attempts, each.current_attempts):
            raise ValueError(f"{model}: case {each.case!r} needs a score for each attempt")
