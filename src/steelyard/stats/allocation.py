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


def neyman_attempts(variances: Sequence[float], attempts: int, *, least: int) -> list[int]:
    """The attempts at each case, if one that varies as much as any can gets `attempts`.

    In proportion to standard deviations, so that no other division of as many attempts lets the mean over the cases be known
    better: Neyman 1934, "On the two different aspects of the representative method", Journal of the Royal Statistical
    Society 97, 558-625. Rounded up, at least `least`, and never more than `attempts`.

    >>> neyman_attempts([0.25, 0.16, 0.01, 0.0], 10, least=2)
    [10, 8, 2, 2]
    """
    if not 1 <= least <= attempts:
        raise ValueError(f"expected 1 <= least <= attempts, got {least} and {attempts}")
    # a whole number must not be rounded up because its root was not exact
    shares = (math.ceil(2 * math.sqrt(variance) * attempts - 1e-9) for variance in variances)
    return [min(attempts, max(least, share)) for share in shares]


def equal_attempts(variances: Sequence[float], attempts: Sequence[int]) -> float:
    """The number of attempts at every case with which a mean would be known as well as by these.

    >>> equal_attempts([0.25, 0.25, 0.0, 0.0], [6, 6, 2, 2])
    6.0
    """
    left = math.fsum(variance / count for variance, count in zip(variances, attempts, strict=True))
    return math.fsum(variances) / left if left else float(min(attempts))
