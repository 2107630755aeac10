"""An answer recurses as deep as in a new interpreter, whatever of ours is below it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Pair, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.plan import python_test_plan
from steelyard.verifiers.python.verifier import PythonVerifier

LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
VERIFIER, JUDGE = PythonVerifier(SANDBOX), InProcessJudge(SANDBOX)
DEPTH = "def depth(n): return 0 if n == 0 else 1 + depth(n - 1)\n"
PLAIN_RUN = DEPTH + "import sys\nassert depth(int(sys.argv[1])) == int(sys.argv[1])\n"
TESTS = {
    "plain calls": "assert depth({}) == {}",
    "a function": "def test():\n    assert depth({}) == {}\n",
    "a variable": "found = depth({})\nassert found == {}",
}


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    LOOP.run_until_complete(VERIFIER.close())
    LOOP.run_until_complete(SANDBOX.close())
    LOOP.close()


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


def case_of(tests: str = "", pairs: tuple[Pair, ...] = ()) -> Case:
    verify = Verify(style="io" if pairs else "asserts", tests=tests, pairs=pairs)
    return Case(id="c", prompt="Write depth.", language="python", timeout_secs=10, verify=verify)


def passes(case: Case, code: str, *, beside: bool = False) -> bool:
    judging = (
        JUDGE.judge(case, python_test_plan(case), code)
        if beside
        else VERIFIER.verify(case, Answer(text=verbatim_reply(code, "python")))
    )
    return is_correct(case, LOOP.run_until_complete(judging))


def test_a_program_reaches_what_a_new_interpreter_reaches_and_no_more(deepest: int) -> None:
    program = DEPTH + "print(depth(int(input())))\n"
    for number, expected in ((deepest, True), (deepest + 1, False)):
        pair = Pair(input=str(number), output=str(number))
        assert passes(case_of(pairs=(pair,)), program) is expected, number


@pytest.mark.parametrize("beside", [False, True], ids=["apart", "beside"])
@pytest.mark.parametrize("name", TESTS)
def test_a_function_that_tests_call_reaches_it_as_well(name: str, beside: bool, deepest: int) -> None:
    # two more or less, because versions of Python count differently
    for number, expected in ((deepest - 1, True), (deepest + 3, False)):
        assert passes(case_of(TESTS[name].format(number, number)), DEPTH, beside=beside) is expected, number
