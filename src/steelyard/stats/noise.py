"""How much noise alone moves the mean score of a case."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

Scores = tuple[tuple[float, int], ...]
"""Each score in [0, 1] with how many attempts have it."""
GRID = 1000
"""Steps from 0 to 1 on which graded scores are counted."""
TOLERANCE = 1e-9


def expected_drops(cases: Iterable[tuple[Scores, Scores]], threshold: float) -> float:
    """How many cases would drop by more than a threshold, baseline to current, if nothing had changed.

    Both sides of a case are taken for draws from one distribution: their scores pooled, with half an observation at 0 and
    half at 1, so that a case that always passed is not taken to be unable to fail. For pass and fail that is the
    binomial with `(passes + 1/2) / (attempts + 1)` (the Jeffreys prior's posterior mean; Brown, Cai and DasGupta 2001,
    "Interval estimation for a binomial proportion", Statistical Science 16, 101-133).

    >>> before, after = [10, 9, 10, 4, 0, 7], [10, 7, 6, 5, 0, 5]
    >>> pairs = [(((0, 10 - a), (1, a)), ((0, 10 - b), (1, b))) for a, b in zip(before, after)]
    >>> f"{expected_drops(pairs, 0.05):.10f}"
    '1.9492350056'
    """
    alike = Counter((_pooled(old, new), _count(old), _count(new)) for old, new in cases)
    chances = (times * _drop(pooled, old, new, threshold) for (pooled, old, new), times in alike.items())
    return math.fsum(chances)


def _count(scores: Scores) -> int:
    return sum(times for _, times in scores)


def _pooled(old: Scores, new: Scores) -> tuple[tuple[float, float], ...]:
    """The scores of both sides with their weights."""
    weights: Counter[float] = Counter({0.0: 0.5, 1.0: 0.5})
    for score, times in (*old, *new):
        weights[float(score)] += times
    return tuple(sorted(weights.items()))


def _drop(pooled: tuple[tuple[float, float], ...], old: int, new: int, threshold: float) -> float:
    """The chance that the mean of `new` draws lies below that of `old` ones by more than the threshold."""
    import numpy as np

    if not old or not new:
        return 0.0
    steps = 1 if all(score in (0, 1) for score, _ in pooled) else GRID
    chances = np.zeros(steps + 1)
    for score, weight in pooled:
        chances[round(score * steps)] += weight
    chances /= chances.sum()
    before, after = _sums(chances, old), _sums(chances, new)
    # the mean after, in steps, must stay below the mean before less the threshold
    bound = np.arange(len(before)) / old - (threshold + TOLERANCE) * steps
    below = np.ceil(bound * new).astype(int).clip(0, len(after))
    reached = np.concatenate([[0.0], np.cumsum(after)])
    return float(before @ reached[below])


def _sums(chances: NDArray[np.float64], draws: int) -> NDArray[np.float64]:
    """The distribution of the sum of so many draws."""
    import numpy as np

    size = (len(chances) - 1) * draws + 1
    return np.fft.irfft(np.fft.rfft(chances, size) ** draws, size).clip(0)
