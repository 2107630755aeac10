"""Runs as Parquet: a copy of each run's facts, split by model and suite, that can always be rebuilt."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

import msgspec

from steelyard.errors import InputError, SteelyardError, StoreError
from steelyard.records import RunInfo
from steelyard.store.database import (
    call_interruptibly,
    error_line,
    import_duckdb,
    open_database,
    require_utf8,
    sql_string,
)
from steelyard.store.fact_rows import MAX_COPY_PARTITIONS, FactQueries, FactScorer, fact_queries
from steelyard.store.journal import (
    COPY_MANIFEST_FILE,
    DECODE_ERRORS,
    StoredRun,
    is_journal,
    write_atomically,
)
from steelyard.store.run_folders import (
    HEADLINE_FILE,
    MAX_RUN_FILE_BYTES,
    content_digest,
    is_hidden,
    steelyard_version,
)

if TYPE_CHECKING:
    import duckdb


HIVE_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The placeholder for a missing value in a path; Hive began it, and Spark, DuckDB, Polars and Arrow know it."""
MAX_PATH_SEGMENT_BYTES = 200
"""Bytes of an escaped name: with its key it is shorter than any file system asks for."""
SAFE_PATH_BYTES = frozenset((ascii_lowercase + ascii_uppercase + digits + "-._").encode())
"""Bytes that mean nothing anywhere."""


def partition_paths(pairs: Iterable[tuple[str | None, str | None]]) -> dict[tuple[str | None, str | None], str]:
    """For each model and suite of a run the folder of their facts; None for facts about several of them.

    Names that differ only in their capitals get folders that differ in more, because not every file system is
    case-sensitive.

    >>> list(partition_paths([("openai/gpt-5", "basics"), ("openai/GPT-5", "")]).values())
    ['model=openai%2Fgpt-5/suite=basics', 'model=openai%2F%47%50%54-5/suite=__HIVE_DEFAULT_PARTITION__']
    """
    known = list(dict.fromkeys(pairs))
    models, suites = (_differing_only_in_case({pair[place] for pair in known}) for place in (0, 1))
    return {
        (model, suite): f"model={_segment(model, models)}/suite={_segment(suite, suites)}" for model, suite in known
    }


def is_name_in_path(name: str | None) -> bool:
    """Whether a path holds this whole name: not if the name is empty, or too long for a path."""
    return bool(name) and len(escaped_segment(name or "", capitals=False)) <= MAX_PATH_SEGMENT_BYTES


# runs share few names
@lru_cache(maxsize=1 << 12)
def escaped_segment(name: str, *, capitals: bool = True) -> str:
    """A name as a part of a path, with percent signs for all that could mean something there; as long as it takes.

    >>> escaped_segment("50% naïve"), escaped_segment(".hidden"), escaped_segment("NULL")
    ('50%25%20na%C3%AFve', '%2Ehidden', '%4EULL')
    """
    kept = SAFE_PATH_BYTES if capitals else SAFE_PATH_BYTES - set(ascii_uppercase.encode())
    raw = name.encode(errors="surrogatepass")
    # a beginning that hides a file from some readers, and words that mean no value to others
    first = name[:1] in "._" or name.upper() in ("NULL", HIVE_NULL_PARTITION)
    return "".join(
        chr(byte) if byte in kept and (place or not first) else f"%{byte:02X}" for place, byte in enumerate(raw)
    )


def truncated_segment(name: str, *, capitals: bool = True) -> str:
    """The same, cut where it is too long, with a digest of all of it at the end."""
    whole = escaped_segment(name, capitals=capitals)
    if len(whole) <= MAX_PATH_SEGMENT_BYTES:
        return whole
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    begin = whole[: MAX_PATH_SEGMENT_BYTES - len(digest) - 1]
    # an escape that is cut in half would be invalid
    return f"{begin[: begin.rfind('%')] if '%' in begin[-2:] else begin}-{digest}"


def _differing_only_in_case(names: Iterable[str | None]) -> set[str]:
    """The names that another one equals but for capitals."""
    present = [name for name in names if name]
    folded = Counter(name.lower() for name in present)
    return {name for name in present if folded[name.lower()] > 1}


def _segment(name: str | None, alike: set[str]) -> str:
    return truncated_segment(name, capitals=name not in alike) if name else HIVE_NULL_PARTITION


COPY_FOLDER = "attempts"
"""The folder with the copy of a run's facts."""
COPY_MEMORY_LIMIT = "256MB"
"""What the database may use while it copies a run."""
LEFTOVER_SECONDS = 3600
"""Seconds after which an abandoned partial copy is removed."""
LEGACY_COPY_FILE = "attempts.parquet"
"""What the copy was called as long as it was one file."""
COPY_SCHEMA_VERSION = 6
"""Goes up when the columns of the copy change, so that older copies are rebuilt."""


class CopyPartition(msgspec.Struct, frozen=True):
    """The facts of one model about the cases of one suite; without either, of all of them."""

    model: str | None
    suite: str | None
    """Empty for the cases that belong to none."""
    bytes: tuple[int, ...]
    """The sizes of its files."""


class CopyManifest(msgspec.Struct, frozen=True):
    """What a copy holds, and what it is made of."""

    shape: int
    tool: str
    """The version of the tool whose opinions are in it."""
    made_of: str
    run: str
    parts: tuple[CopyPartition, ...]

    def files(self) -> Iterator[tuple[CopyPartition, int, str]]:
        """Every file: which part it belongs to, its size, and its path, which never comes from the manifest."""
        folders = partition_paths((part.model, part.suite) for part in self.parts)
        for part in self.parts:
            for number, size in enumerate(part.bytes):
                name = f"{truncated_segment(self.run)}{f'-{number}' if number else ''}.parquet"
                yield part, size, f"{COPY_FOLDER}/{folders[part.model, part.suite]}/{name}"


_copy_of = msgspec.json.Decoder(CopyManifest)


def copy_to_parquet(folder: Path, opinions: FactScorer, target: Path | None = None) -> CopyManifest:
    """Write a run's facts as Parquet, for questions over many runs, into its folder or another; it can always be rebuilt.

    Each model's facts about each suite are files of their own, and their paths name both: a query about one model
    does not open the files of the others.
    """
    duckdb = import_duckdb()

    target = target or folder
    # before anything is read: what is written meanwhile makes this copy an old one
    made_of = inspect_run(folder).made_of
    fresh: Path | None = None
    try:
        target.mkdir(parents=True, exist_ok=True)
        # other machines may be writing here as well
        _remove_leftovers(target)
        fresh = Path(tempfile.mkdtemp(prefix=f".{COPY_FOLDER}.", dir=target))
        # a copy needs not every core, and however long the run is, little memory
        with (
            tempfile.TemporaryDirectory() as scratch,
            open_database(scratch, COPY_MEMORY_LIMIT, threads=1) as database,
        ):
            facts = fact_queries(StoredRun(folder), opinions, Path(scratch))
            written = _write_partitions(database, facts, fresh)
        if written != facts.size:
            raise StoreError(
                f"{folder}: the Parquet copy could not be written: it holds {written} of {facts.size} facts"
            )
        files = [_numbered_files(fresh / f"part={number}") for number in range(len(facts.pairs))]
        parts = [
            CopyPartition(*pair, tuple(path.stat().st_size for path in each))
            for pair, each in zip(facts.pairs, files, strict=True)
        ]
        copy = CopyManifest(COPY_SCHEMA_VERSION, steelyard_version(), made_of, facts.run, tuple(parts))
        _install_files(target, copy, list(itertools.chain.from_iterable(files)))
    except (duckdb.Error, OSError) as error:
        raise StoreError(f"{folder}: the Parquet copy could not be written: {error_line(error)}") from None
    finally:
        if fresh:
            shutil.rmtree(fresh, ignore_errors=True)
    return copy


def _remove_leftovers(target: Path) -> None:
    """Take away what killed processes left of copies; one that is being written was touched a moment ago."""
    for left in target.glob(f".{COPY_FOLDER}.*"):
        with suppress(OSError):
            touched = max(path.stat(follow_symlinks=False).st_mtime for path in (left, *left.rglob("*")))
            if time.time() - touched > LEFTOVER_SECONDS and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)


def _install_files(target: Path, copy: CopyManifest, files: Sequence[Path]) -> None:
    """Move the files of a copy to their places; a concurrent reader finds each fact once, and no complete copy."""
    # the link may come with a run from someone else, and we must not delete files that it points to
    if (target / COPY_FOLDER).is_symlink():
        raise StoreError(f"{target / COPY_FOLDER}: the Parquet copy is not written through a link; take it away")
    (target / COPY_MANIFEST_FILE).unlink(missing_ok=True)
    with suppress(IsADirectoryError, PermissionError):
        (target / LEGACY_COPY_FILE).unlink(missing_ok=True)
    there = {path: fresh for (_, _, path), fresh in zip(copy.files(), files, strict=True)}
    for path in sorted((target / COPY_FOLDER).rglob("*"), reverse=True):
        name = path.relative_to(target).as_posix()
        if path.is_symlink() or not path.is_dir():
            if name not in there:
                path.unlink()
        elif not any(wanted.startswith(f"{name}/") for wanted in there):
            path.rmdir()
    for name, fresh in there.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        fresh.replace(target / name)
    write_atomically(target / COPY_MANIFEST_FILE, msgspec.json.encode(copy) + b"\n")


def _write_partitions(database: duckdb.DuckDBPyConnection, facts: FactQueries, fresh: Path) -> int:
    """Write the files of a copy, each part in a folder of its number; how many rows they have."""
    query = facts.sql()
    parts = len(facts.pairs)
    several = f"{PARQUET_COPY_OPTIONS}, ROW_GROUPS_PER_FILE {max(1, MAX_OPEN_ROW_GROUPS // parts)}"
    if parts == 1:
        return _write_files(database, f"FROM ({query}) SELECT * EXCLUDE (part)", fresh, "part=0", several)
    # with the default, the buffered rows of all parts do not fit into memory
    database.execute(f"SET partitioned_write_flush_threshold = {PARTITION_FLUSH_ROWS}")
    by_part = "PARTITION_BY (part), WRITE_PARTITION_COLUMNS false"
    try:
        written = _write_files(database, f"FROM ({query})", fresh, "parts", f"{several}, {by_part}")
    except import_duckdb().NotImplementedException:
        # versions of the database before 1.5 write one file for each part
        written = _write_files(database, f"FROM ({query})", fresh, "parts", f"{PARQUET_COPY_OPTIONS}, {by_part}")
    for part in (fresh / "parts").iterdir():
        part.replace(fresh / part.name)
    return written


def _write_files(database: duckdb.DuckDBPyConnection, query: str, fresh: Path, name: str, how: str) -> int:
    shutil.rmtree(fresh)
    fresh.mkdir()
    copy = f"COPY ({query}) TO {sql_string(str(fresh / name))} ({how})"
    copied = call_interruptibly(database, lambda: database.execute(copy).fetchall())
    return int(copied[0][0])


def _numbered_files(folder: Path) -> list[Path]:
    """The files of a part in the order in which they were written: `data_2.parquet` comes before `data_10.parquet`."""
    return sorted(folder.glob("*.parquet"), key=lambda path: (len(path.name), path.name))


PARQUET_COPY_OPTIONS = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 4096"
MAX_OPEN_ROW_GROUPS = 64
"""Row groups of the files that are being written: the database holds some 40 KB about each until the end of its file."""
PARTITION_FLUSH_ROWS = 2_048
"""Rows that wait for their part before they are written."""


class CopiedRun(NamedTuple):
    """A run with a copy of its present state."""

    folder: Path
    shown: Path
    """The folder as the user would write it."""
    info: RunInfo
    cases_size: int
    place: Path
    """The folder that holds the copy."""
    copy: CopyManifest

    @property
    def files(self) -> list[Path]:
        return [self.place / path for _, _, path in self.copy.files()]


def copied_runs(
    root: Path,
    opinions: FactScorer,
    scratch: Path,
    copies: Path | None = None,
) -> tuple[list[CopiedRun], list[str]]:
    """The runs below a folder that can be read, or the run that it is, each with its copy, and what to say about the others.

    If a run's own folder is not writable, its copy goes to `copies`, which is searched as well, or otherwise to `scratch`.
    """
    found: dict[str, CopiedRun] = {}
    warnings: list[str] = []
    outdated: list[Path] = []
    for folder, seen in _inspected_folders(root):
        try:
            if isinstance(seen, Exception):
                raise seen
            if seen is None:
                continue
            if seen.info.id in found:
                warnings.append(f"{folder}: left out, because it is the same run as {found[seen.info.id].shown}")
                continue
            run = _with_current_copy(folder, seen, opinions, scratch, copies)
            found[run.info.id] = run
            if run.copy.tool != steelyard_version():
                outdated.append(folder)
        except SteelyardError as error:
            warnings.append(f"left out: {error}")
        except OSError as error:
            warnings.append(f"{folder}: left out, because it cannot be read: {error.strerror}")
    whole = {part.id: run.shown for run in found.values() for part in run.info.merged}
    for run in [run for run in found.values() if run.info.id in whole]:
        warnings.append(f"{run.shown}: left out, because it was merged into {whole[run.info.id]}")
        del found[run.info.id]
    if outdated:
        subject = f"{len(outdated)} runs, such as {outdated[0]}, were" if len(outdated) > 1 else f"{outdated[0]} was"
        warnings.append(
            f"{subject} scored by another version of steelyard, whose copy cannot be rebuilt there; --copies DIR keeps "
            "new copies elsewhere"
        )
    return list(found.values()), warnings


def _inspected_folders(root: Path) -> Iterator[tuple[Path, RunInspection | Exception | None]]:
    """The folders below one, or itself, each with what it looks like if it is a run, or why it cannot be read."""
    from concurrent.futures import ThreadPoolExecutor

    place = root.resolve()

    def look(inside: tuple[Path, Path | None]) -> tuple[Path, RunInspection | Exception | None]:
        shown, folder = inside
        try:
            # a run may be a link to a folder elsewhere
            return shown, inspect_run(folder or shown.resolve())
        except (FileNotFoundError, NotADirectoryError):
            return shown, None
        except OSError as error:
            return shown, None if error.errno == errno.ELOOP else error
        except SteelyardError as error:
            return shown, error

    try:
        if (root / "run.json").is_file():
            yield look((root, place))
            return
        with os.scandir(place) as inside:
            entries = (entry for entry in inside if not is_hidden(Path(entry.name)))
            found = sorted((entry.name, entry.is_symlink()) for entry in entries)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{root}: cannot be read: {error.strerror}") from None
    # on a mount that answers slowly there is nothing to do but to ask for many things at once
    with ThreadPoolExecutor(INSPECTION_THREADS) as threads:
        yield from threads.map(look, [(root / name, None if is_link else place / name) for name, is_link in found])


INSPECTION_THREADS = 32
"""Folders that are scanned concurrently."""


class RunInspection(NamedTuple):
    """A run folder as it looks from outside, with what it says of itself."""

    folder: Path
    info: RunInfo
    made_of: str
    """As long as this stays the same, so would a copy: neither copying the folder nor another disk changes it."""
    cases_size: int
    copy: CopyManifest | None
    """The copy in the folder, current or not, if all its files exist."""


def inspect_run(folder: Path) -> RunInspection:
    """A look at a run folder; a FileNotFoundError if it is not a run folder, an InputError if it cannot be read."""
    with os.scandir(folder) as inside:
        entries = {entry.name: entry for entry in inside}
    if "run.json" not in entries:
        raise FileNotFoundError
    info, described = StoredRun(folder).described()
    if "cases.jsonl" not in entries:
        raise InputError(f"{folder / 'cases.jsonl'}: {os.strerror(errno.ENOENT)}")
    names = ["cases.jsonl", *sorted(name for name in entries if is_journal(name))]
    sizes = [(name, entries[name].stat().st_size) for name in names]
    made_of = msgspec.json.encode([content_digest(described), sizes]).decode()
    copy = _complete_copy(folder) if COPY_MANIFEST_FILE in entries else None
    return RunInspection(folder, info, made_of, sizes[0][1], copy)


def _complete_copy(folder: Path) -> CopyManifest | None:
    """The copy that a folder holds; None if it has none or an incomplete one."""
    try:
        # a pipe would keep us waiting for ever
        if not (folder / COPY_MANIFEST_FILE).is_file():
            return None
        with (folder / COPY_MANIFEST_FILE).open("rb") as file:
            copy = _copy_of.decode(file.read(MAX_RUN_FILE_BYTES[HEADLINE_FILE]))
        if len(copy.parts) > MAX_COPY_PARTITIONS or not all(part.bytes for part in copy.parts):
            return None
        is_whole = all((folder / path).stat().st_size == size for _, size, path in copy.files())
    except (OSError, ValueError, *DECODE_ERRORS):
        return None
    return copy if is_whole else None


def _with_current_copy(
    shown: Path, seen: RunInspection, opinions: FactScorer, scratch: Path, copies: Path | None
) -> CopiedRun:
    """A run with a copy of it as it is now: one that is there, or a new one."""
    folder = Path(require_utf8(str(seen.folder)))

    def is_present(copy: CopyManifest | None) -> TypeGuard[CopyManifest]:
        return copy is not None and (copy.shape, copy.made_of, copy.run) == (
            COPY_SCHEMA_VERSION,
            seen.made_of,
            seen.info.id,
        )

    def with_copy(place: Path, copy: CopyManifest | None = None) -> CopiedRun:
        copy = copy or copy_to_parquet(folder, opinions, place)
        return CopiedRun(folder, shown, seen.info, seen.cases_size, place, copy)

    if is_present(seen.copy) and seen.copy.tool == steelyard_version():
        return with_copy(folder, seen.copy)
    if os.access(folder, os.W_OK):
        # no room there, perhaps; a run that cannot be read fails again
        with suppress(StoreError):
            return with_copy(folder)
    if copies is not None:
        place = copies.resolve() / truncated_segment(seen.info.id)
        kept = _complete_copy(place)
        return with_copy(place, kept if is_present(kept) and kept.tool == steelyard_version() else None)
    if is_present(seen.copy):
        return with_copy(folder, seen.copy)
    return with_copy(scratch / truncated_segment(seen.info.id))
