"""The attempts of a run as a table, one row each, safe to open in a spreadsheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.reports.figures import missing_reason
from steelyard.reports.tables import csv_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.analysis.summary import AttemptText, RunResults
    from steelyard.reports.tables import CsvValue

ATTEMPT_CSV_COLUMNS = (
    *("run_id", "case", "model", "tier", "number", "correct", "score", "compiled", "tests_passed", "tests_failed"),
    *("warnings", "label", "reason", "finish", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"),
    *("cost_usd", "latency_s", "failure_stage", "failure", "tampered", "rechecked", "disagreed", "trust", "isolation"),
)


def report(results: RunResults) -> str:
    """A header and a row per attempt; what is not known is empty."""
    rows = (_row(results.info.id, tried) for tried in results.attempts)
    return csv_text(ATTEMPT_CSV_COLUMNS, (map(row.get, ATTEMPT_CSV_COLUMNS) for row in rows))


def _row(run: str, tried: AttemptText) -> Mapping[str, CsvValue]:
    row: dict[str, CsvValue] = {
        "run_id": run,
        "case": tried.case.id,
        "model": tried.model,
        "tier": tried.tier,
        "number": tried.number,
        "correct": tried.correct,
        "score": tried.score,
    }
    if tried.reply is not None:
        answer = tried.reply.answer
        row |= {
            "finish": answer.finish,
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "cached_tokens": answer.cached_tokens,
            "reasoning_tokens": answer.reasoning_tokens,
            "cost_usd": answer.cost.usd if answer.cost else None,
            "latency_s": answer.latency,
        }
    if tried.verdict is None:
        stage, message = missing_reason(tried)
        return row | {"failure_stage": stage, "failure": message}
    found = tried.verdict.found
    outcomes = [test.outcome for test in found.tests]
    return row | {
        "compiled": found.compiled,
        "tests_passed": outcomes.count("passed") if outcomes else None,
        "tests_failed": outcomes.count("failed") if outcomes else None,
        "warnings": found.warnings,
        "label": found.label,
        "reason": found.reason,
        "tampered": found.tampered,
        "rechecked": found.rechecked,
        "disagreed": found.disagreed,
        "trust": found.trust,
        "isolation": found.isolation,
    }
