"""Where a shell takes text for arithmetic: a name in it stands for a variable, which may be one of the tests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from steelyard.text import word_set

_TEST_VARIABLE_PATTERN = re.compile(
    r"(?<![\w$])([A-Za-z_]\w*)(?:\[[^\]\n]*\])?[-+*/%]?=|\$\{?[#!]?([A-Za-z_]\w*)|\bfor\s+(\w+)"
)
_TEST_NAMES_PATTERN = re.compile(r"\b(?:read|local|declare|typeset|mapfile|readarray)\b([^\n;|&]*)|\(\(([^\n]*)\)\)")
_EVALUATING_PATTERN = re.compile(
    r"\[\[[^\n]*\s-(?:eq|ne|lt|le|gt|ge)\s|\(\(|\blet\b|\$\[|\b(?:declare|local|typeset)\s+-\w*i"
)
_GIVEN_PATTERN = re.compile(r"\$(?:\d|[@*])|\$\{(?:\d+|[@*])(?::?-\d*)?\}")
_COUNT_PATTERN = re.compile(r"\$[#?]|\$\{#[\w@*]*(?:\[[^\]]*\])?\}")
_VARIABLE_PATTERN = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[[^\]]*\])?(?::?-\d*|[:#%][-\d:#%*]*)?\}?")
_SEQUENCE_PATTERN = re.compile(
    r"\$\(\s*seq(?:\s+-?\"?(?:\d+|\$\w+|\$\{\w+\})\"?){1,3}\s*\)|\$\([^()]*\|\s*wc -[lcwm]\s*\)"
)
_LITERAL_PATTERN = re.compile(r"[-+\d\s.]*|\{-?\d+\.\.-?\d+\}")
_FORMAT_PATTERN = re.compile(r"(?:%[dis]|[-\d\s]|\\n)*")
_SILENT_COMMANDS = word_set(
    "local return shift test [ true false : let case if for while until break continue set declare typeset wc sleep"
)
_HEADER_PATTERN = re.compile(r"\bfunction\s+[\w-]+\s*(?:\(\s*\))?|[\w-]+\s*\(\s*\)")
_FIRST_LOCALS_PATTERN = re.compile(
    r"\s*\{\s*((?:(?:local[ \t])?(?:[ \t]*\b\w+=\"?(?:\$\d|\$\{\d\}|\d+)\"?)+[ \t]*[;\n]\s*)+)"
)


@dataclass
class ShellWord:
    """A word of a command."""

    text: str = ""
    """As it is written, without quotes."""
    is_quoted: bool = False
    is_built: bool = False
    """Whether it holds a variable or a command."""
    has_glob: bool = False
    prefix: str = ""
    """What stands before its first quote or variable."""
    place: int = -1
    quoted: list[tuple[int, int]] = field(default_factory=list)
    """Where its quoted texts are, without what is put in."""
    expansions: list[str] = field(default_factory=list)

    @property
    def literal(self) -> str:
        """Its text without what is put in."""
        text = self.text
        for expansion in self.expansions:
            text = text.replace(expansion, "", 1)
        return text


@dataclass
class ShellCommand:
    """A simple command."""

    words: list[ShellWord] = field(default_factory=list)
    assigned: list[tuple[int, str]] = field(default_factory=list)
    """The variables that are set before its first word, with their places."""
    is_piped: bool = False
    has_input: bool = False
    is_error: bool = False
    """Whether it prints to standard error."""


class Sum(NamedTuple):
    """A text that a shell takes for arithmetic."""

    text: str
    """With a sign of its own for each thing that is put in."""
    expansions: tuple[str, ...]
    array: str = ""
    """The array whose index it is."""


@dataclass
class NumberFacts:
    """What a script does with variables and arithmetic."""

    sums: list[Sum] = field(default_factory=list)
    values: dict[str, list[ShellWord]] = field(default_factory=dict)
    """By variable: what it is set to; arithmetic is no value."""
    counted: set[str] = field(default_factory=set)
    """The variables that arithmetic sets."""
    keyed: set[str] = field(default_factory=set)
    """The arrays whose indices are text."""

    def set_to(self, name: str, word: ShellWord) -> None:
        """Keep what a variable is set to."""
        self.values.setdefault(name, []).append(word)

    def take(self, other: NumberFacts) -> None:
        """Add what a part of the script does."""
        self.sums += other.sums
        self.counted |= other.counted
        self.keyed |= other.keyed
        for name, words in other.values.items():
            self.values.setdefault(name, []).extend(words)


def keep_declared(facts: NumberFacts, commands: Iterable[ShellCommand]) -> None:
    """Keep what commands set: declarations, loops, and what reads."""
    text = ShellWord("text")
    for command in commands:
        name, *words = command.words
        if name.text in ("local", "declare", "typeset"):
            is_keyed = any(re.fullmatch(r"-\w*A\w*", word.text) for word in words)
            for word in words:
                found = re.match(r"([A-Za-z_]\w*)(\[.*?\])?(\+?=)?", word.text)
                if not found:
                    continue
                if found[2]:
                    facts.sums.append(Sum(found[2], tuple(word.expansions), found[1]))
                if found[3]:
                    facts.set_to(found[1], ShellWord(word.text[found.end() :], expansions=word.expansions))
                facts.values.setdefault(found[1], [])
                (facts.keyed.add if is_keyed else facts.counted.add)(found[1])
        elif name.text in ("for", "select") and words:
            for word in words[2:] or [ShellWord("$@", expansions=["$@"])]:
                facts.set_to(words[0].text, word)
        elif name.text in ("read", "mapfile", "readarray"):
            for word in (*words, ShellWord("REPLY"), ShellWord("MAPFILE")):
                variable, bracket, index = word.text.partition("[")
                facts.set_to(variable, text)
                if bracket:
                    facts.sums.append(Sum(index, tuple(word.expansions), variable))
        elif name.text == "let":
            for word in words:
                facts.sums.append(Sum(word.literal, tuple(word.expansions)))
                facts.counted |= set(re.findall(r"([A-Za-z_]\w*)\s*(?:[-+*/%]?=(?!=)|\+\+|--)", word.text))


@dataclass
class _Numbers:
    """Which variables of a script hold nothing but numbers."""

    facts: NumberFacts
    functions: set[str]
    is_given: bool
    """Whether what a function is given counts as a number."""
    names: set[str] = field(default_factory=set)
    prints_numbers: bool = False

    def __post_init__(self) -> None:
        self.names = set(self.facts.values) | self.facts.counted
        before = -1
        while before != len(self.names):
            before = len(self.names)
            self.names = {
                name for name in self.names if all(self.is_number(word) for word in self.facts.values.get(name, []))
            }

    def is_number(self, word: ShellWord) -> bool:
        literal = re.sub(r"^\[[^\]]*\]=", "", word.literal)
        return bool(_LITERAL_PATTERN.fullmatch(literal)) and all(map(self.is_number_put_in, word.expansions))

    def is_number_put_in(self, text: str) -> bool:
        if text.startswith("$((") or _COUNT_PATTERN.fullmatch(text) or _SEQUENCE_PATTERN.fullmatch(text):
            return True
        if _GIVEN_PATTERN.fullmatch(text):
            return self.is_given
        if found := re.match(r"\$\(\s*([\w-]+)\s[^|;&\n]*\)$", text):
            return self.prints_numbers and found[1] in self.functions
        found = _VARIABLE_PATTERN.fullmatch(text)
        return found is not None and found[1] in self.names

    def outside(self, one: Sum) -> str:
        """The first thing in arithmetic that may be something else than a number."""
        is_keyed = one.array in self.facts.keyed and one.array not in self.facts.counted
        if is_keyed or one.text in ("@", "*"):
            return ""
        for text in one.expansions:
            if not self.is_number_put_in(text):
                return text
        bare = re.sub(r"(?<![\w\0])\d+#|(?<![\w\0])\d\w*", " ", one.text)
        return next((name for name in re.findall(r"[A-Za-z_]\w*", bare) if name not in self.names), "")


def unlisted_in_sums(
    facts: NumberFacts, commands: list[ShellCommand], functions: set[str], code: str, tests: str, *, is_evaluated: bool
) -> str:
    """What in the arithmetic of an answer, or in what it prints for that of the tests, may be the name of a variable."""
    numbers = _Numbers(facts, functions, is_given=True)
    is_merged = bool(re.search(r"\d>&1|&>|>&1", f"{code}\n{tests}"))
    printed = _text_printed(numbers, [command for command in commands if is_merged or not command.is_error])
    if not printed:
        numbers = _Numbers(facts, functions, is_given=True, prints_numbers=True)
    theirs = _test_variables(tests)
    if is_evaluated:
        if printed:
            return f"{printed}, which may print text that the tests take for arithmetic"
        if texts := (set(facts.values) & theirs) - numbers.names:
            return f"text in {min(texts)}, which the tests may take for arithmetic"
    for one in facts.sums:
        if outside := numbers.outside(one):
            return f"arithmetic with {outside[:40]}, which may be text"
        for name in re.findall(r"[A-Za-z_]\w*", " ".join((one.text, *one.expansions))):
            if name in theirs and not _is_local(name, code, functions):
                return f"arithmetic with {name}, a variable of the tests"
    if facts.sums:
        for command in commands:
            name, *words = command.words
            if name.text in functions or name.text == "set":
                given = next((word.text for word in words if word.text != "--" and not numbers.is_number(word)), "")
                if given:
                    return f"{name.text} with {given[:40]}, which may be text in arithmetic"
    return ""


def takes_output_for_sums(facts: NumberFacts, functions: set[str]) -> bool:
    """Whether tests do arithmetic with more than numbers of their own."""
    numbers = _Numbers(facts, functions, is_given=False)
    return any(numbers.outside(one) for one in facts.sums)


def may_evaluate(tests: str) -> bool:
    """Whether tests that cannot be read have arithmetic at all."""
    return bool(_EVALUATING_PATTERN.search(tests))


def _text_printed(numbers: _Numbers, commands: list[ShellCommand]) -> str:
    """The first command that may print something else than numbers."""
    hopeful = _Numbers(numbers.facts, numbers.functions, is_given=True, prints_numbers=True)
    for command in commands:
        name, *words = command.words
        if name.text in numbers.functions or name.text in _SILENT_COMMANDS:
            continue
        if name.text == "printf" and words and _FORMAT_PATTERN.fullmatch(words[0].text):
            words = words[1:]
        elif name.text == "echo":
            words = words[1:] if words and words[0].text == "-n" else words
        elif name.text == "seq":
            pass  # it prints numbers if it is given nothing else
        else:
            return name.text
        if not all(map(hopeful.is_number, words)):
            return name.text
    return ""


def _test_variables(tests: str) -> set[str]:
    names = {name for found in _TEST_VARIABLE_PATTERN.findall(tests) for name in found if name}
    for found in _TEST_NAMES_PATTERN.findall(tests):
        names |= set(re.findall(r"[A-Za-z_]\w*", " ".join(found)))
    return names


def _is_local(name: str, code: str, functions: set[str]) -> bool:
    """Whether each function that names a variable begins with making it its own."""
    headers = _HEADER_PATTERN.findall(code)
    if len(headers) != len(functions):
        return False
    first, *bodies = _HEADER_PATTERN.split(code)
    named = re.compile(rf"\b{re.escape(name)}\b")
    for body in bodies:
        found = _FIRST_LOCALS_PATTERN.match(body)
        if named.search(body) and not (found and re.search(rf"(?:\s|^){re.escape(name)}=", found[1])):
            return False
    return not named.search(first)
