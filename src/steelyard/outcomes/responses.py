"""Results of response suites, one JSON object per line, with the classes that their authors gave them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from steelyard.analysis.suites import RecordedResponse
from steelyard.errors import InputError
from steelyard.outcomes.files import (
    BYTE_ORDER_MARK,
    MAX_OUTCOME_LINE_BYTES,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    bare_file_name,
    collect_file_errors,
    files,
    open_unpacked,
)
from steelyard.records import Answer
from steelyard.text import JSON_ESCAPE_PATTERN, json_error_location

ANSWERLESS_CLASSES = ("timeout", "crash", "error")
RECORDED_STATUSES = {"pass": "pass", "passed": "pass", "fail": "fail", "failed": "fail"}


class _ResultLine(msgspec.Struct):
    """The fields of a line, in the words of both dialects."""

    case_id: str | int | None = None
    id: str | int | None = None
    suite_id: str | None = None
    family: str | None = None
    model_id: str | None = None
    model: str | None = None
    run_id: str | None = None
    raw_response: str | None = None
    response: str | None = None
    output: str | None = None
    error: Any = None
    finish_reason: str | None = None
    classification: Any = None
    scores: Any = None
    final_status: str | None = None
    taxonomy: str | None = None
    latency_ms: float | None = None

    @property
    def primary(self) -> str:
        """The recorded class; empty if none is recorded."""
        told = self.classification.get("primary") if isinstance(self.classification, dict) else self.classification
        if isinstance(told, str) and told:
            return told
        status = RECORDED_STATUSES.get((self.final_status or "").lower(), "")
        if status == "fail" and self.taxonomy in ANSWERLESS_CLASSES:
            return self.taxonomy
        if status or self.accuracy is None:
            return status
        return "pass" if self.accuracy == 1 else "fail"

    @property
    def accuracy(self) -> float | None:
        given = self.scores.get("accuracy") if isinstance(self.scores, dict) else None
        return float(given) if isinstance(given, int | float) else None

    @property
    def answer(self) -> Answer:
        text = next((one for one in (self.raw_response, self.response, self.output) if one is not None), "")
        error = self.error if isinstance(self.error, str) else "" if not self.error else str(self.error)
        finish = self.primary if self.primary in ANSWERLESS_CLASSES else self.finish_reason or "stop"
        if error and not text and finish == "stop":
            finish = "error"
        # no answer takes no time at all: where a line says so, it was not measured
        latency = self.latency_ms / 1000 if self.latency_ms else None
        return Answer(text=text, finish=finish, error=error, latency=latency)


def read_responses(paths: Sequence[str | Path], *, with_texts: bool = True) -> list[RecordedResponse]:
    """The responses of some files, in order, with or without their texts; one InputError with every line that cannot be read."""
    complaints = OutcomeProblemCollector()
    found: list[RecordedResponse] = []
    for file in files(paths, complaints):
        with collect_file_errors(file, complaints):
            before = len(found)
            found += (one if with_texts else _without_text(one) for one in _responses(file, complaints))
            if len(found) == before:
                raise UnreadableOutcomesError("no results in it; write one JSON object per line")
    complaints.settled()
    if not found:
        raise InputError("no results; name files of results in JSONL")
    return found


def _without_text(response: RecordedResponse) -> RecordedResponse:
    return msgspec.structs.replace(response, answer=msgspec.structs.replace(response.answer, text=""))


def _responses(file: OutcomeFile, complaints: OutcomeProblemCollector) -> Iterator[RecordedResponse]:
    with open_unpacked(file.path) as lines:
        for number, raw in enumerate(iter(lambda: lines.readline(MAX_OUTCOME_LINE_BYTES + 1), b""), 1):
            if len(raw) > MAX_OUTCOME_LINE_BYTES:
                raise UnreadableOutcomesError(f"a line of more than {MAX_OUTCOME_LINE_BYTES >> 20} MB", number)
            text = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
            if not text.strip():
                continue
            try:
                # half of a surrogate pair is not text; what is left of a character that was cut becomes U+FFFD
                whole = JSON_ESCAPE_PATTERN.sub(lambda match: rb"\ufffd" if match[1] else match[0], text)
                line = msgspec.json.decode(whole, type=_ResultLine)
            except msgspec.ValidationError as error:
                complaints.add(file, "shape", f"not a result of a suite: {error}", [number])
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                fault = json_error_location(text, error)
                complaints.add(file, "json", f"column {fault.column}: {fault.what}", [number])
            else:
                case = line.case_id if line.case_id is not None else line.id
                if case is None:
                    complaints.add(file, "case", "a result without case_id or id", [number])
                    continue
                yield RecordedResponse(
                    run=line.run_id or _run_name(file.path),
                    model=line.model_id or line.model or bare_file_name(file.path),
                    suite=line.suite_id or line.family or "",
                    case=str(case),
                    primary=line.primary,
                    is_detailed=line.classification is not None,
                    accuracy=line.accuracy,
                    answer=line.answer,
                )


def _run_name(path: Path) -> str:
    """The name of a run whose lines have none: that of its file, or of the folder of a file called `results`."""
    name = bare_file_name(path)
    return path.absolute().parent.name if name == "results" else name
