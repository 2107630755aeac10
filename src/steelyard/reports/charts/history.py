"""The runs of a baseline's history, as a chart: how often they passed, and the evidence that they changed."""

from __future__ import annotations

import math

from steelyard.comparison.history import ModelHistory, WatchedRun
from steelyard.reports.charts.spec import (
    CHART_COLOURS,
    CHART_GREY,
    Axis,
    Chart,
    ChartPanel,
    Layer,
    Point,
    linear_axis,
    log_axis,
)
from steelyard.reports.figures import rate
from steelyard.text import line

MAX_RUN_TICKS = 12
MAX_CHARTED_EVIDENCE = 1e6
"""Evidence beyond is drawn at the upper end."""
MAX_HISTORY_NAME_CHARACTERS = 40


def history_chart(model: ModelHistory, name: str) -> Chart | None:
    """One model over time; None where no run has a rate. `name` identifies the chart on its page."""
    known = [(number, run) for number, run in enumerate(model.runs, 1) if run.rate.value is not None]
    if not known:
        return None
    step = math.ceil(len(model.runs) / MAX_RUN_TICKS)
    last = float(len(model.runs))
    ticks = tuple(map(float, range(1, len(model.runs) + 1, step)))
    x = Axis("run", (), 0.5, last + 0.5, False, ticks, ".0f")
    dots = tuple(Point(number, run.rate.value or 0.0) for number, run in known)
    ends = tuple(
        Point(number, run.rate.low, y2=run.rate.high)
        for number, run in known
        if run.rate.low is not None and run.rate.high is not None
    )
    layers = [
        Layer("rule", ends, colour=CHART_COLOURS[0], opacity=0.55),
        Layer("line", dots, colour=CHART_COLOURS[0], width=1),
        Layer("dot", dots, colour=CHART_COLOURS[0], width=6, shape="circle"),
    ]
    for alarm in model.alarms:
        edge = alarm.since - 0.5
        levels = Point(0.5, alarm.before, x2=edge), Point(edge, alarm.after, x2=last + 0.5)
        layers.append(Layer("rule", levels, colour=CHART_COLOURS[1], width=2))
    values = [value for point in (*dots, *ends) for value in (point.y, point.y2) if isinstance(value, float)]
    rates = linear_axis("pass rate", max(0.0, min(values) - 0.02), min(1.0, max(values) + 0.02), style=".0%")
    panels = [ChartPanel(x, rates, tuple(layer for layer in layers if layer.points))]
    if len(known) > 1:
        panels.append(_evidence_panel(model, x))
    return Chart(
        name=name,
        title=line(model.model, MAX_HISTORY_NAME_CHARACTERS),
        subtitle="mean pass rate of each run; bars are 95% intervals for these cases; below, the evidence that runs got worse",
        panels=tuple(panels),
        head=("run", "name", "started", "pass rate", "evidence of worse", "of better"),
        rows=tuple(_row(number, run) for number, run in enumerate(model.runs, 1)),
    )


def _evidence_panel(model: ModelHistory, x: Axis) -> ChartPanel:
    """The evidence on a logarithmic scale, with the line at which it is an alarm."""
    alarm_at = 1 / model.level
    high = min(MAX_CHARTED_EVIDENCE, max(2 * alarm_at, *(run.worse for run in model.runs)))
    low = max(1 / MAX_CHARTED_EVIDENCE, min(0.1, *(run.worse for run in model.runs)))
    points = tuple(Point(number, min(max(run.worse, low), high)) for number, run in enumerate(model.runs, 1))
    layers = (
        Layer("rule", (Point(x.low, alarm_at, x2=x.high),), colour=CHART_COLOURS[1]),
        Layer("line", points, colour=CHART_GREY),
        Layer("dot", points, colour=CHART_GREY, width=5, shape="circle"),
    )
    return ChartPanel(x, log_axis("evidence", low, high, style=",g"), layers, height=90)


def _row(number: int, run: WatchedRun) -> tuple[str, ...]:
    return (
        str(number),
        line(run.run, MAX_HISTORY_NAME_CHARACTERS),
        run.at[:16].replace("T", " "),
        rate(run.rate),
        f"{run.worse:.3g}",
        f"{run.better:.3g}",
    )
