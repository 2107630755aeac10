"""Judges answers the plain way, without steelyard: each in a fork and a folder of its own, as the evaluators of benchmarks do.

    python plain.py < orders.jsonl > results.jsonl

An order is an object; a result is a text, empty where everything passed. `style` says what is done with an answer:
`exec` runs `program`, the answer and its tests, and then the test functions below `test_line`; `doctest` runs the examples in
`tests` after it; `calls` compares what `entry_point` returns; `unittest` and `pytest` run the module `main` of the `files`; `io`
runs answer.py for each of the `pairs`; `rust` builds and runs answer.rs. `cpu_seconds` and `wall_seconds` are limits.
The script needs nothing but the standard library, and pytest for tests in that style, so any interpreter can run it.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import types
import unittest
from pathlib import Path
from typing import Any

MAX_WALL_SECONDS = 300
"""Seconds after which an answer hangs, also on a machine that is busy with much else."""
MAX_REASON_CHARACTERS = 2_000


def judge(order: dict[str, Any]) -> None:
    """Raise where the answer is not right."""
    for name, text in order.get("files", {}).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, "utf-8", "surrogatepass")
    style = order["style"]
    if style in ("unittest", "pytest"):
        run_test_file(style, order["main"])
    elif style == "io":
        run_program(order["pairs"])
    elif style == "rust":
        run_rust()
    else:
        run_names(order)


def run_names(order: dict[str, Any]) -> None:
    """Run the answer and its tests in one module."""
    answer = types.ModuleType("answer")
    sys.modules["answer"] = answer
    names = answer.__dict__
    exec(compile(order["program"], "answer.py", "exec", dont_inherit=True), names)
    if order["style"] == "calls":
        for arguments, expected in order["pairs"]:
            got = json.loads(json.dumps(eval(order["entry_point"], names)(*arguments)))
            assert got == expected, f"got {got!r}, expected {expected!r}"
    elif order["style"] == "doctest":
        examples = doctest.DocTestParser().get_doctest(order["tests"], names, "answer", None, None)
        found = doctest.DocTestRunner().run(examples)
        assert found.attempted, "no example"
        assert not found.failed, "a doctest failed"
    for name, value in list(names.items()):
        if name.startswith("test") and isinstance(value, types.FunctionType):
            code = value.__code__
            if code.co_filename == "answer.py" and code.co_firstlineno >= order["test_line"]:
                value()


def run_test_file(style: str, main: str) -> None:
    sys.path.insert(0, str(Path.cwd()))
    if style == "pytest":
        import pytest

        assert pytest.main(["-q", "--rootdir=.", f"{main}.py"]) == 0, "pytest failed"
        return
    found = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(main)))
    assert found.testsRun, "no test"
    assert found.wasSuccessful(), "unittest failed"


def run_program(pairs: list[tuple[str, str]]) -> None:
    for given, expected in pairs:
        Path("input").write_bytes(given.encode())
        with Path("input").open("rb") as file:
            # not what C sees of it: from Python 3.13 on doctest loads readline, which sets the width of a terminal there
            environment = dict(os.environ)
            command = [sys.executable, "answer.py"]
            ran = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, env=environment, check=False)
        got = ran.stdout.decode()
        assert ran.returncode == 0, f"exit code {ran.returncode}"
        assert stripped_lines(got) == stripped_lines(expected), f"printed {got!r}, expected {expected!r}"


def run_rust() -> None:
    command = ["rustc", "--edition=2021", "--test", "--cap-lints=allow", "-Cdebuginfo=0", "-o", "answer", "answer.rs"]
    subprocess.run(command, check=True)
    subprocess.run(["./answer"], check=True)


def stripped_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def result_of(order: dict[str, Any]) -> str:
    """What went wrong with an answer; empty where nothing did."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as report,
    ):
        child = os.fork()
        if not child:
            run_child(order, folder, output.fileno(), report.fileno())
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it has started and left
        report.seek(0)
        if report.read() == b"passed":
            return ""
        output.seek(0)
        said = output.read().decode("utf-8", "replace")[-MAX_REASON_CHARACTERS:]
        return f"status {status}: {said}"


def run_child(order: dict[str, Any], folder: str, output: int, report: int) -> None:
    """Judge in this process, which ends."""
    try:
        os.setsid()
        report = os.dup(report)
        signal.alarm(order.get("wall_seconds", MAX_WALL_SECONDS))
        if cpu := order.get("cpu_seconds"):
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        judge(order)
        os.write(report, b"passed")
    except BaseException:  # noqa: BLE001  whatever an answer raises is its result
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(result_of(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
