"""The suites that come with steelyard, by name."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from steelyard.errors import InputError, did_you_mean
from steelyard.evalsets import long_context
from steelyard.text import short_quote

SUITE_PREFIX = "suite:"
SHIPPED_SUITES_FOLDER = Path(__file__).with_name("shipped")
GENERATED_SUITE_NAME = "long_context"
SHIPPED_SUITE_NAMES = ("contradictions", "injection", "json_api", GENERATED_SUITE_NAME, "unicode_locale")


def matching_suites(given: str) -> Iterator[str]:
    """The suites that a name matches, all of them for `suite:all`; an InputError if none matches.

    >>> list(matching_suites("suite:long_context@32000,7"))
    ['suite:long_context@32000,7']
    """
    name, at, _ = given.removeprefix(SUITE_PREFIX).partition("@")
    if at and name != GENERATED_SUITE_NAME:
        raise InputError(f"only suite:{GENERATED_SUITE_NAME} is made to a length; write suite:{name}")
    if name == "all":
        yield from (SUITE_PREFIX + each for each in SHIPPED_SUITE_NAMES)
    elif name in SHIPPED_SUITE_NAMES:
        yield given
    else:
        raise InputError(
            f"no suite {short_quote(name)} comes with steelyard ({did_you_mean(name[:80], (*SHIPPED_SUITE_NAMES, 'all'))})"
        )


def open_suite(given: str) -> tuple[BinaryIO, str]:
    """The text of a suite, and the suffix of the format that it is in."""
    name, _, size = given.removeprefix(SUITE_PREFIX).partition("@")
    if name != GENERATED_SUITE_NAME:
        return (SHIPPED_SUITES_FOLDER / f"{name}.toml").open("rb"), ".toml"
    cases = ({"suite": GENERATED_SUITE_NAME, **table} for table in long_context.cases(*_length_and_seed(size)))
    return io.BytesIO(b"\n".join(map(msgspec.json.encode, cases))), ".jsonl"


def _length_and_seed(text: str) -> tuple[int, ...]:
    """The length in characters and the seed, as far as they are given."""
    parts = text.split(",") if text else []
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise InputError(
            "after the @ come a length in characters and, if you like, a seed, "
            f"such as suite:{GENERATED_SUITE_NAME}@32000 or suite:{GENERATED_SUITE_NAME}@32000,7"
        )
    return tuple(map(int, parts))
