"""A run as OpenTelemetry traces in OTLP JSON, by the semantic conventions for generative AI."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from steelyard.analysis.attempt_texts import AttemptText
from steelyard.analysis.summary import RunResults
from steelyard.records import RunInfo
from steelyard.reports.exports.streaming import StreamedList, StreamedReport, json_pieces
from steelyard.reports.figures import attempt_failure_reason, outcome

SPAN_KIND_INTERNAL, SPAN_KIND_CLIENT = 1, 3
STATUS_OK, STATUS_ERROR = 1, 2
MAX_EXPLANATION_CHARACTERS = 1_000
PROVIDER_NAMES = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "openai-responses": "openai",
}
"""Our providers by the names that the conventions have for them; others keep their own."""


@StreamedReport
def report(results: RunResults) -> Iterator[str]:
    """One trace for the run with one span for each attempt; the body that `/v1/traces` of a collector takes.

    The same run gives the same ids, so that sending it twice does not count anything twice. Texts of prompts and replies are
    left out, as the conventions ask.
    """
    info = results.info
    trace = _digest(f"run {info.id}", 16)
    root = _digest(f"run {info.id} root", 8)

    def spans() -> Iterator[dict[str, Any]]:
        return (_attempt_span(tried, info, trace, root) for tried in results.attempts)

    began = _nanoseconds(info.started_at) or min((int(span["startTimeUnixNano"]) for span in spans()), default=0)
    ended = _nanoseconds(info.ended_at or "") or max((int(span["endTimeUnixNano"]) for span in spans()), default=began)
    run_span = {
        "traceId": trace,
        "spanId": root,
        "name": f"steelyard run {info.id}",
        "kind": SPAN_KIND_INTERNAL,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(max(ended, began)),
        "attributes": _attributes(
            {
                "steelyard.run.id": info.id,
                "steelyard.run.eval_sets": [file.path for file in info.eval_sets],
                "steelyard.run.models": list(info.names or info.models),
                "steelyard.run.cases": len(results.cases),
                "steelyard.run.attempts": len(results.attempts),
            }
        ),
        "status": {},
    }
    scope = {"name": "steelyard", "version": info.versions.get("steelyard", "")}
    resource = {"attributes": _attributes({"service.name": "steelyard"})}
    streamed = StreamedList(itertools.chain([run_span], spans()))
    whole = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": streamed}]}]}
    yield from json_pieces(whole, functools.partial(json.dumps, ensure_ascii=False), None)
    yield "\n"


def _attempt_span(tried: AttemptText, info: RunInfo, trace: str, root: str) -> dict[str, Any]:
    answer = tried.reply.answer if tried.reply else None
    provider, _, model = tried.model.partition("/")
    facts = (tried.reply, tried.verdict, tried.failure)
    moments = [_nanoseconds(fact.at) for fact in facts if fact is not None]
    asked = _nanoseconds(tried.reply.at) if tried.reply else min(moments, default=_nanoseconds(info.started_at))
    began = asked - round((answer.latency or 0) * 10**9) if answer else asked
    parameters = info.parameters
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDER_NAMES.get(provider, provider),
        "gen_ai.request.model": model or provider,
        "gen_ai.request.temperature": parameters.get("temperature"),
        "gen_ai.request.max_tokens": parameters.get("max_tokens"),
        "gen_ai.response.finish_reasons": [answer.finish] if answer else None,
        "gen_ai.usage.input_tokens": answer.input_tokens if answer else None,
        "gen_ai.usage.output_tokens": answer.output_tokens if answer else None,
        "steelyard.case.id": tried.case.id,
        "steelyard.attempt.number": tried.number,
        "steelyard.tier": tried.tier or None,
        "steelyard.outcome": outcome(tried),
        "steelyard.cost.usd": answer.cost.usd if answer and answer.cost else None,
        "error.type": tried.failure.stage if tried.failure and tried.correct is None else None,
    }
    is_missing = tried.correct is None
    name = f"run {info.id} {tried.case.id} {tried.model} {tried.tier} {tried.number}"
    return {
        "traceId": trace,
        "spanId": _digest(name, 8),
        "parentSpanId": root,
        "name": f"chat {model or provider}",
        "kind": SPAN_KIND_CLIENT,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(max([began, asked, *moments])),
        "attributes": _attributes(attributes),
        "events": [] if is_missing else [_evaluation(tried, max([asked, *moments]))],
        # a wrong answer is not an error of the request
        "status": {"code": STATUS_ERROR, "message": _reason(tried)} if is_missing else {"code": STATUS_OK},
    }


def _evaluation(tried: AttemptText, moment: int) -> dict[str, Any]:
    """What was found out about an answer, as the event that the conventions have for it."""
    found = {
        "gen_ai.evaluation.name": tried.case.kind or "verdict",
        "gen_ai.evaluation.score.label": "pass" if tried.correct else "fail",
        "gen_ai.evaluation.score.value": tried.score,
        "gen_ai.evaluation.explanation": _reason(tried) or None,
    }
    return {"timeUnixNano": str(moment), "name": "gen_ai.evaluation.result", "attributes": _attributes(found)}


def _reason(tried: AttemptText) -> str:
    return attempt_failure_reason(tried)[:MAX_EXPLANATION_CHARACTERS]


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them; what is not known is left out."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    # half of a surrogate pair is not text
    return {"stringValue": str(value).encode("utf-8", "replace").decode()}


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def _nanoseconds(moment: str) -> int:
    """A timestamp in nanoseconds of the epoch; 0 for anything else.

    >>> _nanoseconds("2026-11-16T07:00:18.271Z"), _nanoseconds("someday")
    (1794812418271000000, 0)
    """
    if not re.match(r"\d{4}-\d\d-\d\dT", moment):
        return 0
    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError:
        return 0
    since = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return max(0, (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000)
