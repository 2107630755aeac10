"""A run of one model as a log that Inspect reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from steelyard.analysis.attempt_texts import last_number
from steelyard.analysis.summary import AttemptText, RunResults
from steelyard.records import Answer, Finish, Message
from steelyard.reports.exports.streaming import StreamedList, StreamedReport, ascii_json, json_pieces
from steelyard.reports.figures import attempt_failure_reason, missing_reason, model_label

LOG_VERSION = 2
CORRECT_SCORER, SCORE_SCORER = "correct", "score"
"""Whether an attempt is correct, which decides unless attempts are graded, and its score by the rule of the run."""
STOP_REASONS: dict[str, str] = {
    Finish.STOP: "stop",
    Finish.LENGTH: "max_tokens",
    Finish.TOOL_CALLS: "tool_calls",
    Finish.REFUSAL: "content_filter",
}
ROLES = ("system", "user", "assistant", "tool")


@StreamedReport
def report(results: RunResults) -> Iterator[str]:
    """The log as JSON; each attempt is an epoch of its case, and one without a verdict is a sample with an error."""
    yield from json_pieces(_log(results), ascii_json, 1)
    yield "\n"


def task_name(results: RunResults) -> str:
    """What other tools call the task: the first eval set, or the first file that was imported."""
    files = results.info.eval_sets or results.info.recordings
    return PurePath(files[0].path).stem if files else "steelyard"


def _log(results: RunResults) -> dict[str, Any]:
    info, (summary,) = results.info, results.summary.models
    model = model_label(summary.model, summary.tier)
    ids = [case.id for case in results.cases]
    metrics = {
        CORRECT_SCORER: summary.pass_at[1].value if 1 in summary.pass_at else None,
        SCORE_SCORER: summary.score.value,
    }
    if summary.on == "score":
        # the first scorer decides
        metrics = dict(reversed(metrics.items()))
    return {
        "version": LOG_VERSION,
        "status": "success",
        "eval": {
            "eval_id": info.id,
            "run_id": info.id,
            "created": info.started_at,
            "task": task_name(results),
            "task_id": info.id,
            "dataset": {"name": task_name(results), "samples": len(ids), "sample_ids": ids},
            "model": model,
            "config": {"epochs": last_number(results.attempts)},
            "packages": {"steelyard": info.versions["steelyard"]} if "steelyard" in info.versions else {},
            "scorers": [{"name": name} for name in metrics],
        },
        "results": {
            "total_samples": len(results.attempts),
            "completed_samples": summary.attempts,
            "scores": [
                {"name": name, "scorer": name, "metrics": {"accuracy": {"name": "accuracy", "value": value}}}
                for name, value in metrics.items()
                if value is not None
            ],
        },
        "stats": {"started_at": info.started_at, "completed_at": info.ended_at or info.started_at},
        "samples": StreamedList(_sample(tried, model) for tried in results.attempts),
    }


def _sample(tried: AttemptText, model: str) -> dict[str, Any]:
    answer = tried.reply.answer if tried.reply else None
    prompt = tried.case.prompt
    asked = [_message(each) for each in tried.case.messages]
    sample: dict[str, Any] = {
        "id": tried.case.id,
        "epoch": tried.number,
        "input": prompt if isinstance(prompt, str) else asked,
        "target": tried.case.target,
        "messages": [*asked, _reply(answer, model)] if answer else asked,
        "output": {"model": model, "choices": []},
        "scores": None,
        "metadata": {"tags": list(tried.case.tags)},
    }
    if answer is not None:
        finish = STOP_REASONS.get(answer.finish, "unknown")
        sample["output"] = {
            "model": model,
            "choices": [{"message": _reply(answer, model), "stop_reason": finish}],
            "completion": answer.text,
        }
        usage = _usage(answer)
        if usage:
            sample["output"]["usage"] = usage
            sample["model_usage"] = {model: usage}
        if answer.latency is not None:
            sample |= {"working_time": answer.latency, "total_time": answer.latency}
    if tried.reply is not None:
        sample["started_at"] = tried.reply.at
    if tried.correct is None:
        message = ": ".join(missing_reason(tried))
        return sample | {"error": {"message": message, "traceback": message, "traceback_ansi": message}}
    scores: dict[str, Any] = {
        CORRECT_SCORER: {
            "value": "C" if tried.correct else "I",
            "answer": answer.text if answer else "",
            "explanation": attempt_failure_reason(tried),
        }
    }
    if tried.score is not None:
        scores[SCORE_SCORER] = {"value": tried.score}
    return sample | {"scores": scores}


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role if message.role in ROLES else "user", "content": message.text}


def _reply(answer: Answer, model: str) -> dict[str, Any]:
    return {"role": "assistant", "content": answer.text, "source": "generate", "model": model}


def _usage(answer: Answer) -> dict[str, Any]:
    known = {
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "input_tokens_cache_read": answer.cached_tokens,
        "reasoning_tokens": answer.reasoning_tokens,
        "total_cost": answer.cost.usd if answer.cost else None,
    }
    found: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    if answer.input_tokens is not None and answer.output_tokens is not None:
        found["total_tokens"] = answer.input_tokens + answer.output_tokens
    return found
