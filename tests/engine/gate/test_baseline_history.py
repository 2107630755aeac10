"""Every bless adds its runs to the history of the baseline, and `gate --history` watches them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from steelyard.cli.main import main
from steelyard.engine.gate.history import read_history
from steelyard.engine.gate.sides import bless
from steelyard.errors import InputError
from steelyard.viewer.pages.history import history as history_page

FILE = Path("steelyard-baselines/main.history.jsonl")


def table(number: int, drop: float = 0.0) -> str:
    """A run of twenty cases as a table of attempts."""
    chance = random.Random(number)
    rows = [f"c{case},gpt,{int(chance.random() < 0.9 - drop)}" for case in range(20) for _ in range(5)]
    path = f"run{number:02}.csv"
    Path(path).write_text("\n".join(["case,model,passed", *rows, ""]))
    return path


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_runs_that_got_worse_are_red_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 11):
        bless([table(number, 0.3 if number >= 6 else 0.0)], "main")
    files = ["-o", "h.html", "-o", "h.json", "-o", "h.md", "-o", "h.txt"]
    assert main(["gate", "--history", "main", *files]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("GOT WORSE\n\ngpt\n  got worse: with run ")
    assert "a step at run 6 (run06.csv)" in shown
    assert Path("h.txt").read_text() == shown
    assert "### `main`: GOT WORSE" in Path("h.md").read_text()
    found = json.loads(Path("h.json").read_text())["history"]
    assert (found["verdict"], found["models"][0]["alarms"][0]["since"]) == ("got worse", 6)
    for page in (Path("h.html").read_text(), history_page(Path("steelyard-baselines"))):
        assert "GOT WORSE" in page
        assert page.count('role="img"') >= 1
        assert "<script>" not in page


def test_a_run_is_in_the_history_once_however_often_it_is_blessed() -> None:
    bless([table(1)], "main")
    bless([table(1), table(2)], "main")
    assert bless(["main", table(3)], "main").history == 4
    assert [entry.run for entry in read_history(FILE)] == ["run01.csv", "run02.csv", "main", "run03.csv"]


def test_a_history_begins_anew_where_a_change_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    bless([table(1), table(2)], "main")
    assert main(["bless", table(3, 0.4), "--as", "main", "--restart-history"]) == 0
    assert [entry.run for entry in read_history(FILE)] == ["run03.csv"]
    assert main(["gate", "--history", "main"]) == 0
    assert "TOO SHORT TO SAY" in capsys.readouterr().out


def test_a_history_that_cannot_be_read_stops_bless_before_it_writes(capsys: pytest.CaptureFixture[str]) -> None:
    baseline = bless([table(1)], "main").path.read_text()
    FILE.write_text(FILE.read_text() + "{\n")
    with pytest.raises(InputError, match=r"main.history.jsonl:2: not a run of a history"):
        bless([table(2)], "main")
    assert Path("steelyard-baselines/main.json").read_text() == baseline
    assert main(["gate", "--history", "main"]) == 2
    assert "--restart-history" in capsys.readouterr().err
    assert "main.history.jsonl:2" in history_page(Path("steelyard-baselines"))


def test_a_history_that_was_emptied_says_how_to_begin_one(capsys: pytest.CaptureFixture[str]) -> None:
    Path("steelyard-baselines").mkdir()
    Path("steelyard-baselines/main.history.jsonl").touch()
    assert main(["gate", "--history", "main"]) == 2
    assert "no runs in it; steelyard bless RUN --as main adds one" in capsys.readouterr().err
    assert "no runs in it" in history_page(Path("steelyard-baselines"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--history", "nothing"], "nothing: no history in steelyard-baselines (there are none yet)"),
        (["--history", "../x"], "../x: no history"),
        (["--history", ""], "no history in steelyard-baselines"),
        (["--history", "main", "a", "b"], "leave sides"),
        (["--history", "main", "-o", "x.pdf"], 'unknown kind of report ".pdf"'),
    ],
)
def test_what_cannot_be_watched_is_refused_in_one_sentence(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", *asked]) == 2
    assert said in capsys.readouterr().err
