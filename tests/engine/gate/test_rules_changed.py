"""A difference that our own verifiers made by judging otherwise is never called a regression."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from steelyard.comparison.threshold import compare
from steelyard.engine.gate.gate import gate
from steelyard.engine.gate.sides import bless, side
from steelyard.engine.resume import verify_again
from steelyard.engine.run import run
from steelyard.errors import ExitCode, NotComparableError
from steelyard.records import Case, Verify


def made(folder: str, model: str, *ids: str) -> Path:
    cases = [
        Case(id=each, prompt="Write one().", language="python", verify=Verify(tests="assert one() == 1"))
        for each in ids
    ]
    return run(cases, models=[f"python:models.py:{model}"], samples=5, output=folder).folder


def judged_by_older_rules(folder: Path, *ids: str) -> None:
    """Let the verdicts of these cases be those of an earlier version of the verifier."""
    for journal in folder.glob("*.jsonl"):
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(_older(line) if _is_verdict_on(line, ids) else line for line in lines))


def _is_verdict_on(line: str, ids: tuple[str, ...]) -> bool:
    fact: dict[str, Any] = json.loads(line)
    return '"verifier"' in line and (not ids or fact.get("case") in ids)


def _older(line: str) -> str:
    return re.sub(r'"verifier":"python \d+,', '"verifier":"python 0,', line)


def test_a_gate_on_sides_judged_by_different_rules_cannot_tell_and_names_the_way_out(place: Path) -> None:
    old, new = made("runs/old", "right", "a", "b"), made("runs/new", "wrong", "a", "b")
    judged_by_older_rules(old)
    with pytest.raises(
        NotComparableError, match=r"2 cases of .*old judged by older rules.*steelyard verify RUN"
    ) as error:
        gate(old, new)
    assert error.value.exit_code == ExitCode.CANNOT_TELL
    with pytest.raises(NotComparableError, match="older rules"):
        compare(side(str(old)), side(str(new)))


def test_once_the_older_run_is_judged_again_the_gate_decides(place: Path) -> None:
    old, new = made("runs/old", "right", "a", "b"), made("runs/new", "wrong", "a", "b")
    judged_by_older_rules(old)
    verify_again(old)
    assert gate(old, new).decision.verdict == "regressed"


def test_cases_judged_by_the_same_rules_are_compared_and_the_others_are_named_first(place: Path) -> None:
    old, new = made("runs/old", "right", "a", "b", "c"), made("runs/new", "right", "a", "b", "c")
    judged_by_older_rules(old, "b")
    found = gate(old, new)
    assert found.pairing.rules_changed == ("b",)
    assert found.warnings[0].startswith(
        f"1 case of {old.absolute()} judged by older rules of steelyard, not compared: b;"
    )
    compared = compare(side(str(old)), side(str(new)))
    assert (compared.rules_changed, compared.compared) == (("b",), 2)


def test_a_baseline_names_the_rules_and_an_older_one_is_known_by_its_silence(place: Path) -> None:
    old, new = made("runs/old", "right", "a"), made("runs/new", "right", "a")
    judged_by_older_rules(old)
    path = bless([str(old)], "main").path
    assert "python 0" in path.read_text()
    with pytest.raises(NotComparableError):
        gate("main", new)
    path = bless([str(new)], "fresh").path
    assert gate("fresh", new).pairing.rules_changed == ()
    baseline = json.loads(path.read_text())
    for trials in baseline["models"].values():
        for each in trials:
            del each["judged_by"]
    path.write_text(json.dumps(baseline))
    with pytest.raises(NotComparableError):
        gate("fresh", new)


def test_runs_judged_by_different_rules_are_not_pooled(place: Path) -> None:
    old, new = made("runs/old", "right", "a"), made("runs/new", "right", "a")
    judged_by_older_rules(old)
    blessed = bless([str(old), str(new)], "main")
    assert [str(problem) for problem in blessed.problems] == [
        'python/models.py:right: case "a": 1 of 2 runs had other tests or rules and are left out'
    ]
    assert blessed.side.models["python/models.py:right"][0].attempts == 5
