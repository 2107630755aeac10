"""Answers that have a say in their tests are found by their text; honest ones are not."""

from __future__ import annotations

import pytest

from attacks.command_fresh import FRESH_SCENES
from attacks.command_later import LATER_SCENES
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.allowed import unlisted
from steelyard.verifiers.command.caller_loops import leaves_loop_of_perl, leaves_loop_of_shell
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


FOUND_IN_OUTPUT_OR_PROGRAM = (
    "C, ",
    "C++ ",
    "C functions",
    "C variables",
    "node, globals",
    "node, console",
    "Java output",
    "Python output",
)
"""How the names of scenes begin whose attacks are found in what they print, or in the program that they are built to."""


@pytest.mark.parametrize("scene", LATER_SCENES)
def test_a_later_answer_that_shares_something_with_its_tests_is_not_proved(scene: str) -> None:
    case, honest, attacks = LATER_SCENES[scene]
    assert not has_means_to_end_tests(case, honest)
    if not scene.startswith(FOUND_IN_OUTPUT_OR_PROGRAM):
        found = {name for name, code in attacks.items() if has_means_to_end_tests(case, code) or unlisted(case, code)}
        assert found == set(attacks)


@pytest.mark.parametrize(
    ("code", "leaves"),
    [
        ("add() { break; }", True),
        ("for n in 1; do add() { continue; }; done", True),
        ("add() { for n in 1; do break 2; done; }", True),
        ("add() {\n  for n in 1 2; do\n    [ $n = 1 ] || break # done\n  done\n}", False),
        ("add() { while :; do for n in 1; do break 2; done; done; }", False),
    ],
)
def test_a_shell_function_leaves_loops_of_its_own_only(code: str, leaves: bool) -> None:
    assert leaves_loop_of_shell(code) == leaves


@pytest.mark.parametrize(
    ("code", "leaves"),
    [
        ("sub add { last; }", True),
        ("sub add { if ($_[0]) { next } 3 }", True),
        ("sub add { for my $n (1) { last OUTER; } }", True),
        ("for my $n (1) { *add = sub { last }; }", True),
        ("sub add { my $s = 0; for my $n (@_) { next if $n < 0; $s += $n; } $s }", False),
        ("sub add { OUTER: while (1) { foreach (@_) { last OUTER; } } }", False),
        ("sub next { my $self = shift; $self->{next}->next; $self->{last} = 'last'; }", False),
    ],
)
def test_a_perl_function_leaves_loops_of_its_own_only(code: str, leaves: bool) -> None:
    assert leaves_loop_of_perl(code) == leaves


@pytest.mark.parametrize(("scene", "attack"), FOUND_BY_TEXT)
def test_an_answer_that_has_a_say_in_its_tests_is_not_proved(scene: str, attack: str) -> None:
    case = FRESH_SCENES[scene].case
    assert has_means_to_end_tests(case, FRESH_SCENES[scene].attacks[attack])


@pytest.mark.parametrize("scene", FRESH_SCENES)
def test_the_honest_answer_beside_them_has_no_say(scene: str) -> None:
    case, honest, _ = FRESH_SCENES[scene]
    assert not answers_for_tests(case, honest, canonical_language(case.language))
    assert not has_means_to_end_tests(case, honest)
