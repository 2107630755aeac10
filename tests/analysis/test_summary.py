"""A summary counts what was judged, and says what is missing."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from steelyard import records
from steelyard.analysis.case_attempts import MAX_FLAGGED_ATTEMPTS
from steelyard.analysis.hard_cases import hardest_cases
from steelyard.analysis.summary import (
    CaseSummary,
    Flag,
    ModelSummary,
    Summary,
    VerificationCount,
    summarise,
)
from steelyard.errors import InputError
from steelyard.records import Answer, Case, Cost, Expectations, Fact, Failure, Finding, Reply, Rule, RunInfo, Verdict
from steelyard.reports.figures import metric_rows
from support.whole_results import run_results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RIGHT = Finding(code="x", compiled=True, tests=(records.Test(name="a", outcome="passed"),), warnings=0)
WRONG = Finding(code="x", compiled=True, tests=(records.Test(name="a", outcome="failed"),), warnings=2, reason="got 4")
BROKEN = Finding(code="x", compiled=False, label="does not compile")
NO_CODE = Finding(label="no code")


def case(name: str, tests: str = "assert True") -> Case:
    """A case with tests."""
    return Case(id=name, prompt=f"Do {name}.", language="python", expectations=Expectations(test_file=tests))


A, B, C = case("a"), case("b"), case("c")


def info(**fields: Any) -> RunInfo:
    """A run of as many samples as the facts show."""
    return RunInfo(**{"id": "run", "started_at": "2024-01-01T00:00:00Z", **fields})


def reply(of: Case, number: int = 1, model: str = "m", tier: str = "", key: str = "", **answer: Any) -> Reply:
    """What the model said."""
    return Reply(
        key=key or f"{of.id}/{model}/{tier}/{number}",
        at="",
        case=of.id,
        model=model,
        tier=tier,
        number=number,
        asked="",
        answer=Answer(**{"text": "answer", **answer}),
    )


def verdict(of: Case, found: Finding, number: int = 1, model: str = "m", tier: str = "", ask: str = "") -> Verdict:
    """What the verifier found, by the tests the case has."""
    return Verdict(
        key="",
        at="",
        case=of.id,
        model=model,
        tier=tier,
        number=number,
        ask=ask or f"{of.id}/{model}/{tier}/{number}",
        tests=of.tests_digest,
        verifier="test",
        found=found,
    )


def failure(
    of: Case, stage: records.FailureStage, message: str = "HTTP 503", number: int = 1, model: str = "m", key: str = ""
) -> Failure:
    """What broke."""
    return Failure(
        key=key or f"{of.id}/{model}//{number}",
        at="",
        case=of.id,
        model=model,
        number=number,
        stage=stage,
        message=message,
    )


def attempt(of: Case, found: Finding, number: int = 1, model: str = "m", tier: str = "", **answer: Any) -> list[Fact]:
    """A reply with its verdict."""
    return [reply(of, number, model, tier, **answer), verdict(of, found, number, model, tier)]


def attempts(of: Case, *findings: Finding, model: str = "m", **answer: Any) -> list[Fact]:
    """Several replies with their verdicts."""
    return [
        fact for number, found in enumerate(findings, 1) for fact in attempt(of, found, number, model, "", **answer)
    ]


def only(summary: Summary) -> ModelSummary:
    """The one model of a run."""
    (model,) = summary.models
    return model


def row(summary: Summary, name: str, model: str = "m") -> CaseSummary:
    """One case of one model."""
    (found,) = [entry for entry in summary.cases if (entry.case, entry.model) == (name, model)]
    return found


def test_a_judged_attempt_is_counted_and_scored() -> None:
    summary = summarise(info(k=(1, 2, 3)), [A, B], attempts(A, RIGHT, WRONG) + attempts(B, RIGHT, RIGHT))
    model = only(summary)
    assert (model.cases, model.attempts, model.correct, model.solved, model.missing) == (2, 4, 3, 2, 0)
    assert model.pass_at[1].value == 0.75
    assert model.pass_at[2].value == 1.0
    assert (model.pass_at[2].cases, model.pass_at[2].attempts) == (2, 4)
    assert model.pass_at[3] == msgspec.structs.replace(model.pass_at[3], value=None, low=None, high=None, cases=0)
    assert model.score.value == pytest.approx(0.87)
    assert model.score.low is not None
    assert model.score.high is not None
    assert model.score.low < 0.87 < model.score.high
    assert row(summary, "a").pass_at == {1: 0.5, 2: 1.0, 3: None}
    assert summary.rule == "code"
    assert summary.conclusive


def test_pass_at_k_rests_only_on_cases_with_enough_attempts() -> None:
    model = only(summarise(info(k=(2,)), [A, B], attempts(A, WRONG, WRONG) + attempts(B, RIGHT)))
    assert model.pass_at[2].value == 0.0
    assert (model.pass_at[2].cases, model.pass_at[2].attempts) == (1, 2)
    assert model.pass_at[2].low is None


def test_another_k_and_another_rule_need_no_new_facts() -> None:
    facts = attempts(A, WRONG)
    summary = summarise(info(k=(1,)), [A], facts, k=(5, 1), rule="code-structured")
    assert list(only(summary).pass_at) == [1, 5]
    assert summary.rule == "code-structured"
    assert row(summary, "a").score == pytest.approx(0.30 + 0.15 + 0.08)
    with pytest.raises(InputError, match="unknown rule"):
        summarise(info(rule="nonsense"), [A], facts)


def test_the_last_verdict_wins() -> None:
    model = only(summarise(info(), [A], [*attempt(A, WRONG), verdict(A, RIGHT)]))
    assert (model.attempts, model.correct) == (1, 1)


def test_a_verdict_by_tests_the_case_no_longer_has_is_ignored() -> None:
    now = case("a", tests="assert 1 + 1 == 2")
    summary = summarise(info(), [now], attempt(A, RIGHT))
    assert (only(summary).attempts, only(summary).missing) == (0, 1)
    assert row(summary, "a").why == "no verdict yet"
    (tried,) = run_results(info(), [now], attempt(A, RIGHT)).attempts
    assert tried.reply is not None
    assert (tried.verdict, tried.correct, tried.score) == (None, None, None)


def test_a_later_verdict_by_other_tests_does_not_hide_one_by_these() -> None:
    other = case("a", tests="assert False")
    model = only(summarise(info(), [A], [*attempt(A, RIGHT), verdict(other, WRONG)]))
    assert (model.attempts, model.correct) == (1, 1)


def test_the_last_reply_counts_and_a_verdict_on_an_older_one_does_not() -> None:
    facts: list[Fact] = [*attempt(A, RIGHT), reply(A, key="asked anew")]
    assert only(summarise(info(), [A], facts)).missing == 1
    facts += [verdict(A, WRONG, ask="asked anew"), verdict(A, RIGHT)]
    model = only(summarise(info(), [A], facts))
    assert (model.attempts, model.correct, model.missing) == (1, 0, 0)


def test_a_verdict_that_stands_before_its_reply_still_counts() -> None:
    assert only(summarise(info(), [A], attempt(A, RIGHT)[::-1])).correct == 1


@pytest.mark.parametrize("stage", ["ask", "verify"])
def test_a_provider_outage_is_missing_data_not_a_wrong_answer(stage: records.FailureStage) -> None:
    facts: list[Fact] = [failure(A, stage), *attempts(B, RIGHT)]
    summary = summarise(info(), [A, B], facts)
    model = only(summary)
    assert (model.cases, model.attempts, model.correct, model.missing) == (2, 1, 1, 1)
    assert model.unscored == ("a",)
    assert model.pass_at[1].value == 1.0
    assert row(summary, "a").why == "HTTP 503"
    assert not summary.conclusive


def test_a_failure_that_was_cured_is_forgotten() -> None:
    asked, said, judged = failure(A, "ask"), *attempt(A, RIGHT)
    for facts in (
        [asked, said, judged],
        [said, failure(A, "verify"), judged],
        [asked, said, failure(A, "verify"), judged],
    ):
        (tried,) = run_results(info(), [A], facts).attempts
        assert tried.failure is None
        assert tried.correct


def test_a_reply_cures_whatever_failed_to_be_asked_before_it() -> None:
    earlier = failure(A, "ask", key="asked in other words")
    assert only(summarise(info(), [A], [earlier, *attempt(A, RIGHT)])).attempts == 1
    (tried,) = run_results(info(), [A], [earlier, reply(A)]).attempts
    assert (tried.failure, tried.correct) == (None, None)


def test_a_verdict_by_other_tests_cures_the_failure_to_verify_and_nothing_more() -> None:
    facts = [reply(A), failure(A, "verify"), verdict(case("a", tests="assert False"), RIGHT)]
    (tried,) = run_results(info(), [A], facts).attempts
    assert (tried.failure, tried.verdict) == (None, None)


def test_a_failure_that_was_not_cured_stands_beside_the_reply() -> None:
    (tried,) = run_results(info(), [A], [reply(A), failure(A, "verify", "no sandbox")]).attempts
    assert tried.reply is not None
    assert tried.failure is not None
    assert tried.failure.message == "no sandbox"
    assert tried.correct is None


def test_a_verdict_outlives_a_later_failure_to_verify_the_same_again() -> None:
    found = run_results(info(), [A], [*attempt(A, RIGHT), failure(A, "verify")])
    assert (only(found.summary).attempts, only(found.summary).missing) == (1, 0)
    assert found.attempts[0].failure is None


def test_an_older_answer_does_not_pass_for_one_to_a_question_that_failed_to_be_asked() -> None:
    facts = [*attempt(A, RIGHT), failure(A, "ask", key="asked anew")]
    assert only(summarise(info(), [A], facts)).missing == 1
    assert only(summarise(info(), [A], [*attempt(A, RIGHT), failure(A, "ask")])).missing == 0


def test_attempts_at_other_cases_are_ignored() -> None:
    assert only(summarise(info(), [A], attempts(A, RIGHT) + attempts(B, WRONG))).attempts == 1
    nothing = summarise(info(), [A], attempts(B, RIGHT))
    assert (nothing.models, nothing.cases, nothing.conclusive) == ((), (), False)


def test_planned_attempts_without_a_trace_are_missing() -> None:
    summary = summarise(info(samples=3), [A, B], attempts(A, RIGHT) + attempts(B, RIGHT, RIGHT, RIGHT))
    assert only(summary).missing == 2
    assert row(summary, "a").missing == 2
    assert row(summary, "b").missing == 0
    assert any("2 of 6 attempts are missing, most often: 2x not asked yet" in text for text in summary.warnings)


def test_a_case_that_only_other_models_saw_is_unscored() -> None:
    facts = attempts(A, RIGHT, model="m") + attempts(A, RIGHT, model="n") + attempts(B, RIGHT, model="n")
    summary = summarise(info(samples=1), [A, B], facts)
    first, second = summary.models
    assert (first.cases, first.unscored, first.missing) == (1, ("b",), 1)
    assert (second.cases, second.unscored, second.missing) == (2, (), 0)
    assert not summary.conclusive


def test_cases_that_were_never_recorded_are_left_out() -> None:
    summary = summarise(info(unrecorded={"m": 1}), [A, B], attempts(A, RIGHT))
    assert only(summary).unscored == ()
    assert [entry.case for entry in summary.cases] == ["a"]
    assert summary.conclusive


def test_one_unscored_case_in_twenty_is_bearable_and_more_is_not() -> None:
    cases = [case(f"c{number:02}") for number in range(20)]
    facts: list[Fact] = [fact for each in cases[1:] for fact in attempts(each, RIGHT)]
    assert summarise(info(), cases, [*facts, failure(cases[0], "ask")]).conclusive
    assert not summarise(info(), cases[:19], [*facts, failure(cases[0], "ask")]).conclusive


def test_a_run_in_which_everything_broke_is_not_conclusive() -> None:
    summary = summarise(info(), [A], [failure(A, "ask", number=number) for number in (1, 2)])
    assert not summary.conclusive
    assert row(summary, "a").why == "2x HTTP 503"
    assert row(summary, "a").score is None
    assert only(summary).score.value is None


def test_rates_are_means_over_cases() -> None:
    facts = attempts(A, RIGHT, BROKEN) + attempts(B, WRONG, WRONG, NO_CODE, RIGHT)
    model = only(summarise(info(), [A, B], facts))
    assert model.compile_rate.value == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert model.test_pass_rate.value == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert model.lint.value == pytest.approx((1 + (0.8 + 0.8 + 1) / 3) / 2)
    assert (model.compile_rate.attempts, model.lint.attempts) == (6, 4)


def test_rates_per_attempt_count_every_attempt_alike() -> None:
    many, one = case("many"), case("one")
    found = only(summarise(info(), [many, one], attempts(many, RIGHT, RIGHT, RIGHT) + attempts(one, BROKEN)))
    assert (found.compile_rate.value, found.per_attempt.compile_rate) == (0.5, 0.75)
    assert only(summarise(info(), [one], attempts(one, Finding(passed=True)))).per_attempt.compile_rate is None


def test_where_nothing_is_compiled_there_is_no_compile_rate() -> None:
    question = Case(id="q", prompt="Capital?", target="Paris")
    model = only(summarise(info(), [question], attempts(question, Finding(passed=True), Finding(passed=False))))
    assert (model.compile_rate.value, model.test_pass_rate.value, model.lint.value) == (None, None, None)
    assert model.compile_rate.cases == 0
    assert model.score.value == 0.5


def test_tokens_cost_and_latency_add_up() -> None:
    price = Cost(usd=0.1, source="list")
    facts = attempts(A, *[RIGHT] * 10, cost=price, input_tokens=7, output_tokens=3, latency=2.0)
    model = only(summarise(info(), [A], [*facts, reply(A, 11, cost=price, finish="length", text="  ")]))
    assert (model.input_tokens, model.output_tokens) == (70, 30)
    assert model.cost_usd == 1.1
    assert model.cost_of_pass.value == pytest.approx(0.1)
    # of the eleventh nobody knows it
    assert model.latency.value == 2.0
    assert (model.latency.cases, model.latency.attempts) == (1, 10)
    assert (model.latency_p50, model.latency_p95) == (2.0, 2.0)
    assert (model.truncated, model.empty, model.unpriced) == (1, 1, 0)


def test_an_unknown_price_is_not_free() -> None:
    facts = attempt(A, RIGHT, cost=Cost(usd=0.5, source="list")) + attempt(A, RIGHT, 2)
    summary = summarise(info(), [A], facts)
    model = only(summary)
    assert (model.cost_usd, model.unpriced, model.cost_of_pass.value) == (0.5, 1, None)
    assert not model.cost_of_pass.infinite
    assert "m: the price of 1 of 2 replies is unknown, so the cost is incomplete" in summary.warnings
    unpriced = summarise(info(), [A], attempts(A, RIGHT, RIGHT))
    assert (only(unpriced).cost_usd, only(unpriced).unpriced, unpriced.warnings) == (None, 2, ())


PRICE = Cost(usd=0.5, source="list")


def test_where_nothing_passed_a_pass_costs_at_least_so_much() -> None:
    model = only(summarise(info(), [A], attempts(A, *[WRONG] * 10, cost=PRICE)))
    price = model.cost_of_pass
    assert (model.cost_usd, price.value, price.infinite, price.high) == (5.0, None, True, None)
    assert price.low == pytest.approx(1.9315045910, abs=1e-10)


def test_the_cost_of_a_pass_is_the_cost_of_the_judged_attempts_over_the_passes() -> None:
    facts = attempts(A, RIGHT, WRONG, cost=PRICE) + attempts(B, RIGHT, RIGHT, cost=PRICE) + [reply(C, cost=PRICE)]
    model = only(summarise(info(), [A, B, C], facts))
    # the reply that could not be judged was paid for, but says nothing about the price of a pass
    assert model.cost_usd == 2.5
    assert model.cost_of_pass.value == pytest.approx(2 / 3)
    assert (model.cost_of_pass.cases, model.cost_of_pass.attempts) == (2, 4)
    assert model.cost_of_pass.low is not None
    assert model.cost_of_pass.low < 2 / 3


def test_latency_has_percentiles_over_replies_and_an_interval_over_cases() -> None:
    facts = [reply(case(f"c{place}"), latency=float(place)) for place in range(21)]
    model = only(summarise(info(), [case(f"c{place}") for place in range(21)], facts))
    assert (model.latency.value, model.latency_p50, model.latency_p95) == (10.0, 10.0, 19.0)
    assert model.latency.low is not None
    assert model.latency.high is not None
    assert 6 < model.latency.low < 8 < 12 < model.latency.high < 14


def test_a_case_has_its_own_rate_score_and_flake_rate() -> None:
    summary = summarise(info(k=(1, 2)), [A, B], attempts(A, *[RIGHT] * 8, WRONG, WRONG) + attempts(B, RIGHT))
    of_a, of_b = row(summary, "a"), row(summary, "b")
    assert of_a.flake_rate == pytest.approx(16 / 45)
    assert (of_a.rate.low, of_a.rate.high) == pytest.approx((0.4901624715, 0.9433178485), abs=1e-10)
    assert of_a.rate.attempts == 10
    assert of_a.score == pytest.approx(0.896)
    assert (of_b.flake_rate, of_b.pass_at[2]) == (None, None)
    assert only(summary).flaky == 1


def test_pass_hat_k_is_told_beside_pass_at_k() -> None:
    model = only(summarise(info(k=(2,)), [A], attempts(A, RIGHT, RIGHT, WRONG, WRONG, WRONG)))
    assert model.pass_at[2].value == pytest.approx(0.7)
    assert model.pass_hat[2].value == pytest.approx(0.1)


def test_cases_of_one_group_count_as_one_for_the_interval() -> None:
    alone = [case(f"c{place}") for place in range(20)]
    grouped = [msgspec.structs.replace(each, group=f"g{place % 4}") for place, each in enumerate(alone)]
    findings = [RIGHT if place % 4 < 2 else WRONG for place in range(20)]

    def estimate(cases: Sequence[Case]) -> Any:
        facts = [fact for each, found in zip(cases, findings, strict=True) for fact in attempts(each, found, found)]
        return only(summarise(info(), cases, facts)).pass_at[1]

    apart, together = estimate(alone), estimate(grouped)
    assert apart.value == together.value == 0.5
    assert together.low < apart.low < 0.5 < apart.high < together.high


def test_cost_and_latency_have_the_group_as_their_unit_too() -> None:
    alone = [case(f"c{place:02}") for place in range(20)]
    grouped = [msgspec.structs.replace(each, group=f"g{place % 4}") for place, each in enumerate(alone)]

    def model(cases: Sequence[Case]) -> ModelSummary:
        facts: list[Fact] = []
        for place, each in enumerate(cases):
            found = (RIGHT, RIGHT, WRONG) if place % 4 < 2 else (RIGHT, WRONG, WRONG)
            facts += attempts(each, *found, cost=PRICE, latency=1.0 + place % 4)
        return only(summarise(info(), cases, facts))

    apart, together = model(alone), model(grouped)
    for one, other in ((apart.cost_of_pass, together.cost_of_pass), (apart.latency, together.latency)):
        assert (one.value, one.cases, one.attempts) == (other.value, other.cases, other.attempts)
        assert one.low is not None
        assert one.high is not None
        assert other.low is not None
        assert other.low < one.low
        assert other.high is None or one.high < other.high
    alike = model([msgspec.structs.replace(each, group="all") for each in alone])
    assert (alike.cost_of_pass.low, alike.latency.low, alike.pass_at[1].low) == (None, None, None)


def test_groups_of_unequal_size_count_by_their_cases_in_the_mean_latency() -> None:
    cases = [
        msgspec.structs.replace(case(f"c{place}"), group="big" if place < 5 else f"g{place}") for place in range(8)
    ]
    model = only(summarise(info(), cases, [reply(each, latency=1.0 if each.group == "big" else 9.0) for each in cases]))
    # of four draws three are of the large group in one of twenty, and none is in one of three
    assert (model.latency.value, model.latency.low, model.latency.high) == (4.0, (3 * 5 + 9) / 16, 9.0)


def test_a_score_that_a_missing_fact_forbids_is_told_as_missing() -> None:
    unlinted = msgspec.structs.replace(RIGHT, warnings=None)
    rust = msgspec.structs.replace(A, language="rust")
    summary = summarise(info(), [rust, B], attempts(rust, unlinted, RIGHT) + attempts(B, WRONG, WRONG))
    model = only(summary)
    assert (model.score.cases, model.score.attempts, model.attempts) == (2, 3, 4)
    assert "m: 1 of 4 attempts have no score under rule code, because these facts are unknown: lint" in summary.warnings


def test_a_rule_of_the_eval_sets_own_scores_its_runs() -> None:
    run = info(rule="mine", rules=(Rule(name="mine", correct=1),))
    assert only(summarise(run, [A], attempts(A, WRONG))).score.value == 0.0
    assert only(summarise(run, [A], attempts(A, WRONG), rule="code")).score.value == pytest.approx(0.48)
    with pytest.raises(InputError, match="known: code, code-structured, mine"):
        summarise(run, [A], [], rule="minx")


def test_the_most_frequent_reason_is_given_with_its_count() -> None:
    other = msgspec.structs.replace(WRONG, reason="got 3")
    assert row(summarise(info(), [A], attempts(A, WRONG, other, WRONG)), "a").why == "2x got 4"
    assert row(summarise(info(), [A], attempts(A, WRONG, other, RIGHT)), "a").why == "got 3"
    assert row(summarise(info(), [A], attempts(A, BROKEN)), "a").why == "does not compile"
    assert row(summarise(info(), [A], attempts(A, RIGHT)), "a").why == ""


def test_a_long_reason_is_cut_to_one_short_line() -> None:
    long = msgspec.structs.replace(WRONG, reason="line\n" * 500)
    why = row(summarise(info(), [A], attempts(A, long)), "a").why
    assert len(why) == 200
    assert "\n" not in why


def test_one_attempt_per_case_is_warned_about_once() -> None:
    facts = attempts(A, RIGHT, model="m") + attempts(A, RIGHT, model="n")
    alone = "one attempt per case says nothing about how often a model succeeds: use --samples"
    assert summarise(info(), [A], facts).warnings == (alone,)
    facts += attempt(A, RIGHT, 2, model="n")
    assert summarise(info(), [A], facts).warnings == (f"m: {alone}",)


@pytest.mark.parametrize(
    ("parameters", "warned"), [({"temperature": 0}, True), ({"temperature": 0.7}, False), ({}, False)]
)
def test_temperature_zero_with_several_samples_is_warned_about(parameters: dict[str, float], warned: bool) -> None:
    summary = summarise(info(parameters=parameters), [A], attempts(A, RIGHT, RIGHT))
    assert any("temperature 0" in text for text in summary.warnings) is warned


def test_replies_cut_off_are_warned_about_above_two_percent() -> None:
    for replies, warned in ((50, False), (49, True)):
        facts = attempts(A, *[RIGHT] * (replies - 1)) + attempt(A, WRONG, replies, finish="length")
        text = f"m: 1 of {replies} replies were cut off at the token limit: "
        limited = summarise(info(parameters={"max_tokens": 9}), [A], facts).warnings
        assert (f"{text}raise --max-tokens" in limited) is warned
        unlimited = summarise(info(), [A], facts).warnings
        assert (f"{text}it is the server's own, set --max-tokens for all models" in unlimited) is warned


def test_unscored_cases_are_named_up_to_five() -> None:
    cases = [case(f"c{number}") for number in range(8)]
    facts: list[Fact] = [failure(each, "ask") for each in cases[1:]]
    facts += attempts(cases[0], RIGHT, RIGHT)
    warnings = summarise(info(), cases, facts).warnings
    assert warnings == (
        "m: 7 of 8 cases have no judged attempt: c1, c2, c3, c4, c5 and 2 more",
        "m: 7 of 9 attempts are missing, most often: 7x HTTP 503",
    )


def test_tiers_are_told_apart() -> None:
    facts = attempt(A, RIGHT, tier="t1") + attempt(A, WRONG, tier="t0")
    summary = summarise(info(), [A], facts)
    assert [(model.tier, model.correct) for model in summary.models] == [("t0", 0), ("t1", 1)]


def test_cases_keep_their_order_and_models_are_sorted() -> None:
    facts = [fact for model in ("z", "m") for each in (A, B, C) for fact in attempts(each, RIGHT, model=model)]
    found = run_results(info(), [C, A, B], facts)
    order = [(name, model) for name in ("c", "a", "b") for model in ("m", "z")]
    assert [(entry.case, entry.model) for entry in found.summary.cases] == order
    assert [(tried.case.id, tried.model) for tried in found.attempts] == order
    assert [model.model for model in found.summary.models] == ["m", "z"]


def test_what_was_never_asked_stands_in_its_place_too() -> None:
    summary = summarise(info(), [A, B], [failure(B, "ask", model="m"), failure(A, "ask", model="z")])
    assert [(model.model, model.unscored) for model in summary.models] == [("m", ("a", "b")), ("z", ("a", "b"))]
    assert [(entry.case, entry.model) for entry in summary.cases] == [("a", "m"), ("a", "z"), ("b", "m"), ("b", "z")]


def shuffled(groups: Sequence[list[Fact]], seed: int) -> list[Fact]:
    """All facts in another order, those of one attempt in theirs."""
    chance = random.Random(seed)
    queues = [list(group) for group in groups]
    facts = []
    while queues:
        queue = chance.choice(queues)
        facts.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    return facts


def test_the_order_of_independent_attempts_changes_no_byte() -> None:
    chance = random.Random(3)
    groups: list[list[Fact]] = [
        attempt(
            each,
            chance.choice([RIGHT, WRONG, BROKEN, NO_CODE]),
            number,
            model,
            cost=Cost(usd=chance.random(), source="list"),
            latency=chance.random(),
        )
        for model in ("m", "n")
        for each in (A, B, C)
        for number in range(1, 8)
    ]
    groups.append([failure(A, "ask", number=9), failure(A, "ask", "HTTP 500", number=9)])
    printed = {msgspec.json.encode(summarise(info(), [A, B, C], shuffled(groups, seed))) for seed in range(10)}
    assert len(printed) == 1


def test_both_ways_to_a_summary_agree() -> None:
    facts = attempts(A, RIGHT, WRONG) + attempts(B, NO_CODE) + [failure(C, "ask", "x" * 500)]
    run = info(samples=2, k=(1, 2))
    assert run_results(run, [A, B, C], facts).summary == summarise(run, [A, B, C], facts)


def test_facts_are_read_once_and_their_texts_are_not_kept() -> None:
    held = 0

    class Text(str):
        """A text that says when it is gone."""

        __slots__ = ()

        def __del__(self) -> None:
            nonlocal held
            held -= 1

    most = 0

    def stream() -> Iterator[Fact]:
        nonlocal held, most
        for number in range(1, 101):
            held += 1
            yield reply(A, number, text=Text("long"))
            held += 1
            yield verdict(A, msgspec.structs.replace(FORGED, code=Text("long")), number)
            most = max(most, held)

    assert only(summarise(info(), [A], stream())).attempts == 100
    assert most <= 4


FORGED = msgspec.structs.replace(RIGHT, tampered="patched unittest", isolation="full", trust="in-process")


def test_a_forged_attempt_counts_as_failed_and_is_listed_with_its_evidence() -> None:
    facts = attempts(A, RIGHT, RIGHT, FORGED) + attempts(B, FORGED, model="n")
    summary = summarise(info(), [A, B], facts)
    cheat, other = summary.models
    assert (cheat.attempts, cheat.correct, cheat.tampered) == (3, 2, 1)
    assert cheat.tampered_attempts == (Flag(case="a", number=3, reason="patched unittest"),)
    assert cheat.test_pass_rate.value == pytest.approx(2 / 3)
    assert other.tampered_attempts == (Flag(case="b", number=1, reason="patched unittest"),)
    assert row(summary, "a").why == "tampered: patched unittest"


def test_an_honest_run_lists_nobody() -> None:
    model = only(summarise(info(), [A], attempts(A, RIGHT, WRONG)))
    assert (model.tampered, model.tampered_attempts, model.disagreed, model.disagreed_attempts) == (0, (), 0, ())


def test_an_attempt_that_came_out_otherwise_again_is_listed_with_how_often() -> None:
    steady = msgspec.structs.replace(RIGHT, rechecked=3)
    flaky = msgspec.structs.replace(RIGHT, rechecked=3, disagreed=2)
    slow = Finding(code="x", compiled=True, label="time limit", rechecked=3, disagreed=1)
    model = only(summarise(info(), [A, B], attempts(A, WRONG, steady, flaky) + attempts(B, slow)))
    assert (model.rechecked, model.disagreed) == (3, 2)
    assert model.disagreed_attempts == (
        Flag(case="a", number=3, reason="passed at first, then failed 2 of 3 times"),
        Flag(case="b", number=1, reason="failed at first, then passed 1 of 3 times"),
    )


def test_of_very_many_forgeries_the_first_are_named_and_all_are_counted() -> None:
    model = only(summarise(info(), [A], attempts(A, *[FORGED] * (MAX_FLAGGED_ATTEMPTS + 5))))
    assert model.tampered == MAX_FLAGGED_ATTEMPTS + 5
    assert [doubt.number for doubt in model.tampered_attempts] == list(range(1, MAX_FLAGGED_ATTEMPTS + 1))


def test_long_evidence_is_cut_to_one_short_line() -> None:
    long = msgspec.structs.replace(FORGED, tampered="line\n" * 10_000)
    (doubt,) = only(summarise(info(), [A], attempts(A, long))).tampered_attempts
    assert len(doubt.reason) <= 200
    assert "\n" not in doubt.reason


def test_the_summary_tells_how_many_verdicts_were_reached_in_which_way() -> None:
    isolated = msgspec.structs.replace(RIGHT, isolation="full", trust="isolated")
    model = only(summarise(info(), [A], attempts(A, isolated, FORGED, isolated, Finding(passed=True))))
    assert model.verified == (
        VerificationCount(trust="in-process", isolation="full", attempts=1),
        VerificationCount(trust="isolated", isolation="full", attempts=2, correct=2),
    )


def test_the_hardest_cases_come_first() -> None:
    facts = (
        attempts(A, RIGHT, WRONG)
        + attempts(B, WRONG, WRONG)
        + attempts(C, RIGHT, RIGHT)
        + attempts(case("d"), WRONG)
        + [failure(case("e"), "ask")]
    )
    summary = summarise(info(), [A, B, C, case("d"), case("e")], facts)
    assert [entry.case for entry in hardest_cases(summary)] == ["b", "d", "a"]
    assert [entry.case for entry in hardest_cases(summary, limit=1)] == ["b"]


def test_cases_fail_over_all_models_and_the_best_model_stands_beside_them() -> None:
    facts = attempts(A, WRONG, WRONG, model="weak") + attempts(A, RIGHT, RIGHT, model="strong")
    facts += attempts(B, WRONG, WRONG, model="weak") + attempts(B, WRONG, RIGHT, model="strong")
    facts += attempts(C, RIGHT, WRONG, model="weak") + attempts(C, WRONG, RIGHT, model="strong")
    found = hardest_cases(summarise(info(), [A, B, C], facts))
    shown = [(hard.case, hard.correct, hard.attempts, hard.best.model, hard.best.correct) for hard in found]
    assert shown == [("b", 1, 4, "strong", 1), ("c", 2, 4, "strong", 1), ("a", 2, 4, "strong", 2)]
    failed = [(hard.failed.model, hard.failed.first_wrong) for hard in found]
    assert failed == [("strong", 1), ("strong", 1), ("weak", 1)]


def test_a_model_that_was_never_answered_is_missing_not_absent() -> None:
    found = summarise(
        info(samples=2, names=("m", "silent")), [A, B], attempts(A, RIGHT, RIGHT) + attempts(B, RIGHT, RIGHT)
    )
    heard, silent = found.models
    assert (heard.model, heard.attempts, heard.missing) == ("m", 4, 0)
    assert (silent.model, silent.attempts, silent.missing, silent.unscored) == ("silent", 0, 4, ("a", "b"))
    assert not found.conclusive


def test_every_level_of_success_has_its_own_pass_at_k() -> None:
    plain = Case(id="tf", prompt="Repair it.", verify=records.Verify(kind="terraform"))
    fixed = Finding(code="x", passed=True, levels={"plausible": True, "fixed": True})
    plausible = Finding(code="x", passed=True, levels={"plausible": True, "fixed": False})
    neither = Finding(code="x", passed=False, levels={"plausible": False, "fixed": False})
    untold = Finding(code="x", passed=True, levels={"plausible": True})
    other = Case(id="other", prompt="Write it.", verify=records.Verify(kind="terraform"))
    facts = [*attempts(plain, fixed, plausible, neither), *attempts(other, untold, untold)]
    model = only(summarise(info(k=(1, 2)), [plain, other], facts))
    assert list(model.levels) == ["plausible", "fixed"]
    assert model.levels["plausible"] == model.pass_at
    # of the case that tells nothing of it, nothing is said
    assert model.levels["fixed"][1].value == pytest.approx(1 / 3)
    assert model.levels["fixed"][1].cases == 1
    assert model.levels["fixed"][2].value == pytest.approx(2 / 3)
    shown = {figure.name: figure.cells for figure in metric_rows([model])}
    assert "plausible pass@1" not in shown
    assert shown["fixed pass@1*"][0].startswith("33.3%")
    assert only(summarise(info(), [A], attempts(A, RIGHT))).levels == {}
