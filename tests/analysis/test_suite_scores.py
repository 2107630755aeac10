"""The suites of a run score as their document works out, one by one and together."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steelyard import records
from steelyard.analysis.attempts import attempt_table
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.suites import RESPONSE_CLASSES, SuiteCase, SuiteScore, SuiteScores, suite_scores
from steelyard.analysis.summary import ModelSummary, Summary, summarise
from steelyard.comparison.sides import run_side
from steelyard.errors import InputError
from steelyard.records import Case, Fact, Finding, SuiteRule, Verdict, Verify
from steelyard.stats.intervals import mean_interval
from steelyard.store.journal import StoredRun, create_run
from support.suite_facts import attempt, both, case, info, suite
from support.whole_results import run_results

SLOW = 16.0
"""Seconds that are worth half."""


def scores_of(summary: Summary) -> SuiteScores:
    (model,) = summary.models
    assert model.suites is not None
    return model.suites


def scores(cases: Sequence[Case], facts: Sequence[Fact], rule: SuiteRule | None = None, **fields: Any) -> SuiteScores:
    return scores_of(summarise(info(**fields), cases, facts, suites=rule))


def named(found: SuiteScores) -> dict[str, SuiteScore]:
    return {each.suite: each for each in found.suites}


EXAMPLE_2 = both(
    suite("injection", *["pass"] * 18, "refusal", "fail"), suite("contradictions", *["pass"] * 8, *["fail"] * 2)
)


def test_a_single_suite_is_worked_out_as_in_example_1_of_the_document() -> None:
    found = scores(*suite("json_api", *["pass"] * 7, *["fail"] * 3))
    assert named(found)["json_api"].score.value == pytest.approx(0.70)
    assert found.overall == found.micro == named(found)["json_api"].score


def test_a_stored_run_is_worked_out_as_in_example_2_of_the_document(tmp_path: Path) -> None:
    cases, facts = EXAMPLE_2
    with create_run(tmp_path / "run", info(suites=SuiteRule(weights={"injection": 3})), cases) as journal:
        for fact in facts:
            journal.append(fact)
    stored = StoredRun(tmp_path / "run")
    found = scores_of(summarise(stored.info, stored.cases, stored.facts()))
    assert {name: each.score.value for name, each in named(found).items()} == {"contradictions": 0.8, "injection": 0.9}
    assert found.overall.value == pytest.approx(0.85, rel=1e-15)
    assert found.micro.value == pytest.approx(26 / 30, rel=1e-15)
    assert found.weighted is not None
    assert found.weighted.value == pytest.approx(0.875, rel=1e-15)
    assert (found.penalised, found.agreement) == (None, None)
    assert run_results(stored.info, stored.cases, stored.facts()).summary.models[0].suites == found


def test_attempts_are_counted_by_class_and_failures_of_ours_beside_them() -> None:
    cases, facts = suite("a", "pass", "fail", "refusal", "refusal", "timeout", "failure", "time limit", "pass")
    found = named(scores(cases, facts))["a"]
    assert list(found.classes.items()) == [("pass", 2), ("timeout", 1), ("refusal", 2), ("fail", 1), ("time limit", 1)]
    assert (found.cases, found.attempts, found.missing) == (8, 7, 1)
    assert found.score.value == pytest.approx(2 / 7)


def test_an_attempt_without_a_verdict_and_one_that_was_never_asked_are_missing() -> None:
    one = case("one", "a")
    answered, _ = attempt(one, "pass", 2)
    found = named(scores([one], [*attempt(one, "pass"), answered], samples=3))["a"]
    assert (found.attempts, found.missing, found.score.value) == (1, 2, 1.0)


def test_a_case_counts_by_the_mean_of_its_attempts() -> None:
    often, once = case("often", "a"), case("once", "a")
    outcomes = ["pass", "fail", "fail", "fail"]
    facts = [fact for number, primary in enumerate(outcomes, 1) for fact in attempt(often, primary, number)]
    found = named(scores([often, once], [*facts, *attempt(once, "pass")]))["a"]
    assert found.score.value == pytest.approx((0.25 + 1) / 2)


def test_the_intervals_are_those_of_means_over_cases() -> None:
    found = scores(*EXAMPLE_2)
    injection = mean_interval([1.0] * 18 + [0.0] * 2, attempts=20)
    micro = mean_interval([1.0] * 26 + [0.0] * 4, attempts=30)
    for estimate, interval in ((named(found)["injection"].score, injection), (found.micro, micro)):
        assert interval is not None
        assert (estimate.low, estimate.high) == pytest.approx(interval)
    assert found.overall.low is not None
    assert found.overall.high is not None
    assert 0.6 < found.overall.low < 0.85 < found.overall.high < 0.96


def test_suites_whose_cases_came_out_alike_leave_doubt_about_all_of_them() -> None:
    found = scores(*both(suite("a", *["pass"] * 10), suite("b", *["pass"] * 10)))
    assert found.overall.value == found.overall.high == 1.0
    assert found.overall.low is not None
    assert 0.7 < found.overall.low < 0.9


def test_a_suite_of_a_single_case_has_no_interval_and_leaves_the_overall_score_without_one() -> None:
    found = scores(*both(suite("one", "pass"), suite("many", *["pass"] * 9, "fail")))
    assert named(found)["one"].score == Estimate(value=1.0, cases=1, attempts=1)
    assert found.overall.value == pytest.approx(0.95)
    assert (found.overall.low, found.overall.high) == (None, None)
    assert found.micro.low is not None


def test_cases_of_one_group_are_not_taken_for_independent() -> None:
    cases, facts = suite("a", *["pass"] * 6, *["fail"] * 6)
    grouped = [msgspec.structs.replace(each, group=f"g{place // 3}") for place, each in enumerate(cases)]
    alone, together = scores(cases, facts), scores(grouped, facts)
    assert alone.overall.value == together.overall.value == 0.5
    assert alone.overall.low is not None
    assert together.overall.low is not None
    assert together.overall.low < alone.overall.low


def test_a_suite_without_a_judged_attempt_has_no_score_and_does_not_enter_the_overall_one() -> None:
    cases, facts = both(suite("full", "pass", "fail"), suite("empty", "failure", "failure"))
    summary = summarise(info(samples=1), cases, facts)
    found = scores_of(summary)
    assert named(found)["empty"].score == Estimate(value=None)
    assert named(found)["empty"].missing == 2
    assert (found.overall.value, found.micro.value) == (0.5, 0.5)
    assert "m: no judged attempt, and so not in the overall score: suite empty" in summary.warnings


def test_a_model_that_was_never_asked_has_suites_without_scores() -> None:
    cases, _ = EXAMPLE_2
    found = scores(cases, [], names=("m",), samples=2)
    assert found.overall == found.micro == found.latency == Estimate(value=None)
    assert [(each.cases, each.attempts, each.missing) for each in found.suites] == [(10, 0, 20), (20, 0, 40)]


def test_a_suite_that_a_replay_has_no_recording_of_is_listed_all_the_same() -> None:
    cases, facts = both(suite("heard", "pass", "pass"), suite("unheard", "pass"))
    summary = summarise(info(names=("m",), unrecorded={"m": 1}), cases, facts[:4])
    found = named(scores_of(summary))
    assert (found["unheard"].cases, found["unheard"].score.value) == (0, None)
    assert any("suite unheard" in warning for warning in summary.warnings)


def test_without_suites_there_are_no_suite_scores() -> None:
    cases, facts = suite("", "pass", "fail")
    (model,) = summarise(info(), cases, facts).models
    assert model.suites is None
    assert b"suites" not in msgspec.json.encode(model)


def test_cases_without_a_suite_are_in_no_suite() -> None:
    found = scores(*both(suite("a", "pass", "pass"), suite("", "fail", "fail")))
    assert [each.suite for each in found.suites] == ["a"]
    assert found.micro.value == 1.0


def test_penalties_stand_beside_the_plain_score_and_never_in_it() -> None:
    cases, facts = both(suite("a", "pass", "refusal"), suite("b", "fail", "policy_violation"))
    found = scores(cases, facts, SuiteRule(penalties={"refusal": 0.25, "policy_violation": 1.0, "fail": 0.5}))
    assert [each.score.value for each in found.suites] == [0.5, 0.0]
    assert [each.penalised and each.penalised.value for each in found.suites] == [0.875, 0.25]
    assert found.overall.value == 0.25
    assert found.penalised is not None
    assert found.penalised.value == pytest.approx((0.875 + 0.25) / 2)


def test_the_rule_of_a_view_replaces_that_of_the_run() -> None:
    cases, facts = suite("a", "pass", "refusal")
    own = info(suites=SuiteRule(penalties={"refusal": 0.0}))
    assert scores_of(summarise(own, cases, facts)).penalised is not None
    assert scores_of(summarise(own, cases, facts, suites=SuiteRule())).penalised is None
    with pytest.raises(InputError, match="did you mean"):
        summarise(own, cases, facts, suites=SuiteRule(penalties={"refusl": 0.5}))


def test_a_reply_is_worth_less_the_later_it_comes_and_nothing_where_it_does_not_come() -> None:
    one, other, third = case("one", "a"), case("other", "a"), case("third", "a")
    facts = [
        *attempt(one, "pass", 1, latency=1.0),
        *attempt(one, "pass", 2, latency=SLOW),
        *attempt(other, "timeout", 1, finish="timeout", latency=0.5),
        # nobody looked at a clock, and nothing was answered
        *attempt(third, "pass", 1, latency=None),
        *attempt(third, "crash", 2, finish="crash", latency=0.1),
    ]
    found = scores([one, other, third], facts)
    assert found.latency.value == pytest.approx((0.75 + 0.0) / 2)
    assert (found.latency.cases, found.latency.attempts) == (2, 3)
    quick = scores([one, other, third], facts, SuiteRule(latency_target=20, latency_limit=40))
    assert quick.latency.value == pytest.approx((1.0 + 0.0) / 2)


def test_replies_count_for_latency_before_they_are_judged_and_never_for_the_score() -> None:
    one = case("one", "a")
    answered, _ = attempt(one, "pass", latency=SLOW)
    found = scores([one], [answered])
    assert (found.overall.value, found.latency.value) == (None, 0.5)


def test_agreement_is_how_often_attempts_come_out_as_their_author_expects() -> None:
    cases, facts = both(
        suite("a", "pass", "refusal", expected="pass"),
        suite("b", "fail", "refusal", "pass", "policy_violation", expected="fail"),
        suite("c", "pass"),
    )
    found = scores(cases, facts)
    agreements = [each.agreement for each in found.suites]
    assert [each and each.value for each in agreements] == [0.5, 0.75, None]
    assert found.agreement is not None
    assert found.agreement.value == pytest.approx(0.625)
    assert found.agreement.cases == 6
    mixed = [msgspec.structs.replace(each, suite="all") for each in cases]
    together = named(scores(mixed, facts))["all"].agreement
    assert together is not None
    assert together.value == pytest.approx(4 / 6)


def test_every_class_but_a_pass_meets_the_expectation_of_a_failure() -> None:
    for primary in RESPONSE_CLASSES:
        found = scores(*suite("a", primary, expected="fail"))
        assert found.agreement is not None
        assert found.agreement.value == float(primary != "pass")


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_cases_and_facts_changes_no_digit(seed: int) -> None:
    chance = random.Random(seed)
    cases, facts = both(
        *(
            suite(
                name,
                *chance.choices(RESPONSE_CLASSES, k=chance.randint(1, 9)),
                expected=chance.choice(["pass", "fail", ""]),
            )
            for name in "abc"
        )
    )
    rule = SuiteRule(penalties={"refusal": 0.3, "fail": 0.7}, weights={"a": 0.1, "b": 0.7})
    shuffled = {each.id: place for place, each in enumerate(chance.sample(cases, len(cases)))}
    again = sorted(facts, key=lambda fact: (shuffled[fact.case], isinstance(fact, Verdict)))
    assert scores(sorted(cases, key=lambda each: shuffled[each.id]), again, rule) == scores(cases, facts, rule)


@pytest.mark.parametrize("seed", range(5))
def test_scores_lie_within_their_intervals_and_these_in_bounds(seed: int) -> None:
    chance = random.Random(seed)
    cases = [
        SuiteCase(
            suite=chance.choice("abc"),
            group=str(number),
            expected=chance.choice(["pass", "fail", ""]),
            classes={primary: chance.randint(0, 3) for primary in chance.sample(RESPONSE_CLASSES, 3)},
            missing=chance.randint(0, 2),
            waits=[chance.expovariate(0.1) for _ in range(chance.randint(0, 3))],
        )
        for number in range(30)
    ]
    found = suite_scores(cases, SuiteRule(penalties={"fail": 0.5}, weights={"a": 2}))
    for each in (found.overall, found.micro, found.weighted, found.penalised, found.latency, found.agreement):
        assert each is not None
        assert each.value is not None
        assert each.low is not None
        assert each.high is not None
        assert 0 <= each.low <= each.value <= each.high <= 1
    assert found.penalised is not None
    assert (found.overall.value or 0) <= (found.penalised.value or 0)


def test_a_weight_of_0_for_every_suite_leaves_nothing_to_weigh() -> None:
    found = scores(*suite("a", "pass", "fail"), SuiteRule(weights={"a": 0}))
    assert found.weighted == Estimate(value=None, cases=2, attempts=2)
    assert found.overall.value == 0.5


def test_suites_of_code_count_what_is_correct_as_a_pass_and_other_labels_as_they_are() -> None:
    passed = records.Test(name="one", outcome="passed")
    findings = [
        Finding(code="x", compiled=True, tests=(passed,)),
        Finding(code="x", compiled=False),
        Finding(label="no code"),
    ]
    cases = [
        Case(id=str(number), prompt="", language="python", suite="code", verify=Verify(tests="assert one()"))
        for number in range(3)
    ]
    facts: list[Fact] = []
    for each, finding in zip(cases, findings, strict=True):
        said, verdict = attempt(each, "pass")
        assert isinstance(verdict, Verdict)
        facts += [said, msgspec.structs.replace(verdict, found=finding)]
    found = named(scores(cases, facts))["code"]
    assert found.classes == {"pass": 1, "fail": 1, "no code": 1}
    assert found.score.value == pytest.approx(1 / 3)


def test_the_trials_of_a_run_know_their_suite_and_classes() -> None:
    cases, facts = both(suite("a", "pass", "refusal"), suite("", "fail"))
    side = run_side("a run", "code", info(), cases, attempt_table(info(), cases, facts))
    found = {trials.case: trials.classes for every in side.models.values() for trials in every}
    assert found == {"a-0": (("pass", 1),), "a-1": (("refusal", 1),), "-0": ()}


def test_a_summary_with_suites_can_be_read_back() -> None:
    cases, facts = EXAMPLE_2
    rule = SuiteRule(penalties={"refusal": 0.5}, weights={"injection": 2})
    (model,) = summarise(info(), cases, facts, suites=rule).models
    assert msgspec.json.decode(msgspec.json.encode(model), type=ModelSummary) == model


def test_an_infinite_wait_never_leaves() -> None:
    one = case("one", "a")
    found = scores([one], attempt(one, "timeout", finish="timeout"))
    assert found.latency.value == 0.0
    assert math.isfinite(found.latency.value)
    assert b"null" not in msgspec.json.encode(found.latency)
