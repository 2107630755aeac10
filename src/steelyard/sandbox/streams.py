"""New files and pipes for the standard streams of each program, so that no program leaves anything behind in a stream.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys

STREAM_NAMES = ("stdin", "stdout", "stderr")
MAX_COPY_BYTES = 1 << 30
"""The most that the kernel copies in one call."""
F_SETPIPE_SZ = 1031
STDOUT_PIPE_BYTES = 1 << 20
"""What the pipe of the standard output holds: a program in node that ends by `process.exit` loses what does not fit."""


class ProgramStreams:
    """The streams of one program, in a folder that it can read: `/dev/stdin` and the others lead to them.

    What it prints goes through pipes: in a file, opening `/dev/stdout` a second time would remove what was printed before.
    """

    def __init__(self, folder: str, owner: int | None, given: list[int], *, kept: int, most: int) -> None:
        stdin, *outputs = (f"{folder}/{name}" for name in STREAM_NAMES)
        self._kept = kept
        """Bytes of each output that are kept; the rest is thrown away."""
        self._most = most
        """Bytes of each output after which nobody reads any more."""
        self._problem: OSError | None = None
        pipes = NamedPipes(outputs, owner)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # beyond a number of pages a user gets no more
                fcntl.fcntl(pipes.writers[0], F_SETPIPE_SZ, STDOUT_PIPE_BYTES)
        self._targets = dict(zip(pipes.readers, given[1:], strict=True))
        """Files outside the sandbox, by the pipes whose content they get."""
        self._read_bytes = dict.fromkeys(pipes.readers, 0)
        # a description of its own: what it does to it does not touch ours
        self.fds = [_readable_copy(given[0], stdin, owner), *pipes.writers]

    @property
    def readers(self) -> tuple[int, ...]:
        """The pipes that something may still come through."""
        return tuple(self._targets)

    def take(self, reader: int) -> bool:
        """Keep what has come through a pipe; whether the pipe is still read."""
        self._read(reader)
        return reader in self._targets

    def collect(self) -> None:
        """Take what the program left in its pipes; raises OSError where something could not be kept."""
        for reader in self.readers:
            while self._read(reader):
                pass
        if self._problem is not None:
            raise self._problem

    def _read(self, reader: int) -> bool:
        """Take what is in a pipe; whether more may be in it."""
        try:
            piece = os.read(reader, STDOUT_PIPE_BYTES)
        except BlockingIOError:
            return False
        room = max(0, self._kept - self._read_bytes[reader])
        self._read_bytes[reader] += len(piece)
        try:
            _write_all(self._targets[reader], piece[:room])
        except OSError as error:  # raised when the program has ended
            self._problem = error
        if self._read_bytes[reader] <= self._most:
            return bool(piece)
        del self._targets[reader]
        os.close(reader)
        return False

    def close(self) -> None:
        for fd in (*self._targets, *self.fds):
            os.close(fd)


class NamedPipes:
    """Pipes that can be opened by their names, and both ends of each."""

    def __init__(self, paths: list[str], owner: int | None) -> None:
        for path in paths:
            os.mkfifo(path, 0o600)
            if owner is not None:
                os.chown(path, owner, owner)
        self.readers = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in paths]
        # held until the program has ended: without a writer a pipe seems to be at its end
        self.writers = [os.open(path, os.O_WRONLY) for path in paths]


class AgentStreams:
    """The streams of an agent: its task is a file, and what it prints goes at once through pipes that have names."""

    def __init__(self, folder: str, owner: int | None) -> None:
        self._owner = owner
        self._stdin, *outputs = (f"{folder}/{name}" for name in STREAM_NAMES)
        pipes = NamedPipes(outputs, owner)
        self.readers = pipes.readers
        """For the listening side, not for the agent."""
        self._writers = pipes.writers

    def fds(self, given: int) -> list[int]:
        """Its three streams, with a task that is given in a file."""
        return [_readable_copy(given, self._stdin, self._owner), *self._writers]

    def close(self) -> None:
        """Signal the end of the stream."""
        while self._writers:
            os.close(self._writers.pop())


def _readable_copy(given: int, path: str, owner: int | None) -> int:
    """A new file with the content of another, opened for reading."""
    made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    if owner is not None:
        os.fchown(made, owner, owner)
    copy_file(given, made, os.fstat(given).st_size)
    os.close(made)
    return os.open(path, os.O_RDONLY)


def _write_all(target: int, content: bytes) -> None:
    while content:
        content = content[os.write(target, content) :]


def copy_file(source: int, target: int, size: int, start: int = 0) -> None:
    """Copy a part of a file, without its content in our memory: a fork of ours would inherit that."""
    if sys.platform != "linux":
        os.lseek(source, start, os.SEEK_SET)
        with open(source, "rb", closefd=False) as reader, open(target, "wb", closefd=False) as writer:
            while size and (piece := reader.read(min(MAX_COPY_BYTES >> 10, size))):
                writer.write(piece)
                size -= len(piece)
        return
    copied = 0
    while copied < size:
        more = os.sendfile(target, source, start + copied, min(MAX_COPY_BYTES, size - copied))
        if not more:  # it was cut short meanwhile
            return
        copied += more
