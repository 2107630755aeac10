"""The table of benchmarks shows our ratio to others, and its history grows by one line per release."""

from __future__ import annotations

import json
import platform
from pathlib import Path

from benchmarks.table import Row, line_of, record

ROWS = [
    Row("answer verified", "ms", 5.0, 20.0, 4.0, ("another tool", "a fork")),
    Row("attempt stored", "ms", 0.3, None, 0.1, ("a tool that is not here", "a write")),
]


def test_each_figure_of_others_is_followed_by_our_ratio_to_it() -> None:
    verified, stored = map(line_of, ROWS)
    assert verified.split("  another")[0].split()[-5:] == ["5", "20", "0.25", "4", "1.25"]
    assert stored.split("  a tool")[0].split()[-5:] == ["0.3", "-", "-", "0.1", "3"]


def test_a_release_adds_one_line_with_its_machine(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    for release in ("1.0", "1.1"):
        record(ROWS, release, history)
    first, second = map(json.loads, history.read_text().splitlines())
    assert (first["release"], second["release"]) == ("1.0", "1.1")
    assert second["architecture"] == platform.machine()
    assert second["cpu_time"]["answer verified"]["ours"] == 5.0
    assert second["cpu_time"]["attempt stored"]["peer"] is None
