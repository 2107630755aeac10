"""Answers that look at their callers, at tracebacks or at their own module are judged beside their tests, and see no more of them than names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.inseparable_answers import why_inseparable
from steelyard.verifiers.python.verifier import PythonVerifier

ROOM = ZygoteSandbox(strongest_isolation())
LOOP = asyncio.Runner()
VERIFIER = PythonVerifier(ROOM)


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    LOOP.run(VERIFIER.close())
    LOOP.run(ROOM.close())
    LOOP.close()


class Task(NamedTuple):
    """A case with an answer that a plain run accepts, and one that it does not."""

    style: str
    tests: str
    right: str
    wrong: str


TASKS = {
    "the name of the caller": Task(
        "asserts",
        "def outer(): return caller()\nassert outer() == 'outer'\nassert caller() == '<module>'\n",
        "import inspect\ndef caller(): return inspect.stack()[1].function\n",
        "import inspect\ndef caller(): return inspect.stack()[0].function\n",
    ),
    "callers of the caller": Task(
        "unittest",
        (
            "import unittest\nfrom answer import trail\ndef inner(): return trail(2)\n"
            "class T(unittest.TestCase):\n    def test_trail(self): self.assertEqual(inner(), ['inner', 'test_trail'])\n"
        ),
        (
            "import sys\ndef trail(depth):\n    names, frame = [], sys._getframe(1)\n"
            "    for _ in range(depth):\n        names.append(frame.f_code.co_name)\n        frame = frame.f_back\n    return names\n"
        ),
        "import sys\ndef trail(depth): return [sys._getframe(1).f_code.co_name] * depth\n",
    ),
    "frames of a traceback": Task(
        "asserts",
        "def fails(): raise ValueError\ndef calls(): fails()\nassert steps(calls) == ['steps', 'calls', 'fails']\n",
        (
            "import sys\ndef steps(function):\n    try:\n        function()\n    except ValueError:\n"
            "        trace, names = sys.exc_info()[2], []\n        while trace:\n"
            "            names.append(trace.tb_frame.f_code.co_name)\n            trace = trace.tb_next\n        return names\n"
        ),
        "def steps(function): return ['steps', function.__name__]\n",
    ),
    "the frame of a generator, and an attribute of that name": Task(
        "asserts",
        "import os\nos.environ\nmade = numbers()\nnext(made)\nassert now(made) == 1\nlist(made)\nassert now(made) is None\nassert Own().gi_frame == 6\n",
        (
            "def numbers():\n    x = 1\n    yield x\ndef now(made): return made.gi_frame and made.gi_frame.f_locals['x']\n"
            "class Own:\n    def __init__(self):\n        self.gi_frame = 5\n        self.gi_frame += 1\n"
        ),
        "def numbers(): yield 1\ndef now(made): return 1\nclass Own: gi_frame = 6\n",
    ),
    "the states of generators and coroutines": Task(
        "asserts",
        "import os\nos.environ\nassert states() == ['CREATED', 'CREATED', 'CREATED']\n",
        (
            "import inspect\ndef made(): yield 1\nasync def waited(): pass\nasync def both(): yield 1\n"
            "def states():\n    coroutine = waited()\n    found = [inspect.getgeneratorstate(made()), inspect.getcoroutinestate(coroutine)]\n"
            "    coroutine.close()\n    found.append(getattr(inspect, 'getasyncgenstate', lambda _: 'AGEN_CREATED')(both()))\n"
            "    return [state.partition('_')[2] for state in found]\n"
        ),
        "def states(): return ['CREATED']\n",
    ),
    "attributes that a module makes": Task(
        "pytest",
        "import answer\ndef test_it():\n    assert answer.ten == 10\n    assert not hasattr(answer, 'other')\n",
        "def __getattr__(name):\n    if name == 'ten':\n        return 10\n    raise AttributeError(name)\n",
        "def __getattr__(name): return 10\n",
    ),
}


def found(style: str, tests: str, code: str, prompt: str = "Write it.") -> tuple[bool, Finding]:
    case = Case(id="inseparable", prompt=prompt, language="python", verify=Verify(style=style, tests=tests))
    VERIFIER.check(case)
    finding = LOOP.run(VERIFIER.verify(case, Answer(text=verbatim_reply(code, "python"))))
    return is_correct(case, finding), finding


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_right_answer_passes_beside_its_tests_and_a_wrong_one_fails(task: Task) -> None:
    is_right, finding = found(task.style, task.tests, task.right)
    assert is_right, finding.reason
    assert finding.trust == "in-process"
    assert not found(task.style, task.tests, task.wrong)[0]


FILL = "import inspect\ndef fill(text): return text.format(**inspect.currentframe().f_back.f_locals)\n"


@pytest.mark.parametrize(
    ("style", "tests"),
    [
        ("asserts", "def go():\n    x, y = 3, 'z'\n    return fill('{x}-{y}')\nassert go() == '3-z'\n"),
        ("pytest", "from answer import fill\ndef test_it():\n    x, y = 3, 'z'\n    assert fill('{x}-{y}') == '3-z'\n"),
    ],
)
def test_an_answer_that_is_asked_for_the_variables_of_its_caller_passes(style: str, tests: str) -> None:
    asked = "Write fill(text), which fills a template with the local variables of its caller."
    is_right, finding = found(style, tests, FILL, asked)
    assert is_right, finding.reason
    assert (finding.trust, finding.note) == (
        "in-process",
        "judged beside its tests: it looks at the functions that call it",
    )
    assert not found(style, tests, FILL.replace("f_back.f_locals", "f_back.f_globals"), asked)[0]


def test_a_pass_that_may_read_the_defaults_of_a_function_of_the_tests_is_not_isolated() -> None:
    tests = "def is_bad(n, limit=7): return n >= limit\nassert first(10, is_bad) == 7\n"
    honest = "def first(n, is_bad): return next(i for i in range(1, n + 1) if is_bad(i))\n"
    reads = "import inspect\ndef first(n, is_bad): return inspect.signature(is_bad).parameters['limit'].default\n"
    assert found("asserts", tests, honest)[1].trust == "isolated"
    assert found("asserts", tests, reads)[1].trust == "in-process"


def test_a_stack_of_the_answers_own_is_no_reason_to_judge_it_beside_its_tests() -> None:
    assert not why_inseparable("class Stack:\n    def __getattr__(self, name): ...\nstack = Stack()\n")


SETTINGS = {
    "precision": (
        "from decimal import Decimal, getcontext\ngetcontext().prec = 50\ndef f(): return Decimal(1) / Decimal({})\n",
        "from decimal import Decimal\nassert f() == Decimal(1) / Decimal(3)\n",
    ),
    "depth of recursion": (
        "import sys\nsys.setrecursionlimit(10**5)\ndef f(): return g(3000)\ndef g(n): return {} - 3 if n == 0 else 1 + g(n - 1)\n",
        "def ref(n): return 0 if n == 0 else 1 + ref(n - 1)\nassert f() == ref(3000)\n",
    ),
    "digits": (
        "import math, sys\nsys.set_int_max_str_digits(0)\ndef f(): return math.factorial(2000) + {} - 3\n",
        "import math\nassert str(f()).endswith('0' * 499)\nassert len(str(f())) == 5736\n",
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_tests_may_rely_on_settings_that_an_answer_makes(name: str) -> None:
    code, tests = SETTINGS[name]
    passed, finding = found("asserts", tests, code.format(3))
    assert (passed, finding.trust) == (True, "in-process")
    assert not found("asserts", tests, code.format(4))[0]
