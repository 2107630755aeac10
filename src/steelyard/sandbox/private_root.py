"""A file system for a sandbox, with the system, the files that it may read, and an empty home.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import contextlib
import os

from steelyard.sandbox import kernel
from steelyard.sandbox.folders import MAX_SANDBOX_FILES, SANDBOX_TMPFS_SIZE
from steelyard.sandbox.streams import STREAM_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SYSTEM_PATHS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    # Debian's R looks for these through links in /usr
    *(f"/etc/R/{name}" for name in ("Makeconf", "Renviron", "ldpaths", "repositories")),
)
"""What programs need to start; none of it is secret."""
DEVICE_PATHS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SHARED_MEMORY_FOLDER, SHARED_MEMORY_SIZE = "/dev/shm", "64m"  # noqa: S108  a private one in each sandbox
"""The folder of semaphores and shared memory, and its size."""


AGENT_ETC_FOLDER, AGENT_ETC_NAMES = ".etc", ("group", "hosts", "nsswitch.conf", "passwd")
"""Files that programs look for in /etc: those of an agent are its own, in this folder of its home."""


def enter_private_root(
    readable: Sequence[str],
    home: str,
    streams: str,
    uid: int | None,
    writable: Sequence[str] = (),
    *,
    agent: bool = False,
    descriptor_paths: bool = False,
) -> None:
    """A root of our own that holds the system, what is readable or writable, and an empty home; nothing else is there."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    # a folder that exists on every system and whose content is not needed inside
    root = "/proc"
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")
    for path in SYSTEM_PATHS:
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
        elif os.path.exists(path):
            bind_mount(path, root + path)
            kernel.make_read_only(root + path)
    for path in paths_to_bind(readable):
        bind_mount(path, root + path)
        kernel.make_read_only(root + path)
    for path in sorted(writable):
        bind_mount(path, root + path)
        kernel.make_harmless(root + path)
    for device in DEVICE_PATHS:
        bind_mount(device, root + device)
    owner = "" if uid is None else f",uid={uid},gid={uid}"
    for folder, options in (
        (home, f"size={SANDBOX_TMPFS_SIZE},mode=700{owner}"),
        (SHARED_MEMORY_FOLDER, f"size={SHARED_MEMORY_SIZE},mode=700{owner}"),
        (streams, f"size={SANDBOX_TMPFS_SIZE},mode=755"),
    ):
        os.makedirs(root + folder)
        flags = kernel.MS_NOSUID | kernel.MS_NODEV
        kernel.mount("tmpfs", root + folder, "tmpfs", flags, f"nr_inodes={MAX_SANDBOX_FILES},{options}")
    for name in STREAM_NAMES:
        os.symlink(f"{streams}/{name}", f"{root}/dev/{name}")
    if not os.path.exists(root + "/tmp"):  # noqa: S108  its own, not ours; something readable may lie there
        os.symlink(home, root + "/tmp")  # noqa: S108
    if descriptor_paths:
        _add_descriptor_paths(root)
    for name in AGENT_ETC_NAMES if agent else ():
        with contextlib.suppress(OSError):  # a folder that was declared may have it
            os.makedirs(f"{root}/etc", exist_ok=True)
            os.symlink(f"{home}/{AGENT_ETC_FOLDER}/{name}", f"{root}/etc/{name}")
    kernel.change_root(root)
    flags = kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("none", "/", None, flags)


def _add_descriptor_paths(root: str) -> None:
    """`/dev/fd`, which shells need for `<(...)`: a list of processes in which a program sees those that it has started.

    Others are hidden by the kernel because they may not be traced, and nothing in the list can be written. If an
    ordinary user may not mount it, it is missing.
    """
    os.mkdir(root + "/proc")
    flags = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    with contextlib.suppress(OSError):
        kernel.mount("proc", root + "/proc", "proc", flags, "hidepid=4,subset=pid")
        os.symlink("/proc/self/fd", root + "/dev/fd")


def paths_to_bind(readable: Sequence[str]) -> list[str]:
    """The readable files and folders, and what links among them lead to, that no folder shown before them contains."""
    shown = list(SYSTEM_PATHS)
    found = []
    # a folder comes before what is in it
    for path in sorted({place for each in readable for place in (os.path.normpath(each), os.path.realpath(each))}):
        if os.path.exists(path) and not any(path == above or path.startswith(f"{above}/") for above in shown):
            shown.append(path)
            found.append(path)
    return found


def bind_mount(source: str, target: str) -> None:
    """The same file or folder a second time, in another place."""
    os.makedirs(target if os.path.isdir(source) else os.path.dirname(target), exist_ok=True)
    if not os.path.isdir(source):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)
