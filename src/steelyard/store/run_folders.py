"""Run folders: where the one is that a user means, what anybody may have put there, and whether a copy of one is current."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import stat
from pathlib import Path, PurePath
from typing import BinaryIO, NamedTuple

import msgspec

from steelyard.errors import InputError
from steelyard.records import RunInfo
from steelyard.store.journal import DECODE_ERRORS, MAX_JOURNAL_LINE_BYTES, StoredRun, is_journal
from steelyard.store.locks import is_locked
from steelyard.text import printable

DEFAULT_RUNS_FOLDER = Path("steelyard-runs")
"""Where runs are kept unless the user says otherwise."""


def runs(root: Path = DEFAULT_RUNS_FOLDER) -> list[StoredRun]:
    """The runs below a folder, oldest first; folders that hold no readable run are passed over."""
    return [stored for stored, _ in _described_runs(root)]


def _described_runs(root: Path) -> list[tuple[StoredRun, RunInfo]]:
    """The same with their descriptions."""
    found = []
    for folder in run_folders(root):
        stored = StoredRun(folder)
        try:
            found.append((stored, stored.info))
        except InputError:
            continue
    return sorted(found, key=lambda entry: (entry[1].started_at, entry[0].folder.name))


def run_folders(root: Path) -> list[Path]:
    """The folders of runs below a folder, by name."""
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    except OSError:
        return []
    folders = (root / name for name in names)
    return [folder for folder in folders if os.access(folder / "run.json", os.F_OK)]


def is_hidden(folder: Path) -> bool:
    """Whether a folder is not for people: a run may be under construction in it."""
    return folder.name.startswith(".")


PAIR_TAG = "pair"
"""Marks the cases of a run in which judges compare two models' answers; the tags behind it are the two sides, the order and the number."""


class _CaseTags(msgspec.Struct):
    tags: tuple[str, ...] = ()


def are_pair_tags(tags: tuple[str, ...]) -> bool:
    """Whether a case asks a judge to compare two answers."""
    return tags[:1] == (PAIR_TAG,) and len(tags) == 5


def _is_judges_comparison(folder: Path) -> bool:
    """Whether the first case of a run is a question to a judge of pairs; False where that cannot be read."""
    try:
        with UntrustedRun(folder).open(folder / "cases.jsonl") as file:
            first = file.readline(MAX_JOURNAL_LINE_BYTES)
        return are_pair_tags(msgspec.json.decode(first, type=_CaseTags).tags)
    except (OSError, *DECODE_ERRORS):
        return False


def find_run(name: str, root: Path = DEFAULT_RUNS_FOLDER, *, with_comparisons: bool = False) -> Path:
    """The run folder a user means: a path, a name below the runs' folder, or `latest`.

    No part of a merged run is the latest. Nor are judges' comparisons of pairs, unless they are wanted or there are no other runs.
    """
    if name == "latest":
        found = _described_runs(root)
        parts = {part.id for _, info in found for part in info.merged}
        newest_first = [stored.folder for stored, info in reversed(found) if info.id not in parts]
        if not newest_first:
            raise InputError(no_runs_message(root))
        of_models = (folder for folder in newest_first if with_comparisons or not _is_judges_comparison(folder))
        return next(of_models, newest_first[0])
    try:
        for folder in (Path(name), root / name):
            if (folder / "run.json").is_file():
                return folder
        is_folder, is_file = Path(name).is_dir(), Path(name).is_file()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    if is_folder:
        raise InputError(f"{Path(name)}: not a run folder (it has no run.json)")
    if is_file:
        raise InputError(
            f"{name}: neither a run folder nor a file of results that we recognise; docs/import.md lists those that we do"
        )
    raise InputError(f'no run "{printable(name)}" here or under {root}; `steelyard list` shows what there is')


def no_runs_message(root: Path) -> str:
    """The message for a user who looks for runs in a folder without any."""
    return f"{root}: no runs here yet; start one with: steelyard run EVALSET --models PROVIDER/MODEL"


HEADLINE_FILE, ATTEMPT_INDEX_FILE = "headline.json", "attempts.index"
"""What lists of runs show of one, and all its attempts without their texts: both can always be computed again."""
WITNESS_FILE = "witnesses.jsonl"
"""The results of the witnesses of a run."""
LIMITS_FILE = "limits.jsonl"
"""The limits of its cases that follow their references."""
LOOKS_FILE = "looks.jsonl"
"""What gates were asked about a run."""

MAX_RUN_FILE_BYTES = {
    "run.json": 16 << 20,
    "cases.jsonl": 256 << 20,
    WITNESS_FILE: 256 << 20,
    LIMITS_FILE: 256 << 20,
    LOOKS_FILE: 16 << 20,
    HEADLINE_FILE: 1 << 20,
    ATTEMPT_INDEX_FILE: 256 << 20,
}
"""Of the files that hold no facts: what a stranger's run may have us read."""


class UntrustedRun(StoredRun):
    """A run folder that anybody may have filled: links in it are not followed, and only plain files of some size are read."""

    largest = 16 << 20

    def journals(self) -> list[Path]:
        return [self.folder / file.name for file in run_folder_snapshot(self.folder).journals]

    def open(self, path: Path) -> BinaryIO:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            # reading a pipe would never end
            file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "a link, which is not followed", str(path)) from None
            raise
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return os.fdopen(file, "rb")

    def open_whole(self, path: Path) -> BinaryIO:
        most = MAX_RUN_FILE_BYTES[path.name]
        file = self.open(path)
        if os.fstat(file.fileno()).st_size > most:
            file.close()
            raise OSError(errno.EFBIG, f"larger than {most >> 20} MB, which is too large to read", str(path))
        return file


class DeliveredRun(UntrustedRun):
    """A run folder that came from another machine to be taken over: as guarded, but with lines as long as we write them."""

    largest = MAX_JOURNAL_LINE_BYTES


class RunFile(NamedTuple):
    """A file as it looks from outside."""

    name: str
    inode: int
    size: int
    changed: int


class RunFolderSnapshot(NamedTuple):
    """The state of a run folder from outside; it changes with every change of the run."""

    files: tuple[RunFile, ...]
    """The plain files that belong to a run, by name."""
    links: tuple[str, ...]
    """Journals that are links or other special files."""
    is_empty: bool
    is_locked: bool
    """Whether somebody is writing the run."""

    @property
    def journals(self) -> tuple[RunFile, ...]:
        """In the order in which they are read."""
        return tuple(file for file in self.files if is_journal(file.name))

    def file(self, name: str) -> RunFile | None:
        return next((file for file in self.files if file.name == name), None)


def run_folder_snapshot(folder: Path) -> RunFolderSnapshot:
    """The state of a run folder, without reading its files or following links; raises an OSError without a folder."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        names = os.listdir(opened)  # noqa: PTH208  by now the path may lead elsewhere
        files, links = [], []
        for name in sorted(names):
            if name in MAX_RUN_FILE_BYTES or is_journal(name):
                state = os.stat(name, dir_fd=opened, follow_symlinks=False)
                if stat.S_ISREG(state.st_mode):
                    files.append(RunFile(name, state.st_ino, state.st_size, state.st_mtime_ns))
                elif is_journal(name):
                    links.append(name)
        return RunFolderSnapshot(tuple(files), tuple(links), not names, is_locked(opened))
    finally:
        os.close(opened)


def is_done(stored: StoredRun, info: RunInfo, *, has_figures: bool) -> bool:
    """Whether the last session of a run finished; `has_figures` says that it left figures of the present state."""
    return info.ended_at is not None and (has_figures or stored.last_timestamp() <= info.ended_at)


def eval_set_files(info: RunInfo) -> tuple[str, ...]:
    """The names of the files that the cases of a run came from."""
    return tuple(PurePath(file.path).name for file in info.eval_sets)


@functools.cache
def steelyard_version() -> str:
    """Who scores: another version may score otherwise."""
    from importlib.metadata import version

    return version("steelyard")


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
    """The same as far as sizes show, which neither copying the folder nor another version of this tool changes.

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
