"""Attempts without their texts, and which of them a page shows with theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis.suites import classify_response
from steelyard.analysis.summary import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.analysis.summary import AttemptOutcome, AttemptText
    from steelyard.records import Case, Rule

MAX_SMALL_RUN_ATTEMPTS = 1_000
"""Attempts of a run all of whose texts are shown."""
MAX_SHOWN_FAILURES = 3_000
"""Failures of a larger run whose texts are shown; there may be so many that no browser would open the page."""
MIN_SHOWN_PASSES = 200
"""Correct attempts of a larger run whose texts are shown, whatever the number of failures."""

AttemptKey = tuple[str, str, str, int]
"""Case, model, tier and number of an attempt."""


class AttemptMetrics(NamedTuple):
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
    def place(self) -> AttemptKey:
        return self.case, self.model, self.tier, self.number


def run_attempt_metrics(cases: Sequence[Case], ends: Iterable[AttemptOutcome], rule: Rule) -> list[AttemptMetrics]:
    """What came of all attempts, by a rule."""
    return [
        AttemptMetrics(
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


def attempt_metrics(tried: AttemptText) -> AttemptMetrics:
    """The same of an attempt that is there as a whole."""
    answer = tried.reply.answer if tried.reply else None
    label = one_line(tried.verdict.found.label) if tried.verdict else ""
    return AttemptMetrics(
        case=tried.case.id,
        model=tried.model,
        tier=tried.tier,
        number=tried.number,
        correct=tried.correct,
        score=tried.score,
        failure="" if tried.verdict is None or tried.correct else classify_response(False, label),
        latency=answer.latency if answer else None,
        cost_usd=answer.cost.usd if answer and answer.cost else None,
        tokens=(answer.output_tokens or None) if answer else None,
    )


class ShownAttempts(NamedTuple):
    """The attempts that are shown with their texts."""

    places: frozenset[AttemptKey]
    failed: int
    """How many of them are not correct."""
    passed: int


def shown_attempts(attempts: Sequence[AttemptMetrics]) -> ShownAttempts:
    """All of a small run; of a larger one the failures and a sample of the correct attempts, from all cases and models."""
    failed = [attempt for attempt in attempts if not attempt.correct]
    passed = [attempt for attempt in attempts if attempt.correct]
    if len(attempts) > MAX_SMALL_RUN_ATTEMPTS:
        failed = even_sample(failed, MAX_SHOWN_FAILURES)
        passed = even_sample(passed, max(MIN_SHOWN_PASSES, MAX_SMALL_RUN_ATTEMPTS - len(failed)))
    return ShownAttempts(frozenset(attempt.place for attempt in (*failed, *passed)), len(failed), len(passed))


def even_sample(attempts: Sequence[AttemptMetrics], most: int) -> list[AttemptMetrics]:
    """So many attempts: first one of each model at each case, then a second one, and so on; evenly where not all fit."""
    if len(attempts) <= most:
        return list(attempts)
    seen: dict[tuple[str, str, str], int] = {}
    rounds: list[list[AttemptMetrics]] = []
    for attempt in attempts:
        turn = seen.get(attempt[:3], 0)
        seen[attempt[:3]] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(attempt)
    found: list[AttemptMetrics] = []
    for of_round in rounds:
        room = most - len(found)
        if len(of_round) > room:
            return found + [of_round[place * len(of_round) // room] for place in range(room)]
        found += of_round
    return found
