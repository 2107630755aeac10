"""The menu of the documentation site has every page, and its own pages follow the code. `make site` builds all of it strictly."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

import steelyard
from steelyard.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def menu() -> list[str]:
    lines = (ROOT / "mkdocs.yml").read_text("utf-8").replace("!ENV ", "")

    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [page for below in (entry.values() if isinstance(entry, dict) else entry) for page in pages(below)]

    return pages(YAML(typ="safe").load(lines)["nav"])


def test_the_menu_has_every_page_once() -> None:
    docs = ROOT / "docs"
    there = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    assert sorted(menu()) == sorted([*there, "library-reference.md"]), "name the page in mkdocs.yml"


def test_the_reference_has_every_public_name(site_pages: ModuleType) -> None:
    page = site_pages.library_reference()
    homes = {f"::: {home.replace(':', '.')}" for home in steelyard._HOMES.values()}
    assert homes == {line for line in page.splitlines() if line.startswith(":::")}


def test_links_out_of_the_pages_lead_to_the_repository_or_are_names(site_pages: ModuleType) -> None:
    outside = "see [the file](../examples/ci/github.yml)"
    assert site_pages.without_dead_links(outside, "ci.md", "") == "see the file (`examples/ci/github.yml`)"
    named = site_pages.without_dead_links(outside, "ci.md", "https://example.org/a/")
    assert named == "see [the file](https://example.org/a/blob/main/examples/ci/github.yml)"
    inside = "see [runs](../runs.md)"
    assert site_pages.without_dead_links(inside, "design/x.md", "") == inside


def test_the_manual_page_has_every_command_and_nothing_that_the_formatter_takes_for_a_request() -> None:
    lines = (ROOT / "docs" / "steelyard.1").read_text("utf-8").splitlines()
    assert {line.removeprefix('.SS "steelyard ').rstrip('"') for line in lines if line.startswith(".SS")} == set(
        COMMANDS
    )
    requests = {line.split(" ")[0] for line in lines if line.startswith((".", "'"))}
    assert requests == {'.\\"', ".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".nf", ".fi"}
    assert "\\fB\\-\\-pass\\-k\\fR \\fIK,...\\fR" in lines
