"""The JSON report of a large run, read one result at a time where it is laid out as we write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

MIN_STREAMED_BYTES = 16 << 20
"""Smaller reports are read at once."""
_RESULTS_BEGIN, _RESULTS_ENDS = b'  "results": [\n', (b"  ],\n", b"  ]\n")
_RESULT_BEGIN, _RESULT_ENDS = b"    {\n", (b"    },\n", b"    }\n")
_INNER_BEGIN = re.compile(rb' {4}"[a-z_]+": [\[{]\n')
_INNER_ENDS = (b"    ],\n", b"    ]\n", *_RESULT_ENDS)
"""The ends of the lists and objects at the same depth as results, such as the cases of the summary."""


def report_without_results(path: Path, *, least: int = MIN_STREAMED_BYTES) -> bytes | None:
    """A large report with an empty list of results and without what else is long; None for one of less than `least` bytes, or laid out differently."""
    if path.stat().st_size < least:
        return None
    rest, lists, is_inside, is_result, is_inner = bytearray(), 0, False, False, False
    with path.open("rb") as file:
        for line in file:
            if is_result:
                is_result = line not in _RESULT_ENDS
            elif is_inner:
                if is_inner := line not in _INNER_ENDS:
                    continue
                rest += line
            elif not is_inside:
                rest += line
                is_inner = _INNER_BEGIN.fullmatch(line) is not None
                if line == _RESULTS_BEGIN:
                    lists, is_inside = lists + 1, True
            elif line == _RESULT_BEGIN:
                is_result = True
            elif line in _RESULTS_ENDS:
                rest += line
                is_inside = False
            else:
                return None
    return None if lists != 1 or is_inside or is_inner else bytes(rest)


def report_results(path: Path) -> Iterator[bytes]:
    """The results of such a report, each as JSON."""
    parts: list[bytes] | None = None
    is_inside = False
    with path.open("rb") as file:
        for line in file:
            if parts is not None and line in _RESULT_ENDS:
                yield b"".join((b"{", *parts, b"}"))
                parts = None
            elif parts is not None:
                parts.append(line)
            elif is_inside and line == _RESULT_BEGIN:
                parts = []
            elif line == _RESULTS_BEGIN:
                is_inside = True
            elif is_inside:
                return
