"""Commands in a process of their own that need not import everything anew: each is a fork of a server that has.

A fork has its own environment, path, folder and modules beyond those of the server, and ends like any process. What a test
says about starting, signals or imports needs a real start instead.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

IMPORTED = {
    "steelyard": (
        "steelyard.cli.main",
        "steelyard.cli.commands.run",
        "steelyard.cli.commands.look",
        "steelyard.engine.run",
        "steelyard.engine.results.report_files",
        "steelyard.providers.replay",
        "steelyard.reports.terminal",
    ),
    "pytest": ("pytest", "_pytest.pytester", "httpx2", "msgspec", "numpy", "rich.table", "jinja2"),
}
"""What a server imports before its first fork, by the program that its forks run."""
STREAMS = ("stdout", "stderr")


def forked(
    program: str, arguments: Sequence[str], place: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """How a command ends in a folder, and what it prints; `program` is `steelyard` or `pytest`."""
    server = _server(program)
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as scratch:
        asked = {"arguments": arguments, "place": str(place), "environment": environment, "scratch": scratch}
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, complaints = ((Path(scratch) / name).read_text("utf-8") for name in STREAMS)
        return subprocess.CompletedProcess([program, *arguments], code, out, complaints)


@cache
def _server(program: str) -> subprocess.Popen[str]:
    """One for each program; it ends with the process of the tests."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "PYTEST_", "CI"))}
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [sys.executable, __file__, program], stdin=pipe, stdout=pipe, text=True, env=clean, cwd="/"
    )
    atexit.register(server.communicate)
    return server


def _serve(program: str) -> int:
    """Fork for every line that comes, and write how the fork ended; returns only in a fork, with its exit code."""
    del sys.path[0]
    for name in IMPORTED[program]:
        importlib.import_module(name)
    for line in sys.stdin:
        if not (child := os.fork()):
            return _command(program, **json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


def _command(program: str, arguments: list[str], place: str, environment: dict[str, str], scratch: str) -> int:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in enumerate(STREAMS, 1):
        os.dup2(os.open(Path(scratch) / name, os.O_WRONLY | os.O_CREAT), number)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    # as `python -m` does, and the variable that it reads
    added = [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:0] = [place, *added]
    importlib.invalidate_caches()
    sys.argv = [program, *arguments]
    if program == "pytest":
        import pytest

        return int(pytest.main(arguments))
    from steelyard.cli.main import main

    return main(arguments)


if __name__ == "__main__":
    sys.exit(_serve(sys.argv[1]))
