"""No key is ever shown, wherever a program, a person or a log looks: only the one who is asked gets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from support.key_search import MARK, EchoServer, marked_environment

BIN = Path(sys.executable).parent
SETTINGS = """max_retries = 0
[providers.own]
type = "openai"
base_url = "{url}/refuses"
api_key = "${{OPENAI_API_KEY}}"
headers = {{ x-mine = "${{SOMETHING_ELSE}}", x-in-file = "${{IN_THE_FILE}}" }}
"""
CASES = """[eval_set]
id = "mine"

[[cases]]
id = "a"
prompt = "b"
target = "c"
"""
REPORTS = (
    *("json", "md", "csv", "html", "xml", "sarif", "jsonl", "otlp.json", "inspect.json", "promptfoo.json"),
    "eee.json",
)
FAILING_TEST = """
import steelyard
from steelyard import Case, RunOptions, Settings
from steelyard.settings import load

def test_it():
    settings, _ = load(None, RunOptions().environment)
    options = RunOptions(settings=settings)
    steelyard.run([Case(id="a", prompt="b", target="c")], models="none/m", means=options)
"""


def ran(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with marked keys in its environment; what it prints and what is in the folder must not show one."""
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=folder,
        env={**os.environ, **marked_environment(), "TMPDIR": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert MARK not in done.stdout + done.stderr
    shown = [path for path in folder.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]
    assert {path.name for path in shown} <= {"keys.env"}
    return done


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with cases, a file of keys, and settings whose model refuses everything and quotes what it was sent."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EchoServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "steelyard.toml").write_text(SETTINGS.format(url=f"http://127.0.0.1:{server.server_port}"))
        (tmp_path / "cases.toml").write_text(CASES)
        (tmp_path / "keys.env").write_text(f"IN_THE_FILE={MARK}-of-the-file\n")
        yield tmp_path
        server.shutdown()


@pytest.mark.parametrize("search", ["documentation", "records", "tracebacks"])
def test_no_key_is_in_help_signatures_records_logs_or_the_locals_of_a_traceback(search: str, tmp_path: Path) -> None:
    done = ran(
        tmp_path, "python", "-m", "support.key_search", search, PYTHONPATH=str(Path(__file__).parent), NO_PROXY=""
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}


def test_no_command_prints_or_stores_a_key(place: Path) -> None:
    asked = ran(
        place, "steelyard", "run", "cases.toml", "-m", "own/m", "-v", "--env-file", "keys.env", "--output", "run"
    )
    assert "500 no" in asked.stdout + asked.stderr
    assert ran(place, "steelyard", "show", "run", "a").returncode == 0
    files = [f"report.{suffix}" for suffix in REPORTS]
    reported = ran(place, "steelyard", "report", "run", *(word for file in files for word in ("-o", file)))
    assert reported.returncode == 0, reported.stderr
    assert [file for file in files if not (place / file).is_file()] == []
    for command in (["resume", "run"], ["models"], ["doctor"], ["list"], ["init", "new"], ["query", "select 1"]):
        ran(place, "steelyard", *command)


def test_the_file_of_an_error_of_ours_has_no_key(place: Path) -> None:
    (place / "sitecustomize.py").write_text(
        "import shutil\n\ndef get_terminal_size(*_):\n    raise ZeroDivisionError('no columns')\n\n"
        "shutil.get_terminal_size = get_terminal_size\n"
    )
    ended = ran(place, "steelyard", "run", "cases.toml", "-m", "own/m", PYTHONPATH=str(place))
    assert ended.returncode == 70
    assert list(place.glob("steelyard-error-*.txt"))


def test_a_failed_test_that_shows_its_locals_shows_no_key(place: Path) -> None:
    (place / "test_mine.py").write_text(FAILING_TEST)
    failed = ran(place, "pytest", "--showlocals", "-vv", "--tb=long", "-p", "no:cacheprovider", "test_mine.py")
    assert failed.returncode == 1
    assert "RunOptions(" in failed.stdout
    assert "unknown provider" in failed.stdout
