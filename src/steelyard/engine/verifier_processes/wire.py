"""What a run and the processes that verify for it send each other: frames of many items each."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

from steelyard.records import CaseLimit, Failure, Record, Reply, Verdict, WitnessResult

LENGTH = struct.Struct("!I")
"""What comes before each frame: its length in bytes."""
Received = TypeVar("Received")


class VerifierTerms(Record, frozen=True, kw_only=True):
    """The first message to a process."""

    run: str
    """A name that only the processes of one run share."""
    cases: bytes
    """The cases as JSON, which leaves defaults out, as a journal does."""
    level: str
    """The isolation level that the run found; a weaker one will not do."""
    allow_weak_sandbox: bool
    recheck: int
    controls: int | None
    control_key: str
    control_group: str
    """The control group that the run has divided; empty if there is none."""


class VerifierItem(Record, frozen=True, kw_only=True):
    """A reply to be verified."""

    number: int = 0
    """By which its process calls the result; given when it is handed over."""
    case: str
    reply: Reply
    limit: CaseLimit | None = None
    """The limit of its case, where the run knows it."""


class VerifierResult(Record, frozen=True, kw_only=True):
    """What became of it."""

    number: int
    fact: Verdict | Failure
    witnesses: tuple[WitnessResult, ...] = ()
    """Results of witnesses since the last time."""
    limits: tuple[CaseLimit, ...] = ()
    """Limits that were found since then."""


class FrameConnection(asyncio.Protocol, Generic[Received]):
    """One end of a socket: messages of one event-loop iteration are sent in one frame, and all received data is read at once."""

    def __init__(self, kind: Any, take_in: Callable[[Received], None], lost: Callable[[], None]) -> None:
        """`kind` is the type of a frame that is received."""
        self._decoder: msgspec.json.Decoder[Received] = msgspec.json.Decoder(kind)
        self._take_in, self._lost = take_in, lost
        self._received = bytearray()
        self._waiting: list[Record] = []
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        begin = 0
        while len(received) - begin >= LENGTH.size:
            (length,) = LENGTH.unpack_from(received, begin)
            end = begin + LENGTH.size + length
            if len(received) < end:
                break
            frame = bytes(memoryview(received)[begin + LENGTH.size : end])
            begin = end
            self._take_in(self._decoder.decode(frame))
        del received[:begin]

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  whatever it was, the other side is gone
        self.transport = None
        self._lost()

    def send(self, item: Record) -> None:
        """Send an item with all others of this round."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(item)

    def send_frame(self, content: Any) -> None:
        """Send a frame of its own at once."""
        if self.transport is not None:
            try:
                # JSON has numbers of any size, and what it cannot hold could not be stored either
                frame = msgspec.json.encode(content)
                length = LENGTH.pack(len(frame))
            except (TypeError, ValueError, OverflowError, RecursionError, struct.error):
                # the other side must not wait for what never comes: it hears that we are lost
                self.transport.abort()
                return
            self.transport.write(length + frame)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.send_frame(waiting)

    def close(self) -> None:
        """Hang up, once everything is sent."""
        if self._waiting:
            self._flush()
        if self.transport is not None:
            self.transport.close()
