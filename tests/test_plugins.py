"""Parts that are found by name, and functions of the user's own, found by their paths."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.plugins import load_plugin
from steelyard.plugins.built_in import BUILT_IN_PLUGINS, BUILT_IN_SUFFIXES, PluginKind
from steelyard.plugins.user_functions import load_function

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]


def test_our_own_parts_are_registered_the_same_way_as_other_peoples() -> None:
    groups = {name: points for name, points in PROJECT["entry-points"].items() if name.startswith("steelyard.")}
    assert groups == {f"steelyard.{kind}": points for kind, points in BUILT_IN_PLUGINS.items()}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in BUILT_IN_PLUGINS.items() for name in names])
def test_each_of_our_own_parts_can_be_loaded(kind: PluginKind, name: str) -> None:
    assert callable(load_plugin(kind, name))


def test_every_suffix_of_ours_belongs_to_a_part_of_ours() -> None:
    for kind, suffixes in BUILT_IN_SUFFIXES.items():
        assert set(suffixes.values()) <= set(BUILT_IN_PLUGINS[kind])


NO_SCAN = """
import importlib.metadata
def scanned(**selection):
    if selection.get("group", "").startswith("steelyard."):
        raise AssertionError(f"scanned {selection}")
    return ()
importlib.metadata.entry_points = scanned
from steelyard import plugins, reports, settings
from steelyard.plugins import built_in
for kind, names in built_in.BUILT_IN_PLUGINS.items():
    for name in names:
        assert plugins.is_plugin(kind, name)
        plugins.load_plugin(kind, name)
for kind, suffixes in built_in.BUILT_IN_SUFFIXES.items():
    for suffix, name in suffixes.items():
        assert plugins.plugin_for_suffix(kind, suffix) == name
assert reports.report_format_of("a.html") == plugins.plugin_name("reports", "html")
settings.resolve_provider("replay:x", settings.Settings(), {})
"""


def test_our_own_names_need_no_scan_of_what_is_installed() -> None:
    subprocess.run([sys.executable, "-c", NO_SCAN], check=True, timeout=60)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r'unknown backend "rya" \(known: local, ray; did you mean "ray"\?\)'):
        load_plugin("pools", "rya")


FUNCTIONS = """
import sys, time
def one(text): return text.upper()
def two(text, context): return (text, context)
def optional(text, temperature=0.5): return temperature
def named(text, case=None): return case
async def later(text): return text[::-1]
def leaves(text): sys.exit(3)
def stops(text): raise StopIteration(1)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FUNCTIONS)
    return path


@pytest.mark.parametrize(
    ("name", "said"), [("one", "HI"), ("two", ("hi", 7)), ("optional", 0.5), ("named", 7), ("later", "ih")]
)
def test_a_function_gets_what_it_asks_for(file: Path, name: str, said: object) -> None:
    assert asyncio.run(load_function(f"{file}:{name}").call("hi", 7)) == said


@pytest.mark.parametrize("name", ["leaves", "stops"])
def test_a_function_that_would_end_the_program_ends_only_itself(file: Path, name: str) -> None:
    with pytest.raises(RuntimeError):
        asyncio.run(load_function(f"{file}:{name}").call("hi", None))


def test_a_function_that_is_not_there_is_told_in_a_sentence(file: Path) -> None:
    with pytest.raises(InputError, match='has no function "three"'):
        load_function(f"{file}:three")


HANGS = """
import asyncio, sys, time
from steelyard.plugins.user_functions import UserFunction
async def main():
    try:
        async with asyncio.timeout(0.1):
            await UserFunction(lambda text: time.sleep(3600), takes_both=False, is_async=False).call("", None)
    except TimeoutError:
        print("went on")
asyncio.run(main())
"""


def test_a_function_that_hangs_does_not_hold_up_the_end() -> None:
    ran = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "went on\n"


def test_a_file_that_was_changed_within_a_second_is_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "mine.py"
    for said in ("1", "2"):
        path.write_text(f"def one(text): return {said}\n")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert load_function(f"{path}:one").body("") == int(said)
