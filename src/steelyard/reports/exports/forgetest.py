"""A run as a report that forgetest reads back: ids are UUIDs, and what is not known is 0, because it has no word for that."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Iterator
from typing import Any

from steelyard.analysis.summary import RunResults
from steelyard.reports.exports.streaming import StreamedList, StreamedObject, StreamedReport, indented_json, json_pieces
from steelyard.reports.json import report_fields

RUN_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "steelyard run")
MAX_SMALL_COUNT = (1 << 32) - 1
"""The largest token count that it can hold."""


@StreamedReport
def report(results: RunResults) -> Iterator[str]:
    """The report as JSON, without the keys that only we have; attempts without a verdict are left out."""
    ours = report_fields(results)
    run = str(uuid.uuid5(RUN_NAMESPACE, ours["id"]))
    aggregate = ours["aggregate"]
    whole = {
        "id": run,
        **{key: ours[key] for key in ("created_at", "eval_set", "models_evaluated")},
        "results": StreamedList(_result(_plain(found), run) for found in ours["results"].items),
        "aggregate": {
            "per_model": {name: _per_model(_plain(found)) for name, found in aggregate["per_model"].items()},
            "per_case": StreamedObject(
                (name, _per_case(_plain(found))) for name, found in aggregate["per_case"].members
            ),
        },
        "duration_ms": ours["duration_ms"],
    }
    yield from json_pieces(whole, functools.partial(json.dumps, indent=2), 2)
    yield "\n"


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """The same as a reader of the JSON has it: records are objects."""
    plain: dict[str, Any] = json.loads(indented_json(found))
    return plain


def _result(found: dict[str, Any], run: str) -> dict[str, Any]:
    compilation = found["compilation"]
    usage = found["token_usage"]
    counts = {key: min(usage[key] or 0, MAX_SMALL_COUNT) for key in ("prompt_tokens", "completion_tokens")}
    total = min(sum(counts.values()), MAX_SMALL_COUNT)
    return {
        **{key: found[key] for key in ("case_id", "model", "provider", "generated_code")},
        # code that is not compiled by itself counts as compiled where it ran
        "compilation": {**compilation, "success": found["correct"] or bool(compilation["success"])},
        **{key: found[key] for key in ("test_execution", "clippy")},
        "timing": {key: value or 0 for key, value in found["timing"].items()},
        "token_usage": {**counts, "total_tokens": total, "estimated_cost_usd": usage["estimated_cost_usd"] or 0.0},
        "attempt": found["attempt"],
        "run_id": run,
    }


def _per_model(found: dict[str, Any]) -> dict[str, Any]:
    rates = ("avg_compilation_rate", "avg_test_pass_rate", "avg_clippy_score", "total_cost_usd")
    return {
        "model": found["model"],
        "pass_at_k": {k: value for k, value in found["pass_at_k"].items() if value is not None},
        **{key: found[key] or 0.0 for key in rates},
        "total_tokens": found["total_tokens"] or 0,
        "avg_latency_ms": round(found["avg_latency_ms"] or 0),
    }


def _per_case(found: dict[str, Any]) -> dict[str, Any]:
    rates = {model: rate for model, rate in found["per_model_pass_rate"].items() if rate is not None}
    return {"case_id": found["case_id"], "per_model_pass_rate": rates}
