"""Test cases with scores: test runs of DeepEval, records of Every Eval Ever, and exports of Braintrust and Langfuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import Problem
from steelyard.outcomes.files import UnreadableOutcomesError, bare_file_name
from steelyard.outcomes.readers.sources import beginning, first_object, json_document, json_lines, number, text, whole
from steelyard.protocols import ForeignFile
from steelyard.records import Answer, Cost, RecordedAttempt, digest

MAX_CASE_NAME_CHARACTERS = 120


class _Metric(msgspec.Struct):
    name: str = ""
    success: bool | None = None
    score: Any = None
    reason: str | None = None
    error: str | None = None


class _DeepEvalCase(msgspec.Struct):
    name: str = ""
    input: Any = None
    actualOutput: Any = None  # noqa: N815  as DeepEval spells it
    expectedOutput: Any = None  # noqa: N815
    success: bool | None = None
    metricsData: list[_Metric] | None = None  # noqa: N815
    tokenCost: Any = None  # noqa: N815
    completionTime: Any = None  # noqa: N815


class _TestRun(msgspec.Struct):
    testCases: list[_DeepEvalCase] = []  # noqa: N815
    hyperparameters: dict[str, Any] | None = None


class _LatestTestRun(msgspec.Struct):
    testRunData: _TestRun | None = None  # noqa: N815
    testCases: list[_DeepEvalCase] = []  # noqa: N815
    hyperparameters: dict[str, Any] | None = None


class DeepEvalReader:
    """Reads `test_run_*.json` and `.latest_test_run.json` of DeepEval."""

    def recognises(self, file: ForeignFile) -> bool:
        keys = (b'"testCases"', b'"metricsData"')
        return file.beginning.startswith(b"{") and all(key in file.beginning for key in keys)

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        found = json_document(path, _LatestTestRun, "a test run of DeepEval")
        run = found.testRunData or found
        model = text((run.hyperparameters or {}).get("model")) or bare_file_name(path)
        for case in run.testCases:
            yield _deepeval_attempt(case, model)


def _deepeval_attempt(case: _DeepEvalCase, model: str) -> RecordedAttempt:
    metrics = case.metricsData or []
    errors = [metric.error for metric in metrics if metric.error]
    scores = [score for metric in metrics if (score := number(metric.score)) is not None]
    failure = errors[0] if errors else "" if case.success is not None else "no outcome"
    usd = number(case.tokenCost)
    failed = [metric.reason or metric.name for metric in metrics if metric.success is False]
    return RecordedAttempt(
        case=case.name or content_name(case.input),
        model=model,
        judged_by=f"deepeval {', '.join(sorted(metric.name for metric in metrics))}",
        tool="deepeval",
        passed=None if failure else case.success,
        score=sum(scores) / len(scores) if scores and not failure else None,
        scores=_named_metrics(metrics) if not failure else {},
        # a metric that is not all or nothing passes by its threshold
        graded=any(0 < score < 1 for score in scores),
        answer=Answer(
            text=text(case.actualOutput),
            cost=None if usd is None else Cost(usd=usd, source="deepeval"),
            latency=number(case.completionTime),
        ),
        prompt=text(case.input),
        target=text(case.expectedOutput),
        reason=failed[0] if failed and not failure else "",
        levels={metric.name: bool(metric.success) for metric in metrics} if len(metrics) > 1 and not failure else {},
        failure=failure,
    )


def _named_metrics(metrics: list[_Metric]) -> dict[str, float]:
    """Each metric by name; their mean decides, which has the first name."""
    found = {metric.name: score for metric in metrics if (score := number(metric.score)) is not None}
    return {"mean": sum(found.values()) / len(found)} | found if len(found) > 1 else {}


def content_name(value: Any) -> str:
    """A name for a case without one: its shortened question, so that equal questions are one case."""
    name = " ".join(text(value).split())
    return (
        name if 0 < len(name) <= MAX_CASE_NAME_CHARACTERS else f"{name[:MAX_CASE_NAME_CHARACTERS]} {digest(name)[:8]}"
    )


class _InstanceInput(msgspec.Struct):
    raw: str = ""
    reference: list[str] | str | None = None


class _InstanceOutput(msgspec.Struct):
    raw: list[str] | str | None = None


class _InstanceEvaluation(msgspec.Struct):
    score: Any = None
    is_correct: bool | None = None


class _InstanceTokens(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    input_tokens_cache_read: Any = None
    reasoning_tokens: Any = None


class _InstancePerformance(msgspec.Struct):
    latency_ms: Any = None


class _Instance(msgspec.Struct):
    model_id: str
    evaluation_name: str
    sample_id: str
    evaluation: _InstanceEvaluation
    schema_version: str = ""
    evaluation_result_id: str | None = None
    sample_hash: str | None = None
    input: _InstanceInput = msgspec.field(default_factory=_InstanceInput)
    output: _InstanceOutput | None = None
    token_usage: _InstanceTokens | None = None
    performance: _InstancePerformance | None = None
    error: str | None = None


class _DetailedResults(msgspec.Struct):
    file_path: str = ""


class _AggregateRecord(msgspec.Struct):
    detailed_evaluation_results: _DetailedResults | None = None


class EveryEvalEverReader:
    """Reads records of Every Eval Ever, schema 0.3: the instances, found also by the record of their totals."""

    def recognises(self, file: ForeignFile) -> bool:
        if b'"schema_version"' not in file.beginning[:200]:
            return False
        return b'"evaluation_results"' in file.beginning or first_object(file.beginning).keys() >= {
            "evaluation_name",
            "sample_id",
            "evaluation",
        }

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        if b'"evaluation_results"' in beginning(path):
            record = json_document(path, _AggregateRecord, "a record of Every Eval Ever")
            named = record.detailed_evaluation_results
            # only files beside it: a path in a foreign file can lead anywhere
            beside = path.with_name(Path(named.file_path).name) if named and named.file_path else None
            if beside is None or not beside.is_file():
                raise UnreadableOutcomesError(
                    "only totals, and no instances beside it; convert it with --include_samples"
                )
            path = beside
        for _, instance in json_lines(path, _Instance, "an instance of Every Eval Ever"):
            yield _instance_attempt(instance)


def _instance_attempt(instance: _Instance) -> RecordedAttempt:
    tokens = instance.token_usage or _InstanceTokens()
    score = number(instance.evaluation.score)
    reference = instance.input.reference
    replies = instance.output.raw if instance.output else None
    milliseconds = number(instance.performance.latency_ms) if instance.performance else None
    return RecordedAttempt(
        case=f"{instance.evaluation_name}/{instance.sample_id}",
        model=instance.model_id,
        # one sample has a line for each metric
        tier=instance.evaluation_result_id or "",
        judged_by="every-eval-ever",
        tool=f"every-eval-ever {instance.schema_version}",
        passed=None if instance.error else instance.evaluation.is_correct,
        score=None if instance.error else score,
        graded=score is not None and 0 < score < 1,
        answer=None
        if replies is None
        else Answer(
            text=replies if isinstance(replies, str) else "\n".join(replies),
            input_tokens=whole(tokens.input_tokens),
            output_tokens=whole(tokens.output_tokens),
            cached_tokens=whole(tokens.input_tokens_cache_read),
            reasoning_tokens=whole(tokens.reasoning_tokens),
            latency=None if milliseconds is None else milliseconds / 1000,
        ),
        prompt=instance.input.raw,
        target=reference[0] if isinstance(reference, list) and len(reference) == 1 else text(reference),
        failure=instance.error or "",
        tests=instance.sample_hash or "",
        tags=(instance.evaluation_name,),
    )


class _ScoredRow(msgspec.Struct):
    input: Any = None
    output: Any = None
    expected: Any = None
    expectedOutput: Any = None  # noqa: N815  as Langfuse spells it
    scores: Any = None
    id: Any = None
    name: str | None = None
    datasetItemId: str | None = None  # noqa: N815
    error: Any = None
    metadata: Any = None
    model: str | None = None
    latency: Any = None
    totalCost: Any = None  # noqa: N815


class ScoredRowsReader:
    """Reads exports of Braintrust and Langfuse: JSON lines with `input`, `output` and `scores`."""

    def recognises(self, file: ForeignFile) -> bool:
        found = first_object(file.beginning)
        return found.keys() >= {"input", "output", "scores"} and isinstance(found["scores"], dict | list)

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        for _, row in json_lines(path, _ScoredRow, "an exported row with scores"):
            yield _row_attempt(row, bare_file_name(path))


def _row_attempt(row: _ScoredRow, stem: str) -> RecordedAttempt:
    scores = _row_scores(row.scores)
    name = next(iter(scores), "")
    score = scores.get(name)
    metadata = row.metadata if isinstance(row.metadata, dict) else {}
    usd = number(row.totalCost)
    expected = row.expected if row.expected is not None else row.expectedOutput
    failure = text(row.error) if row.error else "" if scores else "no score"
    return RecordedAttempt(
        case=row.datasetItemId or content_name(row.input),
        model=row.model or text(metadata.get("model")) or stem,
        judged_by=f"scores {name}".strip(),
        score=None if failure else score,
        scores=scores if len(scores) > 1 and not failure else {},
        answer=Answer(
            text=text(row.output),
            cost=None if usd is None else Cost(usd=usd, source="recorded"),
            latency=number(row.latency),
        ),
        prompt=text(row.input),
        target=text(expected),
        levels={key: value >= 1 for key, value in scores.items()} if len(scores) > 1 and not failure else {},
        failure=failure,
    )


def _row_scores(scores: Any) -> dict[str, float]:
    """The scores by name: an object of Braintrust, or a list of Langfuse."""
    if isinstance(scores, list):
        scores = {text(one.get("name")): one.get("value") for one in scores if isinstance(one, dict)}
    found = {} if not isinstance(scores, dict) else {str(key): number(value) for key, value in scores.items()}
    return {key: value for key, value in found.items() if value is not None}
