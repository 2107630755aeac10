"""Percentiles of values that are gone through several times instead of being held in memory."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

BUCKETS = 1 << 14
"""Counts that are held in one pass."""
MAX_COLLECTED_VALUES = 1 << 16
"""Values of a bucket that are sorted in memory."""


def streamed_percentiles(
    values: Callable[[], Iterable[float]], shares: Sequence[float], size: int, *, most: int = MAX_COLLECTED_VALUES
) -> list[float]:
    """The same as `percentile` for each share, of `size` finite values that every call of `values` goes through.

    >>> streamed_percentiles(lambda: [1, 2, 3, 10], (0.5, 0.75), 4)
    [2.5, 4.75]
    """
    places = [(size - 1) * share for share in shares]
    ranks = sorted({rank for place in places for rank in (math.floor(place), math.ceil(place))})
    low, high = math.inf, -math.inf
    for value in values():
        low, high = min(low, value), max(high, value)
    found = _order_statistics(values, ranks, (low, high), size, most)
    at = [(found[math.floor(place)], found[math.ceil(place)], place - math.floor(place)) for place in places]
    return [below if below == above else below + (above - below) * part for below, above, part in at]


def _order_statistics(
    values: Callable[[], Iterable[float]], ranks: Sequence[int], between: tuple[float, float], size: int, most: int
) -> dict[int, float]:
    """The values at these ranks, from 0, of those that lie between two, both included."""
    low, high = between
    if low == high:
        return dict.fromkeys(ranks, low)
    if size <= most:
        ordered = sorted(value for value in values() if low <= value <= high)
        return {rank: ordered[rank] for rank in ranks}
    width = (high - low) / BUCKETS
    counts = [0] * (BUCKETS + 1)
    least, greatest = [math.inf] * (BUCKETS + 1), [-math.inf] * (BUCKETS + 1)
    for value in values():
        if low <= value <= high:
            place = min(BUCKETS, int((value - low) / width)) if width else 0
            counts[place] += 1
            least[place], greatest[place] = min(least[place], value), max(greatest[place], value)
    ends = list(accumulate(counts))
    by_bucket: dict[int, list[int]] = {}
    for rank in ranks:
        by_bucket.setdefault(bisect_right(ends, rank), []).append(rank)
    found: dict[int, float] = {}
    for place, inside in by_bucket.items():
        before = ends[place] - counts[place]
        bounds = least[place], greatest[place]
        # where a bucket holds everything, floating point cannot tell its values apart by dividing
        limit = counts[place] if bounds == between else most
        deeper = _order_statistics(values, [rank - before for rank in inside], bounds, counts[place], limit)
        found |= {rank + before: value for rank, value in deeper.items()}
    return found
