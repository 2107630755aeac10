"""The Rust toolchain of this machine, called past rustup's proxies, and the folder of what it makes once for all attempts."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from steelyard.errors import MissingToolError
from steelyard.store.own_folders import is_open_to_others


class Toolchain(NamedTuple):
    """The programs that compile an answer, and what they need."""

    sysroot: str
    rustc: str
    clippy: str | None
    """None if it is not installed: then warnings are unknown."""
    cargo: str | None
    libraries: str
    """The folder of the standard library that programs are linked with."""
    version: str

    @property
    def readable(self) -> list[str]:
        """The folders a sandbox must show for the toolchain to work."""
        return [] if Path(self.sysroot) == Path("/usr") else [self.sysroot]

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for its programs: without /proc they cannot find their own libraries."""
        return {"LD_LIBRARY_PATH": f"{self.sysroot}/lib"}


@cache
def toolchain() -> Toolchain:
    """The toolchain; a VerifierError says how to get one when there is none."""
    proxy = shutil.which("rustc")
    if proxy is None:
        raise MissingToolError(
            "no Rust compiler here; install one with rustup (https://rustup.rs) or apt install rustc"
        )
    if shutil.which("cc", path=os.defpath) is None:
        raise MissingToolError("no linker for Rust here; install a C compiler that is called cc, such as gcc")
    sysroot = _command_output([proxy, "--print", "sysroot"])
    rustc = _program(sysroot, "rustc") or proxy
    clippy = _program(sysroot, "clippy-driver")
    version = f"rustc {_version_number(_command_output([rustc, '-V']))}"
    if clippy:
        version += f", clippy {_version_number(_command_output([clippy, '-V']))}"
    return Toolchain(
        sysroot=sysroot,
        rustc=rustc,
        clippy=clippy,
        cargo=_program(sysroot, "cargo"),
        libraries=_command_output([rustc, "--print", "target-libdir"]),
        version=version,
    )


def _program(sysroot: str, name: str) -> str | None:
    path = Path(sysroot, "bin", name)
    return str(path) if os.access(path, os.X_OK) else None


def _command_output(argv: list[str]) -> str:
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingToolError(f"the Rust toolchain does not work: {' '.join(argv)}: {error}") from error
    return ran.stdout.strip()


def _version_number(text: str) -> str:
    found = re.search(r"\d+\.\d+\.\d+\S*", text)
    return found[0] if found else text


def cache_folder(name: str) -> Path:
    """The folder of this name among those that are kept between runs; the one above it exists."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steelyard" / "rust"
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder = folder.resolve()
    except (OSError, RuntimeError):  # it cannot be written, or this user has no home
        folder = Path(tempfile.gettempdir(), f"steelyard-rust-{os.getuid()}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, exist_ok=True)
    # whoever can put a library there decides verdicts
    return (_folder_of_this_process() if is_open_to_others(folder) else folder) / name


@cache
def _folder_of_this_process() -> Path:
    """A folder that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="steelyard-rust-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def let_everyone_read(*paths: Path) -> None:
    """Make files and folders readable for the user that attempts run as, independent of our umask."""
    for path in paths:
        path.chmod(0o755)
