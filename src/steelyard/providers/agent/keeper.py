"""The process that keeps one agent: makes its copy of the workspace, ends all that it started, and leaves nothing behind.

Only the standard library is used: a bare interpreter runs this. The parent process sends an order as JSON on its standard
input, and keeps that open for as long as the answer is wanted: when it ends, because the answer is no longer wanted or
because the other side was killed, the agent is ended and its copy removed all the same.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

from steelyard.errors import InputError
from steelyard.providers.agent import workspaces
from steelyard.providers.agent.usage import UsageMeter

TYPE_CHECKING = False

RUNS_ON_LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
AGENT_TRANSCRIPT_HALF_BYTES = 64 << 10
"""Bytes that are kept of the beginning of what an agent prints, and of its end."""
AGENT_STDOUT_HALF_BYTES = 1 << 20
"""The same for its standard output alone, where it may report its usage."""
PIPE_READ_BYTES = 1 << 20
AGENT_POLL_SECONDS = 0.25
"""Seconds between polls if nothing else signals the end."""
AGENT_KILL_TIMEOUT_SECONDS = 10
"""Seconds after which a process that cannot be killed is left alone."""


class HeadTailBuffer:
    """The beginning and the end of what is printed."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._beginning = bytearray()
        self._end = bytearray()
        self._dropped = 0

    def add(self, piece: bytes) -> None:
        room = self._each - len(self._beginning)
        self._beginning += piece[:room]
        self._end += piece[room:]
        if len(self._end) > 4 * self._each:
            self._cut()

    def _cut(self) -> None:
        excess = max(0, len(self._end) - self._each)
        del self._end[:excess]
        self._dropped += excess

    def text(self, secrets: list[str]) -> str:
        """What was kept, without our keys."""
        self._cut()
        if not self._dropped:
            return redacted(_text(self.whole), secrets)
        beginning, end = (redacted(_text(part), secrets) for part in (self._beginning, self._end))
        for secret in secrets:  # half a key is one as well
            for length in range(4, len(secret)):
                beginning = beginning.removesuffix(secret[:length])
                end = end.removeprefix(secret[-length:])
        return f"{beginning}\n[... {self._dropped:,} bytes left out ...]\n{end}"

    @property
    def whole(self) -> bytes:
        """Everything, or the end alone where that is not everything."""
        self._cut()
        return bytes(self._end if self._dropped else self._beginning + self._end)


def redacted(text: str, secrets: list[str]) -> str:
    """The text without our keys."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _text(printed: bytes | bytearray) -> str:
    return printed.decode("utf-8", "replace")


# ---- what an agent starts


def kill_descendants() -> None:
    """End every descendant of this process, even detached ones."""
    until = time.monotonic() + AGENT_KILL_TIMEOUT_SECONDS
    while time.monotonic() < until:
        # stopped first, so that what multiplies cannot outrun us
        for sent in (signal.SIGSTOP, signal.SIGKILL):
            seen: set[int] = set()
            while fresh := set(_descendant_pids()) - seen:
                for process in fresh:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(process, sent)
                seen |= fresh
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def _descendant_pids() -> list[int]:
    """Our children and theirs; a process that lost its parent has become our child."""
    children: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*") if RUNS_ON_LINUX else ():
        with contextlib.suppress(OSError):
            parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(process.name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _prepare_agent_process(output_fd: int) -> None:
    """What an agent does before it is the agent: says who it is, in case that it outlives us, and dies with us if it can."""
    os.write(output_fd, b"%d\n" % os.getpid())
    if RUNS_ON_LINUX:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# ---- one agent


class AgentCancelled(Exception):
    """The answer is no longer wanted."""


def run_agent(order: dict[str, Any], home: Path) -> dict[str, Any]:
    """Let the agent work on a copy of its workspace; what it printed and changed."""
    copy = home / "workspace"
    before = fill_workspace(order, copy)
    everything, output = HeadTailBuffer(AGENT_TRANSCRIPT_HALF_BYTES), HeadTailBuffer(AGENT_STDOUT_HALF_BYTES)
    meter = UsageMeter(**order["limits"])
    with tempfile.TemporaryFile(dir=home) as prompt:
        prompt.write(order["prompt"].encode("utf-8", "replace"))
        prompt.seek(0)
        began = time.monotonic()
        agent = _start_agent(order, copy, prompt)
        try:
            in_time = _wait_for_agent(agent, began + order["time_limit"], everything, output, meter)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(agent.pid, signal.SIGKILL)
            agent.wait()
            seconds = time.monotonic() - began
            kill_descendants()
    # not made before, because an agent may remove whatever it finds
    home.mkdir(exist_ok=True)
    return {
        **workspace_result(order, before, copy, Path(tempfile.mkdtemp(dir=home))),
        "transcript": everything.text(order["secrets"]),
        "output": _text(output.whole),
        "usage": meter.final_usage(),
        "exit_code": agent.returncode,
        "seconds": seconds,
        "in_time": in_time,
        "exceeded": meter.exceeded,
    }


def fill_workspace(order: dict[str, Any], copy: Path) -> dict[str, workspaces.GitFile]:
    """Put the files that an order names into a new folder; returns those of its workspace."""
    before = workspaces.workspace_files(order["workspace"])
    if order["digest"] and workspaces.workspace_digest(before) != order["digest"]:
        raise InputError(f"{order['workspace']} changed since the eval set was loaded; start a new run")
    copy.mkdir()
    extra = {path: base64.b64decode(content) for path, content in order["files"].items()}
    workspaces.write_files(workspaces.with_added_files(before, extra), copy)
    return before


def workspace_result(
    order: dict[str, Any], before: dict[str, workspaces.GitFile], copy: Path, scratch: Path
) -> dict[str, Any]:
    """What became of the workspace in a folder, without our keys."""
    changed = workspaces.workspace_change(before, copy, scratch, ignoring=order["files"])
    # of what it did not add, the original is ours to begin with
    own = (" ", "-")
    lines = (line if line.startswith(own) else redacted(line, order["secrets"]) for line in changed.patch.split("\n"))
    left_out = [redacted(one, order["secrets"]) for one in changed.left_out]
    return {"patch": "\n".join(lines), "left_out": left_out}


def _start_agent(order: dict[str, Any], copy: Path, prompt: IO[bytes]) -> subprocess.Popen[bytes]:
    output_fd = os.dup(1)
    try:
        return subprocess.Popen(
            order["argv"],
            cwd=copy,
            # no repository but one in the copy is the agent's to find
            env={**order["environment"], "PWD": str(copy), "GIT_CEILING_DIRECTORIES": str(copy.parent)},
            stdin=prompt,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: _prepare_agent_process(output_fd),  # noqa: PLW1509  this process has one thread
        )
    except OSError as error:
        raise InputError(f"{order['argv'][0]} cannot be started: {error.strerror}") from None
    finally:
        os.close(output_fd)


def _wait_for_agent(
    agent: subprocess.Popen[bytes],
    deadline: float,
    everything: HeadTailBuffer,
    output: HeadTailBuffer,
    meter: UsageMeter,
) -> bool:
    """Listen to an agent until it ends, or until its time is over; raises AgentCancelled when the answer is no longer wanted."""
    watched = os.pidfd_open(agent.pid) if hasattr(os, "pidfd_open") else None
    waiting = select.poll()
    for number in (0, *([] if watched is None else [watched])):
        waiting.register(number, select.POLLIN)
    streams: dict[int, IO[bytes]] = {stream.fileno(): stream for stream in (agent.stdout, agent.stderr) if stream}
    for number in streams:
        os.set_blocking(number, False)
        waiting.register(number, select.POLLIN)
    standard_output = next(iter(streams))

    def listen(number: int) -> bool:
        """Whether something was printed there."""
        try:
            piece = os.read(number, PIPE_READ_BYTES)
        except BlockingIOError:
            return False
        if not piece:
            waiting.unregister(number)
            streams.pop(number).close()
            return False
        everything.add(piece)
        if number == standard_output:
            output.add(piece)
            meter.add(piece)
        return True

    try:
        while (left := deadline - time.monotonic()) > 0:
            pause = min(left, 3600 if watched is not None else AGENT_POLL_SECONDS)
            ready = {number for number, _ in waiting.poll(pause * 1000)}
            if 0 in ready:
                raise AgentCancelled
            for number in sorted(ready & set(streams)):
                listen(number)
            if meter.exceeded or agent.poll() is not None:
                return True
        return False
    finally:
        # what is still in the pipes was printed before the end; what a surviving process prints later is not read
        for number in list(streams):
            left_over = 64
            while left_over and number in streams and listen(number):
                left_over -= 1
        for stream in streams.values():
            stream.close()
        if watched is not None:
            os.close(watched)


def remove_folder(home: Path) -> None:
    """Remove a folder, even with deep or locked content."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(home)
    for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        with contextlib.suppress(OSError):
            if os.path.lexists(home):
                subprocess.run([*command, "--", str(home)], stderr=subprocess.DEVNULL, check=False)


def main() -> None:
    """Carry out the order on standard input, and print the agent's process id and its result, a line each."""
    # Ctrl-C and SIGTERM are for the parent process, which then closes our input; to ignore a signal outright would
    # make the agent ignore it as well
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent, lambda *_: None)
    if RUNS_ON_LINUX:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    # by its number: nothing may be read ahead, because what comes later is the end
    length = int.from_bytes(_read_exactly(8), "big")
    order = json.loads(_read_exactly(length))
    home = Path(order["home"])
    home.mkdir(0o700)
    try:
        result = json.dumps(run_agent(order, home)).encode()
    except AgentCancelled:
        result = b""
    except InputError as error:
        result = json.dumps({"error": str(error)}).encode()
    except OSError as error:
        result = json.dumps({"broken": str(error)}).encode()
    finally:
        kill_descendants()
        remove_folder(home)
    sys.stdout.buffer.write(result)


def _read_exactly(length: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < length:
        piece = os.read(0, min(PIPE_READ_BYTES, length - len(pieces)))
        if not piece:
            sys.exit(1)
        pieces += piece
    return bytes(pieces)
