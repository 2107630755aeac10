"""Locks that keep two processes from writing the same file or folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from steelyard.errors import StoreError

try:
    import fcntl

    HAS_FILE_LOCKS = True
except ImportError:  # Windows, where runs are read but never written
    HAS_FILE_LOCKS = False

RUN_LOCKED_MESSAGE = "another process is writing this run; wait for it, or stop it first"
LOCK_RETRY_SECONDS = (0.01, 0.02, 0.04)
"""Seconds to wait for somebody who holds the lock only to see whether it is free."""


def lock_folder(folder: Path, why: str = RUN_LOCKED_MESSAGE, *, shared: bool = False) -> int:
    """A lock on the folder itself, which ends with the process however it ends and leaves nothing behind."""
    if not HAS_FILE_LOCKS:
        raise StoreError(f"{folder}: this system has no file locks, so runs can only be read here; use Linux or macOS")
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}") from None
    for wait in (*LOCK_RETRY_SECONDS, None):
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            if wait is not None:
                time.sleep(wait)
                continue
            os.close(lock)
            raise StoreError(f"{folder}: {why}") from None
        break
    return lock


@contextmanager
def read_lock(folder: Path) -> Iterator[None]:
    """Keep writers out of a run; raises a StoreError while there is one."""
    lock = lock_folder(folder, shared=True)
    try:
        yield
    finally:
        os.close(lock)


def lock_file(file: IO[bytes]) -> None:
    """Wait until no other process writes a file. Some network disks have no locks; then there is no wait."""
    if HAS_FILE_LOCKS:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)


def is_locked(folder: int) -> bool:
    """Whether a process writes the run in a folder, which is given by its descriptor."""
    if not HAS_FILE_LOCKS:
        return False
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    # a process that is forked meanwhile would otherwise keep the lock
    fcntl.flock(folder, fcntl.LOCK_UN)
    return False
