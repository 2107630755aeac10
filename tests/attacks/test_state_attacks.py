"""What a process shares with its tests forges no verdict that is called isolated, and what is known to be a forgery is flagged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from attacks.hostile import CASES
from attacks.state_attacks import STATE
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.plan import python_test_plan
from steelyard.verifiers.python.verifier import PythonVerifier
from support.studies import with_slow

LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
VERIFIER = PythonVerifier(SANDBOX)
JUDGE = InProcessJudge(SANDBOX)
PASS_IN_PROCESS = {
    *("tests' own class: equal to it", "tests' own class: a subclass of it", "tests' own class: rewritten"),
    *("datetime: today", "locale: another one", "random: seeds", "time: it stands"),
}
"""Passes by the word of the answer's own object, or by a clock or another state that tests beside it share, which are `in-process`."""


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closing() -> Iterator[None]:
    yield
    LOOP.run_until_complete(VERIFIER.close())
    LOOP.run_until_complete(SANDBOX.close())
    LOOP.close()


def with_tests(style: str, tests: str) -> Case:
    return replace(CASES[style], verify=replace(CASES[style].verify, tests=tests))


@pytest.mark.parametrize(
    ("style", "every"),
    # what is attacked is the same in every style, and files take their time
    with_slow([("asserts", 1), ("unittest", 4), ("pytest", 12)], [("unittest", 1), ("pytest", 1)]),
)
def test_no_change_of_shared_state_passes_as_isolated(style: str, every: int) -> None:
    passed = set()
    for name, attack in list(STATE.items())[::every]:
        case = with_tests(style, getattr(attack, style)())
        finding = LOOP.run_until_complete(VERIFIER.verify(case, Answer(text=verbatim_reply(attack.code, "python"))))
        if is_correct(case, finding):
            assert finding.trust == "in-process", name
            passed.add(name)
    assert passed <= PASS_IN_PROCESS


HONEST = {
    "sets a precision": "import decimal\ndecimal.getcontext().prec = 50\ndef add(a, b): return a + b\n",
    "seeds": "import random\nrandom.seed(3)\ndef add(a, b):\n    random.random()\n    return a + b\n",
    "encodes its own way": "import json\njson.JSONEncoder.default = lambda self, o: str(o)\ndef add(a, b): return a + b\n",
    "has dates": "from datetime import date, timedelta\nimport time\nSTART = time.time()\nclass Day(date): pass\ndef add(a, b): return a + b\n",
    "has a file": "open('notes.py', 'w').write('x = 1')\nimport notes\ndef add(a, b): return a + b\n",
}  # fmt: skip
OWN_CLOCK = (
    "import time, random, datetime, unittest\nfrom answer import add\ntime.time = lambda: 0.0\nrandom.random = lambda: 0.5\n"
    "class TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
)


def test_an_honest_answer_is_not_flagged_for_what_it_shares() -> None:
    for case in (CASES["unittest"], CASES["asserts"], with_tests("unittest", OWN_CLOCK)):
        for name, code in HONEST.items():
            finding = LOOP.run_until_complete(JUDGE.judge(case, python_test_plan(case), code))
            assert is_correct(case, finding), (name, finding.label, finding.reason)
