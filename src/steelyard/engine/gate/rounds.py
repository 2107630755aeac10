"""A run that asks in rounds, and stops as soon as a gate can decide."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.analysis.measure import ComparedMeasure
from steelyard.comparison.exact_tests import CasesRule
from steelyard.comparison.gate import CANNOT_TELL, NOT_REGRESSED, Decision, ModelDecision
from steelyard.comparison.sides import PairedModel, Side, Trials, pair_sides, rules_changed_sentence
from steelyard.engine.gate.gate import GateResult, SamplingRound, gate_sides, side_measure
from steelyard.engine.gate.sides import side
from steelyard.engine.options import RunOptions
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import close_providers, connect
from steelyard.engine.results.conclusion import Conclusion, OnInconclusive
from steelyard.engine.resume import resume
from steelyard.engine.run import Run, run
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import InputError, NotComparableError
from steelyard.plugins.user_functions import examined_sources
from steelyard.records import Case, RunInfo, StoppingRule
from steelyard.reports.comparison import DECISION_FORMATS
from steelyard.reports.figures import money
from steelyard.stats.futility import FutureLook, chance_to_decide
from steelyard.stats.multiplicity import design, looks
from steelyard.stats.paired import PairedCaseCounts
from steelyard.store.journal import StoredRun
from steelyard.text import counted

DEFAULT_MAX_SAMPLES = 20
"""The default maximum of attempts per case."""
UNASKED_MIN_SAMPLES, UNASKED_MAX_SAMPLES = 3, 10
"""The minimum and maximum attempts per case of a run that names a baseline and no number of attempts."""
SUSPICIOUS_P_VALUE = 0.1
"""A case that dropped, with a p-value up to this, gets all attempts before the suite is cleared."""

NAMEABLE_P_VALUE = 0.02
"""While a case has dropped with a p-value up to this, further attempts may name it."""
HOPELESS_CHANCE = 0.05
"""A run that all further attempts would decide with a smaller chance than this is asked no further."""
HOPELESS_SENTENCE = (
    "stopped, because the attempts still allowed would decide with a chance below 5%; more attempts of the baseline would help: "
    "bless several runs"
)

MessageCallback = Callable[[str], None]


class SequentialRunResult(NamedTuple):
    """A run and the decision it ended with."""

    run: Run
    gated: GateResult | None
    """None when something kept the run from being asked to its end."""
    asked: int
    """Attempts that were asked for."""
    planned: int
    """Attempts of a run that asks for all of them at once."""
    saved_usd: float | None
    """What the difference would have cost; None if a price is unknown."""

    @property
    def saved(self) -> float:
        """The share of attempts that were not needed."""
        return 1 - self.asked / self.planned if self.planned else 0.0

    @property
    def text(self) -> str:
        """What was decided and what that saved; empty if nothing was looked at."""
        if self.gated is None:
            return ""
        decided = DECISION_FORMATS["text"](self.gated.decision, self.gated.warnings)
        if self.gated.decision.verdict == CANNOT_TELL:
            return f"{decided}\n{self.asked:,} of {self.planned:,} allowed attempts did not decide\n"
        worth = "" if self.saved_usd is None else f", about {money(self.saved_usd)}"
        return f"{decided}\n{self.asked:,} attempts decided; {self.planned:,} were allowed: {self.saved:.0%} saved{worth}\n"

    @property
    def decided_run(self) -> Run:
        """The run with its decision."""
        if self.gated is None:
            return self.run
        return self.run._replace(decision=self.gated.decision, decision_text=self.text)

    def conclusion(self, *, fail_under: float | None = None, on_inconclusive: OnInconclusive = "pass") -> Conclusion:
        """The exit code, and what to say beside the decision."""
        return self.decided_run.conclusion(fail_under=fail_under, on_inconclusive=on_inconclusive)


def stopping_rule(
    baseline: str | None,
    *,
    until_decided: bool,
    max_samples: int | None = None,
    samples: int | None = None,
    shard: tuple[int, int] | None = None,
    alpha: float = 0.05,
    margin: float = 0.05,
    cases: CasesRule | None = None,
    min_effect: float = 0.0,
    on: ComparedMeasure | None = None,
) -> StoppingRule | None:
    """When to stop asking; None if no gate decides that. A baseline without a number of attempts means: until decided."""
    is_unasked = not until_decided and baseline is not None and samples is None and shard is None
    if not until_decided and not is_unasked:
        for name, given in (("--baseline", baseline), ("--max-samples", max_samples)):
            if given is not None:
                raise InputError(f"{name} belongs to --until-decided; a finished run is decided by: steelyard gate")
        return None
    if baseline is None:
        raise InputError("--until-decided needs a --baseline; make one with: steelyard bless RUN --as NAME")
    if shard is not None:
        raise InputError("--until-decided looks at all cases after every round, and a --shard has only some of them")
    if samples is not None:
        raise InputError("--until-decided finds out how many attempts it needs; --max-samples N bounds them")
    usual = UNASKED_MAX_SAMPLES if is_unasked else DEFAULT_MAX_SAMPLES
    most = usual if max_samples is None else max_samples
    return StoppingRule(
        baseline=baseline,
        most=most,
        least=UNASKED_MIN_SAMPLES if is_unasked else 1,
        alpha=alpha,
        margin=margin,
        cases=cases or "",
        min_effect=min_effect,
        on=on or "",
    )


def run_until_decided(
    cases: Sequence[Case],
    *,
    until: StoppingRule,
    models: Sequence[str],
    means: RunOptions,
    tell: MessageCallback,
    base_url: str,
    announcement: str = "",
    **asked: Any,
) -> SequentialRunResult:
    """Ask for a few attempts at each case, look, and ask for more until the gate can decide or all are asked.

    What cannot be compared is found before the announcement is made and anything is asked.
    """
    if until.most < 1:
        raise InputError(f"--max-samples must be 1 or more, not {until.most}")
    root = Path(means.settings.output_dir)
    baseline = side(until.baseline, root=root)
    until = replace(until, on=until.on or side_measure(baseline))
    if until.on == "score" and baseline.rule != (rule := asked.get("rule") or "code"):
        raise InputError(
            f'{baseline.name} is scored by rule "{baseline.rule}", this run by "{rule}"; name one with --rule'
        )
    examined_sources.clear()  # of an earlier run: functions may have been written anew since
    providers = connect(models, means, base_url)
    try:
        _check_comparable(baseline, providers, cases, means)
        counts = [one.available(case.id) for one in providers.values() for case in cases]
    finally:
        run_coroutine(close_providers(providers))
    recorded = max((count for count in counts if count is not None), default=0)
    until = replace(until, most=min(until.most, recorded or until.most))
    if announcement:
        tell(announcement)
    done = run(
        cases, models=models, samples=min(until.least, until.most), until=until, means=means, base_url=base_url, **asked
    )
    return continue_until_decided(done, means=means, tell=tell)


def continue_until_decided(done: Run, *, means: RunOptions, tell: MessageCallback) -> SequentialRunResult:
    """Continue a run until the gate can decide; each of several models is decided and stopped separately."""
    until = done.info.until
    if until is None:
        raise InputError(f"{done.folder}: was not run with --until-decided")
    root = Path(means.settings.output_dir)
    baseline = side(until.baseline, root=root)
    found = None
    while done.complete or done.out_of_budget:
        current = side(str(done.folder), root=root)
        pairing = pair_sides(baseline, current)
        rounds = {
            model.name: sampling_round(model, _run_name(model.name, done.info), done.info, until)
            for model in pairing.models
        }
        is_single = len(rounds) == 1
        found = gate_sides(
            baseline,
            current,
            alpha=until.alpha,
            margin=until.margin,
            on=until.on or None,
            cases=until.cases or None,
            min_effect=until.min_effect,
            folder=done.folder,
            at=next(iter(rounds.values())) if is_single else rounds,
        )
        for model in found.decision.models:
            # a stopped model is announced once
            if is_single or model.model not in done.info.stopped or model.model in done.info.more:
                name = "" if is_single else f"{model.model}: "
                attempts = counted(rounds[model.model].step.attempts, "attempt")
                tell(f"{name}{attempts} per case: {_decision_line(model)}")
        hopeless = hopeless_models(found.decision, pairing.models, rounds)
        following = None
        if not done.out_of_budget:
            following = following_round(found.decision, done.info, rounds, until, hopeless)
            for each in sorted(hopeless):
                tell(f"{'' if is_single else f'{each}: '}{HOPELESS_SENTENCE}")
        if following is None:
            break
        if following.suspicious:
            count = counted(following.suspicious, "case")
            tell(f"looking worse than before: {count}; each gets {until.most} attempts before the suite is cleared")
        done = resume(
            done.folder,
            samples=following.samples,
            more=following.more,
            stopped=following.stopped,
            means=means,
        )
    return _sequential_run_result(done, found, until)


class FollowingRound(NamedTuple):
    """What is asked next."""

    samples: int
    more: dict[str, dict[str, int]]
    stopped: dict[str, int]
    suspicious: int
    """The cases that get all attempts from now on."""


def _run_name(model: str, info: RunInfo) -> str:
    """What the run calls a model: with one on each side, the comparison calls it by both names."""
    return info.names[0] if len(info.names) == 1 else model


def hopeless_models(decision: Decision, models: Iterable[PairedModel], rounds: Mapping[str, SamplingRound]) -> set[str]:
    """The open models that all attempts still allowed would hardly decide.

    That ends in the same answer as before, at fewer attempts; an alarm or an all-clear is made no more likely by it.
    """
    if decision.rule.on != "passed":
        return set()
    pairs = {model.name: [pair for pair in model.cases if all(each.attempts for each in pair)] for model in models}
    return {
        model.model
        for model in decision.models
        if model.verdict == CANNOT_TELL
        and not rounds[model.model].finishing
        and not model.data_missing
        and not model.critical
        and not any(change.p <= NAMEABLE_P_VALUE for change in model.suspects)
        and _chance_to_decide(pairs[model.model], rounds[model.model], decision) < HOPELESS_CHANCE
    }


def _chance_to_decide(pairs: Sequence[tuple[Trials, Trials]], here: SamplingRound, decision: Decision) -> float:
    future = [
        FutureLook([max(new.attempts, step.attempts) for _, new in pairs], step.alarm, step.cleared_level)
        for step in here.following
    ]
    counts = [PairedCaseCounts(old.attempts, old.passes, new.attempts, new.passes) for old, new in pairs]
    return chance_to_decide(counts, future, margin=decision.rule.margin)


def sampling_round(model: PairedModel, name: str, info: RunInfo, until: StoppingRule) -> SamplingRound:
    """Where a model is."""
    attempts = info.stopped.get(name, info.samples or 1)
    steps = design(
        until.most,
        baseline_attempts=_typical_baseline_attempts(model),
        alpha=until.alpha,
        first=until.least,
    )
    place = next((place for place, step in enumerate(steps) if step.attempts >= attempts), len(steps) - 1)
    is_finishing = name in info.more or attempts >= until.most
    return SamplingRound(steps[place], is_finishing, () if is_finishing else steps[place + 1 :])


def following_round(
    decision: Decision,
    info: RunInfo,
    rounds: Mapping[str, SamplingRound],
    until: StoppingRule,
    hopeless: Container[str] = (),
) -> FollowingRound | None:
    """The attempts to ask for next, for undecided models and for cases that look worse; None if there are none."""
    more = {model: dict(cases) for model, cases in info.more.items()}
    stopped, suspicious, is_going = dict(info.stopped), 0, False
    for model in decision.models:
        name, here = _run_name(model.model, info), rounds[model.model]
        if model.verdict == CANNOT_TELL and not here.finishing and model.model not in hopeless:
            is_going = True
            continue
        stopped.setdefault(name, info.samples or 1)
        if model.verdict == NOT_REGRESSED and not here.finishing and decision.rule.cases == "fail":
            cases = {change.case: until.most for change in model.suspects if change.p <= SUSPICIOUS_P_VALUE}
            suspicious += len(cases)
            more |= {name: cases} if cases else {}
    if not is_going and not suspicious:
        return None
    samples = info.samples or 1
    if is_going:
        samples = next(number for number in looks(until.most) if number > samples)
    return FollowingRound(samples, more, stopped if is_going else dict(info.stopped), suspicious)


def _check_comparable(baseline: Side, models: Iterable[str], cases: Sequence[Case], means: RunOptions) -> None:
    """Refuse what has no case and model in common with its baseline."""
    verifying = VerifierSet(cases, means)
    planned = tuple(
        Trials(
            case=case.id,
            tests=case.tests_digest,
            judged_by=verifying.rules(case),
            attempts=0,
            passes=0,
        )
        for case in cases
    )
    pairing = pair_sides(baseline, Side(name="this run", rule=baseline.rule, models=dict.fromkeys(models, planned)))
    if not any(model.cases for model in pairing.models):
        if pairing.rules_changed:
            raise NotComparableError(rules_changed_sentence(baseline.name, pairing.rules_changed))
        raise InputError(f"{baseline.name} has none of these cases with these tests, so nothing could be decided")


def _typical_baseline_attempts(model: PairedModel) -> float:
    """The harmonic mean of the baseline's attempts at a case: what the variance of a mean over cases depends on."""
    tried = [old.attempts for old, _ in model.cases if old.attempts]
    return len(tried) / sum(1 / attempts for attempts in tried) if tried else 1.0


def _decision_line(model: ModelDecision) -> str:
    """Where the decision about a model stands, in one line."""
    if model.verdict != CANNOT_TELL:
        return model.verdict
    if model.drop_bound is None:
        return "cannot tell yet"
    return f"cannot tell yet, a drop of up to {min(model.drop_bound, 1) * 100:.1f} points cannot be ruled out"


def _sequential_run_result(done: Run, found: GateResult | None, until: StoppingRule) -> SequentialRunResult:
    stored = StoredRun(done.folder)
    planned = until.most * len(stored.cases) * len(done.info.names)
    models = done.summary.models
    asked = sum(model.attempts for model in models)
    paid = sum(model.cost_usd or 0.0 for model in models)
    known = asked and not any(model.unpriced or model.cost_usd is None for model in models)
    return SequentialRunResult(done, found, asked, planned, paid * (planned - asked) / asked if known else None)
