"""The lines that a suite's results are exchanged as: each reply with what it was classified as."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.analysis.suites import accuracy
from steelyard.protocols import TIMEOUT_LABELS
from steelyard.records import Finish
from steelyard.reports.figures import attempt_failure_reason, model_label

if TYPE_CHECKING:
    from steelyard.analysis.summary import AttemptText, RunResults
    from steelyard.records import Reply, Verdict

ANSWERLESS_FINISH_REASONS = (Finish.TIMEOUT, Finish.CRASH, Finish.ERROR)
"""What can have come instead of an answer."""
EXCHANGED_FAILURE_CLASSES = (*ANSWERLESS_FINISH_REASONS, "refusal", "wrong_format", "policy_violation", "fail")
"""The failures that this format knows; any other, such as a reply that was cut off, is a `fail` in it."""


def report(results: RunResults) -> str:
    """One JSON object per judged attempt, by case and then in the order of the attempts.

    An attempt without a verdict has no line: where every line is an outcome, one about an outage of ours would be read as a
    wrong answer, whatever it says. Such attempts are counted in the summary.
    """
    # ASCII, so that no terminal obeys what a model wrote, and no reader takes U+2028 for the end of a line
    found = (result(results.info.id, tried) for tried in results.attempts)
    return "".join(json.dumps(one) + "\n" for one in found if one is not None)


def result(run: str, tried: AttemptText) -> dict[str, Any] | None:
    """One judged attempt of a run; None where it has no verdict."""
    return _result(run, tried, tried.reply, tried.verdict) if tried.reply and tried.verdict else None


def _result(run: str, tried: AttemptText, reply: Reply, verdict: Verdict) -> dict[str, Any]:
    answer, primary = reply.answer, _primary_class(tried, verdict)
    details: dict[str, Any] = {"evidence": [msgspec.to_builtins(piece) for piece in verdict.found.evidence]}
    if not verdict.found.evidence:
        details = {"reason": attempt_failure_reason(tried)} if attempt_failure_reason(tried) else {}
    result = {
        "case_id": tried.case.id,
        "suite_id": tried.case.suite,
        "run_id": run,
        "model_id": model_label(tried.model, tried.tier),
        "timestamp_utc": reply.at,
        "attempt": tried.number,
        "raw_response": None if answer.finish in ANSWERLESS_FINISH_REASONS and not answer.text else answer.text,
        "error": answer.error or None,
        "classification": {"primary": primary, "details": details},
        "scores": {"accuracy": accuracy(primary)},
    }
    # without this a reader could not tell a reply that was cut off, or taken back, from a whole one
    return (
        result if answer.finish in ("stop", *ANSWERLESS_FINISH_REASONS) else result | {"finish_reason": answer.finish}
    )


def _primary_class(tried: AttemptText, verdict: Verdict) -> str:
    if tried.correct:
        return "pass"
    label = verdict.found.label
    if tried.case.kind == "response":
        return label if label in EXCHANGED_FAILURE_CLASSES else "fail"
    return "timeout" if label in TIMEOUT_LABELS else "fail"
