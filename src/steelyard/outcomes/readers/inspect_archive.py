"""The zip archive of an Inspect log: its members unpacked one by one, and the summaries of its samples."""

from __future__ import annotations

import importlib
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.store.database import open_database

if TYPE_CHECKING:
    import duckdb

MAX_SAMPLE_BYTES = 1 << 30
"""Bytes of one sample when it is unpacked."""
MAX_ARCHIVE_BYTES = 256 << 30
"""Bytes of all samples when they are unpacked."""
MAX_WHOLE_SUMMARIES_BYTES = 32 << 20
"""Bytes of all summaries up to which they are read at once, although the journal has them in pieces."""
MAX_SUMMARIES_BYTES = 256 << 20
"""Bytes of summaries up to which they are read at once; above, the samples themselves take less memory."""
ZSTANDARD_METHOD = 93
LOCAL_HEADER_BYTES = 30
SAMPLES_FOLDER = "samples/"
JOURNAL_SUMMARY = re.compile(r"_journal/summaries/(\d{1,9})\.json")
SAMPLE_PART = re.compile(r"_epoch_\d+/")
"""Inspect may keep a long sample as a folder of parts, of which `sample.json` has all but its messages and events."""
SAMPLE_SHELL = "/sample.json"


class InspectArchive:
    """An open log: its header, its samples in the order in which they were last written, and their summaries."""

    def __init__(self, archive: zipfile.ZipFile, file: BinaryIO) -> None:
        self._members = archive.infolist()
        self._file = file
        self._zstandard: Callable[[bytes, int], Any] | None = None
        if sum(member.file_size for member in self._members) > MAX_ARCHIVE_BYTES:
            raise UnreadableOutcomesError(f"more than {MAX_ARCHIVE_BYTES >> 30} GB when unpacked")
        self.samples: dict[str, zipfile.ZipInfo] = {}
        """Each sample by its name without the suffix, such as `samples/fr_epoch_1`."""
        self.named: dict[str, zipfile.ZipInfo] = {}
        self._attachments: dict[str, list[zipfile.ZipInfo]] = {}
        for member in self._members:
            name = member.filename
            if not name.startswith(SAMPLES_FOLDER):
                self.named[name] = member
            elif part := SAMPLE_PART.search(name):
                self._add_part(name[: part.end() - 1], name[part.end() - 1 :], member)
            else:
                self._add_sample(name.removesuffix(".json"), member)

    def _add_sample(self, name: str, member: zipfile.ZipInfo) -> None:
        # what was written twice counts as it was written last
        self.samples.pop(name, None)
        self.samples[name] = member

    def _add_part(self, name: str, part: str, member: zipfile.ZipInfo) -> None:
        if part == SAMPLE_SHELL:
            self._add_sample(name, member)
        elif part.startswith("/attachments/"):
            self._attachments.setdefault(name, []).append(member)

    @property
    def header(self) -> Any:
        """The bytes of the header; those of the start for a log that was cut off."""
        head = self.named.get("header.json") or self.named.get("_journal/start.json")
        if head is None:
            raise UnreadableOutcomesError("not a log of Inspect: it has no header.json")
        return self.unpacked(head)

    def attachments(self, name: str) -> Iterator[Any]:
        """The lists of texts, in order, that a sample in parts refers to by their positions."""
        parts = self._attachments.get(name, [])
        for member in sorted(parts, key=lambda member: (len(member.filename), member.filename)):
            yield self.unpacked(member)

    def summary_sources(self) -> Iterator[list[zipfile.ZipInfo]]:
        """The members that may have a summary of every sample, the cheapest to read first."""
        whole = self.named.get("summaries.json")
        pieces = sorted(
            (int(found[1]), member)
            for name, member in self.named.items()
            if (found := JOURNAL_SUMMARY.fullmatch(name)) and member.file_size <= MAX_SUMMARIES_BYTES
        )
        last_sample = max((member.header_offset for member in self.samples.values()), default=0)
        sources = []
        if whole is not None and whole.header_offset > last_sample and whole.file_size <= MAX_SUMMARIES_BYTES:
            sources.append([whole])
        if pieces and pieces[-1][1].header_offset > last_sample:
            is_large = whole is None or whole.file_size > MAX_WHOLE_SUMMARIES_BYTES
            sources.insert(0 if is_large else len(sources), [member for _, member in pieces])
        yield from sources

    def unpacked(self, member: zipfile.ZipInfo) -> Any:
        """The bytes of a member, read past zipfile, which takes longer to open a sample than to unpack it."""
        if member.file_size > MAX_SAMPLE_BYTES or member.compress_size > MAX_SAMPLE_BYTES:
            raise UnreadableOutcomesError(f"{member.filename[:200]}: more than {MAX_SAMPLE_BYTES >> 30} GB")
        self._file.seek(member.header_offset)
        names = struct.unpack("<HH", self._file.read(LOCAL_HEADER_BYTES)[26:])
        self._file.seek(sum(names), 1)
        packed = self._file.read(member.compress_size)
        if member.compress_type == zipfile.ZIP_STORED:
            return packed
        if member.compress_type == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.file_size)
        if member.compress_type != ZSTANDARD_METHOD:
            raise UnreadableOutcomesError(f"compressed by method {member.compress_type}, which is not supported")
        self._zstandard = self._zstandard or _zstandard_function()
        try:
            return self._zstandard(packed, member.file_size)
        except Exception as error:  # noqa: BLE001  each library has exceptions of its own
            raise UnreadableOutcomesError(f"{member.filename[:200]}: cannot be unpacked: {str(error)[:200]}") from None


def _zstandard_function() -> Callable[[bytes, int], Any]:
    """Who can unpack Zstandard: Python from 3.14 on, a library that Inspect or our own extra installs, and DuckDB always."""
    for name in ("compression.zstd", "zstandard", "pyarrow"):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        if name == "compression.zstd":
            return lambda packed, size: library.ZstdDecompressor().decompress(packed, size)
        if name == "zstandard":
            unpacker = library.ZstdDecompressor()
            return lambda packed, size: unpacker.decompress(packed, max_output_size=size)
        return lambda packed, size: library.decompress(packed, decompressed_size=size, codec="zstd", asbytes=True)
    return _unpack_by_duckdb


def _unpack_by_duckdb(packed: bytes, size: int) -> bytes:
    """A JSON value unpacked by DuckDB, which reads it from a file; that takes several times as long."""
    query = (
        "SELECT json FROM read_json_objects("
        "$path, compression = 'zstd', format = 'unstructured', maximum_object_size = $size)"
    )
    with tempfile.NamedTemporaryFile(suffix=".zst") as file:
        file.write(packed)
        file.flush()
        values = _database().execute(query, {"path": file.name, "size": size + 1}).fetchmany(2)
    if len(values) != 1:
        raise UnreadableOutcomesError(f"{len(values)} JSON values instead of one")
    value = str(values[0][0]).encode()
    if len(value) > size:
        raise UnreadableOutcomesError(f"longer than the {size:,} bytes that the archive says")
    return value


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return open_database(tempfile.gettempdir(), "2GB", threads=1)
