"""Suites of responses score as their document works out."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from steelyard.analysis.suites import (
    LATENCY_LIMIT_SECONDS,
    LATENCY_TARGET_SECONDS,
    RESPONSE_CLASSES,
    SuiteCase,
    SuiteScores,
    accuracy,
    case_mean,
    check_suite_rule,
    classify_response,
    credit,
    latency_score,
    mean_latency_score,
    ordered_class_counts,
    overall,
    suite_scores,
)
from steelyard.errors import InputError
from steelyard.records import SuiteRule
from steelyard.verifiers.response.verifier import RESPONSE_CLASS_ORDER

FAILURES = ["fail", "error", "refusal", "wrong_format", "policy_violation", "crash", "timeout"]


def cases(suite: str, passed: int, failed: int) -> list[SuiteCase]:
    """Cases with one attempt each."""
    classes = ["pass"] * passed + ["fail"] * failed
    return [SuiteCase(suite, f"{suite} {place}", "", {each: 1}, 0, ()) for place, each in enumerate(classes)]


def scored(*of: list[SuiteCase], names: tuple[str, ...] = ()) -> SuiteScores:
    return suite_scores([case for each in of for case in each], SuiteRule(), names=names)


@pytest.mark.parametrize("primary", [*FAILURES, "", "Pass", "PASS", "pass "])
def test_anything_but_a_pass_is_a_failure(primary: str) -> None:
    assert accuracy("pass") == 1
    assert accuracy(primary) == 0


def test_a_single_suite_is_worked_out_as_in_example_1() -> None:
    (suite,) = scored(cases("injection", 7, 3)).suites
    assert suite.score.value == 0.70


def test_the_overall_score_is_worked_out_as_in_example_2() -> None:
    found = scored(cases("injection", 18, 2), cases("contradictions", 8, 2))
    assert {suite.suite: suite.score.value for suite in found.suites} == {"injection": 0.90, "contradictions": 0.80}
    assert found.overall.value == pytest.approx(0.85, rel=1e-15)
    assert found.micro.value == pytest.approx(26 / 30, rel=1e-15)


def test_what_broke_stays_in_the_denominator_of_imported_results() -> None:
    assert case_mean(Counter(["pass", "error", "crash", "timeout"]), accuracy) == 0.25


def test_several_attempts_at_a_case_count_by_their_mean() -> None:
    assert case_mean({"pass": 2, "refusal": 1, "fail": 1}, accuracy) == 0.5
    assert case_mean({}, accuracy) is None


def test_an_empty_suite_has_no_score_and_does_not_enter_the_overall_mean() -> None:
    assert overall({"full": 0.5, "empty": None}) == 0.5
    assert overall({"empty": None}) is None
    assert overall({}) is None
    empty, full = scored(names=("empty",)), scored(cases("full", 1, 1), names=("empty",))
    assert [suite.score.value for suite in (*empty.suites, *full.suites)] == [None, None, 0.5]
    assert (empty.micro.value, empty.overall.value) == (None, None)
    assert (full.micro.value, full.overall.value) == (0.5, 0.5)


def test_a_failure_may_cost_less_than_all() -> None:
    penalties = {"refusal": 0.3, "wrong_format": 0.0, "policy_violation": 1.0}
    found = [credit(primary, penalties) for primary in ("pass", "refusal", "wrong_format", "policy_violation", "fail")]
    assert found == [1.0, 0.7, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("primary", ["pass", *FAILURES])
def test_without_penalties_credit_is_accuracy(primary: str) -> None:
    assert credit(primary, {}) == accuracy(primary)
    assert (
        case_mean({primary: 1}, lambda each: credit(each, {})) == case_mean({primary: 1}, accuracy) == accuracy(primary)
    )


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
        overall({"suite": value})


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
    assert mean_latency_score([], target=1, limit=5) is None


@pytest.mark.parametrize(
    ("seconds", "target", "limit"),
    [(-1, 2, 30), (math.nan, 2, 30), (1, 30, 30), (1, 30, 2), (1, -1, 30), (1, 2, math.inf), (1, math.nan, 30)],
)
def test_impossible_latencies_are_refused(seconds: float, target: float, limit: float) -> None:
    with pytest.raises(ValueError, match=r"limit|seconds"):
        latency_score(seconds, target=target, limit=limit)


def test_classes_are_those_of_the_verifier_with_a_pass_first_and_the_others_as_they_are_decided() -> None:
    assert ("pass", *(name for name in RESPONSE_CLASS_ORDER if name != "pass")) == RESPONSE_CLASSES


def test_counts_stand_in_one_order_whatever_the_order_of_attempts() -> None:
    counts = {"time limit": 1, "fail": 2, "no code": 3, "refusal": 4, "pass": 5, "timeout": 6, "crash": 0}
    expected = ["pass", "timeout", "refusal", "fail", "no code", "time limit"]
    assert list(ordered_class_counts(counts)) == list(ordered_class_counts(dict(reversed(counts.items())))) == expected


def test_only_a_correct_attempt_is_a_pass_whatever_its_label() -> None:
    assert [classify_response(True, "fail"), classify_response(False, "pass"), classify_response(False, "")] == [
        "pass",
        "fail",
        "fail",
    ]


def test_without_a_word_from_the_user_the_rule_is_that_of_the_formulas() -> None:
    assert (SuiteRule().latency_target, SuiteRule().latency_limit) == (LATENCY_TARGET_SECONDS, LATENCY_LIMIT_SECONDS)
    check_suite_rule(SuiteRule(), suites=())
    check_suite_rule(
        SuiteRule(penalties=dict.fromkeys(RESPONSE_CLASSES[1:], 0.0), weights={"a": 0.0}, latency_target=0),
        suites=["a"],
    )


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (SuiteRule(penalties={"refusl": 0.5}), 'unknown class "refusl" .*did you mean "refusal"'),
        (SuiteRule(penalties={"pass": 0.5}), 'unknown class "pass"'),
        (SuiteRule(penalties={"refusal": 1.5}), "refusal must cost from 0, nothing, to 1"),
        (SuiteRule(penalties={"refusal": -0.1}), "not -0.1"),
        (SuiteRule(penalties={"refusal": math.nan}), "not nan"),
        (SuiteRule(weights={"injecton": 2}), 'no suite "injecton" .*did you mean "injection"'),
        (SuiteRule(weights={"injection": -1}), "must weigh 0 or more, not -1"),
        (SuiteRule(weights={"injection": math.inf}), "not inf"),
        (SuiteRule(latency_target=30), "not 30 s with a limit of 30 s"),
        (SuiteRule(latency_target=-1), "target"),
        (SuiteRule(latency_limit=math.nan), "limit"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused_in_one_sentence(rule: SuiteRule, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        check_suite_rule(rule, suites=["injection", "json_api"])
    assert "\n" not in str(refused.value)
