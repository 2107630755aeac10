"""Things wrong with a file, made from a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

ODD_WORDS = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e400",
    "NaN",
    "Infinity",
    "nan",
    "inf",
    "10000000000000000000000",
    "2147483648",
    "9223372036854775808",
    "null",
    "true",
    "[]",
    "{}",
    "''",
    '""',
    "\x00",
    "\ud800",
    "\\ud800",
    "\xe9",
    "\U0001f4a5",
    "../../etc/passwd",
    "%",
    "%s",
    "{{x}}",
    ",,,",
    "===",
    "1/0",
    "0/1",
    "1e-400",
    "-0",
    "1,1",
    "1:2",
    "[]]",
    "[[",
    "}}",
    "a=b",
    "--help",
]
ODD_VALUES = [
    *(b"0", b"-1", b"1", b"0.5", b"-0.0", b"1e-320", b"1e12", b"1e13", b"1e308", b"-1e308", b"1e400", b"2147483648"),
    *(b"9223372036854775808", b"1" + b"0" * 30, b"1" + b"0" * 5000, b"null", b"true", b"false", b'""', b'"a"', b'" "'),
    *(
        b'"NaN"',
        b"NaN",
        b"nan",
        b"inf",
        b"[]",
        b"{}",
        b"[1]",
        b'{"a": 1}',
        b'[{"a": [null]}]',
        b'"\\ud800"',
        b'"\\u0000"',
    ),
    *(
        b'"' + "\U0001f4a5".encode() + b'"',
        b'"' + b"x" * 3000 + b'"',
        b'"../x"',
        b'"/dev/stdin"',
        b'"2026-13-45T99:00:00Z"',
    ),
]
"""Values that stand where others stood: most leave a file that can be read, until somebody computes with them."""


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The content with one to four things wrong with it."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        content = chance.choice(MUTATIONS)(content, chance)
    return content


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content or b"x")
    for _ in range(chance.choice((1, 1, 3, 20))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _cut(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:first] + content[last:] if chance.random() < 0.5 else content[:last]


def _repeat(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:last] + content[first:last][:2000] * chance.choice((1, 1, 2, 20)) + content[last:]


def _odd_word(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(ODD_WORDS).encode("utf-8", "surrogatepass") + content[at:]


VALUE_PATTERN = re.compile(rb'-?\d+(?:\.\d+)?(?:e-?\d+)?|\btrue\b|\bfalse\b|\bnull\b|"[^"\n]{0,40}"(?!\s*:)')


def _odd_value(content: bytes, chance: random.Random) -> bytes:
    """One value in the place of another, odd or from elsewhere in the file."""
    begin = chance.randrange(len(content) + 1)
    place = VALUE_PATTERN.search(content, begin) or VALUE_PATTERN.search(content)
    if place is None:
        return content
    value = chance.choice(ODD_VALUES)
    if chance.random() < 0.2 and (other := VALUE_PATTERN.search(content, chance.randrange(len(content) + 1))):
        value = other[0]
    return content[: place.start()] + value + content[place.end() :]


def _swap_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one] * chance.choice((1, 1, 3))
    return b"".join(lines)


NESTING_DEPTHS = (*[2, 10] * 10, *[1000] * 4, 50_000)
"""Few are deep: those take a hundred times as long."""


def _nest(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return (
        content[:at]
        + chance.choice((b"[", b'{"a":', b"(", b"- ", b"  ")) * chance.choice(NESTING_DEPTHS)
        + content[at:]
    )


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    *(_odd_value for _ in range(8)),
    *(_flip, _flip, _cut, _repeat, _repeat, _odd_word, _odd_word, _swap_lines, _swap_lines, _nest),
]
