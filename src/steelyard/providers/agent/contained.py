"""A contained agent: its workspace is inside its sandbox, and its changes are copied out afterwards."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard.errors import InputError
from steelyard.providers.agent import workspaces
from steelyard.providers.agent.containment import AgentContainment, AgentEnd
from steelyard.providers.agent.keeper import (
    AGENT_STDOUT_HALF_BYTES,
    AGENT_TRANSCRIPT_HALF_BYTES,
    HeadTailBuffer,
    fill_workspace,
    redacted,
    remove_folder,
    workspace_result,
)
from steelyard.providers.agent.usage import UsageMeter

COPY_BYTES = 1 << 20


async def run_contained(order: dict[str, Any], containment: AgentContainment) -> dict[str, Any]:
    """Carry out an order as a keeper does, in a sandbox."""
    everything, output = HeadTailBuffer(AGENT_TRANSCRIPT_HALF_BYTES), HeadTailBuffer(AGENT_STDOUT_HALF_BYTES)

    meter = UsageMeter(**order["limits"])

    def hear(piece: bytes, is_stdout: bool) -> bool:
        everything.add(piece)
        if is_stdout:
            output.add(piece)
            meter.add(piece)
        return bool(meter.exceeded)

    access = containment.access
    access = access._replace(readable=(*access.readable, *_program_paths(order["programs"])))
    home = Path(order["home"])
    try:
        async with containment.sandbox.box(access) as box:
            copy = box.folder / "workspace"
            before = await asyncio.to_thread(fill_workspace, order, copy)
            ended = await box.run(
                order["argv"],
                stdin=order["prompt"].encode("utf-8", "replace"),
                environment=order["environment"],
                time_limit=order["time_limit"],
                hear=hear,
            )
            home.mkdir(0o700)
            await asyncio.to_thread(_copy_out, copy, home / "workspace")
            refusals = box.refusals
        (home / "scratch").mkdir()
        result = await asyncio.to_thread(workspace_result, order, before, home / "workspace", home / "scratch")
    except InputError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"broken": str(error)}
    finally:
        await asyncio.to_thread(remove_folder, home)
    transcript = everything.text(order["secrets"])
    if notes := [*refusals, *_limit_notes(ended)]:
        newline = "\n" if transcript and not transcript.endswith("\n") else ""
        transcript += newline + "".join(f"[steelyard: {redacted(note, order['secrets'])}]\n" for note in notes)
    return {
        **result,
        "transcript": transcript,
        "output": output.whole.decode("utf-8", "replace"),
        "usage": meter.final_usage(),
        "exit_code": ended.exit_code,
        "seconds": ended.seconds,
        "in_time": ended.limit != "time limit",
        "exceeded": meter.exceeded,
    }


def _limit_notes(ended: AgentEnd) -> list[str]:
    return [f"ended at its {ended.limit}"] if ended.limit not in ("", "time limit") else []


def _program_paths(programs: list[str]) -> list[str]:
    """The files of a program and of its script, and the virtual environment whose Python it is."""
    found = list(programs)
    environment = Path(programs[0]).parent.parent
    if (environment / "pyvenv.cfg").is_file():
        found.append(str(environment))
    return found


def _copy_out(source: Path, target: Path) -> None:
    """Copy what an agent left in its workspace to a folder on this machine; what is too large is there by its size alone."""
    if source.is_symlink() or not source.is_dir():
        return
    workspaces.unlock(source)
    linked: dict[int, Path] = {}
    waiting = [""]
    while waiting:
        here = waiting.pop()
        with _ignored_long_names():
            (target / here).mkdir()
            for entry in os.scandir(source / here):
                path = f"{here}/{entry.name}" if here else entry.name
                with _ignored_long_names():
                    about = entry.stat(follow_symlinks=False)
                    mode = about.st_mode
                    if stat.S_ISDIR(mode):
                        waiting.append(path)
                    elif stat.S_ISLNK(mode):
                        (target / path).symlink_to((source / path).readlink())
                    elif stat.S_ISREG(mode) and about.st_ino in linked:
                        (target / path).hardlink_to(linked[about.st_ino])
                    elif stat.S_ISREG(mode):
                        _copy_file(source / path, target / path, mode)
                        if about.st_nlink > 1:  # thousands of names may be one large file
                            linked[about.st_ino] = target / path


@contextmanager
def _ignored_long_names() -> Iterator[None]:
    """Leave out paths that are too deep for the user's own programs, too."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise


def _copy_file(source: Path, target: Path, mode: int) -> None:
    if not mode & stat.S_IRUSR:
        source.chmod(mode | stat.S_IRUSR)
    with source.open("rb", buffering=0) as given, target.open("wb", buffering=0) as made:
        size = os.fstat(given.fileno()).st_size
        made.truncate(size)
        if size <= workspaces.MAX_WORKSPACE_BYTES:
            _copy_data(given.fileno(), made.fileno(), size)
        os.fchmod(made.fileno(), 0o755 if mode & stat.S_IXUSR else 0o644)


def _copy_data(given: int, made: int, size: int) -> None:
    """Copy what was written to a file; holes stay holes, because thousands of them would fill our disk."""
    at = 0
    while at < size:
        try:
            at = os.lseek(given, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            raise
        end = os.lseek(given, at, os.SEEK_HOLE)
        while at < end:
            at += os.pwrite(made, os.pread(given, min(end - at, COPY_BYTES), at), at)
