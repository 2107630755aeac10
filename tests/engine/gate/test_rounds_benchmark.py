"""The study of runs that ask until decided ends each of them as the command does."""

from __future__ import annotations

import pytest
from benchmarks.decisions import CHANGES, SUITES
from benchmarks.rounds import Cell, endings


def assert_same(cell: Cell, repeats: int) -> None:
    quick = endings(cell, repeats=repeats, seed=3)
    assert quick == endings(cell, repeats=repeats, seed=3, is_whole=True)


@pytest.mark.parametrize(
    "cell",
    [
        Cell("settled", 20, 10, "nothing"),
        Cell("noisy", 20, 5, "5 points, few"),
        Cell("weak", 50, 30, "equal model", most=10, least=3),
        Cell("weak", 2, 5, "nothing"),
    ],
    ids=str,
)
def test_the_study_ends_runs_as_the_command_does(cell: Cell) -> None:
    assert_same(cell, 6)


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("cases", [20, 50])
@pytest.mark.parametrize("baseline", [1, 5, 30])
def test_the_study_ends_hundreds_of_runs_as_the_command_does(suite: str, cases: int, baseline: int) -> None:
    for change in CHANGES:
        assert_same(Cell(suite, cases, baseline, change), 3)
