"""An answer recurses as deep as in a new interpreter, whatever of ours is below it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Pair
from support.python_answers import judged, python_case, run_plainly

DEPTH = "def depth(n): return 0 if n == 0 else 1 + depth(n - 1)\n"
PLAIN_RUN = DEPTH + "import sys\nassert depth(int(sys.argv[1])) == int(sys.argv[1])\n"
TESTS = {
    "plain calls": "assert depth({}) == {}",
    "a function": "def test():\n    assert depth({}) == {}\n",
    "a variable": "found = depth({})\nassert found == {}",
}


@pytest.fixture(scope="module")
def deepest() -> int:
    """What a new interpreter reaches when a program calls a function."""
    for number in range(1000, 900, -1):
        if (
            subprocess.run([sys.executable, "-c", PLAIN_RUN, str(number)], capture_output=True, check=False).returncode
            == 0
        ):
            return number
    raise AssertionError("an interpreter does not recurse")


def test_a_program_reaches_what_a_new_interpreter_reaches_and_no_more(deepest: int) -> None:
    program = DEPTH + "print(depth(int(input())))\n"
    for number, expected in ((deepest, True), (deepest + 1, False)):
        case = python_case(style="io", pairs=(Pair(input=str(number), output=str(number)),))
        assert is_correct(case, judged(program, case)) is expected, number


@pytest.mark.parametrize("beside", [False, True], ids=["its own road", "plain"])
@pytest.mark.parametrize("name", TESTS)
def test_a_function_that_tests_call_reaches_it_as_well(name: str, beside: bool, deepest: int) -> None:
    # two more or less, because versions of Python count differently
    for number, expected in ((deepest - 1, True), (deepest + 3, False)):
        case = python_case(TESTS[name].format(number, number), style="asserts")
        finding = run_plainly(DEPTH, case) if beside else judged(DEPTH, case)
        assert is_correct(case, finding) is expected, number
