"""The files in messages of a run: each is stored once, by its digest, so that a run can continue without the originals."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from steelyard.records import Case, ContentPart, Message
from steelyard.store.files import explain_write_errors
from steelyard.store.stored_cases import changed_cases

FILES_FOLDER = "files"
DIGEST_PATTERN = re.compile(r"[0-9a-f]{32}")
"""The digest of a file, which is its name in the folder."""


def keep_files(folder: Path, cases: Iterable[Case]) -> None:
    """Store the files in the messages of cases, each once; an unreadable file is reported when it is sent."""
    parts = {part.digest: part.path for case in cases for part in _file_parts(case)}
    kept = folder / FILES_FOLDER
    for digest, path in parts.items():
        if DIGEST_PATTERN.fullmatch(digest) and not (kept / digest).exists():
            with explain_write_errors(kept):
                kept.mkdir(exist_ok=True)
            with suppress(OSError):
                fresh = kept / f".{digest}.new"
                shutil.copyfile(path, fresh)
                fresh.replace(kept / digest)


def with_kept_files(folder: Path, cases: Sequence[Case]) -> Sequence[Case]:
    """Cases whose messages have their files from the run's folder, where it has them; what is sent is held to the digest."""
    if not (folder / FILES_FOLDER).is_dir():
        return cases
    return changed_cases(cases, lambda case: replace(case, prompt=_located(folder, case.prompt)))


def _located(folder: Path, prompt: str | tuple[Message, ...]) -> str | tuple[Message, ...]:
    if isinstance(prompt, str):
        return prompt
    return tuple(
        message
        if isinstance(message.content, str)
        else replace(message, content=tuple(_kept(folder, part) for part in message.content))
        for message in prompt
    )


def _kept(folder: Path, part: ContentPart) -> ContentPart:
    kept = folder / FILES_FOLDER / part.digest
    is_kept = bool(part.path) and bool(DIGEST_PATTERN.fullmatch(part.digest)) and kept.is_file()
    # the type of a file follows from its name, which the copy does not have
    return replace(part, kept=str(kept)) if is_kept else part


def _file_parts(case: Case) -> Iterator[ContentPart]:
    for message in case.messages:
        for part in message.parts:
            if part.path and part.digest:
                yield part


def copy_kept_files(source: Path, target: Path) -> None:
    """Add the files of one run folder to another; links are not followed."""
    for path in sorted((source / FILES_FOLDER).glob("*")):
        kept = target / FILES_FOLDER / path.name
        if DIGEST_PATTERN.fullmatch(path.name) and path.is_file() and not path.is_symlink() and not kept.exists():
            with explain_write_errors(kept):
                kept.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, kept)
