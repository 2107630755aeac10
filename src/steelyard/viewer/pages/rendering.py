"""What all pages share: templates, static files, addresses, and pages about errors."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup, escape

from steelyard.analysis.estimates import Estimate
from steelyard.reports import figures as reports
from steelyard.reports import page
from steelyard.text import line
from steelyard.viewer.query_params import url_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


MAX_SHOWN_TEXT_CHARACTERS = 200_000
"""Characters of one text on a page: of longer ones the beginning and the end are shown, and the API gives all of it."""


class PageUrl:
    """Where a reader is, and what the address would be with something else in it."""

    def __init__(self, path: Sequence[str], values: Mapping[str, Any]) -> None:
        self._path = path
        self.values = values

    def __call__(self, _mark: str = "", **changes: Any) -> str:
        return url_path(self._path, {**self.values, **changes}, _mark)

    def numbered(self, number: int) -> str:
        """Where another attempt of the same cell is read."""
        return self("pane", number=number)


def error_page(status: int, message: str) -> str:
    """A page that says what is wrong, and the way back."""
    return rendered("trouble.html.j2", status=status, message=message)


def loading_page(name: str) -> str:
    """The page of a run while it is read for the first time."""
    return rendered("being_read.html.j2", name=name)


def login_page() -> str:
    """The page that asks for the key."""
    return rendered("locked.html.j2")


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """The files that pages refer to, by name, each with its type."""
    viewer, shared = files("steelyard.viewer") / "static", files("steelyard.reports")
    return {
        "page.css": ((shared / "page.css").read_bytes(), "text/css; charset=utf-8"),
        "viewer.css": ((viewer / "viewer.css").read_bytes(), "text/css; charset=utf-8"),
        "mark.svg": ((viewer / "mark.svg").read_bytes(), "image/svg+xml"),
        "viewer.js": ((viewer / "viewer.js").read_bytes(), "text/javascript; charset=utf-8"),
    }


@cache
def _static(name: str) -> str:
    """The address of a static file, another one for another content."""
    content, _ = static_files()[name]
    return f"/static/{name}?v={hashlib.blake2b(content, digest_size=6).hexdigest()}"


def _counted_option(entry: tuple[str, int]) -> tuple[str, str]:
    """A word that can be chosen, with how often it occurs."""
    return entry[0], f"{line(entry[0], 40)} ({entry[1]:,})"


def _breakable(name: str) -> Markup:
    """A long name that is parted after its slashes before it is parted anywhere else."""
    return escape(name).replace("/", Markup("/<wbr>"))


def _signed(value: float) -> str:
    """A change in points, never with a minus before nothing."""
    return f"{round(value * 100, 1) + 0.0:+.1f}"


def change_direction(change: Estimate) -> str:
    """Which way something went, `even` where that may be chance."""
    return "up" if (change.low or 0) > 0 else "down" if (change.high or 0) < 0 else "even"


def _readable_timestamp(text: str) -> str:
    """A moment as people read it; whatever else stands there is left as it is."""
    return line(text, 40).replace("T", " ")[:16] if len(text) >= 16 and text[10] == "T" else line(text)


@cache
def _environment() -> jinja2.Environment:
    environment = page.environment(jinja2.PackageLoader("steelyard.viewer", "templates"))
    filters: dict[str, Callable[..., Any]] = {
        "breakable": _breakable,
        "counted_option": _counted_option,
        "moment": _readable_timestamp,
        "moved": change_direction,
        "pair": lambda value: (value, line(value, 60)),
        "points": reports.points,
        "rate": reports.rate,
        "share": lambda value: f"{100 * value:.3g}%",
        "signed": _signed,
    }
    environment.filters |= filters
    environment.globals |= {
        "address": url_path,
        "named": reports.model_label,
        "shown": MAX_SHOWN_TEXT_CHARACTERS,
        "static": _static,
    }
    return environment


def compile_templates() -> None:
    """Compile the templates, so that the first page opens without delay."""
    environment = _environment()
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)


def rendered(template: str, **context: Any) -> str:
    """A page from its template."""
    # half of a surrogate pair is no text, and a name on disk may hold one
    return _environment().get_template(template).render(**context).encode("utf-8", "replace").decode()
