"""Ratings as columns are the same ratings, in less memory."""

from __future__ import annotations

import math
import tracemalloc

import pytest

from steelyard.tiers.judges import experiment_judgments
from steelyard.tiers.rating_tables import CriterionMarks, JudgmentTable
from steelyard.tiers.results import CriterionRating, JudgeIdentity, RunIdentity, RunRating

ANNE, BEN = JudgeIdentity("anne"), JudgeIdentity("ben", 2)
RUN = RunIdentity("e", "m", "T0", "a", 1)


def test_a_table_gives_back_what_was_put_in() -> None:
    ratings = [
        RunRating(run=RUN, judge=ANNE, score=0.5, impl_rate=0.25, passed=False, grade="B"),
        RunRating(run=RUN._replace(number=2), judge=BEN, passed=True),
        RunRating(run=RUN, judge=BEN, valid=False),
    ]
    criteria = [
        CriterionRating(run=RUN, judge=ANNE, criterion="docs", score=None, achieved=None, max=2),
        CriterionRating(run=RUN, judge=ANNE, criterion="works", score=0.5, achieved=1.5, max=3),
        CriterionRating(run=RUN, judge=BEN, criterion="works", score=0, achieved=0, max=3),
    ]
    table = JudgmentTable.of(ratings, criteria)
    assert list(table.ratings()) == ratings
    assert list(table.criteria()) == criteria
    assert JudgmentTable.of(table) is table


def test_who_has_criteria_alone_has_a_rating_without_a_claim() -> None:
    given = CriterionRating(run=RUN, judge=ANNE, criterion="works", score=1, achieved=3, max=3)
    table = JudgmentTable.of([], [given])
    assert list(table.ratings()) == [RunRating(run=RUN, judge=ANNE)]
    assert list(table.criteria()) == [given]


def test_a_later_rating_takes_the_place_of_an_earlier_one_with_its_criteria() -> None:
    table = JudgmentTable()
    first = table.add(RunRating(run=RUN, judge=ANNE, passed=True, grade="A"), [CriterionMarks("works", 1, 3, 3)])
    table.add(RunRating(run=RUN, judge=BEN), [CriterionMarks("docs", 1, 1, 1)])
    later = RunRating(run=RUN, judge=ANNE, passed=False, grade="F")
    table.replace(first, later, [CriterionMarks("style", 0, 0, 2)])
    assert [rating.grade for rating in table.ratings()] == ["F", ""]
    assert [each.criterion for each in table.criteria()] == ["style", "docs"]


def test_a_score_that_is_not_a_number_is_refused_and_not_taken_for_none() -> None:
    for wrong in (RunRating(run=RUN, judge=ANNE, score=math.nan), RunRating(run=RUN, judge=ANNE, impl_rate=math.nan)):
        with pytest.raises(ValueError, match="a score is a finite number or None"):
            JudgmentTable.of([wrong])


def test_what_many_judgments_hold_until_they_are_compared_is_small() -> None:
    size = 500

    def table() -> JudgmentTable:
        made = JudgmentTable()
        for number in range(size):
            rating = RunRating(run=RUN._replace(number=number), judge=ANNE, score=number / size, passed=True)
            made.add(rating, [CriterionMarks("works", number / size, number / size, 1)])
        return made

    experiment_judgments(table(), seed=1)
    tracemalloc.start()
    made = table()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    said = experiment_judgments(made, seed=1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert said is not None
    assert said.panel.ratings == size
    assert held < 300 * size, "records of a rating and a criterion take 700 bytes"
    assert most < 1000 * size, "with all that is computed from them"
