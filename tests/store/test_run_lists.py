"""Lists of runs say what the folders hold at that moment."""

from __future__ import annotations

import shutil
from pathlib import Path

from steelyard.engine.results.headline_cache import run_headlines
from steelyard.engine.results.query import run_query
from steelyard.records import RunInfo
from steelyard.store.journal import Journal, create_run
from steelyard.store.run_folders import find_run


def info(number: int, started_at: str = "") -> RunInfo:
    return RunInfo(id=f"r{number}", started_at=started_at or f"2026-01-01T00:{number:02}", models=("m",))


def runs(root: Path) -> Path:
    for number in range(3):
        create_run(root / f"r{number}", info(number), ()).close()
    return root


def test_a_run_that_changed_is_read_again(tmp_path: Path) -> None:
    root = runs(tmp_path)
    assert [run.name for run in run_headlines(root)] == ["r0", "r1", "r2"]
    with Journal(root / "r1") as journal:
        journal.describe(info(1, "2027"))
    assert run_headlines(root)[-1].name == "r1"
    assert find_run("latest", root) == root / "r1"


def test_a_file_that_is_as_long_as_before_and_was_edited_in_place_is_read_again(tmp_path: Path) -> None:
    path = runs(tmp_path) / "r1" / "run.json"
    path.write_bytes(path.read_bytes().replace(b"2026", b"2028"))
    assert find_run("latest", tmp_path) == tmp_path / "r1"


def test_what_an_earlier_version_left_beside_the_runs_is_no_run(tmp_path: Path) -> None:
    root = runs(tmp_path)
    expected = run_headlines(root)
    (root / ".steelyard-index").write_bytes(b"\xc1")
    assert run_headlines(root) == expected


def test_a_question_has_a_run_once(tmp_path: Path) -> None:
    shutil.copytree(runs(tmp_path) / "r1", tmp_path / "z")
    with run_query("SELECT id FROM runs WHERE id = 'r1'", tmp_path) as answer:
        assert list(answer.rows) == [("r1",)]
    assert len(answer.warnings) == 1
    assert "is the same run as" in answer.warnings[0]
