"""Imports point one way: words, then pure parts and edges, then the engine, then the fronts."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "steelyard"

ROOMS = {
    "words": {"records", "errors", "protocols", "plugins", "settings", "text"},
    "pure": {"stats", "analysis", "comparison", "tiers", "reports"},
    "edges": {"evalsets", "outcomes", "providers", "sandbox", "verifiers", "store"},
    "engine": {"engine"},
    "fronts": {"cli", "viewer", "__init__"},
}
MAY_IMPORT = {
    "words": {"words"},
    "pure": {"words", "pure"},
    "edges": {"words", "pure"},
    "engine": {"words", "pure", "edges", "engine"},
    "fronts": {"words", "pure", "edges", "engine", "fronts"},
}
SHARED = {"steelyard.store.database", "steelyard.providers.agent.workspaces"}
"""Modules of an edge that know only words, and that other edges may use."""
WORLD = {"asyncio", "datetime", "http", "httpx2", "io.open", "os", "random", "secrets", "socket", "subprocess", "time"}
"""What pure parts do not touch."""


def room(part: str) -> str:
    (found,) = [name for name, parts in ROOMS.items() if part in parts]
    return found


def parts() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        found.setdefault(path.relative_to(SOURCE).parts[0].removesuffix(".py"), []).append(path)
    return found


def imported(path: Path) -> set[str]:
    """The full names of the modules a file imports, wherever in it the import stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


def siblings(path: Path) -> set[str]:
    ours = {name for name in imported(path) if name.startswith("steelyard.")}
    ours -= {
        name
        for name in ours
        for shared in SHARED
        if f"{name}.".startswith(f"{shared}.") or shared.startswith(f"{name}.")
    }
    return {name.split(".")[1] for name in ours}


def test_every_part_has_a_room() -> None:
    assert set(parts()) == set().union(*ROOMS.values())


@pytest.mark.parametrize("part", sorted(parts()))
def test_a_part_imports_only_what_its_room_may(part: str) -> None:
    allowed = set().union(*(ROOMS[name] for name in MAY_IMPORT[room(part)])) | {part}
    if room(part) == "edges":
        allowed -= {"reports"}
    for path in parts()[part]:
        assert siblings(path) <= allowed, f"{path.name} reaches into another room"


def test_an_edge_that_imports_an_edge_would_be_seen() -> None:
    assert siblings(SOURCE / "engine" / "run.py") - set().union(*(ROOMS[name] for name in MAY_IMPORT["edges"]))


@pytest.mark.parametrize("part", sorted(ROOMS["pure"]))
def test_pure_parts_touch_no_file_clock_network_or_chance(part: str) -> None:
    for path in parts()[part]:
        touched = {name.split(".")[0] for name in imported(path)} & WORLD
        # parsing a moment that a record carries asks no clock
        assert touched <= {"datetime"}, f"{path.name} imports {touched}"
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call)
        }
        assert called.isdisjoint({"open", "now", "utcnow", "today", "read_text", "write_text", "read_bytes"})
