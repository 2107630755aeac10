"""Tests beside an answer read it as plain Python would."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.plan import python_test_plan

LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
JUDGE = InProcessJudge(SANDBOX)
FILES = {
    "unittest": "import unittest\nfrom answer import f\n\nclass T(unittest.TestCase):\n    def test(self):\n        {}\n",
    "pytest": "from unittest import TestCase\nfrom answer import f\n\ndef test():\n    self = TestCase()\n    {}\n",
    "asserts": "import unittest\nself = unittest.TestCase()\n\ndef test():\n    {}\n",
}
ITERATORS = {
    "a generator": "def f(items):\n    yield from items\n",
    "map": "def f(items): return map(int, items)\n",
    "an iterator of its own": "class f:\n    def __init__(self, items): self.rest = list(items)\n    def __iter__(self): return self\n"
    "    def __next__(self):\n        if not self.rest: raise StopIteration\n        return self.rest.pop(0)\n",
    "a class that can be gone through once": "class f:\n    def __init__(self, items): self.once = iter(items)\n    def __iter__(self): return self.once\n",
}
RIGHT_CLAIMS = (
    "self.assertCountEqual(f([3, 1, 2]), [1, 2, 3])",
    "self.assertIn(2, f([1, 2, 3]))",
    "self.assertNotIn(4, f([1, 2, 3]))",
)
WRONG_CLAIMS = (
    "self.assertCountEqual(f([1, 3]), [])",
    "self.assertIn(4, f([1, 2, 3]))",
    "self.assertNotIn(2, f([1, 2, 3]))",
)


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    LOOP.run_until_complete(SANDBOX.close())
    LOOP.close()


def case_of(style: str, tests: str, seconds: float = 10) -> Case:
    verify = Verify(tests=tests, style=style)
    return Case(id="c", prompt="Write f.", language="python", timeout_secs=seconds, verify=verify)


def beside(case: Case, code: str) -> Finding:
    return LOOP.run_until_complete(JUDGE.judge(case, python_test_plan(case), code))


@pytest.mark.parametrize("style", FILES)
@pytest.mark.parametrize("name", ITERATORS)
def test_what_can_be_gone_through_once_is_gone_through_once(name: str, style: str) -> None:
    for claims, expected in ((RIGHT_CLAIMS, True), (WRONG_CLAIMS, False)):
        for claim in claims:
            case = case_of(style, FILES[style].format(claim))
            finding = beside(case, ITERATORS[name])
            assert is_correct(case, finding) is expected, f"{claim}: {finding.label} {finding.reason}"


@pytest.mark.parametrize("claim", ["self.assertIn(10, f())", "assert 10 in f()"])
def test_an_item_is_found_in_an_endless_generator(claim: str) -> None:
    case = case_of("unittest", FILES["unittest"].format(claim))
    found = beside(case, "import itertools\ndef f(): return itertools.count()\n")
    assert is_correct(case, found), found.reason


@pytest.mark.parametrize("claim", ["self.assertIn(10, f())", "assert 10 in f()", "self.assertCountEqual(f(), [10])"])
def test_an_item_that_equals_everything_is_not_found_in_a_generator(claim: str) -> None:
    case = case_of("unittest", FILES["unittest"].format(claim))
    always = "class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
    for returned in ("(Yes() for _ in range(1))", "iter([Yes()])", "map(lambda _: Yes(), [1])"):
        found = beside(case, f"{always}def f(): return {returned}\n")
        assert not is_correct(case, found), returned


@pytest.mark.parametrize("style", FILES)
def test_an_exception_of_the_answer_is_named(style: str) -> None:
    found = beside(case_of(style, FILES[style].format("assert f() == 3")), "def f(): raise KeyError('lost')\n")
    assert found.label == "exception"
    assert "KeyError: 'lost'" in (found.reason or "")


HONEST_CHANGES = {
    "a level of logging": ("logging", "logging.TRACE = 5\nlogging.Logger.trace = lambda self, *_: None"),
    "a hook for threads": ("threading", "threading.excepthook = print"),
    "an old name": ("collections", "import collections.abc\ncollections.Callable = collections.abc.Callable"),
    "what JSON is made of objects": ("json", "json.JSONEncoder.default = lambda self, held: vars(held)"),
}


@pytest.mark.parametrize("name", HONEST_CHANGES)
def test_what_answers_may_set_in_the_library_fails_none(name: str) -> None:
    module, change = HONEST_CHANGES[name]
    case = case_of("unittest", f"import {module}\n" + FILES["unittest"].format("assert f() == 7"))
    found = beside(case, f"import {module}\n{change}\ndef f(): return 7\n")
    assert is_correct(case, found), found.reason


def test_tests_may_replace_what_they_import() -> None:
    case = case_of("unittest", "import shutil\n" + FILES["unittest"].format("shutil.which = id; assert f() == 7"))
    assert is_correct(case, beside(case, "import shutil\ndef f(): return 7\n"))
