"""The range of values that what was seen leaves plausible, by drawing the cases again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from steelyard.stats.intervals import Interval, upper_tail

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]

MAX_BOOTSTRAP_NUMBERS_IN_MEMORY = 1_000_000
"""Numbers held at a time, so that memory does not grow with the replicates."""
MAX_DRAWN_CASES_IN_MEMORY = 125_000
"""The same for drawn cases of which only the mean is taken: a processor's cache holds this many."""


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
    if statistic is None:
        found = np.concatenate(list(_means(bins, cases_of, replicates, seed)))
    else:
        found = np.concatenate([statistic(bins, weights) for weights in _weights(cases_of, replicates, seed)])
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


def _means(
    bins: NDArray[np.float64], cases_of: NDArray[np.int64], replicates: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """The mean of each replicate, in blocks."""
    import numpy as np

    cases = int(cases_of.sum())
    if _is_by_case(cases_of):
        # for the mean alone it does not matter how often each case was drawn
        values = np.repeat(bins, cases_of)
        for drawn in _draws(cases, replicates, seed, MAX_DRAWN_CASES_IN_MEMORY):
            yield values[drawn].sum(axis=1) / cases
    else:
        for weights in _weights(cases_of, replicates, seed):
            yield weights @ bins / cases


def _weights(cases_of: NDArray[np.int64], replicates: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """How often each bin is drawn: blocks of replicates, one row each."""
    import numpy as np

    cases, bins = int(cases_of.sum()), cases_of.size
    if _is_by_case(cases_of):
        bin_of = np.repeat(np.arange(bins), cases_of)
        for drawn in _draws(cases, replicates, seed):
            rows = len(drawn)
            places = bin_of[drawn] + bins * np.arange(rows)[:, None]
            yield np.bincount(places.ravel(), minlength=rows * bins).reshape(rows, bins)
    else:
        chance = np.random.Generator(np.random.PCG64(seed))
        for rows in _blocks(bins, replicates):
            yield chance.multinomial(cases, cases_of / cases, size=rows)


def _is_by_case(cases_of: NDArray[np.int64]) -> bool:
    """Whether cases are drawn one by one: a multinomial pays for every bin, drawing pays for every case, though far less."""
    return 2 * cases_of.size > int(cases_of.sum())


def _draws(
    cases: int, replicates: int, seed: int, most: int = MAX_BOOTSTRAP_NUMBERS_IN_MEMORY
) -> Iterator[NDArray[np.int64]]:
    """The cases that are drawn: blocks of replicates, one row each, the same however many numbers a block has at most."""
    import numpy as np

    chance = np.random.Generator(np.random.PCG64(seed))
    for rows in _blocks(cases, replicates, most):
        yield chance.integers(cases, size=(rows, cases))


def _blocks(width: int, replicates: int, most: int = MAX_BOOTSTRAP_NUMBERS_IN_MEMORY) -> Iterator[int]:
    """How many replicates are drawn at a time."""
    block = max(most // width, 1)
    for start in range(0, replicates, block):
        yield min(block, replicates - start)
