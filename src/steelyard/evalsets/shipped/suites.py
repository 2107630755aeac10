"""The suites that come with us, named `suite:NAME` wherever an eval set can be named."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from steelyard.errors import InputError, nearest, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "suite:"
WRITTEN = Path(__file__).parent
GENERATED = "long_context"
NAMES = ("contradictions", "injection", "json_api", GENERATED, "unicode_locale")


def expanded(given: str) -> Iterator[str]:
    """The suites that a name stands for, `suite:all` for every one of them; an InputError when it stands for none.

    >>> list(expanded("suite:long_context@32000,7"))
    ['suite:long_context@32000,7']
    """
    name, at, _ = given.removeprefix(PREFIX).partition("@")
    if at and name != GENERATED:
        raise InputError(f"only suite:{GENERATED} is made to a length; write suite:{name}")
    if name == "all":
        yield from (PREFIX + each for each in NAMES)
    elif name in NAMES:
        yield given
    else:
        raise InputError(f"no suite {shown(name)} comes with steelyard ({nearest(name[:80], (*NAMES, 'all'))})")


def opened(given: str) -> tuple[BinaryIO, str]:
    """The text of a suite, and the suffix of the format that it is in."""
    name, _, size = given.removeprefix(PREFIX).partition("@")
    if name != GENERATED:
        return (WRITTEN / f"{name}.toml").open("rb"), ".toml"
    from steelyard.evalsets.shipped import long_context

    cases = ({"suite": GENERATED, **table} for table in long_context.cases(*_size(size)))
    return io.BytesIO(b"\n".join(map(msgspec.json.encode, cases))), ".jsonl"


def _size(text: str) -> tuple[int, ...]:
    """The length in characters and the seed, as far as they are given."""
    parts = text.split(",") if text else []
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise InputError(
            "after the @ come a length in characters and, if you like, a seed, "
            f"such as suite:{GENERATED}@32000 or suite:{GENERATED}@32000,7"
        )
    return tuple(map(int, parts))
