"""Source code without its comments, in the languages that write them as C does."""

from __future__ import annotations

import re

_COMMENT_PATTERN = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_LINE_COMMENT_PATTERN = re.compile(r"//[^\n]*")


def without_comments(code: str) -> str:
    """The code with a blank in place of each comment.

    >>> without_comments("int a; /* b */ int c; // d")
    'int a;   int c;  '
    """
    # no comment is looked for that has no end: a hostile text with many beginnings would take time by the square of its length
    end = code.rfind("*/") + 2 if "*/" in code else 0
    return _COMMENT_PATTERN.sub(" ", code[:end]) + _LINE_COMMENT_PATTERN.sub(" ", code[end:])
