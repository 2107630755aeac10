"""Files of unittest and pytest are judged apart from the answer; beside it only where they must be, and never to a liar's profit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.errors import VerifierError
from steelyard.protocols import GuestModules
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.worker import SandboxWorker
from steelyard.verifiers.python.verifier import PythonVerifier
from support.studies import with_slow

ROOM = ZygoteSandbox(strongest_isolation())
LOOP = asyncio.Runner()
VERIFIER = PythonVerifier(ROOM)
UNITTEST = "import unittest\nfrom answer import {names}\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        {body}\n"
PYTEST = "import pytest\nfrom answer import {names}\n\ndef test_it():\n    {body}\n"
ALWAYS = "class Yes:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n    __hash__ = object.__hash__\n"
ALWAYS += "    __contains__ = __lt__ = __gt__ = __le__ = __ge__ = __bool__ = lambda self, *_: True\n"
ALWAYS += "    __sub__ = __rsub__ = __abs__ = __round__ = lambda self, *_: 0\n    __len__ = lambda self: 1\n"


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    LOOP.run(VERIFIER.close())
    LOOP.run(ROOM.close())
    LOOP.close()


def judged(style: str, tests: str, code: str, reference: str = "") -> tuple[bool, Finding]:
    verify = Verify(tests=tests, style=style)
    case = Case(id="c", prompt="Write it.", language="python", verify=verify, reference=reference)
    finding = LOOP.run(VERIFIER.verify(case, Answer(text=f"```python\n{code}\n```")))
    return is_correct(case, finding), finding


def in_unittest(body: str, names: str = "f") -> str:
    return UNITTEST.format(names=names, body=body.replace("\n", "\n        "))


def in_pytest(body: str, names: str = "f") -> str:
    return PYTEST.format(names=names, body=body.replace("\n", "\n    "))


DOUBLE = "def f(n): return 2 * n\n"
ORDINARY = {
    "assertEqual": ("unittest", in_unittest("self.assertEqual(f(2), 4)"), DOUBLE),
    "containers": ("unittest", in_unittest("self.assertCountEqual([f(1), f(2)], [4, 2])\nself.assertIn(f(1), {2})"), DOUBLE),
    "floats": ("unittest", in_unittest("self.assertAlmostEqual(f(0.15), 0.3)\nself.assertLess(f(1), 3)"), DOUBLE),
    "raised": ("unittest", in_unittest("self.assertRaises(TypeError, f, None)\nwith self.assertRaisesRegex(TypeError, 'NoneType'):\n    f(None)"), DOUBLE),
    "subtests": ("unittest", in_unittest("for n in range(3):\n    with self.subTest(n=n):\n        self.assertEqual(f(n), n + n)"), DOUBLE),
    "a star": ("unittest", in_unittest("self.assertEqual(f(2), 4)", "*"), DOUBLE),
    "printed": ("unittest", "import io\nimport contextlib\n" + in_unittest("out = io.StringIO()\nwith contextlib.redirect_stdout(out):\n    f(3)\nself.assertEqual(out.getvalue(), '3\\n')"), "def f(n): print(n)\n"),
    "no imports": ("unittest", '"""Tests."""\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f(2), 4)\n', "import unittest\n" + DOUBLE),
    "a path hack": ("unittest", "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n" + in_unittest("self.assertEqual(f(2), 4)"), DOUBLE),
    "a constant": ("unittest", in_unittest("self.assertEqual(LIMIT, 3)\nimport answer\nanswer.f(1)\nself.assertEqual(answer.COUNT, 1)", "f, LIMIT"), "LIMIT = 3\nCOUNT = 0\ndef f(n):\n    global COUNT\n    COUNT += n\n"),
    "parametrized": ("pytest", "import pytest\nfrom answer import f\n@pytest.mark.parametrize('n', [1, 2])\ndef test_it(n):\n    assert f(n) == n + n\n", DOUBLE),
    "approx": ("pytest", in_pytest("assert f(0.15) == pytest.approx(0.3)\nwith pytest.raises(TypeError, match='NoneType'):\n    f(None)"), DOUBLE),
    "capsys": ("pytest", "from answer import f\ndef test_it(capsys):\n    f(3)\n    assert capsys.readouterr().out == '3\\n'\n", "def f(n): print(n)\n"),
    "fixtures": ("pytest", "import pytest\nfrom answer import f\n@pytest.fixture(scope='module')\ndef four():\n    yield f(2)\nclass TestIt:\n    def test_it(self, four):\n        assert four == 4\n", DOUBLE),
    "a mock": ("pytest", "from unittest import mock\n" + in_pytest("seen = mock.Mock()\nf(2, seen)\nseen.assert_called_once_with(2)"), "def f(n, tell): tell(n)\n"),
    "a start that nobody guards": ("unittest", in_unittest("self.assertEqual(f(2), 4)") + "\nunittest.main(\n    verbosity=2)\n", DOUBLE),
    "an exit with the runner's code": ("pytest", "import sys\n" + in_pytest("assert f(2) == 4") + "\nsys.exit(pytest.main([__file__]))\n", DOUBLE),
    "a name of the language": ("pytest", in_pytest("assert sum([1, 2]) == 6", "sum"), "def sum(xs): return xs[0] + xs[1] + 3\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_file_is_judged_apart(name: str) -> None:
    passed, finding = judged(*ORDINARY[name])
    assert (passed, finding.trust, finding.note) == (True, "isolated", ""), finding.reason


MUST_BE_BESIDE = {
    "a patch": ("unittest", "from unittest import mock\nimport answer\n" + in_unittest("with mock.patch('answer.g', lambda: 4):\n    self.assertEqual(f(), 4)"), "def g(): return 1\ndef f(): return g()\n"),
    "a base class": ("unittest", "import unittest\nfrom answer import Base\nclass T(Base, unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(self.four(), 4)\n", "class Base:\n    def four(self): return 4\n"),
    "an object of the tests": ("unittest", "class Box:\n    n = 2\n" + in_unittest("self.assertEqual(f(Box()), 4)"), "def f(box): return 2 * box.n\n"),
    "an object of the answer": ("pytest", in_pytest("box = Box(2)\nassert box.n == 2", "Box"), "class Box:\n    def __init__(self, n): self.n = n\n"),
    "a file": ("pytest", "from answer import f\ndef test_it(tmp_path):\n    f(tmp_path / 'a')\n    assert (tmp_path / 'a').read_text() == 'x'\n", "def f(path): path.write_text('x')\n"),
    "a list that changes": ("unittest", in_unittest("f(1)\nself.assertEqual(SEEN, [1])", "f, SEEN"), "SEEN = []\ndef f(n): SEEN.append(n)\n"),
    "a star over a name of the language": ("pytest", "from answer import *\ndef test_it():\n    assert sum([1, 2]) == 6\n", "def sum(xs): return xs[0] + xs[1] + 3\n"),
    "the module itself": ("unittest", "import answer\n" + in_unittest("self.assertEqual(answer.__all__, ['f'])"), "__all__ = ['f']\ndef f(): pass\n"),
    "identity": ("pytest", in_pytest("assert f() is f()"), "class One: pass\none = One()\ndef f(): return one\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUST_BE_BESIDE)
def test_what_needs_the_answers_process_passes_and_says_so(name: str) -> None:
    style, tests, code = MUST_BE_BESIDE[name]
    passed, finding = judged(style, tests, code)
    assert (passed, finding.trust) == (True, "in-process"), finding.reason


LIES = {
    "a skip of unittest's": "import unittest\ndef f(xs): raise unittest.SkipTest\n",
    "a stop of unittest's": "import unittest.case\ndef f(xs): raise unittest.case._ShouldStop\n",
    "a skip of pytest's": "class Skipped(BaseException): pass\nSkipped.__module__ = '_pytest.outcomes'\ndef f(xs): raise Skipped\n",
    "an exit": "import sys\ndef f(xs): sys.exit(0)\n",
    "an interrupt": "def f(xs): raise KeyboardInterrupt\n",
    "StopIteration": "def f(xs): raise StopIteration\n",
    "its end": "import os\ndef f(xs): os._exit(0)\n",
    "an object that equals everything": f"{ALWAYS}def f(xs): return Yes()\n",
    "a list of such objects": f"{ALWAYS}def f(xs): return [Yes() for x in xs]\n",
    "a number that equals everything": "class N(list):\n    __eq__ = lambda self, other: True\n    __hash__ = None\ndef f(xs): return N()\n",
}
SORTING = {
    "assertEqual": "xs = [2, 1]\nself.assertEqual(f(xs), sorted(xs))",
    "assertEqual turned round": "xs = [2, 1]\ngot = f(xs)\nself.assertEqual(sorted(xs), got)\nself.assertEqual(got, [1, 2])",
    "assertListEqual": "xs = [2, 1]\nself.assertListEqual(f(xs), sorted(xs))",
    "assertTrue": "xs = [2, 1]\nself.assertTrue(f(xs) == sorted(xs))",
    "assertCountEqual": "xs = [2, 1]\nself.assertCountEqual(f(xs), sorted(xs))",
    "assertAlmostEqual": "xs = [2, 1]\nself.assertAlmostEqual(f(xs), sorted(xs))",
    "assert": "xs = [2, 1]\nassert f(xs) == sorted(xs)",
}
CANNOT_CROSS = "import types\nassert isinstance(f, types.FunctionType)\n"


@pytest.mark.parametrize("told", with_slow(["some"], ["all"]))
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_passes_apart_or_behind_a_value_that_cannot_cross(lie: str, told: str) -> None:
    # assertions take turns: each lie is told to a third of them, and each assertion is lied to; in the slow tests to all
    some = ("assertEqual", *list(SORTING)[1 + list(LIES).index(lie) % 3 :: 3])
    for name in SORTING if told == "all" else some:
        body = SORTING[name]
        for first in ("", CANNOT_CROSS) if name == "assertEqual" or told == "all" else ("",):
            passed, finding = judged("unittest", in_unittest(first + body), LIES[lie])
            assert not passed, (name, first)
            assert finding.label in ("wrong answer", "exception", "died", "tampered"), (name, finding.reason)
    # pytest beside an answer takes its time, and is attacked by the same means
    for first in ("", CANNOT_CROSS) if told == "all" or "skip" in lie or "equals" in lie else ("",):
        assert not judged("pytest", in_pytest(first + SORTING["assert"]), LIES[lie])[0], first


def test_an_argument_that_the_answer_empties_never_makes_an_isolated_pass() -> None:
    code = "def f(xs):\n    xs.clear()\n    return []\n"
    for body in SORTING.values():
        passed, finding = judged("unittest", in_unittest(body), code)
        assert not passed or finding.trust == "in-process"


@pytest.mark.parametrize("code", ["CASES = []\n", "CASES = [1]\n"])
def test_an_answer_cannot_make_tests_disappear(code: str) -> None:
    tests = "import pytest\nimport answer\n@pytest.mark.parametrize('n', answer.CASES)\ndef test_it(n):\n    assert answer.f(n) == 2 * n\n"
    assert not judged("pytest", tests, code + "def f(n): return 7\n", "CASES = [1, 2]\n" + DOUBLE)[0]


def test_a_test_that_swallows_the_end_of_the_answer_does_not_pass() -> None:
    body = "try:\n    f(1)\nexcept BaseException:\n    pass"
    for style, tests in (("unittest", in_unittest(body)), ("pytest", in_pytest(body))):
        passed, finding = judged(style, tests, "import os\ndef f(n): os._exit(0)\n")
        assert (passed, finding.label) == (False, "died")


@pytest.mark.parametrize("style", ["unittest", "pytest"])
@pytest.mark.parametrize("beside", [False, True])
def test_a_name_that_only_the_tests_can_have_forgotten_is_the_cases_fault(style: str, beside: bool) -> None:
    made = in_unittest if style == "unittest" else in_pytest
    more = "import tempfile\nFOLDER = tempfile.gettempdir()\n" if beside else ""
    with pytest.raises(VerifierError, match="its tests use np, which they neither import nor define"):
        judged(style, more + made("assert f(np.pi) == 6"), DOUBLE)
    # what the answer forgets is the answer's
    passed, finding = judged(style, more + made("assert f(1) == 2"), "def f(n): return np.pi * n\n")
    assert (passed, finding.label) == (False, "exception")
    assert not judged(style, more + made("assert f(1) == 2"), "def g(n): return 2 * n\n")[0]


def test_tests_of_a_class_share_what_its_set_up_made() -> None:
    tests = """
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
    passed, finding = judged("unittest", tests, DOUBLE)
    assert (passed, finding.trust, [test.name for test in finding.tests]) == (
        True,
        "isolated",
        ["T.test_a", "T.test_b"],
    )
    passed, finding = judged("unittest", tests, "def f(n): raise ValueError('no')\n")
    assert not passed
    assert [test.outcome for test in finding.tests] == ["failed", "failed"]
    assert "ValueError: no" in finding.reason


def test_what_fails_outside_of_its_tests_fails() -> None:
    for hook in ("tearDownClass", "setUpClass"):
        tests = in_unittest("self.assertEqual(f(2), 4)").replace(
            "    def test_it", f"    @classmethod\n    def {hook}(cls):\n        assert f(1) == 3\n    def test_it"
        )
        assert not judged("unittest", tests, DOUBLE)[0], hook
    for tests in (
        in_unittest("with self.subTest(n=1):\n    self.assertEqual(f(1), 3)"),
        "import pytest\nfrom answer import f\ndef test_it(subtests):\n    with subtests.test(n=1):\n        assert f(1) == 3\n",
    ):
        assert not judged("pytest", tests, DOUBLE)[0], tests
    tests = "import unittest\nfrom answer import f\ndef setUpModule():\n    raise unittest.SkipTest('no')\n"
    with pytest.raises(VerifierError, match="every test of the case skips itself"):
        judged("unittest", tests + in_unittest("self.assertEqual(f(2), 4)"), DOUBLE)


class CountingSandbox(ZygoteSandbox):
    """Counts the guests that it lends workers to."""

    lent = 0

    @asynccontextmanager
    async def host(self, guest: GuestModules) -> AsyncIterator[SandboxWorker]:
        self.lent += 1
        async with super().host(guest) as worker:
            yield worker


def test_answers_to_one_case_that_come_together_wait_for_one_rehearsal() -> None:
    tests = "import os\nos.environ\n" + in_unittest("self.assertEqual(f(2), 4)")
    case = Case(id="c", prompt="Write it.", language="python", verify=Verify(tests=tests, style="unittest"))

    async def both() -> int:
        room = CountingSandbox(strongest_isolation())
        verifier = PythonVerifier(room)
        found = await asyncio.gather(
            *(verifier.verify(case, Answer(text=f"```python\n{DOUBLE}# {number}\n```")) for number in (1, 2))
        )
        assert all(is_correct(case, finding) for finding in found)
        await verifier.close()
        await room.close()
        return room.lent

    assert LOOP.run(both()) == 3


def test_an_answer_that_pytest_cannot_load_is_told_why() -> None:
    is_right, finding = judged("pytest", in_pytest("assert f.__code__ is not None"), "import nowhere\ndef f(): pass\n")
    assert not is_right
    assert "No module named 'nowhere'" in finding.reason
    assert "INTERNALERROR" not in finding.output


def test_tests_may_give_their_class_a_function_of_the_answer() -> None:
    tests = in_unittest("self.assertTrue(f.__code__)\nself.assertEqual(self.twice(2), 4)")
    tests = tests.replace(
        "    def test_it", "    @classmethod\n    def setUpClass(cls): cls.twice = staticmethod(f)\n    def test_it"
    )
    assert judged("unittest", tests, DOUBLE)[0]


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
    names: dict[str, object] = {}
    try:
        exec(f"{code}\n{claim}", names)
        is_right = True
    except AssertionError:
        is_right = False
    assert judged("asserts", claim, code)[0] is is_right
    assert judged("pytest", in_pytest(claim), code)[0] is is_right
