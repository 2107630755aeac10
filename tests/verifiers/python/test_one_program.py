"""An answer that shares names with its tests is judged as one program with them, as in a plain run of one after the other."""

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

    prompt: str
    tests: str
    right: str
    wrong: str
    style: str = "asserts"


TASKS = {
    "a function that the tests provide": Task(
        "Find the first bad version up to n; isBadVersion(version) is given, and is to be asked seldom.",
        (
            "BAD = 4\nasked = []\ndef isBadVersion(version):\n    asked.append(version)\n    return version >= BAD\n"
            "assert firstBadVersion(5) == 4\nassert len(asked) <= 3\n"
            "for BAD in (1, 7):\n    assert firstBadVersion(9) == BAD\n"
        ),
        (
            "def firstBadVersion(n):\n    low, high = 1, n\n    while low < high:\n        middle = (low + high) // 2\n"
            "        if isBadVersion(middle): high = middle\n        else: low = middle + 1\n    return low\n"
        ),
        "def firstBadVersion(n):\n    return next(v for v in range(1, n + 1) if isBadVersion(v))\n",
    ),
    "a class that the answer repeats": Task(
        "Reverse a list of ListNode(val, next).",
        (
            "class ListNode:\n    def __init__(self, val=0, next=None):\n        self.val, self.next = val, next\n"
            "head = reverse(ListNode(1, ListNode(2)))\n"
            "assert isinstance(head, ListNode) and isinstance(head.next, ListNode)\nassert (head.val, head.next.val) == (2, 1)\n"
        ),
        (
            "class ListNode:\n    def __init__(self, val=0, next=None):\n        self.val, self.next = val, next\n"
            "def reverse(node):\n    made = None\n    while node:\n        made, node = ListNode(node.val, made), node.next\n    return made\n"
        ),
        "class ListNode:\n    def __init__(self, val=0, next=None): self.val, self.next = val, next\ndef reverse(node): return ListNode(node.val, node.next)\n",
    ),
    "a data class on both sides of ==, in check": Task(
        "Write f(job), which doubles the cost of a Job(name, cost).",
        (
            "from dataclasses import dataclass\n@dataclass\nclass Job:\n    name: str\n    cost: int\n\nMETADATA = {'author': 'us'}\n\n"
            "def check(candidate):\n    Half = Job('a', 3)\n    assert candidate(Half) == Job('a', 6)\n    assert candidate(Job('b', 0)).cost == 0\n"
        ),
        (
            "from dataclasses import dataclass\n@dataclass\nclass Job:\n    name: str\n    cost: int\n"
            "Half = 2\ndef f(job): return Job(job.name, job.cost * Half)\n"
        ),
        "class Job:\n    def __init__(self, name, cost): self.name, self.cost = name, cost\ndef f(job): return Job(job.name, job.cost + 2)\n",
        "check",
    ),
    "members of an enumeration and an exception": Task(
        "Write parse(text), which gives a member of Color (RED, BLUE) or raises UnknownColor.",
        (
            "from enum import Enum\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\nclass UnknownColor(Exception):\n    pass\n"
            "assert parse('blue') is Color.BLUE\n"
            "try:\n    parse('green')\nexcept UnknownColor:\n    ok = True\nelse:\n    ok = False\nassert ok\n"
        ),
        (
            "from enum import Enum\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\nclass UnknownColor(Exception): pass\n"
            "def parse(text):\n    try: return Color[text.upper()]\n    except KeyError: raise UnknownColor(text) from None\n"
        ),
        "from enum import Enum\nColor = Enum('Color', 'RED BLUE')\ndef parse(text): return Color.BLUE\n",
    ),
    "a setting and a counter": Task(
        "Write price(net) by the constant RATE, and count the calls in the global calls.",
        "RATE = 0.5\ncalls = 0\nassert price(100) == 150\nRATE = 0\nassert price(100) == 100\nassert calls == 2\n",
        "RATE, calls = 0.2, 0\ndef price(net):\n    global calls\n    calls += 1\n    return net * (1 + RATE)\n",
        "RATE, calls = 0.2, 0\ndef price(net, rate=RATE):\n    global calls\n    calls += 1\n    return net * (1 + rate)\n",
    ),
    "input and print": Task(
        "Write ask_sum(), which asks for two numbers and prints their sum.",
        (
            "replies = iter(['3', '4'])\nlines = []\ndef input(prompt=''):\n    return next(replies)\n"
            "def print(*words):\n    lines.append(' '.join(map(str, words)))\nask_sum()\nassert lines == ['7']\n"
        ),
        "def ask_sum(): print(int(input()) + int(input()))\n",
        "def ask_sum(): print(input() + input())\n",
    ),
    "an import that only the tests have, in a file that takes the answer without importing it": Task(
        "Write task_func(x), the square root.",
        (
            "import unittest\nimport math\nclass TestCases(unittest.TestCase):\n    def test_root(self):\n"
            "        self.assertEqual(task_func(4), math.sqrt(4))\n"
        ),
        "def task_func(x): return math.sqrt(x)\n",
        "def task_func(x): return math.sqrt(x) + 1\n",
        "unittest",
    ),
    "a session": Task(
        "Write gross(net), which adds RATE.",
        ">>> RATE = 0.5\n>>> gross(100)\n150.0\n",
        "RATE = 0.2\ndef gross(net): return net * (1 + RATE)\n",
        "def gross(net): return net * RATE\n",
        "doctest",
    ),
}

TABLE = "expected = {1: 17, 2: 23}\nfor n, want in expected.items():\n    assert f(n) == want\n"
HELPED = "def same(got, wanted):\n    assert got == wanted\nsame(f(1), 1)\nsame(f(2), 23)\nassert f(3) == 3\n"
FORGERIES = {
    "an own check": ("def same(got, wanted): pass\ndef f(n): return n\n", HELPED),
    "an own check, set again while it is called": (
        "def f(n):\n    global same\n    same = lambda *_: None\n    return n\n",
        HELPED,
    ),
    "an own builtin": (
        "# same\ndef all(items): return True\nsame = 1\ndef f(n): return 0\n",
        "same = 0\nassert all([f(1) == 17])\nassert all(f(n) == 17 for n in (1, 2))\n",
    ),
    "an assertion of the tests that is tried": (
        "def f(n):\n    for guess in range(30):\n        try:\n            same(guess, 23 if n == 2 else n)\n        except AssertionError:\n            continue\n        return guess\n",
        HELPED,
    ),
    "a test that is called": (
        "def f(n):\n    test_f()\n    return 0\n",
        "def test_f():\n    assert f(1) == 17\n",
    ),
    "a constant that is set while the answer is called": (
        "N = 4\ndef f(n):\n    global N\n    N = 0\n    return 0\n",
        "N = 4\nassert f(0) == 0\nassert f(N) == N * 2\n",
    ),
    "the end of the process": ("expected = 0\ndef f(n):\n    raise SystemExit(0)\n", TABLE),
}
READS = {
    "by its name": "def f(n): return expected[n]\n",
    "by its name, with another one of its own": "expected = None\ndef f(n): return expected[n]\n",
    "by its name in other letters": "# expected\ndef f(n): return \uff45xpected[n]\n",
    "by a name that is put together": "want = 1\ndef f(n): return globals()['expec' + 'ted'][n]\n",
    "by its module": "import sys\nwant = 1\ndef f(n): return getattr(sys.modules['answer'], 'expec' + 'ted')[n]\n",
}


def judged(code: str, tests: str, *, style: str = "asserts", prompt: str = "Write it.") -> tuple[bool, Finding]:
    """Whether an answer passes its tests, and what was found."""
    verify = Verify(tests=tests, style=style, entry_point="f" if style == "check" else "")
    case = Case(id="c", prompt=prompt, language="python", verify=verify, timeout_secs=10)
    finding = LOOP.run(VERIFIER.verify(case, Answer(text=verbatim_reply(code, "python"))))
    return is_correct(case, finding), finding


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
def test_what_passes_as_one_program_with_its_tests_is_right(task: Task) -> None:
    passed, finding = judged(task.right, task.tests, style=task.style, prompt=task.prompt)
    assert passed, finding.reason
    assert finding.trust == "in-process"
    assert finding.note.startswith("passes as one program with its tests: it uses ")
    assert {test.outcome for test in finding.tests} == {"passed"}
    assert not judged(task.wrong, task.tests, style=task.style, prompt=task.prompt)[0]


@pytest.mark.parametrize("name", FORGERIES)
def test_names_of_the_tests_are_theirs_in_one_program_too(name: str) -> None:
    assert not judged(*FORGERIES[name])[0]


@pytest.mark.parametrize("way", READS)
def test_an_answer_that_reads_what_no_case_has_told_it_proves_nothing(way: str) -> None:
    passed, finding = judged(READS[way], TABLE)
    assert (passed, finding.trust) == (True, "unproved")


CHANGED_FACTORY = """
from collections import defaultdict
d = defaultdict(int, a=1)
freeze(d)
try:
    d["b"]
    is_frozen = False
except KeyError:
    is_frozen = True
assert is_frozen
"""


def test_what_makes_the_missing_items_of_a_dict_may_be_changed() -> None:
    passed, finding = judged("def freeze(d): d.default_factory = None\n", CHANGED_FACTORY)
    assert (passed, finding.trust) == (True, "in-process")
    assert not judged("def freeze(d): return dict(d)\n", CHANGED_FACTORY)[0]


def test_a_wrong_answer_that_shares_no_name_is_judged_once() -> None:
    passed, finding = judged("def f(n): return 0\n", TABLE)
    assert (passed, finding.trust, finding.note) == (False, "isolated", "")


BOUND_BY_BOTH = {
    "a value": (
        "data = [1, 2]\ndef f(): return data\n",
        "data = [3]\nassert f() == [1, 2]\nassert f() != data\n",
        "asserts",
    ),
    "one of two": ("low, high = 1, 2\ndef f(): return low\n", "low = 0\nassert f() == 1\n", "asserts"),
    "a module": ("json = 1\ndef f(): return json\n", "import json\nassert json.loads('1') == f()\n", "asserts"),
    "a module by another name": (
        "m = 1\ndef f(): return m\n",
        "import math as m\nassert f() == m.floor(1.5)\n",
        "asserts",
    ),
    "a function of a module": (
        "def prod(a): return a\ndef f(): return prod(1)\n",
        "from math import gcd, prod\nassert f() == prod([1])\n",
        "asserts",
    ),
    "a variable that is set by its name": (
        "q = 1\ndef f(): return q\n",
        "globals()['q'] = 7\nassert f() == 1\n",
        "asserts",
    ),
    "several that are": ("q = 1\ndef f(): return q\n", "vars().update(q=7)\nassert f() == 1\n", "asserts"),
    "itself": (
        "def f(n):\n    global f\n    f = abs\n    return n + 1\n",
        "assert f(1) == 2\nassert f(2) == 3\n",
        "asserts",
    ),
    "what stands in a text": (
        "globals()['inner'] = lambda n: n\ndef f(n): return globals()['inner'](n) + 1\n",
        "def inner(n): return n + 1\nassert f(1) == 2\n",
        "asserts",
    ),
    "what stands in a program": (
        "exec('def inner(n): return n')\ndef f(n): return inner(n) + 1\n",
        "def inner(n): return n + 1\nfor n in (1, 2):\n    assert f(n) == inner(n)\n",
        "asserts",
    ),
    "a helper": (
        "def check(n): return n > 1\ndef f(n): return check(n)\n",
        "def check(candidate):\n    assert candidate(2) is True\n    assert candidate(0) is False\n",
        "check",
    ),
}


@pytest.mark.parametrize("name", BOUND_BY_BOTH)
def test_a_pass_that_a_plain_run_fails_by_a_name_of_the_tests_is_not_isolated(name: str) -> None:
    code, tests, style = BOUND_BY_BOTH[name]
    passed, finding = judged(code, tests, style=style)
    assert (passed, finding.trust) == (True, "in-process")
    assert finding.note.startswith("fails as one program with its tests, where ")


@pytest.mark.parametrize("style", ["asserts", "check"])
def test_a_pass_is_not_isolated_if_tests_use_a_builtin_that_the_answer_has_made_its_own(style: str) -> None:
    asserts = "assert f([1, 2]) == sum([1, 2])\n"
    tests = f"def check(candidate):\n    {asserts.replace('f(', 'candidate(')}" if style == "check" else asserts
    code = "def f(xs):\n    t = 0\n    for x in xs: t += x\n    return t\n"
    assert judged(code, tests, style=style)[1].trust == "isolated"
    passed, finding = judged(f"def sum(x): return -1\n{code}", tests, style=style)
    assert (passed, finding.trust) == (True, "in-process")


def test_an_answer_that_imports_what_its_tests_import_is_isolated() -> None:
    code = (
        "import math\nfrom collections import Counter, deque\ndef f(n): return math.prod(Counter('a' * n).values())\n"
    )
    tests = "import math\nfrom collections import Counter\nassert f(3) == math.floor(3.5)\nassert f(2) == Counter('aa')['a']\n"
    passed, finding = judged(code, tests)
    assert (passed, finding.trust, finding.note) == (True, "isolated", "")


@pytest.mark.parametrize(
    "code",
    [
        "calls = 0\ndef f(n):\n    global calls\n    calls += 1\n    return n + 1\n",
        "def f(n):\n    global f\n    f = lambda n: n + 1\n    return n + 1\n",
        "globals()['one'] = 1\ndef f(n):\n    'As inner does.'\n    return n + globals()['one']\n",
    ],
)
def test_an_answer_may_bind_its_own_names_again(code: str) -> None:
    passed, finding = judged(code, "def inner(n): return n + 1\nassert f(1) == 2\nassert f(2) == 3\n")
    assert (passed, finding.trust, finding.note) == (True, "isolated", "")


def test_an_example_at_the_end_of_an_answer_may_use_a_name_of_the_tests() -> None:
    passed, finding = judged("def f(n): return n * 2\n\ndata = 4\nprint(f(data))\n", "data = 3\nassert f(data) == 6\n")
    assert (passed, finding.trust, finding.note) == (True, "isolated", "")
