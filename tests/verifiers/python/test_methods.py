"""A method of a class that is made without arguments is tested as a function is: in every style, by calls compared outside and in a plain run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from steelyard.analysis.scoring import is_correct
from steelyard.records import Finding, Pair, Verify
from support import python_answers
from support.python_answers import VERIFIER, python_case, run_plainly

METHOD = "Solution().two_sum"
RIGHT = """
class Solution:
    made = 0
    def __init__(self):
        Solution.made += 1
        self.calls = 0
    def two_sum(self, numbers, target):
        return next([i, j] for j in range(len(numbers)) for i in range(j) if numbers[i] + numbers[j] == target)
    def count(self):
        self.calls += 1
        return [Solution.made, self.calls]
"""
WRONG = RIGHT.replace("[i, j]", "[j, i]")
CALLS = f"assert {METHOD}(numbers=[3, 3], target=6) == [0, 1]\nassert {METHOD}([1, 2, 4], 6) == [1, 2]\n"
CHECK = (
    "def check(candidate):\n    assert candidate(numbers = [3, 3], target = 6) == [0, 1]\n"
    "    assert candidate([1, 2, 4], 6) == [1, 2]\n"
)
PAIRS = (Pair(input=[[3, 3], 6], output=[0, 1]), Pair(input=[[1, 2, 4], 6], output=[1, 2]))
ISOLATED = {
    "check": Verify(tests=CHECK, entry_point=METHOD),
    "asserts": Verify(style="asserts", tests=CALLS, entry_point=METHOD),
    "asserts without an entry point": Verify(style="asserts", tests=CALLS),
    "pairs": Verify(style="io", pairs=PAIRS, entry_point=METHOD),
}
IN_PROCESS = {
    "check that hands it on": Verify(tests="def check(c):\n    return tested(c)\ndef tested(c):\n    assert c([3, 3], 6) == [0, 1]\n", entry_point=METHOD),
    "a loop": Verify(style="asserts", tests=f"for n in range(3):\n    assert {METHOD}([n, n], 2 * n) == [0, 1]\n", entry_point=METHOD),
    "unittest": Verify(style="unittest", tests=f"class T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual({METHOD}([3, 3], 6), [0, 1])\n", entry_point=METHOD),
    "check that looks at files": Verify(tests="import os\n" + CHECK.replace("    assert", "    assert os.getcwd()\n    assert", 1), entry_point=METHOD),
}  # fmt: skip


def judged(verify: Verify, code: str, *, beside: bool = False) -> tuple[bool, Finding]:
    case = replace(python_case(timeout_secs=10), verify=verify)
    VERIFIER.check(case)
    finding = run_plainly(code, case) if beside else python_answers.judged(code, case)
    return is_correct(case, finding), finding


@pytest.mark.parametrize("name", [*ISOLATED, *IN_PROCESS])
def test_a_right_method_passes_and_a_wrong_one_fails_on_every_road(name: str) -> None:
    verify = (ISOLATED | IN_PROCESS)[name]
    is_right, finding = judged(verify, RIGHT)
    assert is_right, finding.reason
    assert finding.trust == ("isolated" if name in ISOLATED else "in-process")
    assert judged(verify, RIGHT, beside=True)[0]
    for beside in (False, True):
        is_right, finding = judged(verify, WRONG, beside=beside)
        assert (is_right, finding.label) == (False, "wrong answer"), finding.reason


@pytest.mark.parametrize("beside", [False, True])
def test_the_object_is_made_as_often_as_the_tests_name_it(beside: bool) -> None:
    once = Verify(
        tests="def check(f):\n    assert f() == [1, 1]\n    assert f() == [1, 2]\n", entry_point="Solution().count"
    )
    assert judged(once, RIGHT, beside=beside)[0]
    each = "assert Solution().count() == [1, 1]\nassert Solution().count() == [2, 1]\n"
    assert judged(Verify(style="asserts", tests=each), RIGHT, beside=beside)[0]
    pairs = (Pair(input=[], output=[1, 1]), Pair(input=[], output=[1, 2]))
    assert judged(Verify(style="io", pairs=pairs, entry_point="Solution().count"), RIGHT, beside=beside)[0]


@pytest.mark.parametrize("name", ["check", "asserts", "pairs"])
def test_an_answer_without_the_method_is_told_so(name: str) -> None:
    assert "no attribute 'two_sum'" in judged(ISOLATED[name], RIGHT.replace("two_sum", "three_sum"))[1].reason
    assert "name 'Solution' is not defined" in judged(ISOLATED[name], RIGHT.replace("Solution", "Solver"))[1].reason
