"""The files that cases refer to: prompts, tests, workspaces, and checks of the user's own."""

from __future__ import annotations

import ast
import stat
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.errors import InputError, did_you_mean
from steelyard.providers.agent import workspaces
from steelyard.records import digest
from steelyard.text import printable, short_quote

MAX_COMPANION_FILE_BYTES = 10 << 20
"""Bytes of a file that a case refers to."""


@dataclass
class CompanionFiles:
    """Each of these files, read once."""

    _read: dict[Path, bytes] = field(default_factory=dict)
    _checks: dict[Path, tuple[set[str], str]] = field(default_factory=dict)
    _workspaces: dict[str, str] = field(default_factory=dict)

    def text(self, path: Path) -> str:
        """The text of a file, a prompt for example."""
        try:
            return self._bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{printable(str(path))} is not UTF-8 text; save it as UTF-8") from None

    def function(self, folder: Path, reference: str) -> tuple[str, str]:
        """A function `checks.py:score` with its absolute path, and a digest of its file."""
        name, _, function = reference.rpartition(":")
        if not name or not function.isidentifier():
            raise InputError(f'{short_quote(reference)} names no function; write "checks.py:score"')
        path = folder / name
        if path not in self._checks:
            source = self._bytes(path)
            self._checks[path] = _defined_names(source, path), digest(source)
        defined, source_digest = self._checks[path]
        if function not in defined:
            way_out = did_you_mean(function[:80], defined)
            raise InputError(f"{printable(str(path))} does not define {short_quote(function)} ({way_out})")
        return f"{path}:{function}", source_digest

    def workspace(self, folder: Path, name: str) -> tuple[str, str]:
        """A workspace with its absolute path and its full commit, and a digest of its files."""
        try:
            located = workspaces.resolve_workspace(name, folder)
        except (OSError, ValueError) as error:
            raise InputError(f"{short_quote(name)} cannot be read: {system_error_reason(error)}") from None
        if located not in self._workspaces:
            self._workspaces[located] = workspaces.workspace_digest(workspaces.workspace_files(located))
        return located, self._workspaces[located]

    def _bytes(self, path: Path) -> bytes:
        if path not in self._read:
            try:
                status = path.stat()
                if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_COMPANION_FILE_BYTES:
                    raise InputError(
                        f"{printable(str(path))} is not a regular file of at most {MAX_COMPANION_FILE_BYTES >> 20} MB"
                    )
                self._read[path] = path.read_bytes()
            except (OSError, ValueError) as error:
                raise InputError(f"{printable(str(path))} cannot be read: {system_error_reason(error)}") from None
        return self._read[path]


def _defined_names(source: bytes, path: Path) -> set[str]:
    """The names a Python file defines, found without running it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{printable(str(path))} is not Python: {printable(str(error))}") from None
    defined = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            defined |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return defined


def system_error_reason(error: Exception) -> str:
    """Why the system refused."""
    return getattr(error, "strerror", None) or str(error)
