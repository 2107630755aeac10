"""Recorded replies, given again in the order they were recorded."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from pathlib import Path
from typing import IO

import msgspec

from steelyard.errors import InputError, Problem, Rejected
from steelyard.protocols import Offer, Provider, ProviderSettings
from steelyard.records import Answer, Attempt, Reply
from steelyard.verbatim import marked

LARGEST = 4 << 30
"""Bytes a packed recording may unpack to."""


class _Line(msgspec.Struct):
    """What a line of a recording may hold: ours, samples of a code benchmark, or results of a suite."""

    kind: str = ""
    case: str | None = None
    case_id: str | None = None
    task_id: str | int | None = None
    model: str | None = None
    model_id: str | None = None
    completion: str | None = None
    solution: str | None = None
    raw_response: str | None = None

    @property
    def about(self) -> str | None:
        return next((str(name) for name in (self.case, self.case_id, self.task_id) if name is not None), None)

    @property
    def answers(self) -> bool:
        return self.kind == "reply" or not (
            self.completion is None and self.solution is None and self.raw_response is None
        )


_reply = msgspec.json.Decoder(Reply)
_line = msgspec.json.Decoder(_Line)


class Replay:
    """One model's recorded replies; only their places in the file are kept in memory."""

    at_once = 32

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self.endpoint = f"replay:{path}"
        self._file = file
        self._places: dict[str, list[tuple[int, int]]] = {}

    def add(self, case: str, start: int, length: int) -> None:
        self._places.setdefault(case, []).append((start, length))

    async def ask(self, attempt: Attempt) -> Answer:
        start, length = self._places[attempt.case.id][attempt.number - 1]
        line = os.pread(self._file.fileno(), length, start)
        recorded = _line.decode(line)
        if recorded.kind == "reply":
            reply = _reply.decode(line)
            if reply.asked != attempt.asked:
                raise Rejected(
                    f'{self.endpoint}: the recording for case "{attempt.case.id}" answers another prompt; '
                    "record it again, or use the prompt it was recorded with"
                )
            return reply.answer
        stub, language = attempt.case.verify.stub, attempt.case.language
        if stub is not None and recorded.completion is not None:
            # to the letter: whoever recorded samples has also decided where they end
            return Answer(text=marked(stub + recorded.completion, language))
        if stub is not None and recorded.solution is not None:
            return Answer(text=marked(recorded.solution, language))
        if recorded.completion is not None:
            prompt = "\n\n".join(message.content for message in attempt.case.messages)
            return Answer(text=prompt + recorded.completion)
        return Answer(text=recorded.solution or recorded.raw_response or "")

    def headroom(self) -> None:
        return None

    def available(self, case: str) -> int:
        return len(self._places.get(case, ()))

    async def offers(self) -> list[Offer]:
        return [Offer(self.endpoint, f"{sum(map(len, self._places.values()))} replies to {len(self._places)} cases")]

    async def close(self) -> None:
        self._file.close()


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:  # noqa: ARG001  a recording has no settings
    """The models in a run folder or a JSONL file, each by the name it was recorded under."""
    path = Path(model)
    if path.is_dir():
        path = path / "attempts.jsonl"
    try:
        file = _plain(path)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"replay:{model}: {reason}; give a run folder or a file of recorded replies") from None
    try:
        return dict(_models(model, path, file))
    except InputError:
        file.close()
        raise


def _models(model: str, path: Path, file: IO[bytes]) -> dict[str, Replay]:
    stem = path.name.partition(".")[0]
    found: dict[str, Replay] = {}
    start = 0
    for number, line in enumerate(file, 1):
        recorded = _recorded(line, path, number)
        if recorded is not None and recorded.answers:
            name = recorded.model or recorded.model_id or stem
            if recorded.about is None:
                raise InputError([Problem(str(path), number, "a reply without case, case_id or task_id")])
            found.setdefault(name, Replay(model, file)).add(recorded.about, start, len(line))
        start += len(line)
    if not found:
        raise InputError(
            f"replay:{model}: no recorded replies in it; its lines need text under completion, solution or raw_response"
        )
    return found


def _recorded(line: bytes, path: Path, number: int) -> _Line | None:
    if not line.strip():
        return None
    try:
        return _line.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if not line.endswith(b"\n"):
            return None  # cut off while it was recorded
        raise InputError([Problem(str(path), number, f"not a recorded reply: {error}")]) from None


def _plain(path: Path) -> IO[bytes]:
    """The recording as a file whose places can be found again."""
    if path.suffix != ".gz":
        return path.open("rb")
    with gzip.open(path, "rb") as packed:
        plain = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the replay
        try:
            while piece := packed.read(1 << 20):
                if plain.tell() > LARGEST:
                    raise OSError(0, f"unpacks to more than {LARGEST >> 30} GiB")
                plain.write(piece)
        except BaseException:
            plain.close()
            raise
    plain.seek(0)
    return plain
