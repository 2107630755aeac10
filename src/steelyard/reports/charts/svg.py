"""Charts drawn as SVG: shapes and text only, for a page or as a file of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from markupsafe import Markup
from rich.cells import cell_len

from steelyard.reports.charts.spec import (
    CHART_COLOURS,
    CHART_DARK_GREY,
    CHART_GREY,
    CHART_GRID_COLOUR,
    CHART_LIGHT_GREY,
    SERIES_DASHES,
    SERIES_SHAPES,
    Chart,
    ChartPanel,
    Layer,
    Point,
)

CHART_WIDTH_PIXELS = 420
CHART_FONT_PIXELS = 11
CHARACTER_WIDTH_PIXELS = 6.8
"""Of the letters of most fonts at this size; a drawing cannot ask a browser."""
MAX_LEFT_MARGIN_PIXELS = 190
SERIES_STEP_PIXELS = 14
"""Height of one series at a name."""
NAME_STEP_PIXELS = 28
"""Height of a name with one series."""
PAGE_PIXELS_PER_CHART_PIXEL = 1.3
"""The size of a chart on a wide page."""
DARK_COLOURS = {
    **dict(
        zip(CHART_COLOURS, ("#56b4e9", "#f28a3c", "#35c49a", "#e09cc3", "#e6b53c", "#7f9fe0", "#d6d9dc"), strict=True)
    ),
    CHART_DARK_GREY: "#dfe2e5",
    CHART_GREY: "#9aa2ad",
    CHART_LIGHT_GREY: "#3a4046",
    CHART_GRID_COLOUR: "#2a2e33",
    "#FFFFFF": "#1a1d20",
}
"""What each colour becomes where a reader prefers a dark theme; on a page the style of the page decides."""


def svg_element(chart: Chart) -> Markup:
    """The drawing as part of a page that has the title as a heading and a style for the colours."""
    drawing = _Drawing(chart, top=4)
    scale = PAGE_PIXELS_PER_CHART_PIXEL
    head = Markup(
        '<svg role="img" aria-labelledby="{0}-title" aria-describedby="{0}-desc" width="{1}" height="{2}" viewBox="{3}">'
    )
    size = round(CHART_WIDTH_PIXELS * scale), round(drawing.height * scale)
    return Markup("").join(
        [head.format(f"chart-{chart.name}", *size, drawing.view_box), _words(chart), *drawing.shapes, Markup("</svg>")]
    )


def svg_file(chart: Chart) -> str:
    """The drawing as a file: with its title, on a ground, in colours that follow the reader's theme."""
    subtitle = _wrapped(chart.subtitle, int(CHART_WIDTH_PIXELS / CHARACTER_WIDTH_PIXELS))
    drawing = _Drawing(chart, top=34 + 14 * len(subtitle))
    rules = "".join(
        f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in DARK_COLOURS.items()
    )
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{0}-title" aria-describedby="{0}-desc"'
        ' width="{1}" height="{2}" viewBox="{3}" font-family="Liberation Sans, Arial, Helvetica, sans-serif">'
    ).format(f"chart-{chart.name}", CHART_WIDTH_PIXELS, _number(drawing.height), drawing.view_box)
    style = Markup("<style>@media (prefers-color-scheme: dark){{{}}}</style>").format(Markup(rules))  # noqa: S704  our own rules
    ground = Markup('<rect width="100%" height="100%" fill="#FFFFFF"/>')
    title = _text(chart.title, 10, 20, size=15)
    lines = [_text(line, 10, 36 + 14 * place, colour=CHART_GREY) for place, line in enumerate(subtitle)]
    return Markup("").join([head, _words(chart), style, ground, title, *lines, *drawing.shapes, Markup("</svg>\n")])


def chart_files(charts: Sequence[Chart]) -> dict[str, str]:
    """Each chart as a drawing, by the name of the file."""
    return {f"{chart.name}.svg": svg_file(chart) for chart in charts}


def _words(chart: Chart) -> Markup:
    words = Markup('<title id="{0}-title">{1}</title><desc id="{0}-desc">{2}</desc>')
    return words.format(f"chart-{chart.name}", chart.title, chart.description)


def _wrapped(text: str, most: int) -> list[str]:
    """Text broken at blanks into lines of limited length."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return [line for line in lines if line]


class _Drawing:
    """The shapes of a chart, and the height that they take."""

    def __init__(self, chart: Chart, top: float) -> None:
        self._chart = chart
        labels = [text for panel in chart.panels for text in (panel.y.names or map(panel.y.text, panel.y.ticks))]
        has_title = any(panel.y.title for panel in chart.panels)
        longest = max(map(_text_width, labels), default=0.0)
        self._left = min(longest + 10 + (16 if has_title else 0), MAX_LEFT_MARGIN_PIXELS)
        self._width = CHART_WIDTH_PIXELS - self._left - 14
        self.shapes: list[Markup] = []
        below = self._legend(top)
        for panel in chart.panels:
            # the lowest label of a panel and the highest of the next must not touch; a title keeps them apart
            gap = 6 if panel is chart.panels[0] or panel.title else 16
            below = self._panel(panel, below + gap, is_last=panel is chart.panels[-1])
        self.height = below + 4

    @property
    def view_box(self) -> str:
        return f"0 0 {CHART_WIDTH_PIXELS} {_number(self.height)}"

    def _legend(self, top: float) -> float:
        """The series by colour and shape; where it ends."""
        if len(self._chart.series) < 2:
            return top
        x, y = 4.0, top + 8
        for place, name in enumerate(self._chart.series):
            wide = _text_width(name) + 26
            if x > 4 and x + wide > CHART_WIDTH_PIXELS:
                x, y = 4.0, y + 16
            self.shapes.append(_shape(_series_shape(place), x + 5, y, 8, _series_colour(place)))
            self.shapes.append(_text(name, x + 13, y + 4))
            x += wide
        return y + 12

    def _panel(self, panel: ChartPanel, top: float, *, is_last: bool) -> float:
        """A panel with its axes; where it ends."""
        if panel.title:
            self.shapes.append(_text(panel.title, self._left, top + 9))
            top += 14
        height = len(panel.y.names) * self._name_step if panel.y.names else panel.height
        frame = _Frame(panel, self._left, top, self._width, height, self._chart.is_grouped, len(self._chart.series))
        self.shapes += frame.vertical_axis()
        self.shapes += frame.horizontal_axis(has_labels=is_last)
        for layer in panel.layers:
            self.shapes += frame.marks(layer)
        return top + height + ((32 if panel.x.title else 18) if is_last else 0)

    @property
    def _name_step(self) -> float:
        return SERIES_STEP_PIXELS * len(self._chart.series) + 8 if self._chart.is_grouped else NAME_STEP_PIXELS


class _Frame:
    """The rectangle that a panel's marks are drawn in, in pixels."""

    def __init__(
        self, panel: ChartPanel, left: float, top: float, width: float, height: float, is_grouped: bool, series: int
    ) -> None:
        self._panel, self._left, self._top, self._width, self._height = panel, left, top, width, height
        self._is_grouped, self._series = is_grouped, series

    def _x(self, value: float) -> float:
        return self._left + self._panel.x.share(value) * self._width

    def _y(self, value: float | str, series: int | None = None) -> float:
        axis = self._panel.y
        if not isinstance(value, str):
            return self._top + (1 - axis.share(value)) * self._height
        step = self._height / len(axis.names)
        top = self._top + axis.names.index(value) * step
        if series is None or not self._is_grouped:
            return top + step / 2
        return top + 4 + (series + 0.5) * (step - 8) / self._series

    def vertical_axis(self) -> Iterator[Markup]:
        axis = self._panel.y
        for name in axis.names:
            yield _text(_cut(name), self._left - 6, self._y(name) + 4, anchor="end")
        for tick in axis.ticks:
            y = self._y(tick)
            yield _line(self._left, y, self._left + self._width, y, CHART_GRID_COLOUR)
            yield _text(axis.text(tick), self._left - 6, y + 4, anchor="end")
        if axis.title:
            yield _text(axis.title, 10, self._top + self._height / 2, anchor="middle", turned=True)

    def horizontal_axis(self, *, has_labels: bool) -> Iterator[Markup]:
        axis, bottom = self._panel.x, self._top + self._height
        free_from = -math.inf
        for tick in axis.ticks:
            x, label = self._x(tick), axis.text(tick)
            half = _text_width(label) / 2
            yield _line(
                x,
                self._top if axis.has_grid else bottom,
                x,
                bottom + 3,
                CHART_GRID_COLOUR if axis.has_grid else CHART_GREY,
            )
            if has_labels and x - half > free_from:
                yield _text(label, min(x, CHART_WIDTH_PIXELS - half - 1), bottom + 14, anchor="middle")
                free_from = x + half + 4
        yield _line(self._left, bottom, self._left + self._width, bottom, CHART_GREY)
        if has_labels and axis.title:
            yield _text(axis.title, self._left + self._width / 2, bottom + 29, anchor="middle")

    def marks(self, layer: Layer) -> Iterator[Markup]:
        colour = layer.colour if layer.series is None else _series_colour(layer.series)
        match layer.mark:
            case "area" | "line" | "steps":
                yield self._path(layer, colour)
            case _:
                for point in layer.points:
                    yield self._mark(layer, point, colour)

    def _path(self, layer: Layer, colour: str) -> Markup:
        places = [(self._x(point.x) + layer.dx, self._y(point.y)) for point in layer.points]
        if layer.mark == "area":
            places += [(self._x(point.x), self._y(point.y2 or 0.0)) for point in reversed(layer.points)]
            return Markup('<path d="M{}Z" fill="{}" opacity="{}"/>').format(_joined(places), colour, layer.opacity)
        dash: Sequence[int] = SERIES_DASHES[(layer.series or 0) % len(SERIES_DASHES)]
        if layer.mark == "steps":
            dash = (4, 3)
            corners = [(x, y) for (_, y), (x, _) in pairwise(places)]
            places = [place for pair in zip(places, [*corners, places[-1]], strict=True) for place in pair]
        dashes = Markup(' stroke-dasharray="{}"').format(" ".join(map(str, dash))) if dash else ""
        path = Markup('<path d="M{}" fill="none" stroke="{}" stroke-width="{}"{}/>')
        return path.format(_joined(places), colour, _number(layer.width), dashes)

    def _mark(self, layer: Layer, point: Point, colour: str) -> Markup:
        x, y = self._x(point.x) + layer.dx, self._y(point.y, layer.series) + layer.dy
        x2 = x if point.x2 is None else self._x(point.x2) + layer.dx
        y2 = y if point.y2 is None else self._y(point.y2) + layer.dy
        match layer.mark:
            case "rule":
                return _line(x, y, x2, y2, colour, layer.width, layer.opacity)
            case "tick":
                return _line(x, y - layer.width / 2, x, y + layer.width / 2, colour, 2)
            case "text":
                if layer.text_align == "left":
                    return _text(point.label, x, y + 4)
                half = _text_width(point.label) / 2
                x = min(max(x, self._left + half), self._left + self._width + 10 - half)
                return _text(point.label, x, y + 4, anchor="middle")
            case "bar":
                half = 0.0 if point.y2 is not None else layer.width / 2
                top, height = min(y, y2) - half, abs(y2 - y) + 2 * half
                faint = Markup(' opacity="{}"').format(_number(layer.opacity)) if layer.opacity < 1 else ""
                bar = Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="{}"{}/>')
                return bar.format(_number(x), _number(top), _number(max(x2 - x, 0.5)), _number(height), colour, faint)
            case "ring":
                ring = Markup('<circle cx="{}" cy="{}" r="{}" fill="none" stroke="{}"/>')
                return ring.format(_number(x), _number(y), _number(layer.width / 2), colour)
            case _:
                return _shape(layer.shape or _series_shape(layer.series or 0), x, y, layer.width, colour)


def _series_colour(place: int) -> str:
    return CHART_COLOURS[place % len(CHART_COLOURS)]


def _series_shape(place: int) -> str:
    return SERIES_SHAPES[place % len(SERIES_SHAPES)]


def _number(value: float) -> str:
    """As exact as a screen.

    >>> _number(12.3456), _number(7.0)
    ('12.35', '7')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _joined(places: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{_number(x)},{_number(y)}" for x, y in places)


def _line(x: float, y: float, x2: float, y2: float, colour: str, width: float = 1, opacity: float = 1) -> Markup:
    places = _joined([(x, y), (x2, y2)])
    faint = Markup(' opacity="{}"').format(opacity) if opacity < 1 else ""
    thick = Markup(' stroke-width="{}"').format(_number(width)) if width != 1 else ""
    return Markup('<path d="M{}" stroke="{}"{}{}/>').format(places, colour, thick, faint)


def _text(
    text: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    colour: str = CHART_DARK_GREY,
    size: float = CHART_FONT_PIXELS,
    turned: bool = False,
) -> Markup:
    place = Markup('x="{}" y="{}"').format(_number(x), _number(y))
    turn = Markup(' transform="rotate(-90 {} {})"').format(_number(x), _number(y)) if turned else ""
    aligned = "" if anchor == "start" else Markup(' text-anchor="{}"').format(anchor)
    return Markup('<text {} font-size="{}" fill="{}"{}{}>{}</text>').format(place, size, colour, aligned, turn, text)


def _text_width(text: str) -> float:
    return cell_len(text) * CHARACTER_WIDTH_PIXELS


def _cut(name: str) -> str:
    """A name that fits beside its row."""
    most = int((MAX_LEFT_MARGIN_PIXELS - 10) / CHARACTER_WIDTH_PIXELS)
    return name if cell_len(name) <= most else name[: most // max(1, math.ceil(cell_len(name) / len(name))) - 1] + "…"


_UNIT_SHAPES = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "triangle-up": ((0, -1.1), (1.1, 0.9), (-1.1, 0.9)),
    "triangle-down": ((0, 1.1), (1.1, -0.9), (-1.1, -0.9)),
    "triangle-right": ((1.1, 0), (-0.9, 1.1), (-0.9, -1.1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "cross": tuple(
        (x * sign, y * sign)
        for sign in (1, -1)
        for x, y in ((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4))
    ),
}
"""Corners around a middle."""


def _shape(shape: str, x: float, y: float, size: float, colour: str) -> Markup:
    if shape == "circle":
        return Markup('<circle cx="{}" cy="{}" r="{}" fill="{}"/>').format(
            _number(x), _number(y), _number(size / 2), colour
        )
    corners = [(x + dx * size * 0.45, y + dy * size * 0.45) for dx, dy in _UNIT_SHAPES[shape]]
    return Markup('<path d="M{}Z" fill="{}"/>').format(_joined(corners), colour)
