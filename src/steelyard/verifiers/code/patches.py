"""The patch in a reply."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steelyard.verifiers.code.extract import without_thinking

START = re.compile(r"\s*+(?:diff --git |--- \S|Index: |From [0-9a-f]{40} )")
"""How a patch begins."""
OPENING = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+)")
LANGUAGES = ("diff", "patch", "udiff")


def patch_in(text: str) -> str:
    r"""The patch that a reply is, or that stands in it between fences; empty when there is none.

    >>> patch_in("Here it is:\n```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n```\n")
    '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n'
    """
    if START.match(text):
        return _ended(text.lstrip())
    found = _fenced(without_thinking(text))
    return "".join(_ended(body) for language, body in found if language in LANGUAGES or START.match(body))


def _fenced(text: str) -> Iterator[tuple[str, str]]:
    """The closed blocks with their languages; in a patch no line begins with a fence, because each has a sign before it."""
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        if opened is None:
            opened, lines = OPENING.match(line), []
        elif line.startswith(opened[1]) and not line.strip(f"{opened[1][0]} \t\r"):
            yield opened[2].lower(), "\n".join(lines)
            opened = None
        else:
            lines.append(line)


def _ended(patch: str) -> str:
    """The patch with the line end that git wants after its last line."""
    return patch if patch.endswith("\n") or not patch.strip() else f"{patch}\n"


def added_in(patch: str) -> str:
    r"""The lines that a patch adds.

    >>> added_in("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n")
    '2'
    """
    lines = patch.split("\n")
    return "\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++ "))
