"""Tests that are calls with plain data are decided without a referee, and no verdict tells the difference."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from steelyard.protocols import ProcessResult, ResourceLimits
from steelyard.records import Answer, Case, Expectations, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.guest.values import is_plain
from steelyard.verifiers.python.plain.calls import _NotPlainError, answered_calls, plain_report
from steelyard.verifiers.python.plain.words import is_without_surroundings
from steelyard.verifiers.python.plan import PythonTestPlan, python_test_plan
from steelyard.verifiers.python.verifier import PythonVerifier

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = """
import math
LIMIT = 3
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
    for reply in ({reply}, ["reply", 0, *{reply}]):
        body = json.dumps(reply).encode()
        for fd in range(3, 64):
            try: os.write(fd, struct.pack("I", len(body)) + body)
            except OSError: pass
    return 7
"""
for number, reply in enumerate(
    (
        ["ok", {"h": [0, 1, "function", True, []]}, "", False, 0],
        ["ok", {"=": 0}, "", False, []],
        ["ok", {"type": "int"}, "", False, 0],
        ["ok", {"i": "0x" + "_1" * 9}, "", False, 0],
        ["ok", {"f": "1_0"}, "", False, 0],
        ["ok", {"d": [[[1], 2]]}, "", False, 0],
        ["ok", {"t": 5}, "", False, 0],
        ["raised", {"x": [{"X": "antigravity:x"}, [], [], "", None, None, False]}, "", False, 0],
        ["ok", 2, "", False, "soon"],
        ["ok", 2, "", False, "nan"],
        ["ok", 2, "", False, "inf"],
        ["ok", 2, "", False, -1],
        ["ok", 2],
        "ok",
    )
):
    ANSWERS[f"forged {number}"] = FORGES.format(reply=reply)


def case(entry_point: str) -> Case:
    tests = TESTS
    if entry_point:
        tests = "METADATA = {'author': 'x'}\n\ndef check(candidate):\n" + TESTS.replace(
            "assert f(", "assert candidate("
        ).replace("not f(", "not candidate(").replace("(f(", "(candidate(").replace("\n", "\n    ")
    return Case(
        id="f",
        prompt="f",
        language="python",
        timeout_secs=1,
        verify=Verify(entry_point=entry_point),
        expectations=Expectations(test_file=tests),
    )


class WithReferee(PythonVerifier):
    """Judges every test by a referee."""

    def _plan(self, case: Case) -> PythonTestPlan:
        return super()._plan(case)._replace(calls=())


async def findings(case: Case) -> dict[str, tuple[Finding, Finding]]:
    sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
    verifiers = PythonVerifier(sandbox), WithReferee(sandbox)
    try:
        return {
            name: tuple([await one.verify(case, Answer(text=verbatim_reply(code, "python"))) for one in verifiers])  # type: ignore[misc]
            for name, code in ANSWERS.items()
            # one style tries them all, the other what the styles may treat in different ways
            if not case.verify.entry_point or name.startswith(("right", "wrong", "not there", "an object", "equal"))
        }
    finally:
        for one in verifiers:
            await one.close()
        await sandbox.close()


def without_times(finding: Finding) -> Finding:
    tests = tuple(
        msgspec.structs.replace(test, seconds=0, message=without_chance(test.message)) for test in finding.tests
    )
    return msgspec.structs.replace(
        finding, tests=tests, reason=without_chance(finding.reason), compile_seconds=0, test_seconds=0
    )


def without_chance(text: str) -> str:
    """A text without seconds and addresses."""
    return re.sub(r"after [0-9.]+ s|0x[0-9a-f]{6,}", "...", text)


@pytest.mark.parametrize("entry_point", ["", "f"])
def test_a_verdict_is_the_same_with_and_without_a_referee(entry_point: str) -> None:
    tested = case(entry_point)
    assert len(python_test_plan(tested).calls) == 13
    for name, (called, refereed) in asyncio.run(findings(tested)).items():
        assert without_times(called) == without_times(refereed), name
        if name.startswith("right"):
            assert not called.label, (name, called.reason)
        else:
            assert called.label, name


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
        "import this\nassert f(1) == 1",
        "x = f(1)\nassert f(1) == 1",
        "@f\ndef helper(): pass\nassert f(1) == 1",
        "def helper(x=f(1)): pass\nassert f(1) == 1",
        "def helper(x: f(1)): pass\nassert f(1) == 1",
        "f(2)\nassert f(1) == 1",
        "assert f(1) == 1\nassert time(1) == 1",
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
        r"assert f(1) == {'\ud800': 3}",
        r"assert set(f(1)) == {'\ud800'}",
        "assert set(f(1), f(2)) == {1}",
        "def set(x): return x\nassert set(f(1)) == 1",
        "def helper(x: List): pass\nassert f(1) == 1",
        "helper\nassert f(1) == 1",
    ],
)
def test_what_is_more_than_a_call_with_plain_data_is_left_to_the_referee(tests: str) -> None:
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file=tests))
    assert python_test_plan(tested).calls == ()


def test_another_function_of_the_answers_is_its_word_beside_an_entry_point() -> None:
    tests = "def check(candidate):\n    assert candidate(1) == 2\n    assert helper(1) == 2\n"
    tested = msgspec.structs.replace(case("f"), expectations=Expectations(test_file=tests))
    assert python_test_plan(tested).calls == ()


@pytest.mark.parametrize(
    "held",
    [
        {"s": list(range(501))},
        {"d": [[number, 0] for number in range(501)]},
        [{"z": list(range(300))}, {"s": list(range(300))}],
        {"s": [{"t": [300] * 300 + [number]} for number in range(2)]},
        {"d": [[{"t": [{"t": [300] * 300}, number]}, 0] for number in range(2)]},
        {"z": [{"i": "0x" + "f" * 4000 + str(number)} for number in range(9)]},
        {"=": 0},
        {"type": "int"},
        {"i": "0x_1"},
        {"i": 7},
        {"f": "1e5"},
        {"b": 5},
        {"t": "text"},
        {"t": [], "s": []},
    ],
)
def test_what_could_be_slow_or_more_than_data_is_not_compared_outside_a_sandbox(held: object) -> None:
    assert not is_plain(held)
    assert is_plain([{"t": [1, {"s": [2]}]}, {"d": [["k", {"i": "-0xff"}]]}, {"f": "nan"}, {"b": "eA=="}])
    assert is_plain({"d": [[number, {"t": [list(range(100))]}] for number in range(500)]})


LOOKS_AHEAD = """
def f(x):
    frame = getattr(__import__("s" + "ys"), "_get" + "frame")(1)
    while frame:
        for held in getattr(frame, "f_lo" + "cals").get("calls", ()):
            if held[1] == [SECRET]: return SECRET
        frame = getattr(frame, "f_ba" + "ck")
    return "public"
"""


@pytest.mark.parametrize("secret", ["'secret'", "5", "[1, 2]"])
def test_an_answer_cannot_look_ahead(secret: str) -> None:
    told = f"assert f('public') == {secret}\nassert f({secret}) == 'public'\n"
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file=told))
    assert len(python_test_plan(tested).calls) == 2
    finding = asyncio.run(_found(tested, LOOKS_AHEAD.replace("SECRET", secret)))
    assert finding.tests[0].outcome == "failed"
    assert not asyncio.run(_found(tested, f"def f(x): return {secret} if x == 'public' else 'public'\n")).label


FINDS_FRAMES = {
    "a function of sys": "import sys\nsys._getframe(1)",
    "sys in another module": "import typing\ntyping.sys.exc_info()",
    "the same after a new line": "import typing\n(typing.  # of\n sys)",
    "the same imported": "from typing import sys as s",
    "the same, spelled in another way": "import typing\ntyping.ｓｙｓ",
    "a part of a module that is private": "import collections\ncollections._sys",
    "a generator": "g = (x for x in ())\ng.gi_frame",
    "a pattern": "match (x for x in ()):\n    case object(gi_frame=frame): pass",
    "a pattern of a module": "import typing\nmatch typing:\n    case object(sys=found): pass",
    "a traceback": "try: 1 / 0\nexcept ZeroDivisionError as error: error.__traceback__.tb_frame",
    "a text": "eval('g.gi_' + 'frame')",
    "a name that is put together": "getattr(g, 'gi_' + 'frame')",
    "a format": "('{0.gi_' + 'frame}').format(g)",
    "a format of a map": "('{0.gi_' + 'frame}').format_map({'0': g})",
    "a getter": "from operator import attrgetter as get\nget('gi_' + 'frame')(g)",
    "a getter of a module": "import operator\noperator.attrgetter('gi_' + 'frame')(g)",
    "globals": "f.__globals__",
    "the builtins": "print.__self__",
    "an import by hand": "__import__('sys')",
    "an import in an expression": "import sys as s; s",
    "two imports": "import math, sys",
    "a star": "from typing import *",
    "memory": "open('/proc/self/mem', 'rb')",
    "types that are evaluated": "import typing\ntyping.get_type_hints(f)",
    "compiled code": "compile('1', '', 'eval')",
}
FINDS_NONE = {
    "a function": "def f(x):\n    return sum(x) + x[0].bit_length()\n",
    "imports": "import re, math\nimport collections as c\nfrom typing import List, Optional\nfrom collections import Counter\nre.compile('a')\n",
    "line ends of another system": "from itertools import chain\r\nimport math # for pi\r\ndef f(): return math.pi\r\n",
    "a class": "class A:\n    def __init__(self, x):\n        self.x = x\n    def __eq__(self, other):\n        return self.x == other.x\n",
    "a program": "def f(): return 'in case of ➞'\nif __name__ == '__main__':\n    print(f())\n",
}


@pytest.mark.parametrize("way", FINDS_FRAMES)
def test_an_answer_that_might_find_later_calls_is_known_by_its_words(way: str) -> None:
    assert not is_without_surroundings(FINDS_FRAMES[way])


@pytest.mark.parametrize("kind", FINDS_NONE)
def test_most_answers_cannot(kind: str) -> None:
    assert is_without_surroundings(FINDS_NONE[kind])


@pytest.mark.parametrize("tests", ["{}", "for _ in range(1):\n    {}"])
def test_two_halves_of_a_character_are_not_that_character(tests: str) -> None:
    halves, whole = "def f(x): return '\\ud83d\\ude00'\n", "def f(x): return '\\U0001f600'\n"
    tested = tests.format("assert f(1) == '\\U0001f600'")
    same = msgspec.structs.replace(case(""), expectations=Expectations(test_file=tested))
    assert [asyncio.run(_found(same, code)).label for code in (whole, halves)] == ["", "wrong answer"]


def test_what_would_take_long_to_be_read_is_judged_by_the_referee() -> None:
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file="assert f(1) == 2\n"))
    calls = python_test_plan(tested).calls
    function = {"f": {"h": [0, 0, "function", True, []]}}
    for count, is_read in ((1_000, True), (100_000, False)):
        sent = framed(["compiled", 0], ["loaded", function, "", []], ["ok", [[]] * count, "", False, 0])
        assert (plain_report(calls, "", ProcessResult(0, b"", b"", "", 0), sent) is not None) is is_read


def test_what_would_take_long_to_be_converted_is_judged_by_the_referee() -> None:
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file="assert set(f(1)) == {2}\n"))
    (call,) = python_test_plan(tested).calls
    assert call.what_is_wrong([2, (3,)]).text
    with pytest.raises(_NotPlainError):
        call.what_is_wrong([(*[300] * 500, number) for number in range(100)])


class FakeHost:
    """A host whose guest does what a function does with the socket."""

    def __init__(self, guest: Callable[[socket.socket], None]) -> None:
        self._guest = guest

    async def call(self, fds: list[socket.socket], _: object) -> ProcessResult:
        try:
            await asyncio.to_thread(self._guest, fds[0])
        finally:
            fds[0].close()
        return ProcessResult(0, b"", b"", "", 0)


def framed(*messages: object) -> bytes:
    bodies = [json.dumps(message).encode() for message in messages]
    return b"".join(struct.pack("I", len(body)) + body for body in bodies)


def test_an_answer_that_replies_before_it_reads_is_sent_its_calls_in_order() -> None:
    chain = "".join(f"assert f('{number:09}') == '{number + 1:09}'\n" for number in range(600))
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file=chain))
    calls = python_test_plan(tested).calls
    heard: list[Any] = []

    def guest(channel: socket.socket) -> None:
        channel.settimeout(10)
        channel.sendall(framed(["compiled", 0], ["loaded", {}, ""], *[["ok", 0, "", False, 0]] * 600))
        time.sleep(0.2)
        with channel.makefile("rb") as stream:
            while len(heard) < 600 and (size := stream.read(4)):
                (length,) = struct.unpack("I", size)
                heard.append(json.loads(stream.read(length)))

    async def attempt() -> tuple[object, int]:
        answered = await answered_calls(FakeHost(guest), "getattr", calls, ResourceLimits())  # type: ignore[arg-type]
        return answered[1], len(asyncio.all_tasks())

    _, tasks = asyncio.run(attempt())
    assert tasks == 1
    assert [call for _, *parts in heard[:1] for call in parts[3]] == [[0, ["000000000"], []]]
    assert [part[0] for part in heard[1:]] == [[[0, [f"{number:09}"], []]] for number in range(1, 600)]


def test_an_answer_that_writes_without_end_keeps_nobody_else_waiting() -> None:
    calls = python_test_plan(
        msgspec.structs.replace(case(""), expectations=Expectations(test_file="assert f(1) == 2\n"))
    ).calls

    turns = 0
    is_flooded = threading.Event()

    def guest(channel: socket.socket) -> None:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < 0.6:
            channel.sendall(b"x" * 65536)
            if passed > 0.2:  # by then it is read as it comes
                is_flooded.set()
        is_flooded.clear()

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += is_flooded.is_set()

    async def attempt() -> None:
        taking = asyncio.ensure_future(take_turns())
        await answered_calls(FakeHost(guest), "", calls, ResourceLimits())  # type: ignore[arg-type]
        taking.cancel()

    asyncio.run(attempt())
    assert turns > 5


def test_results_that_are_too_large_to_be_compared_here_are_judged_by_the_referee() -> None:
    tests = "assert len(f(1)) == 3000000\nassert f([111]) == [222]\nassert f([222]) == [333]\n"
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file=tests))
    assert len(python_test_plan(tested).calls) == 3
    code = "import sys\ndef f(x): return 'x' * 3_000_000 if x == 1 else [x[0] + 111]\n"
    finding = asyncio.run(_found(tested, code))
    assert (finding.label, finding.trust) == ("", "isolated"), finding.reason


NUMBERS = "{7, 15, 100}", "{100, 200, 300, 400, 500, 600}", "{3.5, 1e20, 7}", "frozenset([3, 11, 19])", "{1, 2, 3}"
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
    codes = ["def f(x): return list(x)\n", "class L(list): pass\ndef f(x): return L(x)\n"] * 2
    for finding in asyncio.run(
        _all_found(msgspec.structs.replace(case(""), expectations=Expectations(test_file=tests)), codes)
    ):
        assert not finding.label, finding.reason


def test_sets_of_sets_are_sorted_where_the_answer_made_them() -> None:
    tests = "assert sorted(f('abcdefgh')) == 5\nassert sorted(f([1])) == 5\n"
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file=tests))
    assert python_test_plan(tested).calls
    for made in ("frozenset([c])", "(1, frozenset([c]))"):
        code = f"def f(x): return {{{made} for c in x}}\n"
        called, refereed = (asyncio.run(_found(tested, code, kind)) for kind in (PythonVerifier, WithReferee))
        assert without_times(called) == without_times(refereed)


async def _found(case: Case, code: str, kind: type[PythonVerifier] = PythonVerifier) -> Finding:
    return (await _all_found(case, [code], kind))[0]


async def _all_found(case: Case, codes: list[str], kind: type[PythonVerifier] = PythonVerifier) -> list[Finding]:
    sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
    verifier = kind(sandbox)
    try:
        return [await verifier.verify(case, Answer(text=verbatim_reply(code, "python"))) for code in codes]
    finally:
        await verifier.close()
        await sandbox.close()
