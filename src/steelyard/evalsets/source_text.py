"""The text of an eval-set file: of a bounded length, and UTF-8."""

from __future__ import annotations

from typing import Protocol

from steelyard.evalsets.schema import ProblemCollector


class ByteSource(Protocol):
    """A file being read."""

    def read(self, limit: int) -> bytes:
        """The next bytes."""
        ...


def source_text(content: ByteSource, max_bytes: int, path: str, problems: ProblemCollector) -> str | None:
    """The whole file as text; None after saying what is wrong with it."""
    raw = content.read(max_bytes + 1)
    if len(raw) > max_bytes:
        problems.error(path, 0, f"larger than {max_bytes >> 20} MB; write the cases as JSONL, one per line")
        return None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.error(path, raw.count(b"\n", 0, error.start) + 1, "not UTF-8 text; save the file as UTF-8")
        return None
