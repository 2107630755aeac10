"""Whether the current side got worse than the baseline, did not, or cannot be told apart from noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from steelyard.analysis.estimates import Estimate
from steelyard.records import Record
from steelyard.stats.multiplicity import holm
from steelyard.stats.paired import (
    PairedCaseCounts,
    PairedCaseScores,
    SmallestPDistribution,
    difference_interval,
    fisher_worse,
    scores_worse,
    smallest_p_distribution,
    stratified_worse,
)
from steelyard.stats.power import (
    CaseEvidence,
    additional_attempts,
    evidence,
    exact_sum,
    expected_flags,
    minimum_detectable_change,
    non_inferiority,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value = TypeVar("Value")

REGRESSED = "regressed"
NOT_REGRESSED = "not regressed"
CANNOT_TELL = "cannot tell"
COMPARED_MEASURES = ("passed", "score")
"""What is compared: whether attempts passed, or what they scored."""
DECISION_TOLERANCE = 1e-9
"""So far a sum of floats may lie beyond its limit."""
MIN_ATTEMPTS_TO_NAME_CASE = 3
"""With fewer attempts than this on either side a case is not named."""
MAX_UNSCORED_CASE_SHARE = 0.05
"""With a larger share of cases without a score nobody can say that nothing got worse."""
SCORE_PERMUTATIONS = 10_000


class PairedCase(Record, frozen=True, kw_only=True):
    """One case that both sides tried, with the same tests."""

    case: str
    baseline_attempts: int
    baseline_passes: int
    current_attempts: int
    current_passes: int
    critical: bool = False
    """This case alone may fail the gate; see `Critical`."""
    baseline_scores: tuple[float, ...] = ()
    """One score in [0, 1] per attempt, where scores are compared."""
    current_scores: tuple[float, ...] = ()
    further_attempts: int | None = None
    """Attempts beyond those that all cases got, because this one looked worse; they count only where it is named.

    None while more may follow, 0 where all that were planned are among the others.
    """
    further_passes: int = 0


class PairedCounts(NamedTuple):
    """Many cases that both sides tried, as columns: a million of them take no more room than their names."""

    cases: Sequence[str]
    counts: NDArray[np.int64]
    """A row per case: attempts and passes of the baseline, attempts and passes of the current side."""


class CaseDrop(Record, frozen=True, kw_only=True):
    """A case that scored less than before."""

    case: str
    baseline: float
    """The mean over the attempts."""
    current: float
    p: float
    """How likely this case alone looks as bad when it did not change."""
    p_adjusted: float | None = None
    """How likely any case at all looks as bad when none changed; None where there are too few attempts to name it."""


class CriticalCase(Record, frozen=True, kw_only=True):
    """A case that must not break, whatever the others do.

    It is held to k of n: with so many baseline passes, fewer than k current ones have a one-sided Fisher p-value of at
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


class DetectableBreak(Record, frozen=True, kw_only=True):
    """The smallest break of one case that would have been seen: one that always passed, and now only so often."""

    baseline_attempts: int
    current_attempts: int
    current_passes: int


class FurtherAttempts(Record, frozen=True, kw_only=True):
    """Attempts that would decide, four times out of five, if nothing changed."""

    baseline: int
    """More of them at each case of the baseline."""
    current: int
    """More of them at each case of the current side."""
    attempts: int
    """All of them together."""
    cost_usd: float | None = None
    """None where it is not known what an attempt costs."""


class ModelDecision(Record, frozen=True, kw_only=True):
    """What is decided about one model."""

    model: str
    verdict: str
    """`regressed`, `not regressed` or `cannot tell`."""
    cases: int
    p_overall: float
    """How likely the whole suite looks as bad when no case changed."""
    overall_level: float
    """Up to here `p_overall` says that the suite got worse: alpha without what naming cases can spend of it."""
    p_worst: float
    """How likely any case at all looks as bad as the worst one when none changed; 1 where no case can be named."""
    case_level: float
    """Up to here the adjusted p-value of a case names it."""
    p_model: float
    """One p-value of this model for all its tests."""
    p_adjusted: float | None = None
    """The same, adjusted by Holm for the number of models; None where there is one: its tests then decide as they are."""
    effect: Estimate
    """The mean of current - baseline; its interval is about cases like these."""
    drop_bound: float | None = None
    """These cases, tried again, drop by no more than this on average, with confidence 1 - alpha."""
    p_margin: float | None = None
    """How likely so small a drop is seen when the true one is the margin."""
    detectable: float | None = None
    """The smallest mean drop that would have been seen four times out of five."""
    confirmed: tuple[CaseDrop, ...] = ()
    """The cases that got worse, the surest first."""
    suspects: tuple[CaseDrop, ...] = ()
    """Cases that dropped by more than the threshold, but no further than chance can take them."""
    expected_flags: float
    """How many cases noise alone drops by more than the threshold."""
    critical: tuple[CriticalCase, ...] = ()
    smallest_break: DetectableBreak | None = None
    """None when no break of a single case could have been seen."""
    further: FurtherAttempts | None = None
    """What would decide; only where it cannot be told, and None where no reasonable number would."""
    small_but_real: bool = False
    """Regressed by less than the threshold on average, and no case stands out."""
    data_missing: bool = False
    """Too many cases have no score; that, and not thin evidence, is why it cannot be told."""
    exact: bool = True
    """Whether `p_overall` counts every possibility, rather than some drawn with the seed."""
    notes: tuple[str, ...] = ()
    """What a reader must know before trusting the verdict."""


class DecisionRule(Record, frozen=True, kw_only=True):
    """By which rule it is decided."""

    alpha: float
    """How likely a false alarm may be, over all models."""
    margin: float
    """A mean drop known to be smaller than this is no regression."""
    threshold: float
    """Cases that drop by more are suspects."""
    min_effect: float
    """A smaller mean drop is no regression unless a case is named or broken."""
    on: str
    """What is compared: `passed` or `score`."""
    seed: int
    """For the permutations of scores that are too many to count."""
    cleared_level: float
    """The error rate of `not regressed`; alpha unless one of several looks has another."""
    final_level: float = 0.0
    """What the last test of cases may spend beside alpha, where more attempts were planned for some than for all."""


class Decision(Record, frozen=True, kw_only=True):
    """What is decided about all models."""

    verdict: str
    """`regressed` if any model did, `not regressed` if none did."""
    models: tuple[ModelDecision, ...]
    rule: DecisionRule


class _CaseKind(NamedTuple):
    """All that is compared of a case; many cases are alike in it."""

    counts: PairedCaseCounts
    scores: PairedCaseScores | None
    """Where scores are compared."""
    further_attempts: int | None
    further_passes: int

    @property
    def data(self) -> PairedCaseCounts | PairedCaseScores:
        return self.scores or self.counts

    @property
    def can_be_named(self) -> bool:
        return min(self.counts.baseline_attempts, self.counts.current_attempts) >= MIN_ATTEMPTS_TO_NAME_CASE

    @property
    def with_further(self) -> PairedCaseCounts:
        """What all attempts came to, those that only some cases got included."""
        before, passes_before, after, passes_after = self.counts
        return PairedCaseCounts(
            before, passes_before, after + (self.further_attempts or 0), passes_after + self.further_passes
        )


class _ModelCases(NamedTuple):
    """The cases of one model, sorted by name."""

    names: Sequence[str]
    critical: Sequence[int]
    """The places of those that must not break."""
    kinds: Sequence[_CaseKind]
    """In ascending order."""
    sizes: Sequence[int]
    """How many cases are of each kind."""
    of: NDArray[np.int64]
    """The kind of each case, by its place among them."""

    @property
    def counts(self) -> Counter[PairedCaseCounts]:
        """How many cases have each."""
        return _summed_counts((kind.counts, size) for kind, size in zip(self.kinds, self.sizes, strict=True))

    def each(self, values: Sequence[Value]) -> list[Value]:
        """A value for every case from one for every kind."""
        return [values[kind] for kind in self.of.tolist()]


class _ModelTests(NamedTuple):
    """The exact tests of one model."""

    overall: float
    kinds: list[float]
    """The p-value of a case of each kind."""
    adjusted: list[float | None]
    smallest: SmallestPDistribution
    """Over the cases that can be named."""
    exact: bool


class _ErrorLevels(NamedTuple):
    """How the error rate of one model is shared out between its tests."""

    critical: float
    case: float
    overall: float


class _TestedModel(NamedTuple):
    """One model and what its tests found."""

    name: str
    cases: _ModelCases
    known: Sequence[CaseEvidence]
    """What is known of a case of each kind."""
    tests: _ModelTests
    levels: _ErrorLevels
    critical: tuple[CriticalCase, ...]
    final: Sequence[float | None]
    """The p-value of each kind of case whose attempts are all in, over all of them, adjusted for the number of cases."""

    @property
    def evidence(self) -> Counter[CaseEvidence]:
        """How many cases have each."""
        return _summed_counts(zip(self.known, self.cases.sizes, strict=True))

    @property
    def p(self) -> float:
        """One p-value for all tests: Bonferroni's, with half of the weight on critical cases where there are any."""
        least = min(self.tests.overall, self.p_worst)
        if not self.critical:
            return min(1.0, 2 * least)
        return min(1.0, 4 * least, 2 * min(each.p_adjusted for each in self.critical))

    @property
    def p_worst(self) -> float:
        """The adjusted p-value of the worst case; 1 where none can be named."""
        return min((p for p in self.tests.adjusted if p is not None), default=1.0)

    @property
    def broken(self) -> bool:
        """Whether a critical case broke."""
        return any(each.broken for each in self.critical)


def decide(
    cases_by_model: Mapping[str, Sequence[PairedCase] | PairedCounts],
    *,
    alpha: float = 0.05,
    margin: float = 0.05,
    threshold: float = 0.05,
    unscored_share: float | Mapping[str, float] = 0.0,
    min_effect: float = 0.0,
    attempt_cost: float | Mapping[str, float] | None = None,
    on: str = "passed",
    seed: int = 0,
    cleared_level: float | None = None,
    final_level: float = 0.0,
) -> Decision:
    """The verdict on each model and on all.

    Regressed: the exact smallest p-value over the cases is at most alpha / 2, or the exact stratified p-value over the
    suite is at most alpha minus what the former can spend at all; where nothing changed this has a chance of at most
    alpha. Not regressed: not that, and the drop is known to be smaller than the margin, with confidence 1 - alpha. Else
    it cannot be told. Where cases are critical, their own test spends at most alpha / 2 more, which the test of the suite
    goes without.

    With several models Holm's method holds the chance of any false alarm to alpha: a model's p-value is twice the
    smaller of both, and with critical cases the least of twice theirs and four times the other two. Cases are then named
    at the level divided by the number of models, so that an innocent one is named anywhere with a chance of at most
    alpha / 2.

    `unscored_share` is the share of cases without a score, `attempt_cost` what an attempt costs on average in US
    dollars; either may differ by model. A drop below `min_effect` is no regression unless a case is named or broken.

    Of several looks at a growing run each has its own alpha and `cleared_level`. The last test, of cases whose attempts are
    all in, spends `final_level` in addition: Fisher's over all of their attempts, by Bonferroni over the cases. Which of
    them got further attempts may depend on what was seen: a case that got none is not tested, and so not named too often.
    """
    rule = DecisionRule(
        alpha=alpha,
        margin=margin,
        threshold=threshold,
        min_effect=min_effect,
        on=on,
        seed=seed,
        cleared_level=alpha if cleared_level is None else cleared_level,
        final_level=final_level,
    )
    _check(rule)
    models = [_model(name, cases_by_model[name], rule, len(cases_by_model)) for name in sorted(cases_by_model)]
    adjusted = holm([model.p for model in models])
    decided = tuple(
        _model_decision(
            model,
            rule,
            p_adjusted=p if len(models) > 1 else None,
            unscored=_for_model(unscored_share, model.name) or 0.0,
            cost=_for_model(attempt_cost, model.name),
        )
        for model, p in zip(models, adjusted, strict=True)
    )
    verdicts = {each.verdict for each in decided}
    agreed = NOT_REGRESSED if verdicts == {NOT_REGRESSED} else CANNOT_TELL
    return Decision(verdict=REGRESSED if REGRESSED in verdicts else agreed, models=decided, rule=rule)


def _model(name: str, given: Sequence[PairedCase] | PairedCounts, rule: DecisionRule, models: int) -> _TestedModel:
    """One of so many models, tested."""
    cases = _from_counts(name, given, rule.on) if isinstance(given, PairedCounts) else _from_cases(name, given, rule.on)
    tests = _tests(cases, rule)
    levels = _levels(cases, tests.smallest, rule.alpha, models)
    critical = _critical(cases, levels.critical)
    final = [_final_p_value(kind, len(cases.names) * models) for kind in cases.kinds]
    return _TestedModel(name, cases, [evidence(kind.data) for kind in cases.kinds], tests, levels, critical, final)


def _from_cases(model: str, given: Sequence[PairedCase], on: str) -> _ModelCases:
    import numpy as np

    cases = sorted(given, key=lambda each: each.case)
    _check_cases(model, cases, on)
    alike = [
        _CaseKind(
            _counts(each),
            PairedCaseScores(each.baseline_scores, each.current_scores) if on == "score" else None,
            each.further_attempts,
            each.further_passes,
        )
        for each in cases
    ]
    sizes = Counter(alike)
    kinds = sorted(sizes, key=_order)
    places = {kind: place for place, kind in enumerate(kinds)}
    return _ModelCases(
        names=[each.case for each in cases],
        critical=[place for place, each in enumerate(cases) if each.critical],
        kinds=kinds,
        sizes=[sizes[kind] for kind in kinds],
        of=np.array([places[kind] for kind in alike], np.int64),
    )


def _order(kind: _CaseKind) -> tuple[PairedCaseCounts, PairedCaseScores, int, int]:
    further = -1 if kind.further_attempts is None else kind.further_attempts
    return kind.counts, kind.scores or PairedCaseScores((), ()), further, kind.further_passes


def _from_counts(model: str, given: PairedCounts, on: str) -> _ModelCases:
    import numpy as np

    if on != "passed":
        raise ValueError("counts tell who passed, and no scores")
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
    return _ModelCases(
        names=names,
        critical=(),
        kinds=[_CaseKind(PairedCaseCounts(*kind), None, None, 0) for kind in counts[first].tolist()],
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


def _summed_counts(pairs: Iterable[tuple[Value, int]]) -> Counter[Value]:
    """The sums of counts of equal things."""
    found: Counter[Value] = Counter()
    for thing, count in pairs:
        found[thing] += count
    return found


def _model_decision(
    model: _TestedModel, rule: DecisionRule, *, p_adjusted: float | None, unscored: float, cost: float | None
) -> ModelDecision:
    """The verdict on one model and what explains it."""
    tests, levels = model.tests, model.levels
    if p_adjusted is None:
        alarms = (model.p_worst, levels.case), (tests.overall, levels.overall)
        worse = model.broken or any(_is_at_most(p, level) for p, level in alarms)
    else:
        worse = _is_at_most(p_adjusted, rule.alpha)
    worse = worse or any(p is not None and p <= rule.final_level for p in model.final)
    confirmed, suspects = _changes(model, rule)
    found = non_inferiority(model.evidence, margin=rule.margin, alpha=rule.cleared_level)
    drop = found.drop if found else 0.0
    diffuse = worse and not confirmed and not model.broken
    too_small = diffuse and drop < rule.min_effect - DECISION_TOLERANCE
    data_missing = unscored > MAX_UNSCORED_CASE_SHARE + DECISION_TOLERANCE
    if worse and not too_small:
        verdict = REGRESSED
    elif found and not data_missing and _is_at_most(found.p, rule.cleared_level):
        verdict = NOT_REGRESSED
    else:
        verdict = CANNOT_TELL
    undecided = verdict == CANNOT_TELL
    notes = _notes(model, rule)
    if undecided and data_missing:
        notes.append(
            f"{unscored:.1%} of the cases have no score; above {MAX_UNSCORED_CASE_SHARE:.0%} they could hide a regression"
        )
    if too_small:
        notes.append(f"the drop is real, but below {rule.min_effect:g}, the least that counts")
    return ModelDecision(
        model=model.name,
        verdict=verdict,
        cases=len(model.cases.names),
        p_overall=tests.overall,
        overall_level=levels.overall,
        p_worst=model.p_worst,
        case_level=levels.case,
        p_model=model.p,
        p_adjusted=p_adjusted,
        effect=_effect(model),
        drop_bound=found.bound if found else None,
        p_margin=found.p if found else None,
        detectable=minimum_detectable_change(found.error, alpha=levels.overall)
        if found and levels.overall > 0
        else None,
        confirmed=confirmed,
        suspects=suspects,
        expected_flags=expected_flags(_compared_data(model.cases), rule.threshold),
        critical=model.critical,
        smallest_break=_smallest_break(model),
        further=_further(model, rule, cost) if undecided and not data_missing else None,
        small_but_real=diffuse and verdict == REGRESSED and drop < rule.threshold - DECISION_TOLERANCE,
        data_missing=undecided and data_missing,
        exact=tests.exact,
        notes=tuple(notes),
    )


def _compared_data(cases: _ModelCases) -> Counter[PairedCaseCounts | PairedCaseScores]:
    """How many cases have each thing that is compared."""
    return _summed_counts((kind.data, size) for kind, size in zip(cases.kinds, cases.sizes, strict=True))


def _changes(model: _TestedModel, rule: DecisionRule) -> tuple[tuple[CaseDrop, ...], tuple[CaseDrop, ...]]:
    """The cases that got worse, and those that only look so."""
    import numpy as np

    confirmed: dict[int, CaseDrop] = {}
    suspects: dict[int, CaseDrop] = {}
    tests = model.tests
    for place, (kind, seen, p, adjusted, last) in enumerate(
        zip(model.cases.kinds, model.known, tests.kinds, tests.adjusted, model.final, strict=True)
    ):
        change = CaseDrop(case="", baseline=seen.baseline, current=seen.current, p=p, p_adjusted=adjusted)
        if adjusted is not None and _is_at_most(adjusted, model.levels.case):
            confirmed[place] = change
            continue
        if kind.further_attempts:
            every = kind.with_further
            rate = every.current_passes / every.current_attempts
            change = replace(change, current=rate, p=fisher_worse(every), p_adjusted=last)
        if last is not None and last <= rule.final_level:
            confirmed[place] = replace(change, p_adjusted=last)
        elif change.baseline - change.current > rule.threshold + DECISION_TOLERANCE:
            suspects[place] = change

    def named(found: dict[int, CaseDrop]) -> tuple[CaseDrop, ...]:
        places = np.flatnonzero(np.isin(model.cases.of, list(found))).tolist()
        changes = [replace(found[int(model.cases.of[place])], case=model.cases.names[place]) for place in places]
        # equal p-values keep the order of the names
        return tuple(sorted(changes, key=lambda each: each.p))

    return named(confirmed), named(suspects)


def _further(model: _TestedModel, rule: DecisionRule, cost: float | None) -> FurtherAttempts | None:
    """What would decide."""
    more = additional_attempts(model.evidence, margin=rule.margin, alpha=rule.cleared_level)
    if not more:
        return None
    attempts = (more.baseline + more.current) * len(model.cases.names)
    return FurtherAttempts(
        baseline=more.baseline,
        current=more.current,
        attempts=attempts,
        cost_usd=None if cost is None else attempts * cost,
    )


def _tests(cases: _ModelCases, rule: DecisionRule) -> _ModelTests:
    """The p-values of the suite and of its cases."""
    nameable = [kind.can_be_named for kind in cases.kinds]
    exact = True
    if rule.on == "score":
        scores = cases.each([kind.scores or PairedCaseScores((), ()) for kind in cases.kinds])
        found = scores_worse(scores, seed=rule.seed, replicates=SCORE_PERMUTATIONS)
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
            _summed_counts(
                (kind.counts, size) for kind, size in zip(cases.kinds, cases.sizes, strict=True) if kind.can_be_named
            )
        )
    chances = {each: smallest.chance(each) for each in set(p)}
    adjusted = [chances[each] if can else None for each, can in zip(p, nameable, strict=True)]
    return _ModelTests(overall, p, adjusted, smallest, exact)


def _levels(cases: _ModelCases, smallest: SmallestPDistribution, alpha: float, models: int) -> _ErrorLevels:
    """What each test of one of so many models may spend."""
    watched = [cases.kinds[cases.of[place]].counts for place in cases.critical]
    half = alpha / 2 / models
    if models > 1:
        return _ErrorLevels(half, half / 2, half / 2) if watched else _ErrorLevels(half, half, half)
    spent = smallest.spent(half + DECISION_TOLERANCE)
    if watched:
        # Holm rejects anything exactly when Bonferroni does, so this is all that it can spend where nothing changed
        spent += smallest_p_distribution(watched).chance(half / len(watched) + DECISION_TOLERANCE)
    return _ErrorLevels(half, half, max(0.0, alpha - spent))


def _critical(cases: _ModelCases, level: float) -> tuple[CriticalCase, ...]:
    """Every critical case under its own rule."""
    watched = [(cases.names[place], cases.kinds[cases.of[place]].counts) for place in cases.critical]
    p = [fisher_worse(counts) for _, counts in watched]
    found = []
    for (case, counts), alone, adjusted in zip(watched, p, holm(p), strict=True):
        # the others that are rejected make room: against what is left of them this one is held
        others = sorted(p)
        others.remove(alone)
        rejected = 0
        while rejected < len(others) and _is_at_most(others[rejected], level / (len(p) - rejected)):
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
        if not _is_at_most(fisher_worse(case._replace(current_passes=passes)), level):
            return passes or None
    raise AssertionError("as many passes as attempts are never worse")


def _smallest_break(model: _TestedModel) -> DetectableBreak | None:
    """The most current passes with which a case that always passed would be named, beside the cases of the suite."""
    sizes: Counter[tuple[int, int]] = Counter()
    for counts, size in model.cases.counts.items():
        sizes[counts.baseline_attempts, counts.current_attempts] += size
    if not sizes:
        return None
    # cases may differ in their attempts: what most of them have speaks for the suite
    before, after = min(sizes, key=lambda size: (-sizes[size], size))
    if min(before, after) < MIN_ATTEMPTS_TO_NAME_CASE:
        return None
    for passes in range(after - 1, -1, -1):
        p = fisher_worse(PairedCaseCounts(before, before, after, passes))
        if _is_at_most(1 - (1 - p) * (1 - model.tests.smallest.chance(p)), model.levels.case):
            return DetectableBreak(baseline_attempts=before, current_attempts=after, current_passes=passes)
    return None


def _effect(model: _TestedModel) -> Estimate:
    """The mean of current - baseline over the cases."""
    known = model.evidence
    size = known.total()
    if not size:
        return Estimate(value=None)
    inverse = exact_sum(
        (1 / each.baseline_attempts + 1 / each.current_attempts, count) for each, count in known.items()
    )
    interval = difference_interval(
        model.cases.each([each.baseline for each in model.known]),
        model.cases.each([each.current for each in model.known]),
        attempts=2 * size / inverse,
    )
    return Estimate(
        value=exact_sum((each.current - each.baseline, count) for each, count in known.items()) / size,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cases=size,
        attempts=sum(
            (counts.baseline_attempts + counts.current_attempts) * count for counts, count in model.cases.counts.items()
        ),
    )


def _notes(model: _TestedModel, rule: DecisionRule) -> list[str]:
    """What a reader must know before trusting the tests."""
    cases, notes = model.cases, []
    unnamed = sum(size for size, adjusted in zip(cases.sizes, model.tests.adjusted, strict=True) if adjusted is None)
    if not cases.names:
        notes.append("no case was tried on both sides")
    elif all(kind.counts.baseline_attempts == kind.counts.current_attempts == 1 for kind in cases.kinds):
        notes.append("with one attempt per case only the suite as a whole is tested (McNemar); no case can be named")
    elif unnamed:
        notes.append(
            f"{unnamed} of {len(cases.names)} cases have fewer than {MIN_ATTEMPTS_TO_NAME_CASE} attempts on a side and are never named"
        )
    if not model.tests.exact:
        notes.append(
            f"the p-value of the suite is from {SCORE_PERMUTATIONS:,} permutations drawn with seed {rule.seed}"
        )
    blind = [each.case for each in model.critical if each.needed is None]
    if blind:
        notes.append(f"too few attempts to see a critical case break: {', '.join(blind)}")
    return notes


def _final_p_value(kind: _CaseKind, tests: int) -> float | None:
    """The p-value of a case whose attempts are all in, adjusted for so many tests; None where more may follow."""
    every = kind.with_further
    if (
        kind.further_attempts is None
        or min(every.baseline_attempts, every.current_attempts) < MIN_ATTEMPTS_TO_NAME_CASE
    ):
        return None
    return min(1.0, tests * fisher_worse(every))


def _counts(case: PairedCase) -> PairedCaseCounts:
    return PairedCaseCounts(case.baseline_attempts, case.baseline_passes, case.current_attempts, case.current_passes)


def _is_at_most(p: float, level: float) -> bool:
    return p <= level + DECISION_TOLERANCE


def _for_model(value: float | Mapping[str, float] | None, model: str) -> float | None:
    return value.get(model) if isinstance(value, Mapping) else value


def _check(rule: DecisionRule) -> None:
    for name, share in (("alpha", rule.alpha), ("the margin", rule.margin), ("cleared_level", rule.cleared_level)):
        if not 0 < share < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}")
    for name, drop in (("threshold", rule.threshold), ("least effect", rule.min_effect)):
        if not 0 <= drop <= 1:
            raise ValueError(f"the {name} must lie in [0, 1], got {drop}")
    if rule.on not in COMPARED_MEASURES:
        raise ValueError(f"sides are compared on {' or '.join(COMPARED_MEASURES)}, got {rule.on!r}")


def _check_cases(model: str, cases: Sequence[PairedCase], on: str) -> None:
    for case, times in Counter(each.case for each in cases).items():
        if times > 1:
            raise ValueError(f"{model}: case {case!r} is paired {times} times")
    for each in cases:
        if not (each.baseline_attempts > 0 and each.current_attempts > 0):
            raise ValueError(f"{model}: case {each.case!r} needs an attempt on both sides")
        scored = len(each.baseline_scores), len(each.current_scores)
        if on == "score" and scored != (each.baseline_attempts, each.current_attempts):
            raise ValueError(f"{model}: case {each.case!r} needs a score for each attempt")
