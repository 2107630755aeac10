"""Two runs, or two models, compared case by case."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.analysis.measure import ComparedMeasure
from steelyard.comparison.sides import Side, Trials, run_side
from steelyard.engine.gate.gate import GateResult, gate_sides
from steelyard.errors import InputError
from steelyard.viewer.query_params import ViewerRequestError
from steelyard.viewer.run_cache import RunCache, RunViewSide
from steelyard.viewer.run_view import RunView


class CaseChangeState(StrEnum):
    """What became of a case, culprits first."""

    WORSE = "got worse"
    SUSPECT = "suspect"
    DROPPED = "lower"
    IMPROVED = "higher"
    SAME = "same"


class ComparedCase(NamedTuple):
    """One case under one model, before and after."""

    case: str
    model: str
    """What the comparison calls it."""
    before: Trials
    after: Trials
    state: CaseChangeState
    p: float | None
    """How likely this case alone looks as bad when it did not change; None if it does not look worse."""
    on: ComparedMeasure = "passed"
    """What decides about it."""

    @property
    def delta(self) -> float:
        """The change of the share of passes, or of the mean score."""
        return trials_figure(self.after, self.on) - trials_figure(self.before, self.on)


def trials_figure(trials: Trials, on: ComparedMeasure) -> float:
    """The share of attempts that passed, or their mean score."""
    if on == "score":
        return trials.score or 0.0
    return trials.passes / trials.attempts


class SideComparison(NamedTuple):
    """All that changed between two sides."""

    gated: GateResult
    changes: tuple[ComparedCase, ...]
    """The cases that caused the verdict first, then by the size of the change."""


def comparison_side(opened: RunView, model: str = "") -> Side:
    """A run, or one model of it, as comparisons take it; a run that has no such model gives a side without any."""
    side = run_side(opened.name, opened.info.rule, opened.info, opened.cases, opened.table)
    if not model:
        return side
    models = {name: trials for name, trials in side.models.items() if name == model}
    return replace(side, name=f"{opened.name}@{model}", models=models)


def side_comparison(baseline: Side, current: Side, *, alpha: float = 0.05, margin: float = 0.05) -> SideComparison:
    """The gate's decision about two sides, and every case that both judged.

    This is not a counted look: nothing is stored, and no error rate is spent.
    """
    found = gate_sides(baseline, current, alpha=alpha, margin=margin)
    blamed: dict[tuple[str, str], tuple[CaseChangeState, float]] = {}
    for model in found.decision.models:
        for state, blame in ((CaseChangeState.SUSPECT, model.suspects), (CaseChangeState.WORSE, model.confirmed)):
            blamed |= {(model.model, change.case): (state, change.p) for change in blame}
    changes: list[ComparedCase] = []
    for one in found.pairing.models:
        for before, after in one.cases:
            if before.attempts and after.attempts:
                on = found.decision.rule.on
                changed = ComparedCase(after.case, one.name, before, after, CaseChangeState.SAME, None, on)
                state, p = blamed.get((one.name, after.case), (_state(changed.delta), None))
                changes.append(changed._replace(state=state, p=p))
    changes.sort(key=_culprits_first)
    return SideComparison(found, tuple(changes))


def _state(delta: float) -> CaseChangeState:
    if delta == 0:
        return CaseChangeState.SAME
    return CaseChangeState.DROPPED if delta < 0 else CaseChangeState.IMPROVED


def _culprits_first(change: ComparedCase) -> tuple[int, float, str, str]:
    # of what got better the most comes first, of all else the worst
    order = -change.delta if change.state == CaseChangeState.IMPROVED else change.delta
    return [*CaseChangeState].index(change.state), order, change.case, change.model


def compared_sides(
    run_cache: RunCache, baseline: RunViewSide, current: RunViewSide, *, alpha: float, margin: float
) -> SideComparison:
    """What changed from one side to the other."""
    sides = [(side.name, side.opened.version) for side in (baseline, current)]

    def compare() -> SideComparison:
        old, new = (comparison_side(side.opened, side.model) for side in (baseline, current))
        return side_comparison(old, new, alpha=alpha, margin=margin)

    try:
        return run_cache.computed("comparison", (*sides, alpha, margin), compare)
    except InputError as error:
        raise ViewerRequestError(409, str(error)) from None
