"""How likely it is that one, or that each, of k attempts succeeds."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

PRODUCT_PRECISION_BITS = 320
"""Bits that a long product keeps: after a million roundings and the worst cancellation a float's 53 are left many times."""
EXACT_FACTORS_PER_ROUNDING = 32
"""Factors that are multiplied exactly before their product is rounded."""


# models and cases share few pairs of attempts and passes
@lru_cache(maxsize=1 << 16)
def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The share of all k-subsets of n attempts that hold one of the c correct ones; None when k > n.

    The unbiased estimator `1 - C(n-c, k) / C(n, k)` of Chen et al. 2021, "Evaluating Large Language Models Trained
    on Code" (arXiv 2107.03374). Computed in whole numbers and rounded once: the float nearest to the true value.

    >>> pass_at_k(5, 2, 2)
    0.7
    >>> pass_at_k(3, 3, 5) is None
    True
    """
    n, c, k = _checked("pass@k", n, c, k)
    if k > n:
        return None
    # no float is left between 1 - exp(-40) and 1
    if n - c < k or c * k > 40 * n:
        return 1.0
    missed, every = _misses(n, c, k)
    return (every - missed) / every


@lru_cache(maxsize=1 << 16)
def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """The share of all k-subsets of n attempts in which every attempt is correct; None when k > n.

    The estimator `C(c, k) / C(n, k)` of pass^k in Yao et al. 2024, "tau-bench: A Benchmark for Tool-Agent-User
    Interaction in Real-World Domains" (arXiv 2406.12045). Computed as pass@k is: the float nearest to the true value.

    >>> pass_hat_k(10, 9, 8)
    0.2
    >>> pass_hat_k(3, 3, 5) is None
    True
    """
    n, c, k = _checked("pass^k", n, c, k)
    if k > n:
        return None
    wrong = n - c
    # below exp(-746) there is no float but 0
    if c < k or wrong * k > 746 * n:
        return 0.0
    missed, every = _misses(n, wrong, k)
    return missed / every


def histogram(
    tried: Sequence[int] | NDArray[np.integer], passed: Sequence[int] | NDArray[np.integer]
) -> dict[tuple[int, int], int]:
    """How many cases have n attempts of which c passed, by (n, c) in ascending order.

    pass@k depends on nothing else, so that a million cases cost no more than their distinct pairs.

    >>> histogram([5, 5, 3, 5], [2, 0, 3, 2])
    {(3, 3): 1, (5, 0): 1, (5, 2): 2}
    """
    import numpy as np

    attempts, passes = np.asarray(tried), np.asarray(passed)
    if attempts.ndim != 1 or attempts.shape != passes.shape:
        raise ValueError(f"every case needs its attempts and its passes, got {attempts.shape} and {passes.shape}")
    if not attempts.size:
        return {}
    if attempts.dtype.kind not in "iu" or passes.dtype.kind not in "iu":
        raise ValueError(f"attempts and passes must be whole numbers, got {attempts.dtype} and {passes.dtype}")
    if passes.min() < 0 or (passes > attempts).any():
        raise ValueError("passes must be between 0 and the attempts")
    fewest, most = int(attempts.min()), int(attempts.max())
    width = int(passes.max()) + 1
    if (most - fewest + 1) * width <= 2 * attempts.size + 1000:
        codes = passes if fewest == most else (attempts.astype(np.int64) - fewest) * width + passes
        counts = np.bincount(codes.astype(np.int64, copy=False))
        (found,) = counts.nonzero()
        pairs = zip((found // width + fewest).tolist(), (found % width).tolist(), strict=True)
        return dict(zip(pairs, counts[found].tolist(), strict=True))
    # ranks, because a code made of the numbers themselves could overflow
    sizes, size_ranks = np.unique(attempts, return_inverse=True)
    hits, hit_ranks = np.unique(passes, return_inverse=True)
    found, counts = np.unique(size_ranks * hits.size + hit_ranks, return_counts=True)
    pairs = zip(sizes[found // hits.size].tolist(), hits[found % hits.size].tolist(), strict=True)
    return dict(zip(pairs, counts.tolist(), strict=True))


def _checked(name: str, n: int, c: int, k: int) -> tuple[int, int, int]:
    # numpy's integers would overflow where ours grow
    n, c, k = operator.index(n), operator.index(c), operator.index(k)
    if n < 0 or c < 0 or c > n or k < 1:
        raise ValueError(f"{name} needs 0 <= c <= n and k >= 1, got n={n}, c={c}, k={k}")
    return n, c, k


def _misses(n: int, marked: int, k: int) -> tuple[int, int]:
    """How many k-subsets of n miss all the marked ones, and how many there are, both up to one factor.

    `C(n-m, k) / C(n, k)` is the product of `(n-a-i) / (n-i)` for i below b, where a and b are the greater and the
    lesser of m and k.
    """
    more, fewer = max(marked, k), min(marked, k)
    (missed, missed_shift), (every, every_shift) = _falling(n - more, fewer), _falling(n, fewer)
    least = min(missed_shift, every_shift)
    return missed << missed_shift - least, every << every_shift - least


def _falling(start: int, factors: int) -> tuple[int, int]:
    """`start * (start - 1) * ...` as a whole number and the power of two to multiply it by."""
    product, shift = 1, 0
    for done in range(0, factors, EXACT_FACTORS_PER_ROUNDING):
        product *= math.perm(max(start - done, 0), min(EXACT_FACTORS_PER_ROUNDING, factors - done))
        surplus = max(product.bit_length() - PRODUCT_PRECISION_BITS, 0)
        product >>= surplus
        shift += surplus
    return product, shift
