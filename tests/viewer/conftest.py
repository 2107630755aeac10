"""A viewer of real runs, and a browser that looks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.browsed import Opening, launched, opening
from support.viewed import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def viewer(demo: Path) -> Iterator[Viewer]:
    """The viewer of these runs."""
    with Viewer(demo) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """No longer than one file of tests: others want a loop of their own."""
    with launched() as running:
        yield running


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opening]:
    """Open a page in a profile of its own, with all ears."""
    with opening(browser) as one:
        yield one
