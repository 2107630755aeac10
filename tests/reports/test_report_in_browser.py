"""A person opens reports in a real browser: they can be read in every way, and nothing in them is obeyed."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hostile_texts import MARK, TEXTS, write_hostile_run
from steelyard import cli
from toolchains import needs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Dialog, Page

if "CI" not in os.environ:
    pytest.importorskip("playwright")
pytestmark = needs("chromium")

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SUITES = (
    "suite:contradictions",
    "suite:injection",
    "suite:json_api",
    "suite:long_context@2000",
    "suite:unicode_locale",
)
NARROW, WIDE = 400, 1200


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of real runs: recorded replies verified anew, an experiment in tiers, suites, and a hostile run."""
    place = tmp_path_factory.mktemp("reports")
    shutil.copytree(EXAMPLES, place / "examples")
    experiment = place / "examples" / "tiers" / "experiment.toml"
    experiment.write_text(experiment.read_text("utf-8").replace("runs = 4", "runs = 1"), "utf-8")
    before = Path.cwd()
    os.chdir(place)
    try:
        recorded = "replay:examples/recordings/python-basics.jsonl.gz"
        python = ["run", "examples/python-basics.toml", "--models", recorded, "--limit", "4", "--pass-k", "1,5"]
        assert cli.main([*python, "--samples", "5", "--output", "runs/before"]) == 0
        assert cli.main([*python, "--output", "runs/python"]) == 0
        suites = ["run", *SUITES, "--models", "replay:examples/recordings/suites.jsonl.gz", "--output", "runs/suites"]
        assert cli.main(suites) == 0
        assert cli.main(["tiers", str(experiment), "--output", "runs/tiers"]) == 0
        write_hostile_run(Path("runs/hostile"))
        for name in ("python", "suites", "tiers", "hostile"):
            assert cli.main(["report", f"runs/{name}", "-o", f"{name}.html"]) == 0
        assert cli.main(["report", "runs/python", "--baseline", "runs/before", "-o", "compared.html"]) == 0
    finally:
        os.chdir(before)
    return {path.stem: path for path in place.glob("*.html")}


@pytest.fixture(scope="module")
def browser(reports: dict[str, Path]) -> Iterator[Browser]:
    """Started after the runs are done: it brings a loop of its own."""
    from playwright.sync_api import sync_playwright

    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            headless=True,
            chromium_sandbox=False,
            args=[*quiet, "--disable-component-update", "--disable-sync"],
        )
        with closing(launched):
            yield launched


class Seen(NamedTuple):
    """A page, and all that it did."""

    page: Page
    asked: list[str]
    """Every address that was asked for."""
    said: list[str]
    """What it wrote to the console, its errors, its dialogs, and the windows that it opened."""


@pytest.fixture
def opened(browser: Browser, reports: dict[str, Path]) -> Iterator[Callable[..., Seen]]:
    """Open a report, with all ears."""
    contexts = []

    def one(name: str, *, width: int = WIDE, **how: Any) -> Seen:
        context = browser.new_context(viewport={"width": width, "height": 900}, **how)
        contexts.append(context)
        page = context.new_page()
        seen = Seen(page, [], [])
        page.on("request", lambda request: seen.asked.append(request.url))
        page.on("console", lambda message: seen.said.append(message.text))
        page.on("pageerror", lambda error: seen.said.append(str(error)))
        page.on("dialog", lambda dialog: dismissed(dialog, seen.said))
        page.on("popup", lambda popup: seen.said.append(popup.url))
        page.goto(reports[name].as_uri())
        return seen

    yield one
    for context in contexts:
        context.close()


def dismissed(dialog: Dialog, said: list[str]) -> None:
    said.append(dialog.message)
    dialog.dismiss()


def is_as_wide_as_the_window(page: Page) -> bool:
    wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    return bool(wide <= window)


REPORTS = ("python", "compared", "suites", "tiers", "hostile")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_asks_for_nothing_and_runs_nothing(
    name: str, opened: Callable[..., Seen], reports: dict[str, Path]
) -> None:
    page, asked, said = opened(name)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.mouse.move(200, 400)
    page.keyboard.press("Tab")
    page.wait_for_timeout(300)
    assert asked == [reports[name].as_uri()]
    assert said == []
    assert page.evaluate(f"typeof window.{MARK}") == "undefined"
    assert page.evaluate("document.scripts.length") == 0


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_a_telephone_and_a_desk_in_both_themes(
    name: str, scheme: str, opened: Callable[..., Seen], tmp_path: Path
) -> None:
    for width in (NARROW, WIDE):
        page = opened(name, width=width, color_scheme=scheme).page
        page.screenshot(path=tmp_path / f"{name}-{scheme}-{width}.png")
        assert is_as_wide_as_the_window(page)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert is_as_wide_as_the_window(page)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(251, 251, 250)" if scheme == "light" else "rgb(19, 21, 23)")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_prints_in_light_on_paper(name: str, opened: Callable[..., Seen], tmp_path: Path) -> None:
    page = opened(name, color_scheme="dark", width=720).page
    page.emulate_media(media="print")
    page.screenshot(path=tmp_path / f"{name}-print.png")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    drawn = page.evaluate("getComputedStyle(document.querySelector('.drawing text')).fill")
    assert drawn == "rgb(38, 38, 38)"
    if name != "hostile":
        assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_has_landmarks_and_headings_to_go_by(name: str, opened: Callable[..., Seen]) -> None:
    page = opened(name).page
    for landmark in ("banner", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1
    assert page.get_by_role("navigation", name="Sections").count() == 1
    assert page.get_by_role("heading", level=1).count() == 1
    sections = page.locator("main > section")
    assert sections.count() >= 5
    for place in range(sections.count()):
        assert sections.nth(place).get_by_role("heading", level=2).count() == 1
    assert page.locator("svg").count() == page.get_by_role("img").count() > 0


@pytest.mark.parametrize("name", REPORTS)
def test_the_verdict_and_the_numbers_stand_on_the_first_screen_and_charts_before_the_matrix(
    name: str, opened: Callable[..., Seen]
) -> None:
    page = opened(name).page
    tops = [page.locator(each).first.bounding_box() for each in (".verdict", ".headline", "#charts", "#matrix")]
    places = [box["y"] for box in tops if box is not None]
    assert len(places) == 4
    assert places == sorted(places)
    assert places[1] < 600


def test_the_keyboard_is_enough_to_read_an_attempt(opened: Callable[..., Seen]) -> None:
    page = opened("python").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    first = page.locator("details.attempt > summary").first
    first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.attempt").first.get_attribute("open") is not None
    assert page.locator("details.attempt .code .k").first.is_visible()
    page.keyboard.press("Enter")
    assert page.locator("details.attempt").first.get_attribute("open") is None


def test_a_cell_leads_to_its_attempts(opened: Callable[..., Seen]) -> None:
    page = opened("python").page
    page.locator("a.cell").nth(2).click()
    page.wait_for_timeout(600)
    goal = page.locator(":target")
    assert goal.get_attribute("class") == "group"
    box = goal.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900


def test_what_is_correct_can_be_put_away_without_a_script(opened: Callable[..., Seen]) -> None:
    page = opened("python").page
    correct, wrong = page.locator("details.attempt.correct").first, page.locator("details.attempt.wrong").first
    assert correct.is_visible()
    page.get_by_label("Hide correct attempts").check()
    assert not correct.is_visible()
    assert wrong.is_visible()
    same = page.locator(".matrix tr.same")
    if same.count():
        page.get_by_label("Only where models differ").check()
        assert not same.first.is_visible()


def test_colours_of_charts_follow_the_theme(opened: Callable[..., Seen]) -> None:
    read = "[...document.querySelectorAll('.drawing text')].map(each => getComputedStyle(each).fill)"
    light, dark = (set(opened("python", color_scheme=scheme).page.evaluate(read)) for scheme in ("light", "dark"))
    assert "rgb(38, 38, 38)" in light
    assert "rgb(223, 226, 229)" in dark
    assert light.isdisjoint(dark)


def test_what_is_hostile_is_there_to_be_read(opened: Callable[..., Seen]) -> None:
    page = opened("hostile").page
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    shown = page.evaluate("[...document.querySelectorAll('pre')].map(each => each.textContent)")
    for text in ("script", "a picture that fails", "the end of preformatted text", "a template expression", "a form"):
        assert TEXTS[text] in shown
    assert page.locator("article.case").count() > len(TEXTS)
    whole = page.evaluate("document.documentElement.outerHTML.length")
    assert whole < 6_000_000
    assert not page.evaluate(
        "[...document.querySelectorAll('*')].some(each => [...each.attributes].some(a => a.name.startsWith('on')))"
    )
    bad = "script, iframe, object, embed, img, video, audio, form, link, base, math, foreignObject, animate, use"
    assert page.locator(bad).count() == 0
