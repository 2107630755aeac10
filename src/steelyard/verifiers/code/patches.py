"""The patch in a reply."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steelyard.verifiers.code.extract import without_thinking

PATCH_START_PATTERN = re.compile(r"\s*+(?:diff --git |--- \S|Index: |From [0-9a-f]{40} )")
"""How a patch begins."""
PATCH_FENCE_PATTERN = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+)")
PATCH_LANGUAGES = ("diff", "patch", "udiff")


def patch_in(text: str) -> str:
    r"""The patch in a reply, with or without fences; empty if there is none.

    >>> patch_in("Here it is:\n```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n```\n")
    '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n'
    """
    if PATCH_START_PATTERN.match(text):
        return _with_final_newline(text.lstrip())
    found = _labelled_blocks(without_thinking(text))
    return "".join(
        _with_final_newline(body)
        for language, body in found
        if language in PATCH_LANGUAGES or PATCH_START_PATTERN.match(body)
    )


def _labelled_blocks(text: str) -> Iterator[tuple[str, str]]:
    """The closed blocks with their languages; in a patch no line begins with a fence, because each has a sign before it."""
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        if opened is None:
            opened, lines = PATCH_FENCE_PATTERN.match(line), []
        elif line.startswith(opened[1]) and not line.strip(f"{opened[1][0]} \t\r"):
            yield opened[2].lower(), "\n".join(lines)
            opened = None
        else:
            lines.append(line)


def _with_final_newline(patch: str) -> str:
    """The patch with the final line break that git requires."""
    return patch if patch.endswith("\n") or not patch.strip() else f"{patch}\n"


def added_lines(patch: str) -> str:
    r"""The lines that a patch adds.

    >>> added_lines("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n")
    '2'
    """
    lines = patch.split("\n")
    return "\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++ "))
