"""The attempts of a run are the same, whether they are joined in memory or in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.attempts import AttemptTable, placed_attempt_table
from steelyard.analysis.summary import summarise_attempts
from steelyard.engine.results.attempt_index import BLOCK_ROWS, INDEX_END, StoredRows, index_pieces, read_index
from steelyard.engine.results.attempt_tables import SpilledTableBuilder, stored_attempt_table
from steelyard.engine.results.query import fact_scores
from steelyard.records import Answer, Case, Reply, RunInfo
from steelyard.store.journal import StoredRun, create_run, write_pieces_atomically
from steelyard.store.run_folders import ATTEMPT_INDEX_FILE
from steelyard.viewer.run_view import RunView
from support.mixed_runs import mixed_run


def spilled(stored: StoredRun) -> AttemptTable:
    builder = SpilledTableBuilder(stored.info, stored.cases, stored.folder)
    for place, fact in stored.placed():
        builder.add(place, fact)
    return builder.table([path.name for path in stored.journals()])


def indexed(folder: Path) -> tuple[StoredRun, AttemptTable]:
    """A run with the index of a large one."""
    stored = StoredRun(folder)
    table = spilled(stored)
    summary = summarise_attempts(stored.info, stored.cases, table)
    write_pieces_atomically(folder / ATTEMPT_INDEX_FILE, index_pieces(stored, table, summary))
    return stored, table


@pytest.mark.parametrize("seed", range(8))
def test_a_table_in_a_file_is_the_table_in_memory(tmp_path: Path, seed: int) -> None:
    stored = StoredRun(mixed_run(tmp_path / "run", seed))
    expected = placed_attempt_table(stored.info, stored.cases, stored.placed())
    table = spilled(stored)
    assert isinstance(table.rows, StoredRows)
    assert tuple(table.rows) == expected.rows
    assert (table.columns, table.digests) == (expected.columns, expected.digests)
    assert (table.judged_key_hashes, table.judgment_places) == (expected.judged_key_hashes, expected.judgment_places)
    assert summarise_attempts(stored.info, stored.cases, table) == summarise_attempts(
        stored.info, stored.cases, expected
    )
    # what counts is what the rows name
    counting = [score.counts for score in fact_scores(stored.info, stored.cases, stored.facts())]
    places = {place: number for number, (place, _) in enumerate(stored.placed())}
    named = {
        places[place]
        for row in expected.rows
        for place in (row.reply_place, row.verdict_place, row.failure_place)
        if place >= 0
    }
    assert {place for place, counts in enumerate(counting) if counts} == named


def test_rows_in_a_file_are_read_block_by_block_and_by_the_viewer_as_a_whole(tmp_path: Path) -> None:
    case = Case(id="a", prompt="p", target="x")
    size = 2 * BLOCK_ROWS + 10
    with create_run(tmp_path / "run", RunInfo(id="run", started_at="t", names=("m",), samples=size), [case]) as journal:
        for number in range(1, size + 1):
            answer = Answer(text="x", latency=number / 7)
            journal.append(Reply(key=f"k{number}", at="t", case="a", model="m", number=number, asked="", answer=answer))
    stored, table = indexed(tmp_path / "run")
    rows = table.rows
    assert isinstance(rows, StoredRows)
    assert len(rows) == size
    assert [row.number for row in rows] == list(range(1, size + 1))
    assert rows[-1] == rows[size - 1]
    assert [row.number for row in rows[BLOCK_ROWS - 1 : BLOCK_ROWS + 2]] == [BLOCK_ROWS + each for each in range(3)]
    assert table.row(0, 0, BLOCK_ROWS + 5) == rows[BLOCK_ROWS + 4]
    assert table.row(0, 0, size + 1) is None
    with pytest.raises(IndexError):
        rows[size]
    assert stored_attempt_table(stored, stored.info, stored.cases).rows == tuple(rows)
    assert RunView(tmp_path / "run").rows == tuple(rows)


def test_a_damaged_index_is_made_again(tmp_path: Path) -> None:
    stored, table = indexed(mixed_run(tmp_path / "run", 3))
    path = tmp_path / "run" / ATTEMPT_INDEX_FILE
    whole, rows = path.read_bytes(), tuple(table.rows)
    footer = read_index(stored, len(stored.cases))
    assert footer is not None
    begin = len(footer.summary)
    for damaged in (
        *(whole[1:], whole[:-20] + whole[-16:], INDEX_END, b"\xff" * 8 + INDEX_END, whole + INDEX_END),
        # as long as it was, so that only who reads the block can tell
        whole[:begin] + b"\xc1" + whole[begin + 1 :],
    ):
        path.write_bytes(damaged)
        assert tuple(stored_attempt_table(stored, stored.info, stored.cases).rows) == rows
        assert RunView(tmp_path / "run").rows == rows
