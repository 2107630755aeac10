"""A gate whose error rate holds however often it is asked about a growing run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from steelyard import store
from steelyard.decision import ON, Decision, Paired, decide
from steelyard.engine.sides import run_folder, side
from steelyard.engine.steps import now
from steelyard.errors import InputError
from steelyard.pairing import Pairing, paired
from steelyard.records import Look, digest
from steelyard.stats.power import unlucky_alarms
from steelyard.stats.sequential import FINAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.sides import Side, Trials
    from steelyard.stats.sequential import Step

SHARE = 0.8
"""What a look may spend of the error rate that is left; the rest is kept for looks at more attempts."""
LEAST = 1e-5
"""With a smaller share of the error rate a look is none."""
THIN = 10
"""Attempts per case below which a baseline is too thin to be used for many changes."""


class Levels(NamedTuple):
    """The levels of one look's tests, and what it thereby adds to what all looks may spend."""

    alarm: float
    alarm_spent: float
    cleared: float
    cleared_spent: float
    final: float = 0.0
    """Of the last test of cases whose attempts are all in; it is part of what alarms spend."""


class Round(NamedTuple):
    """Where a run is that asks in rounds."""

    step: Step
    finishing: bool
    """Whether no round will follow: all attempts are in, or those at the cases that looked worse."""


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
    at: Round | None = None,
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
    levels, look = _levels(earlier, shown, alpha, at)
    if min(levels.alarm, levels.cleared) < LEAST * alpha:
        raise InputError(f"{look - 1} looks at this run have used up its error rate of {alpha:g}; decide by a new run")
    decision = decide(
        {name: _finished(each) if levels.final else each for name, each in cases.items() if each},
        alpha=levels.alarm,
        cleared_level=levels.cleared,
        final_level=levels.final,
        margin=margin,
        threshold=margin,
        unscored_share={model.name: 1 - len(cases[model.name]) / max(1, len(model.cases)) for model in pairing.models},
        attempt_cost={model.name: cost for model in pairing.models if (cost := _cost(model.cases)) is not None},
        on=on,
    )
    if folder and shown not in {one.data for one in earlier}:
        entry = Look(
            at=now(),
            baseline=held_against,
            data=shown,
            alpha=alpha,
            level=levels.alarm,
            spent=levels.alarm_spent,
            cleared_level=levels.cleared,
            cleared_spent=levels.cleared_spent,
            final_level=levels.final,
            attempts=at.step.attempts if at else 0,
            verdict=decision.verdict,
        )
        store.remember(folder, entry)
    # a run that asks in rounds is meant to be looked at more than once
    look_told = 1 if at else look
    return Gated(decision, pairing, alpha, look, tuple(_warnings(baseline, pairing, look_told, alpha, levels.alarm)))


def gate(
    baseline: str | Path,
    current: str | Path,
    *,
    alpha: float = 0.05,
    margin: float = 0.05,
    on: str = "passed",
    rule: str | None = None,
    root: Path = store.RUNS,
) -> Gated:
    """The decision about two sides, named as for the command line; looks at a run are counted in its folder.

    Runs are found by name below `root`. A `Path` is a folder or a file, never a name.
    """
    if on not in ON:
        raise InputError(f'sides are compared on {" or ".join(ON)}, not on "{on}"')
    names = [str(name.absolute()) if isinstance(name, Path) else name for name in (baseline, current)]
    old, new = (side(name, rule=rule, root=root) for name in names)
    return gated(old, new, alpha=alpha, margin=margin, on=on, folder=run_folder(names[1], root=root))


def _levels(earlier: Sequence[Look], shown: str, alpha: float, at: Round | None) -> tuple[Levels, int]:
    """The levels of this look, and which it is; looking again at the same attempts is the same look."""
    distinct = {look.data: look for look in earlier}
    for place, look in enumerate(distinct.values(), 1):
        if look.data == shown:
            return Levels(look.level, look.spent, look.cleared_level, look.cleared_spent, look.final_level), place
    alarm_left = max(0.0, alpha - math.fsum(look.spent for look in distinct.values()))
    cleared_left = max(0.0, alpha - math.fsum(look.cleared_spent for look in distinct.values()))
    if at is None:
        alarm, cleared = SHARE * alarm_left, SHARE * cleared_left
        return Levels(alarm, alarm, cleared, cleared), len(distinct) + 1
    # the rounds share out alpha among themselves; whoever looked beside them has taken something from it
    final = min(FINAL * alpha, alarm_left) if at.finishing else 0.0
    same = [look for look in distinct.values() if look.attempts == at.step.attempts]
    if same and at.finishing:
        # what all cases got was looked at before; only the last test of some cases is new
        return Levels(same[0].level, final, same[0].cleared_level, 0.0, final), len(distinct) + 1
    alarm = min(at.step.alarm, alarm_left - final)
    cleared_spent = min(at.step.cleared, cleared_left)
    cleared = at.step.cleared_level if cleared_spent == at.step.cleared else cleared_spent
    return Levels(alarm, alarm + final, cleared, cleared_spent, final), len(distinct) + 1


def _finished(cases: Sequence[Paired]) -> Sequence[Paired]:
    """The cases whose attempts are all in: those that got further ones, or in the last round all."""
    if any(case.further_attempts is not None for case in cases):
        return cases
    return [replace(case, further_attempts=0) for case in cases]


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
        further_attempts=new.further_attempts,
        further_passes=new.further_passes,
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
    sizes = [(old.attempts, new.attempts) for model in pairing.models for old, new in model.cases]
    sizes = [both for both in sizes if all(both)]
    fewest = min((before for before, _ in sizes), default=0)
    if fewest < THIN and (flagged := unlucky_alarms(sizes, alpha=alpha)) is not None:
        warnings.append(
            f"{baseline.name} has as few as {fewest} attempts per case: one such baseline in ten, drawn too well, flags up to "
            f"{flagged:.0%} of innocent changes, not {100 * alpha:.2g}%; pool several runs with steelyard bless"
        )
    for what, cases in (
        ("are judged by other tests now", pairing.tests_changed),
        ("were removed", pairing.removed_cases),
    ):
        if cases:
            more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
            warnings.append(f"{len(cases)} cases {what} and are not compared: {', '.join(cases[:5])}{more}")
    return warnings
