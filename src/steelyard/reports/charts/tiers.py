"""What tiers achieve and cost, as charts: Vega-Lite specifications that hold all their data.

Satyanarayan et al. 2017, "Vega-Lite: A Grammar of Interactive Graphics", IEEE Transactions on Visualization and Computer
Graphics 23, 341-350. Colours are those of Okabe and Ito 2008, "Color Universal Design", which people who see fewer
colours tell apart too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import InputError
from steelyard.reports.figures import dollars, points, rate
from steelyard.reports.tiers import grade_text
from steelyard.text import counted, line
from steelyard.tiers.rubrics import GRADE_THRESHOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from steelyard.tiers.analysis import ExperimentAnalysis, ModelAnalysis, TierAnalysis

    Spec = dict[str, Any]
    Row = dict[str, Any]

VEGA_LITE_SCHEMA_URL = "https://vega.github.io/schema/vega-lite/v5.json"
VEGA_LITE_VERSION = "5.21"
"""The Vega-Lite by which pictures are made: the last of its version 5."""
CHART_IMAGE_FORMATS = ("svg", "png")
PNG_SCALE = 2
"""Pixels of a PNG per pixel of the chart."""

CHART_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CHART_GREY, CHART_LIGHT_GREY, CHART_DARK_GREY = "#767676", "#D9D9D9", "#262626"
MAX_CHART_TIERS = 60
"""Tiers of all models together in one chart; more cannot be told apart."""
SCORE_BINS = 20
"""Of the distribution of scores: thresholds of grades lie between two of them."""
MAX_INTERVAL_RATIO = 2.5
"""An interval is drawn as far as so many times the greatest value; from there on it is an arrow."""
LOG_SCALE_RATIO = 10
"""Where the greatest value is more than so many times the least, the scale is logarithmic."""
MAX_LABELLED_MODELS = 3
"""Models of which each dot is labelled; with more, labels would cover each other."""
MAX_TIER_CHART_NAME_CHARACTERS = 40
"""Of a name."""


def charts(analysis: ExperimentAnalysis) -> dict[str, Spec]:
    """All charts that there is something to draw in, by name."""
    drawn: dict[str, Callable[[ExperimentAnalysis], Spec | None]] = {
        "pass-rate": pass_rates,
        "cost-of-pass": costs_of_pass,
        "scores": scores,
        "cost-quality": cost_and_quality,
        "judges": judges,
    }
    found = {name: draw(analysis) for name, draw in drawn.items()}
    return {name: spec for name, spec in found.items() if spec is not None}


def chart_image(spec: Spec, picture: Literal["svg", "png"]) -> bytes:
    """A chart as a picture; raises an InputError where the package that makes pictures is not installed."""
    if picture not in CHART_IMAGE_FORMATS:
        raise ValueError(f"a picture is one of {', '.join(CHART_IMAGE_FORMATS)}, got {picture!r}")
    try:
        import vl_convert
    except ImportError:
        raise InputError(
            "pictures of charts need the package vl-convert-python; install it with: pip install 'steelyard[charts]'"
        ) from None
    # everything is in the specification, so nothing may be fetched
    if picture == "svg":
        text: str = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE_VERSION, allowed_base_urls=[])
        return text.encode()
    drawn: bytes = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE_VERSION, scale=PNG_SCALE, allowed_base_urls=[])
    return drawn


def pass_rates(analysis: ExperimentAnalysis) -> Spec | None:
    """The pass rate of each tier with its interval."""
    rows = [
        row | {"value": tier.pass_rate.value, "low": tier.pass_rate.low, "high": tier.pass_rate.high}
        for row, tier in _tiers(analysis)
        if tier.pass_rate.value is not None
    ]
    if not rows:
        return None
    axis = {"title": "pass rate (share of runs)", "format": ".0%"}
    return _tier_chart_spec(
        analysis,
        "Pass rate by tier",
        _tier_descriptions(analysis, lambda tier: rate(tier.pass_rate)),
        {
            "width": _width(analysis),
            "height": 240,
            "data": {"values": rows},
            "encoding": _tier_encoding(analysis),
            "layer": [
                _interval({"field": "low", "axis": axis, "scale": {"domain": [0, 1]}}),
                _dot("datum.value !== null"),
                *_labels(analysis, {"field": "value", "type": "quantitative", "format": ".0%"}),
            ],
        },
        subtitle="lines are 95% intervals",
    )


def costs_of_pass(analysis: ExperimentAnalysis) -> Spec | None:
    """The cost of a pass of each tier with its interval; an arrow where it has no upper end, or one far off."""
    known = [(row, tier.cost_of_pass) for row, tier in _tiers(analysis)]
    known = [(row, price) for row, price in known if price.value is not None or price.infinite]
    # where nothing passed, what is known is the least that a pass costs
    values = [(price.low if price.infinite else price.value) or 0.0 for _, price in known]
    if not any(values):
        return None
    is_wide = max(values) > LOG_SCALE_RATIO * min(values) > 0
    lows = [price.low for _, price in known if price.low]
    bottom = min(*values, *lows, max(values)) / 1.5 if is_wide else 0.0
    highs = [min(MAX_INTERVAL_RATIO * max(values), price.high) for _, price in known if price.high is not None]
    # open intervals end a little higher than the highest dot
    top = max(*highs, 1.3 * max(values), 0.0)
    rows = []
    for row, price in known:
        is_open = price.infinite or (price.low is not None and (price.high is None or price.high > top))
        ends = {
            "low": None if price.low is None else max(price.low, bottom),
            "high": top if is_open else price.high,
            "open": is_open,
        }
        label = "no pass" if price.infinite else dollars(price).partition(" ")[0]
        value = price.low if price.infinite else price.value
        rows.append(row | ends | {"value": value, "passed": not price.infinite, "label": label})
    digits = 0 if top >= 10 else max(2, 1 - math.floor(math.log10(top)))
    scale = {"type": "log" if is_wide else "linear", "domain": [bottom, top], "nice": False}
    axis = {
        "title": f"cost of a pass (US dollars{', logarithmic' if is_wide else ''})",
        **(
            {"format": "$,~g", "values": _ticks(bottom, top)}
            if is_wide
            else {"format": f"$,.{digits}f", "tickCount": 6}
        ),
    }
    return _tier_chart_spec(
        analysis,
        "Cost of a pass by tier",
        _tier_descriptions(analysis, lambda tier: dollars(tier.cost_of_pass)),
        {
            "width": _width(analysis),
            "height": 240,
            "data": {"values": rows},
            "encoding": _tier_encoding(analysis),
            "layer": [
                _interval({"field": "low", "axis": axis, "scale": scale}),
                {
                    "transform": [{"filter": "datum.open"}],
                    "mark": {"type": "point", "shape": "triangle-up", "filled": True, "size": 60, "opacity": 1},
                    "encoding": {"y": {"field": "high", "type": "quantitative"}},
                },
                _dot("datum.passed"),
                *_labels(analysis, {"field": "label"}),
            ],
        },
        subtitle="lines are 95% intervals; an arrow goes further than the chart",
    )


def _ticks(bottom: float, top: float) -> list[float]:
    """Round numbers for a logarithmic scale."""
    powers = range(math.floor(math.log10(bottom)), math.ceil(math.log10(top)) + 1)
    found = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    return [value for value in found if bottom <= value <= top]


def scores(analysis: ExperimentAnalysis) -> Spec | None:
    """How the composite scores of each tier's runs are spread, with their median."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in analysis.runs:
        if run.composite is not None:
            values.setdefault((run.model, run.tier), []).append(run.composite)
    rows: list[Row] = []
    for row, model, tier in _named_tiers(analysis):
        found = values.get((model.model, tier.tier), [])
        if not found:
            continue
        counts = [0] * SCORE_BINS
        for value in found:
            # a sum of floats that misses its bin by less than a billionth is in it
            counts[min(math.floor(value * SCORE_BINS + 1e-9), SCORE_BINS - 1)] += 1
        rows += [
            row
            | {"kind": "bin", "from": place / SCORE_BINS, "to": (place + 1) / SCORE_BINS, "share": count / len(found)}
            for place, count in enumerate(counts)
            if count
        ]
        middle = tier.composite_median.value
        rows.append(row | {"kind": "median", "from": middle, "label": f"{grade_text(tier.grade)[:1]} {middle:.2f}"})
        rows += [row | {"kind": "grade", "from": least} for least in GRADE_THRESHOLDS.values()]
    if not rows:
        return None
    x = {"field": "from", "type": "quantitative", "scale": {"domain": [0, 1]}}
    several = len(analysis.models) > 1
    head = {"labelAngle": 0, "labelAlign": "left", "title": None, "labelLimit": 120}
    facet: Spec = {"row": {"field": "tier", "type": "nominal", "sort": _order(analysis), "header": head}}
    if several:
        facet["column"] = {"field": "model", "type": "nominal", "header": {"title": None}}
    return _tier_chart_spec(
        analysis,
        "Composite scores by tier",
        _tier_descriptions(
            analysis, lambda tier: f"median {points(tier.composite_median)}, grade {grade_text(tier.grade)}"
        ),
        {
            "data": {"values": rows},
            "facet": facet,
            "spacing": 10,
            "spec": {
                "width": 260 if several else 420,
                "height": 54,
                "layer": [
                    {
                        "transform": [{"filter": "datum.kind === 'grade'"}],
                        "mark": {"type": "rule", "color": CHART_LIGHT_GREY},
                        "encoding": {"x": x},
                    },
                    {
                        "transform": [{"filter": "datum.kind === 'bin'"}],
                        "mark": {"type": "bar", "color": CHART_COLOURS[0], "binSpacing": 1},
                        "encoding": {
                            "x": x
                            | {
                                "bin": {"binned": True, "step": 1 / SCORE_BINS},
                                "axis": {
                                    "title": "composite score of a run",
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
                    {
                        "transform": [{"filter": "datum.kind === 'median'"}],
                        "mark": {"type": "rule", "color": CHART_COLOURS[1], "strokeWidth": 2},
                        "encoding": {"x": x},
                    },
                ],
            },
        },
        subtitle="share of each tier's runs; orange: their median; grades D, C, B and A begin at the grey lines",
    )


def cost_and_quality(analysis: ExperimentAnalysis) -> Spec | None:
    """The mean cost and the mean composite of each tier; a line joins those that no other beats in both."""
    rows: list[Row] = []
    for row, tier in _tiers(analysis):
        cost, quality = tier.statistics["cost_usd"].mean, tier.composite
        if cost is not None and quality.value is not None:
            ends = {"low": quality.low, "high": quality.high}
            rows.append(row | ends | {"cost": cost, "quality": quality.value, "front": bool(tier.on_pareto_front)})
    if not rows:
        return None
    bottom, top = _quality_domain(rows)
    for row, above in zip(rows, _labels_above(rows), strict=True):
        row["above"] = above
        if row["low"] is not None:
            row |= {"low": max(row["low"], bottom), "high": min(row["high"], top)}
    x = {
        "field": "cost",
        "type": "quantitative",
        "axis": {"title": "mean cost of a run (US dollars)", "format": "$,~g", "tickCount": 7},
        "scale": {"zero": False, "padding": 30},
    }
    y = {"type": "quantitative", "scale": {"zero": False, "domain": [bottom, top], "nice": False}}
    title = {"axis": {"title": "mean composite score", "format": ".2f"}}
    several = len(analysis.models) > 1
    colour = _colours(analysis) if several else {"value": CHART_COLOURS[0]}
    front = [f"{row['tier']}{', ' + row['model'] if several else ''}" for row in rows if row["front"]]
    return _tier_chart_spec(
        analysis,
        "Cost against quality",
        [f"On the Pareto front: {'; '.join(front)}."],
        {
            "width": 460,
            "height": 300,
            "data": {"values": rows},
            "encoding": {"x": x},
            "layer": [
                {
                    "transform": [{"filter": "datum.front"}],
                    "mark": {"type": "line", "interpolate": "step-after", "color": CHART_GREY, "strokeDash": [4, 3]},
                    "encoding": {"y": y | {"field": "quality"}},
                },
                {
                    "transform": [{"filter": "datum.low !== null"}],
                    "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.5},
                    "encoding": {"y": y | title | {"field": "low"}, "y2": {"field": "high"}, "color": colour},
                },
                *(
                    {
                        "transform": [{"filter": "datum.front" if is_front else "!datum.front"}],
                        "mark": {"type": "point", "size": 80, "strokeWidth": 2, "opacity": 1}
                        | ({"filled": True} if is_front else {"fill": "white"}),
                        "encoding": {"y": y | title | {"field": "quality"}, "color": colour},
                    }
                    for is_front in (False, True)
                ),
                *(
                    {
                        "transform": [{"filter": "datum.above" if above else "!datum.above"}],
                        "mark": {"type": "text", "align": "left", "dx": 7, "dy": -9 if above else 11},
                        "encoding": {
                            "y": y | {"field": "quality"},
                            "text": {"field": "tier"},
                            "color": {"value": CHART_DARK_GREY},
                        },
                    }
                    for above in (True, False)
                ),
            ],
        },
        subtitle=[
            "filled: on the Pareto front, where no other is cheaper and as good, or better and as cheap",
            "lines are 95% intervals of the composite, cut where they leave the chart",
        ],
    )


def _labels_above(rows: Sequence[Row]) -> list[bool]:
    """Whether each label stands above its dot: away from the dot next to it."""
    widths = [max(row[name] for row in rows) - min(row[name] for row in rows) or 1.0 for name in ("cost", "quality")]

    def distance(one: Row, other: Row) -> float:
        return math.hypot((one["cost"] - other["cost"]) / widths[0], (one["quality"] - other["quality"]) / widths[1])

    found = []
    for row in rows:
        others = [other for other in rows if other is not row]
        next_to = min(others, key=lambda other: distance(row, other), default=row)
        found.append((row["quality"], -row["cost"]) >= (next_to["quality"], -next_to["cost"]))
    return found


def _quality_domain(rows: Sequence[Row]) -> tuple[float, float]:
    """What of the composite is shown: all dots, and as much of their intervals as leaves the dots apart."""
    values = [row["quality"] for row in rows]
    reach = max(values) - min(values) + 0.1
    low = min([*values, *(row["low"] for row in rows if row["low"] is not None)])
    high = max([*values, *(row["high"] for row in rows if row["high"] is not None)])
    return max(0.0, low - 0.02, min(values) - reach), min(1.0, high + 0.02, max(values) + reach)


def judges(analysis: ExperimentAnalysis) -> Spec | None:
    """How much more each judge gives than the others who judged the same run."""
    panel = analysis.panel
    if panel is None:
        return None
    rows: list[Row] = []
    labels = distinct_names(line(each.judge, MAX_TIER_CHART_NAME_CHARACTERS) for each in panel.judges)
    for label, each in zip(labels, panel.judges, strict=True):
        quantiles = analysis.judge_shifts.get(each.judge, ())
        if quantiles:
            ends = dict(zip(("p5", "p25", "p50", "p75", "p95"), quantiles, strict=True))
            mean = {"mean": each.leniency.value, "low": each.leniency.low, "high": each.leniency.high}
            rows.append({"judge": label} | ends | mean)
    if not rows:
        return None
    rows = rows[:MAX_CHART_TIERS]
    y = {"field": "judge", "type": "nominal", "sort": None, "axis": {"title": None, "labelLimit": 260}}
    x = {"type": "quantitative"}
    axis = {"axis": {"title": "impl rate given, less the mean of the other judges of the same run", "format": "+.2f"}}
    agreed = panel.scores.alpha
    alpha = "not defined" if agreed.value is None else points(agreed)
    told = [f"{row['judge']} {row['mean']:+.3f}" for row in rows]
    return _tier_chart_spec(
        analysis,
        "Judges against each other",
        [f"Mean difference of each judge from the others: {'; '.join(told)}.", f"Krippendorff's alpha {alpha}."],
        {
            "width": 420,
            "height": {"step": 34},
            "data": {"values": rows},
            "layer": [
                {"mark": {"type": "rule", "color": CHART_GREY}, "encoding": {"x": {"datum": 0}}},
                {
                    "mark": {"type": "rule", "color": CHART_COLOURS[0], "strokeWidth": 1},
                    "encoding": {"y": y, "x": x | axis | {"field": "p5"}, "x2": {"field": "p95"}},
                },
                {
                    "mark": {"type": "bar", "color": CHART_COLOURS[5], "height": 12},
                    "encoding": {"y": y, "x": x | {"field": "p25"}, "x2": {"field": "p75"}},
                },
                {
                    "mark": {"type": "tick", "color": CHART_DARK_GREY, "thickness": 2, "size": 16, "opacity": 1},
                    "encoding": {"y": y, "x": x | {"field": "p50"}},
                },
                {
                    "transform": [{"filter": "datum.low !== null"}],
                    "mark": {"type": "rule", "color": CHART_COLOURS[1], "strokeWidth": 3},
                    "encoding": {"y": y, "x": x | {"field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "color": CHART_COLOURS[1], "size": 50, "opacity": 1},
                    "encoding": {"y": y, "x": x | {"field": "mean"}},
                },
            ],
        },
        subtitle=[
            f"Krippendorff's alpha {alpha} over {counted(agreed.cases, 'run')}",
            "bar: the middle half of the runs, line: nine tenths; dot: the mean with its 95% interval",
        ],
    )


def _tier_chart_spec(
    analysis: ExperimentAnalysis, title: str, told: Iterable[str], body: Spec, *, subtitle: str | list[str] = ""
) -> Spec:
    """A whole specification: how it looks, and what it says to those who do not see it."""
    lines = [subtitle] if isinstance(subtitle, str) else subtitle
    count = sum(len(model.tiers) for model in analysis.models)
    if count > MAX_CHART_TIERS:
        lines = [*lines, f"the first {MAX_CHART_TIERS} of {count:,} tiers"]
    digests = " ".join(source.digest for source in analysis.sources)
    return chart_spec(title, told, body, subtitle=lines, inputs=digests)


def chart_spec(
    title: str, told: Iterable[str], body: Spec, *, subtitle: Iterable[str] = (), inputs: str = ""
) -> dict[str, Any]:
    """A whole specification around what is drawn; `told` is the same in words, `inputs` digests of what it is made from."""
    return {
        "$schema": VEGA_LITE_SCHEMA_URL,
        "description": " ".join([f"{title}.", *told]),
        "title": {"text": title, "subtitle": [each for each in subtitle if each]},
        "background": "white",
        **body,
        **({"usermeta": {"inputs": inputs}} if inputs else {}),
        "config": {
            "font": "Liberation Sans, Arial, Helvetica, sans-serif",
            "view": {"stroke": CHART_LIGHT_GREY},
            "title": {
                "anchor": "start",
                "fontSize": 15,
                "color": CHART_DARK_GREY,
                "subtitleColor": CHART_GREY,
                "subtitlePadding": 4,
            },
            "axis": {
                "labelColor": CHART_DARK_GREY,
                "titleColor": CHART_DARK_GREY,
                "labelFontSize": 11,
                "titleFontSize": 11,
                "titleFontWeight": "normal",
                "gridColor": "#EEEEEE",
                "labelLimit": 160,
            },
            "header": {"labelFontSize": 11, "labelColor": CHART_DARK_GREY},
            "legend": {"title": None, "labelLimit": 260, "labelColor": CHART_DARK_GREY, "symbolOpacity": 1},
            "text": {"fontSize": 11},
        },
    }


def _named_tiers(analysis: ExperimentAnalysis) -> Iterator[tuple[Row, ModelAnalysis, TierAnalysis]]:
    """Every tier that is shown, by the names that it has in charts."""
    labels = dict(
        zip(
            analysis.tiers,
            distinct_names(line(tier, MAX_TIER_CHART_NAME_CHARACTERS) for tier in analysis.tiers),
            strict=True,
        )
    )
    names = distinct_names(line(model.model, MAX_TIER_CHART_NAME_CHARACTERS) for model in analysis.models)
    left = MAX_CHART_TIERS
    for name, model in zip(names, analysis.models, strict=True):
        for tier in model.tiers[:left]:
            yield {"tier": labels[tier.tier], "model": name}, model, tier
        left = max(left - len(model.tiers), 0)


def _tiers(analysis: ExperimentAnalysis) -> Iterator[tuple[Row, TierAnalysis]]:
    return ((row, tier) for row, _, tier in _named_tiers(analysis))


def _tier_descriptions(analysis: ExperimentAnalysis, told: Callable[[TierAnalysis], str]) -> list[str]:
    """What a chart shows, in words."""
    several = len(analysis.models) > 1
    return [
        "; ".join(
            f"{row['tier']}{', ' + row['model'] if several else ''}: {told(tier)}" for row, tier in _tiers(analysis)
        )
        + "."
    ]


def distinct_names(names: Iterable[str]) -> list[str]:
    """Names that differ: two that were cut to the same get numbers."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _order(analysis: ExperimentAnalysis) -> Sequence[str]:
    return list(dict.fromkeys(row["tier"] for row, _ in _tiers(analysis)))


def _width(analysis: ExperimentAnalysis) -> Spec:
    return {"step": 80 if len(analysis.models) == 1 else 46 if len(analysis.models) <= MAX_LABELLED_MODELS else 30}


def _tier_encoding(analysis: ExperimentAnalysis) -> Spec:
    """Tiers from left to right, those of several models side by side and in colours of their own."""
    x: Spec = {
        "field": "tier",
        "type": "nominal",
        "sort": _order(analysis),
        "axis": {"title": "tier", "labelAngle": 0 if _has_short_names(analysis) else -40},
    }
    if len(analysis.models) == 1:
        return {"x": x | {"scale": {"padding": 0.8}}, "color": {"value": CHART_COLOURS[0]}}
    return {"x": x, "xOffset": {"field": "model", "type": "nominal"}, "color": _colours(analysis)}


def _has_short_names(analysis: ExperimentAnalysis) -> bool:
    return max(map(len, _order(analysis))) <= 8


def _colours(analysis: ExperimentAnalysis) -> Spec:
    names = list(dict.fromkeys(row["model"] for row, _ in _tiers(analysis)))
    range_of = [CHART_COLOURS[place % len(CHART_COLOURS)] for place in range(len(names))]
    return {"field": "model", "type": "nominal", "scale": {"domain": names, "range": range_of}}


def _interval(y: Spec) -> Spec:
    return {
        "transform": [{"filter": "datum.low !== null && datum.high !== null"}],
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {"y": {"type": "quantitative", **y}, "y2": {"field": "high"}},
    }


def _dot(where: str) -> Spec:
    return {
        "transform": [{"filter": where}],
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {"y": {"field": "value", "type": "quantitative"}},
    }


def _labels(analysis: ExperimentAnalysis, text: Spec) -> Iterator[Spec]:
    """The values in figures, beside their dots, where there is room."""
    if len(analysis.models) <= MAX_LABELLED_MODELS:
        yield {
            "mark": {"type": "text", "align": "left", "dx": 7},
            "encoding": {
                "y": {"field": "value", "type": "quantitative"},
                "text": text,
                "color": {"value": CHART_DARK_GREY},
            },
        }
