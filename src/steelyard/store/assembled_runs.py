"""Runs that are put together from facts that exist already: whole, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from steelyard.errors import DiskFullError, InputError, Problem, StoreError
from steelyard.records import Case, Fact, RunInfo
from steelyard.store.files import DISK_FULL_ERRNOS, open_to_append
from steelyard.store.journal import (
    Journal,
    JournalFact,
    JournalReader,
    StoredRun,
    write_atomically,
    write_error,
)
from steelyard.store.locks import lock_folder

_encoder = msgspec.json.Encoder()


def replace_run(folder: Path, info: RunInfo, cases: Iterable[Case], facts: Iterable[Fact]) -> None:
    """Make a folder hold this run with these facts, and no other; a kill on the way leaves the facts of one of the two."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _create_error(folder, error) from None
    with Journal(folder) as journal:
        journal.ask(cases)
        journal.describe(info)
        write_atomically(folder / "attempts.jsonl", b"".join(_encoder.encode(fact) + b"\n" for fact in facts))


@contextmanager
def create_run_atomically(folder: Path) -> Iterator[Journal]:
    """A run that is assembled elsewhere, and then moved to `folder` as a whole; after an error nothing is there."""
    try:
        place = _free_folder(folder)
        aside = place.with_name(f".{place.name}.arising")
        aside.parent.mkdir(parents=True, exist_ok=True)
        if aside.is_dir() and not aside.is_symlink():
            # left by a process that was killed; one that is still at work holds the lock
            _remove_abandoned_run(aside)
            place = _free_folder(folder)
    except OSError as error:
        raise _create_error(folder, error) from None
    is_ours = True
    try:
        try:
            aside.mkdir()
        except OSError:
            is_ours = False
            raise
        with Journal(aside) as journal:
            yield journal
        aside.rename(place)
    except DiskFullError:
        raise DiskFullError(
            f"{folder}: no space left; nothing was written there; free some space and try again"
        ) from None
    except OSError as error:
        raise _create_error(folder, error) from None
    finally:
        # when it has its place there is nothing aside any more
        if is_ours:
            shutil.rmtree(aside, ignore_errors=True)


def _remove_abandoned_run(aside: Path) -> None:
    """Remove a run that a killed process was putting together; it may also be finished just now, and another one begun."""
    while aside.is_dir():
        try:
            lock = lock_folder(aside, "another process is putting a run together there; wait for it, or stop it first")
        except StoreError:
            if aside.is_dir():
                raise
            return
        try:
            # the folder that we locked may have been moved to its place, and another one may be here
            if os.path.samestat(os.fstat(lock), aside.stat()):
                shutil.rmtree(aside)
        except FileNotFoundError:
            return
        finally:
            os.close(lock)


def _free_folder(folder: Path) -> Path:
    """A place where a run can be put."""
    place = Path(os.path.abspath(folder))  # noqa: PTH100  a link at the end must stay one
    if (place / "run.json").exists():
        raise InputError(f"{folder}: already contains a run; name another folder with --output")
    if place.is_symlink() or (place.exists() and not (place.is_dir() and not any(place.iterdir()))):
        raise InputError(f"{folder}: already exists, and is not an empty folder; name another with --output")
    return place


def _create_error(folder: Path, error: OSError) -> StoreError:
    if error.errno in DISK_FULL_ERRNOS:
        return DiskFullError(
            f"{folder}: no space left ({error.strerror}); nothing was written there; free some space and try again"
        )
    return StoreError(f"{folder}: cannot be written: {error.strerror}; nothing was written there")


def append_facts(
    stored: StoredRun,
    journal: Path,
    check: Callable[[JournalFact, Path, int], None],
    damaged: Callable[[Problem], None],
) -> None:
    """Add the facts of a run to a journal, line by line as they are written.

    `check` is called with each fact, its file and its line, and raises where the fact must not be taken. `damaged` is called
    for lines that cannot be read; they stay behind.
    """
    try:
        with os.fdopen(open_to_append(journal), "ab") as file:
            for path in stored.journals():
                tail = JournalReader(stored, path, damaged)
                for _, line, fact in tail.lines():
                    check(fact, path, tail.line)
                    file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise write_error(journal.parent, error) from None
