"""Answers that reach a limit: the verdict is right, and its reason names the limit."""

from __future__ import annotations

import pytest

from support.python_answers import judged, python_case

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


@pytest.mark.parametrize(
    "code",
    [
        "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n",
        WAITS,
    ],
    ids=["ignores", "waits"],
)
def test_a_right_answer_may_look_after_child_processes_itself(code: str) -> None:
    assert judged(code + BOX, python_case(BESIDE, style="pytest")).label == ""
    failed = judged(code + BOX.replace("self\n", "None\n"), python_case(BESIDE, style="pytest"))
    assert "AssertionError" in failed.reason


@pytest.mark.parametrize(
    ("code", "limits"),
    [(FILLS, ("512 MiB is the limit", "disk limit")), (OPENS, ("256 open files, which is the limit",))],
)
def test_an_error_of_the_system_names_the_limit_behind_it(code: str, limits: tuple[str, ...]) -> None:
    for answer, tests, style in ((LOOKS, "assert f() == 1\n", ""), (BOX, BESIDE, "pytest")):
        failed = judged(code + answer, python_case(tests, style=style))
        assert failed.label
        assert any(limit in failed.reason for limit in limits), failed.reason
