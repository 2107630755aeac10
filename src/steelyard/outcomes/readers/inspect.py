"""Logs of Inspect: `.eval`, a zip archive with a file per sample, and `.json`."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.errors import Problem
from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.outcomes.readers.inspect_archive import InspectArchive
from steelyard.outcomes.readers.sources import decoded, json_document, number, text
from steelyard.protocols import ForeignFile
from steelyard.records import Answer, Cost, Message, RecordedAttempt, ToolCall

WHAT = "a log of Inspect"
ATTACHMENT_PREFIX = "attachment://"
ZIP_MAGIC = b"PK\x03\x04"
SCORE_WORDS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""What the words of a score are worth, as Inspect's own metrics count them."""
FINISHES = {"max_tokens": "length", "model_length": "length"}
SHORTENED_MARK = "(content truncated)"
"""How a target ends that Inspect cut off in a summary."""
COMPARED_SAMPLES = 32
"""About how many samples are compared with their summaries before the others are taken from there."""
COMPARED_FIELDS = ("case", "number", "judged_by", "target", "score", "scores")


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


class _Summary(msgspec.Struct, gc=False):
    """What a log says of a sample beside it; Inspect cuts off its long texts, but no values of its scores."""

    id: int | str
    epoch: int = 1
    target: Any = ""
    scores: dict[str, _Score] | None = None
    model_usage: dict[str, _Usage] | None = None

    @property
    def is_shortened(self) -> bool:
        """Whether the target, by which cases are told apart, may not be whole."""
        if isinstance(self.target, str):
            return self.target.endswith(SHORTENED_MARK)
        return isinstance(self.target, list) and SHORTENED_MARK in text(self.target)


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
        return self._read(path, texts=True)

    def outcomes(self, path: Path) -> Iterator[RecordedAttempt | Problem]:
        return self._read(path, texts=False)

    def _read(self, path: Path, *, texts: bool) -> Iterator[RecordedAttempt | Problem]:
        with path.open("rb") as file:
            is_archive = file.read(4) == ZIP_MAGIC
        if is_archive:
            yield from _archived_attempts(path, texts=texts)
            return
        log = json_document(path, _Log, WHAT)
        yield from _status_problems(path, log)
        if log.samples is None:
            raise UnreadableOutcomesError("a log without samples; Inspect writes them without --no-log-samples")
        scorers = _scorer_names(log)
        for sample in log.samples:
            yield _attempt(log.eval, scorers, sample)


def _archived_attempts(path: Path, *, texts: bool) -> Iterator[RecordedAttempt | Problem]:
    """The attempts in an archive; those without texts come from the summaries of its samples, where these can be used."""
    try:
        with zipfile.ZipFile(path) as zipped, path.open("rb") as file:
            archive = InspectArchive(zipped, file)
            header = decoded(archive.header, _Header, WHAT)
            yield from _status_problems(path, header)
            log = _ArchivedLog(archive, header.eval, _scorer_names(header))
            summaries = None if texts else log.summaries()
            if summaries is None:
                yield from (_attempt(log.spec, log.scorers, log.sample(name)) for name in archive.samples)
            else:
                yield from log.outcomes(summaries)
    except (zipfile.BadZipFile, struct.error, zlib.error, EOFError, NotImplementedError) as error:
        raise UnreadableOutcomesError(f"a damaged zip archive: {str(error)[:200]}") from None


class _ArchivedLog:
    """The samples of an archive, whole or as the log sums them up."""

    def __init__(self, archive: InspectArchive, spec: _Spec, scorers: list[str]) -> None:
        self.archive = archive
        self.spec = spec
        self.scorers = scorers
        self._decode = msgspec.json.Decoder(_Sample).decode

    def sample(self, name: str) -> _Sample:
        """A whole sample."""
        raw = self.archive.unpacked(self.archive.samples[name])
        try:
            sample = self._decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            sample = decoded(raw, _Sample, f"a sample of Inspect: {name[:200]}")
        parts = self.archive.attachments(name)
        texts = (text for part in parts for text in decoded(part, list[str], f"attachments of Inspect: {name[:200]}"))
        sample.attachments.update((str(number), text) for number, text in enumerate(texts))
        return sample

    def summaries(self) -> Iterable[_Summary] | None:
        """The summaries of all samples, in their order; None where the samples have to be read themselves."""
        for source in self.archive.summary_sources():
            try:
                # what is small is decoded once, what is large once more when it is asked for
                found = list(self._decoded_summaries(source)) if len(source) == 1 else self._decoded_summaries(source)
                if self._sum_up(found):
                    return found if isinstance(found, list) else self._decoded_summaries(source)
            except UnreadableOutcomesError:
                continue
        return None

    def _decoded_summaries(self, source: list[zipfile.ZipInfo]) -> Iterator[_Summary]:
        for member in source:
            yield from decoded(self.archive.unpacked(member), list[_Summary], "summaries of Inspect")

    def _sum_up(self, summaries: Iterable[_Summary]) -> bool:
        """Whether there is one summary for each sample, and some of the samples say the same as their summaries."""
        step = max(1, len(self.archive.samples) // COMPARED_SAMPLES)
        names = enumerate(self.archive.samples)
        for summary in summaries:
            position, name = next(names, (0, ""))
            if name != f"samples/{summary.id}_epoch_{summary.epoch}" or summary.model_usage is None:
                return False
            if position % step == 0 and not summary.is_shortened:
                known = self._outcome(summary)
                whole = _attempt(self.spec, self.scorers, self.sample(name))
                if any(getattr(known, field) != getattr(whole, field) for field in COMPARED_FIELDS):
                    return False
        return next(names, None) is None

    def outcomes(self, summaries: Iterable[_Summary]) -> Iterator[RecordedAttempt]:
        """The attempts as their summaries have them: without prompts, replies and reasons."""
        for name, summary in zip(self.archive.samples, summaries, strict=True):
            if summary.is_shortened:
                yield _attempt(self.spec, self.scorers, self.sample(name))
            else:
                yield self._outcome(summary)

    def _outcome(self, summary: _Summary) -> RecordedAttempt:
        values = dict(_values(summary.scores or {}))
        scorer, score = _headline_score(self.scorers, values)
        usd = _cost(list((summary.model_usage or {}).values()))
        return RecordedAttempt(
            case=f"{self.spec.task}/{summary.id}",
            model=self.spec.model,
            judged_by=_judged_by(self.scorers, scorer),
            number=summary.epoch,
            score=score,
            scores=_named_scores(scorer, values),
            answer=None if usd is None else Answer(text="", cost=Cost(usd=usd, source="inspect")),
            target=summary.target if isinstance(summary.target, str) else text(summary.target),
            failure="" if score is not None or _is_open(scorer, values) else "not scored",
        )


def _status_problems(path: Path, header: _Header) -> Iterator[Problem]:
    if header.status != "success":
        yield Problem(str(path), 0, f"its status is {header.status[:80]}: what it has is read", fatal=False)


def _scorer_names(header: _Header) -> list[str]:
    """The scorers that decide, the headline first."""
    headline = header.results.headline.score if header.results and header.results.headline else ""
    return list(filter(None, [headline, *(scorer.name for scorer in header.eval.scorers or ())]))


def _attempt(spec: _Spec, named: list[str], sample: _Sample) -> RecordedAttempt:
    values = dict(_values(sample.scores or {}))
    scorer, score = _headline_score(named, values)
    failure = ""
    if score is None and not _is_open(scorer, values):
        failure = sample.error.message if sample.error else sample.output.error or "not scored"
    limit = sample.limit.type if sample.limit else ""
    explanation = (sample.scores or {})[scorer].explanation if scorer in (sample.scores or {}) else ""
    return RecordedAttempt(
        case=f"{spec.task}/{sample.id}",
        model=spec.model,
        judged_by=_judged_by(named, scorer),
        tool=f"inspect-ai {spec.packages.get('inspect_ai', '')}".strip(),
        number=sample.epoch,
        score=score,
        scores=_named_scores(scorer, values),
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


def _headline_score(named: list[str], values: dict[str, float | None]) -> tuple[str, float | None]:
    """The scorer that decides, and what it says; an empty name where nothing was scored.

    Of a score of several values one decides only if the log calls it the headline; otherwise a user has to name it.
    """
    found = next((name for name in named if name in values), None)
    if found is None:
        found = next((name for name in named for scorer in values if scorer.startswith(f"{name}/")), "")
        parts = [name for name in values if name.startswith(f"{found}/")] if found else list(values)
        headline = [part for part in parts if part.rpartition("/")[2] in named]
        if len(headline) == 1 or len(parts) == 1:
            found = (headline or parts)[0]
    return found, values.get(found)


def _is_open(scorer: str, values: dict[str, float | None]) -> bool:
    """Whether there are scores of which none is known to decide."""
    return scorer not in values and any(value is not None for value in values.values())


def _named_scores(scorer: str, values: dict[str, float | None]) -> dict[str, float]:
    """All scores, the one that decides first."""
    names = [scorer, *(name for name in values if name != scorer)] if scorer in values else list(values)
    return {name: value for name in names if (value := values[name]) is not None} if len(values) > 1 else {}


def _judged_by(named: list[str], scorer: str) -> str:
    return f"inspect {scorer or next(iter(named), 'scorer')}"


def _values(scores: dict[str, _Score]) -> Iterator[tuple[str, float | None]]:
    """What each score is worth; a score of several values is as many scores."""
    for name, score in scores.items():
        if isinstance(score.value, dict):
            yield from ((f"{name}/{key}", _value(value)) for key, value in score.value.items())
        else:
            yield name, _value(score.value)


def _value(value: Any) -> float | None:
    """A value as a number; None if it is not one."""
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
    """The text of a message; other parts appear as JSON."""
    if isinstance(content, list):
        texts = (
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content
        )
        return "\n".join(
            text(part) if found is None else text(found) for part, found in zip(content, texts, strict=True)
        )
    return text(content)


def _total(usage: list[_Usage], name: str) -> int | None:
    """The tokens of all models together; None if they were not counted."""
    if len(usage) == 1:
        counted: int | None = getattr(usage[0], name)
        if counted is None or type(counted) is int:
            return counted
    found = [value for each in usage if (value := number(getattr(each, name))) is not None]
    return int(sum(found)) if found else None


def _cost(usage: list[_Usage]) -> float | None:
    """What all models cost together; None where a price is unknown."""
    costs = [None if each.total_cost is None else number(each.total_cost) for each in usage]
    return sum(cost for cost in costs if cost is not None) if costs and None not in costs else None


def _answer(sample: _Sample) -> Answer:
    choice = sample.output.choices[0] if sample.output.choices else _Choice()
    usage = list(sample.model_usage.values())
    usd = _cost(usage)
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
