"""The fenced blocks of a response."""

from __future__ import annotations

import re
from typing import NamedTuple

FENCE_LINE = re.compile(r"^[ ]{0,3}(`{3,}+|~{3,}+)([^\n`]*+)$", re.MULTILINE)


class FencedText(NamedTuple):
    """What stands between two fences."""

    start: int
    """Where it begins in the reply."""
    body: str


def fenced_texts(text: str) -> list[FencedText]:
    r"""The closed blocks of a reply, in order; a fence closes when it is no shorter than the one that opened.

    >>> fenced_texts("Here:\n```json\n{}\n```\n")
    [FencedText(start=14, body='{}\n')]
    """
    found: list[FencedText] = []
    if "```" not in text and "~~~" not in text:
        return found
    opened: re.Match[str] | None = None
    for match in FENCE_LINE.finditer(text):
        if opened is None:
            opened = match
        elif match[1][0] == opened[1][0] and len(match[1]) >= len(opened[1]) and not match[2].strip():
            start = opened.end() + 1
            found.append(FencedText(start, text[start : max(start, match.start())]))
            opened = None
    return found
