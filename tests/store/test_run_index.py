"""The index of many runs: as quick as looking at folders, and never believed over them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from steelyard.engine.results.headline_cache import run_headlines
from steelyard.engine.results.query import run_query
from steelyard.records import RunInfo
from steelyard.store.journal import Journal, create_run
from steelyard.store.run_folders import find_run
from steelyard.store.run_index import (
    DESCRIPTION_FILES,
    MIN_INDEXED_RUNS,
    RUN_INDEX_FILE,
    current_runs,
    steelyard_version,
)
from steelyard.viewer.run_list import RunCatalog

SOME_TIME_AGO = time.time() - 3600
FIGURES = 8
"""Where an entry of the index has what the viewer shows."""


def info(number: int, started_at: str = "") -> RunInfo:
    return RunInfo(id=f"r{number:03}", started_at=started_at or f"2026-01-01T00:{number:03}", models=("m",))


def settle(folder: Path) -> None:
    """Make a folder one that was written some time ago."""
    for path in (*folder.iterdir(), folder):
        os.utime(path, (SOME_TIME_AGO, SOME_TIME_AGO))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for number in range(MIN_INDEXED_RUNS + 1):
        create_run(root / f"r{number:03}", info(number), ()).close()
        settle(root / f"r{number:03}")
    return root


@pytest.fixture
def root(many: Path) -> Iterator[Path]:
    """Many runs, with an index of them all."""
    (many / RUN_INDEX_FILE).unlink(missing_ok=True)
    run_headlines(many)
    assert len(current_runs(many)) == MIN_INDEXED_RUNS + 1
    yield many
    with Journal(many / "r007") as journal:
        journal.describe(info(7))
    settle(many / "r007")


def test_an_indexed_run_is_listed_as_the_folder_has_it(root: Path) -> None:
    indexed = run_headlines(root)
    (root / RUN_INDEX_FILE).unlink()
    assert indexed == run_headlines(root)
    assert [run.name for run in indexed] == sorted(run.name for run in indexed)


def test_a_run_that_changed_is_read_again(root: Path) -> None:
    with Journal(root / "r007") as journal:
        journal.describe(info(7, "2027"))
    assert "r007" not in current_runs(root)
    assert run_headlines(root)[-1].name == "r007"
    assert find_run("latest", root) == root / "r007"


def test_a_file_that_is_as_long_as_before_and_was_edited_in_place_is_read_again(root: Path) -> None:
    path = root / "r007" / "run.json"
    path.write_bytes(path.read_bytes().replace(b"2026", b"2028"))
    assert find_run("latest", root) == root / "r007"


def test_what_changed_a_moment_ago_is_not_indexed(root: Path) -> None:
    with Journal(root / "r007") as journal:
        journal.describe(info(7, "2027"))
    run_headlines(root)
    assert "r007" not in current_runs(root)


def test_a_run_that_is_gone_is_not_listed(root: Path) -> None:
    (root / "r008").rename(root / ".aside")
    try:
        assert "r008" not in [run.name for run in run_headlines(root)]
    finally:
        (root / ".aside").rename(root / "r008")
        settle(root / "r008")


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff",
        b"\x90",
        msgspec.msgpack.encode(["0", []]),
        msgspec.msgpack.encode([steelyard_version(), [1]]),
    ],
)
def test_a_damaged_index_is_as_good_as_none(root: Path, damage: bytes) -> None:
    expected = run_headlines(root)
    (root / RUN_INDEX_FILE).write_bytes(damage)
    assert current_runs(root) == {}
    assert run_headlines(root) == expected
    assert find_run("latest", root) == root / expected[-1].name


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_an_index_that_is_no_plain_file_is_as_good_as_none(root: Path, kind: str) -> None:
    expected = run_headlines(root)
    aside = root / ".aside.json"
    (root / RUN_INDEX_FILE).rename(aside)
    if kind == "pipe":
        os.mkfifo(root / RUN_INDEX_FILE)
    else:
        (root / RUN_INDEX_FILE).symlink_to(aside.name)
    assert current_runs(root) == {}
    assert find_run("latest", root) == root / expected[-1].name
    assert run_headlines(root) == expected
    # it is replaced, and what a link led to is not written
    assert len(current_runs(root)) == MIN_INDEXED_RUNS + 1
    aside.unlink()


def test_states_that_nobody_wrote_are_not_believed(root: Path) -> None:
    expected = run_headlines(root)
    tool, runs = msgspec.msgpack.decode((root / RUN_INDEX_FILE).read_bytes())
    for place, states in enumerate((b"", b"x", runs[2][2][:-24], runs[3][2] + bytes(24))):
        runs[place][2] = states
    (root / RUN_INDEX_FILE).write_bytes(msgspec.msgpack.encode([tool, runs]))
    assert len(current_runs(root)) == MIN_INDEXED_RUNS - 3
    assert run_headlines(root) == expected


def test_a_question_indexes_runs_and_a_list_adds_its_lines(root: Path) -> None:
    expected = run_headlines(root)
    (root / RUN_INDEX_FILE).unlink()
    with run_query("SELECT count(*) FROM runs", root) as answer:
        assert list(answer.rows) == [(MIN_INDEXED_RUNS + 1,)]
    assert {run.lines for run in current_runs(root).values()} == {None}
    assert run_headlines(root) == expected
    # a change of a journal leaves what the run says of itself
    with (root / "r007" / "attempts.jsonl").open("ab") as file:
        file.write(b"\n")
    assert "r007" not in current_runs(root)
    assert "r007" in current_runs(root, DESCRIPTION_FILES)


@pytest.mark.parametrize("twin", ["a", "z"])
def test_a_question_has_a_run_once_whether_the_index_knows_it_or_not(root: Path, twin: str) -> None:
    shutil.copytree(root / "r007", root / twin)
    try:
        with run_query("SELECT id FROM runs WHERE id = 'r007'", root) as answer:
            assert list(answer.rows) == [("r007",)]
        assert len(answer.warnings) == 1
        assert "is the same run as" in answer.warnings[0]
    finally:
        shutil.rmtree(root / twin)


def edit_index(root: Path, name: str, cases: int) -> None:
    """Let the index say that a run has so many cases."""
    tool, runs = msgspec.msgpack.decode((root / RUN_INDEX_FILE).read_bytes())
    for run in runs:
        if run[0] == name:
            done, eval_sets, _, models = msgspec.msgpack.decode(run[FIGURES])
            run[FIGURES] = msgspec.msgpack.encode([done, eval_sets, cases, models])
    (root / RUN_INDEX_FILE).write_bytes(msgspec.msgpack.encode([tool, runs]))


def listed_cases(catalog: RunCatalog, name: str) -> int:
    return next(run.cases for run in catalog.listed().runs if run.name == name)


def test_the_viewer_lists_the_same_runs_with_an_index_and_without(root: Path) -> None:
    indexed = RunCatalog(root).listed()
    assert len(indexed.runs) == MIN_INDEXED_RUNS + 1
    (root / RUN_INDEX_FILE).unlink()
    catalog = RunCatalog(root)
    while catalog.listed().pending:
        pass
    assert catalog.listed().runs == indexed.runs
    # nothing changed, so nothing is laid out again; and the viewer writes nothing
    assert catalog.listed() is catalog.listed()
    assert not (root / RUN_INDEX_FILE).exists()


def test_the_viewer_takes_from_the_index_only_what_the_folders_confirm(root: Path) -> None:
    edit_index(root, "r007", 77)
    edit_index(root, "r008", 78)
    catalog = RunCatalog(root)
    assert listed_cases(catalog, "r007") == 77
    assert listed_cases(catalog, "r008") == 78
    first = catalog.listed().version
    path = root / "r007" / "run.json"
    # as long as before, and edited in place
    path.write_bytes(path.read_bytes().replace(b"2026", b"2028"))
    assert catalog.listed().version != first
    for seen in (catalog, RunCatalog(root)):
        assert seen.listed().runs[0].started_at.startswith("2028")
        assert listed_cases(seen, "r007") == 0
        assert listed_cases(seen, "r008") == 78


def test_the_viewer_sees_that_an_indexed_run_is_written_again(root: Path) -> None:
    catalog = RunCatalog(root)
    states = [{run.state for run in catalog.listed().runs}]
    with Journal(root / "r007"):
        states += [{run.state for run in seen.listed().runs} for seen in (catalog, RunCatalog(root))]
    states.append({run.state for run in catalog.listed().runs})
    assert states == [{"stopped"}, {"stopped", "growing"}, {"stopped", "growing"}, {"stopped"}]


@pytest.mark.parametrize("damage", [b"", b"\xc1", msgspec.msgpack.encode([True, [], 1]), b"\x91" * 100_000])
def test_figures_of_the_index_that_cannot_be_read_are_read_from_the_folder(root: Path, damage: bytes) -> None:
    expected = RunCatalog(root).listed().runs
    tool, runs = msgspec.msgpack.decode((root / RUN_INDEX_FILE).read_bytes())
    runs[7][FIGURES] = damage
    (root / RUN_INDEX_FILE).write_bytes(msgspec.msgpack.encode([tool, runs]))
    catalog = RunCatalog(root)
    while catalog.listed().pending:
        pass
    assert catalog.listed().runs == expected


def test_few_runs_have_no_index(tmp_path: Path) -> None:
    create_run(tmp_path / "one", info(1), ()).close()
    settle(tmp_path / "one")
    assert len(run_headlines(tmp_path)) == 1
    assert not (tmp_path / RUN_INDEX_FILE).exists()
