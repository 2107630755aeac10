"""The house rules: which room may import which, and that one name means one thing."""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "steelyard"

ROOMS = {
    "words": {"records", "errors", "protocols", "plugins", "secret_texts", "settings", "text", "languages"},
    "pure": {"stats", "analysis", "comparison", "tiers", "reports"},
    "edges": {"evalsets", "outcomes", "providers", "sandbox", "verifiers", "store"},
    "engine": {"engine"},
    "fronts": {"cli", "library", "viewer", "__init__"},
}
MAY_IMPORT = {
    "words": {"words"},
    "pure": {"words", "pure"},
    "edges": {"words", "pure"},
    "engine": {"words", "pure", "edges", "engine"},
    "fronts": {"words", "pure", "edges", "engine", "fronts"},
}
KNOWS_REPORTS = {"engine", "fronts"}
"""Groups that may import reports, apart from reports itself: what a number is must not depend on how it is shown."""
SHARED = {
    "steelyard.store.database": "readers of outcomes and the store open DuckDB with the same limits",
    "steelyard.store.own_folders": "whoever keeps files in a folder of a known name asks first whose it is",
    "steelyard.store.stored_cases": "an eval set may have as many cases as a run, and keeps them in the same way",
    "steelyard.sandbox.processors": "every part does as much at once as this process has processors for",
    "steelyard.providers.agent.containment": "the sandbox makes the place that the provider of an agent asks for",
    "steelyard.providers.agent.workspaces": "an agent changes a workspace, and verifiers and eval sets read it",
}
"""Modules of an edge that import only words and that other edges may import, each with its reason."""
WORLD = {"asyncio", "datetime", "http", "httpx2", "io.open", "os", "random", "secrets", "socket", "subprocess", "time"}
"""Modules that reach files, clocks, networks or chance: pure rooms do not import them."""
HEAVY = {
    *("anyio", "concurrent", "doctest", "duckdb", "hcl2", "importlib", "jinja2", "jsonschema", "lark"),
    *("msgspec", "multiprocessing", "numpy", "pyarrow", "pydantic_ai", "ray", "re2", "referencing", "tarfile", "yaml"),
}
"""Libraries that take longer to import than most commands take: the function that needs one imports it."""


BROUGHT_BY_OTHERS = {
    "anyio": "starlette is built on it and gives it to its users",
    "lark": "python-hcl2 is built on it",
    "markupsafe": "jinja2 is built on it and gives it to its users",
    "pydantic_ai": "the extra pydantic-ai brings it; where it is not installed, nothing says so",
    "referencing": "jsonschema is built on it and resolves references by it",
    "pytest": "answers are judged by the pytest of their own environment",
    "_pytest": "answers are judged by the pytest of their own environment",
}
"""Libraries that are imported and not declared, each with its reason."""


class Module:
    """One source file: its dotted name and its syntax tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = str(path.relative_to(SOURCE))
        self.part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        self.name = ".".join(["steelyard", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
        self.tree = ast.parse(path.read_text("utf-8"))
        self.nodes = list(ast.walk(self.tree))

    def imports(self) -> Iterator[tuple[str, ast.stmt]]:
        """The full name of everything the module imports, anywhere in it, with the statement."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, node) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{self.place} has a relative import"
                yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


@cache
def modules() -> dict[str, Module]:
    found = (Module(path) for path in sorted(SOURCE.rglob("*.py")))
    return {module.name: module for module in found}


def room(part: str) -> str:
    (name,) = [name for name, parts in ROOMS.items() if part in parts]
    return name


@cache
def parts() -> dict[str, list[Module]]:
    by_part: dict[str, list[Module]] = {}
    for module in modules().values():
        by_part.setdefault(module.part, []).append(module)
    return by_part


@cache
def imported_modules(module: Module) -> set[str]:
    """Our own modules that a module names in an import; `from package import module` names the module alone."""
    names: set[str] = set()
    for name, statement in module.imports():
        if name == "steelyard" and isinstance(statement, ast.Import):
            continue  # importing any module of ours imports the package: this only tells where it lies
        if name in modules():
            names.add(name)
        elif name.rpartition(".")[0] in modules():
            names.add(name.rpartition(".")[0])
    return names


def imported_parts(module: Module) -> set[str]:
    """The parts that a module reaches into; shared modules do not count."""
    return {modules()[name].part for name in imported_modules(module) - set(SHARED)}


def refuse(rule: str, violations: set[str]) -> None:
    assert not violations, f"{rule}: {sorted(violations)}"


def test_every_part_has_a_room() -> None:
    assert set(parts()) == set().union(*ROOMS.values())


# the rooms' own list: every worker of a test run collects these tests, and few of them need all modules parsed
@pytest.mark.parametrize("part", sorted(set().union(*ROOMS.values())))
def test_a_part_imports_only_what_its_room_may(part: str) -> None:
    allowed = set().union(*(ROOMS[name] for name in MAY_IMPORT[room(part)])) | {part}
    if room(part) not in KNOWS_REPORTS and part != "reports":
        allowed -= {"reports"}
    refuse(
        "imports another room",
        {f"{module.place} > {other}" for module in parts()[part] for other in imported_parts(module) - allowed},
    )


def test_an_edge_that_imports_an_edge_would_be_seen() -> None:
    allowed = set().union(*(ROOMS[name] for name in MAY_IMPORT["edges"]))
    assert imported_parts(modules()["steelyard.engine.run"]) - allowed


def test_a_shared_module_imports_only_words() -> None:
    for name in SHARED:
        assert imported_parts(modules()[name]) <= ROOMS["words"] | {"store"}


def test_no_import_runs_in_a_ring_type_checking_included() -> None:
    graph = {name: imported_modules(module) for name, module in modules().items()}
    refuse("import ring", {" > ".join(ring) for ring in rings(graph)})


def test_a_ring_would_be_seen() -> None:
    assert rings({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == [["b", "c"], ["d"]]


def rings(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach each other, smallest name first."""
    reach: dict[str, set[str]] = {}
    for start, first in graph.items():
        seen: set[str] = set()
        waiting = list(first)
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += graph[name]
        reach[start] = seen
    groups = {tuple(sorted(name for name in reach[start] if start in reach[name])) for start in graph}
    return sorted(list(group) for group in groups if group)


@pytest.mark.parametrize("part", sorted(ROOMS["pure"]))
def test_pure_parts_touch_no_file_clock_network_or_chance(part: str) -> None:
    for module in parts()[part]:
        touched = {name.split(".")[0] for name, _ in module.imports()} & WORLD
        # parsing a timestamp that a record carries asks no clock
        assert touched <= {"datetime"}, f"{module.place} imports {touched}"
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in module.nodes
            if isinstance(node, ast.Call)
        }
        assert called.isdisjoint({"open", "now", "utcnow", "today", "read_text", "write_text", "read_bytes"})


def late_imports(module: Module) -> set[tuple[str, str]]:
    """The functions of a module that import something, each with the package that it imports."""
    return {
        (function.name, name.split(".")[0])
        for function in module.functions()
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }


def test_only_the_command_line_imports_late_except_for_heavy_libraries() -> None:
    refuse(
        "late import",
        {
            f"{module.place}:{function}"
            for module in modules().values()
            if module.part != "cli"
            for function, library in late_imports(module)
            if library not in HEAVY
        },
    )


def test_everything_that_is_imported_is_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(each for name in extras if name != "dev" for each in extras[name])]
    names = {re.split(r"[\[<>= ]", each)[0].lower().replace("_", "-") for each in declared}
    providers = packages_distributions()
    imported = {name.partition(".")[0]: module.place for module in modules().values() for name, _ in module.imports()}
    refuse(
        "imports what an installation does not bring",
        {
            f"{place} > {library}"
            for library, place in imported.items()
            if library not in {"steelyard", *sys.stdlib_module_names}
            and names.isdisjoint(each.lower().replace("_", "-") for each in providers.get(library, []))
            and library not in BROUGHT_BY_OTHERS
        },
    )


def test_no_public_class_name_is_defined_twice() -> None:
    places: dict[str, list[str]] = {}
    for module in modules().values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module.place)
    refuse("class name twice", {name for name, where in places.items() if len(where) > 1})


def test_no_two_files_of_tests_have_the_same_name() -> None:
    # pytest refuses to collect the second one
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
