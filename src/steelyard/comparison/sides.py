"""One side of a comparison: how often each case passed, and with which scores."""

from __future__ import annotations

import math

from steelyard.records import Record


class Trials(Record, frozen=True, kw_only=True):
    """All judged attempts of one model at one case."""

    case: str
    tests: str = ""
    """The digest of the tests that judged them; empty where nobody says."""
    attempts: int
    passes: int
    scores: tuple[tuple[float, int], ...] = ()
    """Each score with how many attempts have it, in ascending order; attempts without a score are left out."""
    suite: str = ""
    """The suite that the case belongs to; empty where it belongs to none, or nobody says."""
    classes: tuple[tuple[str, int], ...] = ()
    """Each class of response with how many attempts are of it, where the case belongs to a suite; empty where nobody says."""
    critical: bool = False
    cost_usd: float | None = None
    """What all these attempts cost; None where a price is unknown."""
    further_attempts: int | None = None
    """Attempts beyond those that all cases got, because this one looked worse; None where none were planned.

    They count in no mean: that they were asked depends on what the others brought.
    """
    further_passes: int = 0

    @property
    def score(self) -> float | None:
        """The mean score of the attempts that have one."""
        every = self.every_score
        return math.fsum(every) / len(every) if every else None

    @property
    def every_score(self) -> tuple[float, ...]:
        """One score for every attempt that has one."""
        return tuple(score for score, times in self.scores for _ in range(times))


class Side(Record, frozen=True, kw_only=True):
    """The trials of some models, and where they come from."""

    name: str
    """As the user called it."""
    rule: str
    models: dict[str, tuple[Trials, ...]]
    runs: tuple[str, ...] = ()
    """The ids of the runs it was made of, where it is a baseline."""
