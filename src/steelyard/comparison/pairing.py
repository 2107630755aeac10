"""Which cases of two sides are the same question to the same tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import InputError
from steelyard.text import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from steelyard.analysis.counts import Tally
    from steelyard.comparison.sides import Side, Trials


UNNAMED_RULES = frozenset({"command 1", "function 1", "python 2", "response 2", "rust 1", "terraform 1"})
"""The rules by which our verifiers judged what is in baselines that do not name them."""


class PairedModel(NamedTuple):
    """A model, as it is called in the comparison, with the cases that both sides have."""

    name: str
    cases: list[tuple[Trials, Trials]]
    """Baseline and current, sorted by case."""


class Pairing(NamedTuple):
    """What two sides have in common, and what not."""

    models: list[PairedModel]
    new_cases: tuple[str, ...]
    removed_cases: tuple[str, ...]
    tests_changed: tuple[str, ...]
    """Cases that are judged by other tests now."""
    rules_changed: tuple[str, ...]
    """Cases that our verifiers judge by other rules now, so that a difference may be theirs and not the model's."""
    new_models: tuple[str, ...]
    removed_models: tuple[str, ...]

    def label(self, case: str, model: str) -> str:
        """What a list calls a case: with its model, where there are several."""
        return _label(case, model, len(self.models))


def pair_sides(baseline: Side, current: Side) -> Pairing:
    """Cases pair by id and tests, models by name, or as they are where each side has one."""
    names = _paired_models(baseline.models.keys(), current.models.keys())
    if not names:
        raise _no_shared_model_error(baseline.name, baseline.models, current.name, current.models)
    new: list[str] = []
    removed: list[str] = []
    changed: list[str] = []
    rejudged: list[str] = []
    models = []
    for name, before, after in names:
        cases = []
        for case, old, fresh in _paired_cases(baseline.models[before], current.models[after]):
            label = _label(case, name, len(names))
            if old is None or fresh is None:
                (new if old is None else removed).append(label)
            elif old.tests and fresh.tests and old.tests != fresh.tests:
                changed.append(label)
            elif _have_rules_changed(old, fresh, is_baseline=bool(baseline.runs)):
                rejudged.append(label)
            else:
                cases.append((old, fresh))
        models.append(PairedModel(name, cases))
    return Pairing(
        models=models,
        new_cases=tuple(new),
        removed_cases=tuple(removed),
        tests_changed=tuple(changed),
        rules_changed=tuple(rejudged),
        new_models=tuple(sorted(current.models.keys() - {after for _, _, after in names})),
        removed_models=tuple(sorted(baseline.models.keys() - {before for _, before, _ in names})),
    )


class TallySide(NamedTuple):
    """One side of a comparison, as counts only."""

    name: str
    """As the user called it."""
    models: Mapping[str, Tally]


class PairedModelCounts(NamedTuple):
    """The cases of a model that both sides have, as columns."""

    name: str
    cases: list[str]
    """Sorted."""
    counts: NDArray[np.int64]
    """A row per case: attempts and passes of the baseline, attempts and passes of the current side."""


def pair_tallies(baseline: TallySide, current: TallySide) -> tuple[list[PairedModelCounts], Pairing]:
    """The same for sides that are counts only: cases pair by id; the pairing says what the sides do not share."""
    import numpy as np

    names = _paired_models(baseline.models.keys(), current.models.keys())
    if not names:
        raise _no_shared_model_error(baseline.name, baseline.models, current.name, current.models)
    models = []
    new: list[str] = []
    removed: list[str] = []
    for name, before, after in names:
        old, fresh = baseline.models[before], current.models[after]
        places = {case: place for place, case in enumerate(fresh.cases)}
        shared = sorted((case, place) for place, case in enumerate(old.cases) if case in places)
        removed += [_label(case, name, len(names)) for case in sorted(set(old.cases) - places.keys())]
        cases = [case for case, _ in shared]
        own = np.fromiter((place for _, place in shared), np.intp, len(shared))
        theirs = np.fromiter((places.pop(case) for case in cases), np.intp, len(shared))
        new += [_label(case, name, len(names)) for case in sorted(places)]
        columns = [
            np.asarray(column)[chosen]
            for column, chosen in ((old.tried, own), (old.passed, own), (fresh.tried, theirs), (fresh.passed, theirs))
        ]
        models.append(PairedModelCounts(name, cases, np.stack(columns, axis=1).astype(np.int64)))
    return models, Pairing(
        models=[],
        new_cases=tuple(new),
        removed_cases=tuple(removed),
        tests_changed=(),
        rules_changed=(),
        new_models=tuple(sorted(current.models.keys() - {after for _, _, after in names})),
        removed_models=tuple(sorted(baseline.models.keys() - {before for _, before, _ in names})),
    )


def _have_rules_changed(old: Trials, fresh: Trials, *, is_baseline: bool) -> bool:
    """Whether the verifiers of a case judged by other rules then than now."""
    if not fresh.judged_by:
        return False
    if old.judged_by:
        return old.judged_by != fresh.judged_by
    return (
        is_baseline
        and old.attempts > 0
        and any(
            rules not in UNNAMED_RULES and rules.partition(" ")[0] in {each.partition(" ")[0] for each in UNNAMED_RULES}
            for rules in fresh.judged_by
        )
    )


def rules_changed_sentence(baseline: str, cases: Sequence[str]) -> str:
    """What to do about cases that are judged by other rules now."""
    more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
    return (
        f"{counted(len(cases), 'case')} of {baseline} judged by older rules of steelyard, not compared: "
        f"{', '.join(cases[:5])}{more}; judge the older run again with steelyard verify RUN, "
        "and make a baseline of it again with steelyard bless"
    )


def _no_shared_model_error(baseline: str, before: Collection[str], current: str, after: Collection[str]) -> InputError:
    return InputError(
        f"{baseline} and {current} share no model: {', '.join(sorted(before))} against {', '.join(sorted(after))}; "
        f"name one of each, such as {baseline}@MODEL"
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
