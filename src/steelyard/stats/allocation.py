"""How to divide attempts between cases, so that their mean is known best."""

from __future__ import annotations

import math
from collections.abc import Sequence


def expected_variance(attempts: int, passes: int) -> float:
    """The most that one attempt at a case may vary by, as it is or once it got worse, given earlier attempts at it.

    A case that passed at all may vary as much as any: one that always passes is where a drop shows first. For one that never
    passed it is the mean of p * (1 - p) over the posterior Beta(1/2, attempts + 1/2), which falls with the attempts.

    >>> expected_variance(10, 10), expected_variance(10, 1), expected_variance(0, 0)
    (0.25, 0.25, 0.25)
    >>> [round(expected_variance(attempts, 0), 4) for attempts in (1, 5, 10, 30)]
    [0.125, 0.0655, 0.0398, 0.0154]
    """
    if not 0 <= passes <= attempts:
        raise ValueError(f"passes must lie between 0 and the attempts, got {passes}/{attempts}")
    if passes or not attempts:
        return 0.25
    return 0.5 * (attempts + 0.5) / ((attempts + 1) * (attempts + 2))


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
