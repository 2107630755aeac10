"""Where tests run beside the answer, an answer that is wrong does not pass, whatever it does to what judges it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from attacks.hostile import CASES
from attacks.inside_attacks import CLASS_FORGERIES, FORGERIES
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
HOLD_THE_VALUES = {
    "casts memory",
    "profiles",
    "reads memory",
    "reads memory by its inner module",
    "walks frames of other threads",
}
"""Forgeries that have the expected values in their own code, and take them where they find what they look for: apart from
the tests they find themselves, and the values are right."""
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
def test_no_forgery_passes(name: str, style: str) -> None:
    case = CASES[style]
    finding = judged(case, FORGERIES[name])
    assert not is_correct(case, finding)
    assert finding.label in ("wrong answer", "exception", "died", "tampered"), finding.reason
    # what one spoils stays spoiled, so the next honest answer is asked for after every fourth
    if list(FORGERIES).index(name) % 4 == 3:
        assert is_correct(case, judged(case, RIGHT)), "the next honest answer"


@pytest.mark.parametrize("name", with_slow(SOME_BY_PYTEST, [name for name in FORGERIES if name not in SOME_BY_PYTEST]))
def test_no_forgery_passes_by_pytest(name: str) -> None:
    assert not is_correct(CASES["pytest"], judged(CASES["pytest"], FORGERIES[name]))


@pytest.mark.parametrize(
    ("style", "every"), with_slow([("unittest", 3), ("pytest", 9)], [("unittest", 1), ("pytest", 1)])
)
def test_no_forgery_passes_apart_from_its_tests(style: str, every: int) -> None:
    verifier = PythonVerifier(SANDBOX)
    passed = []
    for name, code in list(FORGERIES.items())[::every]:
        if style == "pytest" and name in CLASS_FORGERIES:
            continue  # they go beside their tests, where pytest takes its time
        finding = LOOP.run_until_complete(verifier.verify(CASES[style], Answer(text=verbatim_reply(code, "python"))))
        if is_correct(CASES[style], finding):
            passed.append(name)
    LOOP.run_until_complete(verifier.close())
    assert set(passed) <= HOLD_THE_VALUES


def test_the_table_of_forgeries_is_long() -> None:
    assert len(FORGERIES) >= 100


LAZY_LOOKS = {
    "all objects": "gc.get_objects, [None]",
    "what refers to an object": "gc.get_referrers, [sink]",
    "frames of a traceback": "operator.attrgetter('tb_frame'), [trace]",
    "a profiler": "sys.setprofile, [print]",
}
LAZY_ANSWER = """
import gc, operator, sys
sink = []
try:
    1 / 0
except ZeroDivisionError as error:
    trace = error.__traceback__
def numbers():
    return map(operator.itemgetter(1), zip(map(sink.append, map({look})), [1]))
"""


@pytest.mark.parametrize("look", LAZY_LOOKS)
def test_what_an_answer_returns_looks_at_nothing_while_tests_read_it(look: str) -> None:
    case = replace(CASES["asserts"], verify=replace(CASES["asserts"].verify, tests="assert list(numbers()) == [1]\n"))
    assert not is_correct(case, judged(case, LAZY_ANSWER.format(look=LAZY_LOOKS[look])))
    honest = LAZY_ANSWER.format(look="len, [[]]")
    assert is_correct(case, judged(case, honest))
