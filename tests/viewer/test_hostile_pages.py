"""A real browser reads what models wrote to take it over: it obeys nothing, and people can still read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

import pytest

from steelyard.text import INVISIBLE_CHARACTER_PATTERN, plain
from support.browsed import NARROW, Opening, Seen, is_as_wide_as_the_window, kept, wait_for
from support.hostile_texts import ENDLESS, MARK, MODELS, TEXTS, cases, write_hostile_run
from support.toolchains import needs_browser
from support.viewed import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = needs_browser()

NAME = "<img src=x onerror=alert(1)> {{7*7}} \u202e"
"""Of the run folder."""
RUN = f"runs/{quote(NAME, safe='')}"
REFUSED = "Failed to load resource: the server responded with a status of 40"
"""What the browser itself says of a page that is a refusal."""
CASES = {name: case.id for name, case in zip((*TEXTS, *ENDLESS), cases(), strict=True)}
"""The ids of the cases, by what their texts are."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """A viewer of runs in which everything is hostile; one of them has replies of megabytes."""
    root = tmp_path_factory.mktemp("hostile") / "runs"
    write_hostile_run(root / NAME)
    write_hostile_run(root / "again", endless=False)
    with Viewer(root) as running:
        yield running
        _, complaints = running.stop()
        assert "Traceback" not in complaints


def obeyed_nothing(seen: Seen, viewer: Viewer) -> None:
    """Nothing was run, said, asked for or opened, and all elements are ours."""
    assert [each for each in seen.said if not each.startswith(REFUSED)] == []
    assert {urlsplit(url).netloc for url in seen.asked} == {f"127.0.0.1:{viewer.port}"}
    assert seen.page.evaluate(f"typeof window.{MARK}") == "undefined"
    assert seen.page.evaluate("[...document.scripts].map(each => new URL(each.src).pathname)") == ["/static/viewer.js"]
    foreign = (
        "iframe, object, embed, img, video, audio, base, math, marquee, style, foreignObject, animate, use, [style]"
    )
    assert seen.page.locator(foreign).count() == 0
    assert not seen.page.evaluate(
        "[...document.querySelectorAll('*')].some(each => [...each.attributes].some(one => one.name.startsWith('on')))"
    )


def is_usable(page: Page) -> None:
    """One heading, one main part, the way home, and nothing that pushes the page aside or covers it."""
    for role in ("main", "banner", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("heading", level=1).is_visible()
    assert page.get_by_role("navigation", name="Pages").get_by_role("link", name="Runs").is_visible()
    assert is_as_wide_as_the_window(page)


def attempt(case: str, number: int = 1) -> str:
    """The address of an attempt of the first model."""
    return f"{RUN}/attempt?{urlencode({'case': case, 'model': MODELS[0], 'number': number})}"


SIDES = urlencode({"baseline": f"{NAME}@{MODELS[0]}", "current": f"{NAME}@{MODELS[1]}"})
PAGES = {
    "list": "",
    "list that is searched": "?" + urlencode({"q": "<script>alert(1)</script>"}),
    "matrix": f"{RUN}?size=100",
    "matrix that is searched": f"{RUN}?" + urlencode({"q": TEXTS["script"], "replies": "1"}),
    "tag": f"{RUN}?" + urlencode({"tag": TEXTS["a picture that fails"][:80], "only": MODELS[0]}),
    "suites": f"{RUN}/suites",
    "tiers": f"{RUN}/tiers",
    "models": f"compare?{SIDES}&state=all",
    "side by side": f"compare?{SIDES}&" + urlencode({"case": CASES["the end of a page"], "state": "all"}),
    "runs": "compare?" + urlencode({"baseline": "again", "current": NAME, "state": "all"}),
    "nowhere": "runs/" + quote("<script>alert(1)</script>"),
    "refused": f"{RUN}?sort=" + quote("<script>alert(1)</script>"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_about_hostile_texts_obeys_none_of_them(name: str, hostile: Viewer, opened: Opening) -> None:
    seen = opened(hostile.url + PAGES[name])
    page = seen.page
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.mouse.move(300, 400)
    page.keyboard.press("Tab")
    is_usable(page)
    page.set_viewport_size({"width": NARROW, "height": 900})
    assert is_as_wide_as_the_window(page)
    obeyed_nothing(seen, hostile)
    kept(page, f"hostile {name}")


def test_every_hostile_reply_can_be_read_to_the_letter_and_does_nothing(hostile: Viewer, opened: Opening) -> None:
    seen = opened(hostile.url)
    page = seen.page
    for name, text in TEXTS.items():
        page.goto(hostile.url + attempt(CASES[name]))
        is_usable(page)
        shown = page.evaluate("[...document.querySelectorAll('pre')].map(each => each.textContent)")
        # what cannot be seen is written out, and of long texts the beginning and the end are shown
        if text.strip() and len(text) < 50_000:
            assert plain(text) in shown, name
        assert not INVISIBLE_CHARACTER_PATTERN.search(page.evaluate("document.body.innerText")), name
        obeyed_nothing(seen, hostile)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_reply_of_megabytes_leaves_a_page_that_can_be_read(name: str, hostile: Viewer, opened: Opening) -> None:
    seen = opened(hostile.url + attempt(CASES[name]), width=NARROW)
    page = seen.page
    is_usable(page)
    assert "characters left out" in page.get_by_role("main").inner_text()
    assert page.evaluate("document.documentElement.outerHTML.length") < 10_000_000
    obeyed_nothing(seen, hostile)


def test_the_keyboard_leads_through_hostile_cells(hostile: Viewer, opened: Opening) -> None:
    seen = opened(f"{hostile.url}{RUN}?size=25")
    page = seen.page
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("#pane").wait_for()
    for name in list(TEXTS)[1:8]:
        page.keyboard.press("j")
        wait_for(page, "id => new URLSearchParams(location.search).get('case') === id", CASES[name])
        wait_for(page, "() => !document.querySelector('[aria-busy]')")
    is_usable(page)
    assert page.evaluate("document.documentElement.classList.contains('quick')")
    # what is typed comes back as what it is
    page.get_by_label("Search").fill(TEXTS["the end of an attribute"])
    wait_for(page, "() => document.querySelectorAll('#cells tbody tr').length < 25")
    page.reload()
    assert page.get_by_label("Search").input_value() == TEXTS["the end of an attribute"]
    obeyed_nothing(seen, hostile)
    kept(page, "hostile pane")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/runs/..%2f..%2fetc%2fpasswd", 404),
        ("/runs/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/runs/again%2fattempts.jsonl", 404),
        ("/runs/again%00", 404),
        ("/runs/again/attempt?case=%00&model=%00", 404),
        ("/runs/again?q=%00", 200),
        ("/runs/again?page=1000000", 200),
        ("/runs/again?page=1000001", 400),
        ("/runs/again?page=" + "9" * 350, 400),
        ("/runs/again?page=1e9", 400),
        ("/runs/again?q=" + "a" * 401, 400),
        ("/runs/again?q=" + "a" * 17_000, 414),
        ("/runs/" + "a" * 17_000, 414),
        ("/runs/again?" + "only=x&" * 61, 400),
        ("/api/v1/runs/again/cases?limit=" + "9" * 300, 400),
        ("/api/v1/runs/again/cases?cursor=9999999.9999.9999999", 200),
        ("/api/v1/runs/..%2fagain", 404),
        ("/api/v1/cases/..%2f..%2fetc%2fpasswd", 404),
        ("/static/..%2f..%2fapp.py", 404),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(path: str, status: int, hostile: Viewer) -> None:
    page = hostile.get(path, headers={"Range": "bytes=0-999999999999999"})
    assert page.status == status, page.told
    assert "Traceback" not in page.text
    assert "root:" not in page.text
    assert len(page.text) < 3_000_000


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"])
@pytest.mark.parametrize("path", ["/", "/runs/again", "/compare", "/static/viewer.js", "/nothing"])
def test_pages_know_no_method_but_reading(method: str, path: str, hostile: Viewer) -> None:
    page = hostile.get(path, method=method)
    assert page.status in (400, 405)
    assert "Traceback" not in page.text


def test_a_page_of_another_host_sees_nothing(hostile: Viewer, opened: Opening) -> None:
    # a name that somebody else lets lead to this machine
    seen = opened("about:blank")
    foreign = f"http://localhost.hostile.invalid:{hostile.port}"
    seen.page.route(
        f"{foreign}/**", lambda route: route.fulfill(body=hostile.get("/", host=urlsplit(foreign).netloc).text)
    )
    seen.page.goto(f"{foreign}/")
    assert seen.page.get_by_role("heading", level=1).inner_text() == "Another host"
    # a page elsewhere neither frames nor reads ours
    seen.page.route(
        "http://hostile.invalid/", lambda route: route.fulfill(body=f"<iframe src='{hostile.url}'></iframe>")
    )
    seen.page.goto("http://hostile.invalid/")
    assert [frame.url for frame in seen.page.frames[1:]] == ["chrome-error://chromewebdata/"]
    read = f"fetch('{hostile.url}api/v1/runs').then(answer => answer.text(), () => 'refused')"
    assert seen.page.evaluate(read) == "refused"
    asked = f"fetch('{hostile.url}api/v1/runs', {{mode: 'no-cors'}}).then(answer => answer.type, () => 'refused')"
    assert seen.page.evaluate(asked) == "refused"
