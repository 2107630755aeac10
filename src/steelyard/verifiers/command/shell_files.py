"""Whether an answer in a shell writes what its tests read: their variables and their files."""

from __future__ import annotations

import re
from collections.abc import Collection

_COMMENT_PATTERN = re.compile(r"(?:^|(?<=\s))#[^\n]*")
_CONDITION_PATTERN = re.compile(r"\$?\(\([^\n]*?\)\)|\[\[[^\n]*?\]\]|\blet\s[^\n;]*")
"""Where `>` compares."""
_TEXT_PATTERN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_WRITING_PATTERN = re.compile(
    r"(?<![-=<])>{1,2}\|?\s*(?!&|/dev/(?:null|stderr)\b)\S|\bsed\s+-\w*i|(?:^|[;&|({]|\b(?:then|do|else)\s)\s*(?:tee|cp|mv|ln|dd|install|truncate|rm|touch|mkfifo|patch|ed)\s",
    re.MULTILINE,
)
_BUILT_NAME_PATTERN = re.compile(
    r"(?:\b(?:cat|head|tail|read|paste|sort|od|rev|tac|nl|cut)\b|(?<!<)<(?![<(]))[^|;&\n]*(?:\$\{?[A-Za-z_]\w*\}?[A-Za-z.$]|[\s\"'/][A-Za-z.][\w./]*\$\{?[A-Za-z_])"
)
"""The name of a file that is read and that is put together of pieces."""
_ASSIGNMENT_PATTERN = re.compile(
    r"(?:^|[;&({]|\b(?:then|do|else|export|declare|for))\s*([A-Za-z_]\w*)(?==|\s+in\b)", re.MULTILINE
)


def writes_for_tests(code: str, tests: str, functions: Collection[str], asked: Collection[str]) -> bool:
    """Whether code writes files, reads one by a name in pieces, or names a variable that its tests set in the shell that runs it."""
    plain = _CONDITION_PATTERN.sub(" ", _COMMENT_PATTERN.sub("", code))
    if _WRITING_PATTERN.search(_TEXT_PATTERN.sub('""', plain)) or _BUILT_NAME_PATTERN.search(plain):
        return True
    names = "|".join(map(re.escape, functions))
    if not names or not re.search(rf"(?:^|[;&!]|\b(?:if|then|do|else|while))[ \t]*(?:{names})\b", tests, re.MULTILINE):
        return False
    local = {name for names in re.findall(r"\blocal\s+([^;\n]*)", plain) for name in re.findall(r"[A-Za-z_]\w*", names)}
    shared = set(_ASSIGNMENT_PATTERN.findall(tests)) - local - set(asked)
    return bool(shared & set(re.findall(r"\w+", plain)))
