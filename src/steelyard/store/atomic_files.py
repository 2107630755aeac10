"""Files that take their places whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from steelyard.errors import DiskFullError, InputError
from steelyard.text import printable


class AtomicFiles:
    """Files that are written out of sight first and then take their places, each whole or not at all."""

    def __init__(self) -> None:
        self._fresh: dict[Path, Path] = {}

    def write(self, path: Path, lines: Iterable[str]) -> str:
        """Write what shall stand at `path`, and return its digest; until `finish` nothing is seen of it."""
        fresh = path.with_name(f".steelyard-{secrets.token_hex(6)}.new")
        digest = hashlib.sha256()
        self._fresh[path] = fresh
        # created, never followed: a link that somebody put there must not lead us elsewhere
        with fresh.open("xb") as file:
            for line in lines:
                content = line.encode()
                digest.update(content)
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest()

    def finish(self) -> None:
        """Put every file in its place; where a link stands, the link is replaced and not what it leads to."""
        for path in list(self._fresh):
            self._fresh[path].replace(path)
            del self._fresh[path]

    def __enter__(self) -> AtomicFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fresh in self._fresh.values():
            with suppress(OSError):
                fresh.unlink()


@contextmanager
def explain_write_errors(folder: Path) -> Iterator[None]:
    """Say in one sentence why a folder cannot be written."""
    try:
        yield
    except OSError as error:
        where = printable(str(folder))
        if isinstance(error, FileExistsError):
            raise InputError(f"{where}: not a folder; choose another place") from None
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFullError(f"{where}: no room left ({error.strerror}); make room and try again") from None
        raise InputError(f"{where}: cannot be written: {error.strerror}") from None
