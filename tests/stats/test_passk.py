"""pass@k is exact for every n a run can have."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from steelyard.stats.passk import histogram, pass_at_k, pass_hat_k


def missed(n: int, marked: int, k: int) -> Fraction:
    """The share of k-subsets without a marked one, exactly; drawing and marking can trade places."""
    more, fewer = max(marked, k), min(marked, k)
    return Fraction(math.comb(n - more, fewer), math.comb(n, fewer)) if more + fewer <= n else Fraction(0)


def chosen(chance: random.Random, largest: int, longest: int) -> tuple[int, int, int]:
    """Numbers of all sizes, of which the exact fraction can still be computed."""

    def of_any_size(most: int) -> int:
        return min(int(math.exp(chance.uniform(0, math.log(most + 1)))), most)

    n = of_any_size(largest)
    one, other = of_any_size(n), of_any_size(min(n, longest))
    return (n, one, other) if chance.random() < 0.5 else (n, other, one)


ADVERSE = [
    *((n, c, k) for n in (10**4, 10**6, 10**9) for c, k in ((999, 1000), (1000, 1000), (1001, 1000), (1001, 1001))),
    *((10**9, c, k) for c, k in ((1, 1), (1, 10**9), (2, 5 * 10**8), (10**4, 10**4), (10**9 - 1, 1), (10**6, 10**4))),
    *((10**9, c, 10_000) for c in (4_000_000, 4_000_001, 3_999_999, 10**8, 10**9 - 10_000)),
    *((n, n // 2, k) for n in (2000, 4001, 10**6) for k in (1, 30, 60, 999, 1000)),
]


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [
        (5, 2, 1, 0.4),
        (5, 2, 2, 0.7),
        (5, 2, 3, 0.9),
        (5, 2, 4, 1.0),
        (10, 1, 10, 1.0),
        (10, 3, 5, 0.91666666666666666667),
        (10, 5, 5, 0.99603174603174603175),
        (20, 3, 10, 0.89473684210526315789),
        (100, 5, 10, 0.41624763307384809594),
        (200, 1, 100, 0.5),
        (200, 20, 10, 0.66022562376321408436),
        (10**6, 1, 1, 1e-6),
        (10**6, 1, 100, 1e-4),
        (10**6, 10, 10, 0.000099995950082349196752),
        (10**6, 1000, 100, 0.09521233637707195456),
        (10**6, 500_000, 10, 0.9990234814447412116),
        (10**9, 1, 1, 1e-9),
        (10**9, 3, 10, 2.999999973000000045e-8),
        (10**9, 10_000, 100, 9.9950521111181756129e-4),
        (10**9, 10**6, 1000, 0.63230475907682494414),
    ],
)
def test_published_values_hold_to_fourteen_digits(n: int, c: int, k: int, value: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(value, rel=1e-14, abs=0)


def test_it_is_the_share_of_all_subsets_that_hold_a_correct_attempt() -> None:
    for n in range(1, 11):
        for c in range(n + 1):
            for k in range(1, n + 1):
                subsets = list(combinations(range(n), k))
                share = Fraction(sum(subset[0] < c for subset in subsets), len(subsets))
                assert pass_at_k(n, c, k) == pytest.approx(float(share), rel=1e-14, abs=0)


def test_pass_at_k_is_the_float_nearest_to_the_exact_fraction_at_every_size() -> None:
    chance = random.Random(1)
    for n, c, k in [*ADVERSE, *(chosen(chance, 10**9, 3000) for _ in range(400))]:
        assert pass_at_k(n, c, k) == float(1 - missed(n, c, k)), (n, c, k)


def test_pass_hat_k_is_the_float_nearest_to_the_exact_fraction_at_every_size() -> None:
    chance = random.Random(2)
    for n, wrong, k in [*ADVERSE, *(chosen(chance, 10**9, 3000) for _ in range(400))]:
        assert pass_hat_k(n, n - wrong, k) == float(missed(n, wrong, k)), (n, wrong, k)


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [
        (5, 2, 2, 0.1),
        (5, 2, 3, 0.0),
        (10, 9, 8, 0.2),
        (8, 7, 4, 0.5),
        (200, 190, 8, 0.65842185219665685459),
    ],
)
def test_pass_hat_k_has_the_published_values(n: int, c: int, k: int, value: float) -> None:
    assert pass_hat_k(n, c, k) == pytest.approx(value, rel=1e-14, abs=0)


def test_of_random_tables_pass_at_k_and_pass_hat_k_are_what_counting_all_subsets_gives() -> None:
    chance = random.Random(4)
    for _ in range(60):
        n = chance.randint(1, 12)
        k = chance.randint(1, n)
        skills = [chance.random() for _ in range(chance.randint(1, 8))]
        table = [[chance.random() < skill for _ in range(n)] for skill in skills]
        subsets = [[list(subset) for subset in combinations(row, k)] for row in table]
        some = sum(Fraction(sum(map(any, row)), len(row)) for row in subsets) / len(table)
        every = sum(Fraction(sum(map(all, row)), len(row)) for row in subsets) / len(table)
        counts = histogram([n] * len(table), [sum(row) for row in table])
        found = {pair: (pass_at_k(*pair, k), pass_hat_k(*pair, k)) for pair in counts}
        assert math.fsum(counts[pair] * (one or 0.0) for pair, (one, _) in found.items()) / len(table) == pytest.approx(
            float(some), rel=1e-14
        )
        assert math.fsum(counts[pair] * (both or 0.0) for pair, (_, both) in found.items()) / len(
            table
        ) == pytest.approx(float(every), rel=1e-14)


@pytest.mark.parametrize("largest", [1, 7, 60, 5000, 10**9, 10**18])
def test_a_histogram_counts_the_pairs_whatever_their_range(largest: int) -> None:
    chance = np.random.default_rng(largest)
    tried = chance.integers(0, largest, size=500, endpoint=True)
    passed = (tried * chance.random(500)).astype(np.int64)
    pairs = list(zip(tried.tolist(), passed.tolist(), strict=True))
    assert histogram(tried, passed) == Counter(pairs)
    assert histogram(tried.tolist(), passed.tolist()) == Counter(pairs)
    assert list(histogram(tried, passed)) == sorted(set(pairs))


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64, np.int32])
def test_a_histogram_takes_whole_numbers_of_any_width(kind: type[np.integer]) -> None:
    pairs = [(n, c) for n, c in product(range(90, 101), range(101)) if c <= n]
    tried, passed = (np.array(column, dtype=kind) for column in zip(*pairs, strict=True))
    assert histogram(tried, passed) == dict.fromkeys(pairs, 1)


def test_no_cases_have_an_empty_histogram() -> None:
    assert histogram([], []) == {}


@pytest.mark.parametrize(
    ("tried", "passed", "reason"),
    [
        ([3, 2], [3, 3], "between 0 and the attempts"),
        ([3, 2], [1, -1], "between 0 and the attempts"),
        ([-1], [-1], "between 0 and the attempts"),
        ([3, 2], [1], "every case needs"),
        ([3.5], [1.0], "whole numbers"),
    ],
)
def test_a_histogram_of_impossible_counts_is_refused(tried: list[int], passed: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        histogram(tried, passed)


def test_it_grows_with_the_correct_attempts_and_with_k() -> None:
    n = 30
    table = [[pass_at_k(n, c, k) or 0.0 for k in range(1, n + 1)] for c in range(n + 1)]
    for row in table:
        assert row == sorted(row)
    for column in zip(*table, strict=True):
        assert list(column) == sorted(column)


def test_correct_attempts_and_k_can_trade_places() -> None:
    for c in range(1, 21):
        for k in range(1, 21):
            assert pass_at_k(20, c, k) == pass_at_k(20, k, c)


def test_k_of_one_is_the_plain_share() -> None:
    assert all(pass_at_k(n, c, 1) == c / n for n in range(1, 60) for c in range(n + 1))


@pytest.mark.parametrize(("n", "c", "k"), [(0, 0, 1), (3, 3, 4), (9, 0, 10)])
def test_more_draws_than_attempts_cannot_be_estimated(n: int, c: int, k: int) -> None:
    assert pass_at_k(n, c, k) is None
    assert pass_hat_k(n, c, k) is None


@pytest.mark.parametrize(("n", "c", "k"), [(5, 6, 1), (5, -1, 1), (-1, 0, 1), (5, 2, 0), (5, 2, -3)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    for statistic in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="needs 0 <= c <= n"):
            statistic(n, c, k)


def test_counts_that_come_from_numpy_are_as_good_as_ours() -> None:
    for statistic in (pass_at_k, pass_hat_k):
        for n, c, k in ((10**8, 1, 1), (10**9, 10**6, 1000), (10**9, 10**9 - 5, 10**6)):
            assert statistic(*(np.int32(each) for each in (n, c, k))) == statistic(n, c, k)


def test_a_share_of_an_attempt_is_refused() -> None:
    for statistic in (pass_at_k, pass_hat_k):
        with pytest.raises(TypeError):
            statistic(5, 2, 1.5)


def test_the_mean_over_these_cases_has_the_published_value() -> None:
    counts = [0, 0, 1, 2, 5, 8, 9, 10, 10, 10]
    shares = [pass_at_k(10, c, 5) or 0.0 for c in counts]
    assert math.fsum(shares) / 10 == pytest.approx(0.7273809523809524, rel=1e-15)


def test_certain_success_is_found_without_a_long_sum() -> None:
    assert pass_at_k(10**9, 4 * 10**8, 4 * 10**8) == 1.0
    assert pass_at_k(40, 21, 20) == 1.0
    assert pass_at_k(5000, 2501, 2500) == 1.0
    assert pass_hat_k(10**9, 6 * 10**8, 4 * 10**8) == 0.0
