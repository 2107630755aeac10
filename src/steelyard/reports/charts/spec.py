"""A chart as data: panels of marks on axes, the kinds of panels that charts share, and the table of its numbers.

`svg.py` draws it. Colours are those of Okabe and Ito 2008, "Color Universal Design", which people
who see fewer colours tell apart too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from steelyard.analysis.estimates import Estimate

CHART_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CHART_GREY, CHART_LIGHT_GREY, CHART_DARK_GREY = "#767676", "#D9D9D9", "#262626"
CHART_GRID_COLOUR = "#EEEEEE"
SERIES_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
SERIES_DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (10, 4))
LOG_SCALE_RATIO = 10
"""A scale is logarithmic where the greatest value is more than this many times the least."""

MarkKind = Literal["area", "bar", "dot", "line", "ring", "rule", "steps", "text", "tick"]


class Axis(NamedTuple):
    """A scale with its ticks: of numbers, or of names beside each other."""

    title: str = ""
    names: tuple[str, ...] = ()
    """In order; empty if the axis has numbers."""
    low: float = 0.0
    high: float = 1.0
    is_log: bool = False
    ticks: tuple[float, ...] = ()
    format: str = ""
    """How ticks are written: a format of Python's, after `$` for dollars."""
    has_grid: bool = False

    def text(self, value: float) -> str:
        """A tick's label.

        >>> Axis(format="$,.2f").text(1234.5), Axis(format=",g").text(0.5), Axis(format=".0%").text(0.25)
        ('$1,234.50', '0.5', '25%')
        """
        prefix = "$" if self.format.startswith("$") else ""
        return prefix + format(value, self.format.removeprefix("$"))

    def share(self, value: float) -> float:
        """The position of a value on the axis, from 0 to 1.

        >>> Axis(low=1, high=100, is_log=True).share(10)
        0.5
        """
        value = min(max(value, self.low), self.high)
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


class Point(NamedTuple):
    """One mark: at a place, or from one place to another."""

    x: float
    y: float | str
    """A name where the vertical axis has names."""
    x2: float | None = None
    y2: float | None = None
    label: str = ""


class Layer(NamedTuple):
    """Marks of one kind and one colour."""

    mark: MarkKind
    points: tuple[Point, ...]
    series: int | None = None
    """Which series they belong to; it decides their colour, shape and place beside those of other series."""
    colour: str = CHART_DARK_GREY
    """Where they belong to no series."""
    width: float = 1.5
    """Of a line, in pixels; of a dot or a ring its diameter; of a bar on names its height."""
    opacity: float = 1.0
    dx: float = 0.0
    """Pixels to the right of their place."""
    dy: float = 0.0
    shape: str = ""
    """Of dots, where it is not that of their series."""

    @property
    def text_align(self) -> Literal["center", "left"]:
        """Text that is moved to the right begins there; other text is centred."""
        return "left" if self.dx else "center"


class ChartPanel(NamedTuple):
    """Layers on the same axes."""

    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    height: int = 200
    """In pixels, where the vertical axis has numbers."""
    title: str = ""


class Chart(NamedTuple):
    """A chart, its text alternative, and its table."""

    name: str
    """No other chart of a page has it; made of letters, digits and hyphens."""
    title: str
    subtitle: str
    panels: tuple[ChartPanel, ...]
    """One below the other, with the same horizontal axis."""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    series: tuple[str, ...] = ()
    """Names for the legend; a single series has no legend."""

    @property
    def description(self) -> str:
        """Its numbers in words, for readers who do not see it."""
        first, *columns = self.head
        cells = (", ".join(map(" ".join, zip(columns, row[1:], strict=True))) for row in self.rows)
        return "; ".join(f"{first} {row[0]}: {said}" for row, said in zip(self.rows, cells, strict=True))

    @property
    def is_grouped(self) -> bool:
        """Whether several series share each name of the vertical axis."""
        return len(self.series) > 1 and bool(self.panels[0].y.names)


def distinct_names(names: Iterable[str]) -> list[str]:
    """Names that differ: two that were cut to the same get numbers."""
    counts: dict[str, int] = {}
    distinct = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        distinct.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return distinct


def linear_axis(title: str, low: float, high: float, *, style: str, ticks: int = 5) -> Axis:
    """An axis with about this many ticks at round numbers.

    >>> linear_axis("share", 0, 0.42, style=".0%").ticks
    (0.0, 0.1, 0.2, 0.3, 0.4)
    """
    high = high if high > low else low + (abs(low) or 1.0)
    rough = (high - low) / ticks
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((power * digit for digit in (1, 2, 2.5, 5, 10)), key=lambda each: abs(math.log(each / rough)))
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return Axis(title, (), low, high, False, tuple(round(place * step, 12) for place in places), style, True)


def share_axis(title: str) -> Axis:
    """From 0% to 100%."""
    return Axis(title, (), 0.0, 1.0, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), ".0%", True)


def log_axis(title: str, low: float, high: float, *, style: str) -> Axis:
    """A logarithmic axis with ticks at 1, 2 and 5, or at powers of ten where these are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if len(powers) <= 3 else (1,)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return Axis(title, (), low, high, True, tuple(tick for tick in ticks if low <= tick <= high), style, True)


SCORE_BINS = 20
"""Of the distribution of scores: thresholds of grades lie between two of them."""
SCORE_PANELS_PIXELS = 180
"""Height of all panels of a distribution together, where that leaves enough for each."""
MIN_SCORE_PANEL_PIXELS = 34


class ScoreGroup(NamedTuple):
    """The scores of a model or a tier."""

    name: str
    scores: Collection[float]
    median: float | None = None
    """Drawn where it is given."""


class QuantileRow(NamedTuple):
    """How the values of one model or judge are spread."""

    name: str
    quantiles: Sequence[float]
    """p5, p25, p50, p75 and p95."""
    label: str = ""
    mean: Estimate | None = None


class IntervalRow(NamedTuple):
    """An estimate of one series at one name."""

    name: str
    series: int
    estimate: Estimate
    label: str = ""
    is_open: bool = False
    """The interval continues beyond the chart."""
    has_dot: bool = True


class CostPoint(NamedTuple):
    """What something costs and how good it is."""

    series: int
    cost: float
    quality: Estimate
    on_front: bool
    """No other is cheaper and as good, or better and as cheap."""
    label: str = ""


def score_panels(
    groups: Sequence[ScoreGroup], title: str, *, thresholds: Iterable[float] = ()
) -> tuple[ChartPanel, ...]:
    """How scores are spread: a histogram for each group."""
    x = Axis(title, (), 0.0, 1.0, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), ".1f")
    height = max(MIN_SCORE_PANEL_PIXELS, SCORE_PANELS_PIXELS // len(groups))
    panels = []
    for group in groups:
        counts = [0] * SCORE_BINS
        for score in group.scores:
            # a sum of floats that misses its bin by less than a billionth is in it
            counts[min(math.floor(score * SCORE_BINS + 1e-9), SCORE_BINS - 1)] += 1
        shares = [count / len(group.scores) for count in counts]
        top = max(shares)
        bars = [
            Point(place / SCORE_BINS, share, x2=(place + 0.94) / SCORE_BINS, y2=0.0)
            for place, share in enumerate(shares)
            if share
        ]
        layers = [
            Layer("rule", tuple(Point(least, 0.0, y2=top) for least in thresholds), colour=CHART_LIGHT_GREY),
            Layer("bar", tuple(bars), colour=CHART_COLOURS[0]),
        ]
        if group.median is not None:
            layers.append(Layer("rule", (Point(group.median, 0.0, y2=top),), colour=CHART_COLOURS[1], width=2))
        y = Axis("", (), 0.0, top, False, (0.0, top), ".0%", True)
        panels.append(ChartPanel(x, y, tuple(layer for layer in layers if layer.points), height, group.name))
    return tuple(panels)


def quantile_panel(rows: Sequence[QuantileRow], x: Axis, *, marks_zero: bool = False) -> ChartPanel:
    """A bar for the middle half of each row's values, a line for nine tenths, a tick for the median."""
    names = tuple(row.name for row in rows)
    wide = tuple(Point(row.quantiles[0], row.name, x2=row.quantiles[4]) for row in rows)
    middle = tuple(Point(row.quantiles[1], row.name, x2=row.quantiles[3]) for row in rows)
    medians = tuple(Point(row.quantiles[2], row.name, label=row.label) for row in rows)
    means = [(row.name, row.mean) for row in rows if row.mean is not None]
    layers = [
        Layer("tick", tuple(Point(0.0, name) for name in names) if marks_zero else (), colour=CHART_GREY, width=28),
        Layer("rule", wide, colour=CHART_COLOURS[0]),
        Layer("bar", middle, colour=CHART_COLOURS[5], width=10),
        Layer("tick", medians, width=14),
        Layer("text", tuple(point for point in medians if point.label), dy=-13),
        Layer("rule", tuple(_intervals(means)), colour=CHART_COLOURS[1], width=3),
        Layer("dot", tuple(_values(means)), colour=CHART_COLOURS[1], width=7, shape="circle"),
    ]
    return ChartPanel(x, Axis(names=names), tuple(layer for layer in layers if layer.points))


def interval_panel(names: Sequence[str], rows: Sequence[IntervalRow], x: Axis) -> ChartPanel:
    """A dot with its interval for each series at each name."""
    layers = []
    for series in sorted({row.series for row in rows}):
        of_series = [row for row in rows if row.series == series]
        known = [(row.name, row.estimate) for row in of_series]
        dotted = [(row.name, row.estimate) for row in of_series if row.has_dot]
        arrows = tuple(Point(x.high, row.name) for row in of_series if row.is_open)
        labels = tuple(
            Point(row.estimate.value, row.name, label=row.label)
            for row in of_series
            if row.label and row.estimate.value is not None
        )
        layers += [
            Layer("rule", tuple(_intervals(known)), series, width=2),
            Layer("dot", arrows, series, width=8, shape="triangle-right"),
            Layer("dot", tuple(_values(dotted)), series, width=8),
            Layer("text", labels, series, dy=-10),
        ]
    return ChartPanel(x, Axis(names=tuple(names)), tuple(layer for layer in layers if layer.points))


def _intervals(rows: Iterable[tuple[str, Estimate]]) -> Iterator[Point]:
    for name, estimate in rows:
        if estimate.low is not None and estimate.high is not None:
            yield Point(estimate.low, name, x2=estimate.high)


def _values(rows: Iterable[tuple[str, Estimate]]) -> Iterator[Point]:
    return (Point(estimate.value, name) for name, estimate in rows if estimate.value is not None)


def cost_and_quality_panel(points: Sequence[CostPoint], title: str, y: Axis, *, style: str) -> ChartPanel:
    """Cost from left to right, quality upwards; a line joins those that no other beats in both."""
    costs = [point.cost for point in points]
    margin = 0.08 * (max(costs) - min(costs) or max(costs) or 1.0)
    x = linear_axis(title, max(0.0, min(costs) - margin), max(costs) + 2 * margin, style=style, ticks=4)
    front = sorted((point.cost, point.quality.value or 0.0) for point in points if point.on_front)
    layers = [Layer("steps", tuple(Point(*each) for each in front), colour=CHART_GREY)]
    for point in points:
        value, low, high = point.quality.value or 0.0, point.quality.low, point.quality.high
        at = Point(point.cost, value, label=point.label)
        if low is not None and high is not None:
            layers.append(Layer("rule", (Point(point.cost, low, y2=high),), point.series, opacity=0.6))
        layers.append(Layer("dot", (at,), point.series, width=9))
        if point.on_front:
            layers.append(Layer("ring", (at,), colour=CHART_GREY, width=16))
    for point, is_above in zip(points, _labels_above(points), strict=True):
        if point.label:
            label = Point(point.cost, point.quality.value or 0.0, label=point.label)
            layers.append(Layer("text", (label,), dx=8, dy=-9 if is_above else 11))
    return ChartPanel(x, y, tuple(layer for layer in layers if layer.points))


def _labels_above(points: Sequence[CostPoint]) -> list[bool]:
    """Whether each label is above its dot: away from the nearest other dot."""
    places = [(point.cost, point.quality.value or 0.0) for point in points]
    spans = [max(values) - min(values) or 1.0 for values in zip(*places, strict=True)]

    def distance(one: tuple[float, float], other: tuple[float, float]) -> float:
        return math.hypot((one[0] - other[0]) / spans[0], (one[1] - other[1]) / spans[1])

    above = []
    for number, place in enumerate(places):
        others = places[:number] + places[number + 1 :]
        nearest = min(others, key=lambda other: distance(place, other), default=place)
        above.append((place[1], -place[0]) >= (nearest[1], -nearest[0]))
    return above


def cost_digits(costs: Iterable[float]) -> int:
    """Digits after the point that distinguish costs.

    >>> cost_digits([0.012, 0.03]), cost_digits([12.0])
    (4, 2)
    """
    most = max(costs)
    return 2 if most >= 1 or most <= 0 else 2 - math.floor(math.log10(most))
