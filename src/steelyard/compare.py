"""What changed between two runs by the plain rule: a case whose mean score dropped by more than a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import InputError
from steelyard.records import Record
from steelyard.stats.noise import expected_drops

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

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
    models = _paired_models(baseline.models.keys(), current.models.keys())
    if not models:
        raise InputError(
            f"{baseline.name} and {current.name} share no model: {', '.join(sorted(baseline.models))} against "
            f"{', '.join(sorted(current.models))}; name one of each, such as {baseline.name}@MODEL"
        )
    told: dict[str, list[str]] = {"new": [], "removed": [], "tests": [], "unscored": []}
    pairs: list[tuple[str, Trials, Trials]] = []
    for model in models:
        for case, old, new in _paired_cases(baseline.models[model.old], current.models[model.new]):
            label = f"{case} ({model.name})" if len(models) > 1 else case
            if old is None or new is None:
                told["new" if old is None else "removed"].append(label)
            elif old.tests and new.tests and old.tests != new.tests:
                told["tests"].append(label)
            elif old.score is None or new.score is None:
                told["unscored"].append(label)
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
        new_cases=tuple(told["new"]),
        removed_cases=tuple(told["removed"]),
        tests_changed=tuple(told["tests"]),
        unscored=tuple(told["unscored"]),
        new_models=tuple(sorted(current.models.keys() - {model.new for model in models})),
        removed_models=tuple(sorted(baseline.models.keys() - {model.old for model in models})),
        compared=len(changes),
        expected_regressions=expected_drops(((old.scores, new.scores) for _, old, new in pairs), threshold),
    )


class _Pair(NamedTuple):
    """A model as it is called on each side, and in the comparison."""

    name: str
    old: str
    new: str


def _paired_models(baseline: Collection[str], current: Collection[str]) -> list[_Pair]:
    if len(baseline) == len(current) == 1:
        (old,), (new,) = baseline, current
        return [_Pair(new if old == new else f"{old} -> {new}", old, new)]
    return [_Pair(name, name, name) for name in sorted(set(baseline) & set(current))]


def _paired_cases(
    baseline: Sequence[Trials], current: Sequence[Trials]
) -> Iterator[tuple[str, Trials | None, Trials | None]]:
    before, after = ({trials.case: trials for trials in side} for side in (baseline, current))
    for case in sorted(before.keys() | after.keys()):
        yield case, before.get(case), after.get(case)


def _change(model: str, old: Trials, new: Trials) -> Change:
    before, after = old.score or 0.0, new.score or 0.0
    return Change(case_id=new.case, model=model, baseline_score=before, current_score=after, delta=after - before)


def _worst_first(change: Change) -> tuple[float, str, str]:
    return change.delta, change.case_id, change.model


def _best_first(change: Change) -> tuple[float, str, str]:
    return -change.delta, change.case_id, change.model
