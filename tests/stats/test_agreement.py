"""Agreement among judges is what other people compute, and is undefined where they never differ."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import zip_longest

import krippendorff
import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from steelyard.stats.agreement import MeasurementLevel, alpha_interval, gwet_ac1, krippendorff_alpha, raw_agreement

THREE = [[1, 1, 0, 1, 0, 1, 1, 0, 1, 1], [1, 0, 0, 1, 0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1, 1, 0, 1, 0]]
GAPS = [[1, 1, 0, None, 0], [1, 0, 0, 1, None], [None, 1, 0, 1, 0]]
GRADED = [[0.9, 0.7, 0.8, 0.4, 0.6], [0.85, 0.75, 0.8, 0.5, 0.55], [0.95, 0.6, 0.7, 0.45, 0.6]]


def random_ratings(seed: int, values: Sequence[float], *, missing: float = 0.25) -> list[list[float | None]]:
    """Judges who mostly see the same thing, and sometimes nothing."""
    chance = random.Random(seed)
    items = chance.randint(10, 30)
    truth = [chance.choice(values) for _ in range(items)]
    return [
        [
            None if chance.random() < missing else seen if chance.random() < 0.6 else chance.choice(values)
            for seen in truth
        ]
        for _ in range(chance.randint(2, 5))
    ]


def test_alpha_gives_the_worked_values() -> None:
    assert krippendorff_alpha(THREE, level="nominal") == pytest.approx(73 / 189, rel=1e-14)
    assert krippendorff_alpha(GAPS, level="nominal") == pytest.approx(25 / 36, rel=1e-14)
    assert krippendorff_alpha(GRADED, level="interval") == pytest.approx(0.890719861232, abs=5e-13)


def test_gwet_and_raw_agreement_give_the_worked_values() -> None:
    assert raw_agreement(THREE) == pytest.approx(0.7333333333, abs=5e-11)
    assert gwet_ac1(THREE) == pytest.approx(0.540229885057, abs=5e-13)


def test_where_nearly_everything_passes_alpha_falls_and_ac1_stays() -> None:
    ratings = [[1] * 90 + [0] * 5 + [1] * 5, [1] * 90 + [1] * 5 + [0] * 5]
    assert raw_agreement(ratings) == pytest.approx(0.9)
    assert krippendorff_alpha(ratings, level="nominal") == pytest.approx(-0.047, abs=5e-4)
    assert gwet_ac1(ratings) == pytest.approx(0.890, abs=5e-4)


@pytest.mark.parametrize("level", ["nominal", "interval"])
@pytest.mark.parametrize("seed", range(40))
def test_alpha_agrees_with_the_krippendorff_package(seed: int, level: MeasurementLevel) -> None:
    values = [0.0, 1.0] if seed % 2 else [0.0, 0.25, 0.5, 3.0]
    ratings = random_ratings(seed, values)
    table = np.array([[np.nan if rating is None else rating for rating in judge] for judge in ratings])
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
    assert krippendorff_alpha(ratings, level=level) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_raw_agreement_is_the_observed_part_of_fleiss() -> None:
    for seed in range(20):
        ratings = random_ratings(seed, [0.0, 1.0, 2.0], missing=0)
        counts = np.array([[item.count(kind) for kind in (0.0, 1.0, 2.0)] for item in zip(*ratings, strict=True)])
        by_chance = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
        found = raw_agreement(ratings)
        assert found is not None
        assert (found - by_chance) / (1 - by_chance) == pytest.approx(fleiss_kappa(counts), rel=1e-10)


def test_ac1_of_two_judges_is_the_formula_of_its_paper() -> None:
    for seed in range(20):
        first, second = random_ratings(seed, [0.0, 1.0], missing=0)[:2]
        passes = [rating for judge in (first, second) for rating in judge if rating is not None]
        share = sum(passes) / len(passes)
        agreed = sum(a == b for a, b in zip(first, second, strict=True)) / len(first)
        if 0 < share < 1:
            by_chance = 2 * share * (1 - share)
            expected = (agreed - by_chance) / (1 - by_chance)
            assert gwet_ac1([first, second]) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("ratings", [[], [[]], [[], []], [[1, 0, 1]], [[1, None], [None, 0]]])
def test_without_two_ratings_of_one_item_nothing_is_known(ratings: list[list[float | None]]) -> None:
    assert krippendorff_alpha(ratings, level="nominal") is None
    assert krippendorff_alpha(ratings, level="interval") is None
    assert gwet_ac1(ratings) is None
    assert raw_agreement(ratings) is None
    assert alpha_interval(ratings, level="nominal", seed=1) is None


@pytest.mark.parametrize("value", [1, 0.1, 1 / 3])
def test_judges_who_never_differ_have_no_alpha_but_agree(value: float) -> None:
    for items in range(2, 12):
        ratings = [[value] * items] * 3
        for level in ("nominal", "interval"):
            assert krippendorff_alpha(ratings, level=level) is None
            assert alpha_interval(ratings, level=level, seed=1) is None
        assert gwet_ac1(ratings) == 1.0
        assert raw_agreement(ratings) == 1.0


def test_perfect_agreement_on_different_items_is_one() -> None:
    ratings = [[0, 1, 2, 1], [0, 1, 2, 1]]
    assert krippendorff_alpha(ratings, level="nominal") == 1.0
    assert krippendorff_alpha(ratings, level="interval") == 1.0
    assert gwet_ac1(ratings) == 1.0


def test_an_item_with_one_rating_changes_nothing() -> None:
    more = [[*judge, extra] for judge, extra in zip(THREE, (5, None, None), strict=True)]
    assert krippendorff_alpha(more, level="nominal") == krippendorff_alpha(THREE, level="nominal")
    assert gwet_ac1(more) == gwet_ac1(THREE)
    assert raw_agreement(more) == raw_agreement(THREE)
    assert alpha_interval(more, level="nominal", seed=3) == alpha_interval(THREE, level="nominal", seed=3)


def test_judges_must_have_looked_at_the_same_items() -> None:
    with pytest.raises(ValueError, match="per item"):
        raw_agreement([[1, 0], [1]])


@pytest.mark.parametrize("rating", [math.nan, math.inf])
def test_a_rating_that_is_no_number_is_refused(rating: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        krippendorff_alpha([[1, rating], [1, 0]], level="interval")


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_the_interval_depends_on_its_seed_and_on_no_order(level: MeasurementLevel) -> None:
    ratings = random_ratings(4, [0.0, 0.25, 1.0])
    found = alpha_interval(ratings, level=level, seed=9)
    assert found == alpha_interval(ratings, level=level, seed=9)
    assert found != alpha_interval(ratings, level=level, seed=10)
    turned = [judge[::-1] for judge in reversed(ratings)]
    assert found == alpha_interval(turned, level=level, seed=9)


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_the_interval_is_that_of_drawing_items_one_by_one(level: MeasurementLevel) -> None:
    ratings = random_ratings(12, [0.0, 0.5, 0.75, 1.0], missing=0.1)
    items = list(zip(*ratings, strict=True))
    chance = random.Random(1)
    drawn = []
    for _ in range(3000):
        alpha = krippendorff_alpha(list(zip(*chance.choices(items, k=len(items)), strict=True)), level=level)
        if alpha is not None:
            drawn.append(alpha)
    found = alpha_interval(ratings, level=level, seed=2, replicates=20_000)
    assert found == pytest.approx(np.quantile(drawn, [0.025, 0.975]).tolist(), abs=0.04)


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_the_widest_interval_ends_at_the_alphas_of_the_worst_and_best_draw(level: MeasurementLevel) -> None:
    first, second = (0.9, 1.0, 0.9), (0.2, 0.9)
    draws = ([first, first], [first, second], [second, second])
    alphas = [krippendorff_alpha(list(zip_longest(*draw)), level=level) for draw in draws]
    known = [alpha for alpha in alphas if alpha is not None]
    assert len(known) == 3
    ratings = list(zip(*([*first], [*second, None]), strict=True))
    found = alpha_interval(ratings, level=level, seed=1, confidence=1 - 1e-9)
    assert found == pytest.approx((min(known), max(known)), rel=1e-6)


@pytest.mark.parametrize(("usual", "other"), [(0.1, 0.7), (0.09, 0.03), (0.84, 0.43)])
def test_draws_of_nothing_but_equal_ratings_are_left_out(usual: float, other: float) -> None:
    ratings = [[usual] * 4 + [other], [usual] * 5, [usual] * 5]
    for level in ("nominal", "interval"):
        found = alpha_interval(ratings, level=level, seed=1)
        assert found is not None
        assert found.high < 1e-9


def test_more_confidence_is_wider() -> None:
    narrow = alpha_interval(THREE, level="nominal", seed=1, confidence=0.5)
    wide = alpha_interval(THREE, level="nominal", seed=1)
    assert narrow is not None
    assert wide is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def test_an_interval_needs_a_share_of_confidence_and_a_replicate() -> None:
    with pytest.raises(ValueError, match="confidence"):
        alpha_interval(THREE, level="nominal", seed=1, confidence=95)
    with pytest.raises(ValueError, match="replicates"):
        alpha_interval(THREE, level="nominal", seed=1, replicates=0)


def test_the_interval_covers_the_alpha_of_many_items() -> None:
    chance = random.Random(77)

    def rate(items: int) -> list[list[float]]:
        truth = [chance.random() < 0.6 for _ in range(items)]
        return [[float(seen if chance.random() < 0.85 else not seen) for seen in truth] for _ in range(3)]

    truth = krippendorff_alpha(rate(40_000), level="nominal")
    assert truth is not None
    runs = 200
    covered = 0
    for seed in range(runs):
        interval = alpha_interval(rate(60), level="nominal", seed=seed, replicates=500)
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    assert covered / runs >= 0.90
