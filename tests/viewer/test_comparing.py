"""Opened runs held against each other: the same sides as the command line sees, and texts side by side that lose nothing."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import msgspec
import pytest

from steelyard.engine.gate import sides
from steelyard.records import Case
from steelyard.viewer import comparisons
from steelyard.viewer.pages.compare import MAX_DIFF_LINES, is_comparable, side_by_side
from steelyard.viewer.run_cache import SingleFlightCache
from steelyard.viewer.run_view import RunView
from support.viewed import Came, cases, made


@pytest.mark.parametrize("seed", range(8))
def test_a_side_is_what_the_gate_reads_from_the_journal(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    asked = [*cases(6), *(Case(id=f"s{number}", prompt="?", target="x", suite="s", critical=True) for number in (1, 2))]
    attempts = [
        (
            case,
            model,
            number,
            Came(
                dice.choice(("correct", "wrong", "missing", "outage")),
                label=dice.choice(("", "refusal", "timeout")),
                cost=dice.choice((None, 0.5, 0.25)),
            ),
        )
        for case in asked
        for model in ("m/a", "m/b")
        for number in range(1, dice.randrange(2, 6))
    ]
    more = {"m/a": {"case-1": 4}} if seed % 2 else {}
    folder = made(tmp_path, "run", asked, attempts, samples=2, more=more)
    expected = sides.side(str(folder))
    found = comparisons.comparison_side(RunView(folder))
    order = {case.id: place for place, case in enumerate(asked)}
    in_order = {name: sorted(each, key=lambda one: order[one.case]) for name, each in expected.models.items()}
    assert {name: list(each) for name, each in found.models.items()} == in_order
    assert (found.rule, found.runs) == (expected.rule, expected.runs)
    assert set(comparisons.comparison_side(RunView(folder), "m/b").models) == {"m/b"}


def test_every_case_is_in_a_comparison_once_and_culprits_come_first(tmp_path: Path) -> None:
    asked = cases(12)
    before = [(case, "m", number, Came()) for case in asked for number in range(1, 9)]
    after = [
        (case, "m", number, Came("wrong") if place == 0 or (place == 1 and number == 1) else Came())
        for place, case in enumerate(asked)
        for number in range(1, 9)
    ]
    old, new = (
        comparisons.comparison_side(RunView(made(tmp_path, name, asked, attempts)))
        for name, attempts in (("old", before), ("new", after))
    )
    found = comparisons.side_comparison(old, new)
    assert sorted(change.case for change in found.changes) == sorted(case.id for case in asked)
    assert [(change.case, change.state) for change in found.changes[:3]] == [
        ("case-1", comparisons.CaseChangeState.WORSE),
        ("case-2", comparisons.CaseChangeState.SUSPECT),
        ("case-10", comparisons.CaseChangeState.SAME),
    ]
    assert found.gated.decision.verdict == "regressed"
    better = comparisons.side_comparison(new, old)
    assert [change.state for change in better.changes[:2]] == [
        comparisons.CaseChangeState.IMPROVED,
        comparisons.CaseChangeState.IMPROVED,
    ]
    assert msgspec.json.encode(found.gated.decision)


@pytest.mark.parametrize("seed", range(30))
def test_side_by_side_both_texts_are_whole_and_what_is_the_same_stands_together(seed: int) -> None:
    dice = random.Random(seed)
    left, right = (
        "\n".join(dice.choices(("a", "b", "", "long line", "long lane"), k=dice.randrange(30))) for _ in "12"
    )
    pairs = side_by_side(left, right)
    for half, text in (("left", left), ("right", right)):
        lines = [getattr(pair, half) for pair in pairs if getattr(pair, half) is not None]
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))
        assert "\n".join("".join(piece.text for piece in line.pieces) for line in lines) == text
    for pair in pairs:
        same = pair.left is not None and pair.right is not None and pair.left.pieces == pair.right.pieces
        assert pair.is_same == same


def test_in_a_line_that_changed_only_what_differs_is_marked() -> None:
    (pair,) = side_by_side("return x + 1", "return x - 1")
    assert pair.left is not None
    assert [(piece.text, piece.is_changed) for piece in pair.left.pieces] == [
        ("return x ", False),
        ("+", True),
        (" 1", False),
    ]


def test_texts_without_end_are_not_compared() -> None:
    assert is_comparable("a\n" * (MAX_DIFF_LINES - 1), "b")
    assert not is_comparable("a\n" * MAX_DIFF_LINES, "b")
    assert not is_comparable("a", "b" * 1_000_000)
    # the worst there is within the bounds: every line is like every other
    assert len(side_by_side("a\n" * (MAX_DIFF_LINES - 1), "a\n" * (MAX_DIFF_LINES // 2))) == MAX_DIFF_LINES


def test_what_many_ask_for_at_once_is_worked_out_once() -> None:
    kept: SingleFlightCache[int] = SingleFlightCache(2)
    calls: list[int] = []
    begin = threading.Barrier(8)

    def make() -> int:
        calls.append(1)
        return len(calls)

    def ask() -> None:
        begin.wait()
        assert kept.get("a", make) == 1

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]


def test_only_what_was_asked_for_last_is_kept_and_a_failure_is_not() -> None:
    kept: SingleFlightCache[str] = SingleFlightCache(2)
    for key in ("a", "b", "a", "c"):
        kept.get(key, lambda key=key: key)  # type: ignore[misc]
    assert kept.get("a", lambda: "made again") == "a"
    assert kept.get("b", lambda: "made again") == "made again"
    with pytest.raises(ZeroDivisionError):
        kept.get("d", lambda: str(1 / 0))
    assert kept.get("d", lambda: "d") == "d"
