"""Where fcntl, resource and pwd do not exist, as on Windows, runs can be read and shown; the command says what it needs."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from steelyard.cli import entry

KEPT_RUNS = Path(__file__).parent / "data" / "run-0.1.0" / "runs"

WITHOUT_POSIX = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "grp", "pwd", "resource", "termios"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules.pop(name, None)

from pathlib import Path

import steelyard.cli.entry
import steelyard.cli.pytest_plugin
import steelyard.outcomes
from steelyard.engine.results.read_outcomes import gather
from steelyard.errors import StoreError
from steelyard.store.assembled_runs import create_run_atomically
from steelyard.store.locks import lock_folder
import steelyard.viewer.api
from steelyard.viewer.app import application
from steelyard.viewer.pages import run, runs
from steelyard.viewer.query_params import QueryParameters
from steelyard.viewer.run_cache import RunCache
from steelyard.viewer.run_list import RunCatalog

folder = Path(sys.argv[1])
cache = RunCache(RunCatalog(folder))
print("whole" in runs.runs(cache, QueryParameters("")))
print("pass@1" in run.run(cache, "whole", QueryParameters("")))
try:
    lock_folder(folder)
except StoreError as error:
    print(error)
"""


def test_readers_and_viewer_work_without_the_modules_of_posix() -> None:
    command = [sys.executable, "-c", WITHOUT_POSIX, str(KEPT_RUNS)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    shown = ended.stdout.splitlines()
    assert shown[:2] == ["True", "True"]
    assert "runs can only be read here; use Linux or macOS" in shown[2]


def test_the_command_says_in_one_sentence_that_windows_needs_wsl(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main("nt") == 2
    assert capsys.readouterr().err == f"{entry.UNSUPPORTED_SYSTEM}\n"


def test_no_classifier_promises_windows() -> None:
    systems = [
        line for line in metadata("steelyard").get_all("Classifier") or () if line.startswith("Operating System")
    ]
    assert systems == ["Operating System :: MacOS", "Operating System :: POSIX :: Linux"]
