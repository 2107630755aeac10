"""How the tests and the code under test talk: plain data crosses, and nothing else.

A value arrives as what it says it is or not at all: there is no class, no method and no reference in it. What is not
plain stays where it is and is spoken of by a number. Only the standard library is used: this module is loaded by bare
interpreters on both sides.
"""

from __future__ import annotations

import base64
import builtins
import datetime
import json
import math
import os
import struct
from abc import ABC, abstractmethod
from collections import deque
from decimal import Decimal
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_WIRE_MESSAGE_BYTES = 16 << 20
"""Bytes of one message."""
MAX_EXCEPTION_CHARS, MAX_REPR_CHARS = 1000, 200
"""Characters of an exception's words, and of a value's."""
MAX_VALUE_DEPTH = 100
"""How deep lists may stand in lists."""
FIRST_HEX_INTEGER = 1 << 63
"""Whole numbers from here on are written in hexadecimal: no limit on digits, and no quadratic conversion."""
CONTAINER_TYPE_TAGS: tuple[tuple[Any, str], ...] = ((set, "s"), (frozenset, "z"), (deque, "q"), (tuple, "t"))
DATE_TYPES: dict[str, Any] = {"date": datetime.date, "datetime": datetime.datetime, "time": datetime.time}


_STRICT_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_LENIENT_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False, ensure_ascii=False).encode
_JSON_DECODE = json.JSONDecoder().raw_decode
"""What `json.loads` does, without looking for blanks around the text: they cost more than a small message."""


class PeerGone(BaseException):
    """The other side is no longer there; nothing that catches exceptions shall catch this."""


class OversizedValueError(Exception):
    """A value too large or too deep to cross."""


class MessageSocket:
    """A socket that carries messages of bounded size."""

    def __init__(self, fd: int, *, lenient: bool = False) -> None:
        self._fd = fd
        self._lenient = lenient
        """Whether invalid text may be repaired: it is shown to people, and is not data for a test."""
        self._rest = b""
        self.lost = False
        """Whether the other side is gone, even if the code under test caught the exception."""

    def send(self, message: Any) -> None:
        written = (_LENIENT_ENCODE if self._lenient else _STRICT_ENCODE)(message)
        body = written.encode("utf-8", "replace")
        if len(body) > MAX_WIRE_MESSAGE_BYTES:
            raise OversizedValueError(f"more than {MAX_WIRE_MESSAGE_BYTES >> 20} MB")
        frame = struct.pack("I", len(body)) + body
        try:
            while frame:
                frame = frame[os.write(self._fd, frame) :]
        except OSError:
            raise self.gone() from None

    def receive(self) -> list[Any]:
        (length,) = struct.unpack("I", self._take(4))
        if length > MAX_WIRE_MESSAGE_BYTES:
            raise self.gone()
        try:
            text = self._take(length).decode()
            message, end = _JSON_DECODE(text)
        except (ValueError, RecursionError):
            raise self.gone() from None  # a side that sends something else counts as gone
        if end != len(text) or not isinstance(message, list) or not message:
            raise self.gone()
        return message

    def _take(self, length: int) -> bytes:
        while len(self._rest) < length:
            try:
                piece = os.read(self._fd, max(65536, length - len(self._rest)))
            except OSError:
                raise self.gone() from None
            if not piece:
                raise self.gone()
            self._rest += piece
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken

    def gone(self, why: str = "") -> PeerGone:
        """What to raise when the other side is gone."""
        self.lost = True
        return PeerGone(why)


class RpcPeer(MessageSocket, ABC):
    """One of two sides that can ask each other, also while being asked."""

    @abstractmethod
    def perform(self, request: list[Any]) -> list[Any]:
        """The reply to a request: ["ok", value, ...] or ["raised", ...]."""

    @abstractmethod
    def refused(self, why: str) -> list[Any]:
        """The reply to a request whose result cannot cross."""

    def ask(self, *request: Any) -> list[Any]:
        """What the other side says to a request."""
        self.send(["ask", *request])
        while True:
            message = self.receive()
            if message[0] != "ask":
                return message
            self.answer(message[1:])

    def answer(self, request: list[Any]) -> None:
        """Do what is asked, and send the result, or that it is too large to be sent."""
        try:
            self.send(self.perform(request))
        except (OversizedValueError, ValueError) as error:
            self.send(self.refused(f"{type(error).__name__}: {error}"))


def exception_text(error: BaseException) -> str:
    """An exception in words, whatever it does to avoid that; one that stands for another's carries its words."""
    try:
        if "said" in error.__dict__:
            return str(error.__dict__["said"])
        text = str(error)[:MAX_EXCEPTION_CHARS]
    except PeerGone:
        raise
    except BaseException:
        text = "(an exception that cannot be printed)"
    name = type(error).__name__[:100]
    # half characters, which neither a file nor another program could take, are left out
    return (f"{name}: {text}" if text else name).encode("utf-8", "replace").decode("utf-8")


def short_repr(value: object) -> str:
    """A value as a reader wants to see it."""
    try:
        text = repr(value)
    except PeerGone:
        raise
    except BaseException:
        text = f"({type(value).__name__} that cannot be printed)"
    return text if len(text) <= MAX_REPR_CHARS else text[:MAX_REPR_CHARS] + "..."


def encoded_value(value: Any, other: Any, depth: int = 0) -> Any:
    """A value as JSON can carry it; `other` says what becomes of what is not plain."""
    kind = type(value)
    if kind in (str, bool) or value is None:
        return value
    if kind is int:
        return value if -FIRST_HEX_INTEGER < value < FIRST_HEX_INTEGER else {"i": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if depth > MAX_VALUE_DEPTH:
        raise OversizedValueError(f"nested deeper than {MAX_VALUE_DEPTH}")
    depth += 1
    if kind is list:
        return [encoded_value(item, other, depth) for item in value]
    if kind is tuple:
        return {"t": [encoded_value(item, other, depth) for item in value]}
    if kind is dict:
        return {
            "d": [[encoded_value(key, other, depth), encoded_value(item, other, depth)] for key, item in value.items()]
        }
    return _encoded_rarer_value(value, other, depth)


def _encoded_rarer_value(value: Any, other: Any, depth: int) -> Any:
    if isinstance(value, type):
        name = value.__name__
        return {"type": name} if getattr(builtins, name, None) is value else other(value)
    # from here on what is of a class of its own is narrowed to the plain data that it holds
    for kind, mark in CONTAINER_TYPE_TAGS:
        if isinstance(value, kind):
            return {mark: [encoded_value(item, other, depth) for item in kind.__iter__(value)]}
    if isinstance(value, list):
        return [encoded_value(item, other, depth) for item in list.__iter__(value)]
    if isinstance(value, dict):
        return {
            "d": [
                [encoded_value(key, other, depth), encoded_value(item, other, depth)] for key, item in dict.items(value)
            ]
        }
    if isinstance(value, str):
        return str.__getitem__(value, slice(None))[:]
    if isinstance(value, int):
        return encoded_value(int.__index__(value), other, depth)
    if isinstance(value, float):
        return encoded_value(float.__float__(value), other, depth)
    if isinstance(value, (bytes, bytearray)):
        return {"b" if isinstance(value, bytes) else "B": base64.b64encode(value).decode()}
    if isinstance(value, complex):
        return {"c": [encoded_value(value.real, other, depth), encoded_value(value.imag, other, depth)]}
    return _encoded_library_value(value, other, depth)


def _encoded_library_value(value: Any, other: Any, depth: int) -> Any:
    """Values of classes that the standard library or numpy defines."""
    if isinstance(value, Decimal):
        return {"D": str(value)}
    if isinstance(value, Fraction):
        return {"F": [hex(value.numerator), hex(value.denominator)]}
    if isinstance(value, range):
        return {"r": [encoded_value(part, other, depth) for part in (value.start, value.stop, value.step)]}
    for name in ("datetime", "date", "time"):
        if isinstance(value, DATE_TYPES[name]):
            return {name: value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {"delta": [value.days, value.seconds, value.microseconds]}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        plain = encoded_value(value.tolist(), other, depth)
        return {"n": plain} if isinstance(plain, list) else plain
    return other(value)


def decoded_value(value: Any, other: Any) -> Any:
    """The value that was encoded; `other` says what a number of the other side's stands for."""
    if isinstance(value, list):
        return [decoded_value(item, other) for item in value]
    if not isinstance(value, dict):
        return value
    ((mark, held),) = value.items()
    if mark in _DECODERS_BY_TAG:
        return _DECODERS_BY_TAG[mark](decoded_value(held, other) if isinstance(held, list) else held)
    return other(mark, held)


def _builtin_type(name: str) -> Any:
    found = getattr(builtins, name)
    if not isinstance(found, type):
        raise ValueError(f"{name} is no type")
    return found


def _numpy_array(items: list[Any]) -> Any:
    try:
        import numpy
    except ImportError:
        return items
    return numpy.array(items)


_DECODERS_BY_TAG: dict[str, Any] = {
    "i": lambda text: int(text, 16),
    "f": float,
    "t": tuple,
    "d": lambda pairs: dict(map(tuple, pairs)),
    "s": set,
    "z": frozenset,
    "q": deque,
    "b": base64.b64decode,
    "B": lambda text: bytearray(base64.b64decode(text)),
    "c": lambda parts: complex(*parts),
    "D": Decimal,
    "F": lambda parts: Fraction(int(parts[0], 16), int(parts[1], 16)),
    "r": lambda parts: range(*parts),
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
    "n": _numpy_array,
    "type": _builtin_type,
    "delta": lambda parts: datetime.timedelta(*parts),
}
