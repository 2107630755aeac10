"""The original bodies of responses and the turns of conversations: what was paid for is stored before it is interpreted."""

from __future__ import annotations

import base64
import os
from collections.abc import Container, Iterator
from pathlib import Path

import msgspec

from steelyard.records import Attempt, Record, Turn
from steelyard.store.files import TolerantDecoder, open_to_append

RESPONSES_FILE = "responses.jsonl"


class ResponseBody(Record, frozen=True, kw_only=True):
    """The body of one response; no header and no key is in it."""

    key: str
    """The ask key of the attempt."""
    at: str
    case: str
    model: str
    number: int
    body: str = ""
    base64: str = ""
    """The body if it is not UTF-8."""


def response_body(attempt: Attempt, at: str, content: bytes) -> ResponseBody:
    """A body as it is stored."""
    try:
        text, packed = content.decode(), ""
    except UnicodeDecodeError:
        text, packed = "", base64.b64encode(content).decode()
    return ResponseBody(
        key=attempt.key,
        at=at,
        case=attempt.case.id,
        model=attempt.model,
        number=attempt.number,
        body=text,
        base64=packed,
    )


class RecordLog:
    """A file of records of a run in progress, one per line; it is created with the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._unsynced = False

    def append(self, record: Record) -> None:
        """Write one record; raises OSError, after which no half line stands before the next."""
        if self._file is None:
            self._file = open_to_append(self._path)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                os.write(self._file, b"\n")
        line = memoryview(msgspec.json.encode(record) + b"\n")
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError:
            self.close()
            raise
        self._unsynced = True

    def sync(self) -> None:
        """Make what was written survive the death of the machine; raises OSError."""
        if self._unsynced and self._file is not None:
            self._unsynced = False
            os.fsync(self._file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def copy_records(source: Path, target: Path, pattern: str) -> None:
    """Add the records of the files of one run folder to a file of another."""
    for path in sorted(source.glob(pattern)):
        with path.open("rb") as read, os.fdopen(open_to_append(target), "ab") as written:
            written.writelines(line for line in read if line.endswith(b"\n"))


TURNS_FILE = "turns.jsonl"
MAX_TURN_LINE_BYTES = 128 << 20


class StoredTurn(Record, frozen=True, kw_only=True):
    """One turn of a conversation that may be unfinished; a later line about the same turn replaces this one."""

    key: str
    """The ask key of the attempt."""
    case: str
    model: str
    number: int
    index: int
    """Which turn of the conversation it is, from 0."""
    tier: str = ""
    turn: Turn


def stored_turn(attempt: Attempt, key: str, index: int, turn: Turn) -> StoredTurn:
    """A turn of an attempt with this key as it is stored."""
    return StoredTurn(
        key=key,
        case=attempt.case.id,
        model=attempt.model,
        number=attempt.number,
        tier=attempt.tier,
        index=index,
        turn=turn,
    )


_turn: TolerantDecoder[StoredTurn] = TolerantDecoder(StoredTurn)


def unfinished_conversations(folder: Path, finished: Container[str]) -> dict[str, list[StoredTurn]]:
    """The turns of conversations without a reply, by ask key; unreadable lines are ignored."""
    found: dict[str, list[StoredTurn]] = {}
    for path in sorted(folder.glob("turns*.jsonl")):
        for stored in _stored_turns(path):
            if stored.key in finished:
                continue
            turns = found.setdefault(stored.key, [])
            if stored.index < len(turns):
                del turns[stored.index :]
            # a turn whose forerunner is lost has no place
            if stored.index == len(turns):
                turns.append(stored)
    return {key: turns for key, turns in found.items() if turns}


def _stored_turns(path: Path) -> Iterator[StoredTurn]:
    with path.open("rb") as file:
        while line := file.readline(MAX_TURN_LINE_BYTES):
            if not line.endswith(b"\n"):
                return
            try:
                yield _turn.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
