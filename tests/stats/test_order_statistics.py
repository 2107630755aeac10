"""Percentiles of values that are gone through are those of values that are sorted."""

from __future__ import annotations

import random

import pytest

from steelyard.stats.descriptive import percentile, streamed_percentiles

SHARES = (0.0, 0.05, 0.5, 0.95, 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_streamed_percentiles_are_the_percentiles_of_sorted_values(seed: int) -> None:
    chance = random.Random(seed)
    kinds = (
        chance.random,
        lambda: float(chance.randrange(3)),
        lambda: chance.paretovariate(0.2),
        lambda: 1.25,
        lambda: 1.0 + chance.randrange(4) * 2.0**-52,
        lambda: chance.choice((0.0, 5e-324, 1e308)),
    )
    values = [kinds[seed % len(kinds)]() for _ in range(chance.randrange(1, 400))]
    found = streamed_percentiles(lambda: values, SHARES, len(values), most=8)
    assert found == [percentile(values, share) for share in SHARES]
