"""An estimate says what it rests on, in plain numbers."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from steelyard.analysis.estimates import Estimate, mean, pass_at, pass_hat, price_of_pass, share
from steelyard.stats.cost import cost_interval


def test_numbers_from_numpy_are_written_as_json_like_ours() -> None:
    five: Any = np.int64(5)
    costs: Any = np.array([1.0, 2.0, 4.0])
    counts: Any = np.array([3, 4, 5])
    pairs: Any = {(np.int32(5), np.int32(2)): np.int32(3)}
    for found, expected in (
        (share(five, five), share(5, 5)),
        (mean(costs / 4, five), mean([0.25, 0.5, 1.0], 5)),
        (mean(costs / 4, five * 9, counts=counts), mean([0.25, 0.5, 1.0], 45, counts=[3, 4, 5])),
        (pass_at(pairs, 2), pass_at({(5, 2): 3}, 2)),
        (pass_hat(pairs, 2, failed=five), pass_hat({(5, 2): 3}, 2, failed=5)),
        (price_of_pass(costs, counts, counts * 2), price_of_pass([1.0, 2.0, 4.0], [3, 4, 5], [6, 8, 10])),
        (price_of_pass(costs, counts * 0, counts), price_of_pass([1.0, 2.0, 4.0], [0, 0, 0], [3, 4, 5])),
    ):
        assert msgspec.json.encode(found) == msgspec.json.encode(expected)


def test_an_infinite_cost_is_written_without_infinity() -> None:
    written = msgspec.json.decode(msgspec.json.encode(price_of_pass([1.0, 2.0], [0, 0], [5, 5])))
    assert (written["value"], written["infinite"], "high" in written) == (None, True, False)
    few = price_of_pass([1.0, 2.0, 3.0], [1, 0, 0], [3, 3, 3])
    assert (few.infinite, few.high, few.value) == (False, None, 6.0)


def test_the_cost_of_a_pass_over_groups_has_the_interval_of_their_totals() -> None:
    costs, passes, attempts = [1.0, 1.5, 2.0, 1.0, 3.0, 2.5], [3, 2, 2, 3, 1, 2], [4, 4, 3, 5, 4, 4]
    found = price_of_pass(costs, passes, attempts, groups=["a", "a", "b", "b", "c", "c"])
    assert (found.low, found.high) == cost_interval([2.5, 3.0, 5.5], [5, 5, 3], [8, 8, 8])
    assert (found.value, found.cases, found.attempts) == (11 / 13, 6, 24)
    assert price_of_pass(costs, passes, attempts, groups=list("abcdef")) == price_of_pass(costs, passes, attempts)
    assert price_of_pass(costs, passes, attempts, groups=["a"] * 6).low is None
    with pytest.raises(ValueError, match="6 cases cannot have 2 groups"):
        price_of_pass(costs, passes, attempts, groups=["a", "b"])


@pytest.mark.parametrize("k", [1, 4, 10**9])
def test_counted_cases_have_the_estimate_of_the_same_cases_one_by_one(k: int) -> None:
    tallied = {(10, 3): 4, (10, 10): 2, (3, 0): 5, (10**9, 10**6): 1}
    found = pass_at(tallied, k)
    one_by_one = [pass_at({pair: 1}, k) for pair, cases in tallied.items() for _ in range(cases)]
    values = [each.value for each in one_by_one if each.value is not None]
    expected = mean(values, sum(each.attempts for each in one_by_one))
    assert (found.cases, found.attempts) == (expected.cases, expected.attempts)
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=1e-12
    )


def test_an_interval_holds_its_estimate() -> None:
    chance = random.Random(9)
    for _ in range(500):
        cases = chance.randint(2, 12)
        values = [chance.choice([0.0, 1.0, 0.5, chance.random(), chance.random() ** 40]) for _ in range(cases)]
        groups = [chance.choice("abcdefgh") for _ in range(cases)] if chance.random() < 0.5 else None
        found = mean(values, cases * chance.choice([1, 5, 1000]), groups=groups)
        assert found.value is not None
        if found.low is not None and found.high is not None:
            assert 0 <= found.low <= found.value * (1 + 1e-12)
            assert found.value * (1 - 1e-12) <= found.high <= 1


def test_nothing_has_no_estimate() -> None:
    nothing = Estimate(value=None)
    assert share(0, 0) == mean([], 0) == pass_at({}, 1) == pass_at({(3, 1): 2}, 4) == nothing
    assert price_of_pass([], [], []) == nothing


def test_a_mean_ends_without_the_noise_of_its_last_digit() -> None:
    assert [str(mean(values, 10).value) for values in ([0.1, 0.2], [0.2, 0.4], [1.0, 0.0, 0.0])] == [
        *("0.15", "0.3", "0.3333333333333333"),
    ]
