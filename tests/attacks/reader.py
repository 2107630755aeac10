"""Attacks and the cases that they attack, as the files beside this one have them.

A file in `sets` holds attacks by their class and their name. An attack has an answer that must not pass, and `may`, which says
what may happen to it in each of its scenes: `fails`, it never passes; `tampered`, it fails and is called so; `in-process`, it
may pass, but never as isolated. A scene is a case of `cases/own.toml`, or a problem of a public benchmark in
`cases/joined.toml`, with a reference that is right. An attack can bring tests of its own in the place of its scene's.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard import evalsets
from steelyard.records import Case

HERE = Path(__file__).parent
SET_FILES = tuple(sorted(HERE.glob("sets/*.toml")))
May = Literal["in-process", "fails", "tampered"]


class Attack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A wrong answer that would like to pass."""

    may: dict[str, May]
    """What may happen to it, by its scenes."""
    answer: str
    """For a case with a workspace: what the shell of an agent does there."""
    tests: str = ""
    """The tests of its own, if it has some, in the place of its scene's."""
    reference: str = ""
    """An answer that is right by these."""
    entry_point: str = ""
    stub: str = ""
    slow: bool = False


class Entry(NamedTuple):
    """One attack in one of its scenes."""

    kind: str
    name: str
    scene: str
    case: Case
    attack: Attack
    may: May

    def __str__(self) -> str:
        return f"{self.kind}: {self.name} ({self.scene})"


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem of a public benchmark."""

    problem: dict[str, Any]
    reference: str


@cache
def scenes() -> dict[str, Case]:
    """The cases that are attacked, by their ids."""
    joined = msgspec.toml.decode((HERE / "cases" / "joined.toml").read_bytes(), type=dict[str, Row])
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        rows.write_text("".join(json.dumps(row.problem) + "\n" for row in joined.values()), "utf-8")
        loaded = evalsets.load([rows]).cases
    problems = [
        replace(case, id=name, reference=row.reference)
        for case, (name, row) in zip(loaded, joined.items(), strict=True)
    ]
    own = map(with_packages, evalsets.load([HERE / "cases" / "own.toml"]).cases)
    return {case.id: case for case in (*own, *problems)}


def with_packages(case: Case) -> Case:
    """The case with the packages that are installed here, where it needs some."""
    return replace(case, verify=replace(case.verify, python_env=sys.prefix)) if "packages" in case.tags else case


@cache
def entries(file: Path) -> tuple[Entry, ...]:
    """The attacks of a set, each in all of its scenes, in the order of the file."""
    read = msgspec.toml.decode(file.read_bytes(), type=dict[str, dict[str, Attack]])
    return tuple(
        Entry(kind, name, scene, attacked_case(scenes()[scene], attack, f"{kind}: {name}"), attack, may)
        for kind, named in read.items()
        for name, attack in named.items()
        for scene, may in attack.may.items()
    )


def attacked_case(scene: Case, attack: Attack, name: str) -> Case:
    """The scene with what the attack brings itself."""
    if not attack.tests:
        return scene
    verify = replace(
        scene.verify,
        tests=attack.tests,
        entry_point=attack.entry_point,
        stub=attack.stub or None,
    )
    bare = replace(scene.expectations, test_file="")
    return replace(scene, id=f"{name} ({scene.id})", reference=attack.reference, verify=verify, expectations=bare)
