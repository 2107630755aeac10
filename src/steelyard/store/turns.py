"""The turns of conversations: each is stored before the next is asked for, so that none is paid for twice."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

import msgspec

from steelyard.records import Attempt, Record, Turn
from steelyard.store.files import TolerantDecoder

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
