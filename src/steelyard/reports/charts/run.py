"""What a run found, as charts."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from steelyard.analysis.attempts import AttemptRow, AttemptTable, Column
from steelyard.analysis.estimates import Estimate, mean
from steelyard.analysis.suites import ordered_class_counts
from steelyard.analysis.summary import CaseSummary, ModelSummary, Summary
from steelyard.records import Case
from steelyard.reports.charts.spec import (
    LOG_SCALE_RATIO,
    Axis,
    Chart,
    ChartPanel,
    CostPoint,
    IntervalRow,
    Layer,
    Point,
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
from steelyard.reports.figures import model_label, money, rate, seconds
from steelyard.stats.descriptive import percentile
from steelyard.stats.passk import pass_at_k
from steelyard.text import line

MAX_BAND_MODELS = 2
"""Models whose intervals are bands; more of them would cover each other."""
MAX_CHART_MODELS = 6
"""Models in one chart; readers cannot distinguish more."""
MAX_RUN_CHART_NAME_CHARACTERS = 32
MAX_FAILURE_KIND_CHARACTERS = 24
MAX_CHART_FAILURE_KINDS = 8
"""Kinds of failures in one chart; the others are one bar."""
MAX_CHART_SUITES = 20
CHARTED_K_VALUES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
MIN_CASE_SHARE_FOR_K = 0.8
"""A k is drawn where at least this share of the judged cases has k attempts."""
MAX_K_TICKS = 8
LATENCY_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SERIES_OFFSET_PIXELS = 6
"""Between the intervals of two models at the same k."""


class _ChartedAttempts:
    """What charts need of the attempts of a model, gathered in one pass over all rows."""

    def __init__(self) -> None:
        self.scores, self.latencies, self.costs = array("d"), array("d"), array("d")
        """Costs are those of attempts that were judged."""
        self.size = self.unpriced = self.missing = 0
        self.tokens = self.with_tokens = 0
        self.failures: Counter[str] = Counter()

    def add(self, row: AttemptRow) -> None:
        self.size += 1
        if row.score is not None:
            self.scores.append(row.score)
        if row.latency:
            self.latencies.append(row.latency)
        if row.correct is None:
            self.missing += 1
        elif row.cost_usd is None:
            self.unpriced += 1
        else:
            self.costs.append(row.cost_usd)
        if row.output_tokens:
            self.tokens += row.output_tokens
            self.with_tokens += 1
        if row.failure:
            self.failures[row.failure] += 1


def _charted_attempts(table: AttemptTable) -> dict[Column, _ChartedAttempts]:
    found = [_ChartedAttempts() for _ in table.columns]
    for row in table.rows:
        found[row.column].add(row)
    return dict(zip(table.columns, found, strict=True))


class _ChartedModel(NamedTuple):
    """A model (under a tier) as charts show it."""

    label: str
    summary: ModelSummary
    attempts: _ChartedAttempts
    judged: Sequence[CaseSummary]
    """Its cases that have a verdict."""


class _ChartedRun(NamedTuple):
    models: tuple[_ChartedModel, ...]
    groups: Mapping[str, str]
    """The group of each case that has one."""
    left_out: str
    """A sentence about the models that are not shown; empty if all are."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(model.label for model in self.models)


def charts(summary: Summary, cases: Sequence[Case], attempts: AttemptTable) -> list[Chart]:
    """All charts that have something to show."""
    run = _charted_run(summary, cases, attempts)
    makers: tuple[Callable[[_ChartedRun], Chart | None], ...] = (
        pass_at,
        scores,
        cost_and_quality,
        latency,
        failures,
        suites,
    )
    return [chart for make in makers if run.models and (chart := make(run)) is not None]


def _charted_run(summary: Summary, cases: Sequence[Case], attempts: AttemptTable) -> _ChartedRun:
    judged = [model for model in summary.models if model.attempts]
    best = sorted(judged, key=lambda model: -(model.correct / model.attempts))[:MAX_CHART_MODELS]
    shown = [model for model in judged if model in best]
    counts: dict[tuple[str, str], list[CaseSummary]] = {}
    for case in summary.cases:
        if case.attempts:
            counts.setdefault((case.model, case.tier), []).append(case)
    gathered = _charted_attempts(attempts)
    labels = distinct_names(line(short_name(model, shown), MAX_RUN_CHART_NAME_CHARACTERS) for model in shown)
    models = tuple(
        _ChartedModel(label, model, gathered.get(place) or _ChartedAttempts(), counts.get(place, []))
        for label, model in zip(labels, shown, strict=True)
        for place in [Column(model.model, model.tier)]
    )
    left_out = f"the {len(shown)} best of {len(judged)} models" if len(judged) > len(shown) else ""
    return _ChartedRun(models, {case.id: case.group for case in cases if case.group}, left_out)


def short_name(model: ModelSummary, models: Sequence[ModelSummary]) -> str:
    """What distinguishes a model from the others: its tier, where they are all the same model."""
    if model.tier and len({each.model for each in models}) == 1:
        return model.tier
    return model_label(model.model, model.tier)


def pass_at(run: _ChartedRun) -> Chart | None:
    """How likely it is that one of k attempts is correct, for every k with enough attempts."""
    curves = [
        {k: estimate for k in CHARTED_K_VALUES if (estimate := _pass_at(run, model, k)) is not None}
        for model in run.models
    ]
    ks = sorted({k for curve in curves for k in curve})
    if len(ks) < 2:
        return None
    has_bands = len(run.models) <= MAX_BAND_MODELS
    bands, lines = [], []
    for place, curve in enumerate(curves):
        beside = 0.0 if has_bands else SERIES_OFFSET_PIXELS * (place - (len(curves) - 1) / 2)
        ends = tuple(
            Point(k, estimate.low, y2=estimate.high)
            for k, estimate in curve.items()
            if estimate.low is not None and estimate.high is not None
        )
        dots = tuple(Point(k, estimate.value or 0.0) for k, estimate in curve.items())
        bands.append(
            Layer("area", ends, place, opacity=0.15)
            if has_bands
            else Layer("rule", ends, place, opacity=0.55, dx=beside)
        )
        lines += [Layer("line", dots, place, width=2, dx=beside), Layer("dot", dots, place, width=6, dx=beside)]
    # no interval covers a curve
    layers = tuple(layer for layer in (*bands, *lines) if layer.points)
    return _chart(
        run,
        "pass-at-k",
        "pass@k",
        [
            "how likely one of k attempts is correct",
            f"{'bands' if has_bands else 'bars'} are 95% intervals over cases like these",
        ],
        (ChartPanel(_k_axis(ks, has_margin=not has_bands), share_axis("pass@k"), layers),),
        ("k", *run.names),
        [[str(k), *(rate(curve[k]) if k in curve else "-" for curve in curves)] for k in ks],
    )


def _k_axis(ks: Sequence[int], *, has_margin: bool) -> Axis:
    """From the first k to the last, with at most eight ticks; with room for bars beside each other where they need it."""
    step = math.ceil(len(ks) / MAX_K_TICKS)
    ticks = [*ks[:-1:step], ks[-1]] if len(ks) > MAX_K_TICKS else ks
    is_log = ks[-1] > 2 * LOG_SCALE_RATIO
    low, high = float(ks[0]), float(ks[-1])
    if has_margin:
        low, high = (0.9 * low, 1.1 * high) if is_log else (low - 0.06 * (high - low), high + 0.06 * (high - low))
    return Axis("k: attempts at a case", (), low, high, is_log, tuple(map(float, ticks)), ".0f")


def _pass_at(run: _ChartedRun, model: _ChartedModel, k: int) -> Estimate | None:
    usable = [case for case in model.judged if case.attempts >= k]
    if not usable or len(usable) < MIN_CASE_SHARE_FOR_K * len(model.judged):
        return None
    values = [pass_at_k(case.attempts, case.correct, k) or 0.0 for case in usable]
    groups = [run.groups.get(case.case) or f"case {case.case}" for case in usable] if run.groups else []
    return mean(
        values, sum(case.attempts for case in usable), groups=groups if len(set(groups)) < len(groups) else None
    )


def scores(run: _ChartedRun) -> Chart | None:
    """How the scores of the attempts are spread."""
    groups = [ScoreGroup(model.label, model.attempts.scores) for model in run.models if model.attempts.scores]
    if not groups:
        return None
    rows = []
    for model in run.models:
        name, values = model.label, model.attempts.scores
        if not values:
            continue
        nothing, whole = (sum(value == end for value in values) / len(values) for end in (0, 1))
        median = percentile(values, 0.5) or 0.0
        spread = [f"{median:.3f}", f"{math.fsum(values) / len(values):.3f}"]
        rows.append([name, f"{len(values):,}", f"{nothing:.1%}", *spread, f"{whole:.1%}"])
    return _chart(
        run,
        "scores",
        "Scores of attempts",
        ["share of each model's attempts"],
        score_panels(groups, "score"),
        ("model", "attempts", "score 0", "median", "mean", "score 1"),
        rows,
    )


def cost_and_quality(run: _ChartedRun) -> Chart | None:
    """What an attempt costs and how often it is correct; by tokens where no price is known."""
    priced = {place: cost for place, model in enumerate(run.models) if (cost := _mean_cost(model)) is not None}
    costs = priced or {
        place: tokens for place, model in enumerate(run.models) if (tokens := _mean_tokens(model)) is not None
    }
    known = [
        (place, cost, quality)
        for place, cost in costs.items()
        if (quality := _pass_at(run, run.models[place], 1)) is not None and quality.value is not None
    ]
    if len(known) < 2:
        return None
    points = [
        CostPoint(place, cost, quality, not any(_beats(other, (place, cost, quality)) for other in known))
        for place, cost, quality in known
    ]
    title = "mean cost of an attempt (US dollars)" if priced else "mean tokens of a reply"
    style = f"$,.{cost_digits(costs.values())}f" if priced else ",.0f"
    return _chart(
        run,
        "cost-quality",
        "Cost against quality" if priced else "Tokens against quality",
        [
            *([] if priced else ["no price is known, so tokens stand for it"]),
            "ringed: no other is cheaper and as good, or better and as cheap",
            "lines are 95% intervals",
        ],
        (cost_and_quality_panel(points, title, share_axis("pass@1"), style=style),),
        ("model", "cost of an attempt" if priced else "tokens of a reply", "pass@1", "Pareto front"),
        [
            [
                run.names[point.series],
                money(point.cost) if priced else f"{point.cost:,.0f}",
                rate(point.quality),
                "yes" if point.on_front else "no",
            ]
            for point in points
        ],
    )


def _mean_cost(model: _ChartedModel) -> float | None:
    costs = model.attempts.costs
    # a mean over those with a price would be that of other attempts than pass@1
    return math.fsum(costs) / len(costs) if costs and not model.attempts.unpriced else None


def _mean_tokens(model: _ChartedModel) -> float | None:
    known = model.attempts
    return known.tokens / known.with_tokens if known.with_tokens else None


def _beats(one: tuple[int, float, Estimate], other: tuple[int, float, Estimate]) -> bool:
    one_value, other_value = one[2].value or 0.0, other[2].value or 0.0
    return one[1] <= other[1] and one_value >= other_value and (one[1], one_value) != (other[1], other_value)


def latency(run: _ChartedRun) -> Chart | None:
    """How long replies take."""
    rows = []
    for model in run.models:
        if model.attempts.latencies:
            ordered = sorted(model.attempts.latencies)
            quantiles = [percentile(ordered, share) or 0.0 for share in LATENCY_QUANTILES]
            rows.append(QuantileRow(model.label, quantiles, seconds(quantiles[2])))
    if not rows:
        return None
    least, most = min(row.quantiles[0] for row in rows), max(row.quantiles[4] for row in rows)
    x = linear_axis("seconds", 0.0, 1.03 * most, style=",g", ticks=6)
    if most > LOG_SCALE_RATIO * least:
        x = log_axis("seconds (logarithmic)", 0.95 * least, 1.05 * most, style=",g")
    return _chart(
        run,
        "latency",
        "Latency",
        ["until a reply is there", "bar: the middle half, line: nine tenths, tick: the median"],
        (quantile_panel(rows, x),),
        ("model", *(f"p{share * 100:.0f}" for share in LATENCY_QUANTILES)),
        [[row.name, *map(seconds, row.quantiles)] for row in rows],
    )


def failures(run: _ChartedRun) -> Chart | None:
    """What kinds of failures there are, and how many of each."""
    counts = [model.attempts.failures for model in run.models]
    together = sum(counts, Counter[str]())
    missing = [model.attempts.missing for model in run.models]
    if not together and not any(missing):
        return None
    ranked = sorted(together.items(), key=lambda item: (-item[1], item[0]))[:MAX_CHART_FAILURE_KINDS]
    frequent = {kind for kind, _ in ranked}
    kinds = sorted(
        (kind for kind in ordered_class_counts(together) if kind in frequent), key=lambda kind: -together[kind]
    )
    labels = distinct_names(line(kind, MAX_FAILURE_KIND_CHARACTERS) or "failed" for kind in kinds)
    table = {label: [each[kind] for each in counts] for label, kind in zip(labels, kinds, strict=True)}
    if len(together) > len(kinds):
        table["other kinds"] = [each.total() - sum(each[kind] for kind in kinds) for each in counts]
    if any(missing):
        table["missing: not the model's"] = missing
    sizes = [model.attempts.size or 1 for model in run.models]
    most = max(count / size for row in table.values() for count, size in zip(row, sizes, strict=True))
    layers = []
    for place, size in enumerate(sizes):
        bars = [(name, row[place]) for name, row in table.items() if row[place]]
        layers.append(Layer("bar", tuple(Point(0.0, name, x2=count / size) for name, count in bars), place, width=12))
        ends = tuple(Point(count / size, name, label=f"{count:,}") for name, count in bars)
        layers.append(Layer("text", ends, place, dx=4))
    x = linear_axis("share of attempts", 0.0, 1.12 * most, style=".0%" if most > 0.05 else ".1%", ticks=4)
    return _chart(
        run,
        "failures",
        "Kinds of failures",
        ["how attempts that are not correct came out", "with their number"],
        (ChartPanel(x, Axis(names=tuple(table)), tuple(layer for layer in layers if layer.points)),),
        ("kind", *run.names),
        [[name, *(f"{count:,}" for count in row)] for name, row in table.items()],
    )


def suites(run: _ChartedRun) -> Chart | None:
    """What each suite scores."""
    rows = [
        IntervalRow(line(suite.suite, MAX_RUN_CHART_NAME_CHARACTERS), place, suite.score)
        for place, model in enumerate(run.models)
        for suite in (model.summary.suites.suites[:MAX_CHART_SUITES] if model.summary.suites else ())
        if suite.score.value is not None
    ]
    if not rows:
        return None
    names = list(dict.fromkeys(row.name for row in rows))
    cells = {(row.name, row.series): rate(row.estimate) for row in rows}
    return _chart(
        run,
        "suites",
        "Suites",
        ["share of cases that pass", "lines are 95% intervals"],
        (interval_panel(names, rows, share_axis("score")),),
        ("suite", *run.names),
        [[name, *(cells.get((name, place), "-") for place in range(len(run.models)))] for name in names],
    )


def _chart(
    run: _ChartedRun,
    name: str,
    title: str,
    subtitle: Sequence[str],
    panels: tuple[ChartPanel, ...],
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
) -> Chart:
    has_series = any(layer.series is not None for panel in panels for layer in panel.layers)
    return Chart(
        name=name,
        title=title,
        subtitle="; ".join(filter(None, (*subtitle, run.left_out))),
        panels=panels,
        head=tuple(head),
        rows=tuple(map(tuple, rows)),
        series=run.names if has_series else (),
    )
