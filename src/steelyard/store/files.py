"""Files of ours: written whole or not at all, and readable although a later version wrote them."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec
from msgspec import inspect

from steelyard.errors import DiskError, DiskFullError, InputError, did_you_mean
from steelyard.store.locks import lock_file
from steelyard.text import printable

DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system calls a full disk."""
DISK_BROKEN_ERRNOS = (errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the system calls a disk that is broken or gone, and a machine that cannot open another file."""


class AtomicFiles:
    """Files that are written out of sight first and then take their places, each whole or not at all."""

    def __init__(self) -> None:
        self._fresh: dict[Path, Path] = {}

    def write(self, path: Path, lines: Iterable[str]) -> None:
        """Write the new content of `path`; it becomes visible with `finish`."""
        fresh = path.with_name(f".steelyard-{secrets.token_hex(6)}.new")
        self._fresh[path] = fresh
        # created, never followed: a link that somebody put there must not lead us elsewhere
        with fresh.open("xb") as file:
            with suppress(OSError):
                # who could not read the old file must not read the new one
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat(follow_symlinks=False).st_mode))
            for line in lines:
                file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def write_and_digest(self, path: Path, lines: Iterable[str]) -> str:
        """The same, and the digest of what was written."""
        digest = hashlib.sha256()

        def digested() -> Iterator[str]:
            for line in lines:
                digest.update(line.encode())
                yield line

        self.write(path, digested())
        return digest.hexdigest()

    def finish(self) -> None:
        """Put every file in its place; where a link stands, the link is replaced and not what it leads to."""
        for path in list(self._fresh):
            self._fresh[path].replace(path)
            del self._fresh[path]

    def __enter__(self) -> AtomicFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fresh in self._fresh.values():
            with suppress(OSError):
                fresh.unlink()


def write_file(path: Path, text: str) -> None:
    """Write a file that a user named, whole or not at all; a link stays a link, and what it leads to is replaced."""
    write_pieces(path, [text])


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """The same from pieces that follow each other; where one cannot be made, no file is written."""
    with explain_write_errors(path), AtomicFiles() as fresh:
        fresh.write(path.resolve(), pieces)
        fresh.finish()


def check_writable(path: Path) -> None:
    """Raises an InputError if a file could not be written later; the check leaves nothing behind."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file in it")
    with explain_write_errors(path), AtomicFiles() as fresh:
        fresh.write(path.resolve(), ())


TEXT_FORMAT_BY_SUFFIX = {
    ".json": "json",
    ".md": "markdown",
    ".txt": "text",
    ".csv": "csv",
    ".xml": "junit",
    ".sarif": "sarif",
    ".html": "html",
    ".tex": "latex",
}


def check_text_paths(paths: Iterable[str | Path], formats: Container[str]) -> None:
    """Refuse files of a suffix that is of none of these formats, and those that cannot be written."""
    suffixes = [suffix for suffix, name in TEXT_FORMAT_BY_SUFFIX.items() if name in formats]
    for path in map(Path, paths):
        if path.suffix not in suffixes:
            raise InputError(f'{path}: unknown kind of report "{path.suffix}" ({did_you_mean(path.suffix, suffixes)})')
        check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse a file that cannot be written."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")
    check_writable(path)


def write_texts(paths: Iterable[str | Path], texts: Mapping[str, str]) -> list[Path]:
    """Write to each file the text in the format of its suffix; returns what was written."""
    check_text_paths(paths, texts)
    written = [Path(path) for path in paths]
    for path in written:
        write_file(path, texts[TEXT_FORMAT_BY_SUFFIX[path.suffix]])
    return written


def check_new_folder(folder: Path) -> None:
    """Make a folder that files are written to later; raises an InputError where they could not be."""
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    check_writable(folder / "file")


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Write texts to a folder by the names of their files: all of them or none."""
    with explain_write_errors(folder), AtomicFiles() as fresh:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            fresh.write(folder / name, [text])
        fresh.finish()


@contextmanager
def explain_write_errors(folder: Path) -> Iterator[None]:
    """Say in one sentence why a folder cannot be written."""
    try:
        yield
    except OSError as error:
        where = printable(str(folder))
        if isinstance(error, FileExistsError):
            raise InputError(f"{where}: not a folder; choose another place") from None
        if error.errno in DISK_FULL_ERRNOS:
            raise DiskFullError(f"{where}: no space left ({error.strerror}); free some space and try again") from None
        if error.errno in DISK_BROKEN_ERRNOS:
            raise DiskError(f"{where}: {error.strerror}; check the disk and try again") from None
        raise InputError(f"{where}: cannot be written: {error.strerror}") from None


def open_plain_file(path: Path) -> BinaryIO:
    """A regular file; raises an OSError for anything else, because reading a pipe or a device may never end."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(file, "rb")


def open_to_append(path: Path) -> int:
    """The descriptor of a file that grows; raises OSError if a link stands in its place, which may lead to any file of the user's."""
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a link, which is not followed; choose another folder", str(path)) from None
        raise


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file; when this returns it is on the disk. A last line that is cut off is dropped: it was never acknowledged."""
    with explain_write_errors(path), os.fdopen(open_to_append(path), "a+b") as file:
        lock_file(file)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


Content = TypeVar("Content")


class _Numbered(msgspec.Struct):
    format: int = 0


def format_number(content: bytes) -> int:
    """The format that a file of ours says it has; 0 for one from before there were numbers."""
    return msgspec.json.decode(content, type=_Numbered).format


class TolerantDecoder(Generic[Content]):
    """Decodes JSON of ours; a field that this version does not know is skipped, however deep in the value it is.

    Files of users are read strictly: there an unknown field is most likely a misspelt one.
    """

    def __init__(self, type_: Any) -> None:
        self._type = type_

    @cached_property
    def _strict(self) -> msgspec.json.Decoder[Content]:
        # the facts of a journal take 10 ms to prepare for, and most commands read none
        return msgspec.json.Decoder(self._type)

    @cached_property
    def _info(self) -> inspect.Type:
        return inspect.type_info(self._type)

    def decode(self, content: bytes) -> Content:
        """The value; raises what msgspec raises where it is not of the type even so."""
        try:
            return self._strict.decode(content)
        except msgspec.ValidationError as error:
            whole = msgspec.json.decode(content)
            known = _known(whole, self._info)
            if known == whole:
                raise
            try:
                return msgspec.convert(known, self._type)  # type: ignore[no-any-return]
            except msgspec.ValidationError:
                # the first error names the place in the file as it is
                raise error from None

    def has_unknown_fields(self, content: bytes) -> bool:
        """Whether a value can be read only because fields of it are skipped."""
        try:
            self._strict.decode(content)
        except msgspec.ValidationError:
            return True
        return False

    def with_unknown_fields(self, fresh: bytes, earlier: bytes) -> dict[str, Any]:
        """An object that replaces an earlier one, with those fields of the earlier one that this version does not know."""
        kept: dict[str, Any] = _with_unknown(msgspec.json.decode(fresh), msgspec.json.decode(earlier), self._info)
        return kept


def _struct_of(value: dict[str, Any], info: inspect.Type) -> inspect.StructType | None:
    """The struct of an object; in a union, the one that its tag names."""
    types = info.types if isinstance(info, inspect.UnionType) else (info,)
    structs = [each for each in types if isinstance(each, inspect.StructType)]
    tagged = [each for each in structs if each.tag_field is None or value.get(each.tag_field) == each.tag]
    return tagged[0] if tagged else None


def _items_of(info: inspect.Type) -> inspect.Type | None:
    """What a list holds."""
    types = info.types if isinstance(info, inspect.UnionType) else (info,)
    lists = [each for each in types if isinstance(each, inspect.VarTupleType | inspect.ListType)]
    return lists[0].item_type if lists else None


def _known(value: Any, info: inspect.Type) -> Any:
    """The value without the fields that its type does not have."""
    if isinstance(value, dict):
        struct = _struct_of(value, info)
        if struct is not None:
            types = {field.encode_name: field.type for field in struct.fields}
            if struct.tag_field is not None:
                types[struct.tag_field] = inspect.AnyType()
            return {name: _known(each, types[name]) for name, each in value.items() if name in types}
        if isinstance(info, inspect.DictType):
            return {name: _known(each, info.value_type) for name, each in value.items()}
    elif isinstance(value, list) and (item := _items_of(info)) is not None:
        return [_known(each, item) for each in value]
    return value


def _with_unknown(fresh: Any, earlier: Any, info: inspect.Type) -> Any:
    if not (isinstance(fresh, dict) and isinstance(earlier, dict)):
        return fresh
    struct = _struct_of(fresh, info)
    if struct is None:
        return fresh
    types = {field.encode_name: field.type for field in struct.fields}
    kept = {
        name: _with_unknown(each, earlier.get(name), types.get(name, inspect.AnyType())) for name, each in fresh.items()
    }
    for name, each in earlier.items():
        if name not in types and name != struct.tag_field:
            kept[name] = each
        elif name not in kept and _is_default_struct(types.get(name)):
            # what has its default is not written, but what is unknown in it is kept
            unknown = _with_unknown({}, each, types[name])
            kept |= {name: unknown} if unknown else {}
    return kept


def _is_default_struct(info: inspect.Type | None) -> bool:
    return isinstance(info, inspect.StructType) and not any(field.required for field in info.fields)


def now() -> str:
    """The current timestamp, as facts carry it."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    # a run writes thousands of timestamps in a second
    return datetime.fromtimestamp(seconds, UTC).isoformat().removesuffix("+00:00")
