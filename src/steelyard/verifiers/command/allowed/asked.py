"""What a case says about the names in its answers."""

from __future__ import annotations

import re
from typing import NamedTuple

from steelyard.records import Case
from steelyard.verifiers.command.settings import CommandSettings


class AskedNames(NamedTuple):
    """What the prompt and the tests of a case name."""

    prompt: str
    words: frozenset[str]
    """The words of the prompt and of the reference."""
    tests: str
    is_printed: bool
    """Whether the results of the tests are read from what the program prints."""

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
    return AskedNames(prompt, frozenset(words), "\n".join(said.files.values()), is_printed)
