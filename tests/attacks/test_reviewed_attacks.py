"""No attack of the reviewers' passes, apart from the tests or beside them; the honest answer after them does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from attacks.hostile import CASES
from attacks.reviewed_attacks import REVIEWED
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.plan import python_test_plan
from steelyard.verifiers.python.verifier import PythonVerifier

LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
VERIFIER = PythonVerifier(SANDBOX)
JUDGE = InProcessJudge(SANDBOX)
RIGHT = "def add(a, b):\n    return a + b\n"


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closing() -> Iterator[None]:
    yield
    LOOP.run_until_complete(VERIFIER.close())
    LOOP.run_until_complete(SANDBOX.close())
    LOOP.close()


def with_tests(style: str, tests: str) -> Case:
    case = CASES[style]
    return replace(case, verify=replace(case.verify, tests=tests)) if tests else case


def verified(case: Case, code: str) -> Finding:
    return LOOP.run_until_complete(VERIFIER.verify(case, Answer(text=verbatim_reply(code, "python"))))


def judged_beside(case: Case, code: str) -> Finding:
    return LOOP.run_until_complete(JUDGE.judge(case, python_test_plan(case), code))


@pytest.mark.parametrize("name", REVIEWED)
def test_no_attack_of_a_reviewer_passes(name: str) -> None:
    attack = REVIEWED[name]
    case = with_tests(attack.style, attack.tests)
    finding = verified(case, attack.code)
    assert not is_correct(case, finding), (finding.trust, finding.output)
    assert is_correct(CASES["asserts"], verified(CASES["asserts"], RIGHT)), "the next honest answer"


HONEST = {
    "looks at its own stack": "import inspect\ndef add(a, b):\n    assert inspect.stack()[0].function == 'add' and inspect.currentframe()\n    return a + b\n",
    "shows tracebacks": "import traceback\ndef add(a, b):\n    try: 1 / 0\n    except ZeroDivisionError as error: assert traceback.format_exc() and traceback.extract_tb(error.__traceback__)\n    return a + b\n",
    "makes classes that ask who made them": "import collections, enum, typing\nP = collections.namedtuple('P', 'a b')\nclass C(enum.Enum):\n    A = 1\nclass N(typing.NamedTuple):\n    a: int\ndef add(a, b): return a + b\n",
    "imports what was not loaded yet": "import colorsys, graphlib, sqlite3, tomllib, xml.dom.minidom\ndef add(a, b): return a + b\n",
    "keeps data by marshal": "import marshal\ndef add(a, b): return marshal.loads(marshal.dumps(a + b))\n",
    "makes code": "exec(compile('def add(a, b): return a + b', '<made>', 'exec'))\n",
    "warns and logs": "import logging, warnings\ndef add(a, b):\n    warnings.warn('old', DeprecationWarning, stacklevel=2)\n    logging.getLogger(__name__).info('added')\n    return a + b\n",
}  # fmt: skip
CHAINED = "assert 2 < add(1, 2) < 4\nassert 0 <= add(0, 0) < add(1, 1) <= 5, 'order'\nassert all(1 <= x <= 3 for x in [add(1, 1)])\n"


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_answer_may_look_at_itself_beside_its_tests(name: str) -> None:
    for style in ("unittest", "asserts"):
        finding = judged_beside(CASES[style], HONEST[name])
        assert is_correct(CASES[style], finding), finding.reason


def test_chains_of_comparisons_mean_what_they_say() -> None:
    case = with_tests("asserts", CHAINED)
    assert is_correct(case, judged_beside(case, RIGHT))
    assert not is_correct(case, judged_beside(case, "def add(a, b):\n    return 9\n"))
