"""Attempts made by other tools, counted case by case, and the standing of each model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.estimates import Estimate, mean, pass_at, pass_hat, price_of_pass
from steelyard.analysis.measure import ComparedMeasure
from steelyard.errors import InputError
from steelyard.records import Record
from steelyard.stats.passk import histogram
from steelyard.text import counted, line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from steelyard.errors import Problem

    Numbers = Sequence[int] | NDArray[np.integer]


class Tally(NamedTuple):
    """One model's outcomes; every sequence has one entry per case, in the same order."""

    model: str
    cases: Sequence[str]
    tried: Numbers
    """Attempts with an outcome; 0 for a case without any."""
    passed: Numbers
    missing: int = 0
    """Attempts without an outcome: they are not counted."""
    costs: Sequence[float] | None = None
    """US dollars for all attempts of a case together; None unless every attempt has its price."""
    scores: Sequence[float | None] | None = None
    """The mean score of a case, in [0, 1]; None if scores were not asked for."""
    missing_by_case: Sequence[int] | None = None
    """The attempts without an outcome of each case; None if none is missing, or only their sum is known."""
    on: ComparedMeasure = "passed"
    """What decides about these attempts."""
    every_score: Sequence[Sequence[float]] | None = None
    """The score of every attempt of each case, where they were asked for and there are some."""
    is_graded: bool = False
    """Whether the scores are what was measured, rather than what passed."""


class OutcomeTallies(NamedTuple):
    """The tallies of some files, and what was odd in them."""

    tallies: tuple[Tally, ...]
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""


MAX_STANDING_NAME_CHARACTERS = 80
"""Letters of a name in a sentence."""


class Standing(Record, frozen=True, kw_only=True):
    """One model over all its cases."""

    model: str
    cases: int
    """All cases, those without an outcome included."""
    attempts: int
    """Attempts with an outcome."""
    correct: int
    missing: int = 0
    """Attempts without an outcome."""
    unscored: tuple[str, ...] = ()
    """Cases without a single outcome."""
    largest: int
    """The most attempts that any case has."""
    pass_at: dict[int, Estimate]
    pass_hat: dict[int, Estimate]
    """pass^k: how likely it is that all of k attempts succeed."""
    score: Estimate | None = None
    """None where there are no scores."""
    on: ComparedMeasure = "passed"
    """What decides: whether attempts passed, or what they scored."""
    cost_usd: float | None = None
    """None where a price is unknown."""
    cost_of_pass: Estimate | None = None


class Standings(Record, frozen=True, kw_only=True):
    """All models, and what a reader must know before trusting the numbers."""

    models: tuple[Standing, ...]
    k: tuple[int, ...]
    missing: str
    """What was done about cases without an outcome."""
    notes: tuple[str, ...] = ()
    conclusive: bool = True
    """False when more than 5% of the cases of some model are unscored."""


def standings(tallies: Iterable[Tally], k: Sequence[int], *, missing: str = "skip") -> Standings:
    """What the tallies add up to; an InputError when cases have no outcome and `missing` is `error`."""
    sizes = tuple(sorted(set(k)))
    models = tuple(standing(tally, sizes, missing=missing) for tally in tallies)
    return Standings(
        models=models,
        k=sizes,
        missing=missing,
        notes=tuple(note for model in models for note in _notes(model, missing)),
        conclusive=any(model.attempts for model in models)
        and (missing != "skip" or not any(20 * len(model.unscored) > model.cases for model in models)),
    )


def standing(tally: Tally, k: Sequence[int], *, missing: str = "skip") -> Standing:
    """What one tally adds up to."""
    unscored = tuple(case for case, tried in zip(tally.cases, tally.tried, strict=True) if not tried)
    if unscored and missing == "error":
        raise InputError(
            f"{line(tally.model, MAX_STANDING_NAME_CHARACTERS)}: {_listed(unscored)} without an outcome; --missing skip leaves them out"
        )
    tallied = histogram(tally.tried, tally.passed)
    tallied = {pair: cases for pair, cases in tallied.items() if pair[0]}
    failed = len(unscored) if missing == "zero" else 0
    return Standing(
        model=tally.model,
        cases=len(tally.cases),
        attempts=sum(n * cases for (n, _), cases in tallied.items()),
        correct=sum(c * cases for (_, c), cases in tallied.items()),
        missing=tally.missing,
        unscored=unscored,
        largest=max((n for n, _ in tallied), default=0),
        pass_at={size: pass_at(tallied, size, failed=failed) for size in k},
        pass_hat={size: pass_hat(tallied, size, failed=failed) for size in k},
        score=_score(tally, failed),
        on=tally.on,
        cost_usd=None if tally.costs is None else math.fsum(tally.costs),
        cost_of_pass=_price(tally),
    )


def _score(tally: Tally, failed: int) -> Estimate | None:
    if tally.scores is None:
        return None
    known = [(score, tried) for score, tried in zip(tally.scores, tally.tried, strict=True) if score is not None]
    values = [score for score, _ in known] + [0.0] * failed
    return mean(values, sum(int(tried) for _, tried in known) + failed)


def _price(tally: Tally) -> Estimate | None:
    if tally.costs is None:
        return None
    asked = [entry for entry in zip(tally.costs, tally.passed, tally.tried, strict=True) if entry[2]]
    costs, passes = [float(cost) for cost, _, _ in asked], [int(passed) for _, passed, _ in asked]
    return price_of_pass(costs, passes, [int(tried) for _, _, tried in asked])


ONE_WITHOUT_OUTCOME = "attempt has no outcome and is not counted"
SEVERAL_WITHOUT_OUTCOME = "attempts have no outcome and are not counted"


def _notes(model: Standing, missing: str) -> Iterable[str]:
    name = line(model.model, MAX_STANDING_NAME_CHARACTERS)
    if model.on == "score":
        yield f"{name}: its attempts are graded, so the mean score decides; pass@k counts those with the best score"
    scored = model.cases - len(model.unscored)
    if model.unscored:
        fate = {"skip": "left out", "zero": "counted as failed"}[missing]
        yield f"{name}: {_listed(model.unscored)} without an outcome, {fate}"
    if model.missing:
        yield f"{name}: {counted(model.missing, ONE_WITHOUT_OUTCOME, SEVERAL_WITHOUT_OUTCOME)}"
    for size, estimate in model.pass_at.items():
        usable = estimate.cases - (len(model.unscored) if missing == "zero" and estimate.cases else 0)
        if scored and not usable:
            yield f"{name}: pass@{size} needs {size} attempts at a case, and the most there are is {model.largest}"
        elif usable < scored:
            yield f"{name}: pass@{size} rests on the {usable} of {scored} cases with at least {size} attempts"


def _listed(cases: Sequence[str]) -> str:
    """How many cases, and the first of them.

    >>> _listed(["a", "b"])
    '2 cases (a, b)'
    """
    more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
    return f"{counted(len(cases), 'case')} ({', '.join(line(case, MAX_STANDING_NAME_CHARACTERS) for case in cases[:5])}{more})"
