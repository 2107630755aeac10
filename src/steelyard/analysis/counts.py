"""How attempts came out that somebody else made: counted, case by case."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """Attempts without an outcome: they are in no number."""
    costs: Sequence[float] | None = None
    """US dollars for all attempts of a case together; None unless every attempt has its price."""
    scores: Sequence[float | None] | None = None
    """The mean score of a case, in [0, 1]; None where scores were not asked for."""


class OutcomeTallies(NamedTuple):
    """The tallies of some files, and what was odd in them."""

    tallies: tuple[Tally, ...]
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""
