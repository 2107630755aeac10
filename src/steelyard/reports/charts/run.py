"""What a run found, as charts: Vega-Lite specifications, each with the table of its numbers."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.analysis.estimates import Estimate, mean
from steelyard.analysis.suites import ordered_class_counts
from steelyard.reports.charts.tiers import (
    CHART_COLOURS,
    CHART_DARK_GREY,
    CHART_GREY,
    LOG_SCALE_RATIO,
    SCORE_BINS,
    chart_spec,
    distinct_names,
)
from steelyard.reports.figures import model_label, money, rate, seconds
from steelyard.stats.descriptive import percentile
from steelyard.stats.passk import pass_at_k
from steelyard.text import line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from steelyard.analysis.summary import CaseSummary, ModelSummary, Summary
    from steelyard.records import Case
    from steelyard.reports.outlines import AttemptMetrics

    Spec = dict[str, Any]
    Row = dict[str, Any]

MAX_BAND_MODELS = 2
"""Models whose intervals are bands; more of them would cover each other."""
MAX_CHART_MODELS = 6
"""Models in one chart; more cannot be told apart."""
MAX_RUN_CHART_NAME_CHARACTERS = 32
"""Of a name."""
MAX_FAILURE_KIND_CHARACTERS = 24
"""Letters of a kind of failure."""
MAX_CHART_FAILURE_KINDS = 8
"""Kinds of failures in one chart; the others are one bar."""
MAX_CHART_SUITES = 20
CHARTED_K_VALUES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
MIN_CASE_SHARE_FOR_K = 0.8
"""A k is drawn where so large a share of the judged cases has k attempts."""
LATENCY_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RUN_CHART_WIDTH_PIXELS = 380
MODEL_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
MODEL_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 4])


class Chart(NamedTuple):
    """A chart, and the same in a table."""

    name: str
    """Unlike those of the other charts of a page, and made of letters."""
    spec: dict[str, Any]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def title(self) -> str:
        return str(self.spec["title"]["text"])

    @property
    def subtitle(self) -> str:
        return "; ".join(self.spec["title"]["subtitle"])

    @property
    def description(self) -> str:
        """What it shows, in words."""
        return str(self.spec["description"]).removeprefix(f"{self.title}. ")

    @property
    def bare(self) -> dict[str, Any]:
        """The specification without its title, for a page that has a heading of its own, and without a ground."""
        kept = {key: value for key, value in self.spec.items() if key not in ("title", "description")}
        # other fonts than the one it was measured with may need more room on the left, where names end
        config = kept["config"] | {"axis": kept["config"]["axis"] | {"titlePadding": 10}}
        padding = {"left": 16, "right": 10, "top": 4, "bottom": 4}
        return kept | {"background": "transparent", "config": config, "padding": padding}


class _ChartedModel(NamedTuple):
    """A model (under a tier) as charts show it."""

    label: str
    summary: ModelSummary
    attempts: Sequence[AttemptMetrics]


class _ChartedRun(NamedTuple):
    seats: tuple[_ChartedModel, ...]
    cases: Sequence[Case]
    counts: Mapping[tuple[str, str], Sequence[CaseSummary]]
    left_out: str
    """Which models are not shown, in words; empty when all are."""

    @property
    def names(self) -> list[str]:
        return [seat.label for seat in self.seats]


def charts(summary: Summary, cases: Sequence[Case], attempts: Sequence[AttemptMetrics]) -> list[Chart]:
    """All charts that there is something to draw in, each with its numbers."""
    run = _charted_run(summary, cases, attempts)
    drawn: tuple[Callable[[_ChartedRun], Chart | None], ...] = (
        pass_at,
        scores,
        cost_and_quality,
        latency,
        failures,
        suites,
    )
    return [chart for draw in drawn if run.seats and (chart := draw(run)) is not None]


def _charted_run(summary: Summary, cases: Sequence[Case], attempts: Sequence[AttemptMetrics]) -> _ChartedRun:
    judged = [model for model in summary.models if model.attempts]
    best = sorted(judged, key=lambda model: -(model.correct / model.attempts))[:MAX_CHART_MODELS]
    shown = [model for model in judged if model in best]
    counts: dict[tuple[str, str], list[CaseSummary]] = {}
    for case in summary.cases:
        counts.setdefault((case.model, case.tier), []).append(case)
    by_model: dict[tuple[str, str], list[AttemptMetrics]] = {}
    for attempt in attempts:
        by_model.setdefault((attempt.model, attempt.tier), []).append(attempt)
    labels = distinct_names(line(short_name(model, shown), MAX_RUN_CHART_NAME_CHARACTERS) for model in shown)
    seats = tuple(
        _ChartedModel(label, model, by_model.get((model.model, model.tier), []))
        for label, model in zip(labels, shown, strict=True)
    )
    left_out = f"the {len(shown)} best of {len(judged)} models" if len(judged) > len(shown) else ""
    return _ChartedRun(seats, cases, counts, left_out)


def short_name(model: ModelSummary, models: Sequence[ModelSummary]) -> str:
    """What tells a model from the others: its tier, where they are all the same model."""
    if model.tier and len({each.model for each in models}) == 1:
        return model.tier
    return model_label(model.model, model.tier)


def pass_at(run: _ChartedRun) -> Chart | None:
    """How likely it is that one of k attempts is correct, for every k that there are attempts for."""
    groups = {case.id: case.group or f"case {case.id}" for case in run.cases}
    rows: list[Row] = []
    for place, seat in enumerate(run.seats):
        judged = [case for case in run.counts[seat.summary.model, seat.summary.tier] if case.attempts]
        for k in CHARTED_K_VALUES:
            estimate = _pass_at(judged, k, groups)
            if estimate is not None:
                rows.append(
                    {"model": seat.label, "seat": place, "k": k, **_estimate_fields(estimate), "told": rate(estimate)}
                )
    ks = sorted({row["k"] for row in rows})
    if len(ks) < 2:
        return None
    is_wide = ks[-1] > 2 * LOG_SCALE_RATIO
    x = {
        "field": "k",
        "type": "quantitative",
        "scale": {"type": "log" if is_wide else "linear", "nice": False, "domain": _domain(run, ks, is_wide)},
        "axis": {"title": "k: attempts at a case", "values": _axis_values(ks), "format": "d", "grid": False},
    }
    y = {"type": "quantitative", "scale": {"domain": [0, 1]}}
    axis = {"axis": {"title": "pass@k", "format": ".0%", "tickCount": 5}}
    return _chart(
        "pass-at-k",
        run,
        "pass@k",
        [f"{seat.label}: " + ", ".join(_pass_at_ends_text(rows, seat, ks)) + "." for seat in run.seats],
        {
            "width": RUN_CHART_WIDTH_PIXELS,
            "height": 200,
            "data": {"values": rows},
            "encoding": {"x": x, "color": _colour(run)},
            # no interval covers a curve
            "layer": [
                *(_uncertainty(run, place, y | axis) for place in range(len(run.seats))),
                *(layer for place in range(len(run.seats)) for layer in _curve(run, place, y | axis)),
            ],
        },
        subtitle=[
            "how likely one of k attempts is correct",
            f"{'bands' if len(run.seats) <= MAX_BAND_MODELS else 'bars'} are 95% intervals over cases like these",
        ],
        head=("k", *run.names),
        rows=[
            [
                str(k),
                *(
                    next((row["told"] for row in rows if (row["model"], row["k"]) == (name, k)), "-")
                    for name in run.names
                ),
            ]
            for k in ks
        ],
    )


def _domain(run: _ChartedRun, ks: Sequence[int], is_wide: bool) -> list[float]:
    """From the first k to the last, with room for bars that stand beside each other."""
    if len(run.seats) <= MAX_BAND_MODELS:
        return [1, ks[-1]]
    if is_wide:
        return [0.9, ks[-1] * 1.1]
    return [1 - 0.06 * (ks[-1] - 1), ks[-1] + 0.06 * (ks[-1] - 1)]


def _uncertainty(run: _ChartedRun, place: int, y: Spec) -> Spec:
    """A band around the curve of one model, or where bands would cover each other bars beside those of others."""
    mark: Spec = {"type": "area", "opacity": 0.15}
    if len(run.seats) > MAX_BAND_MODELS:
        mark = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.55, "xOffset": _model_offset(run, place)}
    return {
        "transform": [{"filter": f"datum.seat === {place} && datum.low !== null"}],
        "mark": mark,
        "encoding": {"y": y | {"field": "low"}, "y2": {"field": "high"}},
    }


def _curve(run: _ChartedRun, place: int, y: Spec) -> Iterator[Spec]:
    """The curve of one model, with a dot at each k."""
    beside = _model_offset(run, place)
    line_mark = {
        "type": "line",
        "strokeWidth": 2,
        "strokeDash": MODEL_DASHES[place % len(MODEL_DASHES)],
        "xOffset": beside,
    }
    dot_mark = {"type": "point", "filled": True, "size": 40, "opacity": 1, "xOffset": beside}
    for mark, further in ((line_mark, {}), (dot_mark, _shape(run))):
        yield {
            "transform": [{"filter": f"datum.seat === {place}"}],
            "mark": mark,
            "encoding": {"y": y | {"field": "value"}, **further},
        }


def _model_offset(run: _ChartedRun, place: int) -> float:
    """How far to the right what belongs to one model stands, so that intervals stand beside each other."""
    return 0.0 if len(run.seats) <= MAX_BAND_MODELS else 6 * (place - (len(run.seats) - 1) / 2)


def _pass_at(judged: Sequence[CaseSummary], k: int, groups: Mapping[str, str]) -> Estimate | None:
    usable = [case for case in judged if case.attempts >= k]
    if not usable or len(usable) < MIN_CASE_SHARE_FOR_K * len(judged):
        return None
    values = [pass_at_k(case.attempts, case.correct, k) or 0.0 for case in usable]
    belongs = [groups.get(case.case, case.case) for case in usable]
    return mean(
        values,
        sum(case.attempts for case in usable),
        groups=belongs if len(set(belongs)) < len(belongs) else None,
    )


def _pass_at_ends_text(rows: Sequence[Row], seat: _ChartedModel, ks: Sequence[int]) -> list[str]:
    ends = (ks[0], ks[-1])
    return [f"pass@{row['k']} {row['told']}" for row in rows if row["model"] == seat.label and row["k"] in ends]


def _axis_values(ks: Sequence[int]) -> list[int]:
    """At most eight of them, the ends among them."""
    step = math.ceil(len(ks) / 8)
    return [*ks[:-1:step], ks[-1]] if len(ks) > 8 else list(ks)


def scores(run: _ChartedRun) -> Chart | None:
    """How the scores of the attempts are spread."""
    rows: list[Row] = []
    table = []
    told = []
    for seat in run.seats:
        values = [attempt.score for attempt in seat.attempts if attempt.score is not None]
        if not values:
            continue
        bins = Counter(min(int(value * SCORE_BINS), SCORE_BINS - 1) for value in values)
        rows += [
            {
                "model": seat.label,
                "from": place / SCORE_BINS,
                "to": (place + 1) / SCORE_BINS,
                "share": bins[place] / len(values),
            }
            for place in range(SCORE_BINS)
        ]
        median = percentile(values, 0.5)
        whole = sum(value == 1 for value in values)
        nothing = sum(value == 0 for value in values)
        table.append(
            [
                seat.label,
                f"{len(values):,}",
                f"{nothing / len(values):.1%}",
                "-" if median is None else f"{median:.3f}",
                f"{math.fsum(values) / len(values):.3f}",
                f"{whole / len(values):.1%}",
            ]
        )
        told.append(f"{seat.label}: {nothing / len(values):.0%} score 0, {whole / len(values):.0%} score 1.")
    if not rows:
        return None
    x = {"type": "quantitative", "scale": {"domain": [0, 1]}}
    return _chart(
        "scores",
        run,
        "Scores of attempts",
        told,
        {
            "data": {"values": rows},
            "facet": _row_per_model_facet(),
            "spacing": 8,
            "spec": {
                "width": RUN_CHART_WIDTH_PIXELS,
                "height": max(36, 150 // len(run.seats)),
                "mark": {"type": "bar", "color": CHART_COLOURS[0], "binSpacing": 1},
                "encoding": {
                    "x": x
                    | {
                        "field": "from",
                        "bin": {"binned": True, "step": 1 / SCORE_BINS},
                        "axis": {
                            "title": "score",
                            "values": [0, 0.2, 0.4, 0.6, 0.8, 1],
                            "format": ".1f",
                            "grid": False,
                        },
                    },
                    "x2": {"field": "to"},
                    "y": {
                        "field": "share",
                        "type": "quantitative",
                        "axis": {"title": None, "format": ".0%", "tickCount": 2},
                    },
                },
            },
        },
        subtitle=["share of each model's attempts"],
        head=("model", "attempts", "score 0", "median", "mean", "score 1"),
        rows=table,
    )


def cost_and_quality(run: _ChartedRun) -> Chart | None:
    """What an attempt costs and how often it is correct; by tokens where no price is known."""
    priced = {seat.label: cost for seat in run.seats if (cost := _mean_cost(seat)) is not None}
    costs = priced or {seat.label: tokens for seat in run.seats if (tokens := _mean_tokens(seat)) is not None}
    rows: list[Row] = []
    groups = {case.id: case.group or f"case {case.id}" for case in run.cases}
    for seat in run.seats:
        judged = [case for case in run.counts[seat.summary.model, seat.summary.tier] if case.attempts]
        quality = _pass_at(judged, 1, groups)
        if quality is not None and quality.value is not None and seat.label in costs:
            rows.append(
                {"model": seat.label, "cost": costs[seat.label], **_estimate_fields(quality), "told": rate(quality)}
            )
    if len(rows) < 2:
        return None
    for row in rows:
        row["front"] = not any(_beats(other, row) for other in rows)
    unit = money if priced else _tokens
    front = [row["model"] for row in rows if row["front"]]
    x = {
        "field": "cost",
        "type": "quantitative",
        "axis": {
            "title": "mean cost of an attempt (US dollars)" if priced else "mean tokens of a reply",
            "format": f"$,.{_digits(rows)}f" if priced else ",.0f",
            "tickCount": 5,
        },
        "scale": {"zero": False, "padding": 24},
    }
    y = {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"title": "pass@1", "format": ".0%", "tickCount": 5},
    }
    return _chart(
        "cost-quality",
        run,
        "Cost against quality" if priced else "Tokens against quality",
        [f"On the Pareto front: {'; '.join(front)}."],
        {
            "width": RUN_CHART_WIDTH_PIXELS,
            "height": 200,
            "data": {"values": rows},
            "encoding": {"x": x, "color": _colour(run)},
            "layer": [
                {
                    "transform": [{"filter": "datum.front"}],
                    "mark": {"type": "line", "interpolate": "step-after", "color": CHART_GREY, "strokeDash": [4, 3]},
                    "encoding": {"y": y | {"field": "value"}, "color": {"value": CHART_GREY}},
                },
                {
                    "transform": [{"filter": "datum.low !== null"}],
                    "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.6},
                    "encoding": {"y": y | {"field": "low"}, "y2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                    "encoding": {"y": y | {"field": "value"}, **_shape(run)},
                },
                {
                    "transform": [{"filter": "datum.front"}],
                    "mark": {
                        "type": "point",
                        "filled": False,
                        "size": 260,
                        "strokeWidth": 1,
                        "opacity": 1,
                        "shape": "circle",
                    },
                    "encoding": {"y": y | {"field": "value"}, "color": {"value": CHART_GREY}},
                },
            ],
        },
        subtitle=[
            *([] if priced else ["no price is known, so tokens stand for it"]),
            "ringed: no other is cheaper and as good, or better and as cheap; lines are 95% intervals",
        ],
        head=("model", "cost of an attempt" if priced else "tokens of a reply", "pass@1", "Pareto front"),
        rows=[[row["model"], unit(row["cost"]), row["told"], "yes" if row["front"] else "no"] for row in rows],
    )


def _digits(rows: Sequence[Row]) -> int:
    """Digits after the point that tell costs apart."""
    most = max(row["cost"] for row in rows)
    return 2 if most >= 1 or most <= 0 else 2 - math.floor(math.log10(most))


def _mean_cost(seat: _ChartedModel) -> float | None:
    costs = [attempt.cost_usd for attempt in seat.attempts if attempt.correct is not None]
    known = [cost for cost in costs if cost is not None]
    # a mean over those with a price would be that of other attempts than pass@1
    return math.fsum(known) / len(known) if known and len(known) == len(costs) else None


def _mean_tokens(seat: _ChartedModel) -> float | None:
    known = [attempt.tokens for attempt in seat.attempts if attempt.tokens is not None]
    return sum(known) / len(known) if known else None


def _beats(one: Row, other: Row) -> bool:
    no_worse = one["cost"] <= other["cost"] and one["value"] >= other["value"]
    return no_worse and (one["cost"], one["value"]) != (other["cost"], other["value"])


def _tokens(value: float) -> str:
    return f"{value:,.0f}"


def latency(run: _ChartedRun) -> Chart | None:
    """How long replies take."""
    rows: list[Row] = []
    for seat in run.seats:
        waits = [attempt.latency for attempt in seat.attempts if attempt.latency]
        if waits:
            found = [percentile(waits, share) or 0.0 for share in LATENCY_QUANTILES]
            ends = dict(zip(("p5", "p25", "p50", "p75", "p95"), found, strict=True))
            rows.append({"model": seat.label, **ends, "label": seconds(ends["p50"])})
    if not rows:
        return None
    is_wide = max(row["p95"] for row in rows) > LOG_SCALE_RATIO * min(row["p5"] for row in rows)
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "nice": False} if is_wide else {"zero": True},
        "axis": {
            "title": f"seconds{' (logarithmic)' if is_wide else ''}",
            "format": ",~g",
            "tickCount": 6,
            "grid": False,
        },
    }
    return _chart(
        "latency",
        run,
        "Latency",
        [f"{row['model']}: median {row['label']}, 95th percentile {seconds(row['p95'])}." for row in rows],
        {
            "data": {"values": rows},
            "facet": _row_per_model_facet(),
            "spacing": 6,
            "spec": {
                "width": RUN_CHART_WIDTH_PIXELS,
                "height": 44,
                "layer": [
                    {
                        "mark": {"type": "rule", "color": CHART_COLOURS[0], "strokeWidth": 1.5},
                        "encoding": {"x": x | {"field": "p5"}, "x2": {"field": "p95"}},
                    },
                    {
                        "mark": {"type": "bar", "color": CHART_COLOURS[0], "height": 12},
                        "encoding": {"x": x | {"field": "p25"}, "x2": {"field": "p75"}},
                    },
                    {
                        "mark": {"type": "tick", "color": CHART_DARK_GREY, "thickness": 2, "size": 18, "opacity": 1},
                        "encoding": {"x": x | {"field": "p50"}},
                    },
                    {
                        "mark": {"type": "text", "dy": -15, "color": CHART_DARK_GREY},
                        "encoding": {"x": x | {"field": "p50"}, "text": {"field": "label"}},
                    },
                ],
            },
        },
        subtitle=["until a reply is there; bar: the middle half, line: nine tenths, tick: the median"],
        head=("model", *(f"p{round(share * 100)}" for share in LATENCY_QUANTILES)),
        rows=[[row["model"], *(seconds(row[f"p{round(share * 100)}"]) for share in LATENCY_QUANTILES)] for row in rows],
    )


def failures(run: _ChartedRun) -> Chart | None:
    """What kinds of failures there are, and how many of each."""
    together: Counter[str] = Counter()
    by_seat: dict[str, Counter[str]] = {}
    for seat in run.seats:
        by_seat[seat.label] = Counter(attempt.failure for attempt in seat.attempts if attempt.failure)
        together += by_seat[seat.label]
    missing = {seat.label: sum(attempt.correct is None for attempt in seat.attempts) for seat in run.seats}
    if not together and not any(missing.values()):
        return None
    first = [
        kind for kind, _ in sorted(together.items(), key=lambda item: (-item[1], item[0]))[:MAX_CHART_FAILURE_KINDS]
    ]
    kinds = sorted((kind for kind in ordered_class_counts(together) if kind in first), key=lambda kind: -together[kind])
    labels = dict(
        zip(kinds, distinct_names(line(kind, MAX_FAILURE_KIND_CHARACTERS) or "failed" for kind in kinds), strict=True)
    )
    rows: list[Row] = []
    for seat in run.seats:
        size = len(seat.attempts) or 1
        counts = [(labels[kind], by_seat[seat.label][kind]) for kind in kinds]
        others = by_seat[seat.label].total() - sum(count for _, count in counts)
        if len(together) > len(kinds):
            counts.append(("other kinds", others))
        if any(missing.values()):
            counts.append(("missing: not the model's", missing[seat.label]))
        rows += [
            {
                "model": seat.label,
                "kind": kind,
                "count": count,
                "share": count / size,
                "label": f"{count:,}" if count else "",
            }
            for kind, count in counts
        ]
    order = list(dict.fromkeys(row["kind"] for row in rows))
    several = len(run.seats) > 1
    y = {"field": "kind", "type": "nominal", "sort": order, "axis": {"title": None, "labelLimit": 150}}
    encoding: Spec = {"y": y, "x": {"field": "share", "type": "quantitative"}}
    encoding["x"] |= {"axis": {"title": "share of attempts", "format": ".0%", "tickCount": 4}}
    if several:
        encoding["yOffset"] = {"field": "model", "type": "nominal", "sort": run.names}
    return _chart(
        "failures",
        run,
        "Kinds of failures",
        [f"{seat.label}: " + _failure_counts_text(rows, seat) + "." for seat in run.seats],
        {
            "width": RUN_CHART_WIDTH_PIXELS - 130,
            "height": {"step": 15, "for": "offset"} if several else {"step": 26},
            "data": {"values": rows},
            "encoding": encoding,
            "layer": [
                {"mark": {"type": "bar"}, "encoding": {"color": _colour(run)}},
                {
                    "mark": {"type": "text", "align": "left", "dx": 4, "color": CHART_DARK_GREY},
                    "encoding": {"text": {"field": "label"}},
                },
            ],
        },
        subtitle=["how attempts that are not correct came out; with their number"],
        head=("kind", *run.names),
        rows=[
            [
                kind,
                *(
                    next(f"{row['count']:,}" for row in rows if (row["kind"], row["model"]) == (kind, name))
                    for name in run.names
                ),
            ]
            for kind in order
        ],
    )


def _failure_counts_text(rows: Sequence[Row], seat: _ChartedModel) -> str:
    told = [f"{row['kind']} {row['count']:,}" for row in rows if row["model"] == seat.label and row["count"]]
    return ", ".join(told) or "none"


def suites(run: _ChartedRun) -> Chart | None:
    """What each suite scores."""
    rows: list[Row] = []
    for seat in run.seats:
        scored = seat.summary.suites
        rows += [
            {
                "model": seat.label,
                "suite": line(suite.suite, MAX_RUN_CHART_NAME_CHARACTERS),
                **_estimate_fields(suite.score),
                "told": rate(suite.score),
            }
            for suite in (scored.suites[:MAX_CHART_SUITES] if scored else ())
            if suite.score.value is not None
        ]
    if not rows:
        return None
    names = list(dict.fromkeys(row["suite"] for row in rows))
    several = len(run.seats) > 1
    x = {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"title": "score", "format": ".0%", "tickCount": 5},
    }
    encoding: Spec = {
        "y": {"field": "suite", "type": "nominal", "sort": None, "axis": {"title": None, "labelLimit": 150}},
        "color": _colour(run),
    }
    if several:
        encoding["yOffset"] = {"field": "model", "type": "nominal", "sort": run.names}
    return _chart(
        "suites",
        run,
        "Suites",
        [f"{row['suite']}{', ' + row['model'] if several else ''}: {row['told']}." for row in rows],
        {
            "width": RUN_CHART_WIDTH_PIXELS - 110,
            "height": {"step": 13, "for": "offset"} if several else {"step": 26},
            "data": {"values": rows},
            "encoding": encoding,
            "layer": [
                {
                    "transform": [{"filter": "datum.low !== null"}],
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": {"x": x | {"field": "value"}, **_shape(run)},
                },
            ],
        },
        subtitle=["share of cases that pass; lines are 95% intervals"],
        head=("suite", *run.names),
        rows=[
            [
                name,
                *(
                    next((row["told"] for row in rows if (row["suite"], row["model"]) == (name, model)), "-")
                    for model in run.names
                ),
            ]
            for name in names
        ],
    )


def _chart(
    name: str,
    run: _ChartedRun,
    title: str,
    told: Iterable[str],
    body: Spec,
    *,
    subtitle: Sequence[str],
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
) -> Chart:
    lines = [*subtitle, run.left_out]
    return Chart(name, chart_spec(title, told, body, subtitle=lines), tuple(head), tuple(tuple(row) for row in rows))


def _row_per_model_facet() -> Spec:
    """A small chart for each model, with its name above."""
    header = {
        "title": None,
        "labelOrient": "top",
        "labelAnchor": "start",
        "labelPadding": 2,
        "labelLimit": RUN_CHART_WIDTH_PIXELS,
    }
    return {"row": {"field": "model", "type": "nominal", "sort": None, "header": header}}


def _estimate_fields(estimate: Estimate) -> Row:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _colour(run: _ChartedRun) -> Spec:
    """A colour for each model, with a legend where there are several."""
    names = run.names
    return {
        "field": "model",
        "type": "nominal",
        "scale": {"domain": names, "range": [CHART_COLOURS[place % len(CHART_COLOURS)] for place in range(len(names))]},
        "legend": _legend(run),
    }


def _shape(run: _ChartedRun) -> Spec:
    """A shape for each model as well: colours alone say nothing to those who do not see them."""
    scale = {"domain": run.names, "range": [MODEL_SHAPES[place % len(MODEL_SHAPES)] for place in range(len(run.names))]}
    return {"shape": {"field": "model", "type": "nominal", "scale": scale, "legend": _legend(run)}}


def _legend(run: _ChartedRun) -> Spec | None:
    if len(run.seats) < 2:
        return None
    return {
        "orient": "top",
        "title": None,
        "columns": 1 if max(map(len, run.names)) > 16 else 3,
        "labelLimit": 300,
        "offset": 6,
        "symbolStrokeWidth": 0,
    }
