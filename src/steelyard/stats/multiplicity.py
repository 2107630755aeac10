"""What p-values are worth when there are many of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def holm(p: Sequence[float]) -> list[float]:
    """Each p-value adjusted so that those up to alpha hold one false alarm or more with chance alpha at most.

    Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 65-70.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = _ascending(p)
    scaled = (min(1.0, (len(p) - rank) * p[place]) for rank, place in enumerate(order))
    return _in_original_order(order, accumulate(scaled, max))


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Each p-value adjusted so that of those up to q a share of q at most are false alarms, on average.

    Benjamini and Hochberg 1995, "Controlling the false discovery rate: a practical and powerful approach to multiple
    testing", Journal of the Royal Statistical Society B 57, 289-300. It holds for independent p-values and for those
    that rise and fall together.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    order = _ascending(p)[::-1]
    scaled = (min(1.0, p[place] * len(p) / (len(p) - rank)) for rank, place in enumerate(order))
    return _in_original_order(order, accumulate(scaled, min))


def _ascending(p: Sequence[float]) -> list[int]:
    """The places of the p-values, the smallest p-value's first."""
    for value in p:
        if not 0 <= value <= 1:
            raise ValueError(f"a p-value lies in [0, 1], got {value}")
    return sorted(range(len(p)), key=p.__getitem__)


def _in_original_order(order: Sequence[int], adjusted: accumulate[float]) -> list[float]:
    """The adjusted values at the places they came from."""
    return [value for _, value in sorted(zip(order, adjusted, strict=True))]
