"""What judges say is recomputed from their points, and belongs to the run with the whole identity."""

from __future__ import annotations

from statistics import mean, median, stdev

import pytest
from msgspec.structs import replace
from scipy import stats

from steelyard.tiers.judges import ExperimentJudgments, RunConsensus, experiment_judgments
from steelyard.tiers.results import CriterionRating, JudgeIdentity, RunIdentity, RunRating

ANNE, BEN, CARL = JudgeIdentity("anne"), JudgeIdentity("ben"), JudgeIdentity("carl")


def run(case: str, number: int = 1) -> RunIdentity:
    return RunIdentity("e", "m", "T0", case, number)


def rated(
    of: RunIdentity, judge: JudgeIdentity, rate: float | None, passed: bool | None = None, *, valid: bool = True
) -> RunRating:
    return RunRating(run=of, judge=judge, impl_rate=rate, passed=passed, valid=valid)


def points(
    of: RunIdentity, judge: JudgeIdentity, name: str, achieved: float | None, most: float | None
) -> CriterionRating:
    return CriterionRating(run=of, judge=judge, criterion=name, achieved=achieved, max=most)


def found(ratings: list[RunRating], criteria: list[CriterionRating] | None = None) -> ExperimentJudgments:
    said = experiment_judgments(ratings, criteria or [], seed=1)
    assert said is not None
    return said


def test_a_judges_share_is_counted_from_its_points_and_not_believed() -> None:
    ratings = [rated(run("a"), ANNE, 0.99), rated(run("b"), ANNE, 0.71)]
    criteria = [
        points(run("a"), ANNE, "works", 3.5, 5),
        points(run("a"), ANNE, "docs", 0, 1.5),
        points(run("a"), ANNE, "style", None, 2),
        points(run("b"), ANNE, "works", 7, 10),
    ]
    said = found(ratings, criteria)
    assert {each.case: opinion.points for each, opinion in said.opinions.items()} == {"a": 3.5 / 6.5, "b": 0.7}
    assert said.panel.claims_off == 1
    (check,) = said.claims
    assert (check.claim, check.checked, check.off) == ("impl_rate", 2, 1)
    assert check.mean_distance == pytest.approx((0.99 - 3.5 / 6.5 + 0.01) / 2)


def test_both_totals_that_a_judge_claims_are_checked() -> None:
    rating = RunRating(run=run("a"), judge=ANNE, score=0.6, impl_rate=0.71)
    said = found(
        [rating, replace(rating, judge=BEN, score=0.69)], [points(run("a"), j, "x", 7, 10) for j in (ANNE, BEN)]
    )
    assert [(check.claim, check.checked, check.off) for check in said.claims] == [("score", 2, 1), ("impl_rate", 2, 0)]
    assert said.panel.claims_off == 1


def test_a_rating_in_which_nothing_applies_is_no_rating() -> None:
    ratings = [RunRating(run=run("a"), judge=judge, score=0.0, impl_rate=0.0, passed=False) for judge in (ANNE, BEN)]
    criteria = [points(run("a"), ANNE, "docs", 0.0, 0.0), points(run("a"), BEN, "docs", None, None)]
    said = found([*ratings, rated(run("a"), CARL, 1.0, True)], criteria)
    assert said.opinions == {run("a"): RunConsensus(1.0, None, 1.0, True)}
    assert (said.empty, said.claims) == (2, ())


def test_a_share_above_one_counts_as_one() -> None:
    said = found([rated(run("a"), ANNE, 1.2), rated(run("a"), BEN, 0.5)])
    assert said.opinions[run("a")].points == 0.75
    assert said.panel.judges[0].mean.value == 1.0


def test_without_points_the_judges_own_share_is_taken_and_its_total_is_another_rate() -> None:
    ratings = [
        RunRating(run=run("a"), judge=ANNE, score=0.4, impl_rate=0.5),
        RunRating(run=run("b"), judge=ANNE, score=0.4),
        RunRating(run=run("c"), judge=ANNE),
    ]
    opinions = list(found(ratings).opinions.values())
    assert [(opinion.points, opinion.score) for opinion in opinions] == [(0.5, 0.4), (None, 0.4), (None, None)]


def test_points_alone_are_an_opinion_without_a_verdict() -> None:
    said = found([], [points(run("a"), ANNE, "works", 1, 4)])
    assert said.opinions == {run("a"): RunConsensus(0.25, None, 0.25, None)}


def test_without_a_judge_there_is_no_opinion() -> None:
    assert experiment_judgments([], [], seed=1) is None


def test_a_judge_that_was_asked_twice_has_one_voice() -> None:
    ratings = [
        rated(run("a"), JudgeIdentity("anne", n), rate, passed) for n, rate, passed in ((1, 0.2, True), (2, 0.4, False))
    ]
    said = found([*ratings, rated(run("a"), BEN, 0.9, True)])
    opinion = said.opinions[run("a")]
    assert (opinion.points, opinion.middle) == pytest.approx((0.6, 0.6))
    assert opinion.passed is False
    with pytest.raises(ValueError, match="same thing, judge and repeat"):
        found([rated(run("a"), ANNE, 0.2), rated(run("a"), ANNE, 0.4)])


@pytest.mark.parametrize(
    ("votes", "passed"),
    [
        ([True, True, False], True),
        ([True, False], False),
        ([True, None, None], True),
        ([False, False, True], False),
        ([None, None], None),
    ],
)
def test_more_than_half_of_the_verdicts_decide_and_a_tie_fails(votes: list[bool | None], passed: bool | None) -> None:
    ratings = [rated(run("a"), judge, 0.5, vote) for judge, vote in zip((ANNE, BEN, CARL), votes, strict=False)]
    assert found(ratings).opinions[run("a")].passed is passed


def test_a_rating_that_is_not_valid_counts_nowhere() -> None:
    ratings = [rated(run("a"), ANNE, 0.8, True)]
    ratings += [rated(run("a"), judge, 0.0, False, valid=False) for judge in (BEN, CARL)]
    ratings += [rated(run("b"), ANNE, 0.3, True, valid=False)]
    said = found(ratings)
    assert said.opinions == {
        run("a"): RunConsensus(0.8, None, 0.8, True),
        run("b"): RunConsensus(None, None, None, None),
    }
    assert [each.invalid.value for each in said.panel.judges] == [0.5, 1.0, 1.0]


def test_the_agreement_of_judges_is_that_of_the_formulas() -> None:
    table = [[0.9, 0.7, 0.8, 0.4, 0.6], [0.85, 0.75, 0.8, 0.5, 0.55], [0.95, 0.6, 0.7, 0.45, 0.6]]
    ratings = [
        rated(run(f"c{item}"), judge, table[place][item])
        for place, judge in enumerate((ANNE, BEN, CARL))
        for item in range(5)
    ]
    assert found(ratings).panel.scores.alpha.value == pytest.approx(0.890719861232, abs=5e-13)
    votes = [[1, 1, 0, None, 0], [1, 0, 0, 1, None], [None, 1, 0, 1, 0]]
    ratings = [
        rated(run(f"c{item}"), judge, None, bool(vote), valid=vote is not None)
        for judge, row in zip((ANNE, BEN, CARL), votes, strict=True)
        for item, vote in enumerate(row)
    ]
    assert found(ratings).panel.passes.alpha.value == pytest.approx(25 / 36)


ELSEWHERE = (
    RunIdentity("x", "m", "T0", "a", 1),
    RunIdentity("e", "x", "T0", "a", 1),
    RunIdentity("e", "m", "x", "a", 1),
    RunIdentity("e", "m", "T0", "x", 1),
    RunIdentity("e", "m", "T0", "a", 2),
)


@pytest.mark.parametrize("other", ELSEWHERE)
def test_agreement_is_lost_when_a_part_of_the_identity_is_dropped(other: RunIdentity) -> None:
    ratings = [rated(each, judge, rate) for each, rate in ((run("a"), 0.2), (other, 0.9)) for judge in (ANNE, BEN)]
    said = found(ratings)
    assert said.panel.scores.alpha.value == 1
    assert {each: opinion.points for each, opinion in said.opinions.items()} == {run("a"): 0.2, other: 0.9}
    with pytest.raises(ValueError, match="same thing, judge and repeat"):
        found([replace(each, run=run("a")) for each in ratings])


def test_names_with_slashes_are_not_mixed_up() -> None:
    one, other = RunIdentity("a/b", "m", "T0", "c", 1), RunIdentity("a", "m", "T0", "b/c", 1)
    said = found([rated(one, ANNE, 0.2), rated(other, ANNE, 0.9)])
    assert {each: opinion.points for each, opinion in said.opinions.items()} == {one: 0.2, other: 0.9}


def test_a_judges_shift_is_from_the_others_and_its_interval_over_cases() -> None:
    given = {
        "a": ((0.9, 0.5, 0.7), (0.8, 0.4, 0.6)),
        "b": ((0.6, 0.6, 0.3), (0.6, 0.5, 0.5)),
        "c": ((1.0, 0.9, 0.8), (0.7, 0.9, 0.4)),
    }
    ratings = [
        rated(run(case, number), judge, rate)
        for case, runs in given.items()
        for number, rates in enumerate(runs)
        for judge, rate in zip((ANNE, BEN, CARL), rates, strict=True)
    ]
    said = found(ratings)
    shifts = {case: [one - mean(others) for one, *others in runs] for case, runs in given.items()}
    by_case = [mean(each) for each in shifts.values()]
    half = stats.t.ppf(0.975, 2) * stdev(by_case) / 3**0.5
    told = said.panel.judges[0].leniency
    assert told.value == pytest.approx(mean(by_case))
    assert (told.low, told.high) == pytest.approx((mean(by_case) - half, mean(by_case) + half))
    assert said.shifts["anne"][2] == pytest.approx(median(each for of_case in shifts.values() for each in of_case))
    assert list(said.shifts["anne"]) == sorted(said.shifts["anne"])


def test_an_outlier_is_told_with_the_names_of_its_run() -> None:
    ratings = [rated(run(f"c{n}"), judge, 0.5) for n in range(5) for judge in (ANNE, BEN, CARL)]
    ratings[0] = rated(run("c0"), ANNE, 1.0)
    (outlier,) = found(ratings).panel.outliers or ()
    assert (outlier.thing.case, outlier.judge, outlier.score) == ("e/c0", "anne", 1.0)


def test_a_lone_judge_agrees_with_nobody() -> None:
    said = found([rated(run("a"), ANNE, 0.4, True), rated(run("b"), ANNE, 0.5, True)])
    assert (said.panel.scores.alpha.value, said.panel.passes.same, said.shifts) == (None, None, {})


def test_a_model_that_judges_its_own_runs_is_named() -> None:
    assert found([rated(run("a"), JudgeIdentity("m"), 0.4), rated(run("a"), ANNE, 0.4)]).own == ("m",)
    assert found([rated(run("a"), ANNE, 0.4)]).own == ()
