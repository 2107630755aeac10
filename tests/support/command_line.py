"""Commands as users type them, carried out within the tests' own process: to start an interpreter costs more than most of them do."""

from __future__ import annotations

import os
import signal
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from importlib.metadata import distributions
from pathlib import Path
from typing import IO, NamedTuple

from steelyard.cli import main as cli


def installed_version() -> str:
    """The version of the command that is installed; what a build left behind in the source folder may be another."""
    (installed,) = distributions(name="steelyard", path=[sysconfig.get_path("purelib")])
    return installed.version


class Ended(NamedTuple):
    """How a command ended, and what it said where."""

    returncode: int
    stdout: str
    stderr: str


def steelyard(place: Path, *arguments: str, **environment: str) -> Ended:
    """Run a command in a folder; of our own environment it sees nothing that concerns steelyard, keys or CI."""
    with _file() as out, _file() as complaints:
        code = _ended(place, arguments, environment, out, complaints)
        return Ended(code, _content(out), _content(complaints))


def shown(place: Path, *arguments: str, **environment: str) -> str:
    """What a terminal shows of a command: all that it says, in the order in which it is said."""
    with _file() as both:
        _ended(place, arguments, environment, both, both)
        return _content(both)


def _ended(
    place: Path, arguments: Sequence[str], environment: Mapping[str, str], out: IO[str], complaints: IO[str]
) -> int:
    with (
        chdir(place),
        _environment({"COLUMNS": "200", **environment}),
        _signals(),
        redirect_stdout(out),
        redirect_stderr(complaints),
    ):
        try:
            return cli.main(arguments)
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else 1


def _file() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8", newline="")


def _content(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


@contextmanager
def _environment(given: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    for name in before:
        if name.startswith(("STEELYARD_", "OPENAI_", "CI")):
            del os.environ[name]
    os.environ.update(given)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _signals() -> Iterator[None]:
    """A command takes the signals that end it for itself."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
