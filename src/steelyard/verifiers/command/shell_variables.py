"""The variables that tests in a shell read and leave to their answer to set, where they compare them with no plain text."""

from __future__ import annotations

import re

_OWN_LANGUAGE_PATTERN = re.compile(r"\b(?:[gm]?awk|sed|perl)\b[^'\n|]*'[^']*'")
"""A program in another language, which has variables of its own."""
_READ_PATTERN = re.compile(r"(?<!\\)\$\{?[#!]?([A-Za-z_]\w*)")
_SUM_PATTERN = re.compile(r"\(\(((?:[^()]|\([^()]*\))*)\)\)")
_SET_PATTERN = re.compile(
    r"(?<![\w${])([A-Za-z_]\w*)(?:\[[^\]\n]*\])?\s*(?:[-+*/%]?=(?!=)|\+\+|--)|\b(?:for|select|getopts\s+\S+)\s+([A-Za-z_]\w*)|\$\{(\w+):?="
)
_DECLARING_PATTERN = re.compile(
    r"\b(?:read|mapfile|readarray|local|declare|typeset|export|readonly|printf\s+-v|let)\b([^;\n|]*)"
)
_OF_SHELL_PATTERN = re.compile(
    r"_|IFS|PATH|ENV|BASH\w*|LC_\w+|LANG|PS\d|HOME|PWD|OLDPWD|OPT\w+|SHELL\w*|RANDOM|SRANDOM|SECONDS|EPOCH\w+|LINENO|FUNCNAME|PIPESTATUS|REPLY|USER|UID|EUID|PPID|TMPDIR|HOSTNAME|DIRSTACK|COLUMNS|LINES"
)
_VARIABLE = r"\"?\$\{?[A-Za-z_]\w*\}?\"?"
_PLAIN = r"(?:\"[^\"$`\n]+\"|'[^'\n]+'|[\w./:-]+)"
_PLAIN_CLAIM_PATTERN = re.compile(
    rf"\[\[?\s+(?:{_VARIABLE}\s+(?:!?=|==|-\w\w)\s+{_PLAIN}|{_PLAIN}\s+(?:!?=|==|-\w\w)\s+{_VARIABLE})\s+\]\]?"
)
"""A comparison of a variable with a text that is not empty."""
_MESSAGE_PATTERN = re.compile(r"(?<!\$\()\b(?:echo|printf)\b(?:\$\{\w+\}|>&2|[^;|&\n{}()])*(?=[;\n}]|&&|\|\||$)")
"""What is only printed."""


def left_to_answer(tests: str) -> str:
    """The first variable of its kind; empty if there is none. One that nobody sets is empty, as any other of them.

    >>> left_to_answer('[ "$(other "$RED")" = "$GREEN" ] || exit 1')
    'GREEN'
    >>> left_to_answer('square 3; [ "$RESULT" = 9 ] || echo "got $RESULT"')
    ''
    """
    tests = _without_programs(tests)
    own = {name for names in _SET_PATTERN.findall(tests) for name in names}
    own |= set(re.findall(r"(?<!\$)\b[A-Za-z_]\w*", " ".join(_DECLARING_PATTERN.findall(tests))))
    claims = _MESSAGE_PATTERN.sub(" ", _PLAIN_CLAIM_PATTERN.sub(" ", tests))
    read = set(_READ_PATTERN.findall(claims))
    for expression in _SUM_PATTERN.findall(claims):
        read |= set(re.findall(r"(?<!\$)\b[A-Za-z_]\w*", re.sub(r"\$\(.*?\)|[\"'].*?[\"']", "", expression)))
    return min((name for name in read - own if not _OF_SHELL_PATTERN.fullmatch(name)), default="")


def variables_set(tests: str) -> set[str]:
    """The variables that tests set, and not only to nothing.

    >>> sorted(variables_set('fails=0; RESULT=; for n in 1 2; do read -r want; let all+=1; : ${x:=1}; done; check "n = $n"'))
    ['all', 'fails', 'n', 'want', 'x']
    """
    tests = _without_programs(tests)
    names = {
        name for found in _SET_PATTERN.finditer(tests) for name in found.groups() if name and not _is_emptied(found)
    }
    names |= set(re.findall(r"(?:\+\+|--)([A-Za-z_]\w*)", tests))
    for declared in _DECLARING_PATTERN.findall(tests):
        plain = re.sub(r"\"[^\"]*\"|'[^']*'|=\S*|(?<!\S)-\w+|<<.*|\$\{?\w+", " ", declared)
        names |= set(re.findall(r"\b[A-Za-z_]\w*", plain))
    return {name for name in names if not _OF_SHELL_PATTERN.fullmatch(name)}


def _is_emptied(found: re.Match[str]) -> bool:
    """Whether a variable is only made empty, as one is that a function is to set."""
    return found[0].endswith("=") and bool(re.match(r"(?:\"\"|'')?(?=[\s;]|$)", found.string[found.end() :]))


def _without_programs(tests: str) -> str:
    """Tests without comments and programs in other languages."""
    return _OWN_LANGUAGE_PATTERN.sub(" ", re.sub(r"(?:^|(?<=\s))#[^\n]*", "", tests))
