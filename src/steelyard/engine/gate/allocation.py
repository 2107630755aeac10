"""Attempts where they count: which cases get fewer of them in a round, from runs that are older than the baseline.

The tests of a gate hold for any numbers of attempts that do not depend on the outcomes they compare. So what a case is
expected to vary by is taken from blessed runs that the baseline is not made of any more, and from nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.comparison.history import HistoryEntry
from steelyard.comparison.sides import PairedModel, Side, share_replies
from steelyard.records import StoppingRule
from steelyard.stats.allocation import equal_attempts, expected_variance, neyman_attempts

MIN_ALLOCATED_ATTEMPTS = 2
"""What every case gets, however settled it seems."""


class CaseAllocation(NamedTuple):
    """How attempts are divided between the cases of one model."""

    cases: Sequence[str]
    variances: Sequence[float]
    """What one attempt at each case is expected to vary by."""
    least: int
    """What each gets, once a round has as many."""

    def attempts(self, most: int) -> dict[str, int]:
        """The attempts at each case of a round that has up to so many."""
        return dict(zip(self.cases, self._counts(most), strict=True))

    def equal(self, most: int) -> float:
        """The attempts at every case that would tell as much."""
        return equal_attempts(self.variances, self._counts(most))

    def _counts(self, most: int) -> list[int]:
        return neyman_attempts(self.variances, most, least=min(most, self.least))


def case_allocations(
    baseline: Side, models: Sequence[PairedModel], older: Sequence[HistoryEntry], until: StoppingRule
) -> dict[str, CaseAllocation]:
    """By model how its attempts are divided; a model of which no older run is known is left out, and gets as many at every case."""
    if until.on != "passed":
        return {}
    found = {}
    for model in models:
        name = model.name if model.name in baseline.models else next(iter(baseline.models))
        known = _older_counts(name, model, older, baseline.runs)
        if known:
            found[model.name] = CaseAllocation(
                cases=[old.case for old, _ in model.cases],
                variances=[expected_variance(*known.get(old.case, (0, 0))) for old, _ in model.cases],
                least=max(MIN_ALLOCATED_ATTEMPTS, until.least),
            )
    return found


def _older_counts(
    name: str, model: PairedModel, older: Sequence[HistoryEntry], runs: Sequence[str]
) -> Mapping[str, tuple[int, int]]:
    """Attempts and passes of older runs at the cases of a model, judged by the same tests; each reply once."""
    compared = {old.case: old for old, _ in model.cases}
    attempts, passes = Counter[str](), Counter[str]()
    for entry in older:
        for trials in entry.models.get(name, ()):
            old = compared.get(trials.case)
            if old is None or old.tests != trials.tests or share_replies((trials, entry.runs), (old, runs)):
                continue
            attempts[trials.case] += trials.attempts
            passes[trials.case] += trials.passes
    return {case: (attempts[case], passes[case]) for case in attempts if attempts[case]}
