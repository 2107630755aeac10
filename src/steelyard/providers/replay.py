"""Recorded replies, given again in the order they were recorded."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import zlib
from array import array
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from steelyard.errors import InputError, Problem, RecordedFailure
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings
from steelyard.providers.bodies import LenientNumbers, as_dict
from steelyard.records import Answer, Attempt, Case, Reply
from steelyard.text import JSON_ESCAPE_PATTERN, json_error_location, verbatim_reply

MAX_UNPACKED_RECORDING_BYTES = 4 << 30
"""Bytes a packed recording may unpack to."""
MAX_RECORDING_LINE_BYTES = 128 << 20
LONG_RECORDING_LINE_MESSAGE = f"a line of more than {MAX_RECORDING_LINE_BYTES >> 20} MB; write one reply to a line"
MAX_TIMESTAMP_CHARACTERS = 64
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

REPLY_TEXT_KEYS = ("raw_response", "response", "output")
"""The keys of the reply in results; the first is that of suites, and counts even if it is null."""
RECORDED_FAILURE_KINDS = ("timeout", "crash", "error")
"""What can have come instead of an answer, in the order in which the text of an error is searched for it."""
RECORDED_FAILURE_PATTERNS = {
    "timeout": r"timed?[ -]?out|deadline",
    "crash": r"\b(?:crash|segfault|segmentation fault|killed|panic|signal)",
}
RECORDED_FINISH_REASONS = {"max_tokens": "length", "end_turn": "stop"}
"""Other people's words for why a model stopped."""
RECORDED_NUMBER_KEYS = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "cost": ("cost_usd", "estimated_cost_usd"),
}
"""Where results keep what a reply took: on the line itself, or in its `usage` or `token_usage`."""
RECORDED_TIME_KEYS = ("timestamp_utc", "timestamp", "created_at")
JSON_TYPE_DESCRIPTIONS = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


class _RecordingLine(msgspec.Struct):
    """What a line of a recording may hold: ours, samples of a code benchmark, or results of a suite."""

    kind: str = ""
    case: str | None = None
    case_id: str | int | None = None
    task_id: str | int | None = None
    id: Any = None
    model: str | None = None
    model_id: str | None = None
    run_id: Any = None
    completion: str | None = None
    solution: str | None = None
    raw_response: Any = msgspec.UNSET
    response: Any = msgspec.UNSET
    output: Any = msgspec.UNSET
    error: Any = msgspec.UNSET
    classification: Any = msgspec.UNSET
    finish_reason: Any = None
    latency_ms: Any = None
    usage: Any = None
    token_usage: Any = None
    input_tokens: Any = None
    prompt_tokens: Any = None
    output_tokens: Any = None
    completion_tokens: Any = None
    cost_usd: Any = None
    estimated_cost_usd: Any = None
    timestamp_utc: Any = None
    timestamp: Any = None
    created_at: Any = None

    @property
    def about(self) -> str | None:
        names = (self.case, self.case_id, self.task_id, self.id if isinstance(self.id, str | int) else None)
        return next((str(name) for name in names if name is not None), None)

    @property
    def is_sample(self) -> bool:
        return self.completion is not None or self.solution is not None

    @property
    def is_result(self) -> bool:
        """Whether a suite's runner wrote the line, be it about a reply or about what came instead."""
        values = (*(getattr(self, name) for name in REPLY_TEXT_KEYS), self.error, self.classification)
        return any(each is not msgspec.UNSET for each in values) or (
            self.case_id is not None and self.run_id is not None
        )

    @property
    def answers(self) -> bool:
        return self.kind == "reply" or self.is_sample or self.is_result

    @property
    def texts(self) -> dict[str, Any]:
        """What may be the reply, by its key."""
        if self.raw_response is not msgspec.UNSET:
            return {"raw_response": self.raw_response}
        found = {name: getattr(self, name) for name in REPLY_TEXT_KEYS}
        return {name: text for name, text in found.items() if text is not msgspec.UNSET and text is not None}

    @property
    def text(self) -> str:
        """The reply, once it is known to be one; empty if there is none."""
        return next((text for text in self.texts.values() if text is not None), "")

    @property
    def said_error(self) -> str:
        """The error of a result, in any of its forms."""
        if not self.error:  # absent, null, false or empty
            return ""
        return self.error if isinstance(self.error, str) else msgspec.json.encode(self.error).decode()

    @property
    def instead(self) -> str:
        """The reason for a missing answer, from the recorded class or from the error; empty if there is an answer."""
        recorded = self.classification
        primary = recorded.get("primary") if isinstance(recorded, dict) else recorded
        if primary in RECORDED_FAILURE_KINDS:
            return str(primary)
        if self.text or not self.said_error:
            return ""
        return next(
            (
                kind
                for kind, sign in RECORDED_FAILURE_PATTERNS.items()
                if re.search(sign, self.said_error, re.IGNORECASE)
            ),
            "error",
        )

    @property
    def finish(self) -> str:
        reason = self.finish_reason
        return RECORDED_FINISH_REASONS.get(reason, reason) if isinstance(reason, str) and reason else "stop"

    def with_numbers(self, answer: Answer) -> Answer:
        """The answer with the time, tokens and cost in the line; what is not there stays unknown."""
        numbers = LenientNumbers()
        tables = ({name: getattr(self, name, None) for name in self.__struct_fields__}, self.usage, self.token_usage)
        told = {
            ours: next(
                (value for table in tables for word in words if (value := as_dict(table).get(word)) is not None), None
            )
            for ours, words in RECORDED_NUMBER_KEYS.items()
        }
        milliseconds = numbers.seconds("latency_ms", self.latency_ms)
        times = (getattr(self, name) for name in RECORDED_TIME_KEYS)
        return replace(
            answer,
            # no answer takes no time at all: where a recording says so, it was not measured
            latency=milliseconds / 1000 if milliseconds else None,
            input_tokens=numbers.tokens("input_tokens", told["input_tokens"]),
            output_tokens=numbers.tokens("output_tokens", told["output_tokens"]),
            cost=numbers.cost("cost_usd", told["cost"], "the recording"),
            recorded_at=next((time[:MAX_TIMESTAMP_CHARACTERS] for time in times if isinstance(time, str) and time), ""),
            note=numbers.note,
        )


_reply = msgspec.json.Decoder(Reply)
_line = msgspec.json.Decoder(_RecordingLine)


class _LaterReply(msgspec.Struct):
    """A reply that a later version wrote, with fields that this one does not know."""

    asked: str
    answer: dict[str, Any]


def _recorded_reply(line: bytes) -> Reply | _LaterReply:
    try:
        return _reply.decode(line)
    except msgspec.ValidationError:
        return msgspec.json.decode(line, type=_LaterReply)


_NUMBERS_PER_REPLY = 3


class ReplayProvider:
    """One model's recorded replies; only their places in the file are kept in memory."""

    at_once = 32

    def __init__(self, path: str, file: IO[bytes] | None) -> None:
        """`file` is the recording; None if it is in the journals of a run, which are opened when they are needed."""
        self.endpoint = f"replay:{path}"
        self._file = file
        self._paths: dict[Path, int] = {}
        self._places: dict[str, array[int]] = {}
        """For each reply to a case the number of its file, its start and its length there."""

    def add(self, case: str, path: Path, start: int, length: int) -> None:
        number = self._paths.setdefault(path, len(self._paths))
        if (places := self._places.get(case)) is None:
            self._places[case] = array("Q", (number, start, length))
        else:
            places.extend((number, start, length))

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:  # noqa: ARG002  nothing is sent
        begin = _NUMBERS_PER_REPLY * (attempt.number - 1)
        file, start, length = self._places[attempt.case.id][begin : begin + _NUMBERS_PER_REPLY]
        line = self._line(file, start, length)
        recorded = _decoded(line)
        if recorded.kind == "reply":
            reply = _recorded_reply(line)
            if reply.asked != attempt.asked:
                raise RecordedFailure(
                    f'{self.endpoint}: the recording for case "{attempt.case.id}" answers another prompt; '
                    "record it again, or use the prompt it was recorded with"
                )
            if isinstance(reply, Reply):
                return reply.answer
            known = {name: value for name, value in reply.answer.items() if name in Answer.__struct_fields__}
            return msgspec.convert(known, Answer)
        stub, language = attempt.case.verify.stub, attempt.case.language
        if stub is not None and recorded.completion is not None:
            # to the letter: the tool that recorded samples has also decided where they end
            return Answer(text=verbatim_reply(stub + recorded.completion, language))
        if stub is not None and recorded.solution is not None:
            return Answer(text=verbatim_reply(recorded.solution, language))
        if recorded.completion is not None:
            prompt = "\n\n".join(message.text for message in attempt.case.messages)
            return Answer(text=prompt + recorded.completion)
        if recorded.solution is not None:
            return Answer(text=recorded.solution)
        return self._result(recorded, attempt.case)

    def _line(self, number: int, start: int, length: int) -> bytes:
        if self._file is not None:
            return os.pread(self._file.fileno(), length, start)
        with list(self._paths)[number].open("rb") as file:
            return os.pread(file.fileno(), length, start)

    def _result(self, recorded: _RecordingLine, case: Case) -> Answer:
        """A line of a suite's results, judged again: its own classification counts only for missing answers."""
        instead, error = recorded.instead, recorded.said_error
        if case.kind == "response":
            return recorded.with_numbers(Answer(text=recorded.text, finish=instead or recorded.finish, error=error))
        if instead and not recorded.text:
            # a failed request says nothing about code that was never written
            raise RecordedFailure(
                f'{self.endpoint}: for case "{case.id}" an error was recorded and no reply: {error or instead}'
            )
        return recorded.with_numbers(Answer(text=recorded.text, finish=recorded.finish, error=error))

    def headroom(self) -> None:
        return None

    def available(self, case: str) -> int:
        return len(self._places.get(case, ())) // _NUMBERS_PER_REPLY

    def unmatched(self, cases: Collection[str]) -> int:
        """The number of recorded replies that belong to none of these cases."""
        return sum(self.available(case) for case in self._places if case not in cases)

    async def offers(self) -> list[OfferedModel]:
        replies = sum(map(self.available, self._places))
        return [OfferedModel(self.endpoint, f"{replies} replies to {len(self._places)} cases")]

    async def close(self) -> None:
        if self._file is not None:
            self._file.close()


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:  # noqa: ARG001  a recording has no settings
    """The models in a run folder or a JSONL file, each by the name it was recorded under.

    Half of a surrogate pair, which is what is left of a character where a text was cut in UTF-16, cannot be stored: it is
    replayed as the replacement character U+FFFD, as every writer of UTF-8 does it; the recording stays as it is.
    """
    path = Path(model)
    try:
        if path.is_dir():
            return dict(_in_journals(model, path))
        file = _seekable_recording(path)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"replay:{model}: {reason}; give a run folder or a file of recorded replies") from None
    try:
        found: dict[str, ReplayProvider] = {}
        _index_replies(found, lambda: ReplayProvider(model, file), path, file)
        return dict(_require_replies(found, model))
    except InputError:
        file.close()
        raise


def _in_journals(model: str, folder: Path) -> dict[str, ReplayProvider]:
    """The models in a run folder; one that was merged has several journals."""
    found: dict[str, ReplayProvider] = {}
    for path in sorted(folder.glob("attempts*.jsonl")) or [folder / "attempts.jsonl"]:
        with path.open("rb") as file:
            _index_replies(found, lambda: ReplayProvider(model, None), path, file)
    return _require_replies(found, model)


def _require_replies(found: dict[str, ReplayProvider], model: str) -> dict[str, ReplayProvider]:
    if not found:
        raise InputError(
            f"replay:{model}: no recorded replies in it; its lines need text under completion, solution or raw_response"
        )
    return found


def _index_replies(
    found: dict[str, ReplayProvider], another: Callable[[], ReplayProvider], path: Path, file: IO[bytes]
) -> None:
    """Add the places of the replies in a file, under the names of their models."""
    stem = path.name.partition(".")[0]
    start = 0
    for number, line in enumerate(iter(lambda: file.readline(MAX_RECORDING_LINE_BYTES + 1), b""), 1):
        if len(line) > MAX_RECORDING_LINE_BYTES:
            raise InputError([Problem(str(path), number, LONG_RECORDING_LINE_MESSAGE)])
        marks = len(BYTE_ORDER_MARK) if number == 1 and line.startswith(BYTE_ORDER_MARK) else 0
        try:
            recorded = _parse_recording_line(line[marks:])
        except InputError as error:
            raise InputError([Problem(str(path), number, str(error))]) from None
        if recorded is not None and recorded.answers:
            name = recorded.model or recorded.model_id or stem
            if recorded.about is None:
                raise InputError([Problem(str(path), number, "a reply without case, case_id, task_id or id")])
            if name not in found:
                found[name] = another()
            found[name].add(recorded.about, path, start + marks, len(line) - marks)
        start += len(line)


def _parse_recording_line(line: bytes) -> _RecordingLine | None:
    """What a line holds, if anything; raises InputError with what is wrong with it."""
    if not line.strip():
        return None
    try:
        recorded = _decoded(line)
    except msgspec.ValidationError as error:
        raise InputError(f"not a recorded reply: {_shape_problem(line, error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        fault = json_error_location(line, error)
        if not line.endswith(b"\n") and not fault.has_extra_value:
            return None  # cut off while it was recorded
        raise InputError(f"not a recorded reply: column {fault.column}: {fault.what}") from None
    if recorded.is_sample or not recorded.is_result:
        return recorded
    for name, text in recorded.texts.items():
        if not isinstance(text, str | None):
            raise InputError(
                f"{name} is {JSON_TYPE_DESCRIPTIONS[type(text)]}, not text; write the reply as a JSON string, or null"
            )
    if len(set(recorded.texts.values())) > 1:
        raise InputError(
            f"{' and '.join(recorded.texts)} differ, so it is not clear which is the reply; keep one of them"
        )
    return recorded


def _shape_problem(line: bytes, error: msgspec.ValidationError) -> str:
    """What kind of JSON a line is that is not part of a recording."""
    if line.lstrip().startswith(b"{"):
        return str(error)
    what = "a string that contains JSON" if re.match(rb'\s*"\s*\{', line) else "no JSON object"
    return f"column 1: {what}; write each reply as an object on its own line"


def _decoded(line: bytes) -> _RecordingLine:
    try:
        return _line.decode(line)
    except msgspec.DecodeError:
        if not any(match[1] for match in JSON_ESCAPE_PATTERN.finditer(line)):
            raise
    # as long as the original, so that columns do not move
    return _line.decode(JSON_ESCAPE_PATTERN.sub(lambda match: rb"\ufffd" if match[1] else match[0], line))


def _seekable_recording(path: Path) -> IO[bytes]:
    """The recording as a file whose places can be found again."""
    if path.suffix != ".gz":
        return path.open("rb")
    with gzip.open(path, "rb") as packed:
        plain = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the replay
        try:
            length = 0
            while piece := packed.read(1 << 20):
                # little on disk can be one line without end
                length = len(piece) - piece.rindex(b"\n") - 1 if b"\n" in piece else length + len(piece)
                if length > MAX_RECORDING_LINE_BYTES:
                    raise OSError(0, LONG_RECORDING_LINE_MESSAGE)
                if plain.tell() > MAX_UNPACKED_RECORDING_BYTES:
                    raise OSError(0, f"unpacks to more than {MAX_UNPACKED_RECORDING_BYTES >> 30} GiB")
                plain.write(piece)
        except BaseException:
            plain.close()
            raise
    plain.seek(0)
    return plain
