"""What is compiled once and then lent to every attempt: the harness, and the crates that a case depends on.

Crates come from folders on this machine, never from the network: the one that STEELYARD_CARGO_VENDOR names (made by
`cargo vendor`), Debian's librust-*-dev packages, or what cargo has fetched before. They are built in the sandbox,
build scripts included, and only libraries leave it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.errors import MissingToolError, VerifierError
from steelyard.protocols import ResourceLimits
from steelyard.records import Dependency, digest
from steelyard.verifiers.rust.case_tests import HARNESS_ALIAS
from steelyard.verifiers.rust.harness import HARNESS_CRATE, HARNESS_SOURCE_PATH
from steelyard.verifiers.rust.linker import Linker
from steelyard.verifiers.rust.toolchain import Toolchain, cache_folder, let_everyone_read

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox

DEBIAN_CRATE_REGISTRY = Path("/usr/share/cargo/registry")
MAX_LIBRARY_BYTES = 512 << 20
DEPENDENCY_BUILD_SECONDS = 900
"""Seconds that building the dependencies of a case may take."""


class CompiledLibraries(NamedTuple):
    """A folder of compiled crates, and the compiler arguments that name them."""

    folder: str
    arguments: tuple[str, ...]


@cache
def compiled_harness(tools: Toolchain) -> CompiledLibraries:
    """The compiled harness; built on first use and kept for later runs."""
    source = HARNESS_SOURCE_PATH.read_text("utf-8")
    folder = cache_folder(digest("harness", source, tools))
    library = folder / f"lib{HARNESS_CRATE}.rlib"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            Path(made, "harness.rs").write_text(source, "utf-8")
            kind = ("--crate-type", "rlib", "--crate-name", HARNESS_CRATE, "--edition", "2021", "-O", "-A", "warnings")
            argv = [tools.rustc, "--sysroot", tools.sysroot, *kind, "harness.rs", "-o", library.name]
            ran = subprocess.run(
                argv, cwd=made, capture_output=True, text=True, timeout=DEPENDENCY_BUILD_SECONDS, check=False
            )
            if ran.returncode:
                raise VerifierError(f"the harness for Rust tests does not compile here: {ran.stderr[-500:]}")
            folder.mkdir(exist_ok=True)
            let_everyone_read(folder, Path(made, library.name))
            Path(made, library.name).replace(library)
    return CompiledLibraries(str(folder), ("--extern", f"{HARNESS_ALIAS}={library}"))


def crate_source_folder(dependencies: Sequence[Dependency]) -> Path:
    """The folder that the crates come from; a VerifierError when one of them is nowhere on this machine."""
    vendored = os.environ.get("STEELYARD_CARGO_VENDOR", "")
    fetched = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "registry"
    for folder in (Path(vendored),) if vendored else (DEBIAN_CRATE_REGISTRY, fetched):
        held = [path.name for path in folder.glob("*")] + [path.name for path in folder.glob("src/*/*")]
        absent = [each.name for each in dependencies if not any(_is_crate_folder(name, each.name) for name in held)]
        if held and not absent:
            return folder
    names = ", ".join(dependency.name for dependency in dependencies)
    raise MissingToolError(
        f"its dependencies ({names}) are not on this machine; put them into a folder with `cargo vendor` and name it in "
        "STEELYARD_CARGO_VENDOR, or install Debian's packages librust-NAME-dev"
    )


def crate_folders(dependencies: Sequence[Dependency]) -> tuple[str, ...]:
    """The folders of these crates, whose names mostly hold versions; a VerifierError when one of them is nowhere."""
    folder = crate_source_folder(dependencies)
    names = {path.name for pattern in ("*", "src/*/*") for path in folder.glob(pattern)}
    return tuple(sorted(name for name in names if any(_is_crate_folder(name, each.name) for each in dependencies)))


def _is_crate_folder(folder: str, crate: str) -> bool:
    return folder == crate or (folder.startswith(f"{crate}-") and folder[len(crate) + 1 :][:1].isdigit())


async def compiled_dependencies(
    wanted: Sequence[Dependency], tools: Toolchain, linker: Linker, sandbox: Sandbox
) -> CompiledLibraries | None:
    """The compiled dependencies, built on first use and kept for later runs; None when there are none."""
    if not wanted:
        return None
    source = crate_source_folder(wanted)
    folder = cache_folder(digest("dependencies", sorted(wanted, key=lambda each: each.name), str(source), tools))
    listed = folder / "arguments.json"
    if not listed.exists():
        made = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            externs = await _build(wanted, source, tools, linker, sandbox, made)
            arguments = [part for name, file in externs.items() for part in ("--extern", f"{name}={folder / file}")]
            (made / "arguments.json").write_bytes(msgspec.json.encode([*arguments, "-L", f"dependency={folder}"]))
            let_everyone_read(made, *made.iterdir())
            with contextlib.suppress(OSError):  # another process was faster, with the same result
                made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return CompiledLibraries(str(folder), tuple(msgspec.json.decode(listed.read_bytes(), type=list[str])))


async def _build(
    wanted: Sequence[Dependency], source: Path, tools: Toolchain, linker: Linker, sandbox: Sandbox, made: Path
) -> dict[str, str]:
    """Build with cargo; puts the libraries into `made` and gives the files of the wanted crates by their names."""
    if tools.cargo is None:
        raise MissingToolError(
            "its dependencies cannot be built: no cargo here; install it with rustup or apt install cargo"
        )
    files = {"Cargo.toml": _manifest(wanted), "src/lib.rs": ""}
    environment = {**tools.environment, "RUSTC": tools.rustc, "CARGO_HOME": "cargo", "CARGO_PROFILE_DEV_DEBUG": "0"}
    # build scripts and macros are programs, which are linked too
    environment["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(linker.arguments)
    if (source / "src").is_dir() and (source / "index").is_dir():
        environment["CARGO_HOME"] = str(source.parent)
    else:
        replaced = msgspec.json.encode(str(source)).decode()
        files[".cargo/config.toml"] = (
            f'[source.crates-io]\nreplace-with = "local"\n[source.local]\ndirectory = {replaced}\n'
        )
    async with sandbox.workspace(files, readable=[*tools.readable, *linker.readable, str(source)]) as place:
        argv = [tools.cargo, "build", "--offline", "--message-format=json", "--target-dir", "target"]
        limits = ResourceLimits(
            DEPENDENCY_BUILD_SECONDS,
            DEPENDENCY_BUILD_SECONDS,
            memory_bytes=8 << 30,
            file_bytes=MAX_LIBRARY_BYTES,
            processes=256,
        )
        outcome = await place.run(argv, limits=limits, environment=environment)
        if outcome.exit_code:
            printed = " ".join(outcome.stderr.decode("utf-8", "replace").split()).removeprefix("error: ")
            raise VerifierError(f"its dependencies cannot be built from {source}: {outcome.limit or printed[:400]}")
        externs: dict[str, str] = {}
        for line in outcome.stdout.splitlines():
            artifact: dict[str, Any] = msgspec.json.decode(line)
            if artifact.get("reason") != "compiler-artifact":
                continue
            kept = [name for name in artifact["filenames"] if name.endswith((".rlib", ".so", ".dylib"))]
            for name in kept:
                content = await place.read(f"target/debug/deps/{Path(name).name}", MAX_LIBRARY_BYTES)
                if content is not None:
                    (made / Path(name).name).write_bytes(content)
                    if _package(artifact["package_id"]) in {each.name for each in wanted}:
                        externs[artifact["target"]["name"].replace("-", "_")] = Path(name).name
        return externs


def _package(identity: str) -> str:
    """The name in cargo's name for a package: `itoa` in `registry+https://…#itoa@1.0.1` and in `itoa 1.0.1 (…)`."""
    return identity.rpartition("#")[2].partition("@")[0].partition(" ")[0]


def _manifest(wanted: Sequence[Dependency]) -> str:
    lines = ['[package]\nname = "attempts"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]']
    for each in wanted:
        # JSON's strings and lists are TOML's as well
        name, version, features = (
            msgspec.json.encode(part).decode() for part in (each.name, each.version, each.features)
        )
        lines.append(f"{name} = {{ version = {version}, features = {features} }}")
    return "\n".join(lines) + "\n"
