"""The content of the files that belong to code that a file names."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MAX_PACKAGE_FILES = 10_000
"""The maximum number of files of a package or a virtual environment that are examined."""
MAX_HASHED_BYTES = 1 << 30
"""Of a larger file, such as a model's weights, its inode and the time of its last change count instead of its content."""
IMPORTABLE_SUFFIXES = (".py", ".pyc", ".so", ".pyd")


def file_content(path: Path) -> str:
    """A digest of a file; empty for anything but a regular file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_size > MAX_HASHED_BYTES:
            return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_ctime_ns}"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""


def importable_files(folder: Path) -> list[Path]:
    """What Python could import from a package: sources, compiled modules and libraries, also behind links."""
    seen: set[tuple[int, int]] = set()

    def found() -> Iterator[Path]:
        for root, folders, names in os.walk(folder, followlinks=True):
            status = Path(root).stat()
            is_new = (status.st_dev, status.st_ino) not in seen
            seen.add((status.st_dev, status.st_ino))
            # compiled files of sources are not read
            folders[:] = sorted(name for name in folders if name != "__pycache__") if is_new else []
            if is_new:
                yield from (Path(root, name) for name in names if name.endswith(IMPORTABLE_SUFFIXES))

    return sorted(islice(found(), MAX_PACKAGE_FILES))
