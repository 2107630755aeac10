"""Which cases of two sides are the same question to the same tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from steelyard.sides import Side, Trials


class Model(NamedTuple):
    """A model, as it is called in the comparison, with the cases that both sides have."""

    name: str
    cases: list[tuple[Trials, Trials]]
    """Baseline and current, sorted by case."""


class Pairing(NamedTuple):
    """What two sides have in common, and what not."""

    models: list[Model]
    new_cases: tuple[str, ...]
    removed_cases: tuple[str, ...]
    tests_changed: tuple[str, ...]
    """Cases that are judged by other tests now."""
    new_models: tuple[str, ...]
    removed_models: tuple[str, ...]

    def label(self, case: str, model: str) -> str:
        """What a list calls a case: with its model, where there are several."""
        return _label(case, model, len(self.models))


def paired(baseline: Side, current: Side) -> Pairing:
    """Cases pair by id and tests, models by name, or as they are where each side has one."""
    names = _paired_models(baseline.models.keys(), current.models.keys())
    if not names:
        raise InputError(
            f"{baseline.name} and {current.name} share no model: {', '.join(sorted(baseline.models))} against "
            f"{', '.join(sorted(current.models))}; name one of each, such as {baseline.name}@MODEL"
        )
    new: list[str] = []
    removed: list[str] = []
    changed: list[str] = []
    models = []
    for name, before, after in names:
        cases = []
        for case, old, fresh in _paired_cases(baseline.models[before], current.models[after]):
            label = _label(case, name, len(names))
            if old is None or fresh is None:
                (new if old is None else removed).append(label)
            elif old.tests and fresh.tests and old.tests != fresh.tests:
                changed.append(label)
            else:
                cases.append((old, fresh))
        models.append(Model(name, cases))
    return Pairing(
        models=models,
        new_cases=tuple(new),
        removed_cases=tuple(removed),
        tests_changed=tuple(changed),
        new_models=tuple(sorted(current.models.keys() - {after for _, _, after in names})),
        removed_models=tuple(sorted(baseline.models.keys() - {before for _, before, _ in names})),
    )


def _paired_models(baseline: Collection[str], current: Collection[str]) -> list[tuple[str, str, str]]:
    """For each model what it is called here, in the baseline and now."""
    if len(baseline) == len(current) == 1:
        (old,), (new,) = baseline, current
        return [(new if old == new else f"{old} -> {new}", old, new)]
    return [(name, name, name) for name in sorted(set(baseline) & set(current))]


def _paired_cases(
    baseline: Sequence[Trials], current: Sequence[Trials]
) -> Iterator[tuple[str, Trials | None, Trials | None]]:
    before, after = ({trials.case: trials for trials in side} for side in (baseline, current))
    for case in sorted(before.keys() | after.keys()):
        yield case, before.get(case), after.get(case)


def _label(case: str, model: str, models: int) -> str:
    return f"{case} ({model})" if models > 1 else case
