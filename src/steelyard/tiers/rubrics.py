"""What judges look for in an answer, and what their marks add up to.

A rubric has categories. One with items is scored by the points its items achieve, one without is scored as a whole from 0
to 1. A criterion that does not apply is None, which is not 0: it is left out of both sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from steelyard.errors import StoreError
from steelyard.records import Panel, Record
from steelyard.records import digest as content_digest

GRADE_THRESHOLDS = {"A": 0.95, "B": 0.85, "C": 0.75, "D": 0.65}
"""The least score of each grade, of tiers and where a rubric has no scale of its own; below the last it is an F."""
LOWEST_GRADE = "F"
SCORE_THRESHOLD_TOLERANCE = 1e-9
"""A threshold that a sum of floats misses by less than this is reached."""
CLAIM_TOLERANCE = 0.02
"""A judge's own sum may differ by this much from ours before it is flagged."""
BINARY_EVALUATION, SCALED_EVALUATION = "binary", "scaled"


class RubricItem(Record, frozen=True, kw_only=True):
    """One thing to look at, worth some points."""

    id: str
    check: str
    """What must be true of the answer."""
    points: float = 1
    na_condition: str = ""
    """When it does not apply; where this is empty it always does."""
    evaluation: str = SCALED_EVALUATION
    """`binary` gives all points or none, `scaled` any number between."""
    scoring: dict[str, str] = {}
    """What an answer of some score looks like, by that score, as a help to the judge."""


class RubricCategory(Record, frozen=True, kw_only=True):
    """Something an answer is judged by, with its weight in the whole."""

    name: str
    weight: float = 1
    check: str = ""
    """What is rated, in a sentence."""
    na_condition: str = ""
    """When a category without items does not apply; where this is empty it always does."""
    items: tuple[RubricItem, ...] = ()
    """Without items, the category is scored as a whole."""

    @property
    def requirement(self) -> RubricItem | None:
        """The item that is all of the category, where a rubric lists requirements: it has the same name, and 1 point."""
        if len(self.items) == 1 and self.items[0].id == self.name and self.items[0].points == 1:
            return self.items[0]
        return None


class Rubric(Record, frozen=True, kw_only=True):
    """What a judge is asked to look at, and what its marks lead to."""

    id: str
    categories: tuple[RubricCategory, ...]
    pass_threshold: float = 0.6
    """The least score that passes."""
    grades: dict[str, float] = msgspec.field(default_factory=lambda: dict(GRADE_THRESHOLDS))
    """The least score of each grade; below the last it is an F."""

    @property
    def digest(self) -> str:
        """Equal for rubrics with the same questions and weights; names do not matter."""
        categories = [
            (
                *(category.name, float(category.weight), category.check, category.na_condition),
                [
                    (item.id, item.check, float(item.points), item.na_condition, item.evaluation, item.scoring)
                    for item in category.items
                ],
            )
            for category in self.categories
        ]
        grades = {letter: float(least) for letter, least in self.grades.items()}
        return content_digest(categories, float(self.pass_threshold), grades)


class ItemScore(Record, frozen=True, kw_only=True):
    """What a judge gave for one item."""

    achieved: float | None
    """Points; None when the item does not apply."""
    reason: str = ""


class CategoryScore(Record, frozen=True, kw_only=True):
    """What a judge gave for one category."""

    score: float | None
    """From 0 to 1, computed from the items where there are any; None when nothing in it applies."""
    reason: str = ""
    items: dict[str, ItemScore] = {}


class ClaimedScore(Record, frozen=True, kw_only=True):
    """What a judge says that its marks add up to; it decides nothing."""

    score: float | None = None
    passed: bool | None = None
    grade: str = ""


class RubricScore(Record, frozen=True, kw_only=True):
    """What one judge says of one answer."""

    categories: dict[str, CategoryScore]
    score: float | None
    """The weighted score in [0, 1], computed from the categories; None when no category applies."""
    passed: bool | None
    grade: str | None
    reasoning: str = ""
    claim: ClaimedScore = ClaimedScore()
    claim_off: bool = False
    """Whether a sum of the judge's own differs from ours by more than 0.02."""


class JudgingResult(NamedTuple):
    """The result of asking one judge about one answer."""

    judge: str
    repeat: int
    judgment: RubricScore | None
    """None where it gave none that can be used."""
    unusable: str = ""
    """Why not."""


def category_score(category: RubricCategory, achieved: Mapping[str, float | None]) -> float | None:
    """The share of a category's points that its items achieve; None when no item applies.

    >>> items = tuple(RubricItem(id=name, check="", points=points) for name, points in (("a", 2), ("b", 1), ("c", 5)))
    >>> category_score(RubricCategory(name="works", items=items), {"a": 2, "b": 0.25, "c": None})
    0.75
    """
    _check_names({item.id for item in category.items}, achieved)
    applicable = [(given, item.points) for item in category.items if (given := achieved[item.id]) is not None]
    total = math.fsum(points for _, points in applicable)
    return math.fsum(given for given, _ in applicable) / total if total else None


def weighted_score(rubric: Rubric, scores: Mapping[str, float | None]) -> float | None:
    """The mean of the categories' scores by their weights; None when no category with a weight applies.

    Every category must be there: one that is missing is not one that does not apply.

    >>> weighted_score(default_rubric(), {category.name: 0.5 for category in default_rubric().categories})
    0.5
    """
    _check_names({category.name for category in rubric.categories}, scores)
    applicable = [(given, each.weight) for each in rubric.categories if (given := scores[each.name]) is not None]
    total = math.fsum(weight for _, weight in applicable)
    return math.fsum(score * weight for score, weight in applicable) / total if total else None


def is_passing(rubric: Rubric, score: float | None) -> bool | None:
    """Whether a score passes; None without one."""
    return None if score is None else score >= rubric.pass_threshold - SCORE_THRESHOLD_TOLERANCE


def grade(rubric: Rubric, score: float | None) -> str | None:
    """The grade that the rubric's scale gives; None without a score.

    >>> grade(default_rubric(), 0.86), grade(default_rubric(), 0.1)
    ('B', 'F')
    """
    if score is None or math.isnan(score):
        return None
    scale = sorted(rubric.grades.items(), key=lambda pair: (-pair[1], pair[0]))
    return next((letter for letter, least in scale if score >= least - SCORE_THRESHOLD_TOLERANCE), LOWEST_GRADE)


def rubric_score(
    rubric: Rubric,
    categories: Mapping[str, CategoryScore],
    *,
    reasoning: str = "",
    claim: ClaimedScore = ClaimedScore(),  # noqa: B008 - a record does not change
    claim_off: bool = False,
) -> RubricScore:
    """The judgment that a judge's marks lead to; its claim is kept, and flagged where it is off, or known to be."""
    score = weighted_score(rubric, {name: marks.score for name, marks in categories.items()})
    return RubricScore(
        categories={category.name: categories[category.name] for category in rubric.categories},
        score=score,
        passed=is_passing(rubric, score),
        grade=grade(rubric, score),
        reasoning=reasoning,
        claim=claim,
        claim_off=claim_off or is_claim_off(claim.score, score),
    )


def is_claim_off(claimed: float | None, score: float | None) -> bool:
    """Whether a claimed score differs from ours by more than is forgiven; where one is missing nothing differs.

    >>> is_claim_off(0.82, 0.8), is_claim_off(0.83, 0.8), is_claim_off(0.9, None)
    (False, True, False)
    """
    return (
        claimed is not None and score is not None and abs(claimed - score) > CLAIM_TOLERANCE + SCORE_THRESHOLD_TOLERANCE
    )


def panel_rubric(panel: Panel) -> Rubric:
    """The rubric that the judges of a stored run go by; raises a StoreError where it is damaged."""
    try:
        return msgspec.convert(panel.rubric, Rubric)
    except msgspec.ValidationError as error:
        raise StoreError(f"run.json: the rubric of its judges is damaged: {error}; judge the run again") from None


def default_rubric() -> Rubric:
    """The ten categories that code is judged by, where no rubric is given."""
    return DEFAULT_RUBRIC


def _check_names(known: set[str], given: Mapping[str, float | None]) -> None:
    if known != given.keys():
        missing, unknown = sorted(known - given.keys()), sorted(given.keys() - known)
        raise ValueError(f"every part of a rubric needs a score or None: missing {missing}, unknown {unknown}")


DEFAULT_RUBRIC = Rubric(
    id="default",
    categories=(
        RubricCategory(
            name="functional_correctness",
            weight=2.0,
            check="The solution does what the task asks for, in edge cases and on bad input too.",
        ),
        RubricCategory(
            name="completeness",
            weight=1.5,
            check="Every part of the task is dealt with, and nothing is left as a stub or for later.",
        ),
        RubricCategory(
            name="code_quality",
            weight=1.0,
            check="The code follows the customs of its language, handles errors and could be maintained by a stranger.",
        ),
        RubricCategory(
            name="simplicity",
            weight=1.0,
            check="There is no more code, and no more machinery, than the task needs.",
        ),
        RubricCategory(
            name="lack_of_duplication",
            weight=0.5,
            check="No piece of logic or data is written down twice.",
        ),
        RubricCategory(
            name="clarity",
            weight=1.0,
            check="Names, structure and order let a reader follow the solution at the first reading.",
        ),
        RubricCategory(
            name="documentation",
            weight=0.5,
            check="What the code cannot say by itself is explained, briefly and correctly.",
        ),
        RubricCategory(
            name="architectural_cleanliness",
            weight=0.5,
            check="Each part has one job, and parts depend on each other only where they must.",
        ),
        RubricCategory(
            name="efficiency",
            weight=0.5,
            check="Time and memory are in proportion to the task.",
        ),
        RubricCategory(
            name="cleanup_script_quality",
            weight=1.0,
            check="Whatever the solution makes or starts is removed again by a script or step that works and is safe.",
            na_condition="The task makes or starts nothing that would have to be removed.",
        ),
    ),
)
