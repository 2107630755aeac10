"""The folders that an answer may write to: found without following its links, measured, and emptied.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import contextlib
import os
import stat

from steelyard.sandbox import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SANDBOX_TMPFS_SIZE, MAX_SANDBOX_FILES = "512m", 20_000
"""The maximum size of a workspace, in bytes and in files."""
MAX_FOLDER_DEPTH = 400
"""The maximum depth of nested folders where we must measure them to limit them."""


def path_parts(name: str) -> list[str]:
    """The folders and the file in a name that stays below its folder."""
    found = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in found):
        raise OSError(f"{name!r} is not a path below the folder")
    return found


def is_folder(name: str, place: int) -> bool:
    """Whether there is a folder of this name, and not a link to one."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def put_aside(name: str, place: int) -> None:
    """Remove anything that an answer put in the place of one of our files."""
    with contextlib.suppress(FileNotFoundError):
        os.rename(name, f".aside-{os.urandom(8).hex()}", src_dir_fd=place, dst_dir_fd=place)


def enter(home: str) -> None:
    """Go to a folder, even if an answer has locked it."""
    os.chmod(home, 0o700)
    os.chdir(home)


def wipe(home: str) -> None:
    """Empty a folder, even with deep or locked content, and clear its attributes; it is the current folder afterwards."""
    enter(home)
    for attribute in os.listxattr(home) if kernel.RUNS_ON_LINUX else ():
        os.removexattr(home, attribute)
    waiting = [_unlink_files()]
    while waiting:
        if waiting[-1]:
            # step by step: the whole path may be longer than any path can be
            os.chmod(waiting[-1][-1], 0o700)
            below = os.open(waiting[-1][-1], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            os.fchdir(below)
            os.close(below)
            waiting.append(_unlink_files())
        else:
            waiting.pop()
            if waiting:
                os.chdir("..")
                os.rmdir(waiting[-1].pop())


def _unlink_files() -> list[str]:
    """The folders in the current one, after everything else in it was removed."""
    folders = []
    for entry in list(os.scandir(".")):
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        else:
            os.unlink(entry.name)
    return folders


def has_too_many_files(folder: str) -> bool:
    """Whether a file system of a sandbox's own, whose size is limited anyway, holds more files than a workspace may."""
    about = os.statvfs(folder)
    return about.f_files - about.f_ffree > MAX_SANDBOX_FILES


def is_over_disk_limit(home: str, unnamed: int = 0) -> bool:
    """Whether there is more in a folder than fits into a workspace, given the bytes in files that have no name."""
    room, files = (int(SANDBOX_TMPFS_SIZE[:-1]) << 20) - unnamed, MAX_SANDBOX_FILES
    with contextlib.ExitStack() as held:
        # for each folder on the way down: the folder, and those in it that have yet to be looked into
        way: list[tuple[contextlib.ExitStack, int, list[str]]] = []
        name, above = home, None
        while True:
            with contextlib.suppress(OSError):  # removed meanwhile
                level = held.enter_context(contextlib.ExitStack())
                folder = level.enter_context(_opened_folder(name, above))
                below = []
                for entry in os.listdir(folder):
                    with contextlib.suppress(OSError):
                        about = os.stat(entry, dir_fd=folder, follow_symlinks=False)
                        files -= 1
                        room -= about.st_blocks * 512
                        if stat.S_ISDIR(about.st_mode):
                            below.append(entry)
                way.append((level, folder, below))
            if files < 0 or room < 0 or len(way) > MAX_FOLDER_DEPTH:
                return True
            while way and not way[-1][2]:
                way.pop()[0].close()
            if not way:
                return False
            _, above, below = way[-1]
            name = below.pop()


@contextlib.contextmanager
def _opened_folder(name: str, above: int | None) -> Iterator[int]:
    """An open folder; if its permissions exclude us, they are changed within the block."""
    found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    # by a descriptor: whatever an answer puts in its place meanwhile, only this folder is changed
    path, mode = f"/proc/self/fd/{found}", stat.S_IMODE(os.fstat(found).st_mode)
    locked = mode & 0o500 != 0o500 and os.geteuid() != 0
    try:
        if locked:
            os.chmod(path, mode | 0o500)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(found)
    try:
        yield folder
    finally:
        if locked:
            os.fchmod(folder, mode)
        os.close(folder)
