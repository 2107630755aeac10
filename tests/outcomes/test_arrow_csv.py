"""Arrow takes lines apart exactly as our own reader does, complaints included."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import InputError
from steelyard.outcomes import columns, files
from steelyard.outcomes.experiments import experiment
from steelyard.outcomes.tables import table

ODD_LINES = (
    *(
        "a,b,c",
        "",
        '"quoted, name",m,true,1,0.5',
        'a"b,m,true,1,0.5',
        "x,m,maybe,1,0.5",
        ",m,true,1,0.5",
        "\ufeffc,m,yes,1,",
    ),
    *(" c ,m , TRUE ,1, 0.25 ", "c,m,,1,1_0", "c,m,0,1,nan", "ü,m,1.0,1,1e-3", "c,m,no,1,2", "c,m,true,1,0.5,6"),
)


def found(path: Path) -> Any:
    try:
        return table([path], sample="sample", score="score")
    except InputError as error:
        return [str(problem) for problem in error.problems]


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_of_reading_agree(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    lines = [f"case-{number % 7},m,{chance.choice(('true', 'false'))},{number},0.5" for number in range(120)]
    # the first files have nothing odd, and are read to their end
    for _ in range(seed // 3):
        lines.insert(chance.randrange(len(lines)), chance.choice(ODD_LINES))
    path = tmp_path / "table.csv"
    path.write_bytes(chance.choice(("\n", "\r\n", "\r")).join(["case,model,passed,sample,score", *lines]).encode())
    monkeypatch.setattr(files, "READ_CHUNK_BYTES", 300)
    monkeypatch.setattr(columns, "ARROW_CHUNK_BYTES", 700)
    ours = found(path)
    scanned: list[Any] = []
    scan = columns.ArrowScanner.columns

    def noted(scanner: columns.ArrowScanner, body: str, rows: int) -> Any:
        scanned.append(scan(scanner, body, rows))
        return scanned[-1]

    monkeypatch.setattr(columns.ArrowScanner, "columns", noted)
    monkeypatch.setattr(columns, "MIN_ARROW_BYTES", 0)
    assert found(path) == ours
    assert any(scanned)


def test_recorded_runs_are_the_same_through_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(__file__).parents[2] / "examples" / "tiers" / "runs.csv"
    ours = experiment(path)
    monkeypatch.setattr(files, "READ_CHUNK_BYTES", 500)
    monkeypatch.setattr(columns, "MIN_ARROW_BYTES", 0)
    assert experiment(path) == ours
