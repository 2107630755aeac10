"""What every record has in common: frozen data, a hash of its content, and the bounds of numbers that come from outside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

AnyStruct = TypeVar("AnyStruct", bound=msgspec.Struct)
StructType = type[AnyStruct]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Plain data that does not change; what is left at its default is not written."""


def digest(*parts: Any) -> str:
    """A short content hash: equal for equal content, on any machine."""
    return hashlib.blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


def streamed_digest(*parts: Any) -> str:
    """The same where parts are mappings or iterables, whose things are encoded one by one; lists and tuples are encoded whole.

    >>> streamed_digest({"b": iter([1, "x"]), "a": ()}, 2.5) == digest({"a": (), "b": (1, "x")}, 2.5)
    True
    """
    found = hashlib.blake2b(digest_size=16)
    for piece in _sorted_json(iter(parts)):
        found.update(piece)
    return found.hexdigest()


_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def _sorted_json(thing: Any) -> Iterator[bytes]:
    if isinstance(thing, Mapping):
        for place, key in enumerate(sorted(thing)):
            yield (b"," if place else b"{") + _encode_sorted(key) + b":"
            yield from _sorted_json(thing[key])
        yield b"}" if thing else b"{}"
    elif isinstance(thing, Iterable) and not isinstance(thing, str | list | tuple):
        yield b"["
        for place, each in enumerate(thing):
            if place:
                yield b","
            yield from _sorted_json(each)
        yield b"]"
    else:
        yield _encode_sorted(thing)


def settings_as(kind: type[AnyStruct], known: Record, settings: Mapping[str, Any]) -> AnyStruct:
    """Settings as the record of the part that owns them: its own keys, and those of ours that it has as well."""
    given = {**msgspec.to_builtins(known, enc_hook=str), **settings}
    return msgspec.convert({key: value for key, value in given.items() if key in kind.__struct_fields__}, kind)


MAX_NUMBER = 1e12
"""More than any cost, duration, score or number of tokens that is meant; sums and squares of it stay finite."""
MAX_ATTEMPTS_PER_CASE = 1_000_000
"""Attempts at one case of one model, and the k of pass@k."""

AttemptNumber = Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS_PER_CASE)]
"""How many attempts there are; a file that says otherwise is damaged."""
AttemptIndex = Annotated[int, Meta(ge=0, le=MAX_ATTEMPTS_PER_CASE)]
"""Which of the attempts at a case it is; other tools count from 0."""
ReportedTestCount = Annotated[int, Meta(ge=0, le=100_000)]
"""Tests of one attempt that a report counts; each of them becomes a record."""
Amount = Annotated[float, Meta(ge=0, le=MAX_NUMBER)]
"""A duration, a price or a weight."""
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=int(MAX_NUMBER))]
SignedNumber = Annotated[float, Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]


def is_bounded(number: float | None, *, least: float = 0) -> bool:
    """Whether a number is one that can be computed with: not NaN, not infinite and not absurd.

    >>> is_bounded(1e308), is_bounded(float("nan")), is_bounded(-1), is_bounded(-1, least=-MAX_NUMBER), is_bounded(0.25)
    (False, False, False, True, True)
    """
    return number is not None and least <= number <= MAX_NUMBER
