"""No file of outcomes, however hostile, fills the memory or reaches the terminal raw."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOM = 2_000 << 20


def packed(path: Path, pieces: Iterable[bytes]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for piece in pieces:
            file.write(piece)
    return path


def told(function: str, path: Path, room: int = ROOM) -> str:
    """What reading says, in a process that has little memory."""
    program = (
        "import sys\n"
        "from steelyard import outcomes\n"
        "from steelyard.errors import InputError\n"
        "try:\n"
        f"    print(outcomes.{function}([sys.argv[1]]).tallies)\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        # a thread of numpy for each of many processors would take address space of its own
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)),
    )
    assert ran.returncode == 0, ran.stderr[-1000:]
    return ran.stdout.removeprefix(str(path)).strip()


@pytest.mark.parametrize(
    ("function", "name", "start"),
    [("fixes", "m_fixes.csv.gz", b"oid,"), ("table", "m.jsonl.gz", b'{"a": "'), ("table", "m.csv.gz", b"case,")],
)
def test_a_line_that_does_not_end_is_given_up(tmp_path: Path, function: str, name: str, start: bytes) -> None:
    path = packed(tmp_path / name, [start, *([b"x" * (1 << 20)] * 70)])
    assert told(function, path) == ":1: a line of more than 64 MB"


@pytest.mark.parametrize("piece", [b"xxx\n", b'x\n","'])
def test_a_quoted_row_that_does_not_end_is_given_up(tmp_path: Path, piece: bytes) -> None:
    path = packed(tmp_path / "m_fixes.csv.gz", [b'oid,iteration_id,plausible_fix\na,1,"', *([piece * (1 << 18)] * 80)])
    said = told("fixes", path)
    assert said.startswith(":2: a ")
    assert " of more than " in said


def test_rows_with_long_texts_are_not_kept(tmp_path: Path) -> None:
    rows = (b'a,%d,true,"%b"\n' % (number, b"x" * (1 << 20)) for number in range(200))
    path = packed(tmp_path / "m_fixes.csv.gz", [b"oid,iteration_id,plausible_fix,reply\n", *rows])
    assert "tried=(200,), passed=(200,)" in told("fixes", path, 280 << 20)


def test_a_name_for_every_row_is_refused_before_the_memory_is_full(tmp_path: Path) -> None:
    rows = (
        b"".join(b"m%d,c%d,1\n" % (number, number) for number in range(at, at + 5000)) for at in range(0, 50_000, 5000)
    )
    path = packed(tmp_path / "x.csv.gz", [b"model,case,passed\n", *rows])
    said = told("table", path)
    assert "cases are too many to count; are these the right columns?" in said
