"""Results of agents' benchmarks: SWE-bench predictions and reports, and job folders of Harbor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import Problem
from steelyard.outcomes.readers.sources import beginning, first_object, json_document, json_lines, number, text, whole
from steelyard.protocols import ForeignFile
from steelyard.records import Answer, Cost, RecordedAttempt
from steelyard.text import counted

MAX_PATCH_BYTES = 64 << 20


class _Prediction(msgspec.Struct):
    instance_id: str
    model_name_or_path: str = ""
    model_patch: str | None = None


class _Report(msgspec.Struct):
    resolved_ids: list[str]
    unresolved_ids: list[str] = []
    empty_patch_ids: list[str] = []
    error_ids: list[str] = []
    incomplete_ids: list[str] = []


class _InstanceReport(msgspec.Struct):
    resolved: bool
    patch_successfully_applied: bool = True
    infra_failure_reason: str = ""
    tests_status: dict[str, Any] = {}


class SweBenchReader:
    """Reads predictions of SWE-bench, the report of a run, and the tree of `report.json` files that a run leaves."""

    def recognises(self, file: ForeignFile) -> bool:
        if file.path.is_dir():
            return any(_is_report(path) for path in _reports(file.path, 1))
        if b'"resolved_ids"' in file.beginning or b'"resolved_instances"' in file.beginning[:2000]:
            return True
        return (b'"instance_id"' in file.beginning and b'"model_patch"' in file.beginning) or _is_report(file.path)

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        head = b"" if path.is_dir() else beginning(path)
        if path.is_dir() or path.name == "report.json":
            for report in _reports(path) if path.is_dir() else (path,):
                yield from _instance_attempts(report)
        elif b'"resolved_ids"' in head or b'"resolved_instances"' in head:
            yield from _report_attempts(path)
        else:
            yield from _predictions(path, head)


def _is_report(path: Path) -> bool:
    return path.name == "report.json" and b'"resolved"' in (head := beginning(path)) and b'"patch_' in head


def _reports(folder: Path, most: int = 1_000_000) -> Iterator[Path]:
    for _, path in zip(range(most), folder.rglob("report.json"), strict=False):
        yield path


def _report_attempts(path: Path) -> Iterator[RecordedAttempt | Problem]:
    report = json_document(path, _Report, "a report of SWE-bench")
    # MODEL.RUN.json
    model = path.name.removesuffix(".json").rpartition(".")[0] or path.stem
    for ids, passed, reason in (
        (report.resolved_ids, True, ""),
        (report.unresolved_ids, False, "not resolved"),
        (report.empty_patch_ids, False, "empty patch"),
        (report.error_ids, None, "the harness failed"),
    ):
        for instance in ids:
            yield _attempt(instance, model.replace("__", "/"), passed, None, reason)
    if report.incomplete_ids:
        what = f"{counted(len(report.incomplete_ids), 'instance')} not run, and left out"
        yield Problem(str(path), 0, what, fatal=False)


def _instance_attempts(path: Path) -> Iterator[RecordedAttempt]:
    model = path.absolute().parent.parent.name.replace("__", "/")
    patch = path.with_name("patch.diff")
    text_of_patch = None
    if patch.is_file() and patch.stat().st_size <= MAX_PATCH_BYTES:
        text_of_patch = patch.read_text("utf-8", "replace")
    for instance, found in json_document(path, dict[str, _InstanceReport], "a report of SWE-bench").items():
        failed = [
            str(test)
            for status in found.tests_status.values()
            if isinstance(status, dict) and isinstance(status.get("failure"), list)
            for test in status["failure"]
        ]
        reason = f"failed {', '.join(failed[:5])}" if failed else "not resolved"
        if not found.patch_successfully_applied:
            fault = found.infra_failure_reason
            reason = f"the environment may be at fault: {fault}" if fault else "the patch does not apply"
        yield _attempt(instance, model, found.resolved, text_of_patch, "" if found.resolved else reason)


def _predictions(path: Path, head: bytes) -> Iterator[RecordedAttempt]:
    what = "a prediction of SWE-bench"
    listed: Iterable[_Prediction]
    if head.startswith(b"["):
        listed = json_document(path, list[_Prediction], what)
    elif "instance_id" in first_object(head):
        listed = (prediction for _, prediction in json_lines(path, _Prediction, what))
    else:
        listed = json_document(path, dict[str, _Prediction], what).values()
    for one in listed:
        patch = one.model_patch or ""
        yield _attempt(one.instance_id, one.model_name_or_path or path.stem, None, patch, "not judged yet")


def _attempt(instance: str, model: str, passed: bool | None, patch: str | None, reason: str) -> RecordedAttempt:
    return RecordedAttempt(
        case=instance,
        model=model,
        judged_by="swe-bench",
        passed=passed,
        answer=None if patch is None else Answer(text=patch),
        reason=reason if passed is False else "",
        failure=reason if passed is None else "",
    )


class _HarborModel(msgspec.Struct):
    name: str = ""
    provider: str | None = None


class _HarborAgent(msgspec.Struct):
    name: str = ""
    version: str = ""
    model_info: _HarborModel | None = None


class _HarborUsage(msgspec.Struct):
    n_input_tokens: Any = None
    n_cache_tokens: Any = None
    n_output_tokens: Any = None
    cost_usd: Any = None


class _HarborRewards(msgspec.Struct):
    rewards: dict[str, Any] | None = None
    reward: Any = None


class _HarborException(msgspec.Struct):
    exception_type: str = ""
    exception_message: str = ""


class _HarborPhase(msgspec.Struct):
    started_at: str | None = None
    finished_at: str | None = None

    @property
    def seconds(self) -> float | None:
        try:
            took = datetime.fromisoformat(self.finished_at or "") - datetime.fromisoformat(self.started_at or "")
        except (ValueError, TypeError):
            return None
        return took.total_seconds() if took.total_seconds() >= 0 else None


class _HarborTrial(msgspec.Struct):
    task_name: str
    trial_name: str
    task_checksum: str = ""
    agent_info: _HarborAgent = msgspec.field(default_factory=_HarborAgent)
    agent_result: _HarborUsage | None = None
    verifier_result: _HarborRewards | None = None
    exception_info: _HarborException | None = None
    agent_execution: _HarborPhase | None = None
    started_at: str | None = None


class HarborReader:
    """Reads a job folder of Harbor, which has a folder with `result.json` for each trial, or one such file."""

    def recognises(self, file: ForeignFile) -> bool:
        if file.path.is_dir():
            trial = next(iter(_trials(file.path)), None)
            return trial is not None and self.recognises(ForeignFile(trial, beginning(trial)))
        return file.path.name == "result.json" and b'"trial_name"' in file.beginning

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        for file in _trials(path) if path.is_dir() else [path]:
            yield _trial_attempt(json_document(file, _HarborTrial, "a result of a Harbor trial"))


def _trials(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/result.json") if path.is_file())


def _trial_attempt(trial: _HarborTrial) -> RecordedAttempt:
    agent, usage = trial.agent_info, trial.agent_result or _HarborUsage()
    rewards = trial.verifier_result.rewards if trial.verifier_result else None
    if rewards is None and trial.verifier_result and trial.verifier_result.reward is not None:
        rewards = {"reward": trial.verifier_result.reward}
    values = {name: score for name, value in (rewards or {}).items() if (score := number(value)) is not None}
    name = "reward" if "reward" in values else next(iter(values), "")
    score = values.get(name)
    error = trial.exception_info
    failure = ""
    if score is None:
        failure = f"{error.exception_type}: {error.exception_message}" if error else "no reward"
    usd = number(usage.cost_usd)
    model = agent.model_info
    return RecordedAttempt(
        case=trial.task_name,
        model="/".join(filter(None, (agent.name, model.provider if model else "", model.name if model else ""))),
        judged_by=f"harbor {name or 'reward'}",
        tool="harbor",
        score=score,
        scores=values if len(values) > 1 else {},
        answer=None
        if failure
        else Answer(
            text="",
            finish="unrecorded",
            input_tokens=whole(usage.n_input_tokens),
            output_tokens=whole(usage.n_output_tokens),
            cached_tokens=whole(usage.n_cache_tokens),
            cost=None if usd is None else Cost(usd=usd, source="harbor"),
            latency=trial.agent_execution.seconds if trial.agent_execution else None,
        ),
        levels={key: value >= 1 for key, value in values.items()} if len(values) > 1 else {},
        failure=failure,
        tests=trial.task_checksum,
        at=text(trial.started_at),
    )
