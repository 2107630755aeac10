"""Two opened runs, or models of them, held against each other case by case."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.suites import classify_response, ordered_class_counts
from steelyard.comparison.sides import Side, Trials
from steelyard.engine.gate.gate import gate_sides
from steelyard.reports.figures import model_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.engine.gate.gate import GateResult
    from steelyard.records import Case
    from steelyard.viewer.run_view import AttemptRow, Column, RunView

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
    models: dict[str, list[Trials]] = {}
    for row_of in _grouped(opened.rows):
        case, seat = opened.cases[row_of[0].case], opened.seats[row_of[0].seat]
        name = model_label(seat.model, seat.tier)
        if not model or model == name:
            models.setdefault(name, []).append(_trials(opened, case, seat, row_of))
    name = f"{opened.name}@{model}" if model else opened.name
    every = {one: tuple(trials) for one, trials in models.items()}
    return Side(name=name, rule=opened.info.rule, models=every, runs=(opened.info.id,))


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


def _grouped(rows: Sequence[AttemptRow]) -> list[list[AttemptRow]]:
    """The rows of each case and seat; they stand together."""
    groups: list[list[AttemptRow]] = []
    for row in rows:
        if groups and groups[-1][0][:2] == row[:2]:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _trials(opened: RunView, case: Case, seat: Column, rows: Sequence[AttemptRow]) -> Trials:
    samples = opened.info.samples or 0
    judged = [row for row in rows if row.outcome != "missing"]
    # further attempts were asked because of what the others brought: they count in no mean
    further = [row for row in judged if opened.info.more and row.number > samples]
    planned = opened.info.more.get(seat.model, {}).get(case.id, 0) > samples
    fair = [row for row in judged if not (opened.info.more and row.number > samples)]
    costs = [row.cost_usd for row in fair]
    classes = Counter(classify_response(row.outcome == "correct", row.label) for row in fair)
    return Trials(
        case=case.id,
        tests=case.tests_digest,
        attempts=len(fair),
        passes=sum(row.outcome == "correct" for row in fair),
        scores=tuple(sorted(Counter(row.score for row in fair if row.score is not None).items())),
        suite=case.suite,
        classes=tuple(ordered_class_counts(classes).items()) if case.suite else (),
        critical=case.critical,
        cost_usd=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
        further_attempts=len(further) if planned else None,
        further_passes=sum(row.outcome == "correct" for row in further),
    )
