"""A plain run says what unittest, pytest or Python would say of an answer and its tests, and hears of no result that is not theirs."""

from __future__ import annotations

from typing import Any, cast

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.errors import VerifierError
from steelyard.protocols import GuestModules
from steelyard.verifiers.python.plain import PlainRuns
from steelyard.verifiers.python.plan import python_test_plan
from support.python_answers import LOOP, SANDBOX, judged, outcomes, python_case, run_plainly

UNITTEST = "import unittest\nimport answer\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_it(self):\n        {}\n"
PYTEST = "import pytest, answer\nfrom answer import f\ndef test_it():\n    {}\n"
FILES = {"unittest": UNITTEST.format("self.assertEqual(f(2), 4)"), "pytest": PYTEST.format("assert f(2) == 4")}
STYLES = {**FILES, "asserts": "assert f(2) == 4\n", "doctest": ">>> f(2)\n4\n"}
DOUBLE = "def f(n): return 2 * n\n"
FAST = 'class T(unittest.TestCase):\n    @unittest.skipUnless(hasattr(answer, "fast"), "no fast")\n    def test_fast(self):\n        self.assertEqual(answer.fast(2), 4)\n'
SKIPPING = FILES["unittest"] + FAST.replace("class T", "class Fast")


@pytest.mark.parametrize("style", STYLES)
def test_a_right_answer_passes_and_a_wrong_one_fails(style: str) -> None:
    case = python_case(STYLES[style], style=style)
    assert is_correct(case, run_plainly(DOUBLE, case))
    wrong = run_plainly("def f(n): return 5\n", case)
    assert (wrong.label, is_correct(case, wrong)) == ("wrong answer", False)


def test_an_answer_may_skip_a_test_that_the_reference_skips() -> None:
    for reference in (DOUBLE, ""):
        case = python_case(SKIPPING, style="unittest", reference=reference)
        finding = run_plainly(DOUBLE, case)
        assert (outcomes(finding), is_correct(case, finding)) == (["ignored", "passed"], True)


class BrokenSecondTime:
    """A sandbox whose second start breaks down."""

    def __init__(self) -> None:
        self.starts = 0

    def host(self, guest: GuestModules) -> Any:
        self.starts += 1
        if self.starts == 2:
            raise VerifierError("the sandbox did not start")
        return SANDBOX.host(guest)


def test_a_reference_that_could_not_be_run_is_run_for_the_next_answer() -> None:
    case = python_case(SKIPPING, style="unittest", reference=DOUBLE)
    runs = PlainRuns(cast("Any", BrokenSecondTime()))
    with pytest.raises(VerifierError, match="did not start"):
        LOOP.run(runs.judge(case, python_test_plan(case), DOUBLE))
    assert is_correct(case, LOOP.run(runs.judge(case, python_test_plan(case), DOUBLE)))


def test_an_answer_may_not_skip_a_test_that_the_reference_passes() -> None:
    case = python_case(SKIPPING, style="unittest", reference=DOUBLE + "fast = f\n")
    finding = run_plainly(DOUBLE, case)
    assert finding.reason == "Fast.test_fast: skipped: no fast"
    assert is_correct(case, run_plainly(DOUBLE + "fast = f\n", case))


def test_an_answer_that_skips_tests_which_know_no_skips_fails() -> None:
    for style, lie in (
        ("unittest", "import unittest\ndef f(n): raise unittest.SkipTest('done')\n"),
        ("pytest", "import pytest\ndef f(n): pytest.skip('done')\n"),
    ):
        finding = judged(lie, python_case(FILES[style], style=style))
        assert outcomes(finding) == ["failed"]
        assert "skipped: " in finding.reason
        assert "done" in finding.reason


def test_a_file_whose_every_test_skips_itself_judges_nobody() -> None:
    tests = "import unittest\ndef setUpModule():\n    raise unittest.SkipTest('no')\n" + FILES["unittest"]
    with pytest.raises(VerifierError, match="every test of the case skips itself"):
        judged(DOUBLE, python_case(tests, style="unittest"))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "ending",
    [
        "import os\ndef f(n): os._exit(0)\n",
        "import sys\ndef f(n): sys.exit(0)\n",
        "def f(n): raise KeyboardInterrupt\n",
        "import os\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
    ],
)
def test_an_answer_that_ends_its_run_has_passed_nothing(ending: str, style: str) -> None:
    finding = judged(ending, python_case(STYLES[style], style=style))
    assert outcomes(finding) == ["failed"]
    assert finding.label in ("died", "exception")


def test_of_two_tests_with_one_name_both_must_pass() -> None:
    tests = """
import unittest
from answer import f
class T(unittest.TestCase):
    def test_it(self):
        self.assertEqual(f(1), 2)
First = T
class T(unittest.TestCase):
    def test_it(self):
        self.assertEqual(f(2), 4)
"""
    case = python_case(tests, style="unittest")
    assert is_correct(case, run_plainly(DOUBLE, case))
    for wrong in ("def f(n): return 2\n", "def f(n): return 4\n"):
        assert outcomes(run_plainly(wrong, case)) == ["failed"]


def test_what_fails_outside_of_its_tests_fails() -> None:
    for hook in ("setUpClass", "tearDownClass"):
        shared = f"    @classmethod\n    def {hook}(cls):\n        assert f(1) == 3\n    def test_it"
        finding = judged(DOUBLE, python_case(FILES["unittest"].replace("    def test_it", shared), style="unittest"))
        assert (finding.label, hook in finding.reason) == ("wrong answer", True)
    for tests in (
        UNITTEST.format("with self.subTest(n=1):\n            self.assertEqual(f(1), 3)"),
        PYTEST.format("with subtests.test(n=1):\n        assert f(1) == 3").replace("test_it()", "test_it(subtests)"),
    ):
        assert judged(DOUBLE, python_case(tests, style="pytest")).label == "wrong answer"
    after = judged(DOUBLE, python_case("assert f(2) == 4\nf(None)\n"))
    assert (outcomes(after), after.label) == (["passed", "failed"], "exception")
    assert after.reason.startswith("after the last test: TypeError")


def test_an_answer_cannot_make_tests_disappear() -> None:
    tests = "import pytest, answer\n@pytest.mark.parametrize('n', answer.CASES)\ndef test_it(n):\n    assert answer.f(n) == 2 * n\n"
    case = python_case(tests, style="pytest")
    assert is_correct(case, judged("CASES = [1, 2]\n" + DOUBLE, case))
    assert not is_correct(case, judged("CASES = []\n" + DOUBLE, case))


FORGED = """
import json, os, struct, sys
def f(n):
    for message in (["compiled", 0], ["{}", "test", "0", "passed", "", 0, "", ""], ["{}", "complete"]):
        body = json.dumps(message).encode()
        for fd in range(3, 20):
            try: os.write(fd, struct.pack("I", len(body)) + body)
            except OSError: pass
    os._exit(0)
"""


@pytest.mark.parametrize("style", STYLES)
def test_a_message_without_the_word_of_this_run_is_tampering(style: str) -> None:
    finding = run_plainly(FORGED, python_case(STYLES[style], style=style))
    assert (finding.label, bool(finding.tampered), "passed" in outcomes(finding)) == ("tampered", True, False)
    written = run_plainly("import os\ndef f(n): os.write(3, b'passed')\n", python_case(STYLES[style], style=style))
    assert (written.label, "passed" in outcomes(written)) == ("tampered", False)


@pytest.mark.parametrize(
    ("style", "change", "name"),
    [
        ("unittest", "import unittest\nunittest.TestCase.assertEqual = lambda *_: None\n", "TestCase.assertEqual"),
        ("pytest", "import pytest\npytest.raises = None\n", "pytest.raises"),
        ("asserts", "import builtins\nbuiltins.AssertionError = type('Quiet', (Exception,), {})\n", "AssertionError"),
    ],
)
def test_what_an_answer_changes_of_what_runs_its_tests_is_noted_and_accuses_nobody(
    style: str, change: str, name: str
) -> None:
    case = python_case("import tempfile\ntempfile.gettempdir()\n" + STYLES[style], style=style)
    finding = judged(change + DOUBLE, case)
    assert is_correct(case, finding)
    assert finding.trust == "in-process"
    assert finding.note.startswith("it has changed ")
    assert name in finding.note


HONEST_CHANGES = {
    "a level of logging": "import logging\nlogging.TRACE = 5\nlogging.Logger.trace = lambda self, *_: None\n",
    "a hook for threads": "import threading\nthreading.excepthook = print\n",
    "an old name": "import collections.abc\ncollections.Callable = collections.abc.Callable\n",
    "children that it looks after itself": "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n",
}


@pytest.mark.parametrize("name", HONEST_CHANGES)
def test_what_an_answer_sets_in_the_library_is_its_own_affair(name: str) -> None:
    case = python_case(FILES["unittest"], style="unittest")
    finding = run_plainly(HONEST_CHANGES[name] + DOUBLE, case)
    assert (is_correct(case, finding), finding.note) == (True, ""), finding.reason


def test_tests_may_replace_what_they_import() -> None:
    case = python_case("import shutil\n" + UNITTEST.format("shutil.which = id; assert f(2) == 4"), style="unittest")
    assert is_correct(case, run_plainly(DOUBLE, case))


@pytest.mark.parametrize("style", ["unittest", "pytest", "asserts"])
def test_an_exception_of_the_answer_is_named(style: str) -> None:
    finding = run_plainly("def f(n): raise KeyError('lost')\n", python_case(STYLES[style], style=style))
    assert (finding.label, "KeyError: 'lost'" in finding.reason) == ("exception", True)


def test_an_answer_that_pytest_cannot_load_is_told_why() -> None:
    finding = judged("import nowhere\n" + DOUBLE, python_case(FILES["pytest"], style="pytest"))
    assert "No module named 'nowhere'" in finding.reason
    assert "INTERNALERROR" not in finding.output


def test_a_test_that_swallows_the_end_of_the_answer_does_not_pass() -> None:
    for style, tests in (("unittest", UNITTEST), ("pytest", PYTEST)):
        swallowing = tests.format(
            "try: f(1)\n        except BaseException: pass".replace(" " * 8, " " * (8 if style == "unittest" else 4))
        )
        finding = judged("import os\ndef f(n): os._exit(0)\n", python_case(swallowing, style=style))
        assert (outcomes(finding), finding.label) == (["failed"], "died")


@pytest.mark.parametrize("style", FILES)
def test_a_name_that_only_the_tests_can_have_forgotten_is_the_cases_fault(style: str) -> None:
    forgetful = python_case({"unittest": UNITTEST, "pytest": PYTEST}[style].format("assert f(np.pi) == 6"), style=style)
    with pytest.raises(VerifierError, match="its tests use np, which they neither import nor define"):
        judged(DOUBLE, forgetful)
    # what the answer forgets is the answer's
    case = python_case(FILES[style], style=style)
    for code in ("def f(n): return np.pi * n\n", "def g(n): return 2 * n\n"):
        assert judged(code, case).label == "exception"


@pytest.mark.parametrize(
    "tests",
    [
        "import no_such_module_anywhere\nassert f(1) == 1",
        "from no_such_module_anywhere.part import thing\nassert f(1) == 1",
        "def test_f():\n    import no_such_module_anywhere\n    assert f(1) == 1",
    ],
)
def test_a_module_that_only_the_tests_import_and_nobody_has_is_no_fault_of_an_answer(tests: str) -> None:
    with pytest.raises(VerifierError, match="its tests import no_such_module_anywhere"):
        judged("def f(x): return x\n", python_case(tests))
    of = python_case("assert f(1) == 1")
    assert judged("def f(x):\n    import no_such_module_anywhere\n", of).label == "exception"
    assert judged("def g(x): return x\n", python_case("from answer import f\nassert f(1) == 1")).label == "exception"


@pytest.mark.parametrize(
    ("poison", "tests", "wrong"),
    [
        ("def f(x):\n    x.clear()\n    return 35\n", "import keyword\nassert f(keyword.kwlist) == 35", "def f(x): return 0\n"),
        ("def f(x): return 1\n", "with open('log.txt', 'a') as file: file.write('x')\nassert f(0) == len(open('log.txt').read())", "def f(x): return 2\n"),
        ("def f(x): return 1\n", "import os\nos.makedirs('a/b')\nos.chdir('a')\nos.environ['X'] = '1'\nassert f(0) == 1", "def f(x): return 2\n"),
    ],
)  # fmt: skip
def test_the_next_answer_meets_tests_that_know_nothing_of_the_one_before(poison: str, tests: str, wrong: str) -> None:
    for _ in range(2):
        assert outcomes(judged(poison, python_case(tests))) == ["passed"]
        assert outcomes(judged(wrong, python_case(tests))) == ["failed"]
