"""Tests made false: expected values of equalities are changed and nothing else, and no right answer passes them."""

from __future__ import annotations

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Pair
from support.python_answers import VERIFIER, judged, python_case

UNITTEST = """
import unittest
from answer import f

class T(unittest.TestCase):
    def test_it(self):
        self.assertEqual(f(1), 2, "one more")
        self.assertAlmostEqual(f(0.5), 1.5, places=3)
        self.assertIn(f(1), (2, 3))
        self.assertLess(f(1), 9)
        self.assertTrue(f(1) > 1)
"""
PYTEST = """
import pytest
from answer import f

@pytest.mark.parametrize("n", [1, 2])
def test_it(n):
    assert f(n) == n + 1
    assert f(0.5) == pytest.approx(1.5, rel=1e-3)
    assert (f(1), f(2)) == (2, 3) and f(1) != 7
    with pytest.raises(TypeError, match="str"):
        f("x")
"""
CHECK = "def check(candidate):\n    inputs = [1, 2]\n    assert candidate(1) == 2\n    assert [candidate(n) for n in inputs] == [2, 3]\n"
ASSERTS = """
import math
assert f(1) == 2, "one more"
assert 3 == f(2)
assert f(2) >= 3 and f(2) in (3, 4) and f(1) != 5
assert abs(f(0.1) - 1.1) < 1e-6
assert math.isclose(f(0.1), 1.1)
assert all(f(n) == n + 1 for n in range(3))
"""
DOCTEST = ">>> xs = [f(1)]\n>>> xs\n[2]\n>>> f('x')\nTraceback (most recent call last):\nTypeError: can only concatenate str (not \"int\") to str\n>>> f(2)\n3\n"
PAIRS = (Pair(input=[1], output=2), Pair(input=[2], output=3))
CASES = {
    "unittest": python_case(UNITTEST, style="unittest"),
    "pytest": python_case(PYTEST, style="pytest"),
    "check": python_case(CHECK, entry_point="f"),
    "asserts": python_case(ASSERTS, style="asserts"),
    "doctest": python_case(DOCTEST, style="doctest"),
    "io": python_case(style="io", pairs=PAIRS, entry_point="f"),
}
EXPECTED = {
    "unittest": ["2", "1.5"],
    "pytest": ["n + 1", "1.5", "(2, 3)"],
    "check": ["2", "[2, 3]"],
    "asserts": ["2", "3"],
    "doctest": ["[2]", "3"],
}
"""The values that are changed; every other place is an input, a bound, a membership, a tolerance, a message or an exception."""
RIGHT = "def f(n): return n + 1\n"
YES = "class Yes:\n    __eq__ = __lt__ = __gt__ = __ge__ = __contains__ = __bool__ = lambda self, *_: True\n    __ne__ = lambda self, *_: True\n"
YES += "    __sub__ = __rsub__ = __abs__ = __round__ = __float__ = lambda self, *_: 0.0\n    __repr__ = lambda self: '[2]'\n    __hash__ = None\n"


@pytest.mark.parametrize("style", EXPECTED)
def test_only_expected_values_of_equalities_are_changed(style: str) -> None:
    case = CASES[style]
    lines = case.tests.splitlines()
    for number, false in enumerate(VERIFIER.false_tests(case).one_by_one):
        changed = [(one, other) for one, other in zip(lines, false.tests.splitlines(), strict=True) if one != other]
        ((before, after),) = changed
        assert EXPECTED[style][number] in before
        assert (
            before.replace(EXPECTED[style][number], "@", 1).split("@")[0]
            == after[: before.index(EXPECTED[style][number])]
        )
    assert len(VERIFIER.false_tests(case).one_by_one) == len(EXPECTED[style])


@pytest.mark.parametrize("style", CASES)
def test_a_right_answer_passes_true_tests_and_fails_every_false_one(style: str) -> None:
    true, false = CASES[style], VERIFIER.false_tests(CASES[style])
    assert is_correct(true, judged(RIGHT, true))
    assert false.all is not None
    for changed in (*false.one_by_one, false.all):
        assert (changed.id, changed.verify.entry_point) == (true.id, true.verify.entry_point)
        finding = judged(RIGHT, changed)
        assert finding.label == "wrong answer", changed.tests


@pytest.mark.parametrize("style", ["unittest", "check", "io"])
def test_an_object_that_equals_everything_passes_when_every_expected_value_is_false(style: str) -> None:
    false = VERIFIER.false_tests(CASES[style]).all
    assert false is not None
    assert is_correct(false, judged(YES + "def f(n): return Yes()\n", false))
