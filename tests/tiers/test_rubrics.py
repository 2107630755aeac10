"""A judge's marks add up by the rubric, and what does not apply counts on neither side."""

from __future__ import annotations

import math

import msgspec
import pytest

from steelyard.tiers import rubrics
from steelyard.tiers.rubrics import (
    CategoryScore,
    ClaimedScore,
    Rubric,
    RubricCategory,
    RubricItem,
    category_score,
    default_rubric,
    grade,
    is_claim_off,
    is_passing,
    rubric_score,
    weighted_score,
)

WEIGHTS = {
    "functional_correctness": 2.0,
    "completeness": 1.5,
    "code_quality": 1.0,
    "simplicity": 1.0,
    "lack_of_duplication": 0.5,
    "clarity": 1.0,
    "documentation": 0.5,
    "architectural_cleanliness": 0.5,
    "efficiency": 0.5,
    "cleanup_script_quality": 1.0,
}


def rubric(*categories: RubricCategory) -> Rubric:
    return Rubric(id="r", categories=categories)


TWO = rubric(RubricCategory(name="works", weight=3), RubricCategory(name="reads", weight=1))


def test_the_default_rubric_has_the_ten_categories_with_their_weights() -> None:
    assert {category.name: category.weight for category in default_rubric().categories} == WEIGHTS
    assert all(
        category.check.endswith(".") and category.check.count(".") == 1 for category in default_rubric().categories
    )
    assert default_rubric().pass_threshold == 0.6
    assert default_rubric().grades == {"A": 0.95, "B": 0.85, "C": 0.75, "D": 0.65}


def test_the_weighted_score_is_the_mean_by_weights() -> None:
    scores = {name: (number % 5) / 4 for number, name in enumerate(WEIGHTS)}
    expected = sum(scores[name] * weight for name, weight in WEIGHTS.items()) / 9.5
    assert weighted_score(default_rubric(), scores) == pytest.approx(expected, rel=1e-15)
    assert weighted_score(TWO, {"works": 1.0, "reads": 0.0}) == 0.75


def test_what_does_not_apply_leaves_both_sums() -> None:
    assert weighted_score(TWO, {"works": None, "reads": 0.4}) == 0.4
    assert weighted_score(TWO, {"works": 0.5, "reads": None}) == 0.5
    scores = {**dict.fromkeys(WEIGHTS, 1.0), "functional_correctness": 0.0, "cleanup_script_quality": None}
    assert weighted_score(default_rubric(), scores) == 6.5 / 8.5


def test_where_nothing_applies_there_is_no_score_and_no_verdict() -> None:
    assert weighted_score(TWO, {"works": None, "reads": None}) is None
    assert is_passing(TWO, None) is None
    assert grade(TWO, None) is None
    found = rubric_score(
        TWO, {"works": CategoryScore(score=None), "reads": CategoryScore(score=None)}, claim=ClaimedScore(score=0.9)
    )
    assert (found.score, found.passed, found.grade, found.claim_off) == (None, None, None, False)


def test_a_category_that_applies_but_weighs_nothing_gives_no_score() -> None:
    weightless = rubric(RubricCategory(name="works", weight=0), RubricCategory(name="reads", weight=1))
    assert weighted_score(weightless, {"works": 1.0, "reads": None}) is None


@pytest.mark.parametrize("scores", [{"works": 1.0}, {"works": 1.0, "reads": 1.0, "sings": 1.0}, {}])
def test_a_missing_category_is_not_one_that_does_not_apply(scores: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="every part of a rubric"):
        weighted_score(TWO, scores)


def test_a_category_scores_the_share_of_the_points_that_apply() -> None:
    items = (
        RubricItem(id="a", check="", points=1),
        RubricItem(id="b", check="", points=0.5),
        RubricItem(id="c", check="", points=2),
    )
    category = RubricCategory(name="works", items=items)
    assert category_score(category, {"a": 1, "b": 0.25, "c": 1}) == 2.25 / 3.5
    assert category_score(category, {"a": 1, "b": 0.25, "c": None}) == 1.25 / 1.5
    assert category_score(category, {"a": None, "b": None, "c": None}) is None
    with pytest.raises(ValueError, match="missing \\['c'\\]"):
        category_score(category, {"a": 1, "b": 0})


def test_a_category_of_items_that_do_not_apply_leaves_the_score() -> None:
    items = (RubricItem(id="a", check="", na_condition="never"), RubricItem(id="b", check="", na_condition="never"))
    whole = rubric(RubricCategory(name="works", weight=9, items=items), RubricCategory(name="reads", weight=1))
    nothing = category_score(whole.categories[0], {"a": None, "b": None})
    assert weighted_score(whole, {"works": nothing, "reads": 0.3}) == 0.3


def test_a_score_never_exceeds_one_by_rounding() -> None:
    for parts in range(1, 60):
        names = [f"c{number}" for number in range(parts)]
        whole = rubric(*(RubricCategory(name=name, weight=0.1 + number / 7) for number, name in enumerate(names)))
        assert weighted_score(whole, dict.fromkeys(names, 1.0)) == 1.0


def test_a_threshold_is_reached_by_a_sum_of_floats() -> None:
    thirds = rubric(*(RubricCategory(name=name) for name in "abc"))
    score = weighted_score(thirds, {"a": 0.5, "b": 0.6, "c": 0.7})
    assert score is not None
    assert is_passing(thirds, score)
    assert is_passing(thirds, 0.6 - 1e-12)
    assert not is_passing(thirds, 0.6 - 1e-8)


def test_grades_follow_the_scale_of_the_rubric() -> None:
    scale = {"F": 0.0, "S": 1.0, "A": 0.8, "B": 0.6, "C": 0.4, "D": 0.2}
    own = msgspec.structs.replace(TWO, grades=scale)
    assert [grade(own, score) for score in (1.0, 0.99, 0.8 - 1e-12, 0.5, 0.2, 0.1)] == ["S", "A", "A", "C", "D", "F"]
    assert [grade(TWO, score) for score in (1.0, 0.95, 0.85, 0.75, 0.65, 0.64)] == ["A", "A", "B", "C", "D", "F"]
    lowest = msgspec.structs.replace(TWO, grades={"good": 0.5})
    assert [grade(lowest, score) for score in (0.5, 0.4)] == ["good", "F"]


@pytest.mark.parametrize(
    ("claimed", "score", "off"),
    [(0.82, 0.8, False), (0.78, 0.8, False), (0.8201, 0.8, True), (0.7799, 0.8, True), (None, 0.8, False)],
)
def test_a_claim_is_off_when_it_differs_by_more_than_two_hundredths(
    claimed: float | None, score: float, off: bool
) -> None:
    assert is_claim_off(claimed, score) is off
    marks = {"works": CategoryScore(score=score), "reads": CategoryScore(score=score)}
    assert rubric_score(TWO, marks, claim=ClaimedScore(score=claimed)).claim_off is off


def test_a_claim_decides_nothing() -> None:
    marks = {"reads": CategoryScore(score=0.1), "works": CategoryScore(score=0.2)}
    found = rubric_score(TWO, marks, claim=ClaimedScore(score=1.0, passed=True, grade="A"))
    assert found.score == pytest.approx(0.175)
    assert (found.passed, found.grade, found.claim_off) == (False, "F", True)
    assert list(found.categories) == ["works", "reads"]


def test_equal_rubrics_have_equal_digests_whatever_they_are_called() -> None:
    item = RubricItem(id="a", check="It runs.", points=2)
    one = rubric(RubricCategory(name="works", weight=1, items=(item,)))
    same = Rubric(
        id="other",
        categories=(RubricCategory(name="works", weight=1.0, items=(msgspec.structs.replace(item, points=2.0),)),),
        grades=dict(reversed(rubrics.GRADE_THRESHOLDS.items())),
    )
    assert one.digest == same.digest


@pytest.mark.parametrize(
    "other",
    [
        Rubric(id="r", categories=(RubricCategory(name="works", weight=2),)),
        Rubric(id="r", categories=(RubricCategory(name="runs"),)),
        Rubric(id="r", categories=(RubricCategory(name="works", check="It works."),)),
        Rubric(id="r", categories=(RubricCategory(name="works", na_condition="Never."),)),
        Rubric(id="r", categories=(RubricCategory(name="works", items=(RubricItem(id="a", check="b"),)),)),
        Rubric(id="r", categories=(RubricCategory(name="works"),), pass_threshold=0.7),
        Rubric(id="r", categories=(RubricCategory(name="works"),), grades={"A": 0.5}),
    ],
)
def test_rubrics_that_ask_or_count_otherwise_have_other_digests(other: Rubric) -> None:
    assert other.digest != rubric(RubricCategory(name="works")).digest


@pytest.mark.parametrize(
    "change",
    [
        {"id": "z"},
        {"check": "z"},
        {"points": 3},
        {"na_condition": "z"},
        {"evaluation": "binary"},
        {"scoring": {"1": "z"}},
    ],
)
def test_every_part_of_an_item_is_in_the_digest(change: dict[str, object]) -> None:
    item = RubricItem(id="a", check="b")
    changed = msgspec.structs.replace(item, **change)
    one, other = (rubric(RubricCategory(name="works", items=(each,))) for each in (item, changed))
    assert one.digest != other.digest


def test_a_judgment_can_be_stored_and_read_again() -> None:
    marks = {"works": CategoryScore(score=0.5, reason="Half."), "reads": CategoryScore(score=None)}
    found = rubric_score(TWO, marks, claim=ClaimedScore(score=0.5, passed=False, grade="F"))
    assert msgspec.json.decode(msgspec.json.encode(found), type=rubrics.RubricScore) == found
    assert msgspec.json.decode(msgspec.json.encode(default_rubric()), type=Rubric) == default_rubric()
    assert math.isfinite(found.score or math.nan)


def test_only_a_single_point_of_the_same_name_is_a_requirement() -> None:
    assert RubricCategory(name="R1", items=(RubricItem(id="R1", check="x"),)).requirement == RubricItem(
        id="R1", check="x"
    )
    assert RubricCategory(name="R1", items=(RubricItem(id="R1", check="x", points=2),)).requirement is None
    assert RubricCategory(name="R1", items=(RubricItem(id="R2", check="x"),)).requirement is None
    assert RubricCategory(name="R1").requirement is None
