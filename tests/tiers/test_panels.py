"""A panel says what its judges say together, how far they agree, and what cannot be said."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence

import krippendorff
import msgspec
import numpy as np
import pytest

from steelyard.stats.agreement import gwet_ac1, krippendorff_alpha, raw_agreement
from steelyard.tiers.agreement import (
    AttemptIdentity,
    Consensus,
    JudgeRating,
    JudgeReport,
    PanelAgreement,
    PanelRuling,
    consensus,
    panel_agreement,
)

NOMINAL = [[1, 1, 0, None, 0], [1, 0, 0, 1, None], [None, 1, 0, 1, 0]]
INTERVAL = [[0.9, 0.7, 0.8, 0.4, 0.6], [0.85, 0.75, 0.8, 0.5, 0.55], [0.95, 0.6, 0.7, 0.45, 0.6]]
THREE = [
    [1, 1, 0, 1, 0, 1, 1, 0, 1, 1],
    [1, 0, 0, 1, 0, 1, 1, 1, 1, 1],
    [1, 1, 0, 1, 1, 1, 1, 0, 1, 0],
]


def thing(number: int, *, case: str = "") -> AttemptIdentity:
    return AttemptIdentity(case=case or f"c{number}", model="openai/m", tier="T0", number=number)


def given(scores: Sequence[Sequence[float | None]], *, votes: bool = False) -> list[JudgeRating]:
    """Ratings from a row per judge and a column per thing; None where a judge was not asked."""
    return [
        JudgeRating(
            thing=thing(place),
            judge=f"judge-{row}",
            score=None if votes else value,
            passed=bool(value) if votes else None,
            categories={} if votes else {"clarity": value},
        )
        for row, values in enumerate(scores)
        for place, value in enumerate(values)
        if value is not None
    ]


def judge(found: PanelAgreement, name: str) -> JudgeReport:
    (report,) = [each for each in found.judges if each.judge == name]
    return report


def agreed(found: PanelAgreement, place: int) -> Consensus:
    (ruling,) = [each for each in found.rulings if each.thing == thing(place)]
    return ruling.consensus


def test_agreement_on_pass_or_fail_has_the_known_values() -> None:
    found = panel_agreement(given(NOMINAL, votes=True), seed=1).passes
    assert found.alpha.value == pytest.approx(25 / 36, rel=1e-12)
    assert found.alpha.cases == 5
    assert found.apart is None
    more = panel_agreement(given(THREE, votes=True), seed=1).passes
    assert more.alpha.value == pytest.approx(73 / 189, rel=1e-12)
    assert more.same == pytest.approx(0.7333333333, abs=1e-10)
    assert more.ac1 == pytest.approx(0.540229885057, abs=1e-12)
    assert more.alpha.low is not None
    assert more.alpha.high is not None
    assert more.alpha.low < 73 / 189 < more.alpha.high
    assert more.reasons == {}


def test_agreement_on_scores_has_the_known_value_overall_and_by_category() -> None:
    found = panel_agreement(given(INTERVAL), seed=1)
    assert found.scores.alpha.value == pytest.approx(0.890719861232, abs=1e-12)
    assert found.categories["clarity"] == found.scores
    pairs = [abs(a - b) for a, b, c in zip(*INTERVAL, strict=True) for a, b in ((a, b), (a, c), (b, c))]
    assert found.scores.apart == pytest.approx(statistics.fmean(pairs))
    assert found.scores.same == raw_agreement(INTERVAL)
    assert found.scores.ac1 == gwet_ac1(INTERVAL)


def test_agreement_is_that_of_the_reference_library_with_missing_judges() -> None:
    chance = random.Random(3)
    for _ in range(20):
        rows = [[round(chance.random(), 2) if chance.random() < 0.7 else None for _ in range(12)] for _ in range(4)]
        found = panel_agreement(given(rows), seed=1).scores.alpha.value
        expected = krippendorff.alpha(reliability_data=np.array(rows, dtype=float), level_of_measurement="interval")
        assert found == pytest.approx(float(expected), rel=1e-9)


def test_consensus_is_the_mean_of_valid_scores_and_a_strict_majority() -> None:
    assert consensus([0.9, None, 0.6], [True, None, True]) == Consensus(score=0.75, passed=True, judges=2)
    assert consensus([0.5, 0.7], [True, False]).passed is False
    assert consensus([0.2, 0.2, 0.2], [True, True, False]).passed is True
    assert consensus([], []) == Consensus(score=None, passed=None)
    assert consensus([None, None], [None, None]) == Consensus(score=None, passed=None)
    assert consensus([0.1, 0.1, 0.1]).score == 0.1


def test_each_thing_is_ruled_on_by_those_who_judged_it() -> None:
    found = panel_agreement(given([[0.9, None, 0.2], [0.7, 0.5, None]]), seed=1)
    assert [agreed(found, place).score for place in range(3)] == [pytest.approx(0.8), 0.5, 0.2]
    assert [agreed(found, place).judges for place in range(3)] == [2, 1, 1]


def test_a_thing_without_a_valid_judge_has_no_ruling_but_is_listed() -> None:
    ratings = [
        *given([[0.9], [0.7]]),
        JudgeRating(thing=thing(5), judge="judge-0", valid=False, score=0.0, passed=False),
    ]
    found = panel_agreement(ratings, seed=1)
    assert agreed(found, 5) == Consensus(score=None, passed=None)
    assert found.invalid.value == pytest.approx(1 / 3)
    assert judge(found, "judge-0").invalid.value == 0.5
    assert judge(found, "judge-0").things == 1
    assert judge(found, "judge-1").invalid.value == 0.0


def test_an_invalid_rating_moves_nothing_but_the_count_of_invalid_ones() -> None:
    ratings = given(INTERVAL)
    extra = [
        JudgeRating(thing=thing(place), judge="judge-0", repeat=2, valid=False, score=0.0, passed=False, claim_off=True)
        for place in range(5)
    ]
    with_extra, plain = panel_agreement([*ratings, *extra], seed=1), panel_agreement(ratings, seed=1)
    assert with_extra.rulings == plain.rulings
    assert with_extra.scores == plain.scores
    assert with_extra.claims_off == judge(with_extra, "judge-0").claims_off == 0
    assert judge(with_extra, "judge-0").leniency == judge(plain, "judge-0").leniency


PARTS = [{"case": "x"}, {"model": "x"}, {"tier": "x"}, {"number": 99}]


def alike_but_for(part: dict[str, object], *, repeated: bool) -> list[JudgeRating]:
    """Two judges who agree on two things that differ in one part of their identity alone."""
    one = AttemptIdentity(case="c", model="m", tier="t", number=1)
    other = msgspec.structs.replace(one, **part)
    return [
        JudgeRating(
            thing=what, judge=name, repeat=2 if repeated and what == other else 1, score=score, passed=score > 0.5
        )
        for what, score in ((one, 0.9), (other, 0.1))
        for name in ("a", "b")
    ]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("repeated", [False, True])
def test_things_that_differ_in_any_part_of_their_identity_are_different_things(
    part: dict[str, object], repeated: bool
) -> None:
    found = panel_agreement(alike_but_for(part, repeated=repeated), seed=1)
    assert found.scores.alpha.value == found.passes.alpha.value == 1.0
    assert sorted(ruling.consensus.score or math.nan for ruling in found.rulings) == [0.1, 0.9]
    assert [report.spread for report in found.judges] == [None, None]


@pytest.mark.parametrize("part", PARTS)
def test_ratings_keyed_without_a_part_of_the_identity_are_noticed_or_say_something_else(
    part: dict[str, object],
) -> None:
    def keyed_wrongly(ratings: Iterable[JudgeRating]) -> list[JudgeRating]:
        return [msgspec.structs.replace(each, thing=msgspec.structs.replace(each.thing, **part)) for each in ratings]

    with pytest.raises(ValueError, match="same thing, judge and repeat"):
        panel_agreement(keyed_wrongly(alike_but_for(part, repeated=False)), seed=1)
    wrong = panel_agreement(keyed_wrongly(alike_but_for(part, repeated=True)), seed=1)
    assert len(wrong.rulings) == 1
    assert wrong.scores.alpha.value is None


@pytest.mark.parametrize("part", ["case", "model", "tier", "number"])
def test_no_part_of_an_identity_can_be_left_out(part: str) -> None:
    whole = {"case": "c", "model": "m", "tier": "", "number": 1}
    del whole[part]
    with pytest.raises(TypeError, match=part):
        AttemptIdentity(**whole)  # type: ignore[arg-type]


def test_the_order_of_ratings_and_the_names_of_judges_change_nothing() -> None:
    chance = random.Random(5)
    ratings = [
        JudgeRating(
            thing=thing(place, case=f"c{place % 4}"),
            judge=name,
            repeat=repeat,
            score=round(chance.random(), 2),
            passed=chance.random() < 0.5,
            categories={"a": round(chance.random(), 2), "b": None},
        )
        for place in range(10)
        for name in ("x", "y", "z")
        for repeat in (1, 2)
        if chance.random() < 0.9
    ]
    first = panel_agreement(ratings, seed=7)
    for _ in range(5):
        chance.shuffle(ratings)
        assert panel_agreement(ratings, seed=7) == first
    names = {"x": "z", "y": "x", "z": "y"}
    renamed = panel_agreement([msgspec.structs.replace(each, judge=names[each.judge]) for each in ratings], seed=7)
    assert renamed.scores.alpha.value == pytest.approx(first.scores.alpha.value)
    for report in first.judges:
        again = judge(renamed, names[report.judge])
        assert again.leniency.value == pytest.approx(report.leniency.value)
        assert again.spread == pytest.approx(report.spread)
        assert again.decides == report.decides


def test_one_judge_alone_has_a_mean_and_the_rest_has_a_reason() -> None:
    found = panel_agreement(given([[0.9, 0.5, 0.7]]), seed=1)
    (report,) = found.judges
    assert report.mean.value == pytest.approx(0.7)
    assert report.mean.low is not None
    assert (report.leniency.value, report.spread, report.flips, report.decides) == (None, None, None, None)
    assert set(report.reasons) == {"leniency", "spread", "flips", "decides"}
    assert found.scores.alpha.value is None
    assert set(found.scores.reasons) == {"alpha", "same", "ac1", "apart"}
    assert (found.outliers, found.spread) == (None, None)
    assert set(found.reasons) == {"outliers", "spread"}
    assert [ruling.consensus.score for ruling in found.rulings] == [0.9, 0.5, 0.7]


def test_no_ratings_at_all_are_a_panel_that_says_nothing() -> None:
    found = panel_agreement([], seed=1)
    assert (found.ratings, found.rulings, found.judges, found.invalid.value) == (0, (), (), None)
    assert found.passes.alpha.value is None


def test_judges_who_all_say_the_same_have_no_alpha_and_a_reason() -> None:
    found = panel_agreement(given([[1, 1, 1], [1, 1, 1]], votes=True), seed=1).passes
    assert (found.alpha.value, found.same, found.ac1) == (None, 1.0, 1.0)
    assert "all ratings are the same" in found.reasons["alpha"]


def test_judges_of_different_things_are_not_compared() -> None:
    found = panel_agreement(given([[0.9, 0.8, None, None], [None, None, 0.1, 0.2]]), seed=1)
    assert found.scores.alpha.value is None
    assert all(report.leniency.value is None and report.decides is None for report in found.judges)


def test_a_lenient_judge_is_told_by_its_distance_from_the_others_on_the_same_things() -> None:
    hard, soft = [0.2, 0.4, 0.6, 0.5], [0.31, 0.49, 0.72, 0.58]
    # the easy thing that only the hard judge saw must not make it look lenient
    found = panel_agreement(given([[*hard, 1.0], [*soft, None]]), seed=1)
    distances = [high - low for low, high in zip(hard, soft, strict=True)]
    report = judge(found, "judge-1").leniency
    assert report.value == pytest.approx(statistics.fmean(distances))
    reach = 3.182446305284263 * statistics.stdev(distances) / 2
    assert report.low == pytest.approx(0.1 - reach)
    assert report.high == pytest.approx(0.1 + reach)
    assert judge(found, "judge-0").leniency.value == pytest.approx(-0.1)
    assert report.cases == 4


def test_leniency_is_against_the_mean_of_the_others() -> None:
    found = panel_agreement(given([[0.9, 0.9], [0.5, 0.7], [0.7, 0.5]]), seed=1)
    assert judge(found, "judge-0").leniency.value == pytest.approx(0.3)
    assert judge(found, "judge-1").leniency.value == pytest.approx((0.5 - 0.8 + 0.7 - 0.7) / 2)


def test_the_interval_of_leniency_takes_the_cases_for_its_units() -> None:
    ratings = [
        JudgeRating(thing=thing(place, case=f"c{place % 2}"), judge=name, score=score)
        for place in range(6)
        for name, score in (("a", 0.5), ("b", 0.5 + 0.1 * (place % 2) + 0.01 * place))
    ]
    report = judge(panel_agreement(ratings, seed=1), "b").leniency
    distances = [0.1 * (place % 2) + 0.01 * place for place in range(6)]
    middle = statistics.fmean(distances)
    sums = [sum(each - middle for each in distances[start::2]) for start in (0, 1)]
    error = math.sqrt(sum(each**2 for each in sums) / 36 * 2 / 1)
    assert report.high == pytest.approx(middle + 12.706204736174698 * error)
    alone = [msgspec.structs.replace(each, thing=msgspec.structs.replace(each.thing, case="c")) for each in ratings]
    single = judge(panel_agreement(alone, seed=1), "b")
    assert (single.leniency.low, single.leniency.high) == (None, None)
    assert "leniency.low" in single.reasons


def test_a_judge_with_many_repeats_has_one_voice() -> None:
    once = [JudgeRating(thing=thing(1), judge="a", score=0.2, passed=False)]
    often = [
        JudgeRating(thing=thing(1), judge="b", repeat=repeat, score=score, passed=True)
        for repeat, score in enumerate((0.7, 0.8, 0.9))
    ]
    found = panel_agreement([*once, *often], seed=1)
    assert agreed(found, 1).score == pytest.approx(0.5)
    assert agreed(found, 1).passed is False
    assert agreed(found, 1).judges == 2


def test_self_consistency_is_the_spread_over_repeats_of_the_same_thing() -> None:
    repeats = {1: [0.5, 0.7], 2: [0.2, 0.3, 0.4], 3: [0.9]}
    ratings = [
        JudgeRating(thing=thing(place), judge="a", repeat=repeat, score=score, passed=score >= 0.6)
        for place, scores in repeats.items()
        for repeat, score in enumerate(scores)
    ]
    report = judge(panel_agreement(ratings, seed=1), "a")
    pooled = (statistics.variance([0.5, 0.7]) + 2 * statistics.variance([0.2, 0.3, 0.4])) / 3
    assert report.spread == pytest.approx(math.sqrt(pooled))
    assert report.flips == pytest.approx((1 + 0) / 2)
    steady = [msgspec.structs.replace(each, score=0.5, passed=True) for each in ratings]
    assert (judge(panel_agreement(steady, seed=1), "a").spread, judge(panel_agreement(steady, seed=1), "a").flips) == (
        0.0,
        0.0,
    )


def test_a_judge_decides_where_the_majority_would_be_another_without_it() -> None:
    rows = [[1, 1, 0], [1, 0, 0], [0, 1, 1]]
    found = panel_agreement(given(rows, votes=True), seed=1)
    expected = []
    for own in range(3):
        decided = 0
        for place in range(3):
            everyone = [row[place] for row in rows]
            others = everyone[:own] + everyone[own + 1 :]
            decided += (2 * sum(everyone) > 3) != (2 * sum(others) > 2)
        expected.append(decided)
    assert [report.decides for report in found.judges] == expected
    assert sum(expected) > 0


def quiet(things: int = 30) -> list[list[float | None]]:
    chance = random.Random(2)
    return [[round(0.7 + chance.uniform(-0.03, 0.03), 3) for _ in range(things)] for _ in range(3)]


def test_a_score_far_from_the_others_is_an_outlier_and_does_not_make_outliers_of_them() -> None:
    rows = quiet()
    rows[1][4] = 0.05
    found = panel_agreement(given(rows), seed=1)
    assert found.outliers is not None
    assert [(outlier.thing, outlier.judge, outlier.score) for outlier in found.outliers] == [
        (thing(4), "judge-1", 0.05)
    ]
    others = [value for value in (rows[0][4], rows[2][4]) if value is not None]
    assert found.outliers[0].others == pytest.approx(statistics.fmean(others))


def test_the_spread_is_a_robust_one() -> None:
    rows = quiet()
    calm = panel_agreement(given(rows), seed=1)
    assert calm.outliers == ()
    distances = []
    for column in zip(*rows, strict=True):
        values = [value for value in column if value is not None]
        distances += [abs(value - (sum(values) - value) / 2) for value in values]
    assert calm.spread == pytest.approx(1.4826 * statistics.median(distances))
    rows[0][0] = 0.0
    wild = panel_agreement(given(rows), seed=1)
    assert wild.spread == pytest.approx(calm.spread, rel=0.1)


def test_a_panel_that_agrees_to_the_letter_does_not_take_a_small_step_for_an_outlier() -> None:
    rows: list[list[float | None]] = [[0.8] * 10 for _ in range(3)]
    rows[2][0] = 0.7
    assert panel_agreement(given(rows), seed=1).outliers == ()
    rows[2][0] = 0.65
    (outlier,) = panel_agreement(given(rows), seed=1).outliers or ()
    assert (outlier.judge, outlier.score, outlier.others) == ("judge-2", 0.65, 0.8)


def test_equally_far_scores_are_all_named() -> None:
    rows = quiet()
    rows[0][0], rows[1][0], rows[2][0] = 0.1, 0.5, 0.9
    found = panel_agreement(given(rows), seed=1).outliers or ()
    assert {outlier.judge for outlier in found} == {"judge-0", "judge-2"}


def test_of_two_that_are_left_neither_is_called_an_outlier() -> None:
    rows = quiet()
    rows[0][0], rows[1][0], rows[2][0] = 0.05, 0.6, 0.9
    found = panel_agreement(given(rows), seed=1).outliers or ()
    assert [outlier.judge for outlier in found] == ["judge-0"]


def test_two_judges_have_no_outlier_because_nobody_knows_which_it_is() -> None:
    found = panel_agreement(given([[0.9, 0.8, 0.9], [0.1, 0.8, 0.9], [None, None, None]]), seed=1)
    assert found.outliers is None
    assert "unknown which one is off" in found.reasons["outliers"]


def test_claims_that_are_off_are_counted_for_the_judge_and_the_panel() -> None:
    ratings = [msgspec.structs.replace(each, claim_off=each.judge == "judge-1") for each in given(INTERVAL)]
    found = panel_agreement(ratings, seed=1)
    assert found.claims_off == 5
    assert [report.claims_off for report in found.judges] == [0, 5, 0]


def test_a_category_that_does_not_apply_is_no_rating_of_it() -> None:
    ratings = [
        JudgeRating(thing=thing(place), judge=name, score=0.5, categories={"a": score})
        for place, scores in enumerate([(0.1, 0.2), (None, 0.9), (0.8, 0.7)])
        for name, score in zip("xy", scores, strict=True)
    ]
    found = panel_agreement(ratings, seed=1).categories["a"].alpha
    assert found.cases == 2
    assert found.value == krippendorff_alpha([[0.1, None, 0.8], [0.2, 0.9, 0.7]], level="interval")


def test_a_score_above_one_is_kept_and_does_not_break_the_interval() -> None:
    report = panel_agreement(given([[1.2, 0.8, 1.0]]), seed=1).judges[0]
    assert report.mean.value == pytest.approx(1.0)
    assert report.mean.high is not None
    assert report.mean.high <= 1.0


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        panel_agreement([JudgeRating(thing=thing(1), judge="a", score=score)], seed=1)


def test_rounding_is_no_disagreement() -> None:
    found = panel_agreement(given([[0.1 + 0.2, 0.5], [0.3, 0.5]]), seed=1).scores
    assert found.same == 1.0
    assert found.alpha.value == 1.0


def test_a_panel_can_be_stored_and_has_no_number_that_json_lacks() -> None:
    found = panel_agreement([*given(INTERVAL), JudgeRating(thing=thing(9), judge="judge-0", valid=False)], seed=1)
    stored = msgspec.json.encode(found)
    assert msgspec.json.decode(stored, type=PanelAgreement) == found
    assert b"NaN" not in stored
    assert isinstance(found.rulings[0], PanelRuling)


def test_agreement_on_a_few_things_has_no_interval() -> None:
    rows = [[0.1, 0.9, 0.4, 0.7, 0.2], [0.2, 0.8, 0.5, 0.7, 0.1]]
    enough = panel_agreement(given(rows, votes=False), seed=1).scores
    few = panel_agreement(given([row[:4] for row in rows], votes=False), seed=1).scores
    assert enough.alpha.low is not None
    assert (few.alpha.value is None, few.alpha.low, few.alpha.high) == (False, None, None)
    assert "fewer than 5" in few.reasons["alpha.low"]


def test_the_interval_of_leniency_covers_as_often_as_it_promises() -> None:
    chance = np.random.default_rng(11)
    covered, times = 0, 200
    for _ in range(times):
        base = chance.uniform(0.2, 0.8, 15)
        rows = [list(base + chance.normal(shift, 0.05, 15)) for shift in (0.1, 0.0, 0.0)]
        report = judge(
            panel_agreement(given([[float(value) for value in row] for row in rows], votes=False), seed=1), "judge-0"
        )
        assert report.leniency.low is not None
        assert report.leniency.high is not None
        covered += report.leniency.low <= 0.1 <= report.leniency.high
    assert 0.92 <= covered / times <= 0.98
