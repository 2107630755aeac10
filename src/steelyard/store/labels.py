"""The labels of a run: a file for each person, which only grows, so that no lock is needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from steelyard.errors import DiskFullError, InputError, Problem
from steelyard.records import Label
from steelyard.store.files import TolerantDecoder, explain_write_errors
from steelyard.store.journal import DECODE_ERRORS, StoredRun
from steelyard.store.run_folders import UntrustedRun

MAX_LABEL_FILES = 200
MAX_LABEL_FILE_BYTES = 64 << 20
MAX_LABEL_LINE_BYTES = 64 << 10

_label: TolerantDecoder[Label] = TolerantDecoder(Label)


def append_labels(folder: Path, labels: Iterable[Label]) -> None:
    """Write the labels of one or more people; when this returns they are on the disk."""
    by_person: dict[str, list[Label]] = {}
    for label in labels:
        by_person.setdefault(label.by, []).append(label)
    for person, theirs in by_person.items():
        path = folder / f"labels-{person}.jsonl"
        content = b"".join(msgspec.json.encode(label) + b"\n" for label in theirs)
        with explain_write_errors(path):
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            try:
                size = os.fstat(file).st_size
                if size and os.pread(file, 1, size - 1) != b"\n":
                    # the writer of this line was killed in the middle of it
                    content = b"\n" + content
                # in one piece, because the same person may have two windows open
                written = os.write(file, content)
                if written < len(content):
                    raise DiskFullError(f"{path}: no space left; free some space and label again")
                os.fsync(file)
            finally:
                os.close(file)


def read_labels(folder: Path, damaged: Callable[[Problem], None]) -> list[Label]:
    """All labels of a run, each person's in the order they were given; unreadable lines are reported and left out."""
    found: list[Label] = []
    # anybody may have put a file there, so links are not followed and sizes are bounded
    stored: StoredRun = UntrustedRun(folder)
    paths = sorted(folder.glob("labels-*.jsonl"))
    if len(paths) > MAX_LABEL_FILES:
        raise InputError(f"{folder}: {len(paths)} files of labels, of which at most {MAX_LABEL_FILES} are read")
    for path in paths:
        try:
            with stored.open(path) as file:
                if os.fstat(file.fileno()).st_size > MAX_LABEL_FILE_BYTES:
                    raise InputError(f"{path}: larger than {MAX_LABEL_FILE_BYTES >> 20} MB, which is too large to read")
                lines = file.read(MAX_LABEL_FILE_BYTES).splitlines(keepends=True)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        for number, line in enumerate(lines, 1):
            # a line without an end is still being written, or never will be; an empty one ended a line that its writer ended too
            if not line.endswith(b"\n") or not line.strip():
                continue
            try:
                if len(line) > MAX_LABEL_LINE_BYTES:
                    damaged(Problem(str(path), number, f"longer than {MAX_LABEL_LINE_BYTES >> 10} KB, so no label"))
                else:
                    found.append(_label.decode(line))
            except DECODE_ERRORS as error:
                damaged(Problem(str(path), number, f"not a label: {error}"))
    return found
