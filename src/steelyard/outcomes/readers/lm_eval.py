"""Samples of the LM Evaluation Harness: `samples_TASK_DATE.jsonl`, found also by `results_DATE.json` or by their folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import Problem
from steelyard.outcomes.files import UnreadableOutcomesError, bare_file_name
from steelyard.outcomes.readers.sources import first_object, json_document, json_lines, number, text
from steelyard.protocols import ForeignFile
from steelyard.records import Answer, RecordedAttempt

SAMPLES_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl(?:\.gz)?")
RESULTS_NAME = re.compile(r"results_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.json")
NO_FILTER = "none"


class _Totals(msgspec.Struct):
    """What `results_DATE.json` says about all samples."""

    model_name: str = ""
    config: dict[str, Any] = {}
    lm_eval_version: str = ""
    higher_is_better: dict[str, Any] = {}
    """By task, then by metric."""

    def lower_is_better(self, task: str) -> tuple[str, ...]:
        """The metrics of a task of which less is better."""
        of_task = self.higher_is_better.get(task)
        return tuple(name for name, better in of_task.items() if better is False) if isinstance(of_task, dict) else ()


class LmEvalReader:
    """Reads what `lm_eval --log_samples` writes."""

    def recognises(self, file: ForeignFile) -> bool:
        if file.path.is_dir():
            return any(_samples_files(file.path))
        if RESULTS_NAME.fullmatch(file.path.name):
            return b'"results"' in file.beginning
        keys = first_object(file.beginning).keys()
        return keys >= {"doc_id", "resps"} or (b'"doc_id"' in file.beginning[:100] and b'"arguments"' in file.beginning)

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        if path.is_dir():
            for file in _samples_files(path):
                yield from _attempts(file)
        elif found := RESULTS_NAME.fullmatch(path.name):
            files = [file for file in _samples_files(path.parent) if found["date"] in file.name]
            if not files:
                raise UnreadableOutcomesError(
                    "only totals, and no samples beside it; let lm_eval write them with --log_samples"
                )
            for file in files:
                yield from _attempts(file)
        else:
            yield from _attempts(path)


def _samples_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if SAMPLES_NAME.fullmatch(path.name))


def _attempts(path: Path) -> Iterator[RecordedAttempt]:
    named = SAMPLES_NAME.fullmatch(path.name)
    task = named["task"] if named else bare_file_name(path)
    totals = path.parent / f"results_{named['date']}.json" if named and named["date"] else None
    about = json_document(totals, _Totals, "results of lm-eval") if totals and totals.is_file() else _Totals()
    model = about.model_name or text(about.config.get("model")) or path.absolute().parent.name.replace("__", "/")
    for _, sample in json_lines(path, dict[str, Any], "a sample of lm-eval"):
        yield _attempt(sample, task, model, about)


def _attempt(sample: dict[str, Any], task: str, model: str, about: _Totals) -> RecordedAttempt:
    metrics = sample.get("metrics")
    if not isinstance(metrics, list):
        # files of older versions do not say which keys are metrics: they follow the others
        metrics = list(sample)[list(sample).index("filtered_resps") + 1 :] if "filtered_resps" in sample else []
    scores = {
        str(name): score
        for name in metrics
        if not str(name).endswith("_hash") and (score := _score(sample.get(str(name)))) is not None
    }
    metric = next(iter(scores), "")
    score = scores.get(metric)
    filtered = str(sample.get("filter") or NO_FILTER)
    return RecordedAttempt(
        case=f"{task}/{text(sample.get('doc_id'))}",
        model=model,
        tier="" if filtered == NO_FILTER else filtered,
        judged_by=f"lm-eval {metric or 'unscored'}",
        tool=f"lm-eval {about.lm_eval_version}".strip(),
        score=score,
        scores=scores,
        lower_is_better=about.lower_is_better(task),
        answer=Answer(text=_reply(sample)),
        prompt=text(_first_arguments(sample)[0]),
        target=text(sample.get("target")),
        levels={name: value >= 1 for name, value in scores.items()} if len(scores) > 1 else {},
        failure="" if scores else "no metric of it is a number",
        tests=text(sample.get("doc_hash")),
        tags=(task,),
    )


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, bool) else number(value)


def _all_arguments(sample: dict[str, Any]) -> list[tuple[Any, Any]]:
    """The context and the continuation of every request; old versions write them as lists."""
    given = sample.get("arguments")
    requests = list(given.values()) if isinstance(given, dict) else given if isinstance(given, list) else []
    found = []
    for request in requests:
        if isinstance(request, dict):
            found.append((request.get("arg_0"), request.get("arg_1")))
        elif isinstance(request, list) and request:
            found.append((request[0], request[1] if len(request) > 1 else None))
    return found


def _first_arguments(sample: dict[str, Any]) -> tuple[Any, Any]:
    return next(iter(_all_arguments(sample)), ("", None))


def _reply(sample: dict[str, Any]) -> str:
    """What the model wrote; of choices the one that it takes for the most likely."""
    replies = sample.get("resps")
    if not isinstance(replies, list) or not replies:
        return ""
    first = replies[0][0] if isinstance(replies[0], list) and replies[0] else replies[0]
    if isinstance(first, str):
        return first
    likelihoods = [_likelihood(each) for each in replies]
    arguments = _all_arguments(sample)
    if len(arguments) != len(likelihoods) or not likelihoods:
        return text(first)
    best = max(range(len(likelihoods)), key=likelihoods.__getitem__)
    return text(arguments[best][1]).strip()


def _likelihood(reply: Any) -> float:
    """The logarithm of how likely a choice is; texts hold numbers."""
    while isinstance(reply, list) and reply:
        reply = reply[0]
    try:
        return float(reply)
    except (TypeError, ValueError):
        return float("-inf")
