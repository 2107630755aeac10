"""Tests that pass once more in a process of their own make an isolated pass; everything else of a plain run is in-process, and says why."""

from __future__ import annotations

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import FLAG_BESIDE_TESTS, Finding
from support.python_answers import judged, outcomes, python_case

UNITTEST = "import unittest\nfrom answer import {names}\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        {body}\n"
PYTEST = "import pytest\nfrom answer import {names}\n\ndef test_it():\n    {body}\n"
DOUBLE = "def f(n): return 2 * n\n"


def in_unittest(body: str, names: str = "f") -> str:
    return UNITTEST.format(names=names, body=body.replace("\n", "\n        "))


def in_pytest(body: str, names: str = "f") -> str:
    return PYTEST.format(names=names, body=body.replace("\n", "\n    "))


def found(style: str, tests: str, code: str) -> tuple[bool, Finding]:
    case = python_case(tests, style=style, entry_point="f" if style == "check" else "")
    finding = judged(code, case)
    return is_correct(case, finding), finding


APART = {
    "a function": ("asserts", "def test_it():\n    assert f(2) == 4\n    assert f([1]) == [1, 1]\n", DOUBLE),
    "a loop": ("asserts", "for n in range(9):\n    assert f(n) == n + n\n", DOUBLE),
    "a check": ("check", "def check(candidate):\n    xs = [2, 1]\n    assert candidate(xs) == xs + xs\n", DOUBLE),
    "examples": ("doctest", ">>> x = f(2)\n>>> x\n4\n>>> f(None)\nTraceback (most recent call last):\nTypeError: unsupported operand type(s) for *: 'int' and 'NoneType'\n", DOUBLE),
    "assertEqual": ("unittest", in_unittest("self.assertEqual(f(2), 4)"), DOUBLE),
    "containers": ("unittest", in_unittest("self.assertCountEqual([f(1), f(2)], [4, 2])\nself.assertIn(f(1), {2})"), DOUBLE),
    "floats": ("unittest", in_unittest("self.assertAlmostEqual(f(0.15), 0.3)\nself.assertLess(f(1), 3)"), DOUBLE),
    "raised": ("unittest", in_unittest("self.assertRaises(TypeError, f, None)\nwith self.assertRaisesRegex(TypeError, 'NoneType'):\n    f(None)"), DOUBLE),
    "subtests": ("unittest", in_unittest("for n in range(3):\n    with self.subTest(n=n):\n        self.assertEqual(f(n), n + n)"), DOUBLE),
    "a star": ("unittest", in_unittest("self.assertEqual(f(2), 4)", "*"), DOUBLE),
    "a star over a name of the language": ("pytest", "from answer import *\ndef test_it():\n    assert sum([1, 2]) == 6\n", "def sum(xs): return xs[0] + xs[1] + 3\n"),
    "no imports": ("unittest", '"""Tests."""\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f(2), 4)\n', "import unittest\n" + DOUBLE),
    "a constant": ("unittest", in_unittest("self.assertEqual(LIMIT, 3)\nimport answer\nanswer.f(1)\nself.assertEqual(answer.COUNT, 1)", "f, LIMIT"), "LIMIT = 3\nCOUNT = 0\ndef f(n):\n    global COUNT\n    COUNT += n\n"),
    "parametrized": ("pytest", "import pytest\nfrom answer import f\n@pytest.mark.parametrize('n', [1, 2])\ndef test_it(n):\n    assert f(n) == n + n\n", DOUBLE),
    "approx": ("pytest", in_pytest("assert f(0.15) == pytest.approx(0.3)\nwith pytest.raises(TypeError, match='NoneType'):\n    f(None)"), DOUBLE),
    "a file that is not there": ("pytest", in_pytest("with pytest.raises(FileNotFoundError, match='nowhere') as caught:\n    f()\nassert caught.value.filename == '/nowhere'"), "def f(): open('/nowhere')\n"),
    "fixtures": ("pytest", "import pytest\nfrom answer import f\n@pytest.fixture(scope='module')\ndef four():\n    yield f(2)\nclass TestIt:\n    def test_it(self, four):\n        assert four == 4\n", DOUBLE),
    "a start that nobody guards": ("unittest", in_unittest("self.assertEqual(f(2), 4)") + "\nunittest.main(\n    verbosity=2)\n", DOUBLE),
    "a name of the language": ("pytest", in_pytest("assert sum([1, 2]) == 6", "sum"), "def sum(xs): return xs[0] + xs[1] + 3\n"),
    "what it prints": ("pytest", in_pytest("assert f(1) == 2"), "def f(n):\n    print('f')\n    return 2 * n\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_tests_that_need_plain_data_alone_make_an_isolated_pass(name: str) -> None:
    passed, finding = found(*APART[name])
    assert (passed, finding.trust, finding.note, finding.flag) == (True, "isolated", "", ""), finding.reason


BESIDE = {
    "a patch": ("unittest", "from unittest import mock\nimport answer\n" + in_unittest("with mock.patch('answer.g', lambda: 4):\n    self.assertEqual(f(), 4)"), "def g(): return 1\ndef f(): return g()\n", "they speak of mock"),
    "what is printed": ("pytest", "from answer import f\ndef test_it(capsys):\n    f(3)\n    assert capsys.readouterr().out == '3\\n'\n", "def f(n): print(n)\n", "they speak of capsys"),
    "a file": ("pytest", "from answer import f\ndef test_it(tmp_path):\n    f(tmp_path / 'a')\n    assert (tmp_path / 'a').read_text() == 'x'\n", "def f(path): path.write_text('x')\n", "they speak of tmp_path"),
    "a module of the answer": ("asserts", "random.seed(3)\nassert f() == random.Random(3).random()", "import random\ndef f(): return random.random()\n", "they use random"),
    "a name of the tests": ("asserts", "from string import digits\nfor i in range(2):\n    assert f() == digits", "def f(): return digits\n", "judged beside its tests: f raises NameError"),
    "a process": ("asserts", "import os\nassert f() == os.getpid()", "import os\ndef f(): return os.getpid()\n", "they import os"),
    "text as code": ("asserts", "exec(f())\nassert f()", "def f(): return 'x = 1'\n", "they speak of exec"),
    "identity": ("pytest", in_pytest("assert f() is f()"), "one = (1,)\ndef f(): return one\n", "they ask which object something is"),
    "what an exception came from": ("pytest", in_pytest("with pytest.raises(ValueError) as caught:\n    f()\nassert isinstance(caught.value.__cause__, KeyError)"), "def f():\n    try: {}['k']\n    except KeyError as error: raise ValueError('k') from error\n", "they speak of __cause__"),
    "a base class": ("unittest", "import unittest\nfrom answer import Base\nclass T(Base, unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(self.four(), 4)\n", "class Base:\n    def four(self): return 4\n", "its Base is neither a function nor plain data"),
    "an object of the tests": ("unittest", "class Box:\n    n = 2\n" + in_unittest("self.assertEqual(f(Box()), 4)"), "def f(box): return 2 * box.n\n", "f is given an object of the class Box"),
    "an object of the answer": ("pytest", in_pytest("assert f(2).n == 2"), "class Box:\n    def __init__(self, n): self.n = n\nf = lambda n: Box(n)\n", "f: it returned an object of the class Box"),
    "an exception of the answer's": ("pytest", in_pytest("with pytest.raises(ValueError):\n    f()"), "class Refused(ValueError): pass\ndef f(): raise Refused\n", "f raises Exception, which is more than plain data"),
    "an argument that changes": ("asserts", "xs = [2, 1]\nf(xs)\nassert xs == [1, 2]\n", "def f(xs): xs.sort()\n", "f changes what it is given"),
    "an argument that is emptied": ("unittest", in_unittest("xs = [2, 1]\nself.assertEqual(f(xs), sorted(xs))"), "def f(xs):\n    xs.clear()\n    return []\n", "f changes what it is given"),
    "a list that changes": ("unittest", in_unittest("f(1)\nself.assertEqual(SEEN, [1])", "f, SEEN"), "SEEN = []\ndef f(n): SEEN.append(n)\n", "its SEEN is neither"),
    "the module itself": ("unittest", "import answer\n" + in_unittest("self.assertEqual(answer.__file__[-9:], 'answer.py')"), "def f(): pass\n", "they speak of __file__"),
    "words of a function": ("pytest", in_pytest("assert f.__doc__ == 'Double.'"), "def f(n):\n    'Double.'\n", "the tests look at f.__doc__"),
    "a half of a shared list": ("asserts", "def test():\n    rows = f(2)\n    assert rows[0] == rows[1]\n", "def f(n):\n    row = [0]\n    return [row] * n\n", "in two places"),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_what_tests_need_of_the_answers_process_is_said(name: str) -> None:
    style, tests, code, why = BESIDE[name]
    passed, finding = found(style, tests, code)
    assert (passed, finding.trust, finding.flag) == (True, "in-process", ""), finding.reason
    assert finding.note.startswith("judged beside its tests: ")
    assert why in finding.note


ALWAYS = "class Yes:\n    __eq__ = __lt__ = __contains__ = lambda self, *_: True\n    __hash__ = None\n"


@pytest.mark.parametrize("style", ["asserts", "unittest", "pytest"])
def test_an_object_that_equals_everything_is_never_an_isolated_pass(style: str) -> None:
    tests = {"asserts": "for n in (1, 2):\n    assert f(n) == 4", "unittest": in_unittest("self.assertEqual(f(2), 4)")}
    for returned in ("Yes()", "[Yes()]", "type('N', (int,), {'__eq__': Yes.__eq__})(7)"):
        _, finding = found(
            style, tests.get(style, in_pytest("assert f(2) == 4")), f"{ALWAYS}def f(n): return {returned}\n"
        )
        assert finding.trust == "in-process"


def test_a_pass_that_fails_in_a_process_of_its_own_is_flagged() -> None:
    looks = "import sys\ndef f(n): return sys._getframe(1).f_locals.get('expected', 0)\n"
    for style, tests in (
        ("asserts", "def test_it():\n    expected = 4\n    assert f(2) == expected\n"),
        ("unittest", in_unittest("expected = 4\nself.assertEqual(f(2), expected)")),
        ("pytest", in_pytest("expected = 4\nassert f(2) == expected")),
    ):
        passed, finding = found(style, tests, looks)
        assert (passed, finding.trust, finding.flag) == (True, "in-process", "only beside its tests")
        assert found(style, tests, DOUBLE)[1].flag == ""


def test_a_failure_is_a_plain_runs_and_is_not_tried_again() -> None:
    passed, finding = found("asserts", "xs = [1]\nassert f(xs) == [2]\n", DOUBLE)
    assert (passed, finding.trust, finding.reason) == (False, "in-process", "f(xs) == [2]: got [1, 1], expected [2]")


def test_tests_of_a_class_share_what_its_set_up_made() -> None:
    shared = """
import unittest
import answer
class T(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seen = [answer.f(1)]
    def test_a(self):
        self.seen.append(answer.f(2))
        self.assertEqual(self.seen, [2, 4])
    def test_b(self):
        self.assertEqual(self.seen, [2, 4])
"""
    passed, finding = found("unittest", shared, DOUBLE)
    assert (passed, finding.trust, [test.name for test in finding.tests]) == (
        True,
        "isolated",
        ["T.test_a", "T.test_b"],
    )


def test_many_calls_cost_an_answer_no_time_of_its_own() -> None:
    calls = "def test_calls():\n    for n in range(22_000):\n        assert f(n) == 2 * n\n"
    passed, finding = found("asserts", calls, DOUBLE)
    assert passed, finding.reason


SHRUNK = "def f():\n    found = set(range(1000))\n    found -= set(range(1000)) - {1, 8}\n    return found\n"
SIEVE = "def f():\n    found = set(range(2, 40))\n    for p in range(2, 40):\n        found -= set(range(2 * p, 40, p))\n    return found\n"


@pytest.mark.parametrize(
    ("code", "claim"),
    [
        (SIEVE, "assert list(f()) == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]"),
        (SIEVE, "assert f() == {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37}"),
        (SHRUNK, "assert list(f()) == [8, 1]"),
        (SHRUNK.replace("return found", "return frozenset(found)"), "assert list(f()) == [8, 1]"),
        ("def f(s): return list(s)\n", "s = set(range(1000))\ns -= s - {1, 8}\nassert f(s) == list(s)"),
    ],
)
def test_a_set_is_read_in_the_order_of_a_plain_run(code: str, claim: str) -> None:
    try:
        exec(f"{code}\n{claim}", {})
        expected = ["passed"]
    except AssertionError:
        expected = ["failed"]
    assert (
        outcomes(found("asserts", claim, code)[1]) == outcomes(found("pytest", in_pytest(claim), code)[1]) == expected
    )


CHANGES_JSON = "import json\njson.dumps = lambda value: 'none'\ndef f(n): return n\n"
ASKS_FOR_CHANGED_JSON = "import json\ndef test_it():\n    assert json.dumps(f(1)) == 'none'\n"


@pytest.mark.parametrize(("reference", "flag"), [(CHANGES_JSON, ""), ("", FLAG_BESIDE_TESTS)])
def test_what_the_reference_passes_only_beside_its_tests_flags_nobody(reference: str, flag: str) -> None:
    case = python_case(ASKS_FOR_CHANGED_JSON, reference=reference)
    finding = judged(CHANGES_JSON, case)
    assert (is_correct(case, finding), finding.trust, finding.flag) == (True, "in-process", flag)
