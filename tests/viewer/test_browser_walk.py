"""A person's walk through the viewer in a real browser, by mouse, by keyboard and without script."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from support.browsed import NARROW, Opening, Seen, is_as_wide_as_the_window, wait_for
from support.toolchains import needs_browser
from support.viewed import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = needs_browser()

COUNT = 8
"""Cases of the runs that are read here."""


def asked(page: Page) -> dict[str, str]:
    """The state of a page, which is in its address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def shown(page: Page) -> list[str]:
    """The cases in the matrix, from top to bottom."""
    return page.locator("#cells .case-id").all_text_contents()


def focused(page: Page) -> str:
    """The text of what has the focus."""
    return str(page.evaluate("document.activeElement.textContent"))


def was_loaded_once(page: Page) -> bool:
    """Whether all since the mark went without loading the page anew."""
    return bool(page.evaluate("window.mark") == 1)


def was_quiet(seen: Seen, viewer: Viewer) -> None:
    """Nothing was said to the console, and nobody else was asked."""
    assert seen.said == []
    assert {urlsplit(url).netloc for url in seen.asked} == {f"127.0.0.1:{viewer.port}"}


def until(page: Page, **values: str) -> None:
    """Wait until the address says so; an empty value means that it is silent about it."""
    wait_for(
        page,
        "values => Object.entries(values).every(([name, value]) =>"
        " (new URLSearchParams(location.search).get(name) ?? '') === value)",
        values,
    )
    wait_for(page, "() => !document.querySelector('[aria-busy]')")


def answered_late(route: Route) -> None:
    """Let a request reach the viewer half a second later."""
    time.sleep(0.5)
    route.continue_()


def test_from_the_list_over_a_cell_to_what_a_model_wrote_and_back(viewer: Viewer, opened: Opening) -> None:
    seen = opened(viewer.url)
    page = seen.page
    assert page.title() == "Runs · steelyard"
    # the newest run first, and what cannot be read is said
    assert page.locator("table.runs th a").all_text_contents() == ["tiers", "suites", "tuesday", "monday", "broken"]
    assert page.get_by_role("img", name=re.compile("pass@1 over 2 runs")).count() == 2
    page.get_by_label("Search").fill("tues")
    until(page, q="tues")
    wait_for(page, "() => document.querySelectorAll('table.runs tbody').length === 1")
    page.locator("#list").get_by_role("link", name="tuesday", exact=True).click()
    page.wait_for_url("**/runs/tuesday")
    page.evaluate("window.mark = 1")
    assert len(shown(page)) == COUNT

    page.get_by_label("Outcome").select_option("wrong")
    until(page, outcome="wrong")
    page.get_by_label("Category").select_option("does not compile")
    until(page, outcome="wrong", label="does not compile")
    wrong = shown(page)
    assert 0 < len(wrong) < COUNT
    page.get_by_label("Sort").select_option("hardest")
    until(page, outcome="wrong", label="does not compile", sort="hardest")
    hardest = shown(page)
    assert sorted(hardest) == sorted(wrong)
    assert hardest != wrong
    page.get_by_role("checkbox", name="different between models").check()
    until(page, different="1")
    different = shown(page)
    assert set(different) <= set(hardest)

    cell = page.locator("#cells .cell.none, #cells .cell.part").first
    case = cell.locator("xpath=ancestor::tr").locator(".case-id").inner_text()
    cell.click()
    until(page, case=case)
    pane = page.get_by_role("region", name=case)
    assert pane.get_by_role("heading", level=2).inner_text() == case
    assert pane.locator(".outcome").inner_text().strip()
    assert "def " in pane.inner_text()
    assert page.locator("#announcement").inner_text().startswith(f"{case}, ")
    assert shown(page) == different
    assert was_loaded_once(page)
    first = asked(page)

    pane.get_by_role("link", name="Alone").click()
    page.wait_for_url("**/attempt?**")
    assert page.get_by_role("heading", level=1).inner_text().startswith(case)
    assert page.locator("#case").inner_text().startswith("The case")
    alone = page.url
    page.keyboard.press("n")
    page.wait_for_url(lambda url: url != alone)

    page.go_back()
    page.go_back()
    page.wait_for_url("**/runs/tuesday?**")
    assert asked(page) == first
    assert page.get_by_label("Outcome").input_value() == "wrong"
    assert page.get_by_label("Sort").input_value() == "hardest"
    assert page.get_by_role("checkbox", name="different between models").is_checked()
    page.locator("#close").click()
    until(page, case="")
    assert page.locator("#pane").count() == 0
    assert shown(page) == different
    page.go_back()
    until(page, case=case)
    page.locator("#pane").wait_for()
    was_quiet(seen, viewer)


def test_the_keyboard_is_enough_to_read_a_run(viewer: Viewer, opened: Opening) -> None:
    seen = opened(f"{viewer.url}runs/tuesday")
    page = seen.page
    page.evaluate("window.mark = 1")
    cases = shown(page)
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to content"
    page.keyboard.press("j")
    first = page.locator("#cells .cell").nth(0)
    assert first.evaluate("each => each === document.activeElement")
    page.keyboard.press("Enter")
    until(page, case=cases[0])
    page.keyboard.press("j")
    until(page, case=cases[1])
    page.keyboard.press("j")
    until(page, case=cases[2])
    page.keyboard.press("k")
    until(page, case=cases[1])
    model = asked(page)["model"]
    page.keyboard.press("l")
    wait_for(page, "was => new URLSearchParams(location.search).get('model') !== was", model)
    wait_for(page, "() => !document.querySelector('[aria-busy]')")
    page.keyboard.press("h")
    until(page, case=cases[1], model=model)
    page.keyboard.press("ArrowDown")
    until(page, case=cases[2], model=model)

    page.locator("#pane nav.attempts a").first.click()
    until(page, number="1")
    assert page.locator("#previous").count() == 0
    page.keyboard.press("n")
    until(page, number="2")
    page.keyboard.press("n")
    until(page, number="3")
    page.keyboard.press("p")
    until(page, number="2")

    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("j")
    assert page.get_by_label("Search").input_value() == "j"
    page.keyboard.press("Backspace")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    assert keys.is_visible()
    page.keyboard.press("Escape")
    assert not keys.is_visible()
    until(page, number="2", q="")
    page.keyboard.press("Escape")
    until(page, case="")
    assert page.locator("#pane").count() == 0
    assert was_loaded_once(page)

    # a search that still waits does not undo what was pressed after it, however slow the answer is
    page.locator("#cells .cell").first.click()
    until(page, case=cases[0])
    page.route("**/runs/tuesday*", answered_late)
    page.keyboard.press("/")
    page.keyboard.type("j")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    until(page, case="")
    assert page.locator("#pane").count() == 0
    page.unroute("**/runs/tuesday*")

    # who speaks to the machine, or presses keys by accident, can put single letters away
    page.keyboard.press("?")
    keys.get_by_label("Use single keys").uncheck()
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.body")
    page.reload()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement === document.body")
    was_quiet(seen, viewer)


def test_two_runs_ticked_in_the_list_are_compared_down_to_their_words(viewer: Viewer, opened: Opening) -> None:
    seen = opened(viewer.url)
    page = seen.page
    for name in ("suites", "tuesday", "monday"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    # two at the most: the one that was ticked first gives way
    ticked = page.evaluate("[...document.querySelectorAll('input[name=run]:checked')].map(each => each.value)")
    assert ticked == ["tuesday", "monday"]
    page.get_by_role("button", name="Compare the two chosen").click()
    page.wait_for_url("**/compare?**")
    assert page.get_by_label("Baseline: what it was").input_value() == "monday"
    assert page.get_by_label("Current: what it is now").input_value() == "tuesday"
    assert page.locator("#verdict h2").count() == 2
    page.get_by_role("navigation", name="Which cases").get_by_role("link").nth(1).click()
    page.wait_for_url("**&state=**")
    case = page.locator("table.changes th a").first.inner_text()
    page.locator("table.changes th a").first.click()
    page.wait_for_url("**#beside")
    beside = page.get_by_role("region", name=re.compile(re.escape(case))).last
    assert beside.get_by_role("region", name="Side by side").locator("tr").count() > 0
    beside.get_by_role("link", name="code", exact=True).click()
    page.wait_for_url("**what=code**")
    page.get_by_role("link", name="Swap").click()
    page.wait_for_url("**/compare?baseline=tuesday&current=monday")
    assert page.get_by_label("Baseline: what it was").input_value() == "tuesday"

    page.get_by_label("Baseline: what it was").select_option("tuesday@qwen/qwen2.5-coder-0.5b")
    page.get_by_label("Current: what it is now").select_option("tuesday@smollm/smollm2-135m")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?baseline=tuesday%40qwen**")
    assert "REGRESSED" in page.locator("#verdict").inner_text()
    assert page.locator(".mark", has_text="got worse").count() + page.locator(".mark", has_text="suspect").count() > 0
    was_quiet(seen, viewer)


def test_tiers_and_suites_are_reached_from_their_runs_and_lead_to_cases(viewer: Viewer, opened: Opening) -> None:
    seen = opened(f"{viewer.url}runs/tiers")
    page = seen.page
    assert page.locator("#cells th[scope=col]").count() == 4
    page.get_by_role("navigation", name="This run").get_by_role("link", name="Tiers").click()
    page.wait_for_url("**/runs/tiers/tiers")
    assert page.get_by_role("heading", level=1).inner_text() == "tiers"
    assert page.locator("table.figures").count() >= 3
    assert page.get_by_role("img").count() >= 2
    page.goto(f"{viewer.url}runs/suites")
    page.get_by_role("navigation", name="This run").get_by_role("link", name="Suites").click()
    page.wait_for_url("**/runs/suites/suites")
    assert page.locator("table.suites tbody tr").count() == 5
    page.locator("table.suites tbody th a").first.click()
    page.wait_for_url("**/runs/suites?suite=**")
    suite = asked(page)["suite"]
    assert page.get_by_label("Suite").input_value() == suite
    assert shown(page)
    was_quiet(seen, viewer)


def test_all_of_it_can_be_read_without_script(viewer: Viewer, opened: Opening) -> None:
    seen = opened(viewer.url, java_script_enabled=False)
    page = seen.page
    page.get_by_label("Model").select_option("smollm/smollm2-135m")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**model=smollm**")
    assert page.locator("table.runs th a").all_text_contents() == ["tuesday", "monday"]
    page.locator("#list").get_by_role("link", name="tuesday", exact=True).click()
    page.get_by_label("Category").select_option("does not compile")
    page.get_by_label("Sort").select_option("hardest")
    page.get_by_role("checkbox", name="different between models").check()
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**label=does**")
    different = shown(page)
    assert 0 < len(different) < COUNT
    page.locator("#cells .cell.none, #cells .cell.part").first.click()
    page.wait_for_url("**#pane")
    assert asked(page)["case"] in different
    assert shown(page) == different
    pane = page.locator("#pane")
    assert pane.locator(".outcome").inner_text().strip()
    pane.locator("nav.attempts a").nth(1).click()
    page.wait_for_url("**number=2**")
    pane.get_by_role("link", name="Alone").click()
    page.wait_for_url("**/attempt?**")
    page.get_by_role("link", name="Next →").first.click()
    page.wait_for_url("**number=3**")
    page.go_back()
    page.go_back()
    page.locator("#close").click()
    assert shown(page) == different
    assert page.get_by_label("Sort").input_value() == "hardest"
    page.get_by_role("navigation", name="This run").get_by_role("link", name="Compare models").click()
    page.wait_for_url("**/compare?**")
    page.locator("table.changes th a").first.click()
    assert page.locator(".diff tr").count() > 0
    for path in ("runs/tiers/tiers", "runs/suites/suites"):
        page.goto(viewer.url + path)
        assert page.locator("main table").count() > 0
    # what only a script could do is not offered
    assert not page.locator("#keys-button").is_visible()
    assert not page.locator("#keys").is_visible()
    was_quiet(seen, viewer)


def test_a_telephone_shows_what_is_read_beneath_the_matrix(viewer: Viewer, opened: Opening) -> None:
    seen = opened(f"{viewer.url}runs/tuesday", width=NARROW)
    page = seen.page
    cell = page.locator("#cells .cell").first
    cell.click()
    page.locator("#pane").wait_for()
    wait_for(page, "() => Math.abs(document.getElementById('pane').getBoundingClientRect().top) < 120")
    assert is_as_wide_as_the_window(page)
    was_quiet(seen, viewer)


def test_a_broken_run_and_an_unknown_one_are_pages_with_a_way_back(viewer: Viewer, opened: Opening) -> None:
    page = opened(viewer.url).page
    page.locator("#list").get_by_role("link", name="broken", exact=True).click()
    page.get_by_role("heading", name="This cannot be read").wait_for()
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("heading", name="Runs", exact=True).wait_for()
    page.goto(f"{viewer.url}runs/nowhere")
    page.get_by_role("heading", name="Nothing is here").wait_for()


SLOW = """
import os, re, time
def ask(prompt):
    number = int(re.search("[0-9]+", prompt)[0])
    while not os.path.exists(f"gates/{number // 5}"):
        time.sleep(0.05)
    return "yes"
"""
"""A model that waits until it may answer, five cases at a time."""


@contextmanager
def slow_run(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real run of twenty cases that goes on as gates are opened."""
    (place / "gates").mkdir()
    (place / "model.py").write_text(SLOW)
    lines = [f'[[cases]]\nid = "c{n}"\nname = "c"\nprompt = "Say yes, {n}."\ntarget = "yes"' for n in range(20)]
    (place / "evals.toml").write_text("\n".join(['[eval_set]\nid = "slow"\nname = "Slow"', *lines]))
    command = [sys.executable, "-m", "steelyard.cli", "run", "evals.toml", "-m", "python:model.py:ask", "-j", "20"]
    running = subprocess.Popen([*command, "--output", "runs/slow"], cwd=place, stdout=-3, stderr=-3)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def test_a_page_grows_with_its_run_and_says_when_somebody_killed_it(tmp_path: Path, opened: Opening) -> None:
    (tmp_path / "runs").mkdir()
    with Viewer(tmp_path / "runs") as viewer:
        seen = opened(viewer.url)
        page = seen.page
        assert page.get_by_text("No runs here yet").is_visible()
        with slow_run(tmp_path) as running:
            # an empty page fills itself
            page.locator("#list").get_by_role("link", name="slow", exact=True).wait_for()
            page.locator("#list").get_by_role("link", name="slow", exact=True).click()
            page.get_by_text("This run is growing").wait_for()
            page.evaluate("window.mark = 1")
            (tmp_path / "gates" / "0").touch()
            page.get_by_text("5 of 20 attempts judged").wait_for()
            page.locator("#growth", has_text="5 attempts, 5 correct").wait_for()
            assert page.locator("#cells .cell.full").count() == 5
            page.get_by_label("Search").fill("c1")
            until(page, q="c1")
            page.evaluate("document.activeElement.blur()")
            page.locator("#cells .cell").first.click()
            until(page, q="c1", case="c1")
            (tmp_path / "gates" / "2").touch()
            page.locator("#growth", has_text="10 attempts, 10 correct").wait_for()
            wait_for(page, "() => document.querySelectorAll('#cells .cell.full').length === 6")
            # what somebody reads and looks for stays
            assert shown(page) == ["c1", *(f"c{number}" for number in range(10, 20))]
            assert page.locator("#pane h2").first.inner_text() == "c1"
            running.send_signal(signal.SIGKILL)
            running.wait()
        page.get_by_text("Stopped before its end.").wait_for()
        wait_for(page, "() => document.getElementById('growth').textContent === ''")
        assert "steelyard resume" in page.locator("#head").inner_text()
        assert was_loaded_once(page)
        was_quiet(seen, viewer)
        page.goto(viewer.url)
        assert page.locator(".state").inner_text() == "stopped"
        viewer.stop()
        page.locator("#growth", has_text="the viewer does not answer").wait_for()
