"""The linker for Rust programs: the fastest one that links a program in the sandbox.

What a machine has installed proves nothing. On x86_64 the compiler links with its own rust-lld by default, through a wrapper
that finds itself in /proc, which a sandbox may lack; a linker may also be broken. So each is tried on a tiny program.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import VerifierError
from steelyard.protocols import ResourceLimits
from steelyard.records import digest
from steelyard.text import printable
from steelyard.verifiers.rust.toolchain import Toolchain, cache_folder, let_everyone_read

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox

LINK_CHECK_LIMITS = ResourceLimits(cpu_seconds=60, wall_seconds=300, memory_bytes=4 << 30, file_bytes=256 << 20)
LINK_CHECK_PROGRAM = 'fn main() {\n    println!("linked");\n}\n'
LINK_CHECK_SCRIPT = '"$@" link_check.rs -o link_check && ./link_check'
LINK_RETRY_SECONDS = 60.0
"""Seconds before linkers are tried again after none of them worked."""
PLAIN_LINKER_NAME = "cc"
"""The C compiler, which links with the linker that it was made for."""
LINK_ERROR_PREFIX = "linking with"
"""How the compiler begins its error when the linker failed."""


class Linker(NamedTuple):
    """A linker, and the compiler's options for it."""

    name: str
    arguments: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    """The folders that a sandbox must show for it."""


class LinkerFinder:
    """Finds the first linker that works in a sandbox, once; the caller makes sure that there is only one search at a time."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._linker: Linker | None = None
        self._problem = ""
        self._tried_at = -LINK_RETRY_SECONDS

    async def found(self, tools: Toolchain) -> Linker:
        """The linker; a VerifierError when none works, which is looked into again only after a while."""
        if self._linker is None and time.monotonic() - self._tried_at >= LINK_RETRY_SECONDS:
            problems: dict[str, str] = {}
            for linker in _linkers(tools):
                problem = await link_problem(linker, tools, self._sandbox)
                if not problem:
                    self._linker = linker
                    break
                problems.setdefault(linker.name, problem)
            self._problem = f"({', '.join(problems)}): {problems.get(PLAIN_LINKER_NAME, '')}"
            self._tried_at = time.monotonic()
        if self._linker is None:
            raise VerifierError(f"no linker for Rust works in the sandbox {self._problem}")
        return self._linker

    async def check_again(self, tools: Toolchain) -> None:
        """Raise VerifierError where no linker works any more, so that an answer is not blamed for it."""
        self._linker, self._tried_at = None, -LINK_RETRY_SECONDS
        await self.found(tools)


async def link_problem(linker: Linker, tools: Toolchain, sandbox: Sandbox) -> str:
    """Why a tiny program cannot be linked and run; empty when it can."""
    files = {"link_check.rs": LINK_CHECK_PROGRAM}
    async with sandbox.workspace(files, readable=[*tools.readable, *linker.readable]) as place:
        compiler = (tools.rustc, "--sysroot", tools.sysroot, "--edition=2021", *dynamic_linking_arguments(tools))
        outcome = await place.run(
            ["/bin/sh", "-c", LINK_CHECK_SCRIPT, "sh", *compiler, *linker.arguments],
            limits=LINK_CHECK_LIMITS,
            environment=tools.environment,
        )
    if outcome.stdout == b"linked\n":
        return ""
    printed = outcome.stderr.decode("utf-8", "replace").splitlines()
    # the command line of the linker is long, and its own words come after it
    words = [line.strip(" |=") for line in printed if '" "' not in line and "arguments are omitted" not in line]
    reason = " ".join(line.removeprefix("error: ").removeprefix("note: ") for line in words if line)
    return outcome.limit or printable(reason)[:300] or f"exit code {outcome.exit_code}"


def dynamic_linking_arguments(tools: Toolchain) -> tuple[str, ...]:
    """Linking with the shared standard library takes a fraction of the time, and the program must find it."""
    return ("-C", "prefer-dynamic", "-C", f"link-arg=-Wl,-rpath,{tools.libraries}")


def _linkers(tools: Toolchain) -> Iterator[Linker]:
    """What could link, the fastest first."""
    for name in ("mold", "lld"):
        # the sandbox looks for programs in the system's folders alone
        if shutil.which(f"ld.{name}", path=os.defpath):
            yield Linker(name, ("-C", f"link-arg=-fuse-ld={name}"))
    own = Path(tools.libraries).with_name("bin") / "rust-lld"
    if os.access(own, os.X_OK) and (folder := _folder_with_lld(own)):
        arguments = ("-C", f"link-arg=-B{folder}", "-C", "link-arg=-fuse-ld=lld")
        # where the compiler would name its own wrapper first, which finds itself through /proc; older versions do not
        yield Linker("rust-lld", (*arguments, "-C", "linker-features=-lld"), (folder,))
        yield Linker("rust-lld", arguments, (folder,))
    yield Linker(PLAIN_LINKER_NAME)
    # where the compiler would not leave the choice to cc: by its own option, or by one that older versions know too
    yield Linker(PLAIN_LINKER_NAME, ("-C", "linker-features=-lld"))
    yield Linker(PLAIN_LINKER_NAME, ("-C", "link-arg=-fuse-ld=bfd"))


def _folder_with_lld(own: Path) -> str:
    """A folder with rust-lld under the name that cc looks for; empty when it cannot be written."""
    script = f'#!/bin/sh\nexec {shlex.quote(str(own))} -flavor gnu "$@"\n'
    folder = cache_folder(digest("linker", script))
    program = folder / "ld.lld"
    try:
        if not program.exists():
            folder.mkdir(exist_ok=True)
            written = folder / f"ld.lld.{os.getpid()}"
            written.write_text(script, "utf-8")
            let_everyone_read(folder, written)
            written.replace(program)
    except OSError:
        return ""
    return str(folder)
