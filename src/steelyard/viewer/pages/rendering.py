"""What all pages share: templates, static files, addresses, small charts, and pages about errors."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup, escape

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.measure import ComparedMeasure
from steelyard.reports import figures as reports
from steelyard.reports import page
from steelyard.text import line
from steelyard.viewer.query_params import url_path

TREND_WIDTH_PIXELS, TREND_HEIGHT_PIXELS, TREND_MARGIN_PIXELS = 220, 44, 5
"""Of a trend, in pixels, and what is left free around it."""
BAR_WIDTH_PIXELS, BAR_STEP_PIXELS, CORRECT_BAR_HEIGHT_PIXELS, WRONG_BAR_HEIGHT_PIXELS = 4, 6, 12, 4
"""Of the attempts of a cell: how wide a bar is, how far to the next, how tall a correct one is, and a wrong one."""
MAX_OUTCOME_BARS = 14
"""Attempts of a cell that are drawn; the figures beside them count all."""


class TrendPoint(NamedTuple):
    """One point of a trend."""

    x: float
    y: float


class TrendLine(NamedTuple):
    """A share over time, with its interval as a band."""

    line: str
    band: str
    """Empty where no interval is known."""
    dots: tuple[TrendPoint, ...]


class IntervalScale(NamedTuple):
    """A share and its interval on a line from 0 to 100."""

    value: float
    low: float
    width: float


class OutcomeBars(NamedTuple):
    """The attempts of a cell as bars: tall for correct, low for wrong, an empty box for missing."""

    width: int
    correct: str
    wrong: str
    missing: str


def trend(estimates: Sequence[Estimate]) -> TrendLine:
    """A line through shares with a value, the oldest first, from 0% at the bottom to 100% at the top."""
    known = [estimate for estimate in estimates if estimate.value is not None]
    step = (TREND_WIDTH_PIXELS - 2 * TREND_MARGIN_PIXELS) / max(1, len(known) - 1)
    xs = [
        TREND_MARGIN_PIXELS + place * step if len(known) > 1 else TREND_WIDTH_PIXELS / 2 for place in range(len(known))
    ]
    dots = tuple(TrendPoint(round(x, 1), _height(estimate.value or 0.0)) for x, estimate in zip(xs, known, strict=True))
    line = "M" + "L".join(f"{dot.x:g} {dot.y:g}" for dot in dots) if dots else ""
    sure = [(x, each.low, each.high) for x, each in zip(xs, known, strict=True) if each.low is not None]
    upper = [f"{x:.1f} {_height(high):g}" for x, _, high in sure if high is not None]
    lower = [f"{x:.1f} {_height(low):g}" for x, low, _ in reversed(sure) if low is not None]
    band = f"M{'L'.join([*upper, *lower])}Z" if len(sure) > 1 else ""
    return TrendLine(line, band, dots)


def scale(estimate: Estimate | None) -> IntervalScale | None:
    """A share on its line; None if the share is unknown.

    >>> from steelyard.analysis.estimates import Estimate
    >>> scale(Estimate(value=0.5, low=0.25, high=0.75))
    IntervalScale(value=50.0, low=25.0, width=50.0)
    """
    if estimate is None or estimate.value is None:
        return None
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    low, high = max(0.0, min(low, 1.0)), max(0.0, min(high, 1.0))
    return IntervalScale(
        *(round(100 * each, 2) for each in (min(max(estimate.value, 0.0), 1.0), low, max(high - low, 0.0)))
    )


def bars(outcomes: Sequence[str]) -> OutcomeBars:
    """How the first attempts of a cell came out."""
    paths = {"correct": "", "wrong": "", "missing": ""}
    for place, outcome in enumerate(outcomes[:MAX_OUTCOME_BARS]):
        x = place * BAR_STEP_PIXELS
        if outcome == "correct":
            paths[outcome] += f"M{x} 0h{BAR_WIDTH_PIXELS}v{CORRECT_BAR_HEIGHT_PIXELS}h-{BAR_WIDTH_PIXELS}z"
        elif outcome == "wrong":
            paths[outcome] += (
                f"M{x} {CORRECT_BAR_HEIGHT_PIXELS - WRONG_BAR_HEIGHT_PIXELS}h{BAR_WIDTH_PIXELS}v{WRONG_BAR_HEIGHT_PIXELS}h-{BAR_WIDTH_PIXELS}z"
            )
        else:
            paths["missing"] += (
                f"M{x + 0.5} {CORRECT_BAR_HEIGHT_PIXELS - BAR_WIDTH_PIXELS + 0.5}h{BAR_WIDTH_PIXELS - 1}v{BAR_WIDTH_PIXELS - 1}h-{BAR_WIDTH_PIXELS - 1}z"
            )
    return OutcomeBars(min(len(outcomes), MAX_OUTCOME_BARS) * BAR_STEP_PIXELS, **paths)


def _height(share: float) -> float:
    return round(
        TREND_HEIGHT_PIXELS
        - TREND_MARGIN_PIXELS
        - min(max(share, 0.0), 1.0) * (TREND_HEIGHT_PIXELS - 2 * TREND_MARGIN_PIXELS),
        1,
    )


MAX_SHOWN_TEXT_CHARACTERS = 200_000
"""Characters of one text on a page: of longer ones the beginning and the end are shown, and the API gives all of it."""


class PageUrl:
    """The current address, and addresses with changed parameters."""

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


def comparisons_page(comparisons: Sequence[tuple[str, str, str]]) -> str:
    """The page that lists the comparisons of an export: baseline, current side, and where they are compared."""
    return rendered("comparisons.html.j2", comparisons=comparisons)


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
    """A value that can be chosen, with its count."""
    return entry[0], f"{line(entry[0], 40)} ({entry[1]:,})"


def _breakable(name: str) -> Markup:
    """A long name that breaks after its slashes first."""
    return escape(name).replace("/", Markup("/<wbr>"))


def _signed(value: float) -> str:
    """A change in points, never with a minus before nothing."""
    return f"{round(value * 100, 1) + 0.0:+.1f}"


def change_direction(change: Estimate) -> str:
    """Which way something went, `even` where that may be chance."""
    return "up" if (change.low or 0) > 0 else "down" if (change.high or 0) < 0 else "even"


def _readable_timestamp(text: str) -> str:
    """A timestamp as people read it; any other text stays as it is."""
    return line(text, 40).replace("T", " ")[:16] if len(text) >= 16 and text[10] == "T" else line(text)


def _figure(estimate: Estimate, on: ComparedMeasure) -> str:
    """The figure that decides, without its interval."""
    return reports.quality(on, Estimate(value=estimate.value))


@cache
def _environment() -> jinja2.Environment:
    environment = page.environment(jinja2.PackageLoader("steelyard.viewer", "templates"))
    filters: dict[str, Callable[..., Any]] = {
        "breakable": _breakable,
        "counted_option": _counted_option,
        "figure": _figure,
        "figure_interval": lambda estimate, on: reports.quality(on, estimate).partition(" ")[2],
        "moment": _readable_timestamp,
        "moved": change_direction,
        "pair": lambda value: (value, line(value, 60)),
        "points": reports.points,
        "quality": lambda estimate, on: reports.quality(on, estimate),
        "rate": reports.rate,
        "shell_word": shlex.quote,
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


def compile_templates(*names: str) -> None:
    """Compile some templates before a page needs them."""
    for name in names:
        _environment().get_template(name)


_IS_EXPORTED: ContextVar[bool] = ContextVar("is_exported", default=False)


@contextmanager
def exported_pages() -> Iterator[None]:
    """Pages made within the block are files: without forms, scripts and what only a server can answer."""
    before = _IS_EXPORTED.set(True)
    try:
        yield
    finally:
        _IS_EXPORTED.reset(before)


def rendered(template: str, **context: Any) -> str:
    """A page from its template."""
    page = _environment().get_template(template).render(exported=_IS_EXPORTED.get(), **context)
    # half of a surrogate pair is not text, and a name on disk may hold one
    return page.encode("utf-8", "replace").decode()
