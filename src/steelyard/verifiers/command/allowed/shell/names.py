"""Whether an answer in a shell names a variable that its tests set, other than as one of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from steelyard.text import word_set
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.shell.numbers import ShellCommand
from steelyard.verifiers.command.shell_variables import variables_set

_QUIET_COMMANDS = word_set(
    "echo printf awk gawk mawk sed tr grep egrep fgrep cut sort uniq wc head tail rev seq bc dc cat tac paste fold fmt nl basename dirname join column date"
)
"""Commands that set no variable, whatever their texts say."""
_OPTION_PATTERN = re.compile(r"(?<=\s)-{1,2}[A-Za-z][\w-]*(?=[\s;)|&]|$)")
_JOINED_PATTERN = re.compile(r"(?:&&?|\|\|?|[\\!]|\b(?:then|do|else|elif|if|while|until|time))\s*$")
"""What stands before a command that may not run, or runs in a shell of its own."""
_BUILT_COMMAND_PATTERN = re.compile(
    r"(?:^|[;&|({!]|\b(?:then|do|else|if|while|until))[ \t]*[\"']?[\w.-]*\$\{?[\w@*!]", re.MULTILINE
)
_POSITION_PATTERN = re.compile(r"\$\{?[#@*1-9]")
_QUOTE_PATTERN = re.compile(r"\\\n|[\"'\\]")
"""What may stand in the middle of a name and is no part of it."""


class Own(NamedTuple):
    """A variable that a function makes its own, or sets, by a command that runs whenever the function does."""

    place: int
    name: str
    begin: int
    """Where the command begins."""
    end: int
    is_set: bool
    is_local: bool = False


@dataclass
class ShellNames:
    """Where a script has comments, bodies of functions, and variables that are plainly of one function."""

    hidden: list[tuple[int, int]] = field(default_factory=list)
    """Comments, and the names in the headers of functions."""
    bodies: list[tuple[int, int]] = field(default_factory=list)
    own: list[Own] = field(default_factory=list)


def shared_variable(
    code: str, names: ShellNames, commands: Iterable[ShellCommand], functions: Collection[str], asked: AskedNames
) -> str:
    """The first variable of its kind, or what changes the arguments of the tests; empty if there is none.

    What the answer does with it is not asked: a shell has too many ways to set a variable.
    """
    tests = asked.tests
    commands = list(commands)
    text = _without(code, [*names.hidden, *_quiet_texts(commands)])
    text = _OPTION_PATTERN.sub(lambda found: " " * len(found[0]), text)
    top = _without(text, names.bodies)
    if re.search(r"(?<![\w-])(?:shift|set)\b", top) and _POSITION_PATTERN.search(tests):
        return "other arguments of the script"
    shared = variables_set(tests)
    words: set[str] = set(re.findall(r"\w+", text))
    glued: set[str] = set(re.findall(r"\w+", _QUOTE_PATTERN.sub("", text))) - words
    if glued & shared:
        return min(glued & shared)
    runs_here = bool(set(re.findall(r"[^\s;&|(){}\"'$`]+", top)) & set(functions)) or _is_called_here(tests, functions)
    is_bash = bool(re.search(r"\bbash\b", asked.command))
    for name in sorted(shared & words):
        for found in re.finditer(rf"\b{name}\b", text):
            inside = [body for body in names.bodies if body[0] <= found.start() < body[1]]
            body = max(inside, default=None)
            if body is None or not _is_own(text, name, body, names, only_local=runs_here, is_bash=is_bash):
                return name
    return ""


def _is_own(text: str, name: str, body: tuple[int, int], names: ShellNames, *, only_local: bool, is_bash: bool) -> bool:
    """Whether the first thing that a function does with a variable is to make it its own."""
    text = _without(text, [other for other in names.bodies if body[0] < other[0] and other[1] <= body[1]])
    found = re.compile(rf"\b{name}\b").search(text, *body)
    for own in names.own:
        if found and own.place == found.start() and own.name == name:
            # the old value must neither be read by the same command nor, as in dash, be the value of the new variable
            is_read = bool(re.search(rf"\b{name}\b", text[found.end() : own.end])) or not (own.is_set or is_bash)
            is_sure = not _JOINED_PATTERN.search(text[body[0] : own.begin].rstrip())
            is_sure = is_sure and bool(re.search(r"(?:^|[;{}\n])[ \t]*$", text[body[0] : own.begin]))
            return is_sure and not is_read and (own.is_local or not only_local)
    return False


def _is_called_here(tests: str, functions: Collection[str]) -> bool:
    """Whether tests may call a function in their own shell, not in one that ends with the call."""
    if _BUILT_COMMAND_PATTERN.search(tests):
        return True
    return any(
        not re.search(r"\$\(\s*$", tests[: found.start()])
        for name in functions
        for found in re.finditer(rf"(?<![\w-]){re.escape(name)}(?![\w-])", tests)
    )


def _quiet_texts(commands: Iterable[ShellCommand]) -> list[tuple[int, int]]:
    """Where the quoted texts are that are handed to commands which set nothing."""
    spans = []
    for command in commands:
        first, *words = command.words
        is_plain = first.text in _QUIET_COMMANDS and not (first.is_built or first.is_quoted)
        if first.text == "printf" and words and (words[0].is_built or words[0].text.startswith("-")):
            is_plain = False
        spans += [span for word in words for span in word.quoted] if is_plain else []
    return spans


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with blanks in some places."""
    signs = list(text)
    for begin, end in spans:
        signs[begin:end] = [sign if sign == "\n" else " " for sign in signs[begin:end]]
    return "".join(signs)
