"""Changes of modes that a contained process asks for, made on its behalf if the file is in its folder.

Where file names lead to the user's own files and the process has the user's rights, only this keeps it from changing them.
Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct

from steelyard.sandbox import kernel
from steelyard.sandbox.folders import path_parts

SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND = 0xC0502100, 0xC0182101
SECCOMP_NOTIFICATION, SECCOMP_RESPONSE = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
MODE_SYSCALLS = ("fchmod", "fchmodat", "fchmodat2", *(("chmod",) if kernel.CPU_ARCHITECTURE == "x86_64" else ()))
MAX_PATH_BYTES, PAGE_BYTES = 4096, 4096
PERMISSION_BITS = 0o777


class ModeRequests:
    """The requests of one contained process and those below it."""

    def __init__(self, listener: int, home: str) -> None:
        self.listener = listener
        self._home = os.path.realpath(home)

    @classmethod
    def received(cls, line: tuple[socket.socket, socket.socket], home: str) -> ModeRequests | None:
        """The requests that a child of ours will make; None when it ended before it could make any."""
        ours, theirs = line
        theirs.close()
        with ours:
            listeners = socket.recv_fds(ours, 1, 1)[1]
        return cls(listeners[0], home) if listeners else None

    def close(self) -> None:
        os.close(self.listener)

    def answer(self) -> bool:
        """Grant or refuse the request that waits; always true, because another may come."""
        request = bytearray(SECCOMP_NOTIFICATION.size)
        with contextlib.suppress(OSError):  # who asked may have ended meanwhile
            fcntl.ioctl(self.listener, SECCOMP_IOCTL_NOTIF_RECV, request)
            identity, pid, _, number, _, _, *arguments = SECCOMP_NOTIFICATION.unpack(request)
            try:
                self._change(pid, number, arguments)
                error = 0
            except OSError as refused:
                error = refused.errno or errno.EPERM
            fcntl.ioctl(self.listener, SECCOMP_IOCTL_NOTIF_SEND, SECCOMP_RESPONSE.pack(identity, 0, -error, 0))
        return True

    def _change(self, pid: int, number: int, arguments: list[int]) -> None:
        try:
            path, mode = _asked(pid, number, arguments)
        except PermissionError:
            # its memory is closed to every process of this user, to ours as well: its file keeps the mode it has
            return
        below = os.path.relpath(path, self._home)
        parts = path_parts(below) if below != "." else []
        # no link is followed, so whatever the process does meanwhile, the file lies in its folder
        place = os.open(self._home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parts:
            try:
                inner = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            finally:
                os.close(place)
            place = inner
        try:
            os.chmod(f"/proc/self/fd/{place}", mode & PERMISSION_BITS)
        finally:
            os.close(place)


def _asked(pid: int, number: int, arguments: list[int]) -> tuple[str, int]:
    """The file that a process wants to change, and the mode that it wants."""
    if number == kernel.syscall_number("fchmod"):
        return os.readlink(f"/proc/{pid}/fd/{arguments[0]}"), arguments[1]
    # an old call has no folder that the name is seen from
    folder, name, mode = (
        arguments[:3] if number != kernel.syscall_number("chmod") else (kernel.AT_FDCWD, *arguments[:2])
    )
    signed = struct.unpack("i", struct.pack("I", folder & 0xFFFF_FFFF))[0]
    from_folder = f"/proc/{pid}/cwd" if signed == kernel.AT_FDCWD else f"/proc/{pid}/fd/{signed}"
    return os.path.join(os.readlink(from_folder), os.fsdecode(_text_at(pid, name))), mode


def ask_for_modes(line: socket.socket) -> None:
    """From now on every change of a mode waits until the other side of a line has granted it."""
    program = kernel.filter_prologue()
    for place, name in enumerate(MODE_SYSCALLS):
        program.append((kernel.BPF_JUMP_EQUAL, len(MODE_SYSCALLS) - place, 0, kernel.syscall_number(name)))
    program += [
        (kernel.BPF_RETURN, 0, 0, kernel.SECCOMP_RET_ALLOW),
        (kernel.BPF_RETURN, 0, 0, kernel.SECCOMP_RET_USER_NOTIF),
    ]
    listener = kernel.install_filter(kernel.pack_filter(program), listener=True)
    socket.send_fds(line, [b"-"], [listener])
    os.close(listener)


def _text_at(pid: int, address: int) -> bytes:
    """The text in the memory of a process that begins at an address."""
    text = b""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        while len(text) < MAX_PATH_BYTES:
            start = address + len(text)
            if start >= 1 << 63:  # no process has memory there, and no file is so long
                raise OSError(errno.EFAULT, "not an address")
            text += os.pread(memory.fileno(), PAGE_BYTES - start % PAGE_BYTES, start)
            if b"\0" in text:
                return text.partition(b"\0")[0]
    raise OSError(errno.ENAMETOOLONG, "the path is too long")
