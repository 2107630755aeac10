"""Logs of Inspect: `.eval`, a zip archive with a file per sample, and `.json`."""

from __future__ import annotations

import importlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from steelyard.errors import Problem
from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.outcomes.readers.sources import decoded, json_document, number, text
from steelyard.protocols import ForeignFile
from steelyard.records import Answer, Cost, Message, RecordedAttempt, ToolCall

MAX_SAMPLE_BYTES = 1 << 30
"""Bytes of one sample when it is unpacked."""
MAX_ARCHIVE_BYTES = 256 << 30
"""Bytes of all samples when they are unpacked."""
ATTACHMENT_PREFIX = "attachment://"
ZSTANDARD_METHOD = 93
LOCAL_HEADER_BYTES = 30
ZIP_MAGIC = b"PK\x03\x04"
SCORE_WORDS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""What the words of a score are worth, as Inspect's own metrics count them."""
FINISHES = {"max_tokens": "length", "model_length": "length"}


class _Score(msgspec.Struct, gc=False):
    value: Any = None
    explanation: str | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: Any = None
    output_tokens: Any = None
    input_tokens_cache_read: Any = None
    reasoning_tokens: Any = None
    total_cost: Any = None


class _Call(msgspec.Struct, gc=False):
    function: str = ""
    arguments: Any = None
    id: str = ""


class _ChoiceMessage(msgspec.Struct, gc=False):
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct, gc=False):
    message: _ChoiceMessage = msgspec.field(default_factory=_ChoiceMessage)
    stop_reason: str = "stop"


class _Output(msgspec.Struct, gc=False):
    choices: list[_Choice] = []
    completion: str = ""
    error: str | None = None


class _InspectMessage(msgspec.Struct, gc=False):
    role: str = "user"
    content: Any = ""


class _Error(msgspec.Struct, gc=False):
    message: str = ""


class _Limit(msgspec.Struct, gc=False):
    type: str = ""


class _Sample(msgspec.Struct, gc=False):
    id: int | str
    epoch: int = 1
    input: str | list[_InspectMessage] = ""
    target: Any = ""
    output: _Output = msgspec.field(default_factory=_Output)
    scores: dict[str, _Score] | None = None
    model_usage: dict[str, _Usage] = {}
    started_at: str | None = None
    working_time: Any = None
    total_time: Any = None
    error: _Error | None = None
    limit: _Limit | None = None
    attachments: dict[str, str] = {}


class _Scorer(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct):
    task: str = ""
    model: str = ""
    packages: dict[str, str] = {}
    scorers: list[_Scorer] | None = None


class _Headline(msgspec.Struct):
    score: str = ""


class _Results(msgspec.Struct):
    headline: _Headline | None = None


class _Header(msgspec.Struct):
    eval: _Spec
    status: str = "started"
    results: _Results | None = None


class _Log(_Header):
    samples: list[_Sample] | None = None


class InspectReader:
    """Reads the logs of Inspect."""

    def recognises(self, file: ForeignFile) -> bool:
        if file.beginning.startswith(ZIP_MAGIC):
            return file.path.suffix == ".eval" or b"_journal/start.json" in file.beginning[:200]
        return file.beginning.startswith(b"{") and all(
            b'"%b"' % key in file.beginning for key in (b"eval", b"task", b"task_id", b"dataset")
        )

    def attempts(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        with path.open("rb") as file:
            is_archive = file.read(4) == ZIP_MAGIC
        if is_archive:
            yield from _archived_attempts(path)
            return
        log = json_document(path, _Log, "a log of Inspect")
        yield from _status_problems(path, log)
        if log.samples is None:
            raise UnreadableOutcomesError("a log without samples; Inspect writes them without --no-log-samples")
        scorers = _scorer_names(log)
        for sample in log.samples:
            yield _attempt(log.eval, scorers, sample)


def _archived_attempts(path: Path) -> Iterator[RecordedAttempt | Problem]:
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_ARCHIVE_BYTES:
                raise UnreadableOutcomesError(f"more than {MAX_ARCHIVE_BYTES >> 30} GB when unpacked")
            unpack = _Unpacking(file)
            named = {member.filename: member for member in members if not member.filename.startswith("samples/")}
            head = named.get("header.json") or named.get("_journal/start.json")
            if head is None:
                raise UnreadableOutcomesError("not a log of Inspect: it has no header.json")
            header = decoded(unpack(head), _Header, "a log of Inspect")
            yield from _status_problems(path, header)
            # what was written twice counts as it was written last
            samples = {member.filename: member for member in members if member.filename.startswith("samples/")}
            scorers, decode = _scorer_names(header), msgspec.json.Decoder(_Sample).decode
            for member in samples.values():
                raw = unpack(member)
                try:
                    sample = decode(raw)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    sample = decoded(raw, _Sample, f"a sample of Inspect: {member.filename[:200]}")
                yield _attempt(header.eval, scorers, sample)
    except (zipfile.BadZipFile, struct.error, zlib.error, EOFError, NotImplementedError) as error:
        raise UnreadableOutcomesError(f"a damaged zip archive: {str(error)[:200]}") from None


class _Unpacking:
    """The members of an archive, read past zipfile, which takes longer to open a sample than to unpack it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._zstandard: Callable[[bytes, int], Any] | None = None

    def __call__(self, member: zipfile.ZipInfo) -> Any:
        if member.file_size > MAX_SAMPLE_BYTES or member.compress_size > MAX_SAMPLE_BYTES:
            raise UnreadableOutcomesError(f"{member.filename[:200]}: more than {MAX_SAMPLE_BYTES >> 30} GB")
        self._file.seek(member.header_offset)
        names = struct.unpack("<HH", self._file.read(LOCAL_HEADER_BYTES)[26:])
        self._file.seek(sum(names), 1)
        packed = self._file.read(member.compress_size)
        if member.compress_type == zipfile.ZIP_STORED:
            return packed
        if member.compress_type == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.file_size)
        if member.compress_type != ZSTANDARD_METHOD:
            raise UnreadableOutcomesError(f"packed by method {member.compress_type}, which is not known")
        self._zstandard = self._zstandard or _zstandard_function()
        try:
            return self._zstandard(packed, member.file_size)
        except Exception as error:  # noqa: BLE001  each library has exceptions of its own
            raise UnreadableOutcomesError(f"{member.filename[:200]}: cannot be unpacked: {str(error)[:200]}") from None


def _zstandard_function() -> Callable[[bytes, int], Any]:
    """Who can unpack Zstandard: Python from 3.14 on, or a library that Inspect or our own extra installs."""
    for name in ("compression.zstd", "zstandard", "pyarrow"):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        if name == "compression.zstd":
            return lambda packed, size: library.ZstdDecompressor().decompress(packed, size)
        if name == "zstandard":
            unpacker = library.ZstdDecompressor()
            return lambda packed, size: unpacker.decompress(packed, max_output_size=size)
        return lambda packed, size: library.decompress(packed, decompressed_size=size, codec="zstd", asbytes=True)
    raise UnreadableOutcomesError('packed with Zstandard, which needs: pip install "steelyard[parquet]"')


def _status_problems(path: Path, header: _Header) -> Iterator[Problem]:
    if header.status != "success":
        yield Problem(str(path), 0, f"its status is {header.status[:80]}: what it has is read", fatal=False)


def _scorer_names(header: _Header) -> list[str]:
    """The scorers that decide, the headline first."""
    headline = header.results.headline.score if header.results and header.results.headline else ""
    return list(filter(None, [headline, *(scorer.name for scorer in header.eval.scorers or ())]))


def _attempt(spec: _Spec, named: list[str], sample: _Sample) -> RecordedAttempt:
    values = dict(_values(sample.scores or {}))
    scorer = next((name for name in named if name in values), next(iter(values), ""))
    score = values.get(scorer)
    failure = ""
    if score is None:
        failure = sample.error.message if sample.error else sample.output.error or "not scored"
    limit = sample.limit.type if sample.limit else ""
    explanation = (sample.scores or {})[scorer].explanation if scorer in (sample.scores or {}) else ""
    return RecordedAttempt(
        case=f"{spec.task}/{sample.id}",
        model=spec.model,
        judged_by=f"inspect {scorer or next(iter(named), 'scorer')}",
        tool=f"inspect-ai {spec.packages.get('inspect_ai', '')}".strip(),
        number=sample.epoch,
        passed=None if score is None else score >= 1,
        score=score,
        answer=None if failure and not sample.output.choices else _answer(sample),
        prompt=_prompt(sample),
        target=sample.target if isinstance(sample.target, str) else text(sample.target),
        label="" if score is None or score >= 1 else limit,
        reason=_resolved(sample, explanation or "") if score is not None and score < 1 else "",
        levels={name: value >= 1 for name, value in values.items() if value is not None} if len(values) > 1 else {},
        failure=failure,
        tags=(spec.task,) if spec.task else (),
        at=sample.started_at or "",
    )


def _values(scores: dict[str, _Score]) -> Iterator[tuple[str, float | None]]:
    """What each score is worth; a score of several values is as many scores."""
    for name, score in scores.items():
        if isinstance(score.value, dict):
            yield from ((f"{name}/{key}", _value(value)) for key, value in score.value.items())
        else:
            yield name, _value(score.value)


def _value(value: Any) -> float | None:
    """What a value is worth as a number; None if it has none."""
    if value == "C":
        return 1.0
    if value == "I":
        return 0.0
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return SCORE_WORDS[value.lower()] if value.lower() in SCORE_WORDS else number(float(value))
        except ValueError:
            return 0.0
    return number(value)


def _resolved(sample: _Sample, value: str) -> str:
    """A text, from the attachments where it was put there."""
    return sample.attachments.get(value.removeprefix(ATTACHMENT_PREFIX), value) if value.startswith("att") else value


def _prompt(sample: _Sample) -> str | tuple[Message, ...]:
    if isinstance(sample.input, str):
        return _resolved(sample, sample.input)
    return tuple(
        Message(role=message.role, content=_resolved(sample, _content(message.content))) for message in sample.input
    )


def _content(content: Any) -> str:
    """The text of a message; what is no text stands there as JSON."""
    if isinstance(content, list):
        texts = (
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content
        )
        return "\n".join(
            text(part) if found is None else text(found) for part, found in zip(content, texts, strict=True)
        )
    return text(content)


def _total(usage: list[_Usage], name: str) -> int | None:
    """The tokens of all models together; None where nobody counted them."""
    if len(usage) == 1:
        counted: int | None = getattr(usage[0], name)
        if counted is None or type(counted) is int:
            return counted
    found = [value for each in usage if (value := number(getattr(each, name))) is not None]
    return int(sum(found)) if found else None


def _answer(sample: _Sample) -> Answer:
    choice = sample.output.choices[0] if sample.output.choices else _Choice()
    usage = list(sample.model_usage.values())
    costs = [None if each.total_cost is None else number(each.total_cost) for each in usage]
    usd = sum(cost for cost in costs if cost is not None) if costs and None not in costs else None
    return Answer(
        text=_resolved(sample, sample.output.completion),
        finish=FINISHES.get(choice.stop_reason, choice.stop_reason),
        input_tokens=_total(usage, "input_tokens"),
        output_tokens=_total(usage, "output_tokens"),
        cached_tokens=_total(usage, "input_tokens_cache_read"),
        reasoning_tokens=_total(usage, "reasoning_tokens"),
        cost=None if usd is None else Cost(usd=usd, source="inspect"),
        latency=number(sample.working_time) or number(sample.total_time),
        tool_calls=tuple(
            ToolCall(name=call.function, arguments=text(call.arguments), id=call.id)
            for call in choice.message.tool_calls
        )
        if choice.message.tool_calls
        else (),
    )
