"""What a case says about the names in its answers."""

from __future__ import annotations

import re
from typing import NamedTuple

from steelyard.records import Case
from steelyard.verifiers.command.settings import CommandSettings

_DEFINED_PATTERN = re.compile(
    r"\b(?:def|function|func|sub|class|struct|interface|enum|record)\s+(\w+)"
    r"|^[ \t]*(?!return\b|else\b|new\b)(?:[\w:<>,&*\[\]]+[ \t*&]+)+(\w+)[ \t]*\([^;{}()]*\)[^;{}()=]*\{|^[ \t]*(\w+)[ \t]*\(\)[ \t]*\{",
    re.MULTILINE,
)
"""A function or a type that tests define."""


class AskedNames(NamedTuple):
    """What the prompt and the tests of a case name."""

    prompt: str
    words: frozenset[str]
    """The words of the prompt and of the reference."""
    tests: str
    is_printed: bool
    """Whether the results of the tests are read from what the program prints."""
    command: str
    """The command that runs the tests."""
    files: tuple[str, ...]
    """The files of the tests."""

    @property
    def called(self) -> frozenset[str]:
        """The names that the prompt asks for and the tests use: a word of the prompt alone is English, and what tests define is theirs."""
        defined = {name for names in _DEFINED_PATTERN.findall(self.tests) for name in names if name}
        return frozenset(self.words & self.test_words) - defined

    @property
    def test_words(self) -> set[str]:
        """The words of the tests."""
        return set(re.findall(r"[\w$]+", self.tests))


def asked_names(case: Case) -> AskedNames:
    """What a case says about the names in its answers."""
    said = CommandSettings.of(case)
    prompt = " ".join([*(message.text for message in case.messages), case.reference])
    words = {*re.findall(r"[\w$]+", prompt), *case.expectations.expected_functions, *case.expectations.expected_types}
    kind, _, report = said.results.partition(":")
    is_printed = kind not in ("", "exit code") and not report
    return AskedNames(
        prompt, frozenset(words), "\n".join(said.files.values()), is_printed, said.test, tuple(said.files.values())
    )
