"""A person opens reports in a real browser: they can be read in every way, and nothing in them is obeyed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from steelyard.cli import main as cli
from support.browsed import NARROW, WIDE, Opening, Seen, is_as_wide_as_the_window, kept, launched, opening
from support.hostile_texts import MARK, TEXTS, write_hostile_run
from support.toolchains import needs_browser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

pytestmark = needs_browser()


@pytest.fixture(scope="module")
def reports(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of real runs: recorded replies verified anew, an experiment in tiers, suites, and a hostile run."""
    place = tmp_path_factory.mktemp("reports")
    write_hostile_run(place / "hostile")
    for name, run in (
        ("python", demo / "tuesday"),
        ("suites", demo / "suites"),
        ("tiers", demo / "tiers"),
        ("hostile", place / "hostile"),
    ):
        assert cli.main(["report", str(run), "-o", str(place / f"{name}.html")]) == 0
    both = ["report", str(demo / "tuesday"), "--baseline", str(demo / "monday"), "-o", str(place / "compared.html")]
    assert cli.main(both) == 0
    return {path.stem: path for path in place.glob("*.html")}


@pytest.fixture(scope="module")
def browser(reports: dict[str, Path]) -> Iterator[Browser]:
    """Started after the reports are written: it brings a loop of its own."""
    with launched() as running:
        yield running


@pytest.fixture
def opened(browser: Browser, reports: dict[str, Path]) -> Iterator[Callable[..., Seen]]:
    """Open a report in a profile of its own, with all ears."""
    with opening(browser) as one:
        yield lambda name, **how: one(reports[name].as_uri(), **how)


class Shelf(NamedTuple):
    """Reports that are read once, and lie open for every test that only looks."""

    open_one: Opening
    reports: dict[str, Path]
    seen: dict[str, Seen]

    def look(self, name: str, *, width: int = WIDE, **media: Any) -> Seen:
        """A report as it is when it has just been opened."""
        if name not in self.seen:
            self.seen[name] = self.open_one(self.reports[name].as_uri())
            self.seen[name].page.evaluate(f"window.unfolded = {DETAILS}.map(each => each.open)")
        page = self.seen[name].page
        page.emulate_media(**{"media": "screen", "color_scheme": "light", **media})
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(f"{DETAILS}.forEach((each, place) => each.open = unfolded[place])")
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        return self.seen[name]


DETAILS = "[...document.querySelectorAll('details')]"


@pytest.fixture(scope="module")
def shelf(browser: Browser, reports: dict[str, Path]) -> Iterator[Shelf]:
    with opening(browser) as one:
        yield Shelf(one, reports, {})


REPORTS = ("python", "compared", "suites", "tiers", "hostile")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_asks_for_nothing_and_runs_nothing(name: str, shelf: Shelf) -> None:
    page, asked, said = shelf.look(name)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.mouse.move(200, 400)
    page.keyboard.press("Tab")
    page.wait_for_timeout(300)
    assert asked == [shelf.reports[name].as_uri()]
    assert said == []
    assert page.evaluate(f"typeof window.{MARK}") == "undefined"
    assert page.evaluate("document.scripts.length") == 0


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_a_telephone_and_a_desk_in_both_themes(name: str, scheme: str, shelf: Shelf) -> None:
    for width in (NARROW, WIDE):
        page = shelf.look(name, width=width, color_scheme=scheme).page
        kept(page, f"report {name} {scheme} {width}")
        if name == "python":
            # a picture of the whole page shows what is below the window, too
            shown = page.locator(".attempt > summary").last
            assert shown.evaluate("summary => summary.checkVisibility({contentVisibilityAuto: true})")
        assert is_as_wide_as_the_window(page)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert is_as_wide_as_the_window(page)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(251, 251, 250)" if scheme == "light" else "rgb(19, 21, 23)")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_prints_in_light_on_paper(name: str, shelf: Shelf) -> None:
    page = shelf.look(name, width=720, media="print", color_scheme="dark").page
    kept(page, f"report {name} print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    drawn = page.evaluate("getComputedStyle(document.querySelector('.drawing text')).fill")
    assert drawn == "rgb(38, 38, 38)"
    if name != "hostile":
        assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_has_landmarks_and_headings_to_go_by(name: str, shelf: Shelf) -> None:
    page = shelf.look(name).page
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
    name: str, shelf: Shelf
) -> None:
    page = shelf.look(name).page
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
    box, bar = goal.bounding_box(), page.locator(".sections").bounding_box()
    assert box is not None
    assert bar is not None
    assert bar["y"] + bar["height"] <= box["y"] < 900


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


def test_what_is_hostile_is_there_to_be_read(shelf: Shelf) -> None:
    page = shelf.look("hostile").page
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
