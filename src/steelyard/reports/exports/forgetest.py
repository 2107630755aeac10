"""A run as a report that forgetest reads back: ids are UUIDs, and what is not known is 0, because it has no word for that."""

from __future__ import annotations

import json
import uuid
from typing import Any

from steelyard.analysis.summary import RunResults
from steelyard.reports.json import report as json_report

RUN_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "steelyard run")
MAX_SMALL_COUNT = (1 << 32) - 1
"""The largest token count that it can hold."""


def report(results: RunResults) -> str:
    """The report as JSON, without the keys that only we have; attempts without a verdict are left out."""
    ours = json.loads(json_report(results))
    run = str(uuid.uuid5(RUN_NAMESPACE, ours["id"]))
    whole = {
        "id": run,
        **{key: ours[key] for key in ("created_at", "eval_set", "models_evaluated")},
        "results": [_result(found, run) for found in ours["results"]],
        "aggregate": {
            "per_model": {name: _per_model(found) for name, found in ours["aggregate"]["per_model"].items()},
            "per_case": {name: _per_case(found) for name, found in ours["aggregate"]["per_case"].items()},
        },
        "duration_ms": ours["duration_ms"],
    }
    return json.dumps(whole, indent=2) + "\n"


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
