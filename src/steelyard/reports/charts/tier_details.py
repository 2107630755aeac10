"""What tiers differ by, and how each does each case, as charts."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.reports.charts.spec import (
    CHART_COLOURS,
    CHART_GREY,
    Axis,
    Chart,
    ChartPanel,
    IntervalRow,
    Layer,
    Point,
    distinct_names,
    interval_panel,
    linear_axis,
)
from steelyard.reports.tiers import rate_difference_text
from steelyard.text import counted, line
from steelyard.tiers.results import ExperimentAnalysis, RunFigures, TierComparison

MAX_FOREST_ROWS = 40
MAX_HEAT_MAP_TIERS = 40
MAX_HEAT_MAP_CASES = 60
MAX_LABELLED_HEAT_MAP_CASES = 8
"""With more cases the cells are too small for a number."""
MAX_AXIS_CHARACTERS = 60
"""A longer title would be wider than the drawing."""
MAX_DETAIL_NAME_CHARACTERS = 40
PASS_RATE_OPACITIES = ((0.0, 0.06), (0.25, 0.3), (0.5, 0.5), (0.75, 0.7), (1.0, 1.0))
"""The least pass rate of a class of cells, and how strong its colour is; only cells without a failure have all of it."""


def detail_charts(analysis: ExperimentAnalysis) -> list[Chart]:
    """Those of the charts that have something to show."""
    return [chart for chart in (differences(analysis), heat_map(analysis)) if chart is not None]


def differences(analysis: ExperimentAnalysis) -> Chart | None:
    """The pass rate of each tier less that of the baseline, and less that of the tier before, with intervals."""
    against = [each for model in analysis.models for each in model.against_baseline]
    pairs = {(each.model, each.tier, each.other) for each in against}
    before = [
        each for model in analysis.models for each in model.ablation if (each.model, each.tier, each.other) not in pairs
    ]
    known = [each for each in (*against, *before) if each.pass_rate.value is not None]
    shown = known[:MAX_FOREST_ROWS]
    if not shown:
        return None
    names = distinct_names(_pair_name(each, analysis) for each in shown)
    ends = [
        end
        for each in shown
        for end in (each.pass_rate.value, each.pass_rate.low, each.pass_rate.high)
        if end is not None
    ]
    low, high = min(*ends, 0.0), max(*ends, 0.0)
    margin = 0.08 * (high - low) or 0.1
    x = linear_axis("difference of pass rates", max(-1.0, low - margin), min(1.0, high + margin), style="+.0%")
    rows = [IntervalRow(name, 0, each.pass_rate) for name, each in zip(names, shown, strict=True)]
    panel = interval_panel(names, rows, x)
    zero = Layer("tick", tuple(Point(0.0, name) for name in names), colour=CHART_GREY, width=28)
    texts = [rate_difference_text(each.pass_rate) for each in shown]
    rest = f"; the first {MAX_FOREST_ROWS} of {len(known):,}" if len(known) > MAX_FOREST_ROWS else ""
    return Chart(
        name="differences",
        title="Differences of pass rates",
        subtitle=f"lines are 95% intervals; grey: no difference{rest}",
        panels=(panel._replace(layers=(zero, *panel.layers)),),
        head=("tiers", "pass rate", "p (Holm)"),
        rows=tuple(
            (name, said, "-" if each.p_adjusted is None else f"{each.p_adjusted:.2g}")
            for name, said, each in zip(names, texts, shown, strict=True)
        ),
        series=("pass rate",),
    )


def _pair_name(each: TierComparison, analysis: ExperimentAnalysis) -> str:
    name = f"{line(each.tier, 20)} over {line(each.other, 20)}"
    return name if len(analysis.models) == 1 else f"{name}, {line(each.model, MAX_DETAIL_NAME_CHARACTERS)}"


def heat_map(analysis: ExperimentAnalysis) -> Chart | None:
    """The share of runs that passed, of each case under each tier."""
    cells: dict[tuple[str, str], dict[str, list[bool]]] = {}
    cases: dict[str, None] = {}
    for run in analysis.runs:
        if run.passed is not None:
            case = _case_name(run, analysis)
            cases[case] = None
            cells.setdefault((run.model, run.tier), {}).setdefault(case, []).append(run.passed)
    places = [(model.model, tier.tier) for model in analysis.models for tier in model.tiers]
    shown = [place for place in places if place in cells][:MAX_HEAT_MAP_TIERS]
    listed = list(cases)[:MAX_HEAT_MAP_CASES]
    if len(listed) < 2 or not shown:
        return None
    names = distinct_names(_tier_name(place, analysis) for place in shown)
    rates = {
        (name, case): sum(passes) / len(passes)
        for name, place in zip(names, shown, strict=True)
        for case, passes in cells[place].items()
    }
    left_out = f"; the first {MAX_HEAT_MAP_CASES} of {len(cases):,} cases" if len(cases) > MAX_HEAT_MAP_CASES else ""
    table = tuple(
        (case, *("-" if (name, case) not in rates else f"{rates[name, case]:.0%}" for name in names)) for case in listed
    )
    return Chart(
        name="tiers-and-cases",
        title="Tiers and cases",
        subtitle=f"share of runs that passed, strongest where all did; {counted(len(listed), 'case')} from left to right{left_out}",
        panels=(_heat_panel(names, listed, rates),),
        head=("case", *names),
        rows=table,
    )


def _heat_panel(names: Sequence[str], cases: Sequence[str], rates: dict[tuple[str, str], float]) -> ChartPanel:
    layers = []
    bounds = [*(least for least, _ in PASS_RATE_OPACITIES[1:]), 2.0]
    for (least, opacity), bound in zip(PASS_RATE_OPACITIES, bounds, strict=True):
        points = tuple(
            Point(place + 0.55, name, x2=place + 1.45)
            for name in names
            for place, case in enumerate(cases)
            if (name, case) in rates and least <= rates[name, case] < bound
        )
        layers.append(Layer("bar", points, colour=CHART_COLOURS[0], width=16, opacity=opacity))
    if len(cases) <= MAX_LABELLED_HEAT_MAP_CASES:
        labels = tuple(
            Point(place + 1.0, name, label=f"{rates[name, case]:.0%}")
            for name in names
            for place, case in enumerate(cases)
            if (name, case) in rates
        )
        layers.append(Layer("text", labels, dy=-15))
    step = max(1, -(-len(cases) // 10))
    ticks = tuple(float(place) for place in range(1, len(cases) + 1, step))
    numbered = ", ".join(f"{place} {case}" for place, case in enumerate(cases, 1))
    title = f"case: {numbered}" if len(numbered) <= MAX_AXIS_CHARACTERS else "case, by its place in the table"
    x = Axis(title=title, low=0.5, high=len(cases) + 0.5, ticks=ticks, format=".0f")
    return ChartPanel(x, Axis(names=tuple(names)), tuple(layer for layer in layers if layer.points))


def _case_name(run: RunFigures, analysis: ExperimentAnalysis) -> str:
    """What tiers have in common: the case, or the experiment that subtests are variants of."""
    if analysis.pair_by == "experiment":
        return line(run.experiment, MAX_DETAIL_NAME_CHARACTERS)
    is_only = run.experiment in ("", analysis.runs[0].experiment, analysis.runs[-1].experiment)
    return line(run.case if is_only else f"{run.experiment}/{run.case}", MAX_DETAIL_NAME_CHARACTERS)


def _tier_name(place: tuple[str, str], analysis: ExperimentAnalysis) -> str:
    model, tier = (line(name, MAX_DETAIL_NAME_CHARACTERS) for name in place)
    return tier if len(analysis.models) == 1 else f"{tier}, {model}"
