"""How far judges agree on the same items.

Ratings are given judge by judge, each a sequence over the same items, with None where a judge did not rate. An item
with fewer than 2 ratings says nothing about agreement and is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from steelyard.stats.intervals import Interval

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[tuple[int, int], np.dtype[np.float64]]
    Row = np.ndarray[tuple[int], np.dtype[np.float64]]

Ratings = Sequence[Sequence[float | None]]
ItemRatings = tuple[float, ...]
"""The ratings of one item in ascending order: who gave which does not matter."""
MeasurementLevel = Literal["nominal", "interval"]
"""Whether the size of a difference between ratings counts."""

MAX_RESAMPLED_COUNTS_IN_MEMORY = 1_000_000
"""How many resampled counts are in memory at a time."""
RELATIVE_ROUNDING_TOLERANCE = 1e-12
"""A difference of at most this share of its operands is rounding, and counts as 0."""


def raw_agreement(ratings: Ratings) -> float | None:
    """The share of pairs of judges that give an item the same rating, averaged over items; None without a pair.

    Fleiss 1971, "Measuring nominal scale agreement among many raters", Psychological Bulletin 76, 378-382.

    >>> raw_agreement([[1, 1, 0, 1], [1, 0, 0, 1]])
    0.75
    """
    return _raw_agreement(_items(ratings))


def krippendorff_alpha(ratings: Ratings, *, level: MeasurementLevel) -> float | None:
    """Agreement beyond chance: 1 is perfect, 0 is what chance gives; None when all ratings are the same.

    Krippendorff 2011, "Computing Krippendorff's alpha-reliability", University of Pennsylvania. It falls towards 0
    where nearly all ratings are the same, however well the judges agree: show `gwet_ac1` and `raw_agreement` beside it.

    >>> ratings = [[1, 1, 0, None, 0], [1, 0, 0, 1, None], [None, 1, 0, 1, 0]]
    >>> f"{krippendorff_alpha(ratings, level='nominal'):.12f}"
    '0.694444444444'
    """
    items = _items(ratings)
    values = [value for item in items for value in item]
    expected = _disagreement(values, level)
    if not expected:
        return None
    observed = math.fsum(_disagreement(item, level) / (len(item) - 1) for item in items)
    return 1 - (len(values) - 1) * observed / expected


def gwet_ac1(ratings: Ratings) -> float | None:
    """Agreement beyond chance that stays sensible where nearly all ratings are the same; None without a pair.

    Gwet 2008, "Computing inter-rater reliability and its variance in the presence of high agreement", British Journal
    of Mathematical and Statistical Psychology 61, 29-48. Chance is counted over the ratings that occur.

    >>> ratings = [[1, 1, 0, 1, 0, 1, 1, 0, 1, 1], [1, 0, 0, 1, 0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1, 1, 0, 1, 0]]
    >>> f"{gwet_ac1(ratings):.12f}"
    '0.540229885057'
    """
    items = _items(ratings)
    agreed = _raw_agreement(items)
    kinds = sorted({value for item in items for value in item})
    if agreed is None or len(kinds) == 1:
        return agreed
    shares = [math.fsum(item.count(kind) / len(item) for item in items) / len(items) for kind in kinds]
    by_chance = math.fsum(share * (1 - share) for share in shares) / (len(kinds) - 1)
    return (agreed - by_chance) / (1 - by_chance)


def alpha_interval(
    ratings: Ratings, *, level: MeasurementLevel, seed: int, replicates: int = 2000, confidence: float = 0.95
) -> Interval | None:
    """Interval for Krippendorff's alpha over items like these; None below 2 items or when alpha is None.

    Percentiles of alpha over items resampled with replacement: Zapf et al. 2016, "Measuring inter-rater reliability
    for nominal data - which coefficients and confidence intervals are appropriate?", BMC Medical Research Methodology
    16, 93. A draw of nothing but equal ratings has no alpha and is left out. The same seed gives the same interval,
    whatever the order of items and judges.

    >>> ratings = [[1, 1, 0, 1, 0, 1, 1, 0, 1, 1], [1, 0, 0, 1, 0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1, 1, 0, 1, 0]]
    >>> low, high = alpha_interval(ratings, level="nominal", seed=1)
    >>> low < 73 / 189 < high
    True
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    if replicates < 1:
        raise ValueError(f"replicates must be 1 or more, got {replicates}")
    items = Counter(_items(ratings))
    if items.total() < 2 or len({value for item in items for value in item}) < 2:
        return None
    import numpy as np

    chance = np.random.default_rng(seed)
    patterns = sorted(items)
    shares = np.array([items[pattern] for pattern in patterns]) / items.total()
    batch = max(1, MAX_RESAMPLED_COUNTS_IN_MEMORY // len(patterns))
    drawn: list[float] = []
    for start in range(0, replicates, batch):
        counts = chance.multinomial(items.total(), shares, size=min(batch, replicates - start))
        drawn += _alphas(counts.astype(float), patterns, level).tolist()
    defined = [alpha for alpha in drawn if not math.isnan(alpha)]
    if not defined:
        return None
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def _items(ratings: Ratings) -> list[ItemRatings]:
    """The ratings of each item that at least 2 judges rated."""
    if len({len(judge) for judge in ratings}) > 1:
        raise ValueError(f"every judge needs one rating or None per item, got {[len(judge) for judge in ratings]}")
    if not all(rating is None or math.isfinite(rating) for judge in ratings for rating in judge):
        raise ValueError("a rating is a finite number or None")
    found = (tuple(sorted(r for r in item if r is not None)) for item in zip(*ratings, strict=True))
    return [item for item in found if len(item) > 1]


def _raw_agreement(items: Sequence[ItemRatings]) -> float | None:
    if not items:
        return None
    pairs = (1 - _disagreement(item, "nominal") / (len(item) * (len(item) - 1)) for item in items)
    return math.fsum(pairs) / len(items)


def _disagreement(values: Sequence[float], level: MeasurementLevel) -> float:
    """How much the ordered pairs of these values differ in total."""
    if level == "nominal":
        return len(values) ** 2 - sum(times**2 for times in Counter(values).values())
    if not values or min(values) == max(values):
        return 0.0
    mean = math.fsum(values) / len(values)
    return 2 * len(values) * math.fsum((value - mean) ** 2 for value in values)


def _alphas(counts: Table, patterns: Sequence[ItemRatings], level: MeasurementLevel) -> Row:
    """Alpha for each row of how often every pattern was drawn; NaN where it is not defined."""
    import numpy as np

    total = counts @ np.array([len(pattern) for pattern in patterns])
    observed = counts @ np.array([_disagreement(pattern, level) / (len(pattern) - 1) for pattern in patterns])
    if level == "nominal":
        kinds = sorted({value for pattern in patterns for value in pattern})
        times = counts @ np.array([[pattern.count(kind) for kind in kinds] for pattern in patterns])
        scale = total**2
        expected = scale - (times**2).sum(axis=1)
    else:
        # distances do not depend on where 0 is, and close to the middle least is lost in the difference
        middle = (min(patterns)[0] + max(pattern[-1] for pattern in patterns)) / 2
        sums = counts @ np.array([math.fsum(value - middle for value in pattern) for pattern in patterns])
        squares = counts @ np.array([math.fsum((value - middle) ** 2 for value in pattern) for pattern in patterns])
        scale = 2 * total * squares
        expected = scale - 2 * sums**2
    # what rounding leaves of a difference between equals must not pass for a difference
    differ = expected > RELATIVE_ROUNDING_TOLERANCE * scale
    ratio = np.full(len(counts), np.nan)
    np.divide((total - 1) * observed, expected, out=ratio, where=differ)
    return 1 - ratio
