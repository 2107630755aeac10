"""Medians over cases that were run several times each, and how sure they are."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from steelyard.stats.intervals import Interval, mean_interval, upper_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

MIN_RESAMPLED_CASES = 5
"""With fewer cases to draw from, the draws are too few to speak of others."""
MAX_MEDIAN_NUMBERS_IN_MEMORY = 4_000_000
"""Numbers held at a time, so that memory does not grow with the replicates."""


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
        raise ValueError("every value must lie in [0, 1]")
    if len(ordered) < 2:
        return None
    low = _lower_median_bound(ordered, level)
    # what is too high is too low in the mirror
    high = _lower_median_bound([[-value for value in reversed(values)] for values in ordered], level)
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
    rows = max(MAX_MEDIAN_NUMBERS_IN_MEMORY // max(sum(map(len, side)) + len(side) for side in sides), 1)
    found: list[Floats] = []
    for start in range(0, replicates, rows):
        count = min(rows, replicates - start)
        drawn = [_resample_counts(chance, len(side), count) for side in (sides if alone else sides[:1])]
        before, after = (
            _medians(side, weights) for side, weights in zip(sides, drawn * (2 // len(drawn)), strict=True)
        )
        if np.isnan(before).any() or np.isnan(after).any() or ((before == 0) & (after == 0)).any():
            return None
        with np.errstate(divide="ignore"):
            found.append((after - before) / before)
    uplifts = np.sort(np.concatenate(found))
    beyond = int(replicates * (1 - upper))
    return Interval(float(uplifts[beyond]), float(uplifts[replicates - 1 - beyond]))


def _lower_median_bound(cases: Sequence[Sequence[float]], level: float) -> float | None:
    """The lowest value that may be the median; None where any lower one may be."""
    values = sorted({value for case in cases for value in case})
    runs = sorted(value for case in cases for value in case)
    start = bisect_left(values, runs[(len(runs) - 1) // 2])

    def is_too_low(place: int) -> bool:
        return _is_less_than_half(cases, values[place] if place >= 0 else -math.inf, level)

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
    return values[kept]


def _is_less_than_half(cases: Sequence[Sequence[float]], value: float, level: float) -> bool:
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

    return chance.multinomial(units, np.full(units, 1 / units), size=rows)


def _medians(units: Sequence[Sequence[float]], weights: Integers) -> Floats:
    """The median over all values of the units, each unit as often as it was drawn; NaN where none was that has any."""
    import numpy as np

    values = np.array([value for unit in units for value in unit], np.float64)
    unit_of = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    if not len(values):
        return np.full(len(weights), np.nan)
    order = np.argsort(values, kind="stable")
    values, unit_of = values[order], unit_of[order]
    reached = np.cumsum(weights[:, unit_of], axis=1)
    size = reached[:, -1]
    below = (reached > ((size - 1) // 2)[:, None]).argmax(axis=1)
    above = (reached > (size // 2)[:, None]).argmax(axis=1)
    medians: Floats = np.where(size > 0, (values[below] + values[above]) / 2, np.nan)
    return medians
