"""Tests are compiled once for each case."""

from __future__ import annotations

from steelyard.verifiers.python.guest.test_rewriter import repeatable_code, rewritten_code

TESTS = "def test_it():\n    assert double(2) == 4\n"


def test_tests_are_compiled_again_for_an_interpreter_of_another_version() -> None:
    first, packed = repeatable_code(lambda: rewritten_code(TESTS), "")
    again, nothing = repeatable_code(lambda: rewritten_code(TESTS), packed)
    assert (again, nothing) == (first, "")
    other, made = repeatable_code(lambda: rewritten_code(TESTS), "bm90IGl0cyBudW1iZXI=")
    assert other is not None
    assert made


def test_tests_that_do_not_compile_are_left_to_whoever_runs_them() -> None:
    assert repeatable_code(lambda: rewritten_code("def"), "") == (None, "")
