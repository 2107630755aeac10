"""Tests run apart from the answer first, and beside it only where they look at what cannot leave its process."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.in_process import asks_for_own_equality
from steelyard.verifiers.python.verifier import PythonVerifier

ALWAYS_EQUAL = "class Yes:\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\n"


def judged(code: str, tests: str) -> tuple[bool, Finding]:
    case = Case(id="c", prompt="Write it.", language="python", verify=Verify(tests=tests))

    async def verify() -> Finding:
        sandbox = ZygoteSandbox(strongest_isolation())
        verifier = PythonVerifier(sandbox)
        try:
            return await verifier.verify(case, Answer(text=f"```python\n{code}\n```"))
        finally:
            await verifier.close()
            await sandbox.close()

    finding = asyncio.run(verify())
    return is_correct(case, finding), finding


def test_plain_values_are_judged_apart() -> None:
    passed, finding = judged("def double(n): return 2 * n", "assert double(2) == 4")
    assert (passed, finding.trust, finding.note) == (True, "isolated", "")


def test_what_cannot_cross_is_judged_beside_its_tests_and_says_so() -> None:
    tests = "import types\nassert isinstance(make(), types.FunctionType)"
    passed, finding = judged("def make():\n    def inner(): pass\n    return inner", tests)
    assert (passed, finding.trust) == (True, "in-process")
    assert finding.note.startswith("judged beside its tests: isinstance(make(), types.FunctionType)")


def test_a_wrong_value_that_crossed_whole_is_not_judged_again() -> None:
    passed, finding = judged("def double(n): return 3 * n", "assert double(2) == 4")
    assert (passed, finding.trust, finding.note) == (False, "isolated", "")


@pytest.mark.parametrize(
    "code",
    [
        f"{ALWAYS_EQUAL}def double(n): return Yes()",
        f"{ALWAYS_EQUAL}def double(n): return [Yes()]",
        "class N(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__\ndef double(n): return N(0)",
    ],
)
def test_an_object_that_equals_everything_gains_nothing_by_the_second_judging(code: str) -> None:
    for tests in ("assert double(2) == 4", "assert double(2) == [4]", "assert 4 == double(2)"):
        assert not judged(code, tests)[0]


@pytest.mark.parametrize(
    ("prompt", "is_asked"),
    [
        ("Write a class Money that compares equal to a plain number with the same amount.", True),
        ("Write a class Celsius. It should be equal to an int with the same degrees.", True),
        ("Write a class Box such that `Box(3) == 3` holds.", True),
        ("Write a class Box with __eq__.", True),
        ("class Solution: Return the number of subarrays with a sum equal to the integer k.", False),
        ("Write a class Stack with push and pop. Two stacks are compared by size.", False),
        ("Write a class Solution with a method that finds two numbers equal to a target number.", False),
        ("Given a class of students, count those whose grades equal a number of a list.", False),
    ],
)
def test_only_a_prompt_that_compares_objects_with_plain_data_lets_them_do_so(prompt: str, is_asked: bool) -> None:
    case = Case(id="c", prompt=prompt, language="python", verify=Verify(tests="assert f()"))
    assert asks_for_own_equality(case) == is_asked


@pytest.mark.parametrize(
    "trick",
    [
        "import sys\nsys.exit(0)",
        "import os\nos._exit(0)",
        "import builtins\nbuiltins.AssertionError = type('Never', (BaseException,), {})",
        "import sys\nframe = sys._getframe()\nwhile frame:\n    frame.f_globals['double'] = lambda n: 4\n    frame = frame.f_back",
    ],
)
def test_a_trick_behind_a_value_that_cannot_cross_does_not_pass(trick: str) -> None:
    inner = trick.replace("\n", "\n    ")
    code = f"class Thing:\n    pass\ndef make(): return Thing\ndef double(n):\n    {inner}\n    return 5\n"
    tests = "import types\nassert type(make()) is type\nassert double(2) == 4"
    assert not judged(code, tests)[0]
