"""The decision about two runs that judges decided about, by rates that people's labels correct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.judged_rates import JudgedRate, LabelledAnswer, judged_rates
from steelyard.comparison.gate import CANNOT_TELL, NOT_REGRESSED, REGRESSED, GateVerdict
from steelyard.records import Record
from steelyard.stats.judged import corrected_difference, corrected_rate

CORRECTED_LEVEL_SHARE = 0.75
"""The share of a level at which bounds are taken: corrected intervals are approximate, and miss up to 1.3 times as often on one side."""


class JudgedModelDecision(Record, frozen=True, kw_only=True):
    """What is decided about one model."""

    model: str
    verdict: GateVerdict
    cases: int
    baseline: JudgedRate
    current: JudgedRate
    raw_effect: float | None
    """Current - baseline as the judges see it."""
    effect: Estimate
    """The same, corrected, with its 95% interval."""
    alarm_bound: float | None = None
    """Below 0 the model got worse: the highest change that the evidence leaves open at the level of this look."""
    drop_bound: float | None = None
    """The largest drop that the evidence leaves open."""


class JudgedDecision(Record, frozen=True, kw_only=True):
    """What is decided about all models."""

    verdict: GateVerdict
    models: tuple[JudgedModelDecision, ...]
    alpha: float
    """What this look may spend on false alarms, over all models."""
    margin: float


def decide_judged(
    models: Mapping[str, tuple[Sequence[LabelledAnswer], Sequence[LabelledAnswer]]],
    *,
    alpha: float,
    cleared_level: float,
    margin: float,
) -> JudgedDecision:
    """Whether models got worse, by the corrected difference over the cases of both sides; models share alpha (Bonferroni).

    A model regressed if its one-sided interval lies below 0, and did not if a drop of the margin is outside of it. A model
    without labels of its own on both sides is left open: borrowed errors of judges would not be evidence.
    """
    decisions = tuple(
        _model_decision(name, *sides, alpha / len(models), cleared_level, margin) for name, sides in models.items()
    )
    verdicts = {each.verdict for each in decisions}
    verdict = next((each for each in (REGRESSED, CANNOT_TELL) if each in verdicts), NOT_REGRESSED)
    return JudgedDecision(verdict=verdict, models=decisions, alpha=alpha, margin=margin)


def _model_decision(
    name: str,
    baseline: Sequence[LabelledAnswer],
    current: Sequence[LabelledAnswer],
    alpha: float,
    cleared_level: float,
    margin: float,
) -> JudgedModelDecision:
    (old,), (new,) = judged_rates(baseline).models, judged_rates(current).models
    raw = None if old.raw.value is None or new.raw.value is None else new.raw.value - old.raw.value
    cases = len({answer.identity.case for answer in current})
    verdict: GateVerdict = CANNOT_TELL
    effect, alarm, drop = Estimate(value=None), None, None
    if {old.method, new.method} == {"own labels"}:
        sides = [[answer.judged for answer in side] for side in (baseline, current)]
        ends = {}
        alarm_level, drop_level = (1 - 2 * CORRECTED_LEVEL_SHARE * each for each in (alpha, cleared_level))
        for level in (0.95, alarm_level, drop_level):
            first, second = (corrected_rate(side, level=level) for side in sides)
            if first is None or second is None:
                break
            ends[level] = corrected_difference(first, second)
            value = second.value - first.value
        else:
            low, high = ends[0.95]
            effect = Estimate(value=value, low=low, high=high, cases=cases)
            alarm, drop = ends[alarm_level].high, -ends[drop_level].low
            verdict = REGRESSED if alarm < 0 else NOT_REGRESSED if drop < margin else CANNOT_TELL
    return JudgedModelDecision(
        model=name,
        verdict=verdict,
        cases=cases,
        baseline=old,
        current=new,
        raw_effect=raw,
        effect=effect,
        alarm_bound=alarm,
        drop_bound=drop,
    )
