"""Where tests run beside the answer, an answer that is wrong does not pass, whatever it does to what judges it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from attacks.hostile import CASES
from attacks.inside_attacks import CLASS_FORGERIES, FORGERIES, READ_OR_REPLACE
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.plan import python_test_plan
from steelyard.verifiers.python.verifier import PythonVerifier
from support.studies import with_slow

RIGHT = "def add(a, b):\n    return a + b\n"
LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
JUDGE = InProcessJudge(SANDBOX)


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
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


PLAIN_FORGERIES = [name for name in FORGERIES if name not in CLASS_FORGERIES]
"""Classes are looked at in the same way in every style."""
SOME_BY_ASSERTS, SOME_BY_PYTEST = PLAIN_FORGERIES[::5], list(FORGERIES)[::15]
"""Some, because what is attacked is mostly the same, and pytest takes its time; the slow tests have them all."""


@pytest.mark.parametrize(
    ("name", "style"),
    with_slow(
        [*((name, "unittest") for name in FORGERIES), *((name, "asserts") for name in SOME_BY_ASSERTS)],
        [(name, "asserts") for name in PLAIN_FORGERIES if name not in SOME_BY_ASSERTS],
    ),
)
def test_no_forgery_passes_but_by_what_every_program_may_do(name: str, style: str) -> None:
    case = CASES[style]
    finding = judged(case, FORGERIES[name])
    assert finding.trust == "in-process"
    if name not in READ_OR_REPLACE:
        assert finding.label in ("wrong answer", "exception", "died", "tampered"), finding.reason
    # what one spoils stays spoiled, so the next honest answer is asked for after every fourth
    if list(FORGERIES).index(name) % 4 == 3:
        assert is_correct(case, judged(case, RIGHT)), "the next honest answer"


@pytest.mark.parametrize("name", with_slow(SOME_BY_PYTEST, [name for name in FORGERIES if name not in SOME_BY_PYTEST]))
def test_no_forgery_passes_by_pytest(name: str) -> None:
    assert name in READ_OR_REPLACE or not is_correct(CASES["pytest"], judged(CASES["pytest"], FORGERIES[name]))


@pytest.mark.parametrize(
    ("style", "every"), with_slow([("unittest", 3), ("pytest", 9)], [("unittest", 1), ("pytest", 1)])
)
def test_no_forgery_passes_as_isolated(style: str, every: int) -> None:
    verifier = PythonVerifier(SANDBOX)
    passed = []
    for name, code in list(FORGERIES.items())[::every]:
        if style == "pytest" and name in CLASS_FORGERIES:
            continue  # they go beside their tests, where pytest takes its time
        finding = LOOP.run_until_complete(verifier.verify(CASES[style], Answer(text=verbatim_reply(code, "python"))))
        if is_correct(CASES[style], finding) and (finding.trust != "in-process" or name not in READ_OR_REPLACE):
            passed.append(name)
    LOOP.run_until_complete(verifier.close())
    assert passed == []


def test_a_pass_says_what_the_answer_changed_of_what_runs_its_tests() -> None:
    finding = judged(CASES["unittest"], FORGERIES["replaces run"])
    assert finding.note == "it has changed TestCase.run, by which tests are run"
    assert not finding.tampered


def test_the_table_of_forgeries_is_long() -> None:
    assert len(FORGERIES) >= 100
