"""Tests that are calls with plain data are compared outside of the answer's process, and say what a plain run says."""

from __future__ import annotations

import re

import pytest

from steelyard.records import Case, Finding
from steelyard.verifiers.python.guest.values import decoded, is_quick_to_read
from steelyard.verifiers.python.plan import python_test_plan
from support.python_answers import judged, outcomes, python_case, run_plainly

TESTS = """
assert f(1) == 2
assert f([3, 1, 2]) == [1, 2, 3], "sorted"
assert f("x", twice=True) == "xx"
assert f({1: (2, None), "k": {3}}) == {1: (2, None), "k": {3}}
assert not f(0)
assert f(2.5)
assert f(None) is None
assert abs(f(0.1) - (0.1 + 1)) < 1e-6
assert sorted(f([31, 12, 23])) == [12, 23, 31]
assert tuple(f([5, 2 ** 2])) == tuple([4, 5])
assert set(f([2, 2])) == {2}
assert len(f([23, 12, 31])) == 3
assert list(f([12, 31])) == [1 + 11, 31]
"""
RIGHT = """
def f(value, twice=False):
    if value is None: return None
    if isinstance(value, list): return sorted(value)
    if isinstance(value, dict): return value
    if isinstance(value, str): return value * 2
    return value + 1 if value else 0
"""
ANSWERS = {
    "right": RIGHT,
    "right, and prints": "print('hello')\n"
    + RIGHT
    + "\n_f = f\ndef f(*a, **k):\n    print(a)\n    return _f(*a, **k)\n",
    "right, remembered": "import functools\n" + RIGHT + "\n_f = f\nf = lambda *a, **k: _f(*a, **k)\n",
    "right, in place": RIGHT.replace("return sorted(value)", "value.sort(); return value"),
    "wrong": "def f(value, twice=False):\n    return value\n",
    "nothing": "def f(value, twice=False):\n    pass\n",
    "no text": "def f(value, twice=False):\n    raise ValueError\n",
    "an exception": "def f(value, twice=False):\n    return 1 / 0\n",
    "one of its own": "class Mine(Exception): pass\ndef f(value, twice=False):\n    raise Mine('x')\n",
    "an assertion of its own": "def f(value, twice=False):\n    assert False, 'got 1, expected 2'\n",
    "stops": "def f(value, twice=False):\n    raise StopIteration\n",
    "leaves": "def f(value, twice=False):\n    raise SystemExit(0)\n",
    "leaves at once": "import os\ndef f(value, twice=False):\n    os._exit(0)\n",
    "leaves later": RIGHT.replace("return sorted(value)", "__import__('os')._exit(3)"),
    "dies": "import os\ndef f(value, twice=False):\n    os.kill(os.getpid(), 11)\n",
    "never ends": RIGHT.replace("return value * 2", "\n        while True: pass"),
    "not there": "def g(value):\n    return 1\n",
    "a constant": "f = 5\n",
    "a class": "class f:\n    def __init__(self, *a, **k): pass\n",
    "an object": "class C:\n    def __call__(self, value, twice=False): return 2\nf = C()\n",
    "not Python": "def f(value:\n",
    "raises when loaded": "raise KeyError('no')\n",
    "equal to all": "class E:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(value, twice=False):\n    return E()\n",
    "own number": "class I(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef f(value, twice=False):\n    return I(7)\n",
    "a generator": "def f(value, twice=False):\n    yield 1\n",
    "a named tuple": "import collections\nP = collections.namedtuple('P', 'a b')\ndef f(value, twice=False):\n    return P(1, 2)\n",
    "not a number": "def f(value, twice=False):\n    return float('nan')\n",
    "a huge number": "def f(value, twice=False):\n    return 1 << 100_000\n",
    "the same row": "def f(value, twice=False):\n    row = [0]\n    return [row] * 3\n",
    "a circle": "def f(value, twice=False):\n    row = []\n    row.append(row)\n    return row\n",
    "doubled for ever": "def f(value, twice=False):\n    row = []\n    for _ in range(40): row = [row, row]\n    return row\n",
    "deep": "def f(value, twice=False):\n    row = []\n    for _ in range(90): row = [row]\n    return row\n",
    "many keys": "def f(value, twice=False):\n    return {number * (2**61 - 1) for number in range(510)}\n",
    "half a character": "def f(value, twice=False):\n    return '\\ud800'\n",
    "two halves of a character": "def f(value, twice=False):\n    return '\\ud83d\\ude00'\n",
    "bytes": "def f(value, twice=False):\n    return b'x'\n",
    "a type": "def f(value, twice=False):\n    return int\n",
    "a set": RIGHT.replace("return sorted(value)", "return set(value)"),
    "more than can be converted": "def f(value, twice=False):\n    return list(range(600))\n",
    "closes everything": "import os\ndef f(value, twice=False):\n    os.closerange(0, 256)\n    return 2\n",
}
FORGES = """
import json, os, struct
def f(value, twice=False):
    body = json.dumps({reply}).encode()
    for fd in range(3, 64):
        try: os.write(fd, struct.pack("I", len(body)) + body)
        except OSError: pass
    return 7
"""
FORGED = (
    ["ok", {"=": 0}, 0],
    ["ok", {"type": "int"}, 0],
    ["ok", {"d": [[[1], 2]]}, 0],
    ["ok", {"t": 5}, 0],
    ["raised", {"x": []}, [], 5],
    ["ok", 2, "soon"],
    ["ok", 2, "nan"],
    ["ok", 2, -1],
    ["ok"],
    "ok",
)


def called_case(entry_point: str) -> Case:
    tests = TESTS
    if entry_point:
        tests = "def check(candidate):\n" + TESTS.replace("assert f(", "assert candidate(").replace(
            "not f(", "not candidate("
        ).replace("(f(", "(candidate(").replace("\n", "\n    ")
    return python_case(tests, timeout_secs=1, entry_point=entry_point)


def said(finding: Finding) -> tuple[str, str, list[tuple[str, ...]]]:
    """A verdict without seconds and addresses."""

    def same(text: str) -> str:
        return re.sub(r"after [0-9.]+ s|0x[0-9a-f]{6,}", "...", text)

    tests: list[tuple[str, ...]] = [
        (test.name.replace("candidate", "f"), test.outcome, same(test.message)) for test in finding.tests
    ]
    return finding.label, same(finding.reason), tests


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("entry_point", ["", "f"])
def test_a_verdict_by_calls_is_that_of_a_plain_run(name: str, entry_point: str) -> None:
    # one style tries them all, the other what the styles may treat in different ways
    if entry_point and not name.startswith(("right", "wrong", "not there", "an object")):
        return
    case = called_case(entry_point)
    assert len(python_test_plan(case).calls) == 13
    assert not python_test_plan(case).binds_names
    called = judged(ANSWERS[name], case)
    assert said(called) == said(run_plainly(ANSWERS[name], case))
    assert (not called.label) == name.startswith("right"), called.reason


@pytest.mark.parametrize("reply", FORGED, ids=str)
def test_a_forged_reply_passes_no_test(reply: object) -> None:
    case = python_case("assert f(1) == 2\nassert f(2) == 3\n")
    assert judged(FORGES.replace("{reply}", repr(reply)), case).label


@pytest.mark.parametrize(
    "made",
    [
        "import collections\ndef f(x): return collections.Counter(x)\n",
        "class D(dict): pass\ndef f(x): return D(a=1)\n",
        "import collections\nP = collections.OrderedDict\ndef f(x): return P(a=1)\n",
    ],
)
def test_what_is_more_than_plain_data_is_left_to_a_plain_run(made: str) -> None:
    finding = judged(made, python_case("assert f('a') == {'a': 1}\n"))
    assert (finding.label, finding.trust) == ("", "in-process")
    assert "it returned an object of the class" in finding.note


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(1) == g(1)",
        "assert f(open) == 1",
        "assert f(1) == 10 ** 10 ** 10",
        "assert f(1) == 'x' * 10 ** 12",
        "assert f('a' * 3) == 1",
        "assert f(*[1]) == 1",
        "assert f(**{'a': 1}) == 1",
        "assert f(1) is 1000",
        "assert sum([1, 2]) == 3",
        "assert 1 < f(1) < 3",
        "assert f(1) in (1, 2)",
        "assert f.__doc__ == 'x'",
        "assert f(1)(2) == 3",
        "def f(x): return 1\nassert f(1) == 1",
        "from math import floor as f\nassert f(1) == 1",
        "import numpy\nassert f(1) == 1",
        "x = f(1)\nassert f(1) == 1",
        "@f\ndef helper(): pass\nassert f(1) == 1",
        "def helper(x=f(1)): pass\nassert f(1) == 1",
        "def helper(x: f(1)): pass\nassert f(1) == 1",
        "f(2)\nassert f(1) == 1",
        "for x in range(3):\n    assert f(x) == 1",
        "assert f(1) == 1 / 0",
        "assert f(1) == 2 ** 65",
        "assert f(1) == 2 ** -1",
        "assert f(1) == list({1, 2})",
        "assert f({'a', 'b'}) == 1",
        "assert f([{'k': ({'a'},)}]) == 1",
        "assert f({16, 1, 2, 3, 4}) == 1",
        "assert f({8, 0}) == 1",
        "assert f({1, 2, 3, 4, 5}) == 1",
        "assert f(frozenset([3, 11, 19])) == 1",
        "assert f({1.5}) == 1",
        r"assert f('\ud800') == 1",
        "assert set(f(1), f(2)) == {1}",
        "def set(x): return x\nassert set(f(1)) == 1",
        "def helper(x: List): pass\nassert f(1) == 1",
        "helper\nassert f(1) == 1",
    ],
)
def test_tests_that_are_more_than_calls_with_plain_data_are_run(tests: str) -> None:
    assert python_test_plan(python_case(tests)).calls == ()


def test_beside_an_entry_point_another_function_of_the_answers_has_no_say() -> None:
    tests = "def check(candidate):\n    assert candidate(1) == 2\n    assert helper(1) == 2\n"
    assert python_test_plan(python_case(tests, entry_point="f")).calls == ()


@pytest.mark.parametrize(
    "held",
    [
        {"s": list(range(501))},
        {"d": [[number, 0] for number in range(501)]},
        [{"z": list(range(300))}, {"s": list(range(300))}],
        {"s": [{"t": [300] * 300 + [number]} for number in range(2)]},
        {"d": [[{"t": [{"t": [300] * 300}, number]}, 0] for number in range(2)]},
        {"z": [{"i": "0x" + "f" * 4000 + str(number)} for number in range(9)]},
        {"s": [{"D": "1e999999999"}]},
        {"t": [], "s": []},
    ],
)
def test_what_could_be_slow_to_compare_is_not_compared_outside_a_sandbox(held: object) -> None:
    assert not is_quick_to_read(held)
    assert is_quick_to_read([{"t": [1, {"s": [2]}]}, {"d": [["k", {"i": "-0xff"}]]}, {"f": "inf"}, {"b": "eA=="}])
    assert is_quick_to_read({"d": [[number, {"t": [list(range(100))]}] for number in range(500)]})


@pytest.mark.parametrize("held", [{"=": 0}, {"type": "int"}, {"i": 7}, {"f": "1e5"}, {"b": 5}, {"t": 5}])
def test_what_is_no_plain_data_is_not_read(held: object) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        decoded(held)


LOOKS_AHEAD = """
import gc, sys
def f(x):
    frame, places = sys._getframe(1), [gc.get_objects()]
    while frame:
        places += [list(frame.f_locals.values()), list(frame.f_globals.values()), list(frame.f_code.co_consts)]
        frame = frame.f_back
    for held in places:
        for one in held:
            if one is not SOUGHT and one == 'sec' + 'ret': return one
    return 'public'
SOUGHT = 'sec' + 'ret'
"""


def test_an_answer_cannot_look_ahead() -> None:
    case = python_case("assert f('public') == 'secret'\nassert f('secret') == 'public'\n")
    assert len(python_test_plan(case).calls) == 2
    assert outcomes(judged(LOOKS_AHEAD, case))[0] == "failed"
    assert not judged("def f(x): return 'secret' if x == 'public' else 'public'\n", case).label


@pytest.mark.parametrize("tests", ["{}", "for _ in range(1):\n    {}"])
def test_two_halves_of_a_character_are_not_that_character(tests: str) -> None:
    halves, whole = "def f(x): return '\\ud83d\\ude00'\n", "def f(x): return '\\U0001f600'\n"
    case = python_case(tests.format("assert f(1) == '\\U0001f600'"))
    assert [judged(code, case).label for code in (whole, halves)] == ["", "wrong answer"]


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        ("def f(x): return 'x' * 3_000_000 if x == 1 else [x[0] + 111]\n", "assert len(f(1)) == 3000000\nassert f([111]) == [222]\n"),
        ("def f(x): return 'x' * (20 << 20)\n", "assert f(1)\n"),
        ("def f(x): return [(n,) for n in range(x)]\n", "assert len(f(210_000)) == 210_000\n"),
        ("def f(x): return [(*[300] * 500, n) for n in range(100)]\n", "assert len(set(f(1))) == 100\n"),
        ("def f(x): return set(range(600))\n", "assert f(1) == set(range(600))\n"),
    ],
)  # fmt: skip
def test_results_that_are_too_large_to_be_compared_outside_are_compared_inside(code: str, tests: str) -> None:
    assert judged(code, python_case(tests)).label == ""
    wrong = judged(code, python_case(tests.replace("assert ", "assert not ")))
    assert (wrong.label, wrong.trouble) == ("wrong answer", "")


def test_an_answer_that_writes_without_end_is_stopped() -> None:
    floods = "import os\ndef f(x):\n    while True:\n        for fd in range(3, 20):\n            try: os.write(fd, b'x' * 65536)\n            except OSError: pass\n"
    assert judged(floods, python_case("assert f(1) == 2\n", timeout_secs=1)).label in ("tampered", "cpu limit")


NUMBERS = (
    "{7, 15, 100}",
    "{100, 200, 300, 400, 500, 600}",
    "{3.5, 1e20, 7}",
    "frozenset([3, 11, 19])",
    "{1, 2, 3}",
    "{8, 0}",
)
"""Sets that are read in another order when they are made in another way, as from the code of a module that is kept in a file."""


@pytest.mark.parametrize(
    "tests",
    [
        *(f"assert f({text}) == {list(eval(text))}" for text in NUMBERS),
        *(f"assert list(f({text})) == {list(eval(text))}" for text in NUMBERS),
        *(f"assert [x for x in {text} if f([x])] == {eval(f'[x for x in {text}]')}" for text in NUMBERS),
    ],
)
def test_the_order_of_a_set_in_tests_is_that_of_a_plain_run_for_every_answer(tests: str) -> None:
    for code in ("def f(x): return list(x)\n", "class L(list): pass\ndef f(x): return L(x)\n"):
        assert judged(code, python_case(tests)).reason == ""


def test_sets_of_sets_are_sorted_where_the_answer_made_them() -> None:
    case = python_case("assert sorted(f('abcdefgh')) == 5\nassert sorted(f([1])) == 5\n")
    assert python_test_plan(case).calls
    for made in ("frozenset([c])", "(1, frozenset([c]))"):
        code = f"def f(x): return {{{made} for c in x}}\n"
        assert said(judged(code, case)) == said(run_plainly(code, case))


def test_names_that_tests_bind_are_there_for_an_answer_that_relies_on_them() -> None:
    case = python_case("LIMIT = 3\nimport math\nassert f(1) == 4\n")
    assert python_test_plan(case).calls
    assert judged("def f(x): return x + LIMIT + math.floor(0.5)\n", case).label == ""
    assert judged("def f(x): return x + LIMIT + 1\n", case).reason == "f(1) == 4: got 5, expected 4"
