"""Where tests run beside the answer, an answer that is wrong does not pass, whatever it does to what judges it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from attacks.hostile import CASES
from attacks.inside_attacks import FORGERIES
from steelyard.analysis.scoring import is_correct
from steelyard.records import Case, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.plan import python_test_plan

RIGHT = "def add(a, b):\n    return a + b\n"
LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
JUDGE = InProcessJudge(SANDBOX)


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    LOOP.run_until_complete(SANDBOX.close())
    LOOP.close()


def judged(case: Case, code: str) -> Finding:
    return LOOP.run_until_complete(JUDGE.judge(case, python_test_plan(case), code))


@pytest.mark.parametrize("style", ["unittest", "pytest", "asserts", "check", "doctest", "io"])
def test_the_right_answer_passes_beside_its_tests_and_a_wrong_one_does_not(style: str) -> None:
    case = CASES[style]
    finding = judged(case, RIGHT)
    assert is_correct(case, finding), finding.reason
    assert (finding.trust, finding.label) == ("in-process", "")
    assert [test.outcome for test in judged(case, "def add(a, b):\n    return 7\n").tests] == ["failed"] * len(
        finding.tests
    )


@pytest.mark.parametrize("style", ["unittest", "asserts"])
@pytest.mark.parametrize("name", FORGERIES)
def test_no_forgery_passes(name: str, style: str) -> None:
    case = CASES[style]
    finding = judged(case, FORGERIES[name])
    assert not is_correct(case, finding)
    assert finding.label in ("wrong answer", "exception", "died", "tampered"), finding.reason
    assert is_correct(case, judged(case, RIGHT)), "the next honest answer"


@pytest.mark.parametrize("name", [name for number, name in enumerate(FORGERIES) if number % 4 == 0])
def test_no_forgery_passes_by_pytest(name: str) -> None:
    """One in four: pytest takes its time, and what is attacked is mostly the same."""
    assert not is_correct(CASES["pytest"], judged(CASES["pytest"], FORGERIES[name]))


def test_the_table_of_forgeries_is_long() -> None:
    assert len(FORGERIES) >= 100
