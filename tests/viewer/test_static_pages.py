"""The pages of a folder of runs as files, which a browser shows without a server and without a network."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from steelyard.errors import InputError
from steelyard.viewer.export import ExportedPages, PageKey, _file_name, export
from support.command_line import steelyard
from support.hostile_texts import write_hostile_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KEPT_RUNS = Path(__file__).parents[1] / "data" / "run-0.1.0" / "runs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("exported") / "runs"
    shutil.copytree(KEPT_RUNS / "whole", runs / "whole")
    shutil.copytree(KEPT_RUNS / "whole", runs / "Whole & <b>again</b>")
    (runs / "broken").mkdir()
    (runs / "broken" / "run.json").write_text("{")
    return runs


@pytest.fixture(scope="module")
def written(folder: Path) -> ExportedPages:
    return export(folder, folder.parent / "pages")


@pytest.fixture(scope="module")
def pages(folder: Path, written: ExportedPages) -> Path:
    assert written.pages > 10
    return folder.parent / "pages"


def test_every_link_leads_to_a_file_of_the_bundle_or_nowhere(pages: Path) -> None:
    checked = 0
    for page in pages.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text("utf-8")):
            assert (page.parent / unquote(link)).resolve().is_relative_to(pages.resolve())
            assert (page.parent / unquote(link)).is_file(), f"{page.name}: {link}"
            checked += 1
    assert checked > 100


def test_pages_need_no_script_no_form_and_no_server(pages: Path) -> None:
    for page in pages.rglob("*.html"):
        text = page.read_text("utf-8")
        assert not re.search(r"<script|<form|/api/v1|data-pulse", text), page.name
        assert "default-src 'none'" in text
    assert not list(pages.rglob("*.js"))


def test_runs_attempts_and_comparisons_are_all_there_and_a_broken_run_says_so(
    pages: Path, written: ExportedPages
) -> None:
    attempts = list((pages / "runs" / "whole" / "attempts").iterdir())
    asked = 3 * 2 * 2
    assert len(attempts) == asked, "cases, models, attempts; one of them is missing and has a page as well"
    assert list((pages / "compare").iterdir())
    assert "Compare" in (pages / "compare.html").read_text("utf-8")
    assert [problem for problem in written.problems if problem.startswith("broken: ")]


def test_an_export_does_not_overwrite_anything(folder: Path, pages: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="already exists, and is not an empty folder"):
        export(folder, pages)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot be written"):
        export(folder, tmp_path / "file" / "pages")
    assert (tmp_path / "file").read_text() == "mine"


def test_names_of_strangers_stay_below_the_folder_and_apart() -> None:
    names = ["..", "a/../../b", "A", "a", "", "x" * 300, "\udcff", "con <b>"]
    files = [_file_name(PageKey("run", name)) for name in names]
    assert len({file.lower() for file in files}) == len(names)
    assert all(re.fullmatch(r"runs/[A-Za-z0-9_][A-Za-z0-9._-]{0,80}/index\.html", file) for file in files), files


def test_the_command_writes_the_bundle_and_says_where(folder: Path, tmp_path: Path) -> None:
    done = steelyard(tmp_path, "view", str(folder / "whole"), "--export", "pages")
    assert (done.returncode, done.stdout) == (0, "pages/index.html\n")
    assert (tmp_path / "pages" / "index.html").is_file()
    unnamed = steelyard(tmp_path, "view", str(folder / "whole"), "--export", "")
    assert (unnamed.returncode, unnamed.stderr) == (
        2,
        'steelyard: --export "": name the new folder, such as --export pages\n',
    )
    assert steelyard(tmp_path, "view", str(folder / "whole"), "--export", "pages").returncode == 2


def test_a_browser_walks_the_bundle_from_a_file_without_a_network(pages: Path, browser: Browser) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(request.url))
    page.goto((pages / "index.html").as_uri())
    assert page.evaluate("getComputedStyle(document.querySelector('.bar')).display") != "block", "the style is not read"
    page.get_by_role("link", name="whole", exact=True).click()
    assert page.locator("h1").inner_text() == "whole"
    page.locator("a.cell").first.click()
    assert "attempt" in page.locator("h1").inner_text()
    page.get_by_role("link", name="Next →").click()
    page.get_by_role("link", name="Compare", exact=True).click()
    page.locator("main a").first.click()
    assert page.locator("#verdict").is_visible()
    page.locator("#changes table a").first.click()
    assert page.locator("#beside").is_visible()
    context.close()
    assert said == []


@pytest.mark.slow
def test_what_models_wrote_does_nothing_in_the_bundle(tmp_path: Path, browser: Browser) -> None:
    write_hostile_run(tmp_path / "runs" / "hostile", endless=False)
    export(tmp_path / "runs", tmp_path / "pages")
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    for file in sorted((tmp_path / "pages").rglob("*.html"))[:12]:
        page.goto(file.as_uri())
    context.close()
    below = (tmp_path / "pages").as_uri()
    assert asked
    assert [url for url in asked if not url.startswith(below)] == []
