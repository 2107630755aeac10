"""Plain data by value, as JSON carries it between tests and an answer.

A value arrives as what it says it is or not at all: there is no code, no class and no reference in it. Only exact types
cross; an object of a subclass stays where it is. Used on both sides and, for what is compared outside, by the engine.
"""

from __future__ import annotations

import base64
import datetime
import math
from decimal import Decimal
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_PLAIN_DEPTH = 50
MAX_PLAIN_VALUES = 100_000
"""Values in one message."""
MAX_PLAIN_CHARACTERS = 8 << 20
MAX_PLAIN_KEYS = 500
"""Keys of dictionaries and items of sets, with what is in them: more of them could be chosen so that comparing takes for ever."""
FIRST_HEX_INTEGER = 1 << 63
"""Whole numbers from here on are written in hexadecimal: no limit on digits, and no quadratic conversion."""


class NotPlainError(Exception):
    """A value that is not plain data, or too much of it; it says what it is."""


def encoded(value: Any) -> Any:
    """A value as JSON can carry it; raises NotPlainError."""
    return _Encoder().encode(value, 0)


class _Encoder:
    """Writes one value."""

    def __init__(self) -> None:
        self._left = MAX_PLAIN_VALUES
        self._characters = MAX_PLAIN_CHARACTERS
        self._seen: set[int] = set()
        """Lists, sets and dictionaries by their addresses: one that is in two places is not the same when it is sent twice."""

    def encode(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > MAX_PLAIN_DEPTH:
            raise NotPlainError("a value of too many parts")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            if -FIRST_HEX_INTEGER < value < FIRST_HEX_INTEGER:
                return value
            self._count(value.bit_length() // 4)
            return {"i": hex(value)}
        if kind is str:
            self._count(len(value))
            return value
        if kind is float:
            if math.isnan(value):
                raise NotPlainError("nan, which equals nothing")
            return value if math.isfinite(value) else {"f": repr(value)}
        writer = _WRITERS.get(kind)
        if writer is None:
            raise NotPlainError(f"an object of the class {str(kind.__name__)[:100]}")
        return writer(self, value, depth + 1)

    def _count(self, characters: int) -> None:
        self._characters -= characters
        if self._characters < 0:
            raise NotPlainError("a value of too many characters")

    def once(self, container: Any) -> None:
        """Raise for a container that was written before."""
        if id(container) in self._seen:
            raise NotPlainError("a list or the like that is in two places")
        self._seen.add(id(container))

    def items(self, items: Any, depth: int) -> list[Any]:
        """Each of these as JSON can carry it."""
        return [self.encode(item, depth) for item in items]

    def list(self, value: list[Any], depth: int) -> Any:
        self.once(value)
        return self.items(value, depth)

    def dict(self, value: dict[Any, Any], depth: int) -> Any:
        self.once(value)
        return {"d": [[self.encode(key, depth), self.encode(item, depth)] for key, item in value.items()]}

    def set(self, value: set[Any], depth: int) -> Any:
        self.once(value)
        return {"s": self.items(value, depth)}

    def bytes(self, value: bytes, _: int) -> Any:
        self._count(len(value))
        return {"b": base64.b64encode(value).decode()}


def _is_plain_zone(zone: datetime.tzinfo) -> bool:
    """Whether nothing but its offset is known of a zone."""
    return type(zone) is datetime.timezone and repr(zone) == repr(datetime.timezone(zone.utcoffset(None)))


def _zoned(tag: str) -> Callable[[_Encoder, Any, int], Any]:
    def write(_: _Encoder, value: Any, __: int) -> Any:
        if value.tzinfo is not None and not _is_plain_zone(value.tzinfo):
            raise NotPlainError("a time with a zone of its own")
        return {tag: [value.isoformat(), value.fold]}

    return write


_WRITERS: dict[type, Callable[[_Encoder, Any, int], Any]] = {
    list: _Encoder.list,
    dict: _Encoder.dict,
    set: _Encoder.set,
    bytes: _Encoder.bytes,
    tuple: lambda encoder, value, depth: {"t": encoder.items(value, depth)},
    frozenset: lambda encoder, value, depth: {"z": encoder.items(value, depth)},
    complex: lambda encoder, value, depth: {"c": encoder.items((value.real, value.imag), depth)},
    Decimal: lambda _, value, __: {"D": str(value)},
    Fraction: lambda encoder, value, depth: {"F": encoder.items((value.numerator, value.denominator), depth)},
    datetime.date: lambda _, value, __: {"date": value.isoformat()},
    datetime.timedelta: lambda _, value, __: {"delta": [value.days, value.seconds, value.microseconds]},
    datetime.datetime: _zoned("datetime"),
    datetime.time: _zoned("time"),
}


def decoded(held: Any) -> Any:
    """The value that was encoded; raises ValueError, TypeError, LookupError or ArithmeticError for anything else."""
    if type(held) is list:
        return [decoded(item) for item in held]
    if type(held) is not dict:
        return held
    ((tag, inner),) = held.items()
    return _READERS[tag](inner)


_READERS: dict[str, Callable[[Any], Any]] = {
    "i": lambda inner: int(inner, 16),
    "f": {"inf": math.inf, "-inf": -math.inf}.__getitem__,
    "t": lambda inner: tuple([decoded(item) for item in inner]),
    "d": lambda inner: {decoded(key): decoded(item) for key, item in inner},
    "s": lambda inner: {decoded(item) for item in inner},
    "z": lambda inner: frozenset([decoded(item) for item in inner]),
    "b": base64.b64decode,
    "c": lambda inner: complex(*map(decoded, inner)),
    "D": lambda inner: Decimal(str(inner)),
    "F": lambda inner: Fraction(*map(decoded, inner)),
    "date": datetime.date.fromisoformat,
    "datetime": lambda inner: datetime.datetime.fromisoformat(inner[0]).replace(fold=inner[1]),
    "time": lambda inner: datetime.time.fromisoformat(inner[0]).replace(fold=inner[1]),
    "delta": lambda inner: datetime.timedelta(*inner),
}


def is_quick_to_read(held: Any) -> bool:
    """Whether an encoded value can be made and compared quickly, whoever chose it."""
    try:
        return _key_count(held, 0, is_key=False) <= MAX_PLAIN_KEYS
    except (ValueError, TypeError):
        return False


def _key_count(held: Any, depth: int, *, is_key: bool) -> int:
    """The number of values in keys and set items of an encoded value."""
    if depth > MAX_PLAIN_DEPTH:
        raise ValueError("too deep")
    if type(held) is list:
        return sum(_key_count(item, depth + 1, is_key=is_key) for item in held if is_key or type(item) in (list, dict))
    if type(held) is not dict:
        return is_key
    ((tag, inner),) = held.items()
    if tag == "d":
        return sum(
            _key_count(key, depth + 1, is_key=True) + _key_count(item, depth + 1, is_key=is_key) for key, item in inner
        )
    if tag in ("t", "s", "z"):
        return is_key + _key_count(inner, depth + 1, is_key=is_key or tag != "t")
    if tag == "D":
        # arithmetic with a large exponent takes for ever
        return is_key if len(str(inner)) < 40 and abs(Decimal(str(inner)).adjusted()) < 400 else MAX_PLAIN_KEYS + 1
    return is_key * (1 + len(str(inner)) // 16)
