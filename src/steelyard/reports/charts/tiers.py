"""What tiers achieve and cost, as charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from steelyard.reports.charts.spec import (
    LOG_SCALE_RATIO,
    Chart,
    ChartPanel,
    CostPoint,
    IntervalRow,
    QuantileRow,
    ScoreGroup,
    cost_and_quality_panel,
    cost_digits,
    distinct_names,
    interval_panel,
    linear_axis,
    log_axis,
    quantile_panel,
    score_panels,
    share_axis,
)
from steelyard.reports.figures import dollars, money, points, rate
from steelyard.reports.tiers import grade_text, score_difference_text
from steelyard.text import counted, line
from steelyard.tiers.results import ExperimentAnalysis, TierAnalysis
from steelyard.tiers.rubrics import GRADE_THRESHOLDS

MAX_CHART_TIERS = 60
"""Tiers of all models together in one chart; readers cannot distinguish more."""
MAX_INTERVAL_RATIO = 2.5
"""An interval is drawn as far as this many times the greatest value; from there on it is an arrow."""
MAX_LABELLED_TIERS = 24
"""Dots that have their values beside them; with more, labels would cover each other."""
MAX_TIER_CHART_NAME_CHARACTERS = 40


class _ChartedTier(NamedTuple):
    """A tier of a model by the names that it has in charts."""

    tier: str
    model: str
    series: int
    """The place of its model."""
    place: tuple[str, str]
    """Model and tier, as they are called."""
    analysis: TierAnalysis


def charts(analysis: ExperimentAnalysis) -> list[Chart]:
    """All charts that have something to show."""
    makers: tuple[Callable[[ExperimentAnalysis, Sequence[_ChartedTier]], Chart | None], ...] = (
        pass_rates,
        costs_of_pass,
        scores,
        cost_and_quality,
        judges,
    )
    tiers = list(_charted_tiers(analysis))
    return [chart for make in makers if (chart := make(analysis, tiers)) is not None]


def pass_rates(analysis: ExperimentAnalysis, tiers: Sequence[_ChartedTier]) -> Chart | None:
    """The pass rate of each tier with its interval."""
    known = [each for each in tiers if each.analysis.pass_rate.value is not None]
    if not known:
        return None
    rows = [
        IntervalRow(
            each.tier, each.series, each.analysis.pass_rate, _label(known, f"{each.analysis.pass_rate.value:.0%}")
        )
        for each in known
    ]
    return _chart(
        analysis,
        known,
        "pass-rate",
        "Pass rate by tier",
        "lines are 95% intervals",
        interval_panel(_tier_names(known), rows, share_axis("pass rate (share of runs)")),
        {"pass rate": lambda tier: rate(tier.pass_rate)},
    )


def costs_of_pass(analysis: ExperimentAnalysis, tiers: Sequence[_ChartedTier]) -> Chart | None:
    """The cost of a pass of each tier with its interval; an arrow where it has no upper end, or one far off."""
    known = [
        each for each in tiers if each.analysis.cost_of_pass.value is not None or each.analysis.cost_of_pass.infinite
    ]
    prices = [each.analysis.cost_of_pass for each in known]
    # where nothing passed, what is known is the least that a pass costs
    values = [(price.low if price.infinite else price.value) or 0.0 for price in prices]
    if not any(values):
        return None
    is_log = max(values) > LOG_SCALE_RATIO * min(values) > 0
    lows = [price.low for price in prices if price.low]
    bottom = min(*values, *lows, max(values)) / 1.5 if is_log else 0.0
    highs = [min(MAX_INTERVAL_RATIO * max(values), price.high) for price in prices if price.high is not None]
    # open intervals end a little beyond the most expensive dot
    top = max(*highs, 1.3 * max(values), 0.0)
    rows = []
    for each, price, value in zip(known, prices, values, strict=True):
        is_open = price.infinite or (price.low is not None and (price.high is None or price.high > top))
        low = None if price.low is None else max(price.low, bottom)
        drawn = msgspec.structs.replace(price, value=value, low=low, high=top if is_open else price.high)
        label = "no pass" if price.infinite else dollars(price).partition(" ")[0]
        rows.append(IntervalRow(each.tier, each.series, drawn, _label(known, label), is_open, not price.infinite))
    title = "cost of a pass (US dollars)"
    digits = 0 if top >= 10 else max(2, 1 - math.floor(math.log10(top)))
    x = linear_axis(title, 0.0, top, style=f"$,.{digits}f")
    if is_log:
        x = log_axis("cost of a pass (US dollars, logarithmic)", bottom, top, style="$,g")
    return _chart(
        analysis,
        known,
        "cost-of-pass",
        "Cost of a pass by tier",
        "lines are 95% intervals; an arrow goes further than the chart",
        interval_panel(_tier_names(known), rows, x),
        {"cost of a pass": lambda tier: dollars(tier.cost_of_pass)},
    )


def scores(analysis: ExperimentAnalysis, tiers: Sequence[_ChartedTier]) -> Chart | None:
    """How the composite scores of each tier's runs are spread, with their median."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in analysis.runs:
        if run.composite is not None:
            values.setdefault((run.model, run.tier), []).append(run.composite)
    known = [each for each in tiers if each.place in values]
    if not known:
        return None
    groups = [
        ScoreGroup(_full_name(analysis, each), values[each.place], each.analysis.composite_median.value)
        for each in known
    ]
    return _chart(
        analysis,
        known,
        "scores",
        "Composite scores by tier",
        "share of each tier's runs; orange: their median; grades D, C, B and A begin at the grey lines",
        score_panels(groups, "composite score of a run", thresholds=GRADE_THRESHOLDS.values()),
        {"median": lambda tier: points(tier.composite_median), "grade": lambda tier: grade_text(tier.grade)},
    )


def cost_and_quality(analysis: ExperimentAnalysis, tiers: Sequence[_ChartedTier]) -> Chart | None:
    """The mean cost and the mean composite of each tier; a line joins those that no other beats in both."""
    known, costs = [], []
    for each in tiers:
        cost = each.analysis.statistics["cost_usd"].mean
        if cost is not None and each.analysis.composite.value is not None:
            known.append(each)
            costs.append(cost)
    if not known:
        return None
    dots = [
        CostPoint(each.series, cost, each.analysis.composite, bool(each.analysis.on_pareto_front), each.tier)
        for each, cost in zip(known, costs, strict=True)
    ]
    style = f"$,.{cost_digits(costs)}f"
    ends = [
        end
        for quality in (each.analysis.composite for each in known)
        for end in (quality.value, quality.low, quality.high)
        if end is not None
    ]
    bottom, top = max(0.0, min(ends) - 0.02), min(1.0, max(ends) + 0.02)
    y = linear_axis("mean composite score", bottom, top, style=".2f")
    return _chart(
        analysis,
        known,
        "cost-quality",
        "Cost against quality",
        "ringed: on the Pareto front, where no other is cheaper and as good, or better and as cheap; lines are 95% intervals",
        cost_and_quality_panel(dots, "mean cost of a run (US dollars)", y, style=style),
        {
            "mean cost": lambda tier: money(tier.statistics["cost_usd"].mean or 0.0),
            "mean composite": lambda tier: points(tier.composite),
            "Pareto front": lambda tier: "yes" if tier.on_pareto_front else "no",
        },
    )


def judges(analysis: ExperimentAnalysis, _tiers: Sequence[_ChartedTier]) -> Chart | None:
    """How much more each judge gives than the others who judged the same run."""
    panel = analysis.panel
    if panel is None:
        return None
    labels = distinct_names(line(each.judge, MAX_TIER_CHART_NAME_CHARACTERS) for each in panel.judges)
    known = [
        QuantileRow(label, quantiles, mean=each.leniency)
        for label, each in zip(labels, panel.judges, strict=True)
        if (quantiles := analysis.judge_shifts.get(each.judge, ()))
    ][:MAX_CHART_TIERS]
    if not known:
        return None
    agreed = panel.scores.alpha
    alpha = "not defined" if agreed.value is None else points(agreed)
    low, high = min(row.quantiles[0] for row in known), max(row.quantiles[4] for row in known)
    margin = 0.05 * (high - low) or 0.05
    x = linear_axis(
        "impl rate, less the mean of the other judges", min(low, 0.0) - margin, max(high, 0.0) + margin, style="+.2f"
    )
    shifts = [score_difference_text(row.mean) if row.mean else "-" for row in known]
    return Chart(
        name="judges",
        title="Judges against each other",
        subtitle=f"Krippendorff's alpha {alpha} over {counted(agreed.cases, 'run')}; "
        "bar: the middle half of the runs, line: nine tenths; orange dot: the mean with its 95% interval",
        panels=(quantile_panel(known, x, marks_zero=True),),
        head=("judge", "mean difference", "p5", "p25", "p50", "p75", "p95"),
        rows=tuple(
            (row.name, shift, *(f"{value:+.3f}" for value in row.quantiles))
            for row, shift in zip(known, shifts, strict=True)
        ),
    )


def _chart(
    analysis: ExperimentAnalysis,
    tiers: Sequence[_ChartedTier],
    name: str,
    title: str,
    subtitle: str,
    panels: ChartPanel | tuple[ChartPanel, ...],
    columns: dict[str, Callable[[TierAnalysis], str]],
) -> Chart:
    """A chart of tiers, with a row per tier in its table."""
    panels = (panels,) if isinstance(panels, ChartPanel) else panels
    count = sum(len(model.tiers) for model in analysis.models)
    rest = f"; the first {MAX_CHART_TIERS} of {count:,} tiers" if count > MAX_CHART_TIERS else ""
    rows = [(_full_name(analysis, each), *(text(each.analysis) for text in columns.values())) for each in tiers]
    has_series = any(layer.series is not None for panel in panels for layer in panel.layers)
    return Chart(
        name=name,
        title=title,
        subtitle=subtitle + rest,
        panels=panels,
        head=("tier", *columns),
        rows=tuple(rows),
        series=tuple(distinct_names(_model_names(analysis))) if has_series else (),
    )


def _model_names(analysis: ExperimentAnalysis) -> list[str]:
    return distinct_names(line(model.model, MAX_TIER_CHART_NAME_CHARACTERS) for model in analysis.models)


def _charted_tiers(analysis: ExperimentAnalysis) -> Iterator[_ChartedTier]:
    """Every tier that is shown."""
    labels = distinct_names(line(tier, MAX_TIER_CHART_NAME_CHARACTERS) for tier in analysis.tiers)
    names = dict(zip(analysis.tiers, labels, strict=True))
    left = MAX_CHART_TIERS
    for series, (label, model) in enumerate(zip(_model_names(analysis), analysis.models, strict=True)):
        for tier in model.tiers[:left]:
            yield _ChartedTier(names[tier.tier], label, series, (model.model, tier.tier), tier)
        left = max(left - len(model.tiers), 0)


def _tier_names(tiers: Iterable[_ChartedTier]) -> list[str]:
    return list(dict.fromkeys(each.tier for each in tiers))


def _full_name(analysis: ExperimentAnalysis, tier: _ChartedTier) -> str:
    return tier.tier if len(analysis.models) == 1 else f"{tier.tier}, {tier.model}"


def _label(tiers: Sequence[_ChartedTier], text: str) -> str:
    """A value beside its dot, where there is room."""
    has_room = len(tiers) <= MAX_LABELLED_TIERS and len({each.series for each in tiers}) == 1
    return text if has_room else ""
