"""A corrected rate holds the truth as often as it promises, whoever the judge is and however labels were picked."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.judged_rates import JUDGES, LOOK, Setting, answers, coverage, drawn, false_alarms

from steelyard.stats.intervals import wilson
from steelyard.stats.judged import JudgedAnswer, corrected_difference, corrected_rate, transferred_rate

LOWEST = {300: 0.90, 2000: 0.93}
"""The least coverage that as many repeats may show by chance, where 95% are promised and 93% are asked for."""


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(("labels", "rates"), [(20, (0.95, 0.9)), (50, (0.5, 0.5)), (200, (0.8, 0.7))])
def test_rates_and_differences_hold_the_truth(judge: str, labels: int, rates: tuple[float, float]) -> None:
    found = coverage(Setting(labels, rates, judge, True), 300, seed=labels, checked=3)
    assert found.worst >= LOWEST[300]


def test_the_estimate_is_prediction_powered_inference_with_the_tuned_weight() -> None:
    draws, _ = drawn(Setting(50, (0.7, 0.7), "lenient, strict", True), 1, np.random.default_rng(1))
    truth, passed, labelled = (each[0] for each in draws)
    # the definition: the mean of labels, and what the judge says of all others beyond what it says of the labelled
    weight = np.cov(truth[labelled], passed[labelled], bias=True)[0, 1] / passed[labelled].var()
    weight *= (~labelled).sum() / len(truth)
    tuned = truth[labelled].mean() + weight * (passed[~labelled].mean() - passed[labelled].mean())
    found = corrected_rate(answers(draws, 0))
    assert found is not None
    assert found.value == pytest.approx(tuned, abs=1e-12)


def test_labels_that_prefer_one_opinion_do_not_move_the_rate() -> None:
    chance = np.random.default_rng(3)
    values = []
    for _ in range(200):
        truth = chance.random(300) < 0.7
        passed = np.where(truth, chance.random(300) < 0.9, chance.random(300) < 0.3)
        labelled = chance.random(300) < np.where(passed, 0.1, 0.8)
        found = corrected_rate(
            [
                JudgedAnswer(case, bool(passed[case]), label=float(truth[case]) if labelled[case] else None)
                for case in range(300)
            ]
        )
        assert found is not None
        values.append(found.value)
    # the mean of all labels is below 0.4 here
    assert np.mean(values) == pytest.approx(0.7, abs=0.02)


def test_answers_to_one_case_are_no_independent_evidence() -> None:
    alone = [JudgedAnswer(case, case % 2 == 0, label=case % 2 if case < 40 else None) for case in range(100)]
    tenfold = [answer._replace(case=answer.case) for answer in alone for _ in range(10)]
    one, ten = corrected_rate(alone), corrected_rate(tenfold)
    assert one is not None
    assert ten is not None
    assert ten.value == pytest.approx(one.value)
    assert ten.interval.high - ten.interval.low == pytest.approx(one.interval.high - one.interval.low, rel=0.1)


def test_an_opinion_that_nobody_labelled_may_be_right_always_or_never() -> None:
    answers = [JudgedAnswer(case, case < 90, label=1.0 if case < 40 else None) for case in range(100)]
    found = corrected_rate(answers)
    assert found is not None
    assert found.value == pytest.approx(0.95)
    assert found.interval.low < 0.9
    assert found.interval.high == 1


def test_without_labels_or_cases_there_is_no_corrected_rate() -> None:
    assert corrected_rate([]) is None
    assert corrected_rate([JudgedAnswer(case, True) for case in range(10)]) is None
    assert corrected_rate([JudgedAnswer("one", True, label=1.0) for _ in range(10)]) is None


def test_labels_of_all_answers_give_about_what_the_labels_alone_do() -> None:
    found = corrected_rate([JudgedAnswer(case, case % 3 > 0, label=float(case % 5 > 0)) for case in range(100)])
    alone = wilson(80, 100)
    assert found is not None
    assert alone is not None
    assert found.value == 0.8
    assert found.interval == pytest.approx(alone, abs=0.01)


def test_a_paired_difference_is_narrower_than_one_of_strangers() -> None:
    def model(first: int) -> list[JudgedAnswer]:
        return [JudgedAnswer(first + case, case % 4 > 0, label=float(case % 5 > 0)) for case in range(100)]

    here, there = corrected_rate(model(0)), corrected_rate(model(1000))
    assert here is not None
    assert there is not None
    (low, high), (below, above) = corrected_difference(here, here), corrected_difference(here, there)
    assert high - low < 0.5 * (above - below)


@pytest.mark.parametrize(("judge", "least", "most"), [("0.80", 0.9, 1.0), ("lenient, strict", 0.0, 0.5)])
def test_a_judge_that_errs_differently_about_another_model_is_not_transferred(
    judge: str, least: float, most: float
) -> None:
    """Why labels of the same model decide wherever there are some."""
    first, second = drawn(Setting(200, (0.8, 0.6), judge, True), 60, np.random.default_rng(5))
    held = 0
    for repeat in range(60):
        found = transferred_rate(
            [each._replace(label=None) for each in answers(second, repeat)], answers(first, repeat)
        )
        held += found is not None and found.interval.low <= 0.6 <= found.interval.high
    assert least <= held / 60 <= most


def test_a_judge_who_cannot_tell_right_from_wrong_is_no_evidence() -> None:
    guessing = [JudgedAnswer(case, case % 2 == 0, label=float(case % 4 > 1)) for case in range(100)]
    found = transferred_rate([JudgedAnswer(case, case % 2 == 0) for case in range(50)], guessing)
    assert found is None or found.interval == (0.0, 1.0)


@pytest.mark.parametrize(("labels", "rate", "judge"), [(50, 0.3, "0.60"), (200, 0.8, "0.80")])
def test_a_gate_is_red_no_more_often_than_its_level_where_nothing_changed(labels: int, rate: float, judge: str) -> None:
    repeats = 600
    found = false_alarms(Setting(labels, (rate, rate), judge, True), repeats, seed=labels)
    # three standard errors above the level of one look
    assert found <= LOOK + 3 * (LOOK * (1 - LOOK) / repeats) ** 0.5
    assert found > 0
