"""Which score of a recorded attempt counts, and what its numbers mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from steelyard.errors import InputError
from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.records import RecordedAttempt
from steelyard.text import short_quote

SCORE_TOLERANCE = 1e-9
"""How far a score may be outside its range because of rounding."""
MAX_NAMED_SCORES = 10


class ScoreReading(NamedTuple):
    """How a user says that scores are meant."""

    name: str | None = None
    """The score that counts, where an attempt has several; in a table, its column."""
    low: float = 0.0
    high: float = 1.0
    """The worst and the best score, or the other way round where less is better."""
    lower_is_better: bool = False

    def share(self, score: float, *, lower_is_better: bool = False) -> float:
        """How good a score is, from 0 to 1; outside of that if it is not in the range.

        >>> ScoreReading(low=1, high=5).share(4), ScoreReading(lower_is_better=True).share(0.25)
        (0.75, 0.75)
        """
        share = (score - self.low) / (self.high - self.low)
        if self.lower_is_better or lower_is_better:
            share = 1 - share
        return min(1.0, max(0.0, share)) if -SCORE_TOLERANCE <= share <= 1 + SCORE_TOLERANCE else share

    @property
    def expected(self) -> str:
        """What a score must be, in words."""
        numbers = f"a number from {self.low:g} to {self.high:g}"
        return (
            numbers
            if self[1:3] != PLAIN_SCORES[1:3]
            else f"{numbers}, or the range of its scores, such as --score-range 1:5"
        )


PLAIN_SCORES = ScoreReading()


def score_range(text: str) -> tuple[float, float]:
    """The ends of LO:HI."""
    low, colon, high = text.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not colon or not ends[0] < ends[1] or not all(abs(end) < 1e12 for end in ends):
        raise InputError(f"{short_quote(text)} is no range of scores: LO:HI with LO below HI, such as 1:5")
    return ends


def with_chosen_score(attempt: RecordedAttempt, reading: ScoreReading) -> RecordedAttempt:
    """The attempt with the score that counts, from 0 to 1, the best at 1; raises an UnreadableOutcomesError where that cannot be told."""
    score, name = attempt.score, next(iter(attempt.scores), "")
    if reading.name is not None and attempt.scores:
        name = _full_name(reading.name, attempt)
        score = attempt.scores[name]
        tool = attempt.judged_by.partition(" ")[0]
        attempt = msgspec.structs.replace(attempt, passed=None, judged_by=f"{tool} {name}")
    elif score is None and len(attempt.scores) > 1 and attempt.passed is None and not attempt.failure:
        raise UnreadableOutcomesError(
            f"its attempts have {len(attempt.scores)} scores ({_names(attempt)}); name the one that counts to gate, compare, passk or import, such as --score {name}"
        )
    if score is None:
        return attempt
    share = reading.share(score, lower_is_better=name in attempt.lower_is_better)
    if not 0 <= share <= 1:
        what = f"{short_quote(attempt.case)} has a score of {score:g}; expected {reading.expected}"
        others = f", or name another score with --score ({_names(attempt)})" if len(attempt.scores) > 1 else ""
        raise UnreadableOutcomesError(what + others)
    if attempt.passed is None:
        return msgspec.structs.replace(attempt, score=share, passed=share >= 1, graded=True)
    return msgspec.structs.replace(attempt, score=share)


def several_scores_sentence(scores: Mapping[str, float]) -> str:
    """Which of several scores counts, and how to name another."""
    first, *others = scores
    return f"of its scores {short_quote(first)} counts; --score names another ({_listed(others)})"


def _full_name(asked: str, attempt: RecordedAttempt) -> str:
    """The name of the score that is asked for; the last part of it is enough where no other score has it."""
    if asked in attempt.scores:
        return asked
    found = [name for name in attempt.scores if name.rpartition("/")[2] == asked]
    if len(found) != 1:
        raise UnreadableOutcomesError(
            f"{short_quote(attempt.case)} has no score {short_quote(asked)} ({_names(attempt)})"
        )
    return found[0]


def _names(attempt: RecordedAttempt) -> str:
    return _listed(attempt.scores)


def _listed(scores: Iterable[str]) -> str:
    names = [short_quote(name) for name in scores]
    return ", ".join(names[:MAX_NAMED_SCORES]) + (", ..." if len(names) > MAX_NAMED_SCORES else "")
