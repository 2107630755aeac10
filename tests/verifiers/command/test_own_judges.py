"""Answers that have a say in their tests are found by their text; honest ones are not."""

from __future__ import annotations

import pytest

from attacks.command_fresh import FRESH_SCENES
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.own_judges import answers_for_tests
from steelyard.verifiers.command.proof import has_means_to_end_tests

FOUND_BY_TEXT = (
    ("C++ that is included", "a result that is equal"),
    ("C++ that is included", "an operator by a macro"),
    ("C++ that is included", "an operator over two lines"),
    ("C++ that is included", "another list"),
    ("Java", "its own List"),
    ("Java", "a list that is equal"),
    ("Java", "a list without a name"),
    ("Java", "a list with an escape"),
    ("Java", "a list with a comment"),
    ("Java", "reads the compiled tests"),
    ("node, modules of old", "arguments of its module"),
    ("node, modules of old", "arguments by spreading"),
    ("node, symbols", "a match of its own"),
    ("node, symbols", "a pattern that has its own"),
    ("sh without quotes", "or with a number"),
    ("sh without quotes", "by a variable"),
    ("sh without quotes", "a reading of every file"),
    ("sh without quotes", "reads a name with quotes in it"),
    ("bash, a pattern", "a star"),
    ("bash, a pattern", "a star by its number again"),
    ("bash, a pattern", "who calls"),
    ("bash, numbers", "a choice"),
    ("bash, texts", "without case"),
    ("Python by a command", "a number that is equal"),
    ("Python by a command", "another function of a module by a name"),
    ("Python by a command", "a class made by type"),
    ("Perl by a command", "overloads"),
)


@pytest.mark.parametrize(("scene", "attack"), FOUND_BY_TEXT)
def test_an_answer_that_has_a_say_in_its_tests_is_not_proved(scene: str, attack: str) -> None:
    case = FRESH_SCENES[scene].case
    assert has_means_to_end_tests(case, FRESH_SCENES[scene].attacks[attack])


@pytest.mark.parametrize("scene", FRESH_SCENES)
def test_the_honest_answer_beside_them_has_no_say(scene: str) -> None:
    case, honest, _ = FRESH_SCENES[scene]
    assert not answers_for_tests(case, honest, canonical_language(case.language))
    assert not has_means_to_end_tests(case, honest)
