"""Attempts without their texts, and which of them a page shows with theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.suites import classified
from steelyard.analysis.summary import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.analysis.summary import End, Tried
    from steelyard.records import Case, Rule

FEW = 1_000
"""Attempts of a run all of whose texts are shown."""
MOST_FAILED = 3_000
"""Failures of a larger run whose texts are shown; there may be so many that no browser would open the page."""
FEWEST_PASSED = 200
"""Correct attempts of a larger run whose texts are shown, whatever the number of failures."""

Place = tuple[str, str, str, int]
"""Case, model, tier and number of an attempt."""


class Outline(NamedTuple):
    """One attempt without its texts."""

    case: str
    model: str
    tier: str
    number: int
    correct: bool | None
    """None when it is not known."""
    score: float | None
    failure: str
    """What kind of failure it is; empty when it is correct, or missing."""
    latency: float | None
    cost_usd: float | None
    tokens: int | None
    """Of the reply; None where nobody counted."""

    @property
    def place(self) -> Place:
        return self.case, self.model, self.tier, self.number


def outlines(cases: Sequence[Case], ends: Iterable[End], rule: Rule) -> list[Outline]:
    """What came of all attempts, by a rule."""
    return [
        Outline(
            case=cases[place.order].id,
            model=place.model,
            tier=place.tier,
            number=place.number,
            correct=gist.measured.correct if gist else None,
            score=gist.measured.score(rule) if gist else None,
            failure=gist.primary if gist and not gist.measured.correct else "",
            latency=answered.latency if answered else None,
            cost_usd=answered.usd if answered else None,
            tokens=(answered.output_tokens or None) if answered else None,
        )
        for place, answered, gist, _ in ends
    ]


def outline(tried: Tried) -> Outline:
    """The same of an attempt that is there as a whole."""
    answer = tried.reply.answer if tried.reply else None
    label = one_line(tried.verdict.found.label) if tried.verdict else ""
    return Outline(
        case=tried.case.id,
        model=tried.model,
        tier=tried.tier,
        number=tried.number,
        correct=tried.correct,
        score=tried.score,
        failure="" if tried.verdict is None or tried.correct else classified(False, label),
        latency=answer.latency if answer else None,
        cost_usd=answer.cost.usd if answer and answer.cost else None,
        tokens=(answer.output_tokens or None) if answer else None,
    )


class Chosen(NamedTuple):
    """The attempts that are shown with their texts."""

    places: frozenset[Place]
    failed: int
    """How many of them are not correct."""
    passed: int


def chosen(attempts: Sequence[Outline]) -> Chosen:
    """All of a small run; of a larger one the failures and a sample of the correct attempts, from all cases and models."""
    failed = [attempt for attempt in attempts if not attempt.correct]
    passed = [attempt for attempt in attempts if attempt.correct]
    if len(attempts) > FEW:
        failed = spread(failed, MOST_FAILED)
        passed = spread(passed, max(FEWEST_PASSED, FEW - len(failed)))
    return Chosen(frozenset(attempt.place for attempt in (*failed, *passed)), len(failed), len(passed))


def spread(attempts: Sequence[Outline], most: int) -> list[Outline]:
    """So many attempts: first one of each model at each case, then a second one, and so on; evenly where not all fit."""
    if len(attempts) <= most:
        return list(attempts)
    seen: dict[tuple[str, str, str], int] = {}
    rounds: list[list[Outline]] = []
    for attempt in attempts:
        turn = seen.get(attempt[:3], 0)
        seen[attempt[:3]] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(attempt)
    found: list[Outline] = []
    for of_round in rounds:
        room = most - len(found)
        if len(of_round) > room:
            return found + [of_round[place * len(of_round) // room] for place in range(room)]
        found += of_round
    return found
