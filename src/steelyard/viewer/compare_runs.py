"""Two opened runs, or models of them, held against each other case by case."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from steelyard.comparison.sides import Side, Trials, run_side
from steelyard.engine.gate.gate import gate_sides

if TYPE_CHECKING:
    from steelyard.engine.gate.gate import GateResult
    from steelyard.viewer.run_view import RunView

WORSE, SUSPECT, DROPPED, IMPROVED, SAME = "got worse", "suspect", "lower", "higher", "same"
CASE_CHANGE_STATES = (WORSE, SUSPECT, DROPPED, IMPROVED, SAME)
"""What became of a case, culprits first."""


class ComparedCase(NamedTuple):
    """One case under one model, before and after."""

    case: str
    model: str
    """What the comparison calls it."""
    before: Trials
    after: Trials
    state: str
    p: float | None
    """How likely this case alone looks as bad when it did not change; None where it does not look worse."""

    @property
    def delta(self) -> float:
        """The change of the share of passes."""
        return self.after.passes / self.after.attempts - self.before.passes / self.before.attempts


class SideComparison(NamedTuple):
    """All that changed between two sides."""

    gated: GateResult
    changes: tuple[ComparedCase, ...]
    """Culprits first, then by how much they changed."""


def comparison_side(opened: RunView, model: str = "") -> Side:
    """A run, or one model of it, as comparisons take it; a run that has no such model gives a side without any."""
    side = run_side(opened.name, opened.info.rule, opened.info, opened.cases, opened.table)
    if not model:
        return side
    models = {name: trials for name, trials in side.models.items() if name == model}
    return replace(side, name=f"{opened.name}@{model}", models=models)


def side_comparison(baseline: Side, current: Side, *, alpha: float = 0.05, margin: float = 0.05) -> SideComparison:
    """What a gate says of two sides, and every case that both judged.

    Reading is no look: nothing is written down, and no error rate is spent.
    """
    found = gate_sides(baseline, current, alpha=alpha, margin=margin)
    blamed: dict[tuple[str, str], tuple[str, float]] = {}
    for model in found.decision.models:
        for state, blame in ((SUSPECT, model.suspects), (WORSE, model.confirmed)):
            blamed |= {(model.model, change.case): (state, change.p) for change in blame}
    changes: list[ComparedCase] = []
    for one in found.pairing.models:
        for before, after in one.cases:
            if before.attempts and after.attempts:
                state, p = blamed.get((one.name, after.case), ("", None))
                changed = ComparedCase(after.case, one.name, before, after, state, p)
                changes.append(changed if state else changed._replace(state=_state(changed.delta)))
    changes.sort(key=_culprits_first)
    return SideComparison(found, tuple(changes))


def _state(delta: float) -> str:
    return DROPPED if delta < 0 else IMPROVED if delta > 0 else SAME


def _culprits_first(change: ComparedCase) -> tuple[int, float, str, str]:
    # of what got better the most comes first, of all else the worst
    order = -change.delta if change.state == IMPROVED else change.delta
    return CASE_CHANGE_STATES.index(change.state), order, change.case, change.model
