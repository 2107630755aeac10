"""What toolchains need that find their own files by `/proc`, which a sandbox does not have, or lie where it does not look."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from steelyard.errors import MissingToolError
from steelyard.verifiers.rust.toolchain import toolchain

SANDBOX_PATH = "/usr/local/bin:/usr/bin:/bin"
JAVA_PROGRAMS = frozenset({"java", "javac", "jar", "jshell"})
GO_PROGRAMS = frozenset({"go", "gofmt"})
RUST_PROGRAMS = frozenset({"rustc", "cargo"})
SMALL_JAVA_OPTIONS = (
    "-Xmx512m -XX:CompressedClassSpaceSize=64m -XX:ReservedCodeCacheSize=64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
)
"""A machine of Java that fits into the address space of a command; what a command says itself comes later and counts."""
GO_SETUP = 'TMPDIR="$HOME/.go-tmp"; export TMPDIR; mkdir -p "$TMPDIR"\n'
"""Go ignores a module that lies in the folder for temporary files, and in a sandbox that is the folder of the answer."""


class OwnPlaces(NamedTuple):
    """How a toolchain finds itself."""

    environment: tuple[tuple[str, str], ...] = ()
    readable: tuple[str, ...] = ()
    """Folders outside the system's in which it keeps settings."""
    setup: str = ""
    """What a shell does first."""


def own_places(tools: Iterable[str]) -> OwnPlaces:
    """What these programs need together."""
    named = frozenset(tools)
    return _own_places(bool(named & JAVA_PROGRAMS), bool(named & GO_PROGRAMS), bool(named & RUST_PROGRAMS))


@cache
def _own_places(uses_java: bool, uses_go: bool, uses_rust: bool) -> OwnPlaces:
    environment: dict[str, str] = {}
    readable: list[str] = []
    if uses_java and (home := _home("javac") or _home("java")):
        environment |= {"LD_LIBRARY_PATH": f"{home}/lib", "JAVA_TOOL_OPTIONS": SMALL_JAVA_OPTIONS}
        # Debian keeps the settings in /etc and links to them
        linked = [os.path.realpath(path) for path in (home / "conf").rglob("*") if path.is_symlink()]
        readable = sorted({str(Path("/", *Path(path).parts[1:3])) for path in linked if path.startswith("/etc/java")})
    if uses_go and (home := _home("go")):
        environment |= {"GOROOT": str(home), "GOTELEMETRY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    if uses_rust and shutil.which("rustc", path=SANDBOX_PATH) is None:
        with suppress(MissingToolError):
            # rustup puts it into the folder of its user
            rust = toolchain()
            environment |= rust.environment | {"PATH": f"{SANDBOX_PATH}:{rust.sysroot}/bin"}
            readable += rust.readable
    return OwnPlaces(tuple(environment.items()), tuple(readable), GO_SETUP if "GOROOT" in environment else "")


def _home(program: str) -> Path | None:
    """The folder that a program is in the `bin` of."""
    found = shutil.which(program, path=SANDBOX_PATH)
    return Path(os.path.realpath(found)).parents[1] if found else None
