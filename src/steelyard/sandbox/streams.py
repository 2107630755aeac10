"""New files for the standard streams of each program, so that no program leaves anything behind in a stream.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import os
import sys

STREAM_NAMES = ("stdin", "stdout", "stderr")
MAX_COPY_BYTES = 1 << 30
"""The most that the kernel copies in one call."""


class ProgramStreams:
    """The files of one program, in a folder that it can read: `/dev/stdin` and the others lead to them."""

    def __init__(self, folder: str, owner: int | None, given: list[int]) -> None:
        self._given = given
        """Files outside the sandbox: the first is read here, the other two are written at the end."""
        self._files = [os.open(f"{folder}/{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600) for name in STREAM_NAMES]
        if owner is not None:
            for file in self._files:
                os.fchown(file, owner, owner)
        copy_file(given[0], self._files[0], os.fstat(given[0]).st_size)
        modes = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
        # descriptions of its own: what it does to them does not touch ours
        self.fds = [os.open(f"{folder}/{name}", mode) for name, mode in zip(STREAM_NAMES, modes, strict=True)]

    def collect(self, most: int) -> None:
        """Bring out what was printed, up to a number of bytes for each stream."""
        for file, given in zip(self._files[1:], self._given[1:], strict=True):
            copy_file(file, given, min(most, os.fstat(file).st_size))

    def close(self) -> None:
        for fd in (*self._files, *self.fds):
            os.close(fd)


class AgentStreams:
    """The streams of an agent: its task is a file, and what it prints goes at once through pipes that have names."""

    def __init__(self, folder: str, owner: int | None) -> None:
        self._owner = owner
        self._stdin, *outputs = (f"{folder}/{name}" for name in STREAM_NAMES)
        for path in outputs:
            os.mkfifo(path, 0o600)
            if owner is not None:
                os.chown(path, owner, owner)
        self.readers = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in outputs]
        """For the listening side, not for the agent."""
        # held until the agent has ended: without a writer a pipe seems to be at its end
        self._writers = [os.open(path, os.O_WRONLY) for path in outputs]

    def fds(self, given: int) -> list[int]:
        """Its three streams, with a task that is given in a file."""
        made = os.open(self._stdin, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if self._owner is not None:
            os.fchown(made, self._owner, self._owner)
        copy_file(given, made, os.fstat(given).st_size)
        os.close(made)
        return [os.open(self._stdin, os.O_RDONLY), *self._writers]

    def close(self) -> None:
        """Say that nothing comes any more."""
        while self._writers:
            os.close(self._writers.pop())


def copy_file(source: int, target: int, size: int) -> None:
    """Copy the beginning of a file, without its content in our memory: a fork of ours would inherit that."""
    if sys.platform != "linux":
        os.lseek(source, 0, os.SEEK_SET)
        with open(source, "rb", closefd=False) as reader, open(target, "wb", closefd=False) as writer:
            while piece := reader.read(MAX_COPY_BYTES >> 10):
                writer.write(piece)
        return
    copied = 0
    while copied < size:
        more = os.sendfile(target, source, copied, min(MAX_COPY_BYTES, size - copied))
        if not more:  # it was cut short meanwhile
            return
        copied += more
