"""What a handful of values looks like, and medians over cases with their intervals."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from steelyard.records import Record
from steelyard.stats.intervals import Interval, mean_interval, upper_tail

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Values = Sequence[float] | Floats


class Statistics(Record, frozen=True, kw_only=True):
    """Descriptive statistics of some values; all but the count are None without values."""

    median: float | None
    mean: float | None
    mode: float | None
    """The most frequent value, the smallest of several."""
    min: float | None
    max: float | None
    std_dev: float | None
    """The population's: the values are all there are. None beside an infinite value."""
    count: int


def describe(values: Values) -> Statistics:
    """The statistics that a tier reports of its runs.

    ProjectScylla, "Metrics Formulas Documentation", section "Aggregate Statistics". An infinite value, such as the cost
    of pass of a run that failed, makes the mean infinite and leaves the median finite while most are.

    >>> found = describe([0.9, 0.4, 0.4, 0.1, 0.2, 0.9])
    >>> found.median, found.mode, f"{found.mean:.10f}", f"{found.std_dev:.10f}"
    (0.4, 0.4, '0.4833333333', '0.3131382371')
    """
    import numpy as np

    ordered = _sorted(values)
    size = len(ordered)
    if not size:
        return Statistics(median=None, mean=None, mode=None, min=None, max=None, std_dev=None, count=0)
    spread = variance(ordered)
    # equal values stand together, and the first of the most frequent ones is the smallest
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    often = np.diff(np.append(starts, size)).argmax()
    return Statistics(
        median=_middle(ordered),
        mean=plain_mean(ordered.tolist()),
        mode=float(ordered[starts[often]]),
        min=float(ordered[0]),
        max=float(ordered[-1]),
        std_dev=None if spread is None else math.sqrt(spread),
        count=size,
    )


def median(values: Values) -> float | None:
    """The median, between both middle values where they are two; None without values.

    >>> median([0.9, 0.4, 0.4, 0.1, 0.2, 0.9])
    0.4
    """
    ordered = _sorted(values)
    return _middle(ordered) if len(ordered) else None


def variance(values: Values) -> float | None:
    """The population variance: the mean squared distance from the mean; None without values or beside an infinite one.

    ProjectScylla, "Metrics Formulas Documentation", section "Standard Deviation".

    >>> f"{variance([0.70, 0.80, 0.85, 0.90]):.8f}"
    '0.00546875'
    """
    ordered = _sorted(values)
    if not len(ordered) or ordered[-1] == math.inf:
        return None
    mean = plain_mean(ordered.tolist())
    return math.fsum(((ordered - mean) ** 2).tolist()) / len(ordered)


def plain_mean(values: Sequence[float]) -> float:
    """The mean of at least one value, which for equal values is the value itself and no neighbour of it."""
    return values[0] if min(values) == max(values) else math.fsum(values) / len(values)


def _sorted(values: Values) -> Floats:
    """The values in order; raises a ValueError if one is no number or lies below all of them."""
    import numpy as np

    ordered = np.sort(np.asarray(values, np.float64))
    # what is no number stands last
    if len(ordered) and (math.isnan(ordered[-1]) or ordered[0] == -math.inf):
        _check(ordered.tolist())
    return ordered


def _middle(ordered: Floats) -> float:
    size = len(ordered)
    return float((ordered[(size - 1) // 2] + ordered[size // 2]) / 2)


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value that a share of them does not exceed, on a straight line between neighbours; None without values.

    Definition 7 of Hyndman and Fan 1996, "Sample quantiles in statistical packages", The American Statistician 50,
    361-365: the one numpy uses.

    >>> percentile([1, 2, 3, 10], 0.5), percentile([1, 2, 3, 10], 0.75)
    (2.5, 4.75)
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be in [0, 1], got {share}")
    _check(values)
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    low, high = ordered[below], ordered[math.ceil(place)]
    # the distance of an infinite value from itself is not a number
    return low if low == high else low + (high - low) * (place - below)


def flip_rate(n: int, c: int) -> float | None:
    """How likely two attempts of n, c of them correct, are to disagree; None below 2 attempts.

    The share of pairs that disagree, an unbiased estimate of 2p(1-p): Gini's mean difference of a yes or no; David
    1968, "Gini's mean difference rediscovered", Biometrika 55, 573-575.

    >>> f"{flip_rate(10, 8):.10f}"
    '0.3555555556'
    """
    if not 0 <= c <= n:
        raise ValueError(f"the correct attempts must be between 0 and all, got {c} of {n}")
    return None if n < 2 else 2 * c * (n - c) / (n * (n - 1))


def _check(values: Sequence[float]) -> None:
    if any(map(math.isnan, values)) or -math.inf in values:
        wrong = next(value for value in values if math.isnan(value) or value == -math.inf)
        raise ValueError(f"a value is a number or infinity, got {wrong}")


MIN_RESAMPLED_CASES = 5
"""With fewer cases to draw from, the draws are too few to speak of others."""
MAX_MEDIAN_NUMBERS_IN_MEMORY = 500_000
"""Numbers held at a time, so that memory does not grow with the replicates."""
MAX_LONE_CASE_NUMBERS_IN_MEMORY = 4_000_000
"""The same for the runs of a single case: both sides are drawn in turn, so what is drawn depends on it."""
MAX_MEDIAN_BLOCK_NUMBERS = 250_000
"""Numbers of a block in which medians are looked for: there are four tables of this size."""
MAX_MULTINOMIAL_UNITS = 5_000
"""Units whose counts are drawn by a multinomial."""
MIN_MEDIAN_WINDOW = 256
"""Values on each side of the median among which the medians of replicates are looked for first, at least."""


def median_interval(cases: Sequence[Sequence[float]], *, level: float = 0.95) -> Interval | None:
    """Interval for the median of all runs of cases like these, of values in [0, 1]; None below 2 cases.

    `cases` holds the values of each case's runs; the case is the sampling unit, however often it was run. A value is
    too low to be the median when the share of runs up to it is surely less than half, and too high when the share
    below it is surely more than half. "Surely" is what `mean_interval` says of the mean over cases of such shares, so
    runs of one case may be as alike as they like, and values may be tied. Turning intervals of shares into one of a
    quantile: Woodruff 1952, "Confidence intervals for medians and other position measures", JASA 47, 635-646; with a
    test at each value and cases in clusters: Francisco and Fuller 1991, "Quantile estimation with a complex survey
    design", Annals of Statistics 19, 454-469. Nothing is drawn and nothing is assumed about how values spread.

    The ends are values that occur. An end that is 0 or 1 although no run is may be one that the cases are too few to
    tell: up to 6 of them never can, because as many may lie on one side of the median by chance.

    >>> low, high = median_interval([[0.91], [0.75], [0.85], [0.60], [0.95], [0.88], [0.79], [0.93], [0.70], [0.97]])
    >>> low, high
    (0.7, 0.95)
    """
    upper_tail(level)
    ordered = [sorted(map(float, values)) for values in cases if values]
    if not all(0 <= value <= 1 for values in ordered for value in values):
        raise ValueError("every value must be in [0, 1]")
    if len(ordered) < 2:
        return None

    def bound() -> float | None:
        values = [value for case in ordered for value in case]
        return lower_median_bound(values, partial(_is_less_than_half, ordered, level=level))

    low = bound()
    # what is too high is too low in the mirror
    for place, values in enumerate(ordered):
        ordered[place] = [-value for value in reversed(values)]
    high = bound()
    return Interval(0.0 if low is None else low, 1.0 if high is None else -high)


def uplift_interval(
    baseline: Sequence[Sequence[float]],
    current: Sequence[Sequence[float]],
    *,
    seed: int,
    replicates: int = 2000,
    level: float = 0.95,
) -> Interval | None:
    """Interval for how much greater the current median is than the baseline's, as a share of the baseline's.

    Both sides hold the values of each case's runs, in the same order of cases; a case that a side did not run is empty.
    Whole cases are resampled, with the runs of both sides; of a single case, the runs are. Percentiles over
    these draws: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapters 8 and 13. The upper end is
    infinite where the baseline's median could as well be 0. None below 5 cases or runs, and where a draw leaves the
    uplift undefined, because a side has no run in it or both medians are 0.

    >>> low, high = uplift_interval([[0.7, 0.7]] * 5, [[0.8, 0.8]] * 5, seed=1)
    >>> f"{low:.12f} {high:.12f}"
    '0.142857142857 0.142857142857'
    """
    import numpy as np

    if len(baseline) != len(current):
        raise ValueError(f"both sides need the same cases, got {len(baseline)} and {len(current)}")
    if replicates < 1:
        raise ValueError(f"replicates must be at least 1, got {replicates}")
    upper = upper_tail(level)
    alone = len(baseline) == 1
    sides = [[[value] for value in side[0]] if alone else side for side in (baseline, current)]
    if min(map(len, sides)) < MIN_RESAMPLED_CASES:
        return None
    chance = np.random.Generator(np.random.PCG64(seed))
    most = MAX_LONE_CASE_NUMBERS_IN_MEMORY if alone else MAX_MEDIAN_NUMBERS_IN_MEMORY
    rows = max(most // max(map(len, sides)), 1)
    pooled = [PooledValues(side) for side in sides]
    found: list[Floats] = []
    for start in range(0, replicates, rows):
        count = min(rows, replicates - start)
        drawn = [_resample_counts(chance, len(side), count) for side in (sides if alone else sides[:1])]
        before, after = (side.medians(weights) for side, weights in zip(pooled, drawn * (2 // len(drawn)), strict=True))
        if np.isnan(before).any() or np.isnan(after).any() or ((before == 0) & (after == 0)).any():
            return None
        with np.errstate(divide="ignore"):
            found.append((after - before) / before)
    uplifts = np.sort(np.concatenate(found))
    beyond = int(replicates * (1 - upper))
    return Interval(float(uplifts[beyond]), float(uplifts[replicates - 1 - beyond]))


def lower_median_bound(values: Sequence[float], is_less_than_half: Callable[[float], bool]) -> float | None:
    """The lowest value of all runs that may be the median; None if any lower one may be.

    `is_less_than_half` says whether surely less than half of such runs have a value or a lower one.
    """
    runs, distinct = sorted(values), sorted(set(values))
    start = bisect_left(distinct, runs[(len(runs) - 1) // 2])

    def is_too_low(place: int) -> bool:
        return is_less_than_half(distinct[place] if place >= 0 else -math.inf)

    # shares fall with the value, so what is below a value that is too low is so as well
    kept, step = start, 1
    while not is_too_low(refused := max(start - step, -1)):
        kept = refused
        if refused < 0:
            return None
        step *= 2
    while kept - refused > 1:
        middle = (kept + refused) // 2
        if is_too_low(middle):
            refused = middle
        else:
            kept = middle
    return distinct[kept]


def _is_less_than_half(cases: Sequence[Sequence[float]], value: float, *, level: float) -> bool:
    """Whether surely less than half of the runs of cases like these have this value or a lower one."""
    counts = [bisect_right(case, value) for case in cases]
    sizes = [len(case) for case in cases]
    if len(set(sizes)) == 1:
        shares = [count / size for count, size in zip(counts, sizes, strict=True)]
        interval = mean_interval(shares, attempts=sum(sizes), level=level)
    else:
        # every run counts the same, so a case counts as often as it was run
        flags = [float(at < count) for count, size in zip(counts, sizes, strict=True) for at in range(size)]
        names = [name for name, size in enumerate(sizes) for _ in range(size)]
        interval = mean_interval(flags, attempts=len(flags), groups=names, level=level)
    return interval is not None and interval.high < 0.5


def _resample_counts(chance: np.random.Generator, units: int, rows: int) -> Integers:
    """How often each unit is drawn, one row per replicate."""
    import numpy as np

    if units <= MAX_MULTINOMIAL_UNITS:
        return chance.multinomial(units, np.full(units, 1 / units), size=rows)
    # the same counts by drawing unit after unit, which is much faster for many
    return np.stack([np.bincount(chance.integers(units, size=units), minlength=units) for _ in range(rows)])


class PooledValues:
    """The values of sampled units together, sorted once for all replicates of a bootstrap."""

    def __init__(self, units: Sequence[Sequence[float]]) -> None:
        import numpy as np

        sizes = [len(unit) for unit in units]
        values = np.array([value for unit in units for value in unit], np.float64)
        order = np.argsort(values, kind="stable")
        self._values = values[order]
        self._unit_of = np.repeat(np.arange(len(units)), sizes)[order]
        self._sizes = np.array(sizes, np.int64)

    def medians(self, weights: Integers) -> Floats:
        """The median over all values for each row of weights, each unit as often as it was drawn; NaN where none was that has any.

        Nearly all medians lie close to that of the values themselves, so the values are added up there alone, and further
        out only for the replicates that need it.
        """
        import numpy as np

        found: Floats = np.full(len(weights), np.nan)
        size = weights @ self._sizes
        waiting = np.flatnonzero(size)
        middle, half = len(self._values) // 2, MIN_MEDIAN_WINDOW + 2 * math.isqrt(len(self._values))
        while len(waiting):
            low, high = max(0, middle - half), min(len(self._values), middle + half)
            within, units = self._unit_of[low:high], len(self._sizes)
            before = weights[waiting] @ np.bincount(self._unit_of[:low], minlength=units)
            until = before + weights[waiting] @ np.bincount(within, minlength=units)
            is_reached = (before <= (size[waiting] - 1) // 2) & (until > size[waiting] // 2)
            rows, passed = waiting[is_reached], before[is_reached]
            block = max(MAX_MEDIAN_BLOCK_NUMBERS // (high - low), 1)
            for start in range(0, len(rows), block):
                some = rows[start : start + block]
                reached = np.cumsum(weights[np.ix_(some, within)], axis=1) + passed[start : start + block, None]
                ends = ((reached > rank[:, None]).argmax(axis=1) for rank in ((size[some] - 1) // 2, size[some] // 2))
                found[some] = sum(self._values[low + end] for end in ends) / 2
            waiting = waiting[~is_reached]
            half *= 4
        return found


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
