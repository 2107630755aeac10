"""Every name that others build on: who removes one changes public_surface.json knowingly, by UPDATE_GOLDEN=1."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import steelyard as library
from steelyard import protocols
from steelyard.cli.main import COMMANDS, command_parser
from support.command_line import steelyard

TESTS = Path(__file__).parent
SURFACE = TESTS / "public_surface.json"
EVAL_SET = """{"id": "fr", "prompt": "What is the capital of France?", "target": "Paris"}
{"id": "it", "prompt": "What is the capital of Italy?", "target": "Rome"}
"""
REPLIES = """{"id": "fr", "response": "Paris"}
{"id": "it", "response": "Milan"}
"""
RUNS = """experiment,agent_model,tier,subtest,run_number,passed,impl_rate,cost_usd,duration_seconds
e,m,T0,00,1,True,1.0,0.5,10
e,m,T1,00,1,False,0.5,0.7,12
"""
JSON_OF = {
    "run": "run capitals.jsonl -m replay:replies.jsonl --output capitals --format json",
    "compare": "compare capitals capitals --format json",
    "gate": "gate capitals capitals --format json",
    "passk": "passk capitals --format json",
    "tiers": "tiers --runs-csv runs.csv --format json",
}
"""Commands whose documents programs read, in the order in which they are run."""


def members(kind: type) -> list[str]:
    """The methods and attributes that a class declares itself."""
    own = {*vars(kind), *inspect.get_annotations(kind)}
    return sorted(name for name in own if name == "__call__" or not name.startswith("_"))


def seams() -> dict[str, list[str]]:
    """The classes of protocols.py with what they declare."""
    found = inspect.getmembers(protocols, inspect.isclass)
    return {name: members(kind) for name, kind in found if kind.__module__ == protocols.__name__}


def said(action: argparse.Action) -> str:
    """An argument with all its spellings, and what it may be."""
    choices = f" {{{','.join(map(str, action.choices))}}}" if action.choices else ""
    return (" ".join(action.option_strings) or action.dest) + choices


def options() -> dict[str, list[str]]:
    """The arguments of each command."""
    (commands,) = (each for each in command_parser(COMMANDS)._actions if isinstance(each, argparse._SubParsersAction))
    return {
        name: sorted(said(action) for action in parser._actions if action.dest != "help")
        for name, parser in commands.choices.items()
    }


def entry_points() -> dict[str, list[str]]:
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    return {group: sorted(points) for group, points in project["entry-points"].items()}


def json_keys(place: Path) -> dict[str, list[str]]:
    """The keys of each document, two levels deep."""
    for name, content in (("capitals.jsonl", EVAL_SET), ("replies.jsonl", REPLIES), ("runs.csv", RUNS)):
        (place / name).write_text(content, "utf-8")
    found = {}
    for name, line in JSON_OF.items():
        ended = steelyard(place, *line.split())
        assert ended.returncode in (0, 3), (line, ended.stderr)
        found[name] = sorted(keys(json.loads(ended.stdout)))
    return found


def keys(document: dict[str, Any], levels: int = 2) -> Iterable[str]:
    """The keys of a document; what stands in a list of objects has the keys of its first one."""
    for key, value in document.items():
        yield key
        inner, sign = (value[0], "[]") if isinstance(value, list) and value else (value, "")
        if isinstance(inner, dict) and levels > 1:
            yield from (f"{key}{sign}.{name}" for name in keys(inner, levels - 1))


def gone(before: Any, now: Any, where: str = "") -> Iterable[str]:
    """What is no longer there, by its place."""
    if isinstance(before, dict):
        for name, value in before.items():
            yield from gone(value, now.get(name, {} if isinstance(value, dict) else []), f"{where}{name}: ")
        return
    yield from (f"{where}{name}" for name in before if name not in now)


def test_no_public_name_goes_or_comes_unnoticed(tmp_path: Path) -> None:
    surface = {
        "names of steelyard": sorted(library.__all__),
        "seams of protocols.py": seams(),
        "entry points": entry_points(),
        "arguments by command": options(),
        "keys of --format json by command": json_keys(tmp_path),
    }
    if os.environ.get("UPDATE_GOLDEN"):
        SURFACE.write_text(json.dumps(surface, indent=1, ensure_ascii=False) + "\n", "utf-8")
    kept = json.loads(SURFACE.read_text("utf-8"))
    assert not list(gone(kept, surface)), "these names went; UPDATE_GOLDEN=1 writes down that it is on purpose"
    assert not list(gone(surface, kept)), "these names came; UPDATE_GOLDEN=1 writes them down"
