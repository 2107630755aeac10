"""The report of a run that machines read, with the field names people's tools already know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from pathlib import PurePath
from typing import Any

import msgspec

from steelyard.analysis.attempt_texts import unjudged_attempts
from steelyard.analysis.scoring import is_graded
from steelyard.analysis.suites import SuiteScores, accuracy
from steelyard.analysis.summary import AttemptText, CaseSummary, ModelSummary, RunResults
from steelyard.records import Diagnostic, DiagnosticLevel, Fact, RunInfo, Verdict
from steelyard.reports.exports.streaming import StreamedList, StreamedObject, StreamedReport, indented_json, json_pieces
from steelyard.reports.figures import missing_reason, model_label, response_class
from steelyard.reports.tables import REPORT_FORMAT


@StreamedReport
def report(results: RunResults) -> Iterator[str]:
    """The whole run as one JSON object; a failure of ours is listed in `failures`, never among the results."""
    yield from json_pieces({"format": REPORT_FORMAT, **report_fields(results)}, indented_json, 2)
    yield "\n"


def report_fields(results: RunResults) -> dict[str, Any]:
    """The fields of a report; those that grow with the run are made when they are written."""
    info, summary = results.info, results.summary
    stems = [PurePath(file.path).stem for file in info.eval_sets]
    together = "+".join(dict.fromkeys(stems))
    return {
        "id": info.id,
        "created_at": info.started_at,
        "eval_set": {"id": together, "name": together, "case_count": len(results.cases)},
        "models_evaluated": [model_label(model.model, model.tier) for model in summary.models],
        "results": StreamedList(
            _result(info.id, tried, tried.verdict) for tried in results.attempts if tried.verdict is not None
        ),
        "failures": StreamedList(map(_failure, unjudged_attempts(results.attempts))),
        "aggregate": {
            "per_model": {model_label(model.model, model.tier): _per_model(model) for model in summary.models},
            "per_case": StreamedObject(_per_case(summary.cases)),
        },
        "duration_ms": _duration(info, results.attempts),
        "summary": msgspec.to_builtins(msgspec.structs.replace(summary, cases=()))
        | {"cases": StreamedList(summary.cases)},
    }


def _result(run: str, tried: AttemptText, verdict: Verdict) -> dict[str, Any]:
    found = verdict.found
    answer = tried.reply.answer if tried.reply else None
    linted = found.warnings is not None
    errors, others, lint = _by_kind(found.diagnostics, tried.case.language if linted else None)
    outcomes = [test.outcome for test in found.tests]
    asking = None if answer is None or answer.latency is None else _milliseconds(answer.latency)
    compiling, testing = _milliseconds(found.compile_seconds), _milliseconds(found.test_seconds)
    result: dict[str, Any] = {
        "case_id": tried.case.id,
        "model": model_label(tried.model, tried.tier),
        "provider": tried.model.partition("/")[0] if "/" in tried.model else "",
        "generated_code": found.code or "",
        "compilation": {
            "success": found.compiled,
            "errors": [_diagnostic(error) for error in errors],
            "warnings": [_diagnostic(other) for other in others],
            "duration_ms": compiling,
        },
        "test_execution": {
            "passed": outcomes.count("passed"),
            "failed": outcomes.count("failed"),
            "ignored": outcomes.count("ignored"),
            "duration_ms": testing,
            "failures": [
                # what was printed is known for the program as a whole, so only for a lone test
                {"name": test.name, "message": test.message, "stdout": found.output if len(found.tests) == 1 else ""}
                for test in found.tests
                if test.outcome == "failed"
            ],
        }
        if found.tests
        else None,
        "clippy": {"warnings": [_diagnostic(warning) for warning in lint], "warning_count": found.warnings}
        if linted
        else None,
        "timing": {
            "llm_request_ms": asking,
            "compilation_ms": compiling,
            "test_execution_ms": testing,
            "total_ms": None if asking is None else asking + compiling + testing,
        },
        "token_usage": {
            "prompt_tokens": answer.input_tokens if answer else None,
            "completion_tokens": answer.output_tokens if answer else None,
            "total_tokens": _total(answer.input_tokens, answer.output_tokens) if answer else None,
            "estimated_cost_usd": answer.cost.usd if answer and answer.cost else None,
        },
        "attempt": tried.number,
        "run_id": run,
        "score": tried.score,
        "correct": tried.correct,
        **({"graded": True} if is_graded(found) else {}),
        "failure": found.label,
        "reason": found.reason,
        "finish_reason": answer.finish if answer else None,
        "tampered": found.tampered,
        "rechecked": found.rechecked,
        "disagreed": found.disagreed,
        "flag": found.flag,
        "watched": found.watched,
        "controls": found.controls,
        "trust": found.trust,
        "isolation": found.isolation,
    }
    if tried.verdict is not None and tried.verdict.node:
        result["node"] = tried.verdict.node
    if tried.verdict is not None and tried.verdict.shared_from:
        result["shared_from"] = tried.verdict.shared_from
    if tried.reply and tried.reply.cached_from:
        result["cached_from"] = tried.reply.cached_from
    if tried.case.suite:
        result["suite"] = tried.case.suite
    primary = response_class(tried)
    if primary:
        result["classification"] = {"primary": primary, "details": found.evidence}
        result["scores"] = {"accuracy": accuracy(primary)}
    return result | {"tier": tried.tier} if tried.tier else result


def _failure(tried: AttemptText) -> dict[str, Any]:
    stage, message = missing_reason(tried)
    failure = {
        "case_id": tried.case.id,
        "model": model_label(tried.model, tried.tier),
        "attempt": tried.number,
        "stage": stage,
        "message": message,
    }
    return failure | {"tier": tried.tier} if tried.tier else failure


def _by_kind(
    diagnostics: Sequence[Diagnostic], linted: str | None
) -> tuple[list[Diagnostic], list[Diagnostic], list[Diagnostic]]:
    """Errors, warnings of a compiler, and those of a linter, where there was one for this language."""
    if not diagnostics:
        return [], [], []
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.level == DiagnosticLevel.ERROR]
    others = [diagnostic for diagnostic in diagnostics if diagnostic.level != DiagnosticLevel.ERROR]
    lint = [other for other in others if linted is not None and _is_lint(other, linted)]
    return errors, [other for other in others if other not in lint], lint


def _is_lint(diagnostic: Diagnostic, language: str) -> bool:
    # only a Rust compiler has warnings of its own beside the linter's
    return language != "rust" or (diagnostic.code or "").startswith("clippy::")


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    spans = [{field: getattr(span, field) for field in span.__struct_fields__} for span in diagnostic.spans]
    return {"level": diagnostic.level, "message": diagnostic.message, "code": diagnostic.code, "spans": spans}


def _per_model(model: ModelSummary) -> dict[str, Any]:
    return {
        "model": model_label(model.model, model.tier),
        "pass_at_k": {str(k): estimate.value for k, estimate in sorted(model.pass_at.items())},
        **({"mean_score": model.score.value, "decides": "mean score"} if model.on == "score" else {}),
        **({"levels": _levels(model)} if model.levels else {}),
        "avg_compilation_rate": model.per_attempt.compile_rate,
        "avg_test_pass_rate": model.per_attempt.test_pass_rate,
        "avg_clippy_score": model.per_attempt.lint,
        # 0 tokens mean that they were not counted
        "total_tokens": model.input_tokens + model.output_tokens or None,
        "total_cost_usd": model.cost_usd,
        "avg_latency_ms": None if model.latency.value is None else model.latency.value * 1000,
        **(_suites(model.suites) if model.suites else {}),
    }


def _suites(scores: SuiteScores) -> dict[str, Any]:
    """What the suites score, and all of them together."""
    return {
        "suites": {
            suite.suite: {
                "score": suite.score.value,
                "cases": suite.cases,
                "attempts": suite.attempts,
                "missing": suite.missing,
                "classes": suite.classes,
            }
            for suite in scores.suites
        },
        "overall_run_score": scores.overall.value,
    }


def _levels(model: ModelSummary) -> dict[str, Any]:
    """pass@k at each level of success."""
    return {
        level: {str(k): estimate.value for k, estimate in sorted(by_k.items())} for level, by_k in model.levels.items()
    }


def _per_case(cases: Iterable[CaseSummary]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, of_case in groupby(cases, key=attrgetter("case")):
        by_model = {model_label(case.model, case.tier): case for case in of_case}
        yield (
            name,
            {
                "case_id": name,
                "per_model_pass_rate": {
                    model: case.correct / case.attempts if case.attempts else None for model, case in by_model.items()
                },
                "per_model_pass_at_k": {
                    model: {str(k): value for k, value in sorted(case.pass_at.items())}
                    for model, case in by_model.items()
                },
                "per_model_avg_score": {model: case.score for model, case in by_model.items()},
            },
        )


def _duration(info: RunInfo, attempts: Iterable[AttemptText]) -> int:
    """How long the run took; while it has not ended, how long until the last fact was written."""
    start = _parsed_timestamp(info.started_at)
    if info.ended_at:
        return _milliseconds((_parsed_timestamp(info.ended_at) - start).total_seconds())
    facts: Iterator[Fact] = (fact for tried in attempts for fact in (tried.reply, tried.verdict, tried.failure) if fact)
    last = max((_parsed_timestamp(fact.at) for fact in facts), default=start)
    return max(0, _milliseconds((last - start).total_seconds()))


def _parsed_timestamp(text: str) -> datetime:
    # nine fractional digits are legal, and Python reads six
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _total(incoming: int | None, outgoing: int | None) -> int | None:
    return None if incoming is None or outgoing is None else incoming + outgoing
