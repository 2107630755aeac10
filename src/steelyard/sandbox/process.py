"""A plain process with limits: it keeps time and memory in, but nothing out of reach that its user may reach."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.protocols import Limits, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KEPT = 64 << 10
"""Bytes of error output that are kept."""
LARGEST = 16 << 20
"""Bytes of output that are read."""

LIMITED = """
ulimit -c 0; ulimit -f "$2"; ulimit -n 256
ulimit -S -t "$1"; ulimit -H -t "$(($1 + 1))"
ulimit -v "$3" 2>/dev/null || true
shift 3; exec "$@"
"""
"""The limits of the shell, set before the program replaces it; macOS knows no limit on memory.

Time runs out with a signal that names the reason, and a second later with one that cannot be ignored.
"""


class Process:
    """One process group per run, in a folder of its own, with an environment that holds nothing."""

    level = "process"

    async def run(self, argv: Sequence[str], *, files: Mapping[str, str], stdin: bytes, limits: Limits) -> Outcome:
        # removing it opens folders that the code locked behind itself
        with tempfile.TemporaryDirectory(prefix="steelyard-", ignore_cleanup_errors=True) as folder:
            home = Path(folder, "home")
            home.mkdir()
            for name, content in files.items():
                (home / name).write_text(content, "utf-8")
            Path(folder, "stdin").write_bytes(stdin)
            return await self._run(argv, Path(folder), home, limits)

    async def _run(self, argv: Sequence[str], folder: Path, home: Path, limits: Limits) -> Outcome:
        # files instead of pipes: nothing to drain, and a child left behind cannot keep us waiting at one
        with (
            Path(folder, "stdin").open("rb") as stdin,
            Path(folder, "stdout").open("w+b") as stdout,
            Path(folder, "stderr").open("w+b") as stderr,
        ):
            started = time.monotonic()
            shell = ("/bin/sh", "-c", LIMITED, "sh", *_ulimits(limits))
            process = await asyncio.create_subprocess_exec(
                *shell,
                *argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=home,
                env=_environment(home),
                start_new_session=True,
            )
            limit = ""
            try:
                await asyncio.wait_for(process.wait(), limits.wall_seconds)
            except TimeoutError:
                limit = "time limit"
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):  # the group is gone
                    os.killpg(process.pid, signal.SIGKILL)
                exit_code = await process.wait()
            seconds = time.monotonic() - started
            unasked = exit_code == -signal.SIGKILL and not limit and seconds >= limits.cpu_seconds
            if exit_code == -signal.SIGXCPU or unasked:
                limit = "cpu limit"
            return Outcome(
                exit_code=exit_code,
                stdout=_read(stdout, LARGEST),
                stderr=_read(stderr, KEPT),
                limit=limit,
                seconds=seconds,
            )


def _ulimits(limits: Limits) -> tuple[str, str, str]:
    return (str(max(1, round(limits.cpu_seconds))), str(limits.file_bytes // 512), str(limits.memory_bytes // 1024))


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        # an answer that passes by the luck of a hash order must pass or fail every time
        "PYTHONHASHSEED": "0",
    }


def _read(file: Any, most: int) -> bytes:
    file.seek(0)
    content: bytes = file.read(most)
    return content
