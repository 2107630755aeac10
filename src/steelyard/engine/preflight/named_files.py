"""The files whose content belongs to code that a file names: those of a package, and those that a command line means."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

MAX_PACKAGE_FILES = 10_000
"""The maximum number of files of a package or a virtual environment that are examined."""
MAX_HASHED_BYTES = 1 << 30
"""Of a larger file, such as a model's weights, its inode and the time of its last change count instead of its content."""
MAX_COMMAND_PIECES = 200
"""Pieces of a command line that may name files."""
IMPORTABLE_SUFFIXES = (".py", ".pyc", ".so", ".pyd")
SCRIPT_SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".pl", ".pm", ".rb", ".sh")
"""What interpreters add to the name of a script or a module."""
FOLDER_SCRIPTS = ("__init__.py", "index.js", "index.mjs", "package.json", "sitecustomize.py", "usercustomize.py")
"""What an interpreter runs of a folder that a command line names."""
PROJECT_FILES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "npm": ("package.json",),
    "npx": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "just": ("justfile", "Justfile", ".justfile"),
    "rake": ("Rakefile", "rakefile"),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini", "pyproject.toml"),
    "invoke": ("tasks.py",),
}
"""The files in which programs look up what to do."""

_PIECE_SEPARATOR = re.compile(r"[\s;&|()<>{}'\"`$=,:@]+")
_GLUED_OPTION = re.compile(r"--?[A-Za-z]")
_DOTTED_NAME = re.compile(r"\w+(?:\.\w+)+")


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


def implied_files(words: Sequence[str], folder: Path, known: Sequence[Path]) -> list[Path]:
    """The files that a command line means without naming them by their paths: modules, scripts in quoted commands, project files.

    >>> implied_files(["python3", "-m", "no_such.module"], Path(), [])
    []
    """
    pieces: dict[str, None] = {}
    for word in words:
        for part in (word, *_PIECE_SEPARATOR.split(word)):
            pieces |= {part: None, _GLUED_OPTION.sub("", part, count=1): None}
    found: dict[Path, None] = {}
    places = [folder]
    for piece in islice(filter(None, pieces), MAX_COMMAND_PIECES):
        path = folder / piece
        candidates = [path, *(path / name for name in FOLDER_SCRIPTS), path / "__main__.py"]
        candidates += [folder / f"{piece}{suffix}" for suffix in SCRIPT_SUFFIXES]
        if _DOTTED_NAME.fullmatch(piece):
            module = folder / piece.replace(".", "/")
            candidates += [module.with_suffix(".py"), module / "__main__.py"]
            candidates += [above / "__init__.py" for above in (module, *module.parents[: piece.count(".")])]
        if _is_folder(path):
            places.append(path)
        found |= dict.fromkeys(filter(_is_regular_file, candidates))
    for word in words:
        names = PROJECT_FILES.get(os.path.basename(word), ())  # noqa: PTH119  a word, which may be no path
        found |= dict.fromkeys(filter(_is_regular_file, (place / name for place in places for name in names)))
    return sorted(found.keys() - set(known))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_regular_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
