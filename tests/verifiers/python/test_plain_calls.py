"""Tests that are calls with plain data are decided without a referee, and no verdict tells the difference."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
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
from steelyard.verifiers.python.plain.calls import _NotPlainError, answered_calls, plain_report, sent_together
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
    "many keys": "def f(value, twice=False):\n    return {number * (2**61 - 1) for number in range(3000)}\n",
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
        "assert f('\\ud800') == 1",
        "assert f(1) == {'\\ud800': 3}",
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


@pytest.mark.parametrize(
    ("tests", "sizes"),
    [
        ("assert f('abc') == 'nop'\nassert f('nop') == 'abc'", [1, 1]),
        ("assert f('abc') == 'nop'\nassert f('x') == 'y'\nassert f(['nop']) == 'abc'\nassert f('q') == 'r'", [1, 3]),
        ("assert f('abc') == 'nop'\nassert f('nop') == 'xyz'\nassert f('xyz') == 'def'", [1, 1, 1]),
        ("assert f([1, 2]) == [3, 4]\nassert f(x=[4, 3]) == [5, 6]", [1, 1]),
        ("assert f(1) == ('abc', 'def')\nassert f(['abc', 'def']) == 1", [1, 1]),
        ("assert f(1) == 1234.0\nassert f(1234) == 1", [1, 1]),
        ("assert f(1) == [123, 456]\nassert f(123, 456) == 1", [1, 1]),
        ("assert list(f(1)) == ['abc']\nassert f({'abc': 2}) == 1", [1, 1]),
        ("assert f('aaabbb') == 'a3b3'\nassert f('a3b3c1') == 'aaabbbc'", [1, 1]),
        ("assert set(f([1, 2])) == {3, 4}\nassert f(x=[4, 3]) == [5, 6]", [1, 1]),
        ("assert sorted(f(1)) == ['a', 'b', 'c']\nassert f('cab') == 1", [1, 1]),
        ("assert f(1) == 2\nassert f(2) == 3", [2]),
    ],
)
def test_what_tells_an_earlier_result_is_sent_later(tests: str, sizes: list[int]) -> None:
    calls = python_test_plan(msgspec.structs.replace(case(""), expectations=Expectations(test_file=tests))).calls
    parts = sent_together(calls)
    assert list(map(len, parts)) == sizes
    assert [call for part in parts for call in part] == list(calls)


LOOKS_AHEAD = """
import gc, sys
def f(x):
    frame = sys._getframe(1)
    while frame:
        for held in frame.f_locals.get("calls", ()):
            if held[1] == ["secret"]: return "secret"
        frame = frame.f_back
    return "public"
"""


def test_an_answer_cannot_look_ahead() -> None:
    told = "assert f('public') == 'secret'\nassert f('secret') == 'public'\n"
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file=told))
    assert len(sent_together(python_test_plan(tested).calls)) == 2
    finding = asyncio.run(_found(tested, LOOKS_AHEAD))
    assert [test.outcome for test in finding.tests] == ["failed", "passed"]
    assert not asyncio.run(_found(tested, "def f(x): return {'public': 'secret', 'secret': 'public'}[x]\n")).label


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
    assert len(sent_together(calls)) == 600
    heard: list[Any] = []

    def guest(channel: socket.socket) -> None:
        channel.sendall(framed(["compiled", 0], ["loaded", {}, ""], *[["ok", 0, "", False, 0]] * 600))
        time.sleep(0.2)
        with channel.makefile("rb") as stream:
            while len(heard) < 600:
                (length,) = struct.unpack("I", stream.read(4))
                heard.append(json.loads(stream.read(length)))

    async def attempt() -> tuple[object, int]:
        answered = await answered_calls(FakeHost(guest), "", calls, ResourceLimits())  # type: ignore[arg-type]
        return answered[1], len(asyncio.all_tasks())

    _, tasks = asyncio.run(attempt())
    assert tasks == 1
    assert [call for _, *parts in heard[:1] for call in parts[3]] == [[0, ["000000000"], []]]
    assert [part[0] for part in heard[1:]] == [[[0, [f"{number:09}"], []]] for number in range(1, 600)]


def test_an_answer_that_writes_without_end_keeps_nobody_else_waiting() -> None:
    calls = python_test_plan(
        msgspec.structs.replace(case(""), expectations=Expectations(test_file="assert f(1) == 2\n"))
    ).calls

    async def attempt() -> float:
        stop = asyncio.Event()
        longest = 0.0

        def guest(channel: socket.socket) -> None:
            until = time.monotonic() + 0.6
            while time.monotonic() < until:
                channel.sendall(b"x" * 65536)

        async def beat() -> None:
            nonlocal longest
            while not stop.is_set():
                began = time.monotonic()
                await asyncio.sleep(0)
                longest = max(longest, time.monotonic() - began)

        beating = asyncio.ensure_future(beat())
        await answered_calls(FakeHost(guest), "", calls, ResourceLimits())  # type: ignore[arg-type]
        stop.set()
        await beating
        return longest

    assert asyncio.run(attempt()) < 0.4


def test_results_that_are_too_large_to_be_compared_here_are_judged_by_the_referee() -> None:
    tests = "assert len(f(1)) == 3000000\nassert f([111]) == [222]\nassert f([222]) == [333]\n"
    tested = msgspec.structs.replace(case(""), expectations=Expectations(test_file=tests))
    assert len(sent_together(python_test_plan(tested).calls)) == 2
    code = "def f(x): return 'x' * 3_000_000 if x == 1 else [x[0] + 111]\n"
    finding = asyncio.run(_found(tested, code))
    assert (finding.label, finding.trust) == ("", "isolated"), finding.reason


async def _found(case: Case, code: str) -> Finding:
    sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
    verifier = PythonVerifier(sandbox)
    try:
        return await verifier.verify(case, Answer(text=verbatim_reply(code, "python")))
    finally:
        await verifier.close()
        await sandbox.close()
