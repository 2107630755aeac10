"""Nobody is shut out of a page: axe-core finds no barrier, in light and dark, and a telephone shows all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from steelyard.viewer.export import export
from support.browsed import NARROW, WIDE, Opening, is_as_wide_as_the_window, kept
from support.toolchains import AXE, needs_axe, needs_browser
from support.viewed import Came, Viewer, cases, made

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [needs_browser(), needs_axe()]

QWEN, SMOLLM = "qwen/qwen2.5-coder-0.5b", "smollm/smollm2-135m"
KEPT_RUNS = Path(__file__).parents[1] / "data" / "run-0.1.0" / "runs"
CELL = f"case=reverse-words&model={quote(SMOLLM, safe='')}"
MODELS = f"baseline={quote(f'tuesday@{QWEN}')}&current={quote(f'tuesday@{SMOLLM}')}"
PAGES = {
    "list": "",
    "run": "runs/tuesday",
    "run-and-pane": f"runs/tuesday?{CELL}&outcome=wrong&sort=hardest",
    "run-without-a-match": "runs/tuesday?q=nothing+like+it",
    "attempt": f"runs/tuesday/attempt?{CELL}",
    "compare": "compare",
    "compare-runs": "compare?baseline=monday&current=tuesday&state=all",
    "compare-models": f"compare?{MODELS}&case=reverse-words",
    "attempt-against": f"runs/tuesday/attempt?{CELL}&against=2",
    "history": "history",
    "tiers": "runs/tiers/tiers",
    "suites": "runs/suites/suites",
    "broken": "runs/broken",
    "nowhere": "runs/nowhere",
}
"""Every page of the viewer, in the states that look different."""


def barriers(page: Page) -> list[str]:
    """What is serious or critical, with the place."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(all => all.violations)"
    )
    return [
        f"{one['id']}: {node['html'][:200]} ({node['failureSummary']})"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def is_open_to_all(page: Page, name: str) -> None:
    """Look at a page in both themes and on a telephone, and keep how it looks."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        # colours that are on their way are none that anybody reads
        page.evaluate("Promise.all(document.getAnimations().map(each => each.finished))")
        assert barriers(page) == [], f"{name}, {scheme}"
        assert is_as_wide_as_the_window(page), f"{name}, {scheme}"
        kept(page, f"{name}-{scheme}")
    page.set_viewport_size({"width": NARROW, "height": 900})
    assert is_as_wide_as_the_window(page), f"{name}, {NARROW} pixels"
    kept(page, f"{name}-{NARROW}")
    page.set_viewport_size({"width": WIDE, "height": 900})


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_barriers_in_either_theme(name: str, viewer: Viewer, opened: Opening) -> None:
    page = opened(viewer.url + PAGES[name]).page
    assert page.get_by_role("heading", level=1).count() == 1
    is_open_to_all(page, name)


def test_what_opens_has_no_barriers_either(viewer: Viewer, opened: Opening) -> None:
    page = opened(f"{viewer.url}runs/tuesday").page
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    is_open_to_all(page, "run-unfolded")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = false)")
    page.keyboard.press("?")
    is_open_to_all(page, "keys")


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """A viewer that wants a key, of a run that was killed and is damaged."""
    root = tmp_path_factory.mktemp("strange") / "runs"
    asked = cases(4)
    made(root, "killed", asked, [(asked[0], "m", 1, Came()), (asked[1], "m", 1, Came("missing"))], ended=False)
    with (root / "killed" / "attempts.jsonl").open("ab") as journal:
        journal.write(b'{"kind": "reply", "broken": \n{"kind": "verdict", "cut o')
    with Viewer(root, key="open sesame") as running:
        yield running


def test_the_way_in_and_a_killed_run_have_no_barriers(strange: Viewer, opened: Opening) -> None:
    page = opened(f"{strange.url}runs/killed").page
    is_open_to_all(page, "locked")
    page.get_by_role("textbox", name="Key").fill("open sesame")
    page.keyboard.press("Enter")
    page.get_by_text("Stopped before its end.").wait_for()
    assert "sesame" not in page.url
    is_open_to_all(page, "killed")


def test_an_exported_folder_has_no_barriers(tmp_path: Path, opened: Opening) -> None:
    export(KEPT_RUNS, tmp_path / "pages")
    for name in ("index", "compare"):
        is_open_to_all(opened((tmp_path / "pages" / f"{name}.html").as_uri()).page, f"exported-{name}")


def test_an_empty_folder_has_no_barriers(tmp_path: Path, opened: Opening) -> None:
    (tmp_path / "runs").mkdir()
    with Viewer(tmp_path / "runs") as viewer:
        is_open_to_all(opened(viewer.url).page, "empty")
