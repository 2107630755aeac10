"""Outcomes come together from files and runs, and none is taken for another."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import duckdb
import msgspec
import pytest

from steelyard.engine.results.read_outcomes import ColumnOverrides, gather
from steelyard.engine.run import run
from steelyard.errors import InputError
from steelyard.records import Case, Cost, Reply, Verify
from steelyard.store.journal import Journal, StoredRun

FIXES = "oid,iteration_id,plausible_fix\na,1,True\na,2,False\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gemini_fixes.csv").write_text(FIXES)
    (tmp_path / "table.csv").write_text("case,model,passed\na,m,1\na,m,0\n")
    (tmp_path / "results.jsonl").write_text('{"task_id": "t", "passed": true}\n')
    (tmp_path / "model.py").write_text('def right(prompt): return "```python\\ndef one():\\n    return 1\\n```"\n')
    return tmp_path


def made_run(folder: str) -> Path:
    case = Case(id="one", prompt="Write one().", language="python", verify=Verify(tests="assert one() == 1"))
    return run([case], models="python:model.py:right", samples=2, output=folder).folder


def test_files_of_every_kind_and_runs_stand_side_by_side(place: Path) -> None:
    found = gather([str(made_run("runs/a")), "gemini_fixes.csv", "table.csv", "results.jsonl"])
    assert [(tally.model, list(tally.tried), list(tally.passed)) for tally in found.tallies] == [
        ("python/model.py:right", [2], [2]),
        ("gemini", [2], [1]),
        ("results", [1], [1]),
        ("m", [2], [1]),
    ]


def test_a_run_whose_prices_are_known_tells_them(place: Path) -> None:
    folder = made_run("runs/a")
    (unpriced,) = gather([str(folder)]).tallies
    assert unpriced.costs is None
    replies = [fact for fact in StoredRun(folder).facts() if isinstance(fact, Reply)]
    with Journal(folder) as journal:
        for reply in replies:
            answer = msgspec.structs.replace(reply.answer, cost=Cost(usd=0.25, source="list"))
            journal.append(msgspec.structs.replace(reply, answer=answer))
    (priced,) = gather([str(folder)]).tallies
    assert priced.costs == [0.5]
    assert priced.scores == [1.0]


def test_one_model_from_two_places_is_refused_instead_of_mixed_up(place: Path) -> None:
    with pytest.raises(InputError, match=r'"python/model\.py:right" is in several of these'):
        gather([str(made_run("runs/a")), str(made_run("runs/b"))])


def test_columns_that_are_named_make_a_table_of_anything(place: Path) -> None:
    columns = ColumnOverrides(case="oid", passed="plausible_fix", sample="iteration_id")
    (tally,) = gather(["gemini_fixes.csv"], columns=columns).tallies
    assert (tally.model, list(tally.tried)) == ("gemini_fixes", [2])
    (place / "gemini_fixes.csv").write_text("oid,iteration_id,is_fixed\na,1,True\n")
    (fixes,) = gather([], fixes=["gemini_fixes.csv"], columns=ColumnOverrides(passed="is_fixed")).tallies
    assert (fixes.model, list(fixes.passed)) == ("gemini", [1])


@pytest.mark.parametrize(
    ("sources", "what"),
    [
        ([], "no outcomes; name files or runs"),
        (["model.py"], "not a known format of outcomes; name the columns"),
        (["nowhere"], 'no run "nowhere" here'),
        (["."], "not a run folder"),
        (["nowhere.csv"], r"nowhere\.csv: no such file, and no run of that name under steelyard-runs"),
        (["dangling.jsonl"], r"dangling\.jsonl: no such file"),
        (["x" * 300], "xxx: cannot be read: File name too long"),
        (["pipe"], "pipe: neither a file nor a run folder; write its content to a file first"),
        (["empty.csv"], r"empty\.csv: empty; expected a header line"),
        (["wide.csv"], r"wide\.csv:1: a NUL byte; save the file as UTF-8 text"),
        (["latin.csv"], r"latin\.csv:1: not UTF-8 text"),
        (["cut.csv.gz"], r"cut\.csv\.gz: cannot be unpacked"),
        (["odd.parquet"], "name the columns, .*, or count our own attempts with --attempts$"),
        (["none.parquet"], r"none\.parquet: not a Parquet file, or a broken one"),
    ],
)
def test_what_holds_no_outcomes_is_refused_in_one_sentence(place: Path, sources: list[str], what: str) -> None:
    (place / "dangling.jsonl").symlink_to("nowhere")
    os.mkfifo(place / "pipe")
    (place / "empty.csv").write_bytes(b"")
    (place / "wide.csv").write_bytes("case,passed\na,1\n".encode("utf-16"))
    (place / "latin.csv").write_bytes("case,passed,größe\na,1,2\n".encode("latin-1"))
    (place / "cut.csv.gz").write_bytes(gzip.compress(b"case,passed\na,1\n")[:20])
    (place / "none.parquet").write_bytes(b"PAR1")
    duckdb.sql(f"COPY (SELECT 1 AS a) TO '{place / 'odd.parquet'}'")
    with pytest.raises(InputError, match=what) as caught:
        gather(sources)
    assert len(str(caught.value).splitlines()) == 1


def test_problems_alone_have_no_outcomes(place: Path) -> None:
    with pytest.raises(InputError, match="name outcomes as well, with --fixes-csv"):
        gather(["table.csv"], problems="problems.csv")


def test_a_journal_that_is_damaged_is_warned_of(place: Path) -> None:
    folder = made_run("runs/a")
    with (folder / "attempts.jsonl").open("a") as journal:
        journal.write("no fact\n")
    found = gather([str(folder)])
    (warning,) = found.problems
    assert not warning.fatal
    assert warning.what.startswith("not a fact, left out")


def test_all_errors_of_all_files_and_runs_come_at_once(place: Path) -> None:
    (place / "table.csv").write_text("case,passed\na,maybe\n")
    (place / "results.jsonl").write_text('{"task_id": "t", "passed": "maybe"}\n')
    with pytest.raises(InputError) as caught:
        gather(["nowhere", "table.csv", "nowhere.csv", "model.py", "results.jsonl"], fixes=["absent.csv"])
    said = [str(problem) for problem in caught.value.problems]
    named = ['"nowhere"', "nowhere.csv", "model.py", "absent.csv", "results.jsonl:1", "table.csv:2"]
    assert len(said) == len(named)
    assert all(name in sentence for name, sentence in zip(named, said, strict=True))


def test_a_journal_that_cannot_be_opened_is_named(place: Path) -> None:
    folder = made_run("runs/a")
    (folder / "attempts-2.jsonl").mkdir()
    with pytest.raises(InputError, match=r"runs/a/attempts-2\.jsonl: cannot be read: not a plain file"):
        gather([str(folder)])
