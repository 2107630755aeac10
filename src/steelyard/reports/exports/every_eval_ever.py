"""The figures of one model as a record of Every Eval Ever, schema 0.3."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.summary import RunResults
from steelyard.reports.exports.inspect_log import task_name
from steelyard.reports.figures import model_label

SCHEMA_VERSION = "0.3.0"
INTERVAL_LEVEL = 0.95


def report(results: RunResults) -> str:
    """The record as JSON: pass@k and the mean score, each with its interval."""
    info, (model,) = results.info, results.summary.models
    label, task = model_label(model.model, model.tier), task_name(results)
    started = _unix_time(info.started_at)
    metrics = [(f"pass@{k}", "pass_rate", {"k": k}, estimate) for k, estimate in sorted(model.pass_at.items())]
    metrics.append(("mean score", "score", {}, model.score))
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{task}/{label}/{started}",
        "evaluation_timestamp": started,
        "retrieved_timestamp": _unix_time(info.ended_at or info.started_at),
        "source_metadata": {
            "source_name": "steelyard",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "steelyard", "version": info.versions.get("steelyard", "unknown")},
        "model_info": {
            "name": label,
            "id": label,
            "developer": model.model.partition("/")[0] if "/" in model.model else "unknown",
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [
            {
                "evaluation_result_id": name,
                "evaluation_name": task,
                "source_data": {"dataset_name": task, "source_type": "other"},
                "evaluation_timestamp": started,
                "metric_config": {
                    "metric_id": name.replace(" ", "_"),
                    "metric_name": name,
                    "metric_kind": kind,
                    "metric_unit": "proportion",
                    "metric_parameters": parameters,
                    "lower_is_better": False,
                    "score_type": "continuous",
                    "min_score": 0.0,
                    "max_score": 1.0,
                },
                "score_details": {
                    "score": estimate.value,
                    "details": {
                        "attempts": str(model.attempts),
                        "correct": str(model.correct),
                        "missing": str(model.missing),
                    },
                    "uncertainty": _uncertainty(estimate),
                },
            }
            for name, kind, parameters, estimate in metrics
            if estimate.value is not None
        ],
    }
    return json.dumps(record, indent=1) + "\n"


def _uncertainty(estimate: Estimate) -> dict[str, Any]:
    found: dict[str, Any] = {"num_samples": estimate.cases}
    if estimate.low is not None and estimate.high is not None:
        found["confidence_interval"] = {
            "lower": estimate.low,
            "upper": estimate.high,
            "confidence_level": INTERVAL_LEVEL,
        }
    return found


def _unix_time(text: str) -> str:
    return f"{datetime.fromisoformat(text).timestamp():.3f}"
