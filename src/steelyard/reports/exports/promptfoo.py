"""A run as results of promptfoo: each model under each tier is a provider, each case a test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.analysis.summary import AttemptText, RunResults
from steelyard.reports.exports.streaming import StreamedList, StreamedReport, ascii_json, json_pieces
from steelyard.reports.figures import attempt_failure_reason, missing_reason, model_label

RESULTS_VERSION = 3
FAILED_BY_ASSERTION, FAILED_BY_ERROR = 1, 2


@StreamedReport
def report(results: RunResults) -> Iterator[str]:
    """The results as JSON; an attempt without a verdict is an error, as an outage is in promptfoo."""
    info = results.info
    models = [model_label(model.model, model.tier) for model in results.summary.models]
    places = {case.id: place for place, case in enumerate(results.cases)}

    def rows() -> Iterator[dict[str, Any]]:
        return (_result(tried, places, models, f"{info.id}-{number}") for number, tried in enumerate(results.attempts))

    tallies = [_Tally() for _ in models]
    for row in rows():
        tallies[row["promptIdx"]].add(row)
    reasons = sum((tally.reasons for tally in tallies), Counter[int]())
    tokens = sum((tally.tokens for tally in tallies), Counter[str]())
    document = {
        "evalId": f"eval-steelyard-{info.id}",
        "results": {
            "version": RESULTS_VERSION,
            "timestamp": info.started_at,
            "prompts": [_prompt(model, tally) for model, tally in zip(models, tallies, strict=True)],
            "results": StreamedList(rows()),
            "stats": _counts(reasons) | {"tokenUsage": _token_usage(tokens)},
        },
        "config": {"description": f"steelyard run {info.id}", "providers": models, "prompts": ["{{prompt}}"]},
        "shareableUrl": None,
        "metadata": {"exportedAt": info.ended_at or info.started_at, "evaluationCreatedAt": info.started_at},
    }
    yield from json_pieces(document, ascii_json, 1)
    yield "\n"


class _Tally:
    """The numbers of a model's results, which stand before the results."""

    def __init__(self) -> None:
        self.reasons, self.tokens = Counter[int](), Counter[str]()
        self.scores: list[float] = []
        """Of results that are no errors."""
        self.latencies: list[float] = []
        self.costs: list[float] = []

    def add(self, row: Mapping[str, Any]) -> None:
        self.reasons[row["failureReason"]] += 1
        self.tokens.update(row["tokenUsage"])
        if row["failureReason"] != FAILED_BY_ERROR:
            self.scores.append(row["score"])
        self.latencies.append(row["latencyMs"])
        self.costs.append(row["cost"])


def _result(tried: AttemptText, places: dict[str, int], models: list[str], name: str) -> dict[str, Any]:
    model = model_label(tried.model, tried.tier)
    answer = tried.reply.answer if tried.reply else None
    asked = "\n\n".join(message.text for message in tried.case.messages)
    tokens = {
        "prompt": (answer.input_tokens if answer else None) or 0,
        "completion": (answer.output_tokens if answer else None) or 0,
        "cached": (answer.cached_tokens if answer else None) or 0,
    }
    tokens["total"] = tokens["prompt"] + tokens["completion"]
    usd = answer.cost.usd if answer and answer.cost else 0
    result: dict[str, Any] = {
        "id": name,
        "promptIdx": models.index(model),
        "testIdx": places[tried.case.id],
        "promptId": "prompt",
        "provider": {"id": model, "label": model},
        "prompt": {"raw": asked, "label": "{{prompt}}"},
        "vars": {"case": tried.case.id},
        "testCase": {"description": tried.case.id, "vars": {"case": tried.case.id}, "assert": []},
        "success": bool(tried.correct),
        "score": tried.score if tried.score is not None else float(bool(tried.correct)),
        "namedScores": {},
        "latencyMs": round((answer.latency or 0) * 1000, 3) if answer else 0,
        "cost": usd,
        "tokenUsage": tokens,
        "metadata": {"attempt": tried.number},
        "failureReason": 0,
    }
    if answer is not None:
        result["response"] = {"output": answer.text, "tokenUsage": tokens, "cost": usd, "finishReason": answer.finish}
    if tried.correct is None:
        return result | {"error": ": ".join(missing_reason(tried)), "failureReason": FAILED_BY_ERROR}
    reason = attempt_failure_reason(tried) or "All assertions passed"
    result["gradingResult"] = {
        "pass": bool(tried.correct),
        "score": result["score"],
        "reason": reason,
        "namedScores": {},
        "componentResults": [],
    }
    return result if tried.correct else result | {"error": reason, "failureReason": FAILED_BY_ASSERTION}


def _prompt(model: str, tally: _Tally) -> dict[str, Any]:
    counts = _counts(tally.reasons)
    return {
        "id": "prompt",
        "raw": "{{prompt}}",
        "label": "{{prompt}}",
        "provider": model,
        "metrics": {
            "score": sum(tally.scores),
            "testPassCount": counts["successes"],
            "testFailCount": counts["failures"],
            "testErrorCount": counts["errors"],
            "assertPassCount": 0,
            "assertFailCount": 0,
            "totalLatencyMs": sum(tally.latencies),
            "tokenUsage": _token_usage(tally.tokens),
            "namedScores": {},
            "namedScoresCount": {},
            "cost": sum(tally.costs),
        },
    }


def _counts(reasons: Mapping[int, int]) -> dict[str, Any]:
    names = {"successes": 0, "failures": FAILED_BY_ASSERTION, "errors": FAILED_BY_ERROR}
    return {name: reasons[reason] for name, reason in names.items()}


def _token_usage(tokens: Mapping[str, int]) -> dict[str, int]:
    return {name: tokens[name] for name in ("prompt", "completion", "cached", "total")}
