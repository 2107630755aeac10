"""A run as one self-contained page: no network, no script, and nothing that a model wrote is ever markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from markupsafe import Markup

from steelyard.analysis.attempt_texts import table_of_texts
from steelyard.analysis.attempts import AttemptOutcome, AttemptTable
from steelyard.analysis.hard_cases import hardest_cases
from steelyard.analysis.summary import AttemptText, CaseSummary, ModelSummary, RunResults, Summary
from steelyard.comparison import gate as gates
from steelyard.comparison.gate import Decision, ModelDecision
from steelyard.comparison.threshold import ThresholdComparison
from steelyard.records import Case, RunInfo
from steelyard.reports import figures, labels, tiers
from steelyard.reports.charts import run
from steelyard.reports.charts import tiers as charts
from steelyard.reports.charts.spec import Chart
from steelyard.reports.comparison import headline, reasons, suite_rows, uncompared_names
from steelyard.reports.page import (
    MAX_SMALL_RUN_ATTEMPTS,
    CellState,
    FittedTexts,
    ShownAttempts,
    cell_state,
    environment,
    fitted_texts,
    shown_attempts,
    style,
)
from steelyard.reports.suite_tables import suite_tables
from steelyard.reports.tables import ReportTable
from steelyard.stats.paired import difference_interval
from steelyard.text import counted, line
from steelyard.tiers.results import ExperimentAnalysis
from steelyard.tiers.rubrics import JudgingResult

SMALL_RUN_PAGE_BYTES = 4_900_000
"""Bytes of the page of a small run."""
PAGE_BYTES_PER_ATTEMPT = 4_500
"""Bytes that each attempt beyond those of a small run may add."""
MAX_MATRIX_ROWS = 2_000
"""The maximum number of rows in the matrix; people do not read a longer one."""
MAX_PAGE_NAME_CHARACTERS = 120
"""Letters of a name."""


class BaselineReport(NamedTuple):
    """The baseline of a run, and the result of the comparison."""

    comparison: ThresholdComparison
    decision: Decision
    warnings: tuple[str, ...] = ()


class TierSections(NamedTuple):
    """What a page shows of tiers, without their runs, which may be many."""

    tables: tuple[ReportTable, ...]
    charts: tuple[Chart, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, analysis: ExperimentAnalysis) -> TierSections:
        drawn = (chart._replace(name=f"tiers-{chart.name}") for chart in charts.charts(analysis))
        return cls(tuple(tiers.tier_tables(analysis)), tuple(drawn), analysis.warnings)


class HtmlReportData(NamedTuple):
    """All that a page is made of: numbers of every attempt, and texts of those that are shown."""

    info: RunInfo
    cases: Sequence[Case]
    summary: Summary
    attempts: AttemptTable
    """All of them, in order."""
    chosen: ShownAttempts
    shown: Sequence[AttemptText]
    """Those with their texts."""
    judgments: Mapping[str, Sequence[JudgingResult]] = {}
    """Judgments by the key of the reply."""
    tiers: TierSections | None = None
    against: BaselineReport | None = None


class ReportCell(NamedTuple):
    """The attempts of one model at one case: a cell of the matrix, and a heading further down."""

    anchor: str
    """Made of positions, so that nothing a user or a model wrote ends up in a link."""
    name: str
    summary: CaseSummary | None
    attempts: Sequence[RenderedAttempt]
    more: str
    """What is not shown of them, in words."""
    change: str = ""
    """How its score moved since the baseline; empty if that is not known."""

    @property
    def has_heading(self) -> bool:
        """Whether there is a heading to go to."""
        return bool(self.attempts or self.more)

    @property
    def state(self) -> CellState:
        return cell_state(self.summary.attempts, self.summary.correct) if self.summary else "gap"


class RenderedAttempt(NamedTuple):
    """One attempt on the page."""

    anchor: str
    state: str
    content: Markup


class ReportCaseRow(NamedTuple):
    """One case: a row of the matrix, a section further down, or both."""

    anchor: str
    case: Case
    groups: Sequence[ReportCell]
    head: Markup
    in_matrix: bool

    @property
    def differs(self) -> bool:
        """Whether models came out differently."""
        return len({group.state for group in self.groups}) > 1

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to read about it further down."""
        return any(group.attempts for group in self.groups)


HeadlineState = Literal["good", "bad", "ahead", "unsure", "plain"]


class HeadlineVerdict(NamedTuple):
    """The verdict on the whole run."""

    state: HeadlineState
    """Its colour and its sign."""
    title: str
    sentence: str


def report(results: RunResults) -> str:
    """The page of a run that is in memory as a whole."""
    return page(html_report_data(results))


def html_report_data(results: RunResults) -> HtmlReportData:
    """The data of a run's page."""
    table = table_of_texts(results.info, results.cases, results.attempts)
    picked = shown_attempts(table.rows)
    keys = {(results.cases[row.case].id, *table.columns[row.column], row.number) for row in picked.rows}
    shown = [tried for tried in results.attempts if (tried.case.id, *tried[1:4]) in keys]
    return HtmlReportData(results.info, results.cases, results.summary, table, picked, shown)


def page(material: HtmlReportData) -> str:
    """The page: the verdict and the headline numbers, charts, the matrix, then attempts."""
    return "".join(page_pieces(material))


def page_pieces(material: HtmlReportData) -> Iterator[str]:
    """The same in pieces."""
    summary, models = material.summary, material.summary.models
    hidden, cases = _hidden_attempts(material), _page_cases(material)
    all_figures = figures.metric_rows(models)
    known = {
        "style": style(),
        "info": material.info,
        "summary": summary,
        "names": [figures.model_label(model.model, model.tier) for model in models],
        "eval_sets": [PurePath(file.path).name for file in material.info.eval_sets],
        "sizes": _size_summary(material),
        "headline_verdict": _headline_verdict(material),
        "kept": _shown_texts_note(material, hidden),
        "left_out": cases.left_out,
        "score_decides": any(model.on == "score" for model in models),
        "ks": sorted({k for model in models for k in model.pass_at}),
        "thin": _thin(models),
        "figures": all_figures,
        "footnotes": figures.footnotes(all_figures),
        "verified": figures.verification_text(models),
        "witnesses": figures.witness_text(material.summary),
        "spending": figures.spending_text(material.summary),
        "suites": suite_tables(models),
        "judged": labels.judged_table(summary.judged) if summary.judged else [],
        "judged_sentences": labels.judged_sentences(summary.judged) if summary.judged else [],
        "tier_tables": material.tiers.tables if material.tiers else (),
        "tier_warnings": material.tiers.warnings if material.tiers else (),
        "against": _baseline_context(material.against) if material.against else None,
        **_chart_context(material),
    }
    rows = _rows(material, cases, hidden)
    room = (
        SMALL_RUN_PAGE_BYTES
        + PAGE_BYTES_PER_ATTEMPT * max(0, len(material.shown) - MAX_SMALL_RUN_ATTEMPTS)
        - sum(len(piece.encode()) for piece in _rendered(known, material, rows))
    )
    fitted = fitted_texts(material.cases, material.shown, material.judgments, room)
    yield from _rendered(known, material, _rows(material, cases, hidden, fitted))


def _rendered(known: dict[str, Any], material: HtmlReportData, rows: Sequence[ReportCaseRow]) -> Iterator[str]:
    places = [(model.model, model.tier) for model in material.summary.models]
    anchors = {
        (row.case.id, *place): group.anchor
        for row in rows
        for place, group in zip(places, row.groups, strict=True)
        if row.is_shown and group.has_heading
    }
    return (
        environment()
        .get_template("run.html.j2")
        .generate(
            **known,
            rows=rows,
            places={row.case.id: row.anchor for row in rows if row.is_shown},
            concerns=[
                (
                    concern,
                    [
                        (
                            doubt,
                            figures.model_label(model.model, model.tier),
                            anchors.get((doubt.case, model.model, model.tier), ""),
                        )
                        for model, doubt in concern.attempts
                    ],
                )
                for concern in figures.flagged_attempts(material.summary.models)
            ],
            failed=[
                (
                    hard.case,
                    figures.hard_case_figures(hard, len(material.summary.models)),
                    figures.hard_case_reason(hard, len(material.summary.models)),
                    anchors.get((hard.case, hard.failed.model, hard.failed.tier), ""),
                )
                for hard in hardest_cases(material.summary)
            ],
        )
    )


# The verdict and the headline.


def _size_summary(material: HtmlReportData) -> str:
    """How many cases, models and tiers there are."""
    models = material.summary.models
    counts = [
        counted(len(material.cases), "case"),
        counted(len({model.model for model in models}), "model"),
    ]
    tier_names = {model.tier for model in models if model.tier}
    return " · ".join([*counts, counted(len(tier_names), "tier")] if tier_names else counts)


def _headline_verdict(material: HtmlReportData) -> HeadlineVerdict:
    """The verdict: that of the gate where there is a baseline, otherwise who is ahead, or how good the only model is."""
    summary = material.summary
    if material.against is not None:
        return _gate_verdict(material.against)
    judged = [model for model in summary.models if model.attempts]
    if not judged:
        return HeadlineVerdict(
            "unsure", "Nothing was judged", "No attempt has a verdict, so there is nothing to say yet."
        )
    if not summary.conclusive:
        return HeadlineVerdict("unsure", "Cannot tell", "More than 5% of the cases of some model are unscored.")
    if len(judged) == 1 and judged[0].on == "score":
        (model,) = judged
        scored = (
            f"The mean over {counted(model.cases, 'case')} and {counted(model.attempts, 'attempt')}, which are graded."
        )
        return HeadlineVerdict("plain", f"Mean score {figures.points(model.score)}", scored)
    if len(judged) == 1:
        (model,) = judged
        share = f"{model.correct:,} of {counted(model.attempts, 'attempt')} are correct"
        solved = f"{model.solved:,} of {counted(model.cases, 'case')} were solved at least once"
        return HeadlineVerdict("plain", f"{model.correct / model.attempts:.1%} correct", f"{share}; {solved}.")
    return _leader_verdict(summary, judged)


def _gate_verdict(against: BaselineReport) -> HeadlineVerdict:
    verdict = against.decision.verdict
    states: dict[str, HeadlineState] = {gates.REGRESSED: "bad", gates.NOT_REGRESSED: "good"}
    sentences = [_model_change_sentence(model, against.decision) for model in against.decision.models[:3]]
    return HeadlineVerdict(
        states.get(verdict, "unsure"),
        verdict.capitalize(),
        f"Compared with {line(against.comparison.baseline, MAX_PAGE_NAME_CHARACTERS)}. {' '.join(sentences)}",
    )


def _model_change_sentence(model: ModelDecision, whole: Decision) -> str:
    """How a model moved, and which cases got worse."""
    worse = [change.case for change in model.confirmed]
    named = ", ".join(line(case, MAX_PAGE_NAME_CHARACTERS) for case in worse[:3]) + (
        f" and {len(worse) - 3:,} more" if worse[3:] else ""
    )
    moved = next(reasons(model, whole))
    return f"{line(model.model, MAX_PAGE_NAME_CHARACTERS)}: {moved}{f'; worse: {named}' if worse else ''}."


def _leader_verdict(summary: Summary, judged: Sequence[ModelSummary]) -> HeadlineVerdict:
    """Who is ahead of the next, on the cases that both were asked, and how sure that is."""
    rates: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}
    is_scored = any(model.on == "score" for model in judged)
    for case in summary.cases:
        if case.attempts and (case.score is not None or not is_scored):
            value = case.score if is_scored and case.score is not None else case.correct / case.attempts
            rates.setdefault((case.model, case.tier), {})[case.case] = value, case.attempts
    ranked = sorted(judged, key=lambda model: -_mean_rate(rates.get((model.model, model.tier), {})))
    best, next_best = ranked[:2]
    first, second = (rates.get((model.model, model.tier), {}) for model in (best, next_best))
    shared = sorted(first.keys() & second.keys())
    names = [line(run.short_name(model, judged), MAX_PAGE_NAME_CHARACTERS) for model in (best, next_best)]
    if len(shared) < 2:
        return HeadlineVerdict(
            "plain",
            f"{names[0]} has the {'highest mean score' if is_scored else 'most correct attempts'}",
            "Too few cases are shared to say by how much.",
        )
    counts = [1 / each[case][1] for case in shared for each in (first, second)]
    interval = difference_interval(
        [second[case][0] for case in shared], [first[case][0] for case in shared], attempts=len(counts) / sum(counts)
    )
    gap = sum(first[case][0] - second[case][0] for case in shared) / len(shared)
    ends = "" if interval is None else f" [{interval.low * 100:.1f}, {interval.high * 100:.1f}]"
    what = "mean score" if is_scored else "pass@1"
    lead = f"{gap * 100:.1f} points of {what}{ends} ahead of {names[1]}, over {counted(len(shared), 'case')} that both tried"
    if interval is None or interval.low <= 0:
        who = "model" if len({model.model for model in judged}) > 1 else "tier"
        return HeadlineVerdict(
            "unsure", f"No {who} is clearly ahead", f"{names[0]} is {lead}: no more than chance can do."
        )
    return HeadlineVerdict("ahead", f"{names[0]} is ahead", f"It is {lead}.")


def _mean_rate(rates: Mapping[str, tuple[float, int]]) -> float:
    return sum(share for share, _ in rates.values()) / len(rates) if rates else 0.0


def _shown_texts_note(material: HtmlReportData, hidden: _HiddenAttempts) -> str:
    """Which texts are on the page, where not all are."""
    of = material.chosen
    left_out = hidden.outcomes
    if not left_out:
        return ""
    total = len(of.rows) + left_out.total()
    failed = of.failed + left_out.total() - left_out["correct"]
    failures = f"all {counted(failed, 'failure')}" if of.failed == failed else f"{of.failed:,} of {failed:,} failures"
    return (
        f"This run has {counted(total, 'attempt')}. All of them count in every number and chart; the page keeps the "
        f"texts of {failures}, and of {of.passed:,} of {counted(total - failed, 'correct attempt')}, "
        f"spread over all cases and models. The others can be read with steelyard show and steelyard view."
    )


def _thin(models: Sequence[ModelSummary]) -> set[int]:
    """Each k for which some model's estimate rests on fewer cases than were asked."""
    return {k for model in models for k, estimate in model.pass_at.items() if estimate.cases < model.cases}


# Charts.


def _chart_context(material: HtmlReportData) -> dict[str, list[Chart]]:
    """The charts of the run and of its tiers."""
    of_run = run.charts(material.summary, material.cases, material.attempts)
    of_tiers = material.tiers.charts if material.tiers else ()
    if any(chart.name == "tiers-cost-quality" for chart in of_tiers):
        # what judges say is part of their quality, so theirs says more
        of_run = [chart for chart in of_run if chart.name != "cost-quality"]
    return {"charts": [*of_run, *of_tiers]}


# The comparison with a baseline.


def _baseline_context(against: BaselineReport) -> dict[str, Any]:
    compared, decided = against.comparison, against.decision
    return {
        "baseline": compared.baseline,
        "headline": headline(compared),
        "models": [
            (
                model,
                decided.verdict if len(decided.models) == 1 else model.verdict,
                list(reasons(model, decided)),
            )
            for model in decided.models
        ],
        "states": {gates.REGRESSED: "none", gates.NOT_REGRESSED: "full", gates.CANNOT_TELL: "gap"},
        "suites": suite_rows(compared),
        "changes": [("Regressions", compared.regressions), ("Improvements", compared.improvements)],
        "lists": [(title, names) for title, names in uncompared_names(compared)],
        "warnings": against.warnings,
        "listed": MAX_PAGE_LISTED_CHANGES,
    }


MAX_PAGE_LISTED_CHANGES = 50
"""Changes that are listed; the others are counted."""


# The matrix, and the attempts below it.


class _HiddenAttempts(NamedTuple):
    """How the attempts came out whose texts are not shown."""

    outcomes: Counter[AttemptOutcome]
    """Of all of them."""
    by_cell: Mapping[tuple[int, str, str], Counter[AttemptOutcome]]
    """Of those at cases that have a section, by the index of the case, model and tier."""


def _hidden_attempts(material: HtmlReportData) -> _HiddenAttempts:
    chosen = {row[:3] for row in material.chosen.rows}
    sections = {row.case for row in material.chosen.rows}
    every: Counter[AttemptOutcome] = Counter()
    found: dict[tuple[int, str, str], Counter[AttemptOutcome]] = {}
    for row in material.attempts.rows:
        if row[:3] not in chosen:
            every[row.outcome] += 1
            if row.case in sections:
                found.setdefault((row.case, *material.attempts.columns[row.column]), Counter())[row.outcome] += 1
    return _HiddenAttempts(every, found)


class _PageCases(NamedTuple):
    """The cases that are on the page: of very many the others are only counted."""

    matrix: frozenset[int]
    """The indexes of those in the matrix."""
    sections: frozenset[int]
    """The indexes of those with a section further down."""
    left_out: str
    """A sentence about those that the matrix leaves out; empty if it has all."""


def _page_cases(material: HtmlReportData) -> _PageCases:
    """All cases; in the matrix of very many those where something failed, and the first of the others."""
    sections = frozenset(row.case for row in material.chosen.rows)
    size, models = len(material.cases), len(material.summary.models)
    if size <= MAX_MATRIX_ROWS:
        return _PageCases(frozenset(range(size)), sections, "")
    solved = Counter(case.case for case in material.summary.cases if cell_state(case.attempts, case.correct) == "full")
    failed, others = list[int](), list[int]()
    for index, case in enumerate(material.cases):
        (others if solved[case.id] == models else failed).append(index)
    shown = [*failed, *others][:MAX_MATRIX_ROWS]
    which = (
        "all where something failed among them"
        if len(failed) < MAX_MATRIX_ROWS
        else f"the first of the {len(failed):,} where something failed"
    )
    return _PageCases(frozenset(shown), sections, f"{len(shown):,} of {counted(size, 'case')} are shown: {which}")


def _rows(
    material: HtmlReportData, cases: _PageCases, hidden: _HiddenAttempts, fitted: FittedTexts | None = None
) -> list[ReportCaseRow]:
    """The cases of the page with their attempts; without a fit the attempts are empty."""
    shown: dict[tuple[str, str, str], list[AttemptText]] = {}
    for tried in material.shown:
        shown.setdefault((tried.case.id, tried.model, tried.tier), []).append(tried)
    indexes = sorted(cases.matrix | cases.sections)
    names = {material.cases[index].id for index in indexes}
    counts = {(case.case, case.model, case.tier): case for case in material.summary.cases if case.case in names}
    changes = _changes(material.against)
    rows = []
    for index in indexes:
        case, groups = material.cases[index], []
        for column, model in enumerate(material.summary.models, 1):
            place = (case.id, model.model, model.tier)
            anchor = f"case-{index + 1}-model-{column}"
            name = figures.model_label(model.model, model.tier)
            parts = [
                RenderedAttempt(
                    f"{anchor}-attempt-{place_of}",
                    figures.outcome(tried),
                    fitted.attempts[id(tried)] if fitted else Markup(""),
                )
                for place_of, tried in enumerate(shown.get(place, ()), 1)
            ]
            more = _hidden_attempts_note(hidden.by_cell.get((index, *place[1:])))
            change = changes.get((case.id, name), "")
            groups.append(ReportCell(anchor, name, counts.get(place), parts, more, change))
        head = fitted.cases[case.id] if fitted and case.id in fitted.cases else Markup("")
        rows.append(ReportCaseRow(f"case-{index + 1}", case, groups, head, index in cases.matrix))
    return rows


def _changes(against: BaselineReport | None) -> dict[tuple[str, str], str]:
    """How the score of a case moved, by case and model, where it moved by more than the threshold."""
    if against is None:
        return {}
    changes = (*against.comparison.regressions, *against.comparison.improvements)
    names = {change.model: change.model.rpartition(" -> ")[2] for change in changes}
    return {(change.case_id, names[change.model]): f"{change.delta:+.2f}" for change in changes}


def _hidden_attempts_note(hidden: Counter[AttemptOutcome] | None) -> str:
    if not hidden:
        return ""
    missing = hidden["missing"]
    wrong = hidden.total() - hidden["correct"] - missing
    states = [
        f"{count:,} {word}"
        for word, count in (("correct", hidden["correct"]), ("wrong", wrong), ("missing", missing))
        if count
    ]
    return f"{counted(hidden.total(), 'more attempt')} whose texts are not kept here: {', '.join(states)}"
