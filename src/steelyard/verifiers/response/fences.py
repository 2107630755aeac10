"""The fenced blocks of a response."""

from __future__ import annotations

import re
from typing import NamedTuple

FENCE = re.compile(r"^[ ]{0,3}(`{3,}+|~{3,}+)([^\n`]*+)$", re.MULTILINE)


class Block(NamedTuple):
    """What stands between two fences."""

    start: int
    """Where it begins in the reply."""
    body: str


def blocks(text: str) -> list[Block]:
    r"""The closed blocks of a reply, in order; a fence closes when it is no shorter than the one that opened.

    >>> blocks("Here:\n```json\n{}\n```\n")
    [Block(start=14, body='{}\n')]
    """
    found: list[Block] = []
    if "```" not in text and "~~~" not in text:
        return found
    opened: re.Match[str] | None = None
    for match in FENCE.finditer(text):
        if opened is None:
            opened = match
        elif match[1][0] == opened[1][0] and len(match[1]) >= len(opened[1]) and not match[2].strip():
            start = opened.end() + 1
            found.append(Block(start, text[start : max(start, match.start())]))
            opened = None
    return found
