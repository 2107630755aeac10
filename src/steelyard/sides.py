"""One side of a comparison: how often each case passed, and with which scores."""

from __future__ import annotations

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
    critical: bool = False

    @property
    def score(self) -> float | None:
        """The mean score of the attempts that have one."""
        count = sum(times for _, times in self.scores)
        return sum(score * times for score, times in self.scores) / count if count else None


class Side(Record, frozen=True, kw_only=True):
    """The trials of some models, and where they come from."""

    name: str
    """As the user called it."""
    rule: str
    models: dict[str, tuple[Trials, ...]]
    runs: tuple[str, ...] = ()
    """The ids of the runs it was made of, where it is a baseline."""
