"""A gate whose error rate holds however often it is asked about a growing run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard import store
from steelyard.decision import Decision, Paired, decide
from steelyard.engine.steps import now
from steelyard.errors import InputError
from steelyard.pairing import Pairing, paired
from steelyard.records import Look, digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.sides import Side, Trials

SHARE = 0.8
"""What a look may spend of the error rate that is left; the rest is kept for looks at more attempts."""
LEAST = 1e-5
"""With a smaller share of the error rate a look is none."""
THIN = 10
"""Attempts per case below which a baseline is too thin to be used for many changes."""


class Gated(NamedTuple):
    """What the gate decided, and what it rests on."""

    decision: Decision
    pairing: Pairing
    alpha: float
    """What all looks at this run together may spend."""
    look: int
    """Which look this is at more attempts; 1 for the first."""
    warnings: tuple[str, ...]


def gated(
    baseline: Side,
    current: Side,
    *,
    alpha: float = 0.05,
    margin: float = 0.05,
    on: str = "passed",
    folder: Path | None = None,
) -> Gated:
    """The decision; with the folder of the current run earlier looks at it are counted, and this one is written down."""
    if not (0 < alpha < 1 and 0 < margin < 1):
        raise InputError(f"alpha and margin must lie between 0 and 1, not {alpha:g} and {margin:g}")
    if on == "score" and baseline.rule != current.rule:
        raise InputError(f'scored by different rules, "{baseline.rule}" and "{current.rule}"; name one with --rule')
    pairing = paired(baseline, current)
    cases = {
        model.name: [_case(old, new, on) for old, new in model.cases if _told(old, new, on)] for model in pairing.models
    }
    if not any(cases.values()):
        raise InputError(f"{baseline.name} and {current.name} have no judged case in common")
    held_against = digest(baseline.models, sorted(current.models), margin, alpha, on)
    shown = digest(current.models)
    earlier = [look for look in (store.looks(folder) if folder else ()) if look.baseline == held_against]
    level, look = _level(earlier, shown, alpha)
    if level < LEAST * alpha:
        raise InputError(f"{look - 1} looks at this run have used up its error rate of {alpha:g}; decide by a new run")
    decision = decide(
        {name: each for name, each in cases.items() if each},
        alpha=level,
        margin=margin,
        threshold=margin,
        unscored_share={model.name: 1 - len(cases[model.name]) / max(1, len(model.cases)) for model in pairing.models},
        attempt_cost={model.name: cost for model in pairing.models if (cost := _cost(model.cases)) is not None},
        on=on,
    )
    if folder and shown not in {one.data for one in earlier}:
        entry = Look(at=now(), baseline=held_against, data=shown, alpha=alpha, spent=level, verdict=decision.verdict)
        store.remember(folder, entry)
    return Gated(decision, pairing, alpha, look, tuple(_warnings(baseline, pairing, look, alpha, level)))


def _level(earlier: Sequence[Look], shown: str, alpha: float) -> tuple[float, int]:
    """What this look may spend, and which it is; looking again at the same attempts is the same look."""
    left = alpha
    distinct = {look.data: look.spent for look in earlier}
    for place, (data, spent) in enumerate(distinct.items(), 1):
        if data == shown:
            return spent, place
        left -= spent
    return SHARE * left, len(distinct) + 1


def _told(old: Trials, new: Trials, on: str) -> bool:
    """Whether both sides have an outcome, and where scores are compared a score for every attempt."""
    if on == "score":
        return all(
            trials.attempts and trials.attempts == sum(times for _, times in trials.scores) for trials in (old, new)
        )
    return bool(old.attempts and new.attempts)


def _case(old: Trials, new: Trials, on: str) -> Paired:
    return Paired(
        case=new.case,
        baseline_attempts=old.attempts,
        baseline_passes=old.passes,
        current_attempts=new.attempts,
        current_passes=new.passes,
        critical=new.critical,
        baseline_scores=old.every_score if on == "score" else (),
        current_scores=new.every_score if on == "score" else (),
    )


def _cost(cases: Sequence[tuple[Trials, Trials]]) -> float | None:
    """What an attempt costs on average now; None where a price is unknown."""
    costs = [(new.cost_usd, new.attempts) for _, new in cases if new.attempts]
    attempts = sum(count for _, count in costs)
    if not attempts or any(cost is None for cost, _ in costs):
        return None
    return sum(cost or 0.0 for cost, _ in costs) / attempts


def _warnings(baseline: Side, pairing: Pairing, look: int, alpha: float, level: float) -> Sequence[str]:
    warnings = []
    if look > 1:
        warnings.append(f"look {look} at this run: of the error rate {alpha:g} this one may spend {level:.4g}")
    fewest = min((old.attempts for model in pairing.models for old, _ in model.cases), default=0)
    if fewest < THIN:
        warnings.append(
            f"{baseline.name} has as few as {fewest} attempts per case: one unlucky draw would flag many innocent changes; "
            "pool several runs with steelyard bless"
        )
    for what, cases in (
        ("are judged by other tests now", pairing.tests_changed),
        ("were removed", pairing.removed_cases),
    ):
        if cases:
            more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
            warnings.append(f"{len(cases)} cases {what} and are not compared: {', '.join(cases[:5])}{more}")
    return warnings
