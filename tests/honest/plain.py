"""Runs Python answers and their tests the plain way, without steelyard: `exec`, doctest, unittest, pytest or a program.

    python plain.py < cases.json > results.json

Each case runs in a fork with a folder of its own. A result is empty where everything passed, else it is the traceback.
The script needs nothing but the standard library, and pytest for tests in that style, so any interpreter can run it.
"""

from __future__ import annotations

import doctest
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import types
import unittest
from pathlib import Path
from typing import Any

MAX_CASE_SECONDS = 300
"""Seconds after which a case hangs, also on a machine that is busy with much else."""


def run_case(case: dict[str, Any]) -> None:
    """Raise where the answer is not right."""
    style = case["style"]
    if style == "io" and not case["entry_point"]:
        run_program(case)
        return
    if style in ("unittest", "pytest"):
        run_test_file(case)
        return
    answer = types.ModuleType("answer")
    sys.modules["answer"] = answer
    names = answer.__dict__
    exec(compile(case["code"], "answer.py", "exec", dont_inherit=True), names)
    if style == "io":
        for arguments, expected in case["pairs"]:
            got = json.loads(json.dumps(eval(case["entry_point"], names)(*arguments)))
            assert got == expected, f"got {got!r}, expected {expected!r}"
    elif style == "doctest":
        examples = doctest.DocTestParser().get_doctest(case["tests"], names, "answer", None, None)
        found = doctest.DocTestRunner().run(examples)
        assert found.attempted, "no example"
        assert not found.failed, "a doctest failed"
    else:
        exec(compile(case["tests"], "tests.py", "exec", dont_inherit=True), names)
        for name, value in list(names.items()):
            if name.startswith("test") and isinstance(value, types.FunctionType):
                value()
        if style == "check":
            names["check"](eval(case["entry_point"], names))


def run_test_file(case: dict[str, Any]) -> None:
    Path("answer.py").write_text(case["code"], "utf-8")
    # a file that says what it calls, and imports nothing of the answer, stands below it
    is_below = case["entry_point"] and "answer" not in case["tests"]
    above = f"import unittest\n{case['code']}\n" if is_below else ""
    Path("test_answer.py").write_text(above + case["tests"], "utf-8")
    sys.path.insert(0, str(Path.cwd()))
    if case["style"] == "pytest":
        import pytest

        assert pytest.main(["-q", "--rootdir=.", "test_answer.py"]) == 0, "pytest failed"
        return
    suite = unittest.defaultTestLoader.loadTestsFromName("test_answer")
    found = unittest.TextTestRunner().run(suite)
    assert found.testsRun, "no test"
    assert found.wasSuccessful(), "unittest failed"


def run_program(case: dict[str, Any]) -> None:
    Path("answer.py").write_text(case["code"], "utf-8")
    for given, expected in case["pairs"]:
        Path("input").write_bytes(given.encode())
        with Path("input").open("rb") as file:
            # not what C sees of it: from Python 3.13 on doctest loads readline, which sets the width of a terminal there
            environment = dict(os.environ)
            command = [sys.executable, "answer.py"]
            ran = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, env=environment)
        got = ran.stdout.decode()
        assert ran.returncode == 0, f"exit code {ran.returncode}"
        assert stripped_lines(got) == stripped_lines(expected), f"printed {got!r}, expected {expected!r}"


def stripped_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def result_of(case: dict[str, Any]) -> str:
    """What went wrong with a case in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            status = 1
            try:
                signal.alarm(MAX_CASE_SECONDS)
                os.chdir(folder)
                for descriptor in (1, 2):
                    os.dup2(output.fileno(), descriptor)
                run_case(case)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return f"status {status}: {output.read().decode('utf-8', 'replace')[-2000:]}" if status else ""


def main() -> None:
    cases = json.load(sys.stdin)
    if any(case["style"] == "pytest" for case in cases):
        import pytest  # noqa: F401  loaded once, before the forks
    json.dump({case["id"]: result_of(case) for case in cases}, sys.stdout)


if __name__ == "__main__":
    main()
