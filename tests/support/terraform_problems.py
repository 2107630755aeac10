"""Terraform modules with something wrong in them, repairs of every quality, and what real programs said of each.

A problem is a folder: the module, and `problem.toml` with the target, four repairs and how successful each is. What
Terraform 1.0.3 and 0.13.5 answered is kept beside, so that the judgement can be tested without them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.records import Target
from steelyard.verifiers.terraform.diagnostics import ValidateOutput, parse_validate_output
from steelyard.verifiers.terraform.levels import RepairLevels
from steelyard.verifiers.terraform.source import with_block_replaced

HERE = Path(__file__).parents[1] / "verifiers" / "terraform"
VERSIONS = ("1.0.3", "0.13.5")
REPAIRS = ("correct", "partial", "masking", "introducing")
ORIGINAL = "original"


class Expected(NamedTuple):
    """How successful a repair is."""

    plausible: bool
    fixed: bool
    strictly_fixed_in_block: bool
    strictly_fixed_in_module: bool


class Repair(NamedTuple):
    """A new text for some lines of a file, or for all of it."""

    file: str
    content: str
    expected: Expected
    line_start: int | None = None
    line_end: int | None = None

    def applied(self, sources: dict[str, str]) -> dict[str, str]:
        """The files of a module after this repair."""
        if self.line_start is None or self.line_end is None:
            return sources | {self.file: self.content}
        repaired = with_block_replaced(sources[self.file], self.line_start, self.line_end, self.content)
        return sources | {self.file: repaired}


class Problem(NamedTuple):
    """A module, what is to be repaired in it, and repairs by name."""

    name: str
    about: str
    target: Target
    repairs: dict[str, Repair]
    sources: dict[str, str]
    """The files of the module and of those it calls, by their paths."""
    versions: tuple[str, ...] = VERSIONS
    """The versions of Terraform that show the target."""


@cache
def problems(version: str = VERSIONS[0]) -> tuple[Problem, ...]:
    """All problems that this version of Terraform shows, by name."""
    found = map(_problem, sorted((HERE / "problems").iterdir()))
    return tuple(problem for problem in found if version in problem.versions)


def _problem(folder: Path) -> Problem:
    told = tomllib.loads((folder / "problem.toml").read_text("utf-8"))
    return Problem(
        name=folder.name,
        about=told["about"],
        target=msgspec.convert(told["target"], Target),
        repairs={
            name: Repair(**{**repair, "expected": Expected(**repair["expected"])})
            for name, repair in told["repairs"].items()
        },
        sources={path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.tf"))},
        versions=tuple(told.get("versions", VERSIONS)),
    )


@cache
def recorded(name: str, version: str = VERSIONS[0]) -> dict[str, ValidateOutput]:
    """What this version of Terraform said of the original, and after each repair."""
    answers = msgspec.json.decode((HERE / "recorded" / version / f"{name}.json").read_bytes())
    return {repair: parse_validate_output(msgspec.json.encode(answer)) for repair, answer in answers.items()}


def reached(levels: RepairLevels) -> tuple[bool | None, ...]:
    """The levels of success as a problem expects them."""
    return levels.plausible, levels.fixed, levels.strictly_fixed_in_block, levels.strictly_fixed_in_module
