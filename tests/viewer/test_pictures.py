"""The pictures in the documentation are those of real pages; `make pictures` takes them again."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from steelyard.cli import main as cli
from support.browsed import launched, opening
from support.toolchains import needs_browser
from support.viewed import Viewer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = needs_browser()

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL, LARGE = "qwen/qwen2.5-coder-0.5b", "qwen/qwen2.5-coder-1.5b"
PICTURES = {
    "runs": "",
    "run": f"runs/tuesday?case=reverse-words&model={quote(SMALL, safe='')}&sort=hardest",
    "compare": f"compare?baseline={quote(f'tuesday@{LARGE}')}&current={quote(f'tuesday@{SMALL}')}",
    "report": "#charts",
}
"""Pages of the viewer by the names of their pictures, and a place in a report."""
MAX_BYTES = 60_000
MAX_DIFFERENCE = 0.03
"""Of the mean lightness of tiles; other fonts and dates move less, another page or colour moves more."""
UPDATE = bool(os.environ.get("UPDATE_DOCS"))

TILES = """
async sources => Promise.all(sources.map(async source => {
  const image = new Image();
  image.src = "data:image/webp;base64," + source;
  await image.decode();
  const canvas = new OffscreenCanvas(32, 20), drawing = canvas.getContext("2d");
  drawing.imageSmoothingQuality = "high";
  drawing.drawImage(image, 0, 0, 32, 20);
  const pixels = drawing.getImageData(0, 0, 32, 20).data;
  const tiles = Array.from({length: 640}, (_, n) => (pixels[4 * n] + pixels[4 * n + 1] + pixels[4 * n + 2]) / 765);
  return {width: image.naturalWidth, tiles};
}))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of the replies that `steelyard demo` shows."""
    place = tmp_path_factory.mktemp("pictured")
    models = f"replay:{EXAMPLES / 'recordings' / 'python-basics.jsonl.gz'}"
    for name, samples in {"monday": "4", "tuesday": "10"}.items():
        command = [
            "run",
            str(EXAMPLES / "python-basics.toml"),
            "--models",
            models,
            "--limit",
            "8",
            "--samples",
            samples,
        ]
        assert cli.main([*command, "--output", str(place / name), "--quiet"]) == 0
    return place


@pytest.fixture(scope="module")
def viewer(runs: Path) -> Iterator[Viewer]:
    with Viewer(runs) as running:
        yield running


@pytest.fixture(scope="module")
def report(runs: Path) -> Path:
    path = runs / "report.html"
    assert cli.main(["report", str(runs / "tuesday"), "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def browser(report: Path) -> Iterator[Browser]:
    """Started after the report is written: it brings a loop of its own."""
    with launched() as running:
        yield running


def taken(page: Page) -> bytes:
    """What the window shows, in a format that Playwright does not offer by itself."""
    session = page.context.new_cdp_session(page)
    shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": 50})
    return base64.b64decode(shot["data"])


def difference(page: Page, one: bytes, other: bytes) -> float:
    """How far two pictures are apart, from 0 to 1."""
    seen, now = page.evaluate(TILES, [base64.b64encode(each).decode() for each in (one, other)])
    assert seen["width"] == now["width"]
    return float(sum(abs(a - b) for a, b in zip(seen["tiles"], now["tiles"], strict=True)) / len(seen["tiles"]))


def test_pictures_show_pages_as_they_are_and_pages_show_every_picture(
    viewer: Viewer, report: Path, browser: Browser
) -> None:
    shown = "".join(path.read_text("utf-8") for path in DOCS.glob("*.md"))
    with opening(browser) as opened:
        blank = opened("about:blank").page
        for name, place in PICTURES.items():
            page = opened(report.as_uri() + place if name == "report" else viewer.url + place).page
            page.set_viewport_size({"width": 1200, "height": 720})
            picture, path = taken(page), DOCS / "images" / f"{name}.webp"
            if UPDATE:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(picture)
            assert path.stat().st_size <= MAX_BYTES
            assert difference(blank, path.read_bytes(), picture) <= MAX_DIFFERENCE, f"{name}: run make pictures"
            assert f"](images/{name}.webp)" in shown
        assert sorted(path.stem for path in (DOCS / "images").iterdir()) == sorted(PICTURES)
        # two pages of the same style are told apart
        assert difference(blank, *((DOCS / "images" / f"{name}.webp").read_bytes() for name in ("run", "compare"))) > (
            MAX_DIFFERENCE
        )
