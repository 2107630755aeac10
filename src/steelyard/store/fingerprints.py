"""Whether a copy or an index of a run is still current."""

from __future__ import annotations

import functools
import hashlib
from importlib.metadata import version

import msgspec

from steelyard.errors import InputError
from steelyard.store.journal import StoredRun
from steelyard.store.untrusted import ATTEMPT_INDEX_FILE, HEADLINE_FILE, RunFolderSnapshot


def run_fingerprint(stored: StoredRun, shape: int) -> str:
    """What a copy or an index of a run is made of: as long as this stays the same, so would they.

    `shape` goes up when what is written changes.
    """
    try:
        described = content_digest(stored.content(stored.folder / "run.json"))
        files = [(path.name, path.stat()) for path in (stored.folder / "cases.jsonl", *stored.journals())]
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    states = [(name, state.st_size, state.st_mtime_ns) for name, state in files]
    return msgspec.json.encode([shape, steelyard_version(), described, states]).decode()


def run_size_fingerprint(described: bytes, snapshot: RunFolderSnapshot, shape: int) -> str:
    """The same as far as sizes tell, which neither copying the folder nor another version of this tool changes.

    `described` is what run.json holds.
    """
    files = [
        (file.name, file.size)
        for file in snapshot.files
        if file.name not in (HEADLINE_FILE, ATTEMPT_INDEX_FILE, "run.json")
    ]
    return msgspec.json.encode([shape, content_digest(described), files, snapshot.links]).decode()


def content_digest(content: bytes) -> str:
    """Equal for equal files."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@functools.cache
def steelyard_version() -> str:
    """Who has opinions: another version may have others."""
    return version("steelyard")
