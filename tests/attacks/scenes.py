"""Where the attacks are run, and what is told of it: at every level, as root and as an ordinary user."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import steelyard
from steelyard.sandbox.levels import probe_isolation
from support.toolchains import unavailable

NOBODY = 65534
LEVELS = ("full", "bubblewrap", "landlock", "process")
USERS = ("root", "nobody") if os.geteuid() == 0 else ("ourselves",)
PATHS = (str(Path(steelyard.__file__).parents[1]), sysconfig.get_paths()["purelib"], str(Path(__file__).parents[1]))


def scenes(always: tuple[str, ...] = USERS[:1]) -> list[Any]:
    """Every level that protects more than the verdict, as every user; only the strongest, as these users, in every run of the tests."""
    return [
        pytest.param((level, user), id=f"{level} as {user}", marks=() if is_first else pytest.mark.slow)
        for level in LEVELS[:-1]
        for user in USERS
        for is_first in [level == LEVELS[0] and user in always]
    ]


@cache
def interpreter(user: str) -> str:
    """An interpreter of our version that this user can run; empty when there is none."""
    if user != "nobody":
        return sys.executable
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    places = [os.path.realpath(sys.executable), shutil.which(name, path="/usr/bin:/usr/local/bin:/bin") or ""]
    for place in filter(None, places):
        try:
            tried = run_as(user, [place, "-c", "import msgspec, steelyard.sandbox.levels, attacks.reader"])
        except OSError:
            continue
        if tried.returncode == 0:
            return place
    return ""


def run_as(user: str, command: list[str], *, uid: int = NOBODY, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a program as this user, with what it needs to find us."""
    identity: dict[str, Any] = {}
    if user == "nobody":
        identity = {"user": uid, "group": uid, "extra_groups": []}
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(PATHS), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd="/", check=False, **identity, **more
    )


def needs_level(level: str) -> None:
    """Skip where the kernel forbids a level; a program that is not installed is a hole."""
    found = probe_isolation(level)
    if not found.held:
        reason = f"{level} is not supported here: {found.problem}"
        unavailable(reason) if found.lacks_program else pytest.skip(reason)


def python_of(user: str) -> str:
    """An interpreter of our version that this user can run."""
    python = interpreter(user)
    if not python:
        unavailable(f"no Python {sys.version_info[0]}.{sys.version_info[1]} with our packages that {user} can read")
    return python


def told_once(factory: pytest.TempPathFactory, name: str, user: str, command: list[str]) -> dict[str, Any]:
    """What a program of attacks told; whichever test process comes first runs it, and the others wait."""
    # a limit on processes counts all those of a user, so two programs of attacks at a time must not be one user's
    uid = NOBODY - zlib.crc32(name.encode()) % 1000
    base = factory.getbasetemp()
    found = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / f"attacks-{name}.json"
    with found.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            done = run_as(user, command, uid=uid, timeout=3000)
            assert done.returncode == 0, done.stderr
            found.write_text(done.stdout)
    told: dict[str, Any] = json.loads(found.read_text())
    return told


SHOWN_SCRIPT = """
mount --bind "$1" "$2/toolchain" && export PATH="$2/toolchain/bin:$PATH" XDG_CACHE_HOME="$2/cache" && user=$3 && shift 3 &&
exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
"""


def told_with_rust(factory: pytest.TempPathFactory, name: str, user: str, arguments: list[str]) -> dict[str, Any]:
    """What a program of attacks that needs Rust told; an ordinary user is shown root's toolchain in another place."""
    rustc = shutil.which("rustc")
    if rustc is None:
        unavailable("no Rust here")
    command = [python_of(user), *arguments]
    if _runs(user, str(rustc)):
        return told_once(factory, name, user, command)
    toolchain = subprocess.run([str(rustc), "--print", "sysroot"], check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        for folder in ("toolchain", "cache"):
            Path(place, folder).mkdir()
            os.chown(Path(place, folder), NOBODY, NOBODY)
        showing = ["unshare", "--mount", "sh", "-c", SHOWN_SCRIPT, "sh", toolchain.stdout.strip(), place, str(NOBODY)]
        return told_once(factory, name, "root", [*showing, *command])


def _runs(user: str, program: str) -> bool:
    try:
        return run_as(user, [program, "--version"]).returncode == 0
    except OSError:
        return False
