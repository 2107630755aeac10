"""What became of the attacks, written into their sets and onto the page about them."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from attacks.loop import Outcome
from attacks.reader import SET_FILES, Entry, entries

PAGE = Path(__file__).parents[2] / "docs" / "design" / "attacks.md"
MARK = "<!-- what follows is written by UPDATE_ATTACKS=1 pytest tests/attacks -->"
COLUMNS = ("calls", "program", "plain run", "apart", "control", "rule", "sandbox", "passes in-process")
HEADER = re.compile(r"(?m)^\[(.+)\]\nmay = .*$")


def write_outcomes(file: Path, attacks: Sequence[Entry], found: Sequence[Outcome]) -> None:
    """Write into a set what happened to its attacks; what could not be tried here stays as it is."""
    happened = {
        (one.kind, one.name, one.scene): each.what for one, each in zip(attacks, found, strict=True) if each.what
    }

    def rewritten(part: re.Match[str]) -> str:
        ((kind, named),) = tomllib.loads(part[0]).items()
        ((name, attack),) = named.items()
        may = (f'{scene} = "{happened.get((kind, name, scene), was)}"' for scene, was in attack["may"].items())
        return f"[{part[1]}]\nmay = {{ {', '.join(may)} }}"

    file.write_text(HEADER.sub(rewritten, file.read_text("utf-8")), "utf-8")


def table(found: Sequence[Outcome]) -> list[str]:
    """How many attacks of each class each part of ours has caught, as lines of a page."""
    counts: dict[str, Counter[str]] = {}
    for each in found:
        counts.setdefault(each.kind, Counter())[each.caught_by or "passes in-process"] += 1
    total = sum(counts.values(), Counter())
    rows = [*sorted(counts.items()), ("all", total)]
    head = ["| class | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    return [
        *head,
        *(f"| {kind} | " + " | ".join(str(of[column] or "") for column in COLUMNS) + " |" for kind, of in rows),
    ]


def in_process() -> list[str]:
    """The attacks that may pass, by their classes, as lines of a page."""
    named: dict[str, dict[str, list[str]]] = {}
    for entry in (each for file in SET_FILES for each in entries(file) if each.may == "in-process"):
        named.setdefault(entry.kind, {}).setdefault(entry.name, []).append(entry.scene)
    return [
        f"- **{kind}**: " + "; ".join(f"{name} ({', '.join(scenes)})" for name, scenes in sorted(attacks.items()))
        for kind, attacks in sorted(named.items())
    ]


def write_page(found: Mapping[Path, Sequence[Outcome]]) -> None:
    """Write the page anew below its mark."""
    entries.cache_clear()
    text = PAGE.read_text("utf-8").partition(MARK)[0]
    every = [each for outcomes in found.values() for each in outcomes]
    listed = "\n".join(in_process())
    PAGE.write_text(
        f"{text}{MARK}\n\n" + "\n".join(table(every)) + f"\n\n## What may pass in-process\n\n{listed}\n", "utf-8"
    )
