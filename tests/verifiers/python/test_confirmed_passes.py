"""A pass of tests apart from the answer is believed where it must mean the same beside it, and otherwise confirmed there."""

from __future__ import annotations

import ast
import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.protocols import GuestModules
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.guest.test_names import wanted_names
from steelyard.verifiers.python.plain.tests import plain_tests
from steelyard.verifiers.python.verifier import PythonVerifier


class CountingSandbox(ZygoteSandbox):
    """A sandbox that counts what is started in it."""

    hosted: Counter[str] = Counter()

    def host(self, guest: GuestModules) -> Any:
        self.hosted[guest.modules[-1][0].rpartition(".")[2]] += 1
        return super().host(guest)


ROOM = CountingSandbox(strongest_isolation())
LOOP = asyncio.Runner()
VERIFIER = PythonVerifier(ROOM)
UPPER = "def f(text): return text.upper()\n"
LEAVES_DIALECT = "import csv\nclass Own(csv.excel): delimiter = ';'\ndef f(text):\n    csv.register_dialect('own', Own)\n    return text.upper()\n"
"""Right by what it returns, but it leaves something behind in its process, which nobody has put on a list."""
SEEN = "(f('a'), 'own' in csv.list_dialects()) == ('A', False)"
BY_STYLE = {
    "asserts": f"import csv\nassert {SEEN}\n",
    "check": f"import csv\ndef check(f):\n    assert {SEEN}\n",
    "doctest": ">>> import csv\n>>> (f('a'), 'own' in csv.list_dialects())\n('A', False)\n",
    "unittest": f"import csv, unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue({SEEN})\n",
    "pytest": f"import csv\nfrom answer import f\ndef test_it():\n    assert {SEEN}\n",
}
WRONG = {
    "random numbers that the tests have drawn": (
        "import random\nnumber = random.randint(0, 10**9)\nassert g(f(number)) == number\n",
        "import random\ndef f(n): return None\ndef g(_): return random.randint(0, 10**9)\n",
    ),
    "one exception for all calls": (
        "caught = []\nfor n in (1, 2):\n    try:\n        f(n)\n    except ValueError as error:\n        caught.append(error)\nassert len(set(caught)) == 2\n",
        "ERROR = ValueError('no')\ndef f(n): raise ERROR\n",
    ),
    "a text that is found nowhere": (
        "assert {f('x'): 1}['x'] == 1\n",
        "class Text(str):\n    def __hash__(self): return 1\ndef f(text): return Text(text)\n",
    ),
    "what only comes after the last assertion": (
        "assert f(1) == 1\nif f(2) != 4:\n    raise ValueError('not 4')\n",
        "def f(n): return n\n",
    ),
}
PLAIN = {
    "asserts": "import math\nfor xs, want in [([1, 2], 3.0), ([], 0.0)]:\n    assert math.isclose(f(xs), want)\nassert sorted([f([2]), f([1])]) == [1, 2]\n",
    "check": "def check(f):\n    x = [1, 2]\n    total = 0\n    for _ in range(3):\n        total += f([1])\n    assert total == f(x)\n",
    "doctest": ">>> f([1, 2])\n3\n>>> f('ab')\nTraceback (most recent call last):\nTypeError: unsupported operand type(s) for +: 'int' and 'str'\n",
    "unittest": "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f([1, 2]), 3)\n        with self.assertRaises(TypeError):\n            f(['a'])\n",
    "pytest": "import pytest\nfrom answer import f\n@pytest.mark.parametrize('xs, want', [([1], 1), ([1, 2], 3)])\ndef test_it(xs, want):\n    assert f(xs) == pytest.approx(want)\n",
}


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    LOOP.run(VERIFIER.close())
    LOOP.run(ROOM.close())
    LOOP.close()


def judged(style: str, tests: str, code: str) -> tuple[bool, Finding, int]:
    """Whether it passes, what was found, and how often it was judged beside its tests."""
    verify = Verify(tests=tests, style=style, entry_point="f" if style == "check" else "")
    case = Case(id="c", prompt="Write f.", language="python", verify=verify)
    before = ROOM.hosted["inside"]
    finding = LOOP.run(VERIFIER.verify(case, Answer(text=f"```python\n{code}\n```")))
    return is_correct(case, finding), finding, ROOM.hosted["inside"] - before


@pytest.mark.parametrize("style", BY_STYLE)
def test_what_passes_only_apart_from_its_tests_is_wrong(style: str) -> None:
    passed, finding, _ = judged(style, BY_STYLE[style], LEAVES_DIALECT)
    assert (passed, finding.trust) == (False, "in-process")
    assert finding.note == "passed apart from its tests, but not beside them"
    passed, finding, besides = judged(style, BY_STYLE[style], UPPER)
    assert (passed, finding.trust, finding.note) == (True, "isolated", "")
    assert besides, "the honest answer was confirmed, too"


@pytest.mark.parametrize("gap", WRONG)
def test_no_such_answer_passes(gap: str) -> None:
    assert not judged("asserts", *WRONG[gap])[0]


@pytest.mark.parametrize("style", PLAIN)
def test_plain_tests_are_judged_once(style: str) -> None:
    passed, finding, besides = judged(style, PLAIN[style], "def f(xs): return sum(xs)\n")
    assert (passed, finding.trust, besides) == (True, "isolated", 0), finding.reason
    # an object of the answer's in the place of a number is another matter
    own = "class Sum(int): pass\ndef f(xs): return Sum(sum(xs))\n"
    assert judged(style, PLAIN[style], own)[2]


@pytest.mark.parametrize(
    ("tests", "gives_once"),
    [
        ("x = [1]\nassert f(x) == 1\nx = [2]\nassert f(x) == 2", True),
        ("x = [1]\nassert f(x) == 1\nassert x == [1]", False),
        ("x = [1]\nassert f(x) == 1 and f(x) == 1", False),
        ("x = y = [1]\nassert f(x) == 1\nassert y == [1]", False),
        ("x, y = [[1]] * 2\nassert f(x) == 1\nassert y == [1]", False),
        ("x = [1]\nfor n in range(2):\n    assert f(x) == 1", False),
        ("x = [1]\nlook = lambda: x\nassert f(x) == 1\nassert look() == [1]", False),
        ("x = [1]\nassert f(x) == 1\nif f(0):\n    x = [2]\nassert f(x) == 1", False),
        ("rows = [([1], 1)]\nfor x, want in rows:\n    assert f(x) == want", True),
        ("rows = [([1], 1)]\nfor x, want in rows:\n    assert f(x) == want\nassert rows[0][0] == [1]", False),
        ("x = [3, 1]\nwant = sorted(x)\nassert f(x) == want", True),
        ("x = list(range(-9, 9))\nwant = sum([n**2 for n in x if n > 0])\nassert f(x) == want", True),
        ("x = [3, 1]\nwant = sum(n for n in x)\nassert f(x) == want", True),
        ("x = [3, 1]\nassert f(x) == sorted(x)", False),
        ("x = [3, 1]\nwant = {1: f(x), sum(x): 2}\nassert want", False),
        ("x = [3, 1]\nwant = [n for n in x]\nassert f(x) == want\nassert f(0) == sum(x)", False),
        ("x = [3, 1]\nwant = (n for n in x)\nassert f(x) == list(want)", False),
        ("x = [3, 1]\nwant = [x for n in x]\nassert f(x) == want", False),
        ("x = [[3], [1]]\nwant = [n for n in x]\nassert f(x) == want", False),
        ("y = [3]\nx = [y, y]\nwant = list(x)\nassert f(x) == want", False),
        ("x = [3, 1]\nfor n in range(2):\n    want = sum(x)\n    assert f(x) == want", False),
        ("def sorted(x):\n    return x\nx = [3, 1]\nwant = sorted(x)\nassert f(x) == want", False),
        ("x = [3, 1]\nwant = max(x, [4])\nassert f(x) == want", False),
        ("import copy\nx = [1]\nassert f(copy.deepcopy(x)) == 1\nassert x == [1]", True),
        ("from copy import deepcopy as new\nx = [1]\nassert f(new(x)) == 1\nassert x == [1]", True),
        ("import copy\nx = [[1]]\nassert f(copy.copy(x)) == 1\nassert x == [[1]]", False),
        ("import copy\nx = [1]\nassert f(copy.deepcopy(x, {id(x): x})) == 1\nassert x == [1]", None),
        ("from operator import mul as deepcopy\nx = [1]\nassert f(deepcopy(x, 1)) == 1\nassert x == [1]", False),
        ("from copy import deepcopy\nx = [1]\ndef g(deepcopy): assert f(deepcopy(x)) == 1\ng(list)", False),
        ("from copy import deepcopy\ndef deepcopy(x): return x\nx = [1]\nassert f(deepcopy(x)) == 1\nassert x", False),
        ("import copy\nfrom answer import deepcopy\nx = [1]\nassert f(deepcopy(x)) == 1\nassert x == [1]", False),
    ],
)
def test_what_is_given_to_the_answer_is_followed(tests: str, gives_once: bool | None) -> None:
    found = plain_tests(ast.parse(tests), "", is_file=False)
    assert (found and found.gives_once) is gives_once


RETURNS_ITS_ARGUMENT = "def f(xs): return xs\n"
CHANGES_IT_LATER = "kept = []\ndef f(xs):\n    for one in kept: one.append(0)\n    kept.append(xs)\n    return xs\n"


def test_a_list_that_is_given_and_returned_is_one_object() -> None:
    # the second test is given what the first returned, so all calls cannot be sent at once
    tests = "assert f([11, 22]) == [11, 22]\nassert f([[11, 22]]) == [[11, 22]]\n"
    passed, finding, besides = judged("asserts", tests, RETURNS_ITS_ARGUMENT)
    assert (passed, finding.trust, besides) == (True, "isolated", 0), finding.reason
    tests = "first = f([11, 22])\nsecond = f([33])\nassert first == [11, 22]\nassert second == [33]\n"
    passed, _, besides = judged("asserts", tests, RETURNS_ITS_ARGUMENT)
    assert passed
    assert besides, "while tests hold it, the answer may change it"
    assert not judged("asserts", tests, CHANGES_IT_LATER)[0]


HELPED = "def twice(x):\n    return 2 * x\n{between}for n in range(9):\n    assert f(twice(n)) == n\n"


def test_functions_that_tests_define_themselves_are_not_asked_for() -> None:
    tests = "def check(f):\n    for n in range(9):\n        assert f(twice(n)) == n\n"
    stub = "def twice(x):\n    return 2 * x\n\ndef f(n):\n    pass\n"
    verify = Verify(tests=tests, style="check", entry_point="f", stub=stub)
    case = Case(id="c", prompt="Write f.", language="python", verify=verify)
    before = ROOM.hosted["inside"]
    answer = "```python\ndef twice(x): return x + x\ndef f(n): return n // 2\n```"
    finding = LOOP.run(VERIFIER.verify(case, Answer(text=answer)))
    assert (is_correct(case, finding), finding.trust, ROOM.hosted["inside"] - before) == (True, "isolated", 0)
    assert wanted_names([ast.parse(HELPED.format(between=""))]) == {"f", "range", "n", "x"}
    assert "twice" in wanted_names([ast.parse(HELPED.format(between="from answer import *\n"))])
    assert "twice" in wanted_names([ast.parse("def f(x=twice): pass\ndef twice(): pass\n")])
    assert "twice" in wanted_names([ast.parse("@twice\ndef twice(): pass\n")])
    assert "math" not in wanted_names(map(ast.parse, ("import math", "math.pi", "import math")))


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(1) is f(1)",
        "y = f(1)\ny.append(2)\nassert f(1) == []",
        "y = f(1)\ny += [2]\nassert f(1) == []",
        "assert list(map(f, [1])) == [1]",
        "assert f.__name__ == 'f'",
        "assert f(1) == LIMIT",
        "import random\nrandom.seed(1)\nassert f(1) == 2",
        "import sys\nassert f(1) == 2",
        "assert hash(f(1)) == 1",
        "class Own:\n    pass\nassert f(Own()) == 1",
        "def test_it(capsys):\n    assert f(1) == 2",
        "async def test_it():\n    assert await f(1) == 2",
    ],
)
def test_what_is_not_listed_is_not_plain(tests: str) -> None:
    assert plain_tests(ast.parse(tests), "", is_file=False) is None


BAG_TESTS = {
    "unittest": "import unittest\nfrom unittest import mock\nfrom answer import Bag\nclass T(unittest.TestCase):\n    def test_a(self):\n        with mock.patch('builtins.print') as show:\n            Bag().add(1).show()\n        show.assert_called_once_with([1])\n    def test_b(self):\n        self.assertEqual(Bag().add(2).items, [2])\n",
    "pytest": "from answer import Bag\ndef test_a(capsys):\n    Bag().add(1).show()\n    assert capsys.readouterr().out == '[1]\\n'\ndef test_b():\n    assert Bag().add(2).items == [2]\n",
}
BAG = "class Bag:\n    def __init__(self): self.items = []\n    def add(self, item):\n        self.items.append(item)\n        return self\n    def show(self): print(self.items)\n"


@pytest.mark.parametrize("style", BAG_TESTS)
def test_state_that_an_answer_keeps_between_tests_of_a_file_counts_beside_it(style: str) -> None:
    passed, finding, _ = judged(style, BAG_TESTS[style], BAG)
    assert (passed, finding.trust) == (True, "in-process")
    passed, finding, _ = judged(
        style, BAG_TESTS[style], BAG.replace("def __init__(self): self.items = []", "items = []")
    )
    assert (passed, [test.outcome for test in finding.tests]) == (False, ["passed", "failed"])
