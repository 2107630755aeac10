"""A gate whose error rate holds however often it is asked about a growing run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.analysis.counts import Tally
from steelyard.analysis.measure import ComparedMeasure, GradedCounts, deciding_measure
from steelyard.comparison.exact_tests import CasesRule, PairedCase
from steelyard.comparison.gate import (
    CASES_RULES,
    COMPARED_MEASURES,
    REGRESSED,
    CasesPolicy,
    Decision,
    decide,
    joined_decision,
)
from steelyard.comparison.sides import (
    PairedCounts,
    Pairing,
    Side,
    TallySide,
    Trials,
    limits_changed_sentence,
    pair_group,
    pair_sides,
    pair_tallies,
    replies_shared_sentence,
    rules_changed_sentence,
)
from steelyard.engine.gate.sides import run_folder, side, split_run_and_model
from steelyard.engine.results.conclusion import Conclusion, OnInconclusive, gate_conclusion
from steelyard.engine.results.read_outcomes import (
    LOCAL_COUNTING,
    CountingOptions,
    is_attempts_path,
    is_score_table,
    parquet_outcomes,
    refuse_graded_runs,
)
from steelyard.errors import ExitCode, InputError, NotComparableError, Problem, did_you_mean
from steelyard.outcomes.scores import PLAIN_SCORES, ScoreReading
from steelyard.records import GateLook
from steelyard.records.base import streamed_digest
from steelyard.reports.comparison import DECISION_FORMATS
from steelyard.reports.tables import html_text
from steelyard.stats.multiplicity import FINAL_TEST_SHARE, PlannedLook
from steelyard.stats.power import unlucky_alarms
from steelyard.store.files import now
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER
from steelyard.store.side_files import gate_looks, record_gate_look
from steelyard.text import counted

LOOK_ALPHA_SHARE = 0.8
"""What a look may spend of the error rate that is left; the rest is kept for looks at more attempts."""
MIN_LOOK_ALPHA_SHARE = 1e-5
"""A look that would get a smaller share of the error rate is refused."""
THIN_BASELINE_ATTEMPTS = 10
"""Attempts per case below which a baseline is too thin to be used for many changes."""


class GateLevels(NamedTuple):
    """The levels of one look's tests, and what it adds to the error rate that all looks share."""

    alarm: float
    alarm_spent: float
    cleared: float
    cleared_spent: float
    final: float = 0.0
    """Of the last test of cases whose attempts are all in; it is part of what alarms spend."""


class SamplingRound(NamedTuple):
    """Where a run is that asks in rounds."""

    step: PlannedLook
    finishing: bool
    """Whether no round will follow: all attempts are in, or those at the cases that looked worse."""
    following: tuple[PlannedLook, ...] = ()
    """The looks that may still come."""


class GateResult(NamedTuple):
    """What the gate decided, and what it rests on."""

    decision: Decision
    pairing: Pairing
    alpha: float
    """What all looks at this run together may spend."""
    look: int
    """Which look this is at more attempts; 1 for the first."""
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        """What the command prints."""
        return DECISION_FORMATS["text"](self.decision, self.warnings).rstrip()

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def conclusion(self, on_inconclusive: OnInconclusive = "pass", *, fail_on_removed: bool = False) -> Conclusion:
        """The exit code, and what to say beside the decision."""
        ended = gate_conclusion(self.decision, on_inconclusive)
        if fail_on_removed and self.gone:
            many = counted(len(self.gone), "case")
            failed = f"steelyard: {many} of the baseline cannot be compared, and --fail-on-removed asks for all"
            return Conclusion(ExitCode.GATE_FAILED, (failed,))
        return ended

    @property
    def gone(self) -> tuple[str, ...]:
        """The cases of the baseline that cannot be compared: they were removed, or are judged by other tests."""
        return (*self.pairing.removed_cases, *self.pairing.tests_changed)


class GateRule(NamedTuple):
    """The rule by which two sides are compared."""

    alpha: float = 0.05
    margin: float = 0.05
    on: ComparedMeasure = "passed"
    """What is compared."""
    cases: CasesRule | None = None
    """What single cases that got worse mean; None for the baseline's rule, otherwise for one that depends on the models."""
    min_effect: float = 0.0
    """A smaller mean drop is not a regression of the suite."""


DEFAULT_GATE_RULE = GateRule()


def cases_policy(asked: CasesRule | None, baseline: Side | TallySide, current: Side | TallySide) -> CasesPolicy:
    """What single cases that got worse mean, and why: as asked, as blessed, or by whether the model is the same."""
    if asked:
        return CasesPolicy(asked, f"--cases {asked}")
    if isinstance(baseline, Side) and baseline.cases:
        return CasesPolicy(baseline.cases, f"the baseline was blessed with --cases {baseline.cases}")
    if len(baseline.models) == len(current.models) == 1 and baseline.models.keys() != current.models.keys():
        return CasesPolicy("warn", "the model differs")
    return CasesPolicy("fail", "the model is the same")


class _GateInputs(NamedTuple):
    """The cases of both sides that a decision depends on."""

    pairing: Pairing
    cases: Mapping[str, Sequence[PairedCase] | PairedCounts]
    """By model, those that both sides have an outcome of."""
    shared: Mapping[str, int]
    """By model how many cases both sides have."""
    missing_share: Mapping[str, float]
    """By model the share of attempts at these cases that have no verdict, on the side that lacks more."""
    sizes: Counter[tuple[int, int]]
    """The number of cases by their numbers of attempts on both sides."""
    attempt_cost: Mapping[str, float]
    thing: tuple[object, object]
    """The data of both sides, so that a second look at them is recognised."""
    policy: CasesPolicy


def gate_sides(
    baseline: Side,
    current: Side,
    *,
    alpha: float = 0.05,
    margin: float = 0.05,
    on: ComparedMeasure | None = None,
    cases: CasesRule | None = None,
    min_effect: float = 0.0,
    folder: Path | None = None,
    at: SamplingRound | Mapping[str, SamplingRound] | None = None,
) -> GateResult:
    """The decision; with the folder of the current run earlier looks at it are counted, and this one is written down.

    Where `on` does not say what is compared, the outcomes of both sides together do.
    Where several models are asked in rounds, `at` says of each where it is, and each is decided by itself.
    """
    pairing = pair_sides(baseline, current)
    on = on or pairing_measure(pairing)
    if on == "score":
        check_scored(baseline, current)
    rule = GateRule(alpha, margin, on, cases, min_effect)
    compared = _GateInputs(
        pairing=pairing,
        cases={
            model.name: [_paired_case(old, new, on) for old, new in model.cases if _is_comparable(old, new, on)]
            for model in pairing.models
        },
        shared={model.name: len(model.cases) for model in pairing.models},
        missing_share={
            model.name: max(map(_missing_share, zip(*model.cases, strict=True)), default=0) for model in pairing.models
        },
        sizes=Counter(
            (old.attempts, new.attempts)
            for model in pairing.models
            for old, new in model.cases
            if old.attempts and new.attempts
        ),
        attempt_cost={
            model.name: cost for model in pairing.models if (cost := _mean_attempt_cost(model.cases)) is not None
        },
        thing=(_looked_at(baseline), _looked_at(current)),
        policy=cases_policy(rule.cases, baseline, current),
    )
    names = baseline.name, current.name
    return _decide_and_record(compared, names, sorted(current.models), rule, folder=folder, at=at)


def pairing_measure(pairing: Pairing) -> ComparedMeasure:
    """What the outcomes of both sides together say that their difference is about."""
    return deciding_measure(
        GradedCounts(old.graded + new.graded, old.passes + new.passes, (*old.scores, *new.scores))
        for model in pairing.models
        for old, new in model.cases
    )


def side_measure(side: Side) -> ComparedMeasure:
    """What the outcomes of one side alone say that a difference is about."""
    return deciding_measure(
        GradedCounts(trials.graded, trials.passes, trials.scores) for cases in side.models.values() for trials in cases
    )


def check_scored(baseline: Side, current: Side) -> None:
    """Refuse to compare scores where a side has none, or has those of another rule."""
    unscored = next((each for each in (baseline, current) if not each.is_scored), None)
    if unscored is not None:
        raise InputError(
            f"{unscored.name} says what passed and has no scores; compare what passed with --on passed, "
            "or name the column of its scores with --score"
        )
    if baseline.rule != current.rule:
        raise InputError(f'scored by different rules, "{baseline.rule}" and "{current.rule}"; name one with --rule')


def gate_tallies(
    baseline: TallySide, current: TallySide, *, rule: GateRule = DEFAULT_GATE_RULE, folder: Path | None = None
) -> GateResult:
    """The same decision about sides that are counts only, a million cases as soon as ten; its pairing holds no cases."""
    models, pairing = pair_tallies(baseline, current)
    cases, sizes = {}, Counter[tuple[int, int]]()
    for name, model in models.items():
        tried = (model.counts[:, 0] > 0) & (model.counts[:, 2] > 0)
        cases[name] = PairedCounts(list(compress(model.cases, tried)), model.counts[tried])
        sizes.update(zip(*cases[name].counts[:, [0, 2]].T.tolist(), strict=True))
    compared = _GateInputs(
        pairing=pairing,
        cases=cases,
        shared={name: len(model.cases) for name, model in models.items()},
        missing_share={},
        sizes=sizes,
        attempt_cost={},
        thing=(_tally_contents(baseline), _tally_contents(current)) if folder else ((), ()),
        policy=cases_policy(rule.cases, baseline, current),
    )
    sides = baseline.name, current.name
    return _decide_and_record(compared, sides, sorted(current.models), rule, folder=folder)


def _missing_share(trials: Sequence[Trials]) -> float:
    missing = sum(each.missing for each in trials)
    return missing / max(1, missing + sum(each.attempts for each in trials))


class _LookedTrials:
    """The attempts of one model as a look sees them: without who judged them."""

    def __init__(self, cases: Sequence[Trials]) -> None:
        self._cases = cases

    def __iter__(self) -> Iterator[Trials]:
        for trials in self._cases:
            yield replace(trials, judged_by=(), cached_from=(), further_scores=(), group="", limit=None)


def _looked_at(side: Side) -> dict[str, _LookedTrials]:
    """The data of a look."""
    return {name: _LookedTrials(cases) for name, cases in side.models.items()}


def _tally_contents(side: TallySide) -> list[object]:
    """All that the counts of a side say."""
    return [
        (name, list(tally.cases), [int(count) for count in tally.tried], [int(count) for count in tally.passed])
        for name, tally in sorted(side.models.items())
    ]


class _Question(NamedTuple):
    """What is asked of a run, and which looks at it there were."""

    baseline: str
    """A digest of its baseline and of how they are compared."""
    earlier: Sequence[GateLook]
    folder: Path | None
    """Where this look is written down."""


def _decide_and_record(
    compared: _GateInputs,
    names: tuple[str, str],
    models: Sequence[str],
    rule: GateRule,
    *,
    folder: Path | None,
    at: SamplingRound | Mapping[str, SamplingRound] | None = None,
) -> GateResult:
    alpha, margin = rule.alpha, rule.margin
    _check_rule(rule, compared.policy)
    judged = {name: len(_names(cases)) for name, cases in compared.cases.items()}
    if not any(judged.values()) and compared.pairing.rules_changed:
        raise NotComparableError(rules_changed_sentence(names[0], compared.pairing.rules_changed))
    if not any(judged.values()) and compared.pairing.replies_shared:
        raise NotComparableError(replies_shared_sentence(names[0], compared.pairing.replies_shared))
    if not any(judged.values()):
        raise NotComparableError(f"{names[0]} and {names[1]} have no judged case in common")
    before, now_there = compared.thing
    held_against = streamed_digest(before, models, margin, alpha, rule.on)
    earlier = [look for look in (gate_looks(folder) if folder else ()) if look.baseline == held_against]
    question = _Question(held_against, earlier, folder)
    if isinstance(now_there, Mapping) and (isinstance(at, Mapping) or any(look.model for look in earlier)):
        rounds = at if isinstance(at, Mapping) else {}
        return _decide_each(compared, names[0], rule, question, now_there=now_there, at=rounds)
    together = None if isinstance(at, Mapping) else at
    shown = streamed_digest(now_there)
    levels, look = look_levels(earlier, shown, alpha, together)
    _check_level(levels, look, alpha)
    decision = _decided(compared, rule, levels, [name for name in judged if judged[name]])
    _record(question, shown, alpha, levels, decision.verdict, at=together)
    # a run that asks in rounds is meant to be looked at more than once
    counted_look = 1 if at else look
    warnings = _warnings(names[0], compared, counted_look, alpha, levels.alarm)
    return GateResult(decision, compared.pairing, alpha, look, tuple(warnings))


def _decide_each(
    compared: _GateInputs,
    baseline: str,
    rule: GateRule,
    question: _Question,
    *,
    now_there: Mapping[str, object],
    at: Mapping[str, SamplingRound],
) -> GateResult:
    """The decision if every model is looked at separately, at its own attempts.

    By Holm's method over all looks: each level is divided by the number of models without those found to be worse so far,
    at this look or at an earlier one. While no alarm was false, that is at least the number of those that did not get worse.
    """
    names = [name for name, cases in compared.cases.items() if _names(cases)]
    shown = {name: streamed_digest(now_there[name]) for name in names}
    looks = {name: [look for look in question.earlier if look.model in ("", name)] for name in names}
    known = {name: next((look for look in looks[name] if look.data == shown[name]), None) for name in names}
    levels = {name: look_levels(looks[name], shown[name], rule.alpha, at.get(name)) for name in names}
    worse = {look.model for look in question.earlier if look.verdict == REGRESSED and look.model in names}
    found: dict[str, tuple[Decision, int]] = {}
    while True:
        for name in names:
            look = known[name]
            sharing = look.sharing if look else max(1, len(names) - len(worse - {name}))
            if name not in found or found[name][1] != sharing:
                _check_level(levels[name][0], levels[name][1], rule.alpha)
                found[name] = _decided(compared, rule, levels[name][0], [name], sharing), sharing
        newly = {name for name in names if found[name][0].verdict == REGRESSED} - worse
        worse |= newly
        if not newly:
            break
    for name in names:
        decision, sharing = found[name]
        _record(
            question._replace(earlier=looks[name]),
            shown[name],
            rule.alpha,
            levels[name][0],
            decision.verdict,
            at=at.get(name),
            model=name,
            sharing=sharing,
        )
    last = max(levels.values(), key=lambda each: each[1])
    counted_look = 1 if at else last[1]
    warnings = _warnings(baseline, compared, counted_look, rule.alpha, last[0].alarm)
    decision = joined_decision([found[name][0] for name in names])
    return GateResult(decision, compared.pairing, rule.alpha, last[1], tuple(warnings))


def _check_rule(rule: GateRule, policy: CasesPolicy) -> None:
    if not (0 < rule.alpha < 1 and 0 < rule.margin < 1):
        raise InputError(f"alpha and margin must be between 0 and 1, not {rule.alpha:g} and {rule.margin:g}")
    if policy.rule not in CASES_RULES:
        raise InputError(f'cases that got worse mean {" or ".join(CASES_RULES)}, not "{policy.rule}"')
    if not 0 <= rule.min_effect < 1:
        raise InputError(f"the least effect that counts must be between 0 and 1, not {rule.min_effect:g}")


def _check_level(levels: GateLevels, look: int, alpha: float) -> None:
    if min(levels.alarm, levels.cleared) < MIN_LOOK_ALPHA_SHARE * alpha:
        raise InputError(
            f"{look - 1} looks at this run have used up its error rate of {alpha:g}; decide with a new run"
        )


def _decided(
    compared: _GateInputs, rule: GateRule, levels: GateLevels, names: Sequence[str], sharing: int = 1
) -> Decision:
    """The decision about these models, with alarms at a share of these levels."""
    return decide(
        {name: _finished_cases(compared.cases[name]) if levels.final else compared.cases[name] for name in names},
        alpha=levels.alarm / sharing,
        cleared_level=levels.cleared,
        final_level=levels.final / sharing,
        margin=rule.margin,
        threshold=rule.margin,
        unscored_share={
            name: max(
                1 - len(_names(compared.cases[name])) / max(1, compared.shared[name]),
                compared.missing_share.get(name, 0),
            )
            for name in names
        },
        attempt_cost=compared.attempt_cost,
        on=rule.on,
        min_effect=rule.min_effect,
        policy=compared.policy,
    )


def _record(
    question: _Question,
    shown: str,
    alpha: float,
    levels: GateLevels,
    verdict: str,
    *,
    at: SamplingRound | None,
    model: str = "",
    sharing: int = 1,
) -> None:
    """Write a look down, unless it is one that was there before."""
    if question.folder is None or shown in {one.data for one in question.earlier}:
        return
    entry = GateLook(
        at=now(),
        baseline=question.baseline,
        data=shown,
        alpha=alpha,
        level=levels.alarm,
        spent=levels.alarm_spent,
        cleared_level=levels.cleared,
        cleared_spent=levels.cleared_spent,
        final_level=levels.final,
        attempts=at.step.attempts if at else 0,
        model=model,
        sharing=sharing,
        verdict=verdict,
    )
    record_gate_look(question.folder, entry)


def _names(cases: Sequence[PairedCase] | PairedCounts) -> Sequence[object]:
    return cases.cases if isinstance(cases, PairedCounts) else cases


def gate(
    baseline: str | Path,
    current: str | Path,
    *,
    alpha: float = 0.05,
    margin: float = 0.05,
    on: str | None = None,
    cases: CasesRule | None = None,
    min_effect: float = 0.0,
    rule: str | None = None,
    root: Path = DEFAULT_RUNS_FOLDER,
    counting: CountingOptions = LOCAL_COUNTING,
    scores: ScoreReading = PLAIN_SCORES,
) -> GateResult:
    """The decision about two sides, named as for the command line; looks at a run are counted in its folder.

    Runs are found by name below `root`. A `Path` is a folder or a file, never a name. A side may also be Parquet files
    with a row per attempt, or a folder of runs: then only outcomes are compared, and `counting` says how they are read.
    `scores` says how the scores of other tools are meant; where `on` does not say what is compared, the outcomes do.
    """
    measure = next((known for known in COMPARED_MEASURES if known == on), None)
    if on is not None and measure is None:
        raise InputError(f'sides are compared on {" or ".join(COMPARED_MEASURES)}, not on "{on}"')
    names = [str(name.absolute()) if isinstance(name, Path) else name for name in (baseline, current)]
    if scores.name is not None:
        measure = measure or "score"

    def known_sides() -> list[Side | None]:
        """Each side, None for attempts in Parquet of which only passes are counted."""
        paths = [split_run_and_model(name)[0] for name in names]
        return [
            None
            if is_attempts_path(path) and not is_score_table(path, scores, is_score_asked=measure == "score")
            else side(name, rule=rule, root=root, columns=counting.columns, scores=scores)
            for path, name in zip(paths, names, strict=True)
        ]

    sides = known_sides()
    if measure is None and None in sides and any(each and side_measure(each) == "score" for each in sides):
        # what one side has graded is compared by its scores on both
        measure = "score"
        sides = known_sides()
    if sides[0] is not None and sides[1] is not None:
        old, new = sides[0], sides[1]
        found = gate_sides(
            old,
            new,
            alpha=alpha,
            margin=margin,
            on=measure,
            cases=cases,
            min_effect=min_effect,
            folder=run_folder(names[1], root=root),
        )
        return found._replace(warnings=(*old.warnings, *new.warnings, *found.warnings))
    for name, whole in zip(names, sides, strict=True):
        if whole is None and on is None:
            refuse_graded_runs(split_run_and_model(name)[0])
    if measure == "score" or rule is not None:
        raise InputError(
            "attempts in Parquet have passes and no scores: they are compared with --on passed, and without --rule"
        )
    tallied: list[TallySide] = []
    warnings: list[str] = []
    for name, whole in zip(names, sides, strict=True):
        if whole is None:
            attempts, problems = _attempts_side(name, counting, root)
            tallied.append(attempts)
            warnings += map(str, problems)
        else:
            tallied.append(_as_tallies(whole))
            warnings += [*whole.warnings, *_left_out_of_tallies(whole)]
    folder = None if sides[1] is None else run_folder(names[1], root=root)
    decided_by = GateRule(alpha, margin, "passed", cases, min_effect)
    found = gate_tallies(*tallied, rule=decided_by, folder=folder)
    return found._replace(warnings=(*warnings, *found.warnings))


def _attempts_side(name: str, counting: CountingOptions, root: Path) -> tuple[TallySide, Sequence[Problem]]:
    """The attempts that a name stands for, of all models or of the one that it ends with."""
    path, at, model = split_run_and_model(name)
    tallies, problems = parquet_outcomes([path], counting, root=root)
    models = {tally.model: tally for tally in tallies}
    if at and model not in models:
        raise InputError(f'{path}: no model "{model}" ({did_you_mean(model, models)})')
    return TallySide(name, {model: models[model]} if at else models), problems


def _as_tallies(side: Side) -> TallySide:
    """The counts of a side; with Parquet it is unknown which replies are shared, so cases with cached ones are left out."""
    models = {}
    for name, cases in side.models.items():
        own = [trials for trials in cases if not trials.cached_from]
        counts = [trials.attempts for trials in own], [trials.passes for trials in own]
        models[name] = Tally(name, [trials.case for trials in own], *counts)
    return TallySide(side.name, models)


def _left_out_of_tallies(side: Side) -> list[str]:
    cases = sorted({trials.case for model in side.models.values() for trials in model if trials.cached_from})
    more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
    why = f"{side.name}: cases with replies from the reply cache are not compared with attempts in Parquet"
    return [f"{why}: {', '.join(cases[:5])}{more}"] if cases else []


def look_levels(
    earlier: Sequence[GateLook], shown: str, alpha: float, at: SamplingRound | None
) -> tuple[GateLevels, int]:
    """The levels of this look, and which it is; looking again at the same attempts is the same look."""
    distinct = {look.data: look for look in earlier}
    for place, look in enumerate(distinct.values(), 1):
        if look.data == shown:
            return GateLevels(look.level, look.spent, look.cleared_level, look.cleared_spent, look.final_level), place
    alarm_left = max(0.0, alpha - math.fsum(look.spent for look in distinct.values()))
    cleared_left = max(0.0, alpha - math.fsum(look.cleared_spent for look in distinct.values()))
    if at is None:
        alarm, cleared = LOOK_ALPHA_SHARE * alarm_left, LOOK_ALPHA_SHARE * cleared_left
        return GateLevels(alarm, alarm, cleared, cleared), len(distinct) + 1
    # the rounds split alpha among themselves; a look outside the rounds has already spent some of it
    final = min(FINAL_TEST_SHARE * alpha, alarm_left) if at.finishing else 0.0
    same = [look for look in distinct.values() if look.attempts == at.step.attempts]
    if same and at.finishing:
        # what all cases got was looked at before; only the last test of some cases is new
        return GateLevels(same[0].level, final, same[0].cleared_level, 0.0, final), len(distinct) + 1
    alarm = min(at.step.alarm, alarm_left - final)
    cleared_spent = min(at.step.cleared, cleared_left)
    cleared = at.step.cleared_level if cleared_spent == at.step.cleared else cleared_spent
    return GateLevels(alarm, alarm + final, cleared, cleared_spent, final), len(distinct) + 1


def _finished_cases(cases: Sequence[PairedCase] | PairedCounts) -> Sequence[PairedCase] | PairedCounts:
    """The cases whose attempts are all in: those that got further ones, or in the last round all."""
    if isinstance(cases, PairedCounts):
        return cases
    if any(case.further_attempts is not None for case in cases):
        return cases
    return [replace(case, further_attempts=0) for case in cases]


def _is_comparable(old: Trials, new: Trials, on: ComparedMeasure) -> bool:
    """Whether both sides have an outcome, and where scores are compared a score for every attempt."""
    if on == "score":
        return (new.further_attempts or 0) == len(new.every_further_score) and all(
            trials.attempts and trials.attempts == sum(times for _, times in trials.scores) for trials in (old, new)
        )
    return bool(old.attempts and new.attempts)


def _paired_case(old: Trials, new: Trials, on: ComparedMeasure) -> PairedCase:
    return PairedCase(
        case=new.case,
        baseline_attempts=old.attempts,
        baseline_passes=old.passes,
        current_attempts=new.attempts,
        current_passes=new.passes,
        critical=new.critical,
        # a case without a group is one of its own
        group=pair_group(old, new) if old.group or new.group else "",
        baseline_scores=old.every_score if on == "score" else (),
        current_scores=new.every_score if on == "score" else (),
        further_attempts=new.further_attempts,
        further_passes=new.further_passes,
        further_scores=new.every_further_score if on == "score" else (),
    )


def _mean_attempt_cost(cases: Sequence[tuple[Trials, Trials]]) -> float | None:
    """What an attempt costs on average now; None if a price is unknown."""
    attempts = sum(new.attempts for _, new in cases)
    if not attempts or any(new.attempts and new.cost_usd is None for _, new in cases):
        return None
    return sum(new.cost_usd or 0.0 for _, new in cases if new.attempts) / attempts


def _warnings(baseline: str, compared: _GateInputs, look: int, alpha: float, level: float) -> Sequence[str]:
    warnings = []
    if compared.pairing.rules_changed:
        warnings.append(rules_changed_sentence(baseline, compared.pairing.rules_changed))
    if compared.pairing.limits_changed:
        warnings.append(limits_changed_sentence(baseline, compared.pairing.limits_changed))
    if compared.pairing.replies_shared:
        warnings.append(replies_shared_sentence(baseline, compared.pairing.replies_shared))
    if look > 1:
        warnings.append(f"look {look} at this run: of the error rate {alpha:g} this one may spend {level:.4g}")
    fewest = min((before for before, _ in compared.sizes), default=0)
    if fewest < THIN_BASELINE_ATTEMPTS and (flagged := unlucky_alarms(compared.sizes, alpha=alpha)) is not None:
        warnings.append(
            f"{baseline} has as few as {counted(fewest, 'attempt')} per case: one such baseline in ten is luckily "
            f"high and flags up to {flagged:.0%} of harmless changes, not {100 * alpha:.2g}%; pool several runs with steelyard bless"
        )
    pairing = compared.pairing
    for what, names in (
        (f"models that {baseline} lacks", pairing.new_models),
        (f"models that only {baseline} has", pairing.removed_models),
        (f"{len(pairing.tests_changed)} cases are judged by other tests now and", pairing.tests_changed),
        (f"{len(pairing.removed_cases)} cases were removed and", pairing.removed_cases),
    ):
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            warnings.append(f"{what} are not compared: {', '.join(names[:5])}{more}")
    return warnings
