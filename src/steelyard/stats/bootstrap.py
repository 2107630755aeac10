"""The range of a statistic over suites drawn again from the cases at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.stats.intervals import Interval, upper_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]

DRAWN_AT_ONCE = 1_000_000
"""Numbers held at a time, so that memory does not grow with the replicates."""


def bootstrap(
    values: Sequence[float] | NDArray[np.float64],
    counts: Sequence[int] | NDArray[np.int64] | None = None,
    *,
    statistic: Statistic | None = None,
    replicates: int = 10_000,
    seed: int,
    level: float = 0.95,
) -> Interval | None:
    """Percentile interval of a statistic over cases; None below 2 cases or where a replicate leaves it undefined.

    `counts` says how many cases have each value. `statistic` gets the distinct values and, one row per replicate, how
    often each was drawn, and gives one number per row, NaN where it is undefined; without it, the mean.

    Efron 1979, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1-26; the percentile
    interval is Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13. Cases of equal value are
    drawn together, as one multinomial: the distribution is the same, the cost is that of the distinct values.

    >>> low, high = bootstrap([0.0, 1.0], [200_000, 800_000], seed=1)
    >>> f"{low:.4f} {high:.4f}"
    '0.7992 0.8008'
    """
    import numpy as np

    upper = upper_tail(level)
    if replicates < 1:
        raise ValueError(f"replicates must be at least 1, got {replicates}")
    bins, cases_of = _bins(values, counts)
    cases = int(cases_of.sum())
    if cases < 2:
        return None
    found = np.concatenate(
        [
            statistic(bins, weights) if statistic else weights @ bins / cases
            for weights in _weights(cases_of, replicates, seed)
        ]
    )
    if found.shape != (replicates,):
        raise ValueError(f"a statistic gives one number per replicate, got shape {found.shape} for {replicates}")
    if np.isnan(found).any():
        return None
    # an end is one of the replicates: between a number and infinity there is no middle
    beyond = int(replicates * (1 - upper))
    found.partition([beyond, replicates - 1 - beyond])
    return Interval(float(found[beyond]), float(found[replicates - 1 - beyond]))


def _bins(
    values: Sequence[float] | NDArray[np.float64], counts: Sequence[int] | NDArray[np.int64] | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The distinct values that occur, and how often."""
    import numpy as np

    bins = np.asarray(values, dtype=np.float64)
    if not np.isfinite(bins).all():
        raise ValueError("every value must be a finite number")
    if counts is None:
        bins, found = np.unique(bins, return_counts=True)
        return bins, found.astype(np.int64)
    cases_of = np.asarray(counts, dtype=np.int64)
    if bins.shape != cases_of.shape:
        raise ValueError(f"{bins.size} values cannot have {cases_of.size} counts")
    if (cases_of < 0).any():
        raise ValueError("counts must not be negative")
    return bins[cases_of > 0], cases_of[cases_of > 0]


def _weights(cases_of: NDArray[np.int64], replicates: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """How often each bin is drawn: blocks of replicates, one row each."""
    import numpy as np

    chance = np.random.Generator(np.random.PCG64(seed))
    cases, bins = int(cases_of.sum()), cases_of.size
    # a multinomial pays for every bin, drawing cases pays for every case, though far less for each
    by_case = 2 * bins > cases
    block = max(DRAWN_AT_ONCE // (cases if by_case else bins), 1)
    bin_of = np.repeat(np.arange(bins), cases_of) if by_case else np.arange(0)
    for start in range(0, replicates, block):
        rows = min(block, replicates - start)
        if by_case:
            drawn = bin_of[chance.integers(cases, size=(rows, cases))] + bins * np.arange(rows)[:, None]
            yield np.bincount(drawn.ravel(), minlength=rows * bins).reshape(rows, bins)
        else:
            yield chance.multinomial(cases, cases_of / cases, size=rows)
