"""The kinds of panels that charts of runs and of tiers share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from steelyard.reports.charts.spec import (
    CHART_COLOURS,
    CHART_GREY,
    CHART_LIGHT_GREY,
    Axis,
    ChartPanel,
    Layer,
    Point,
    linear_axis,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from steelyard.analysis.estimates import Estimate

SCORE_BINS = 20
"""Of the distribution of scores: thresholds of grades lie between two of them."""
SCORE_PANELS_PIXELS = 180
"""Height of all panels of a distribution together, where that leaves enough for each."""
MIN_SCORE_PANEL_PIXELS = 34


class ScoreGroup(NamedTuple):
    """The scores of a model or a tier."""

    name: str
    scores: Sequence[float]
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
    """The interval goes on beyond the chart."""
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
    """Whether each label stands above its dot: away from the nearest other dot."""
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
    """Digits after the point that tell costs apart.

    >>> cost_digits([0.012, 0.03]), cost_digits([12.0])
    (4, 2)
    """
    most = max(costs)
    return 2 if most >= 1 or most <= 0 else 2 - math.floor(math.log10(most))
