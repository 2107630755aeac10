"""Whether the runs of a baseline's history got worse: at once, or so slowly that no gate saw it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal, NamedTuple

from msgspec.structs import replace

from steelyard.analysis.estimates import Estimate
from steelyard.comparison.sides import Trials, pair_group
from steelyard.records import Record
from steelyard.stats.drift import drift_evidence
from steelyard.stats.intervals import Interval, wilson
from steelyard.stats.paired import PairedCaseCounts, difference_interval, fisher_worse, stratified_worse
from steelyard.stats.stratified import Stratum, stratified_interval

NEW_MODELS_ALPHA_SHARE = 0.8
"""What the models that appear together may spend of the error rate that is left; the rest is kept for models to come."""
MAX_CHANGED_CASES = 5
"""Cases that are listed with an alarm."""

DriftDirection = Literal["worse", "better"]
DriftShape = Literal["change", "drift"]
"""What describes the runs better: a step at one run, or a slope over all."""
HistoryVerdict = Literal["got worse", "no drift seen", "too short"]


class HistoryEntry(Record, frozen=True, kw_only=True):
    """A run that was blessed."""

    run: str
    """Its id, or the name of the file that it was read from."""
    at: str = ""
    """When it started, otherwise when it was blessed."""
    runs: tuple[str, ...] = ()
    """The ids of the runs that it is made of, as far as they are known."""
    rule: str = "code"
    models: dict[str, tuple[Trials, ...]]


class WatchedRun(Record, frozen=True, kw_only=True):
    """One run of a history, and what was known when it came."""

    run: str
    at: str
    rate: Estimate
    """The mean pass rate; its interval is about these cases."""
    compared_cases: int = 0
    """The cases that earlier runs have too."""
    p_worse: float | None = None
    """How likely it looks as bad beside all earlier runs when nothing changed; None for the first."""
    p_better: float | None = None
    worse: float = 1.0
    """The current evidence that runs got worse: it reaches 1 / level with a chance of at most `level`, if nothing ever changes."""
    better: float = 1.0


class CaseShift(Record, frozen=True, kw_only=True):
    """A case before and after a change."""

    case: str
    before: float
    after: float
    p: float
    """How likely this case alone differs as much when it did not change; of those looked at after the alarm."""


class DriftAlarm(Record, frozen=True, kw_only=True):
    """The runs are not alike."""

    direction: DriftDirection
    number: int
    """The run with which the evidence sufficed, counted from 1."""
    evidence: float
    """The most that it has been."""
    shape: DriftShape
    """What describes the runs better; a description, not a test."""
    since: int
    """The run with which a step most likely began, counted from 1."""
    before: float
    after: float
    """The mean pass rates of the shared cases before that run, and from it on."""
    effect: Estimate
    """The mean of after - before over these cases."""
    per_run: float
    """The mean change from one run to the next, if it were a slope."""
    cases: tuple[CaseShift, ...] = ()
    """Those that changed most in this direction, the surest first."""


class ModelHistory(Record, frozen=True, kw_only=True):
    """One model over all runs that have it."""

    model: str
    level: float
    """How likely a false alarm in one direction is, over all runs there will ever be."""
    runs: tuple[WatchedRun, ...]
    alarms: tuple[DriftAlarm, ...] = ()


class HistoryWatch(Record, frozen=True, kw_only=True):
    """What the history of a baseline shows."""

    baseline: str
    alpha: float
    """How likely any model is said to have got worse, over the whole life of the history, if nothing ever changes."""
    verdict: HistoryVerdict
    models: tuple[ModelHistory, ...]
    notes: tuple[str, ...] = ()


class _Stream(NamedTuple):
    """What runs say about one case, as long as its tests and rules are the same."""

    counts: dict[int, tuple[int, int]]
    """Attempts and passes by the number of the run."""
    sources: set[str]
    """The runs that asked for the replies."""
    trials: Trials
    """The last ones."""

    def total(self, first: int, end: float = math.inf) -> tuple[int, int]:
        """The attempts and passes of the runs from one number up to another."""
        chosen = [counts for number, counts in self.counts.items() if first <= number < end]
        return sum(tried for tried, _ in chosen), sum(passed for _, passed in chosen)


def watch_history(baseline: str, entries: Sequence[HistoryEntry], *, alpha: float = 0.05) -> HistoryWatch:
    """Whether runs got worse, with a chance of at most alpha of ever saying so if nothing changes.

    Each run is compared with all earlier ones by the exact stratified test of the gate. `stats.drift` explains how
    the p-values of a growing history are combined. The error rate is divided among the models, and holds for each direction.
    """
    levels = _levels(entries, alpha)
    models = []
    shared: set[str] = set()
    for name in sorted(levels):
        own = [entry for entry in entries if name in entry.models]
        streams = list(_streams(name, own, shared))
        models.append(_model_history(name, own, streams, levels[name]))
    is_worse = any(alarm.direction == "worse" for model in models for alarm in model.alarms)
    is_short = all(len(model.runs) < 2 for model in models)
    verdict: HistoryVerdict = "got worse" if is_worse else "too short" if is_short else "no drift seen"
    notes = [f"{len(shared)} runs have replies of other runs from the reply cache; where they do, they are not counted"]
    return HistoryWatch(
        baseline=baseline, alpha=alpha, verdict=verdict, models=tuple(models), notes=tuple(notes if shared else ())
    )


def _levels(entries: Sequence[HistoryEntry], alpha: float) -> Mapping[str, float]:
    """The error rate of each model: those that came together share alike, and those that come later have what is left."""
    levels: dict[str, float] = {}
    left = alpha
    for entry in entries:
        if fresh := [name for name in entry.models if name not in levels]:
            levels |= dict.fromkeys(fresh, round(NEW_MODELS_ALPHA_SHARE * left / len(fresh), 12))
            left *= 1 - NEW_MODELS_ALPHA_SHARE
    return levels


def _streams(model: str, entries: Sequence[HistoryEntry], shared: set[str]) -> Iterator[_Stream]:
    """The cases of a model; one whose tests changed counts as another case afterwards."""
    found: dict[tuple[str, str, tuple[str, ...]], _Stream] = {}
    for number, entry in enumerate(entries):
        for trials in entry.models[model]:
            if not trials.attempts:
                continue
            stream = found.setdefault((trials.case, trials.tests, trials.judged_by), _Stream({}, set(), trials))
            sources = {*trials.cached_from, *entry.runs}
            if trials.cached_from and sources & stream.sources:
                shared.add(entry.run)
                continue
            stream.sources.update(sources)
            stream.counts[number] = trials.attempts, trials.passes
    yield from found.values()


def _model_history(
    model: str, entries: Sequence[HistoryEntry], streams: Sequence[_Stream], level: float
) -> ModelHistory:
    runs: list[WatchedRun] = []
    every = _runs_and_earlier(streams, len(entries))
    for number, (entry, compared) in enumerate(zip(entries, every, strict=True)):
        runs.append(
            WatchedRun(
                run=entry.run,
                at=entry.at,
                rate=_rate([stream.counts[number] for stream in streams if number in stream.counts]),
                compared_cases=len(compared),
                p_worse=stratified_worse(compared) if number else None,
                p_better=stratified_worse(map(_failures, compared)) if number else None,
            )
        )
    worse, better = (
        drift_evidence([p for run in runs if (p := getattr(run, name)) is not None]) for name in ("p_worse", "p_better")
    )
    watched = [
        replace(run, worse=down, better=up) for run, down, up in zip(runs, [1.0, *worse], [1.0, *better], strict=True)
    ]
    directions: tuple[tuple[DriftDirection, list[float]], ...] = (("worse", worse), ("better", better))
    alarms = [
        _alarm(direction, number, max(evidence), streams, len(runs))
        for direction, evidence in directions
        for number in [place for place, value in enumerate(evidence, 2) if value >= 1 / level][:1]
    ]
    return ModelHistory(model=model, level=level, runs=tuple(watched), alarms=tuple(alarms))


def _runs_and_earlier(streams: Sequence[_Stream], runs: int) -> Iterator[list[PairedCaseCounts]]:
    """For each run its cases, beside all earlier runs."""
    totals = [(0, 0)] * len(streams)
    for number in range(runs):
        compared = []
        for place, stream in enumerate(streams):
            if number in stream.counts:
                (tried, passed), (more, gained) = totals[place], stream.counts[number]
                if tried:
                    compared.append(PairedCaseCounts(tried, passed, more, gained))
                totals[place] = tried + more, passed + gained
        yield compared


def _compared(streams: Sequence[_Stream], first: int) -> Iterator[tuple[_Stream, PairedCaseCounts]]:
    """The cases of the runs before a number, and from it on."""
    for stream in streams:
        before, after = stream.total(0, first), stream.total(first)
        if before[0] and after[0]:
            yield stream, PairedCaseCounts(*before, *after)


def _failures(case: PairedCaseCounts) -> PairedCaseCounts:
    """The same case with failures for passes: where these got fewer, it got better."""
    return PairedCaseCounts(
        case.baseline_attempts,
        case.baseline_attempts - case.baseline_passes,
        case.current_attempts,
        case.current_attempts - case.current_passes,
    )


def _rate(counts: Sequence[tuple[int, int]]) -> Estimate:
    """The mean pass rate over these very cases."""
    if not counts:
        return Estimate(value=None)
    rates = [passed / tried for tried, passed in counts]
    strata = [
        Stratum(rate, partial(_wilson, passed, tried)) for rate, (tried, passed) in zip(rates, counts, strict=True)
    ]
    interval = stratified_interval(strata)
    return Estimate(
        value=math.fsum(rates) / len(rates),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cases=len(counts),
        attempts=sum(tried for tried, _ in counts),
    )


@lru_cache(maxsize=4096)
def _wilson(passed: int, tried: int, level: float) -> Interval | None:
    return wilson(passed, tried, level=level)


def _alarm(
    direction: DriftDirection, number: int, evidence: float, streams: Sequence[_Stream], runs: int
) -> DriftAlarm:
    """An alarm with what describes the runs best."""
    sign = -1 if direction == "worse" else 1
    steps = {first: sign * _step_score(streams, first) for first in range(1, runs)}
    since = max(steps, key=lambda first: (steps[first], -first))
    slope_score, slope = _slope(streams)
    # the best of many steps reaches further by chance than the only slope
    is_step = max(steps[since], 0.0) ** 2 - 2 * math.log(max(1, runs - 1)) >= max(sign * slope_score, 0.0) ** 2
    compared = list(_compared(streams, since))
    before = [case.baseline_passes / case.baseline_attempts for _, case in compared]
    after = [case.current_passes / case.current_attempts for _, case in compared]
    inverse = math.fsum(1 / case.baseline_attempts + 1 / case.current_attempts for _, case in compared)
    interval = difference_interval(
        before,
        after,
        attempts=2 * len(compared) / inverse,
        groups=[pair_group(stream.trials, stream.trials) for stream, _ in compared],
    )
    shifts = [
        CaseShift(
            case=stream.trials.case,
            before=old,
            after=new,
            p=fisher_worse(case if direction == "worse" else _failures(case)),
        )
        for (stream, case), old, new in zip(compared, before, after, strict=True)
        if sign * (new - old) > 0
    ]
    return DriftAlarm(
        direction=direction,
        number=number,
        evidence=evidence,
        shape="change" if is_step else "drift",
        since=since + 1,
        before=math.fsum(before) / len(before),
        after=math.fsum(after) / len(after),
        effect=Estimate(
            value=math.fsum(new - old for old, new in zip(before, after, strict=True)) / len(before),
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            cases=len(compared),
        ),
        per_run=slope,
        cases=tuple(sorted(shifts, key=lambda shift: (shift.p, shift.case))[:MAX_CHANGED_CASES]),
    )


def _step_score(streams: Sequence[_Stream], first: int) -> float:
    """By how many standard errors the runs from a number on passed more than those before it (Mantel and Haenszel)."""
    excess, variance = 0.0, 0.0
    for _, case in _compared(streams, first):
        tried = case.baseline_attempts + case.current_attempts
        rate = (case.baseline_passes + case.current_passes) / tried
        excess += case.current_passes - case.current_attempts * rate
        variance += case.current_attempts * case.baseline_attempts * rate * (1 - rate) / max(1, tried - 1)
    return excess / math.sqrt(variance) if variance else 0.0


def _slope(streams: Sequence[_Stream]) -> tuple[float, float]:
    """By how many standard errors pass rates rise from run to run, and by how much on average.

    The score is that of Cochran 1954 and Armitage 1955, summed over the cases.
    """
    excess, variance, slopes = 0.0, 0.0, []
    for stream in streams:
        tried = sum(attempts for attempts, _ in stream.counts.values())
        passed = sum(passes for _, passes in stream.counts.values())
        centre = sum(number * attempts for number, (attempts, _) in stream.counts.items()) / max(1, tried)
        spread = sum(attempts * (number - centre) ** 2 for number, (attempts, _) in stream.counts.items())
        if spread:
            rising = sum((number - centre) * passes for number, (_, passes) in stream.counts.items())
            excess += rising
            variance += passed / tried * (1 - passed / tried) * spread
            slopes.append(rising / spread)
    if not variance:
        return 0.0, 0.0
    return excess / math.sqrt(variance), math.fsum(slopes) / len(slopes)
