"""The report that machines read."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Annotated, Any

import msgspec
import pytest

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.summary import RunResults, Summary
from steelyard.reports.exports import forgetest
from steelyard.reports.json import report
from steelyard.text import INVISIBLE_CHARACTER_PATTERN

STRONG, WEAK = "openai/gpt-5", "evil/<b>=m`1|"


@pytest.fixture
def written(results: RunResults) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(report(results), parse_constant=pytest.fail)
    return whole


def test_the_fields_are_those_people_have(written: dict[str, Any]) -> None:
    assert list(written) == [
        *(
            "format",
            "id",
            "created_at",
            "eval_set",
            "models_evaluated",
            "results",
            "failures",
            "aggregate",
            "duration_ms",
        ),
        "summary",
    ]
    assert written["eval_set"] == {"id": "basic+hard", "name": "basic+hard", "case_count": 3}
    assert written["models_evaluated"] == [STRONG, WEAK]
    assert list(written["results"][0]) == [
        *("case_id", "model", "provider", "generated_code", "compilation", "test_execution", "clippy", "timing"),
        *("token_usage", "attempt", "run_id", "score", "correct", "failure", "reason", "finish_reason", "tampered"),
        *("rechecked", "disagreed", "flag", "watched", "controls", "trust", "isolation"),
    ]
    assert list(written["aggregate"]["per_model"][STRONG]) == [
        *("model", "pass_at_k", "avg_compilation_rate", "avg_test_pass_rate", "avg_clippy_score", "total_tokens"),
        *("total_cost_usd", "avg_latency_ms"),
    ]
    assert list(written["aggregate"]["per_case"]["add"]) == [
        *("case_id", "per_model_pass_rate", "per_model_pass_at_k", "per_model_avg_score"),
    ]


def test_models_join_and_providers_are_what_stands_before_the_first_slash(written: dict[str, Any]) -> None:
    assert {result["model"] for result in written["results"]} == set(written["aggregate"]["per_model"])
    assert {result["provider"] for result in written["results"]} == {"openai", "evil"}


def test_a_failure_of_ours_is_not_a_result(written: dict[str, Any]) -> None:
    assert len(written["results"]) == 9
    assert [(failure["case_id"], failure["model"], failure["attempt"]) for failure in written["failures"]] == [
        ("borrow", STRONG, 2),
        ("borrow", WEAK, 1),
        ("borrow", WEAK, 2),
    ]
    assert written["failures"][2]["stage"] == "verify"


def test_an_attempt_that_nobody_made_yet_is_missing_too(results: RunResults) -> None:
    waiting = results.attempts[0]._replace(reply=None, verdict=None, correct=None, score=None)
    written = json.loads(report(results._replace(attempts=(waiting,))))
    assert written["failures"][0]["message"] == "not asked yet"


def test_diagnostics_of_the_linter_stand_apart_from_those_of_the_compiler(written: dict[str, Any]) -> None:
    bad = written["results"][4]
    assert [error["code"] for error in bad["compilation"]["errors"]] == ["E0308"]
    assert [warning["code"] for warning in bad["compilation"]["warnings"]] == ["unused_variables"]
    assert [warning["code"] for warning in bad["clippy"]["warnings"]] == ["clippy::needless_return"]
    assert bad["clippy"]["warning_count"] == 1
    assert bad["compilation"]["errors"][0]["spans"][0]["column_end"] == 9


def test_tests_are_counted_by_outcome(written: dict[str, Any], hostile: str) -> None:
    tests = written["results"][4]["test_execution"]
    assert (tests["passed"], tests["failed"], tests["ignored"]) == (1, 1, 1)
    assert tests["failures"] == [{"name": hostile, "message": hostile, "stdout": ""}]
    assert written["results"][3]["test_execution"] is None


def test_what_is_unknown_is_null(written: dict[str, Any]) -> None:
    assert written["results"][2]["token_usage"]["estimated_cost_usd"] is None
    assert written["aggregate"]["per_model"][WEAK]["total_cost_usd"] is None
    assert written["aggregate"]["per_case"]["borrow"]["per_model_pass_rate"][WEAK] is None


def test_infinity_never_appears(results: RunResults) -> None:
    endless = msgspec.structs.replace(results.summary.models[0], score=Estimate(value=float("inf")))
    summary = msgspec.structs.replace(results.summary, models=(endless,))
    written = json.loads(report(results._replace(summary=summary)), parse_constant=pytest.fail)
    assert written["summary"]["models"][0]["score"]["value"] is None


def test_the_summary_can_be_read_back(results: RunResults, written: dict[str, Any]) -> None:
    assert msgspec.convert(written["summary"], Summary, strict=False) == results.summary


def test_a_forgery_comes_with_its_evidence(written: dict[str, Any], hostile: str) -> None:
    forged = [result for result in written["results"] if result["tampered"]]
    assert [(result["case_id"], result["attempt"], result["tampered"]) for result in forged] == [
        ("=HYPERLINK(1)", 2, hostile)
    ]
    assert written["summary"]["models"][1]["tampered_attempts"][1]["number"] == 7


def test_the_code_survives_and_no_terminal_obeys_it(results: RunResults, written: dict[str, Any], hostile: str) -> None:
    assert written["results"][4]["generated_code"] == hostile
    assert INVISIBLE_CHARACTER_PATTERN.search(report(results)) is None


def test_the_duration_is_that_of_the_run_or_up_to_its_last_fact(results: RunResults, written: dict[str, Any]) -> None:
    assert written["duration_ms"] == 90500
    going = msgspec.structs.replace(results.info, ended_at=None, started_at="2026-02-03T04:05:00Z")
    assert json.loads(report(results._replace(info=going)))["duration_ms"] == 6123


def test_tiers_are_kept_apart(results: RunResults) -> None:
    tried = results.attempts[0]._replace(tier="T1")
    model = msgspec.structs.replace(results.summary.models[0], tier="T1")
    summary = msgspec.structs.replace(results.summary, models=(results.summary.models[0], model))
    written = json.loads(report(results._replace(attempts=(tried,), summary=summary)))
    assert list(written["aggregate"]["per_model"]) == ["openai/gpt-5", "openai/gpt-5 (T1)"]
    assert (written["results"][0]["model"], written["results"][0]["tier"]) == ("openai/gpt-5 (T1)", "T1")


def test_the_same_results_give_the_same_bytes(results: RunResults) -> None:
    assert report(results) == report(results)


class ForgetestUsage(msgspec.Struct):
    """What forgetest's own records hold, after its `results.rs`."""

    prompt_tokens: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    completion_tokens: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    total_tokens: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    estimated_cost_usd: float


class ForgetestCompilation(msgspec.Struct):
    success: bool
    errors: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    duration_ms: int


class ForgetestResult(msgspec.Struct):
    case_id: str
    model: str
    provider: str
    generated_code: str
    compilation: ForgetestCompilation
    test_execution: dict[str, Any] | None
    clippy: dict[str, Any] | None
    timing: dict[str, int]
    token_usage: ForgetestUsage
    attempt: int
    run_id: uuid.UUID


class ForgetestModel(msgspec.Struct):
    model: str
    pass_at_k: dict[str, float]
    avg_compilation_rate: float
    avg_test_pass_rate: float
    avg_clippy_score: float
    total_tokens: int
    total_cost_usd: float
    avg_latency_ms: int


class ForgetestAggregate(msgspec.Struct):
    per_model: dict[str, ForgetestModel]
    per_case: dict[str, dict[str, Any]]


class ForgetestReport(msgspec.Struct):
    id: uuid.UUID
    created_at: datetime
    eval_set: dict[str, Any]
    models_evaluated: list[str]
    results: list[ForgetestResult]
    aggregate: ForgetestAggregate
    duration_ms: int


def test_forgetest_can_read_the_report_that_is_written_for_it(results: RunResults, written: dict[str, Any]) -> None:
    theirs = msgspec.json.decode(forgetest.report(results), type=ForgetestReport)
    assert len(theirs.results) == len(written["results"])
    assert {result.run_id for result in theirs.results} == {theirs.id}
    assert all(
        rate is not None for case in theirs.aggregate.per_case.values() for rate in case["per_model_pass_rate"].values()
    )
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(report(results), type=ForgetestReport)
