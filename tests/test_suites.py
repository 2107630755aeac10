"""Suites of responses score as their document works out."""

from __future__ import annotations

import math

import pytest

from steelyard.suites import (
    accuracy,
    case_accuracy,
    credit,
    latency_score,
    mean_latency_score,
    micro_rate,
    overall,
    suite_score,
)

FAILURES = ["fail", "error", "refusal", "wrong_format", "policy_violation", "crash", "timeout"]


def cases(passed: int, failed: int) -> list[float]:
    return [float(accuracy(primary)) for primary in ["pass"] * passed + ["fail"] * failed]


@pytest.mark.parametrize("primary", [*FAILURES, "", "Pass", "PASS", "pass "])
def test_anything_but_a_pass_is_a_failure(primary: str) -> None:
    assert accuracy("pass") == 1
    assert accuracy(primary) == 0


def test_a_single_suite_is_worked_out_as_in_example_1() -> None:
    assert suite_score(cases(7, 3)) == 0.70


def test_the_overall_score_is_worked_out_as_in_example_2() -> None:
    suites = {"injection": cases(18, 2), "contradictions": cases(8, 2)}
    scores = {name: suite_score(accuracies) for name, accuracies in suites.items()}
    assert scores == {"injection": 0.90, "contradictions": 0.80}
    assert overall(scores) == pytest.approx(0.85, rel=1e-15)
    assert micro_rate(suites.values()) == pytest.approx(26 / 30, rel=1e-15)


def test_what_broke_stays_in_the_denominator_of_imported_results() -> None:
    assert case_accuracy(["pass", "error", "crash", "timeout"]) == 0.25


def test_several_attempts_at_a_case_count_by_their_mean() -> None:
    assert case_accuracy(["pass", "pass", "refusal", "fail"]) == 0.5
    assert case_accuracy([]) is None


def test_an_empty_suite_has_no_score_and_does_not_enter_the_overall_mean() -> None:
    assert suite_score([]) is None
    assert overall({"full": 0.5, "empty": None}) == 0.5
    assert overall({"empty": None}) is None
    assert overall({}) is None
    assert micro_rate([[], []]) is None
    assert micro_rate([[], [1.0, 0.0]]) == 0.5


def test_a_failure_may_cost_less_than_all() -> None:
    penalties = {"refusal": 0.3, "wrong_format": 0.0, "policy_violation": 1.0}
    found = [credit(primary, penalties) for primary in ("pass", "refusal", "wrong_format", "policy_violation", "fail")]
    assert found == [1.0, 0.7, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("primary", ["pass", *FAILURES])
def test_without_penalties_credit_is_accuracy(primary: str) -> None:
    assert credit(primary, {}) == accuracy(primary)
    assert case_accuracy([primary], penalties={}) == case_accuracy([primary]) == accuracy(primary)


@pytest.mark.parametrize("penalties", [{"refusal": 1.5}, {"refusal": -0.1}, {"refusal": math.nan}, {"pass": 0.5}])
def test_a_penalty_that_is_none_is_refused(penalties: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="penalty"):
        credit("fail", penalties)


def test_suites_can_be_weighed() -> None:
    scores = {"injection": 0.9, "contradictions": 0.8, "empty": None}
    assert overall(scores, weights={"injection": 3, "contradictions": 1, "empty": 100}) == pytest.approx(0.875)
    assert overall(scores, weights={"injection": 3}) == pytest.approx(0.875)
    assert overall(scores, weights={"injection": 0}) == pytest.approx(0.8)
    assert overall({"injection": 0.9}, weights={"injection": 0}) is None


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_below_zero_or_without_end_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        overall({"injection": 0.9}, weights={"injection": weight})


@pytest.mark.parametrize("value", [-0.5, 1.5, math.nan, math.inf])
def test_a_score_outside_the_unit_interval_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        suite_score([value])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        overall({"suite": value})
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        micro_rate([[1.0, value]])


@pytest.mark.parametrize(
    ("seconds", "score"),
    [(0.0, 1.0), (2.0, 1.0), (9.0, 0.75), (16.0, 0.5), (23.0, 0.25), (30.0, 0.0), (31.0, 0.0), (math.inf, 0.0)],
)
def test_latency_falls_in_a_straight_line_from_target_to_limit(seconds: float, score: float) -> None:
    assert latency_score(seconds) == score


def test_target_and_limit_of_latency_can_be_set() -> None:
    assert latency_score(3, target=1, limit=5) == 0.5
    assert mean_latency_score([0.5, 3, 9], target=1, limit=5) == 0.5


def test_latency_of_no_attempt_is_unknown() -> None:
    assert mean_latency_score([]) is None


@pytest.mark.parametrize(
    ("seconds", "target", "limit"),
    [(-1, 2, 30), (math.nan, 2, 30), (1, 30, 30), (1, 30, 2), (1, -1, 30), (1, 2, math.inf), (1, math.nan, 30)],
)
def test_impossible_latencies_are_refused(seconds: float, target: float, limit: float) -> None:
    with pytest.raises(ValueError, match=r"limit|seconds"):
        latency_score(seconds, target=target, limit=limit)
