"""Results whose texts stay on disk."""

from __future__ import annotations

import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from engine.results.test_reporting import write_run
from steelyard.analysis.summary import RunResults
from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.engine.results.report_files import write_reports
from steelyard.engine.results.stored_results import StoredResults, stored_results
from steelyard.errors import StoreError
from steelyard.plugins.built_in import BUILT_IN_PLUGINS
from steelyard.records import Failure
from steelyard.reports import ONE_MODEL_FORMATS, render, rendered_pieces
from steelyard.store.journal import Journal, StoredRun
from support.hostile_texts import write_hostile_run
from support.whole_results import run_results

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunResults, StoredResults]:
    """The results of a run in memory, and the same on disk."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    write_hostile_run(folder, endless=False)
    stored = StoredRun(folder)
    return run_results(stored.info, stored.cases, stored.facts()), stored_results(stored)


@pytest.mark.parametrize("name", sorted(set(BUILT_IN_PLUGINS["reports"]) - {"html"}))
def test_a_report_from_disk_has_the_bytes_of_one_from_memory(
    name: str, hostile: tuple[RunResults, StoredResults]
) -> None:
    in_memory, on_disk = hostile
    if name in ONE_MODEL_FORMATS:
        model = in_memory.summary.models[0]
        of_one = [tried for tried in in_memory.attempts if (tried.model, tried.tier) == (model.model, model.tier)]
        in_memory = in_memory._replace(
            attempts=tuple(of_one), summary=type(in_memory.summary)(models=(model,), cases=(), rule="code")
        )
        on_disk = on_disk._replace(
            attempts=on_disk.attempts.of_columns(lambda column: column == (model.model, model.tier)),
            summary=in_memory.summary,
        )
    assert "".join(rendered_pieces(name, on_disk)) == render(name, in_memory)


def test_the_texts_of_a_run_are_never_in_memory_together(tmp_path: Path) -> None:
    cases = {f"case-{number}": 5 for number in range(30)}
    stored = StoredRun(write_run(tmp_path / "run", cases, samples=10, text="x" * 20_000))
    size = (stored.folder / "attempts.jsonl").stat().st_size
    tracemalloc.start()
    try:
        write_reports([tmp_path / "report.json", tmp_path / "report.jsonl"], stored)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 6_000_000
    assert most < size / 2
    assert (tmp_path / "report.jsonl").stat().st_size > size * 0.9


def test_a_journal_that_changes_meanwhile_leaves_the_earlier_report(tmp_path: Path) -> None:
    stored = StoredRun(write_run(tmp_path / "run", {"a": 3}, samples=3))
    results = stored_results(stored)
    report = tmp_path / "report.json"
    report.write_text("earlier")
    journal = stored.folder / "attempts.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[2:], *lines[:2]]))
    with pytest.raises(StoreError, match="changed, so read"):
        write_reports([report], stored, results=results)
    assert report.read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_index_counts_only_as_long_as_the_journal_is_what_it_was(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 3, "b": 1}, samples=3)
    with Journal(folder) as journal:
        summarise_and_cache(journal, journal.info, journal.cases)
    stored = StoredRun(folder)
    path = folder / "attempts.jsonl"
    content, state = path.read_bytes(), path.stat()
    # of the same size and time: the numbers come from the index alone, the texts from the journal
    path.write_bytes(b"x" * len(content))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    indexed = stored_results(stored)
    path.write_bytes(content)
    assert indexed == stored_results(stored)._replace(attempts=indexed.attempts)
    assert list(indexed.attempts) == list(run_results(stored.info, stored.cases, stored.facts()).attempts)
    with Journal(folder) as journal:
        journal.append(
            Failure(key="va/1", at="", case="a", model="lab/model", number=1, stage="verify", message="taken back")
        )
    later = stored_results(stored)
    assert (later.summary.models[0].correct, later.summary.models[0].missing) == (3, 1)
    assert indexed.summary.models[0].correct == 4
