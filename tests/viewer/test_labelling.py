"""A person marks answers in a real browser; nobody else can write, and the judges' opinion comes after the mark."""

from __future__ import annotations

import http.client
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest

from steelyard.records import Label
from steelyard.store.labels import read_labels
from support.browsed import Opening
from support.labelled import judged_run
from support.toolchains import AXE, needs_axe, needs_browser
from support.viewed import Viewer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return judged_run(tmp_path / "judged", cases=4, models=("m/first",))


@pytest.fixture
def labelling(folder: Path) -> Iterator[Viewer]:
    with Viewer(folder, "--by", "ada", command="label") as running:
        yield running


def labels(folder: Path) -> list[Label]:
    return read_labels(folder, lambda problem: pytest.fail(str(problem)))


def posted(viewer: Viewer, form: dict[str, str], *, path: str = "/label", **headers: str) -> tuple[int, str]:
    """What the viewer answers to a form."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    with closing(connection):
        connection.request("POST", path, urlencode(form), {**viewer.own, **kind, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def fields(page: str) -> dict[str, str]:
    """The hidden fields of the form that marks."""
    form = page[page.index('class="marks"') :]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_only_the_pages_of_this_viewer_can_write(labelling: Viewer, folder: Path) -> None:
    form = {**fields(labelling.get("/label").text), "mark": "pass"}
    assert form["csrf"]
    keyless = Viewer.__new__(Viewer)
    keyless.port, keyless.own = labelling.port, {}
    assert posted(keyless, form)[0] == 401
    assert posted(labelling, {**form, "csrf": "0" * 64})[0] == 403
    assert posted(labelling, {name: value for name, value in form.items() if name != "csrf"})[0] == 403
    assert posted(labelling, form, Origin="http://evil.example")[0] == 403
    assert posted(labelling, form, Origin="null")[0] == 403
    assert posted(labelling, form, Host="evil.example")[0] == 421
    assert posted(labelling, form, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert posted(labelling, form, path="/")[0] == 405
    assert posted(labelling, {**form, "mark": "x" * 20_000})[0] == 413
    assert posted(labelling, {**form, "mark": "maybe"})[0] == 400
    assert posted(labelling, {**form, "answer": "nobody"})[0] == 404
    assert labels(folder) == []
    status, _ = posted(labelling, form)
    assert status == 303
    assert [(label.by, label.passed) for label in labels(folder)] == [("ada", True)]


def test_nothing_tells_what_judges_think_before_the_mark(labelling: Viewer) -> None:
    page = labelling.get("/label").text
    form = fields(page)
    for path in ("/", "/runs/judged", "/runs/judged/tiers", "/api/v1/runs", "/compare"):
        assert labelling.get(path).status in (303, 404)
    assert not re.search("j/one|judges say|So it is|0[.]95", page)
    where = f"/label?marked={form['answer']}"
    assert "judges say" not in labelling.get(where).text
    posted(labelling, {**form, "mark": "pass"})
    assert "The judges say" in labelling.get(where).text


def test_view_stays_read_only(folder: Path) -> None:
    with Viewer(folder.parent) as viewer:
        assert viewer.get("/label").status == 404
        assert posted(viewer, {"mark": "pass"})[0] == 405


@needs_browser()
@needs_axe()
def test_a_person_labels_a_run_with_one_key_each(labelling: Viewer, folder: Path, opened: Opening) -> None:
    page = opened(labelling.url).page
    page.wait_for_url("**/label")
    assert "ada has marked 0; 0 of 4 answers" in page.locator("#progress").inner_text()
    assert page.locator("#last").count() == 0

    def marked(key: str, count: int) -> None:
        page.keyboard.press(key)
        page.wait_for_function(
            "count => document.getElementById('progress')?.textContent.includes(`marked ${count};`)", arg=count
        )

    first = page.locator("#case-title").inner_text()
    marked("1", 1)
    assert page.locator("#last-title").inner_text() == f"{first}: you say pass"
    assert "The judges say" in page.locator("#last").inner_text()
    marked("u", 0)
    assert page.locator("#case-title").inner_text() == first
    page.keyboard.press("s")
    page.wait_for_url("**skip=**")
    assert page.locator("#case-title").inner_text() != first
    marked("0", 1)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(all => all.violations)")
        assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], scheme
    # somebody else labels meanwhile, and this viewer is killed
    with Viewer(folder, "--by", "grace", command="label") as other:
        form = fields(other.get("/label").text)
        assert posted(other, {**form, "mark": "fail"})[0] == 303
        other.stop(signal.SIGKILL)
    marked("1", 2)
    page.get_by_label("What is marked").select_option("kind")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**criterion=kind**")
    page.get_by_role("button", name="Fail").click()
    page.wait_for_url("**marked=**")
    labelling.stop(signal.SIGKILL)
    kept = [(label.by, label.criterion, label.passed) for label in labels(folder)]
    assert sorted(kept, key=str) == sorted(
        [
            ("ada", "", True),
            ("ada", "", None),
            ("ada", "", False),
            ("ada", "", True),
            ("ada", "kind", False),
            ("grace", "", False),
        ],
        key=str,
    )


def test_when_all_is_marked_the_page_shows_what_it_comes_to(labelling: Viewer, folder: Path) -> None:
    for _ in range(4):
        form = fields(labelling.get("/label").text)
        assert posted(labelling, {**form, "mark": "pass"})[0] == 303
    page = labelling.get("/label")
    assert "Nothing is left to mark" in page.told
    assert "labels only" in page.told
    assert len({label.case for label in labels(folder)}) == 4
