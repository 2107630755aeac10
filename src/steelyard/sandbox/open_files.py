"""Files without a name that processes hold open: they take disk space that no folder shows.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import contextlib
import os
import stat

from steelyard.sandbox import kernel


def can_see_open_files(uid: int | None, *, dumpable: bool) -> bool:
    """Whether we may look at the open files of a child that runs as this user."""
    ready_reader, ready_writer = os.pipe()
    done_reader, done_writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(done_writer)
            if uid is not None:
                os.setresuid(uid, uid, uid)
            kernel.prctl(kernel.PR_SET_DUMPABLE, int(dumpable))
            os.write(ready_writer, b"-")
            os.read(done_reader, 1)
        os._exit(0)
    os.close(ready_writer)
    os.close(done_reader)
    os.read(ready_reader, 1)
    try:
        os.stat(f"/proc/{child}/exe")
        _mapped_unnamed(child, 0)
        return bool(os.listdir(f"/proc/{child}/fd"))
    except OSError:
        return False
    finally:
        os.close(ready_reader)
        os.close(done_writer)
        os.waitpid(child, 0)


def unnamed_bytes(folder: str, largest: int) -> int:
    """Bytes on the disk of a folder in files without a name that our children and theirs hold.

    A file that is only mapped counts as much as a file can hold, and so does each file that a process may have hidden.
    """
    device = os.stat(folder).st_dev
    open_sizes: dict[int, int] = {}
    mapped: set[int] = set()
    hidden = 0
    for pid in children_and_theirs():
        try:
            for name in (*(f"fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")), "exe"):
                with contextlib.suppress(OSError):  # closed meanwhile
                    about = os.stat(f"/proc/{pid}/{name}")
                    if about.st_dev == device and not about.st_nlink and stat.S_ISREG(about.st_mode):
                        open_sizes[about.st_ino] = about.st_blocks * 512
            mapped |= _mapped_unnamed(pid, device)
        except PermissionError:
            hidden += _is_contained(pid)
        except OSError:
            continue  # it has just ended
    return sum(open_sizes.values()) + (len(mapped - open_sizes.keys()) + hidden * HIDDEN_FILES) * largest


HIDDEN_FILES = 256
"""How many files a process can hold that does not let us look: as many as it may have open."""


def _mapped_unnamed(pid: int, device: int) -> set[int]:
    """The inodes of files without a name that a process has mapped."""
    found = set()
    with open(f"/proc/{pid}/maps", "rb") as maps:
        for line in maps:
            if line.endswith(b" (deleted)\n"):
                _, _, _, place, inode, _ = line.split(maxsplit=5)
                major, minor = (int(part, 16) for part in place.split(b":"))
                if os.makedev(major, minor) == device:
                    found.add(int(inode))
    return found


def _is_contained(pid: int) -> bool:
    """Whether a process runs code of an answer: it lives, and the filter is installed."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        text = status.read()
        return b"\nVmSize:" in text and b"\nSeccomp:\t2\n" in text
    return False


def children_and_theirs() -> list[int]:
    """The processes below us; those whose parent has ended are our own children."""
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                    below = [int(child) for child in file.read().split()]
                    found += below
                    waiting += below
    return found
