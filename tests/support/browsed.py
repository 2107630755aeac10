"""A real browser that looks at pages, with an ear for all that they do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from support.toolchains import BROWSER
from support.viewed import OPENED

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NARROW, WIDE = 400, 1280
PATIENCE = 60
"""Seconds until what does not come is given up."""


class Seen(NamedTuple):
    """A page, and all that it did."""

    page: Page
    asked: list[str]
    """Every address that was asked for."""
    said: list[str]
    """What it wrote to the console, its errors, its dialogs, and the windows that it opened."""


Opening = Callable[..., Seen]


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium without a window; as long as it is there, nothing else in this thread can have a loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, headless=True, chromium_sandbox=False, args=list(QUIET)
        )
        with closing(browser):
            yield browser


@contextmanager
def opening(browser: Browser) -> Iterator[Opening]:
    """Opens pages, each in a profile of its own; all are closed in the end."""
    contexts = []

    def one(url: str, *, width: int = WIDE, **how: Any) -> Seen:
        context = browser.new_context(viewport={"width": width, "height": 900}, **how)
        context.set_default_timeout(PATIENCE * 1000)
        contexts.append(context)
        page = context.new_page()
        seen = Seen(page, [], [])
        page.on("request", lambda request: seen.asked.append(request.url))
        page.on("console", lambda message: seen.said.append(message.text))
        page.on("pageerror", lambda error: seen.said.append(str(error)))
        page.on("dialog", lambda dialog: _dismissed(dialog, seen.said))
        page.on("popup", lambda popup: seen.said.append(popup.url))
        page.on("download", lambda download: seen.said.append(download.url))
        place = urlsplit(url)
        if key := OPENED.get(place.port or 0):
            # as a user does: the address that was printed, once
            context.request.get(f"http://{place.netloc}/?key={key}")
        page.goto(url)
        return seen

    try:
        yield one
    finally:
        for context in contexts:
            context.close()


def _dismissed(dialog: Dialog, said: list[str]) -> None:
    said.append(dialog.message)
    dialog.dismiss()


def wait_for(page: Page, claim: str, given: Any = None) -> None:
    """Wait until a function of the page says yes; asked from here, since the page's policy forbids it to wait by itself."""
    for _ in range(PATIENCE * 20):
        if page.evaluate(claim, given):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never came true: {claim} of {given} at {page.url}")


def is_as_wide_as_the_window(page: Page) -> bool:
    """Whether nothing but tables has to be pushed sideways."""
    wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    return bool(wide <= window)


def kept(page: Page, name: str) -> None:
    """Keep how a page looks in the folder that STEELYARD_SCREENSHOTS names, if it names one."""
    if "STEELYARD_SCREENSHOTS" not in os.environ:
        return
    place = Path(os.environ["STEELYARD_SCREENSHOTS"])
    place.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=place / f"{re.sub(r'[^a-z0-9]+', '-', name)}.png")
