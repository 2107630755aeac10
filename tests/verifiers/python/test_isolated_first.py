"""Tests run apart from the answer first, and beside it only where they look at what cannot leave its process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.in_process import asks_for_own_equality
from steelyard.verifiers.python.verifier import PythonVerifier

ALWAYS_EQUAL = "class Yes:\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\n"


ROOM = ZygoteSandbox(strongest_isolation())
LOOP = asyncio.Runner()
VERIFIER = PythonVerifier(ROOM)


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    LOOP.run(VERIFIER.close())
    LOOP.run(ROOM.close())
    LOOP.close()


def judged(code: str, tests: str) -> tuple[bool, Finding]:
    """Whether an answer passes its tests, and what was found."""
    verify = Verify(tests=tests, style="unittest" if "unittest" in tests else "")
    case = Case(id="c", prompt="Write it.", language="python", verify=verify, timeout_secs=10)
    finding = LOOP.run(VERIFIER.verify(case, Answer(text=f"```python\n{code}\n```")))
    return is_correct(case, finding), finding


def all_judged(answers: Sequence[tuple[str, str]]) -> list[tuple[bool, Finding]]:
    """The same for several answers."""
    return [judged(code, tests) for code, tests in answers]


def test_plain_values_are_judged_apart() -> None:
    passed, finding = judged("def double(n): return 2 * n", "assert double(2) == 4")
    assert (passed, finding.trust, finding.note) == (True, "isolated", "")


def test_what_cannot_cross_is_judged_beside_its_tests_and_says_so() -> None:
    tests = "import types\nassert isinstance(make(), types.FunctionType)"
    passed, finding = judged("def make():\n    def inner(): pass\n    return inner", tests)
    assert (passed, finding.trust) == (True, "in-process")
    assert finding.note.startswith("judged beside its tests: isinstance(make(), types.FunctionType)")


@pytest.mark.parametrize(
    ("code", "tests", "why"),
    [
        (
            "import os\ndef f(): return os.getcwd()",
            "import os\nassert f() == os.getcwd()",
            "they look at their process",
        ),
        ("def f(): return 'x = 1'", "exec(f())\nassert f()", "they run text as code"),
        (
            "class P:\n    def __init__(self, x): self.x = x\n    def __eq__(self, other): return self.x == other.x",
            "assert P(1) == P(1)\nassert P(1) != P(2)",
            "the word of an object that the answer made",
        ),
    ],
)
def test_a_pass_that_is_not_isolated_says_why(code: str, tests: str, why: str) -> None:
    passed, finding = judged(code, tests)
    assert (passed, finding.trust) == (True, "in-process")
    assert why in finding.note


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
    tests = ("assert double(2) == 4", "assert double(2) == [4]", "assert 4 == double(2)")
    assert not any(passed for passed, _ in all_judged([(code, test) for test in tests]))


@pytest.mark.parametrize(
    ("prompt", "is_asked"),
    [
        ("Write a class Money that compares equal to a plain number with the same amount.", True),
        ("A Vec compares equal to a tuple with the same coordinates.", True),
        ("Each `Money` must equal a number of the same amount.", True),
        ("Given an Array, compare equal numbers in a list.", False),
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


NO_ERROR = "else:\n    assert False"
OWN_EQUALITY = (
    "class Point:\n    def __init__(self, x): self.x = x\n    def __eq__(self, other): return self.x == other.x\n"
)
EXPECT_AN_ERROR: dict[str, tuple[str, str]] = {
    "an argument": ("def f(x): return 1", f"try:\n    f(object())\nexcept TypeError:\n    pass\n{NO_ERROR}"),
    "an argument in unittest": (
        "def f(x): return 1",
        (
            "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test(self):\n"
            "        with self.assertRaises(TypeError):\n            f(object())"
        ),
    ),
    "a base class": (
        "class Final: pass",
        f"try:\n    class Sub(Final): pass\nexcept TypeError:\n    pass\n{NO_ERROR}",
    ),
    "what a function of the tests returns": (
        "def f(give):\n    try: return give()\n    except TypeError: return 'none'",
        "class Thing: pass\nassert f(lambda: Thing()) == 'none'",
    ),
    "an order of plain data": (
        "class Point:\n    def __lt__(self, other): return True",
        f"try:\n    Point() < 3\nexcept TypeError:\n    pass\n{NO_ERROR}",
    ),
    "being unequal to plain data": (OWN_EQUALITY, "assert Point(1) != 'x'"),
    "being in no list": (OWN_EQUALITY, "assert Point(1) not in ['x']"),
    "a large result": (
        "def f(): return [(n,) for n in range(210_000)]",
        f"try:\n    f()\nexcept ValueError:\n    pass\n{NO_ERROR}",
    ),
}
"""Wrong answers, by what cannot cross: their tests expect the error, or the inequality, that we would put in its place."""


def test_no_error_of_ours_is_the_one_that_a_test_expects() -> None:
    found = dict(zip(EXPECT_AN_ERROR, all_judged(list(EXPECT_AN_ERROR.values())), strict=True))
    assert [what for what, (passed, _) in found.items() if passed] == []
    assert {finding.trust for _, finding in found.values()} == {"in-process"}


@pytest.mark.slow
def test_an_error_that_comes_of_waiting_too_long_is_not_ours() -> None:
    waits = "import asyncio\nasync def f(): await asyncio.sleep(6)"
    tests = "import asyncio\ntry:\n    asyncio.run(f())\nexcept TimeoutError:\n    pass\nelse:\n    assert False"
    assert not judged(waits, tests)[0]


def test_a_test_that_would_wait_for_ever_for_what_cannot_cross_is_judged_beside_the_answer() -> None:
    code = "import asyncio\nasync def answer_once(queue): await queue.put('done')"
    tests = (
        "import asyncio\nasync def main():\n    queue = asyncio.Queue()\n    task = asyncio.ensure_future(answer_once(queue))\n"
        "    return await queue.get()\nassert asyncio.run(main()) == 'done'"
    )
    passed, finding = judged(code, tests)
    assert (passed, finding.trust) == (True, "in-process")


def test_many_calls_and_large_results_cost_an_answer_no_time_of_its_own() -> None:
    calls = "def test_calls():\n    for n in range(22_000):\n        assert double(n) == 2 * n\ntest_calls()"
    answers = [
        ("def double(n): return 2 * n", calls),
        ("def apply(f, xs): return [f(x) for x in xs]", "assert apply(lambda x: x + 1, range(22_000))[-1] == 22_000"),
        ("def rows(n): return [[k] for k in range(n)]", "assert len(rows(250_000)) == 250_000"),
    ]
    assert [(passed, finding.trust) for passed, finding in all_judged(answers)] == [(True, "in-process")] * 3


ENDS = "def first(items):\n    return next(iter(items))"
POINT = """class Point:
    def __init__(self, x, y): self.x, self.y = x, y
    def __eq__(self, other): return (self.x, self.y) == (other.x, other.y)
    def __hash__(self): return hash((self.x, self.y))"""


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        (ENDS, "try:\n    first([])\nexcept Exception: pass\nelse: assert False"),
        (ENDS, "try:\n    first([])\nexcept: pass\nelse: assert False"),
        (
            ENDS,
            (
                "import unittest\nfrom answer import first\nclass T(unittest.TestCase):\n    def test(self):\n"
                "        with self.assertRaises(Exception): first([])\n"
            ),
        ),
        (
            ENDS,
            (
                "import unittest\nfrom answer import first\nclass T(unittest.TestCase):\n    def test(self):\n"
                "        try: first([])\n        except: return\n        self.fail()\n"
            ),
        ),
        (POINT, "match Point(1, 2):\n    case Point(x=1, y=2): pass\n    case _: assert False"),
        (POINT, "names = {1: 'a', 'b': 2}\nassert names.get(Point(1, 2)) is None"),
        (POINT, "names = {1: 'a', Point(1, 2): 'p'}\nassert names[Point(1, 2)] == 'p'"),
    ],
)
def test_what_a_plain_run_accepts_of_endings_and_own_equality_passes(code: str, tests: str) -> None:
    passed, finding = judged(code, tests)
    assert (passed, finding.trust) == (True, "in-process"), finding.reason


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        ("def first(items):\n    raise StopIteration", "assert all(x == 1 for x in map(first, [[1], [1]]))"),
        ("def first(items):\n    return None", "try:\n    first([])\nexcept Exception: pass\nelse: assert False"),
        (
            f"{ALWAYS_EQUAL}def double(n): return Yes()",
            "match double(1):\n    case 2 | 3: pass\n    case _: assert False",
        ),
        (
            f"{ALWAYS_EQUAL}def double(n): return Yes()",
            "match double(1):\n    case 2 as two: pass\n    case _: assert False",
        ),
        (POINT, "match Point(1, 3):\n    case Point(x=1, y=2): pass\n    case _: assert False"),
    ],
)
def test_their_wrong_twins_fail(code: str, tests: str) -> None:
    passed, _ = judged(code, tests)
    assert not passed
