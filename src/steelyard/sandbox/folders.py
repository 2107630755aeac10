"""The folders that an answer may write to: found without following its links, measured, and emptied.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module.
"""

from __future__ import annotations

import contextlib
import os
import stat

from steelyard.sandbox import kernel

SANDBOX_TMPFS_SIZE, MAX_SANDBOX_FILES = "512m", 20_000
"""How much fits into a workspace, in bytes and in files."""


def path_parts(name: str) -> list[str]:
    """The folders and the file in a name that leads nowhere else."""
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
    """Make room for a file of ours, whatever an answer has put there."""
    with contextlib.suppress(FileNotFoundError):
        os.rename(name, f".aside-{os.urandom(8).hex()}", src_dir_fd=place, dst_dir_fd=place)


def wipe(home: str) -> None:
    """Empty a folder, however deep and locked what is in it, and forget its attributes; we stand in it afterwards."""
    os.chmod(home, 0o700)
    for attribute in os.listxattr(home) if kernel.RUNS_ON_LINUX else ():
        os.removexattr(home, attribute)
    os.chdir(home)
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
    """The folders in the one we stand in, after everything else in it was removed."""
    folders = []
    for entry in list(os.scandir(".")):
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        else:
            os.unlink(entry.name)
    return folders


def is_over_disk_limit(home: str) -> bool:
    """Whether there is more in a folder than fits into a workspace."""
    room, files = int(SANDBOX_TMPFS_SIZE[:-1]) << 20, MAX_SANDBOX_FILES
    waiting = [home]
    while waiting:
        # what cannot be looked into now will be looked into at the end, when it is wiped
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files -= 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    room -= entry.stat(follow_symlinks=False).st_blocks * 512
                if files < 0 or room < 0:
                    return True
    return False
