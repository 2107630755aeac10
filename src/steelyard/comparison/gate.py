"""Whether the current side got worse than the baseline, did not, or differs from it by no more than noise could."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from msgspec.structs import replace

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.measure import ComparedMeasure
from steelyard.comparison.exact_tests import (
    DECISION_TOLERANCE,
    MIN_ATTEMPTS_TO_NAME_CASE,
    SCORE_PERMUTATIONS,
    CasesRule,
    CriticalCase,
    PairedCase,
    PairedModelCases,
    TestedModel,
    improved_kinds,
    is_at_most,
    summed_counts,
    tested_model,
)
from steelyard.comparison.sides import PairedCounts
from steelyard.records import Record
from steelyard.stats.multiplicity import holm
from steelyard.stats.paired import PairedCaseCounts, PairedCaseScores, difference_interval, fisher_worse
from steelyard.stats.power import (
    NonInferiority,
    additional_attempts,
    exact_sum,
    expected_flags,
    minimum_detectable_change,
    non_inferiority,
)

GateVerdict = Literal["regressed", "not regressed", "cannot tell"]
REGRESSED: Literal["regressed"] = "regressed"
NOT_REGRESSED: Literal["not regressed"] = "not regressed"
CANNOT_TELL: Literal["cannot tell"] = "cannot tell"
CasesVerdict = Literal["worse", "none named", "not tested"]
"""What is said of single cases: some got worse, none stands out, or there are too few attempts to name one."""
CASES_RULES: tuple[CasesRule, ...] = get_args(CasesRule)
COMPARED_MEASURES: tuple[ComparedMeasure, ...] = get_args(ComparedMeasure)
MAX_UNSCORED_SHARE = 0.05
"""With a larger share of cases without a score they could hide a regression."""


class CasesPolicy(NamedTuple):
    """What single cases that got worse mean for the verdict."""

    rule: CasesRule = "fail"
    why: str = ""
    """Why this rule applies, in a few words."""


DEFAULT_CASES_POLICY = CasesPolicy()


class CaseDrop(Record, frozen=True, kw_only=True):
    """A case that scored less than before, or more."""

    case: str
    baseline: float
    """The mean over the attempts."""
    current: float
    p: float
    """How likely this case alone looks as bad when it did not change."""
    p_adjusted: float | None = None
    """How likely any case at all looks as bad when none changed; None if there are too few attempts to name it."""


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
    verdict: GateVerdict
    """Of the suite, and of its cases where they can fail the gate."""
    suite: GateVerdict
    """Whether the mean over the cases got worse."""
    case_verdict: CasesVerdict
    cases: int
    p_overall: float
    """How likely the whole suite looks as bad when no case changed."""
    p_suite: float
    """The same when cases may have changed, but not their mean: the suite got worse where this reaches the level too."""
    overall_level: float
    """Up to here `p_overall` says that the suite got worse: alpha without what naming cases can spend of it."""
    p_worst: float
    """How likely any case at all looks as bad as the worst one when none changed; 1 where no case can be named."""
    case_level: float
    """Up to here the adjusted p-value of a case names it."""
    p_model: float
    """One p-value of this model for all its tests."""
    p_adjusted: float | None = None
    """The same, adjusted by Holm for the number of models; None if there is one, or each is decided by itself: its tests then decide as they are."""
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
    improved: tuple[CaseDrop, ...] = ()
    """The cases that got better by the same test, the surest first; they decide nothing."""
    expected_flags: float
    """How many cases noise alone drops by more than the threshold."""
    critical: tuple[CriticalCase, ...] = ()
    smallest_break: DetectableBreak | None = None
    """None when no break of a single case could have been seen."""
    further: FurtherAttempts | None = None
    """The attempts that would decide; only for a verdict of cannot tell, and None where no reasonable number would."""
    small_but_real: bool = False
    """Regressed by less than the threshold on average, and no case stands out."""
    data_missing: bool = False
    """Too many cases have no score; that, and not thin evidence, is why the gate cannot tell."""
    exact: bool = True
    """Whether `p_overall` counts every possibility, rather than some drawn with the seed."""
    notes: tuple[str, ...] = ()
    """What a reader must know before trusting the verdict."""


class DecisionRule(Record, frozen=True, kw_only=True):
    """By which rule it is decided."""

    alpha: float
    """How likely a false alarm may be, over all models."""
    margin: float
    """A mean drop known to be smaller than this is not a regression."""
    threshold: float
    """Cases that drop by more are suspects."""
    min_effect: float
    """A smaller mean drop is not a regression unless a case is named or broken."""
    cases: CasesRule = "fail"
    """Whether single cases that got worse fail the gate, or warn."""
    cases_why: str = ""
    on: ComparedMeasure
    seed: int
    """For the permutations of scores that are too many to count."""
    cleared_level: float
    """The error rate of `not regressed`; alpha unless one of several looks has another."""
    final_level: float = 0.0
    """What the last test of cases may spend beside alpha, where more attempts were planned for some than for all."""


class Decision(Record, frozen=True, kw_only=True):
    """What is decided about all models."""

    verdict: GateVerdict
    """`regressed` if any model did, `not regressed` if none did."""
    models: tuple[ModelDecision, ...]
    rule: DecisionRule


def decide(
    cases_by_model: Mapping[str, Sequence[PairedCase] | PairedCounts],
    *,
    alpha: float = 0.05,
    margin: float = 0.05,
    threshold: float = 0.05,
    unscored_share: float | Mapping[str, float] = 0.0,
    min_effect: float = 0.0,
    attempt_cost: float | Mapping[str, float] | None = None,
    on: ComparedMeasure = "passed",
    seed: int = 0,
    cleared_level: float | None = None,
    final_level: float = 0.0,
    policy: CasesPolicy = DEFAULT_CASES_POLICY,
) -> Decision:
    """The verdict on each model and on all.

    Two verdicts share alpha. Cases got worse: the exact smallest p-value over the cases is at most alpha / 2. The suite got
    worse: the exact stratified p-value is at most alpha minus what the former can spend at all, and so is that of a drop of
    the mean, which cases that changed in both directions do not reach. Where nothing changed either has a chance of at most
    alpha. Where cases only warn, the suite has all of alpha. Not regressed: none that can fail the gate got worse, and the
    mean drop is known to be smaller than the margin, with confidence 1 - alpha. Otherwise the gate cannot tell. Where cases
    are critical, their own test spends at most alpha / 2 more, which the test of the suite goes without.

    With several models Holm's method holds the chance of any false alarm to alpha: a model's p-value is twice the
    smaller of both, and with critical cases the least of twice theirs and four times the other two. Cases are then named
    at the level divided by the number of models, so that an innocent one is named anywhere with a chance of at most
    alpha / 2.

    `unscored_share` is the share of cases without a score or of attempts without a verdict, `attempt_cost` what an attempt costs on average in US
    dollars; either may differ by model. A drop below `min_effect` is not a regression unless a case is named or broken.

    Of several looks at a growing run each has its own alpha and `cleared_level`. The last test, of cases whose attempts are
    all in, spends `final_level` in addition: Fisher's over all of their attempts, by Bonferroni over the cases. Which of
    them got further attempts may depend on what was seen: a case that got none is not tested, and so not named too often.
    """
    rule = DecisionRule(
        alpha=alpha,
        margin=margin,
        threshold=threshold,
        min_effect=min_effect,
        cases=policy.rule,
        cases_why=policy.why,
        on=on,
        seed=seed,
        cleared_level=alpha if cleared_level is None else cleared_level,
        final_level=final_level,
    )
    _check(rule)
    models = [
        tested_model(
            name,
            cases_by_model[name],
            alpha=alpha,
            models=len(cases_by_model),
            on=on,
            seed=seed,
            can_cases_fail=policy.rule == "fail",
        )
        for name in sorted(cases_by_model)
    ]
    adjusted = holm([model.p for model in models])
    rejected = [is_at_most(p, alpha) for p in adjusted]
    decided = tuple(
        _model_decision(
            model,
            rule,
            p_adjusted=p if len(models) > 1 else None,
            # by Holm's method the models that are rejected make room for the others
            level=alpha / (len(models) - sum(rejected) + is_rejected) / model.tests_sharing,
            unscored=_for_model(unscored_share, model.name) or 0.0,
            cost=_for_model(attempt_cost, model.name),
        )
        for model, p, is_rejected in zip(models, adjusted, rejected, strict=True)
    )
    return Decision(verdict=_overall_verdict(decided), models=decided, rule=rule)


def joined_decision(decisions: Sequence[Decision]) -> Decision:
    """The decisions about models that were decided each by itself, as one; its rule is that of the strictest."""
    models = tuple(sorted((model for each in decisions for model in each.models), key=lambda model: model.model))
    strictest = min((each.rule for each in decisions), key=lambda rule: rule.alpha)
    return Decision(verdict=_overall_verdict(models), models=models, rule=strictest)


def _overall_verdict(models: Sequence[ModelDecision]) -> GateVerdict:
    verdicts = {each.verdict for each in models}
    agreed = NOT_REGRESSED if verdicts == {NOT_REGRESSED} else CANNOT_TELL
    return REGRESSED if REGRESSED in verdicts else agreed


class GateAlarms(NamedTuple):
    """What the tests of one model say."""

    suite: bool
    """The mean got worse."""
    cases: bool
    """Single cases did."""
    fails: bool
    """Something other than the suite fails the gate: cases where they may, or a critical one."""


class ModelVerdict(NamedTuple):
    """The verdict on one model and what led to it, without what explains it."""

    verdict: GateVerdict
    suite: GateVerdict
    alarms: GateAlarms
    margin: NonInferiority | None
    """The test of the margin; None without cases."""
    confirmed: tuple[CaseDrop, ...]
    suspects: tuple[CaseDrop, ...]
    is_too_small: bool
    """The suite got worse by less than the least effect that counts."""
    data_missing: bool


def model_verdict(
    model: TestedModel,
    rule: DecisionRule,
    *,
    level: float,
    p_adjusted: float | None = None,
    unscored: float = 0.0,
) -> ModelVerdict:
    """The verdict on one model; `level` is that of its own tests where there are several models."""
    confirmed, suspects = _changes(model, rule) if rule.cases != "off" else ((), ())
    found = non_inferiority(model.evidence, margin=rule.margin, alpha=rule.cleared_level)
    alarms = _alarms(model, rule, p_adjusted=p_adjusted, level=level, is_case_named=bool(confirmed))
    is_too_small = alarms.suite and (found.drop if found else 0.0) < rule.min_effect - DECISION_TOLERANCE
    data_missing = unscored > MAX_UNSCORED_SHARE + DECISION_TOLERANCE
    suite: GateVerdict = CANNOT_TELL
    if alarms.suite and not is_too_small:
        suite = REGRESSED
    elif found and not data_missing and not model.is_at_floor and is_at_most(found.p, rule.cleared_level):
        suite = NOT_REGRESSED
    verdict: GateVerdict = REGRESSED if alarms.fails else suite
    return ModelVerdict(verdict, suite, alarms, found, confirmed, suspects, is_too_small, data_missing)


def _model_decision(
    model: TestedModel,
    rule: DecisionRule,
    *,
    p_adjusted: float | None,
    level: float,
    unscored: float,
    cost: float | None,
) -> ModelDecision:
    """The verdict on one model and what explains it."""
    tests, levels = model.tests, model.levels
    verdict, suite, alarms, found, confirmed, suspects, too_small, data_missing = model_verdict(
        model, rule, level=level, p_adjusted=p_adjusted, unscored=unscored
    )
    drop = found.drop if found else 0.0
    undecided = verdict == CANNOT_TELL
    smallest_break = _smallest_break(model)
    notes = _notes(model, rule)
    if undecided and data_missing:
        notes.append(
            f"{unscored:.1%} of the cases have no score, or of the attempts no verdict; above {MAX_UNSCORED_SHARE:.0%} they could "
            "hide a regression"
        )
    if p_adjusted is None and not alarms.suite and is_at_most(tests.overall, levels.overall):
        notes.append("cases changed in both directions; the mean did not drop by more than chance explains")
    if too_small:
        notes.append(f"the drop is real, but below {rule.min_effect * 100:g} points, the least that counts")
    return ModelDecision(
        model=model.name,
        verdict=verdict,
        suite=suite,
        case_verdict="worse" if alarms.cases else "none named" if _can_name(rule, smallest_break) else "not tested",
        cases=len(model.cases.names),
        p_overall=tests.overall,
        p_suite=model.p_suite,
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
        improved=_improved(model, rule),
        expected_flags=expected_flags(_compared_data(model.cases), rule.threshold),
        critical=model.critical,
        smallest_break=smallest_break,
        further=_further(model, rule, cost) if undecided and not data_missing and not model.is_at_floor else None,
        small_but_real=suite == REGRESSED
        and not confirmed
        and not model.broken
        and drop < rule.threshold - DECISION_TOLERANCE,
        data_missing=undecided and data_missing,
        exact=tests.exact,
        notes=tuple(notes),
    )


def _compared_data(cases: PairedModelCases) -> Counter[PairedCaseCounts | PairedCaseScores]:
    """How many cases have each thing that is compared."""
    return summed_counts((kind.data, size) for kind, size in zip(cases.kinds, cases.sizes, strict=True))


def _changes(model: TestedModel, rule: DecisionRule) -> tuple[tuple[CaseDrop, ...], tuple[CaseDrop, ...]]:
    """The cases that got worse, and those that only seem to."""
    confirmed: dict[int, CaseDrop] = {}
    suspects: dict[int, CaseDrop] = {}
    tests = model.tests
    for place, (kind, seen, p, adjusted, last) in enumerate(
        zip(model.cases.kinds, model.known, tests.kinds, tests.adjusted, model.final, strict=True)
    ):
        change = CaseDrop(case="", baseline=seen.baseline, current=seen.current, p=p, p_adjusted=adjusted)
        if adjusted is not None and is_at_most(adjusted, model.levels.case):
            confirmed[place] = change
            continue
        if kind.further_attempts:
            change = replace(change, current=kind.current_with_further, p=kind.p_with_further, p_adjusted=last)
        if last is not None and last <= rule.final_level:
            confirmed[place] = replace(change, p_adjusted=last)
        elif change.baseline - change.current > rule.threshold + DECISION_TOLERANCE:
            suspects[place] = change

    return _named_cases(model, confirmed), _named_cases(model, suspects)


def _named_cases(model: TestedModel, found: Mapping[int, CaseDrop]) -> tuple[CaseDrop, ...]:
    """Every case of these kinds, the surest first."""
    import numpy as np

    places = np.flatnonzero(np.isin(model.cases.of, list(found))).tolist()
    changes = [replace(found[int(model.cases.of[place])], case=model.cases.names[place]) for place in places]
    # equal p-values keep the order of the names
    return tuple(sorted(changes, key=lambda each: each.p))


def _improved(model: TestedModel, rule: DecisionRule) -> tuple[CaseDrop, ...]:
    """The cases that got better."""
    if rule.cases == "off" or rule.on == "score":
        return ()
    found = improved_kinds(model.cases, model.levels.case)
    seen = model.known
    return _named_cases(
        model,
        {
            place: CaseDrop(case="", baseline=seen[place].baseline, current=seen[place].current, p=p)
            for place, p in found.items()
        },
    )


def _can_name(rule: DecisionRule, smallest_break: DetectableBreak | None) -> bool:
    """Whether a single case that broke could have been named."""
    return rule.cases != "off" and (smallest_break is not None or rule.final_level > 0)


def _alarms(
    model: TestedModel, rule: DecisionRule, *, p_adjusted: float | None, level: float, is_case_named: bool
) -> GateAlarms:
    if p_adjusted is None:
        suite = is_at_most(model.p_suite, model.levels.overall)
        return GateAlarms(suite, is_case_named, model.broken or (is_case_named and model.can_cases_fail))
    suite = is_at_most(model.p_suite, level)
    cases = is_case_named or (model.can_cases_fail and is_at_most(model.p_worst, level))
    # a model that is rejected for neither is rejected for its critical cases
    is_other = is_at_most(p_adjusted, rule.alpha) and not suite and not cases
    return GateAlarms(suite, cases, model.broken or is_other or (cases and model.can_cases_fail))


def _further(model: TestedModel, rule: DecisionRule, cost: float | None) -> FurtherAttempts | None:
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


def _smallest_break(model: TestedModel) -> DetectableBreak | None:
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
        if is_at_most(1 - (1 - p) * (1 - model.tests.smallest.chance(p)), model.levels.case):
            return DetectableBreak(baseline_attempts=before, current_attempts=after, current_passes=passes)
    return None


def _effect(model: TestedModel) -> Estimate:
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
        groups=model.cases.groups,
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


def _notes(model: TestedModel, rule: DecisionRule) -> list[str]:
    """What a reader must know before trusting the tests."""
    cases, notes = model.cases, []
    unnamed = sum(size for size, adjusted in zip(cases.sizes, model.tests.adjusted, strict=True) if adjusted is None)
    if not cases.names:
        notes.append("no case was tried on both sides")
    elif model.is_at_floor:
        what = "passed" if rule.on == "passed" else "scored above 0"
        notes.append(f"no attempt of either side {what}, so nothing could have got worse")
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


def _for_model(value: float | Mapping[str, float] | None, model: str) -> float | None:
    return value.get(model) if isinstance(value, Mapping) else value


def _check(rule: DecisionRule) -> None:
    for name, share in (("alpha", rule.alpha), ("the margin", rule.margin), ("cleared_level", rule.cleared_level)):
        if not 0 < share < 1:
            raise ValueError(f"{name} must be between 0 and 1, got {share}")
    if rule.cases not in CASES_RULES:
        raise ValueError(f"cases that got worse mean {', '.join(CASES_RULES)}, got {rule.cases!r}")
    for name, drop in (("threshold", rule.threshold), ("least effect", rule.min_effect)):
        if not 0 <= drop <= 1:
            raise ValueError(f"the {name} must be in [0, 1], got {drop}")
    if rule.on not in COMPARED_MEASURES:
        raise ValueError(f"sides are compared on {' or '.join(COMPARED_MEASURES)}, got {rule.on!r}")
