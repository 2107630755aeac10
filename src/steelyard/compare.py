"""What changed between two runs by the plain rule: a case whose mean score dropped by more than a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.errors import InputError
from steelyard.pairing import paired
from steelyard.records import Record
from steelyard.stats.paired import Scores
from steelyard.stats.power import expected_flags

if TYPE_CHECKING:
    from steelyard.sides import Side, Trials

TOLERANCE = 1e-9
"""A drop of exactly the threshold is none, whatever floats make of it."""


class Change(Record, frozen=True, kw_only=True):
    """One case under one model, before and after."""

    case_id: str
    model: str
    baseline_score: float
    current_score: float
    delta: float
    """Current minus baseline."""


class Comparison(Record, frozen=True, kw_only=True, omit_defaults=False):
    """All that changed between two sides, by a threshold on mean scores."""

    baseline: str
    current: str
    rule: str
    threshold: float
    regressions: tuple[Change, ...]
    """The worst first."""
    improvements: tuple[Change, ...]
    """The best first."""
    unchanged: int
    """Cases, once per model, whose score moved by no more than the threshold."""
    new_cases: tuple[str, ...]
    removed_cases: tuple[str, ...]
    tests_changed: tuple[str, ...]
    """Cases that are judged by other tests now: they are not compared."""
    unscored: tuple[str, ...]
    """Cases that one of the sides has no score for."""
    new_models: tuple[str, ...]
    removed_models: tuple[str, ...]
    compared: int
    """Cases that were compared, once per model."""
    expected_regressions: float
    """How many regressions noise alone would raise, if nothing had changed."""


def compare(baseline: Side, current: Side, *, threshold: float = 0.05) -> Comparison:
    """What changed; cases pair by id and tests, models by name, or as they are where each side has one."""
    if not 0 <= threshold < 1:
        raise InputError(f"the threshold must lie between 0 and 1, not {threshold}")
    if baseline.rule != current.rule:
        raise InputError(
            f'{baseline.name} is scored by rule "{baseline.rule}" and {current.name} by "{current.rule}"; '
            "name one with --rule"
        )
    pairing = paired(baseline, current)
    pairs, unscored = [], []
    for model in pairing.models:
        for old, new in model.cases:
            if old.score is None or new.score is None:
                unscored.append(pairing.label(new.case, model.name))
            else:
                pairs.append((model.name, old, new))
    changes = [_change(name, old, new) for name, old, new in pairs]
    return Comparison(
        baseline=baseline.name,
        current=current.name,
        rule=current.rule,
        threshold=threshold,
        regressions=tuple(sorted((one for one in changes if one.delta < -threshold - TOLERANCE), key=_worst_first)),
        improvements=tuple(sorted((one for one in changes if one.delta > threshold + TOLERANCE), key=_best_first)),
        unchanged=sum(abs(one.delta) <= threshold + TOLERANCE for one in changes),
        new_cases=pairing.new_cases,
        removed_cases=pairing.removed_cases,
        tests_changed=pairing.tests_changed,
        unscored=tuple(unscored),
        new_models=pairing.new_models,
        removed_models=pairing.removed_models,
        compared=len(changes),
        expected_regressions=expected_flags(
            (Scores(old.every_score, new.every_score) for _, old, new in pairs), threshold
        ),
    )


def _change(model: str, old: Trials, new: Trials) -> Change:
    before, after = old.score or 0.0, new.score or 0.0
    return Change(case_id=new.case, model=model, baseline_score=before, current_score=after, delta=after - before)


def _worst_first(change: Change) -> tuple[float, str, str]:
    return change.delta, change.case_id, change.model


def _best_first(change: Change) -> tuple[float, str, str]:
    return -change.delta, change.case_id, change.model
