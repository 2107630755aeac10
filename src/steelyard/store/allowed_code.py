"""The code that this user agreed to run, by the digest of its content."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from steelyard.secret_texts import Environment
from steelyard.text import printable

_ALLOWED_LINE_PATTERN = re.compile(rb"^([0-9a-f]{64})(?: |$)", re.MULTILINE)

_allowed_here: set[str] = set()
"""What the user allowed in this process: it holds although the file could not be written."""


def allowed_code_file(environment: Mapping[str, str] = Environment()) -> Path | None:
    """The file of the digests; None if this user has no folder for it."""
    state = environment.get("XDG_STATE_HOME", "")
    if not Path(state).is_absolute():
        # the specification says that a relative path is invalid
        try:
            state = str(Path.home() / ".local" / "state")
        except RuntimeError:
            return None
    return Path(state, "steelyard", "allowed") if Path(state).is_absolute() else None


def allowed_code() -> frozenset[str]:
    """The digests that this user agreed to; a file that cannot be read, or that others can write, allows nothing."""
    path = allowed_code_file()
    try:
        content = path.read_bytes() if path is not None and path.is_file() and not _others_who_write(path) else b""
    except OSError:
        content = b""
    return frozenset({*(digest.decode() for digest in _ALLOWED_LINE_PATTERN.findall(content)), *_allowed_here})


def _others_who_write(path: Path) -> str:
    """Who else could add a digest to the file, or put another one in its place; empty if nobody can."""
    own = {0, os.geteuid()}
    for place in (path, path.parent, path.parent.parent):
        about = place.stat()
        if about.st_uid not in own:
            return f"{printable(str(place))} belongs to another user; set XDG_STATE_HOME to a folder of yours"
        # a home folder may belong to a group of one user, and in a sticky folder nobody replaces another's files
        is_own_place = place != path.parent.parent
        is_open = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH if is_own_place else stat.S_IWOTH)
        if is_open and (is_own_place or not about.st_mode & stat.S_ISVTX):
            return f"{printable(str(place))} can be written by other users; type: chmod go-w {printable(str(place))}"
    return ""


def allow_code(entries: Iterable[tuple[str, str]]) -> str:
    """Store the digests, each with a text for people who read the file; returns why they could not be stored, if so."""
    lines = {digest: f"{digest} {printable(text)}\n" for digest, text in entries}
    problem = _append("".join(lines.values())) if lines else ""
    if problem:
        _allowed_here.update(lines)
    return problem


@contextmanager
def code_allowed_here(digests: Iterable[str]) -> Iterator[None]:
    """Allow code in this process and for the time being only."""
    fresh = {*digests} - _allowed_here
    _allowed_here.update(fresh)
    try:
        yield
    finally:
        _allowed_here.difference_update(fresh)


def _append(text: str) -> str:
    path = allowed_code_file()
    if path is None:
        return "this user has no home folder; set XDG_STATE_HOME"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # one append for all, so that several processes can write at the same time; a line that a full disk cut off gets an end first
            content = f"\n{text}".encode("utf-8", "replace")
            while content:
                content = content[os.write(file, content) :]
        finally:
            os.close(file)
        return _others_who_write(path)
    except OSError as error:
        return f"{printable(str(path))}: {error.strerror}"
