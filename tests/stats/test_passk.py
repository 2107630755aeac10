"""pass@k is exact for every n a run can have."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from steelyard.stats.passk import pass_at_k


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


@pytest.mark.parametrize(
    ("n", "c", "k"),
    [(10**4, 1001, 1500), (10**6, 1001, 1200), (10**5, 3000, 1200), (10**9, 1000, 10**6), (5000, 2000, 2500)],
)
def test_both_ways_of_computing_agree_with_exact_fractions(n: int, c: int, k: int) -> None:
    exact = Fraction(1)
    for drawn in range(min(c, k)):
        exact *= Fraction(n - max(c, k) - drawn, n - drawn)
    assert pass_at_k(n, c, k) == pytest.approx(float(1 - exact), rel=1e-14, abs=0)


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


@pytest.mark.parametrize(("n", "c", "k"), [(5, 6, 1), (5, -1, 1), (-1, 0, 1), (5, 2, 0), (5, 2, -3)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass@k needs"):
        pass_at_k(n, c, k)


def test_certain_success_is_found_without_a_long_sum() -> None:
    assert pass_at_k(10**9, 4 * 10**8, 4 * 10**8) == 1.0
    assert pass_at_k(40, 21, 20) == 1.0
    assert pass_at_k(5000, 2501, 2500) == 1.0
