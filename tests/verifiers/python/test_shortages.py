"""Answers that reach a limit, or return more than can cross: the verdict is right, and its reason names the limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steelyard.records import Answer, Case, Expectations, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.guest.values import FlatEncoder, ValueEncoder
from steelyard.verifiers.python.guest.wire import OversizedValueError
from steelyard.verifiers.python.verifier import PythonVerifier

BOX = "class Box:\n    def me(self): return self\n"
BESIDE = """
import sys
from answer import Box

def test_one():
    assert Box().me() and 'answer' in sys.modules

def test_two(tmp_path):
    assert tmp_path.exists()
"""
FILLS = """
import os
try:
    for number in range(20):
        with open(f'f{number}', 'w') as file: os.posix_fallocate(file.fileno(), 0, 60 << 20)
except OSError: pass
for number in range(20, 99):
    try:
        with open(f'f{number}', 'wb') as file: file.write(bytes(1 << 20))
    except OSError: pass
"""
OPENS = "import os\ntry:\n    while True: os.dup(0)\nexcept OSError: pass\n"
WAITS = """
import os, threading, time
def wait():
    while True:
        try: os.wait()
        except OSError: time.sleep(0.001)
threading.Thread(target=wait, daemon=True).start()
"""
LOOKS = "import tempfile\ndef f(): return tempfile.gettempdir()\n"


def judged(code: str, tests: str, style: str = "") -> Finding:
    async def verified() -> Finding:
        sandbox = ZygoteSandbox(strongest_isolation())
        python = PythonVerifier(sandbox)
        case = Case(
            id="c",
            prompt="p",
            language="python",
            timeout_secs=5,
            verify=Verify(style=style),
            expectations=Expectations(test_file=tests),
        )
        try:
            return await python.verify(case, Answer(text=verbatim_reply(code, "python")))
        finally:
            await python.close()
            await sandbox.close()

    return asyncio.run(verified())


@pytest.mark.parametrize(
    "value",
    [
        "x" * (17 << 20),
        bytes(17 << 20),
        bytearray(17 << 20),
        [0] * (9 << 20),
        (None,) * (9 << 20),
        ["x" * (1 << 20)] * 17,
        [("x" * (1 << 20), 1.5)] * 17,
        {"a": "x" * (9 << 20), "b": ["x" * (8 << 20)]},
        1 << (17 << 22),
    ],
    ids=["text", "bytes", "bytearray", "list", "tuple", "texts", "tuples", "dict", "number"],
)
@pytest.mark.parametrize("kind", [ValueEncoder, FlatEncoder])
def test_what_is_too_large_to_cross_is_refused_before_it_is_written(kind: type[ValueEncoder], value: Any) -> None:
    with pytest.raises(OversizedValueError, match="more than 16 MB"):
        kind(lambda *_: None).encode(value)


def test_what_was_refused_does_not_count_for_what_follows() -> None:
    encoder = ValueEncoder(lambda *_: None)
    with pytest.raises(OversizedValueError):
        encoder.whole(["x" * (17 << 20)])
    assert encoder.whole(["x"]) == ["x"]


@pytest.mark.parametrize("result", ["'x' * (20 << 20)", "'\\n' * (9 << 20)"])
def test_a_right_answer_may_return_more_than_can_cross(result: str) -> None:
    code = f"def f(n):\n    return {result}\n"
    assert judged(code, "assert f(1)\n").label == ""
    wrong = judged(code, "assert f(1) == 3\n")
    assert (wrong.label, wrong.trouble) == ("wrong answer", "")


@pytest.mark.parametrize(
    "code",
    [
        "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n",
        WAITS,
    ],
    ids=["ignores", "waits"],
)
def test_a_right_answer_may_look_after_child_processes_itself(code: str) -> None:
    assert judged(code + BOX, BESIDE, "pytest").label == ""
    failed = judged(code + BOX.replace("self\n", "None\n"), BESIDE, "pytest")
    assert "AssertionError" in failed.reason


@pytest.mark.parametrize(
    ("code", "limits"),
    [(FILLS, ("512 MiB is the limit", "disk limit")), (OPENS, ("256 open files, which is the limit",))],
)
def test_an_error_of_the_system_names_the_limit_behind_it(code: str, limits: tuple[str, ...]) -> None:
    for answer, tests, style in ((LOOKS, "assert f() == 1\n", ""), (BOX, BESIDE, "pytest")):
        failed = judged(code + answer, tests, style)
        assert failed.label
        assert any(limit in failed.reason for limit in limits), failed.reason
