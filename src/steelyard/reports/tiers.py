"""What tiers achieve and cost, for people, pull requests, spreadsheets and programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from textwrap import wrap

import msgspec
from msgspec.structs import replace

from steelyard.analysis.estimates import Estimate
from steelyard.reports.escalation import escalation_table
from steelyard.reports.exports.streaming import StreamedList, StreamedReport, indented_json, json_pieces
from steelyard.reports.figures import dollars, model_label, money, points, rate
from steelyard.reports.lists import rows_text
from steelyard.reports.tables import (
    REPORT_FORMAT,
    CsvValue,
    ReportTable,
    bullets,
    code,
    csv_text,
    escaped,
    warning_parts,
)
from steelyard.text import counted, line
from steelyard.tiers.agreement import PanelAgreement
from steelyard.tiers.results import (
    IMPL_RATES,
    RUN_METRICS,
    BestSubtest,
    ExperimentAnalysis,
    ImplRate,
    ImplRateResult,
    MetricStatistics,
    ModelAnalysis,
    TierAnalysis,
    TierComparison,
    TierGrade,
    best_subtests,
)
from steelyard.tiers.rubrics import CLAIM_TOLERANCE

TIER_STATISTICS = ("median", "mean", "mode", "min", "max", "std_dev", "count")
TIER_ESTIMATES = ("pass_rate", "impl_rate", "composite", "composite_median", "cost_of_pass", "uplift")
SURE_P = 0.05
"""Below this adjusted p a difference on the cases that were run is not due to chance."""
TEXT_COLUMNS = 100
"""The width that a text in a terminal fits."""
MAX_CATEGORIES_IN_A_SENTENCE = 4
"""More than these are a table of their own."""
RELIABLE_ALPHA, TENTATIVE_ALPHA = 0.8, 0.667
"""From here on Krippendorff calls agreement reliable, and worth tentative conclusions."""


def text(analysis: ExperimentAnalysis, *, color: bool = False, width: int = TEXT_COLUMNS) -> str:
    """What a person reads in a terminal: the tiers first, then what they add to each other, then what to beware of."""
    parts = [] if analysis.conclusive else [f"{INCONCLUSIVE_TEXT}\n"]
    for table in tier_tables(analysis):
        parts += wrap(table.title, width, break_on_hyphens=False)
        parts += [rows_text(head, rows, color=color) for head, rows in fitting_parts(table, width)]
        parts += [_indented(table.sentences, width)] if table.sentences or not table.head else []
    if analysis.warnings:
        parts += ["Warnings", _indented((f"! {line(warning)}" for warning in analysis.warnings), width)]
    if analysis.sources:
        parts += ["Inputs", _indented((f"{source.digest}  {line(source.name)}" for source in analysis.sources), width)]
    return "".join(f"{part}\n" for part in parts).rstrip("\n") + "\n"


INCONCLUSIVE_TEXT = "Cannot tell: more than 5% of the cases of some tier have no outcome."


def fitting_parts(table: ReportTable, width: int, gap: int = 2) -> Iterator[tuple[Sequence[str], list[list[str]]]]:
    """A table as one or several that fit a width in characters, each with the first column; `gap` is between columns."""
    if not table.head:
        return
    widths = [max(map(len, column)) for column in zip(table.head, *table.rows, strict=True)]
    start = 1
    while start < len(widths):
        end, total = start, widths[0]
        # one column has to be there, however wide
        while end < len(widths) and (end == start or total + gap + widths[end] <= width):
            total += gap + widths[end]
            end += 1
        chosen = [0, *range(start, end)]
        yield [table.head[place] for place in chosen], [[row[place] for place in chosen] for row in table.rows]
        start = end


def _indented(rows: Iterable[str], width: int) -> str:
    """Sentences beneath each other, folded at the width of a text."""
    return "".join(
        "\n".join(wrap(row, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)) + "\n"
        for row in rows
    )


def markdown(analysis: ExperimentAnalysis) -> str:
    """The same for a comment on a pull request, with the statistics of every metric."""
    parts = ["### Tiers"]
    if not analysis.conclusive:
        parts.append(f"**{INCONCLUSIVE_TEXT}**")
    comparisons = {title for model in analysis.models for title, *_ in _comparisons(model, analysis)}
    for table in tier_tables(analysis):
        title = escaped(table.title)
        parts += [f"**{title}**" if table.title in comparisons else f"#### {title}"]
        parts += [table.markdown()] if table.head else []
        parts += [bullets(table.sentences)] if table.sentences or not table.head else []
    parts += [
        *warning_parts(analysis.warnings),
        "<details><summary>Statistics over all runs of a tier</summary>",
        _statistics(analysis).markdown(),
        "</details>",
    ]
    if analysis.sources:
        inputs = ", ".join(f"{code(source.name)} ({code(source.digest)})" for source in analysis.sources)
        parts.append(f"Inputs: {inputs}")
    return "\n\n".join(parts) + "\n"


def table_csv(analysis: ExperimentAnalysis) -> str:
    """A row per tier with every figure as a number; what is not known or infinite is empty, and a column says which."""
    head = ["model", "tier", "cases", "runs", "interval_unit", "unjudged", "unrated", "unpriced"]
    head += [f"{name}{end}" for name in TIER_ESTIMATES for end in ("", "_low", "_high")]
    head += ["impl_rate_from", *(f"impl_rate_by_{kind}" for kind in IMPL_RATES)]
    head += ["cost_of_pass_infinite", "grade", "could_be", "total_cost_usd", "on_pareto_front"]
    head += [f"{name}_vs_{against}" for against in ("baseline", "predecessor") for name in _COMPARISON_COLUMNS]
    head += [f"{metric}_{name}" for metric, name in _STATISTIC_COLUMNS]
    head += ["cost_of_pass_infinite_statistics", "inputs"]
    rows = []
    inputs = " ".join(source.digest for source in analysis.sources)
    for model in analysis.models:
        against = {each.tier: each for each in model.against_baseline}
        before = {each.tier: each for each in model.ablation}
        for tier in model.tiers:
            row: list[CsvValue] = [model.model, tier.tier, tier.cases, tier.runs, tier.unit]
            row += [tier.unjudged, tier.unrated, tier.unpriced]
            for name in TIER_ESTIMATES:
                estimate: Estimate = getattr(tier, name)
                row += [estimate.value, estimate.low, estimate.high]
            means = (tier.by_impl_rate.get(kind) for kind in IMPL_RATES)
            row += [analysis.impl_rate, *(found.mean if found else None for found in means)]
            row += [tier.cost_of_pass.infinite, tier.grade.letter, " ".join(tier.grade.could_be)]
            row += [tier.cost_usd, tier.on_pareto_front]
            for comparison in (against.get(tier.tier), before.get(tier.tier)):
                row += _comparison_values(comparison)
            row += [getattr(tier.statistics[metric], name) for metric, name in _STATISTIC_COLUMNS]
            row += [" ".join(tier.statistics["cost_of_pass"].infinite), inputs]
            rows.append(row)
    return csv_text(head, rows)


# the median composite has a column with its interval already
_STATISTIC_COLUMNS = [pair for pair in product(RUN_METRICS, TIER_STATISTICS) if pair != ("composite", "median")]
_COMPARISON_COLUMNS = (
    *("tier", "cases", "pass_rate", "pass_rate_low", "pass_rate_high", "composite", "composite_low", "composite_high"),
    *("cost_usd", "cost_usd_low", "cost_usd_high", "p", "p_adjusted"),
)


def _comparison_values(comparison: TierComparison | None) -> list[CsvValue]:
    if comparison is None:
        return [None] * len(_COMPARISON_COLUMNS)
    row: list[CsvValue] = [comparison.other, comparison.cases]
    for estimate in (comparison.pass_rate, comparison.composite, comparison.cost_usd):
        row += [estimate.value, estimate.low, estimate.high]
    return [*row, comparison.p, comparison.p_adjusted]


@StreamedReport
def json_document(analysis: ExperimentAnalysis) -> Iterator[str]:
    """All of an analysis as one JSON object; its runs, which may be many, are made one by one."""
    fields = {"format": REPORT_FORMAT, **msgspec.to_builtins(replace(analysis, runs=()))}
    yield from json_pieces(fields | {"runs": StreamedList(analysis.runs)}, indented_json, 2)
    yield "\n"


TIER_ANALYSIS_FORMATS: dict[str, Callable[[ExperimentAnalysis], str]] = {
    "text": text,
    "json": json_document,
    "csv": table_csv,
    "markdown": markdown,
}


def grade_text(grade: TierGrade) -> str:
    """A grade with those that its interval allows.

    >>> from steelyard.tiers.results import TierGrade
    >>> grade_text(TierGrade(letter="B", could_be=("A",))), grade_text(TierGrade(letter="C", could_be=("A", "B", "D")))
    ('B, could be A', 'C, could be A to D')
    """
    if grade.letter is None:
        return "-"
    if not grade.could_be:
        return grade.letter
    others = grade.could_be
    alternatives = f"{others[0]} to {others[-1]}" if len(others) > 2 else " or ".join(others)
    return f"{grade.letter}, could be {alternatives}"


def tier_tables(analysis: ExperimentAnalysis) -> Iterator[ReportTable]:
    """The tables of an analysis for every format: the tiers, what they add to each other, and their judges."""
    for model in analysis.models:
        yield ReportTable(*_tiers(model, analysis), _title(model, analysis))
        for title, head, rows in _comparisons(model, analysis):
            yield ReportTable(head, rows, title)
        if model.ablation:
            yield ReportTable([], [], "What each addition bought", tuple(map(addition_text, model.ablation)))
        if analysis.impl_rate is not None:
            yield ReportTable(*_impl_rates(model, analysis.impl_rate), _impl_rate_title(analysis.impl_rate))
    if analysis.pair_by == "experiment" and (best := best_subtests(analysis.runs)):
        yield _best_subtests(best, analysis)
    yield ReportTable([], [], "Across tiers", tuple(_cross_tier_sentences(analysis)))
    if analysis.panel is not None:
        yield ReportTable(*_judges(analysis.panel), "Judges", tuple(_agreement(analysis)))
        if len(known := _category_alphas(analysis.panel)) > MAX_CATEGORIES_IN_A_SENTENCE:
            rows = [[line(name, 40), f"{alpha.cases:,}", points(alpha)] for name, alpha in known.items()]
            yield ReportTable(["category", "runs", "alpha"], rows, "Krippendorff's alpha by category")
    if analysis.escalated is not None:
        yield escalation_table(analysis.escalated)


def _best_subtests(best: Sequence[BestSubtest], analysis: ExperimentAnalysis) -> ReportTable:
    head = ["tier", "subtests", "best", f"mean {best[0].by}", "in runs left out", "could also be"]
    rows = [
        [
            line(each.tier if len(analysis.models) == 1 else model_label(each.model, each.tier)),
            f"{each.subtests:,}",
            line(each.best, 30),
            f"{each.value:.3f}",
            "-" if each.held_out is None else f"{each.held_out:.3f}",
            _others_text(each.could_be),
        ]
        for each in best
    ]
    said = (
        "the best of many looks better than it is: in runs left out, each subtest was chosen without the run that scores it",
        "a subtest could also be the best where a test at 5% for all subtests of its tier does not refute it",
    )
    return ReportTable(head, rows, "Best subtest of each tier", said)


def _others_text(names: Sequence[str]) -> str:
    """A few names, and how many more.

    >>> _others_text(["01", "02"]), _others_text([]), _others_text([f"{n:02}" for n in range(9)])
    ('01, 02', 'no other', '00, 01, 02 and 6 more')
    """
    if not names:
        return "no other"
    shown = ", ".join(line(name, 20) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _title(model: ModelAnalysis, analysis: ExperimentAnalysis) -> str:
    runs = sum(tier.runs for tier in model.tiers)
    wp, wi = analysis.weights
    weights = "" if wp == wi else f", composite {wp:g} pass rate to {wi:g} impl rate"
    return f"{line(model.model)}: {counted(len(model.tiers), 'tier')}, {counted(runs, 'run')}{weights}"


def _tiers(model: ModelAnalysis, analysis: ExperimentAnalysis) -> tuple[list[str], list[list[str]]]:
    first = line(analysis.baseline, 20)
    head = ["tier", "cases", "runs", "pass rate", "impl rate", "median composite", "grade", "cost", "cost of pass"]
    head += [f"uplift over {first}", f"p vs {first}"]
    against = {each.tier: each for each in model.against_baseline}
    rows = []
    for tier in model.tiers:
        other = against.get(tier.tier)
        price = tier.cost_of_pass
        rows.append(
            [
                line(tier.tier),
                f"{tier.cases:,}",
                f"{tier.runs:,}",
                rate(tier.pass_rate),
                points(tier.impl_rate),
                points(tier.composite_median),
                grade_text(tier.grade),
                "unknown" if tier.cost_usd is None else money(tier.cost_usd),
                "unknown" if price.value is None and not price.infinite else dollars(price),
                _uplift(tier, model, analysis),
                "-" if other is None or other.p_adjusted is None else _p(other.p_adjusted),
            ]
        )
    return head, rows


def _uplift(tier: TierAnalysis, model: ModelAnalysis, analysis: ExperimentAnalysis) -> str:
    found = tier.uplift
    if found.value is None:
        medians = {each.tier: each.composite_median.value for each in model.tiers}
        is_zero = medians.get(analysis.baseline) == 0 and tier.tier != analysis.baseline
        return "n/a, baseline is 0" if is_zero else "-"
    if found.low is None:
        return f"{found.value:+.1%}"
    high = "∞" if found.high is None else f"{found.high * 100:.1f}"
    return f"{found.value:+.1%} [{found.low * 100:.1f}, {high}]"


IMPL_RATE_MEANINGS: dict[ImplRate, str] = {
    "score": "the weighted score that was recorded",
    "points": "computed from the points that judges gave",
    "recorded": "the impl_rate that was recorded",
}


def _impl_rate_title(used: ImplRate) -> str:
    return f"Impl rate: {used}, {IMPL_RATE_MEANINGS[used]}"


def _impl_rates(model: ModelAnalysis, used: ImplRate) -> tuple[list[str], list[list[str]]]:
    """The mean of each available impl rate, with its grade and uplift."""
    there = {kind for tier in model.tiers for kind in tier.by_impl_rate}
    kinds = [used, *(kind for kind in IMPL_RATES if kind in there - {used})]
    head = ["tier", f"{used} (used)", *kinds[1:]]
    return head, [
        [line(tier.tier), *(_impl_rate_text(tier.by_impl_rate.get(kind)) for kind in kinds)] for tier in model.tiers
    ]


def _impl_rate_text(found: ImplRateResult | None) -> str:
    """One impl rate of a tier, the grade and the uplift.

    >>> _impl_rate_text(ImplRateResult(mean=0.776, composite_median=0.93, grade="B", uplift=0.023, runs=9))
    '0.776, B, +2.3%'
    """
    if found is None or found.mean is None:
        return "-"
    uplift = "" if found.uplift is None else f"{found.uplift:+.1%}"
    return ", ".join(filter(None, (f"{found.mean:.3f}", found.grade, uplift)))


def _comparisons(
    model: ModelAnalysis, analysis: ExperimentAnalysis
) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    head = ["cases", "pass rate", "composite", "cost of a run", "p", "p (Holm)"]
    if model.against_baseline:
        rows = [[line(each.tier), *_comparison_cells(each)] for each in model.against_baseline]
        yield f"Against {line(analysis.baseline)}, case by case", ["tier", *head], rows
    if len(model.ablation) > 1:
        rows = [[f"{line(each.tier)} over {line(each.other)}", *_comparison_cells(each)] for each in model.ablation]
        yield "What each tier adds to the one before", ["addition", *head], rows


def addition_text(each: TierComparison) -> str:
    """What a tier buys beyond the one before, in a sentence.

    >>> unknown = Estimate(value=None)
    >>> gain, price = Estimate(value=0.3, low=0.1, high=0.4), Estimate(value=0.01, low=0.008, high=0.012)
    >>> addition_text(TierComparison(model="m", tier="T1", other="T0", cases=9, tier_only=0, other_only=0, pass_rate=gain,
    ...     composite=unknown, cost_usd=price, p=0.01, p_adjusted=0.02))
    'T1 over T0 buys 30.0 points of pass rate (10.0 to 40.0), for $0.010 more per run: a point costs $0.0003333 a run'
    """
    rate, cost = each.pass_rate, each.cost_usd
    name = f"{line(each.tier)} over {line(each.other)}"
    if rate.value is None:
        return f"{name}: they share no case, so nothing is known of what it buys"
    paid = (
        "at an unknown price" if cost.value is None else f"for {money(abs(cost.value))} {_more_or_less(cost)} per run"
    )
    if rate.low is None or rate.high is None or rate.low <= 0 <= rate.high:
        range_text = (
            "" if rate.low is None or rate.high is None else f" ({rate.low * 100:.1f} to {rate.high * 100:.1f} points)"
        )
        if each.p_adjusted is not None and each.p_adjusted < SURE_P and rate.value:
            gained = f"{'gains' if rate.value > 0 else 'loses'} {abs(rate.value) * 100:.1f} points on these cases"
            return f"{name} {gained} (p {_p(each.p_adjusted)}), which need not hold beyond them{range_text}, {paid}"
        return f"{name} buys nothing that can be distinguished from chance{range_text}, {paid}"
    low, high = sorted((abs(rate.low), abs(rate.high)))
    verb = "buys" if rate.value > 0 else "loses"
    said = (
        f"{name} {verb} {abs(rate.value) * 100:.1f} points of pass rate ({low * 100:.1f} to {high * 100:.1f}), {paid}"
    )
    if rate.value > 0 and cost.value is not None and cost.value > 0:
        said += f": a point costs {money(cost.value / rate.value / 100)} a run"
    return said


def _more_or_less(cost: Estimate) -> str:
    is_certain = cost.low is not None and cost.high is not None and not cost.low <= 0 <= cost.high
    word = "more" if (cost.value or 0.0) >= 0 else "less"
    return word if is_certain else f"{word}, which may be chance,"


def _comparison_cells(each: TierComparison) -> list[str]:
    p, adjusted = ("-" if value is None else _p(value) for value in (each.p, each.p_adjusted))
    return [
        f"{each.cases:,}",
        rate_difference_text(each.pass_rate),
        score_difference_text(each.composite),
        _cost_difference_text(each.cost_usd),
        p,
        adjusted,
    ]


def _cross_tier_sentences(analysis: ExperimentAnalysis) -> Iterator[str]:
    """The sentences about all tiers together."""
    yield analysis.tasks_reason
    front = [
        line(tier.tier if len(analysis.models) == 1 else model_label(model.model, tier.tier))
        for model in analysis.models
        for tier in model.tiers
        if tier.on_pareto_front
    ]
    if front:
        yield f"Pareto front of mean cost and mean composite: {', '.join(front)}"
    frontier = analysis.frontier
    if frontier.tier:
        name = frontier.tier if len(analysis.models) == 1 else model_label(frontier.model, frontier.tier)
        yield f"cheapest pass: {dollars(frontier.cost_of_pass)}, by {line(name)}"
    if frontier.case_mean.value is not None:
        yield f"cheapest pass when every case is done by the tier that does it cheapest: {dollars(frontier.case_mean)}"
    if frontier.unsolved:
        yield f"{frontier.unsolved:,} of {counted(frontier.cases, 'case')} have no finite cost of pass"
    for model in analysis.models:
        of = f"{line(model.model)}: " if len(analysis.models) > 1 else ""
        variances = [
            f"{name} {value:.4g}"
            for name, value in (
                ("pass rates", model.pass_rate_variance),
                ("composites", model.composite_variance),
                ("costs", model.cost_variance),
            )
            if value is not None
        ]
        if variances:
            yield f"{of}variance of the tiers' medians: {', '.join(variances)}"
        if model.cost_delta is not None:
            yield f"{of}the median run of the most expensive tier costs {money(model.cost_delta)} more than that of the cheapest"
    if analysis.tests:
        yield f"p is exact and two-sided, and adjusted by Holm for {counted(analysis.tests, 'comparison')}"


def _judges(panel: PanelAgreement) -> tuple[list[str], list[list[str]]]:
    head = ["judge", "ratings", "invalid", "mean impl rate", "more than the others"]
    rows = [
        [
            line(each.judge),
            f"{each.ratings:,}",
            rate(each.invalid),
            points(each.mean),
            score_difference_text(each.leniency),
        ]
        for each in panel.judges
    ]
    return head, rows


def _agreement(analysis: ExperimentAnalysis) -> Iterator[str]:
    panel = analysis.panel
    if panel is None:
        return
    alpha = panel.scores.alpha
    if alpha.value is None:
        yield f"Krippendorff's alpha of the impl rates: {panel.scores.reasons.get('alpha', 'not known')}"
    else:
        word = (
            "too few to call it reliable"
            if alpha.low is None
            else "reliable"
            if alpha.value >= RELIABLE_ALPHA
            else "tentative"
            if alpha.value >= TENTATIVE_ALPHA
            else "not reliable"
        )
        yield f"Krippendorff's alpha of the impl rates over {counted(alpha.cases, 'run')}: {points(alpha)}, {word}"
    known = _category_alphas(panel)
    if 0 < len(known) <= MAX_CATEGORIES_IN_A_SENTENCE:
        yield f"alpha by category: {', '.join(f'{line(name, 40)} {points(alpha)}' for name, alpha in known.items())}"
    passes = panel.passes
    if passes.same is not None:
        ac1 = "-" if passes.ac1 is None else f"{passes.ac1:.3f}"
        yield f"pass or fail: {passes.same:.1%} of pairs agree, alpha {points(passes.alpha)}, AC1 {ac1}"
    if panel.outliers:
        yield f"{counted(len(panel.outliers), 'rating')} far from those of the other judges of the same run"
    for check in analysis.claims:
        yield (
            f"the {check.claim} that judges claim differs by more than {CLAIM_TOLERANCE:g} from that of their points in "
            f"{check.off:,} of {counted(check.checked, 'rating')}, by {check.mean_distance:.3f} on average"
        )
    if analysis.judges_usd is not None:
        unpriced = counted(analysis.judges_unpriced, "judgment")
        least = f"at least {money(analysis.judges_usd)} ({unpriced} of unknown cost)"
        cost = least if analysis.judges_unpriced else money(analysis.judges_usd)
        yield f"the judges cost {cost}, which is in no figure of the tiers"


def _category_alphas(panel: PanelAgreement) -> dict[str, Estimate]:
    """How far judges agree on each category, where that can be told."""
    return {name: found.alpha for name, found in panel.categories.items() if found.alpha.value is not None}


def _statistics(analysis: ExperimentAnalysis) -> ReportTable:
    head = ["tier", "metric", *(name.replace("_", " ") for name in TIER_STATISTICS)]
    rows = [
        [
            tier.tier if len(analysis.models) == 1 else model_label(model.model, tier.tier),
            metric,
            *(_statistic(tier.statistics[metric], name) for name in TIER_STATISTICS),
        ]
        for model in analysis.models
        for tier in model.tiers
        for metric in RUN_METRICS
    ]
    return ReportTable(head, rows)


def _statistic(described: MetricStatistics, name: str) -> str:
    if name in described.infinite:
        return "∞"
    value = getattr(described, name)
    return "-" if value is None else f"{value:,}" if name == "count" else f"{value:.4g}"


def rate_difference_text(estimate: Estimate) -> str:
    """A difference of rates in points.

    >>> rate_difference_text(Estimate(value=0.042, low=-0.005, high=0.079))
    '+4.2 points [-0.5, 7.9]'
    """
    return _signed_text(estimate, 1, 100, " points")


def score_difference_text(estimate: Estimate) -> str:
    """A difference of scores.

    >>> score_difference_text(Estimate(value=-0.0001, low=-0.01, high=0.01))
    '+0.000 [-0.010, 0.010]'
    """
    return _signed_text(estimate, 3)


def _signed_text(estimate: Estimate, digits: int, factor: int = 1, unit: str = "") -> str:
    """A difference with its sign, and its interval where there is one."""
    if estimate.value is None:
        return "-"
    text = f"{_rounded(estimate.value * factor, digits):+.{digits}f}{unit}"
    if estimate.low is None or estimate.high is None:
        return text
    low, high = (f"{_rounded(end * factor, digits):.{digits}f}" for end in (estimate.low, estimate.high))
    return f"{text} [{low}, {high}]"


def _rounded(value: float, digits: int) -> float:
    """Rounded; a zero never has a minus sign."""
    return round(value, digits) + 0.0


def _cost_difference_text(estimate: Estimate) -> str:
    """A difference of costs.

    >>> _cost_difference_text(Estimate(value=-0.0123, low=-0.5, high=0.25)), _cost_difference_text(Estimate(value=0.0005, low=-0.001, high=0.002))
    ('-$0.012 [-0.500, 0.250]', '+$0.00050 [-0.00100, 0.00200]')
    """
    if estimate.value is None:
        return "unknown"
    known = [end for end in (estimate.value, estimate.low, estimate.high) if end is not None]
    greatest = max(map(abs, known))
    # as many digits for all as the greatest needs, so that they can be compared
    digits = 2 if greatest >= 1 or not greatest else 3 if greatest >= 0.01 else 2 - math.floor(math.log10(greatest))
    text, *ends = (f"{_rounded(end, digits):,.{digits}f}" for end in known)
    text = f"-${text[1:]}" if text.startswith("-") else f"+${text}"
    return f"{text} [{', '.join(ends)}]" if len(ends) == 2 else text


def _p(value: float) -> str:
    return "<1e-12" if value < 1e-12 else f"{value:.2g}"
