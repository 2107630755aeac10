"""Outcomes come together from files and runs, and none is taken for another."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steelyard.engine.gather import Columns, gather
from steelyard.engine.run import run
from steelyard.errors import InputError
from steelyard.records import Case, Cost, Reply, Verify
from steelyard.store import Journal, Stored

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
    replies = [fact for fact in Stored(folder).facts() if isinstance(fact, Reply)]
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
    columns = Columns(case="oid", passed="plausible_fix", sample="iteration_id")
    (tally,) = gather(["gemini_fixes.csv"], columns=columns).tallies
    assert (tally.model, list(tally.tried)) == ("gemini_fixes", [2])
    (place / "gemini_fixes.csv").write_text("oid,iteration_id,is_fixed\na,1,True\n")
    (fixes,) = gather([], fixes=["gemini_fixes.csv"], columns=Columns(passed="is_fixed")).tallies
    assert (fixes.model, list(fixes.passed)) == ("gemini", [1])


@pytest.mark.parametrize(
    ("sources", "what"),
    [
        ([], "no outcomes; name files or runs"),
        (["model.py"], "not outcomes that are known; name the columns"),
        (["nowhere"], 'no run "nowhere" here'),
        (["."], "not a run folder"),
    ],
)
def test_what_holds_no_outcomes_is_refused_in_one_sentence(place: Path, sources: list[str], what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        gather(sources)
    assert len(str(caught.value).splitlines()) == 1


def test_problems_alone_have_no_outcomes(place: Path) -> None:
    with pytest.raises(InputError, match="name outcomes as well, with --fixes-csv"):
        gather(["table.csv"], problems="problems.csv")
