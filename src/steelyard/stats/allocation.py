"""How to divide attempts between cases, so that their mean is known best."""

from __future__ import annotations

import math
from collections.abc import Sequence


def expected_variance(attempts: int, passes: int) -> float:
    """The variance of one attempt at a case that earlier attempts let one expect, as it is or once it passes half as often.

    The larger of both counts: cases that always pass are where a drop shows first, and only those that seldom pass can tell
    little of one. At a rate below one half it is the mean of p * (1 - p) over the posterior Beta(passes + 1/2, failures +
    1/2), so that a case that never passed so far may still vary a little; without any attempts it is that of an even case.

    >>> [round(expected_variance(10, passes), 4) for passes in (10, 5, 3, 1, 0)], expected_variance(0, 0)
    ([0.25, 0.25, 0.1989, 0.108, 0.0398], 0.25)
    """
    if not 0 <= passes <= attempts:
        raise ValueError(f"passes must lie between 0 and the attempts, got {passes}/{attempts}")
    total = attempts + 1
    if 2 * passes >= attempts:
        return 0.25
    return (passes + 0.5) * (attempts - passes + 0.5) / (total * (total + 1))


def neyman_allocation(variances: Sequence[float], attempts: int, *, least: int, most: int) -> list[int]:
    """The attempts at each case, `attempts` on average, for which the mean over the cases has the smallest variance.

    Every case gets between `least` and `most` of them. In proportion to standard deviations (Neyman 1934), in whole
    numbers: each further attempt goes where it lowers the variance most, which is exactly best, as Wright 2012 shows in
    "The equivalence of Neyman optimum allocation for sampling and equal proportions for apportioning the U.S. House of
    Representatives", The American Statistician 66, 217-224. More attempts on average give no case fewer.

    >>> neyman_allocation([0.25, 0.25, 0.01, 0.0], 4, least=2, most=10)
    [6, 6, 2, 2]
    """
    import numpy as np

    if not 1 <= least <= attempts <= most:
        raise ValueError(f"expected 1 <= least <= attempts <= most, got {least}, {attempts} and {most}")
    steps = np.arange(least, most, dtype=float)
    # the n-th attempt lowers the variance of a case's mean by v / n - v / (n + 1)
    gains = np.asarray(variances, float)[:, None] / (steps * (steps + 1))
    chosen = np.argsort(-gains, axis=None, kind="stable")[: (attempts - least) * len(variances)]
    return [least + int(count) for count in np.bincount(chosen // max(1, len(steps)), minlength=len(variances))]


def equal_attempts(variances: Sequence[float], attempts: Sequence[int]) -> float:
    """The number of attempts at every case with which a mean would be known as well as by these.

    >>> equal_attempts([0.25, 0.25, 0.0, 0.0], [6, 6, 2, 2])
    6.0
    """
    left = math.fsum(variance / count for variance, count in zip(variances, attempts, strict=True))
    return math.fsum(variances) / left if left else float(min(attempts))
