"""A run with its matrix of cases and models, the attempt that is being read, and what its suites and tiers score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from steelyard.analysis.estimates import Estimate, share
from steelyard.analysis.suites import RESPONSE_CLASSES, SuiteScore
from steelyard.analysis.summary import AttemptText, ModelSummary, Summary
from steelyard.records import Case
from steelyard.reports import figures as reports
from steelyard.reports.suite_tables import suite_tables
from steelyard.reports.tiers import tier_tables
from steelyard.text import line, plain
from steelyard.tiers.rubrics import JudgingResult
from steelyard.viewer.matrix import (
    MATRIX_SORTS,
    OUTCOME_FILTERS,
    PAGE_SIZES,
    CaseMatrix,
    MatrixCell,
    MatrixQuery,
    page_slice,
)
from steelyard.viewer.pages import rendering
from steelyard.viewer.pages.compare import TextDiffRow, is_comparable, side_by_side
from steelyard.viewer.pages.rendering import PageUrl, rendered
from steelyard.viewer.pages.runs import run_row
from steelyard.viewer.query_params import QueryParameters, ViewerRequestError, url_path
from steelyard.viewer.run_cache import RunCache, displayed_path
from steelyard.viewer.run_view import AttemptRow, RunView
from steelyard.viewer.tier_views import judgments, tier_analysis, tier_charts

MAX_NEARBY_ATTEMPTS = 60
"""Attempts that are within reach of the one that is being read."""
MAX_FILTER_WORDS = 200
"""Words that a filter offers."""


class CellView(NamedTuple):
    """A cell as it is drawn."""

    cell: MatrixCell
    bars: rendering.OutcomeBars
    label: str
    """The most frequent kind of failure."""
    reason: str
    """The reason of one attempt that failed this way."""
    model: str
    tier: str


class CaseRowView(NamedTuple):
    """One case in the matrix."""

    case: Case
    cells: tuple[CellView, ...]


class SiblingCell(NamedTuple):
    """The same case under another model."""

    name: str
    model: str
    tier: str
    cell: MatrixCell
    is_here: bool


class ReadingPane(NamedTuple):
    """One attempt in the reading pane, and its neighbours."""

    case: Case
    name: str
    row: AttemptRow
    tried: AttemptText
    judgments: Sequence[JudgingResult]
    cell: MatrixCell
    rate: Estimate
    attempts: tuple[AttemptRow, ...]
    """Those of this cell, the nearest where there are many."""
    more: int
    """How many others there are."""
    siblings: tuple[SiblingCell, ...]
    previous: int | None
    next: int | None


def run(run_cache: RunCache, name: str, asked: QueryParameters) -> str:
    """A run: headline numbers, the matrix as it is asked for, and the attempt that is being read."""
    opened = run_cache.run(name)
    table = run_cache.table(opened)
    names = [reports.model_label(column.model, column.tier) for column in opened.columns]
    only = tuple(place for place, one in enumerate(names) if one in asked.texts("only"))
    query = MatrixQuery(
        text=asked.text("q").strip(),
        outcome=asked.choice("outcome", OUTCOME_FILTERS),
        label=asked.text("label"),
        tag=asked.text("tag"),
        suite=asked.text("suite"),
        columns=only,
        different=asked.flag("different"),
        sort=asked.choice("sort", MATRIX_SORTS, "order"),
    )
    in_replies = asked.flag("replies")
    size = asked.whole("size", PAGE_SIZES[1], least=1, most=PAGE_SIZES[-1])
    reply_matches = run_cache.reply_matches(opened, query.text) if query.text and in_replies else frozenset()
    here = page_slice(table.found(query, reply_matches), asked.whole("page", 1, least=1, most=1_000_000), size)
    shown = only or tuple(range(len(names)))
    reading = _reading_pane(opened, table, query, asked)
    summary = run_cache.summary(opened)
    values = {
        "q": query.text,
        "replies": "1" if in_replies else "",
        "outcome": query.outcome,
        "label": query.label,
        "tag": query.tag,
        "suite": query.suite,
        "only": [names[place] for place in only],
        "different": "1" if query.different else "",
        "sort": "" if query.sort == "order" else query.sort,
        "size": "" if size == PAGE_SIZES[1] else size,
        "page": "" if here.number == 1 else here.number,
        "case": reading.case.id if reading else "",
        "model": reading.tried.model if reading else "",
        "tier": reading.tried.tier if reading else "",
        "number": reading.tried.number if reading else "",
    }
    return rendered(
        "run.html.j2",
        **run_page_context(run_cache, opened, "matrix"),
        **_headline_context(summary),
        query=query,
        in_replies=in_replies,
        page=here,
        size=size,
        sizes=sorted({*PAGE_SIZES, size}),
        sorts=MATRIX_SORTS,
        outcomes=OUTCOME_FILTERS,
        labels=table.labels.most_common(MAX_FILTER_WORDS),
        tags=table.tags.most_common(MAX_FILTER_WORDS),
        suites=sorted(table.suites.items())[:MAX_FILTER_WORDS],
        names=names,
        only=only,
        columns=[names[place] for place in shown],
        lines=[_line(opened, table, place, shown) for place in here.cases],
        reading=reading,
        progress=_progress(opened, table),
        here=PageUrl(["runs", name], values),
        values=values,
    )


def _line(opened: RunView, table: CaseMatrix, place: int, columns: Sequence[int]) -> CaseRowView:
    cells = []
    for column in columns:
        cell = table.cells[place][column]
        rows = [table.rows[number] for number in cell.places]
        # what a model did wrong says more than what is still owed
        failed = [row for row in rows if row.outcome == "wrong"] or [row for row in rows if row.outcome == "missing"]
        labels = [row.label for row in failed]
        most = max(dict.fromkeys(labels), key=labels.count, default="")
        first_reason = next((row.reason for row in failed if row.label == most), "")
        drawn = rendering.bars([row.outcome for row in rows])
        reason = first_reason.removeprefix(f"{most}: ")
        cells.append(CellView(cell, drawn, most, reason, opened.columns[column].model, opened.columns[column].tier))
    return CaseRowView(opened.cases[place], tuple(cells))


def _reading_pane(opened: RunView, table: CaseMatrix, query: MatrixQuery, asked: QueryParameters) -> ReadingPane | None:
    """The attempt that the address names; if it names none, nothing is read."""
    if not asked.text("case"):
        return None
    case_id, model, tier = asked.text("case"), asked.text("model"), asked.text("tier")
    cases = [place for place, case in enumerate(opened.cases) if case.id == case_id]
    columns = [place for place, column in enumerate(opened.columns) if (column.model, column.tier) == (model, tier)]
    if not cases or not columns:
        raise ViewerRequestError(404, f'no attempts of "{line(model, 80)}" at "{line(case_id, 80)}" in this run')
    cell = table.cells[cases[0]][columns[0]]
    rows = [table.rows[place] for place in cell.places]
    number = asked.whole("number", 0, least=1, most=1_000_000)
    chosen = [row for row in rows if row.number == number] if number else _worth_reading(rows, table, query)
    tried = opened.attempt(case_id, model, tier, chosen[0].number) if chosen else None
    if tried is None:
        raise ViewerRequestError(404, f'no such attempt at "{line(case_id, 80)}" in this run')
    at = rows.index(chosen[0])
    near = rows[max(0, min(at - MAX_NEARBY_ATTEMPTS // 2, len(rows) - MAX_NEARBY_ATTEMPTS)) :][:MAX_NEARBY_ATTEMPTS]
    return ReadingPane(
        case=tried.case,
        name=reports.model_label(model, tier),
        row=chosen[0],
        tried=tried,
        judgments=judgments(opened, tried),
        cell=cell,
        rate=share(cell.correct, cell.attempts),
        attempts=tuple(near),
        more=len(rows) - len(near),
        siblings=tuple(
            SiblingCell(reports.model_label(*column), *column, table.cells[cases[0]][place], place == columns[0])
            for place, column in enumerate(opened.columns)
        ),
        previous=rows[at - 1].number if at else None,
        next=rows[at + 1].number if at + 1 < len(rows) else None,
    )


def _worth_reading(rows: Sequence[AttemptRow], table: CaseMatrix, query: MatrixQuery) -> list[AttemptRow]:
    """The attempts of a cell, what was asked for and failed first."""
    return sorted(rows, key=lambda row: (not table.is_shown(row, query), row.outcome == "correct", row.number))


def run_page_context(run_cache: RunCache, opened: RunView, where: str) -> dict[str, Any]:
    """What the head of every page about a run needs."""
    listing = run_cache.listing()
    listed = next((one for one in listing.runs if one.name == opened.name), None)
    earlier = None
    if listed is not None:
        rows = run_row(listed, run_cache.overview(listing)).models
        earlier = next((row.earlier for row in rows if row.earlier), None)
    return {
        "opened": opened,
        "folder": displayed_path(opened.folder),
        "info": opened.info,
        "where": where,
        "state": "growing" if opened.is_growing else listed.state if listed else "done",
        "eval_sets": listed.eval_sets if listed else (),
        "earlier": earlier,
        "has_suites": any(case.suite for case in opened.cases),
        "has_tiers": bool(opened.info.experiment or opened.info.panel) or len(opened.columns) > 1,
        "pulse": url_path(["runs", opened.name, "pulse"]),
        "version": opened.version,
    }


class HeadlineRow(NamedTuple):
    """One model above the matrix."""

    name: str
    model: ModelSummary
    scale: rendering.IntervalScale | None
    first: tuple[str, Estimate] | None
    """The figure that decides, by its name."""
    others: tuple[tuple[int, Estimate], ...]


def _headline_context(summary: Summary) -> dict[str, Any]:
    rows = []
    for model in summary.models:
        sizes = sorted(model.pass_at.items())
        first = model.quality if sizes else None
        others = sizes if model.on == "score" else sizes[1:]
        name = reports.model_label(model.model, model.tier)
        rows.append(HeadlineRow(name, model, rendering.scale(first[1]) if first else None, first, tuple(others)))
    every = reports.metric_rows(summary.models)
    return {
        "summary": summary,
        "headline": rows,
        "score_decides": any(model.on == "score" for model in summary.models),
        "figures": every,
        "footnotes": reports.footnotes(every),
        "verified": reports.verification_text(summary.models),
        "witnesses": reports.witness_text(summary),
        "concerns": reports.flagged_attempts(summary.models),
    }


class ViewedRunProgress(NamedTuple):
    """How far a run is."""

    done: int
    planned: int


def _progress(opened: RunView, table: CaseMatrix) -> ViewedRunProgress | None:
    """How many attempts are judged of those that were planned; None if the plan is not known."""
    if opened.info.samples is None:
        return None
    info = opened.info
    planned = sum(info.fair_samples(column.model, case.id) or 0 for column in opened.columns for case in opened.cases)
    done = sum(cell.attempts for cells in table.cells for cell in cells)
    return ViewedRunProgress(done, max(planned, done)) if planned else None


def attempt(run_cache: RunCache, name: str, asked: QueryParameters) -> str:
    """Everything about one attempt."""
    opened = run_cache.run(name)
    table = run_cache.table(opened)
    reading = _reading_pane(opened, table, MatrixQuery(), asked)
    if reading is None:
        raise ViewerRequestError(404, "name an attempt: ?case=CASE&model=MODEL&number=1")
    place = table.rows.index(reading.row, reading.cell.places.start)
    return rendered(
        "attempt_page.html.j2",
        **run_page_context(run_cache, opened, "attempt"),
        reading=reading,
        before=_attempt_link(opened, place, -1),
        after=_attempt_link(opened, place, 1),
        next_wrong=_next_wrong(opened, place),
        against=_other_attempt(opened, reading, asked),
    )


class OtherAttempt(NamedTuple):
    """Another attempt of the same cell, and how its reply differs."""

    number: int
    outcome: str
    pairs: Sequence[TextDiffRow] | None
    """None where the texts are too long to be compared."""


def _other_attempt(opened: RunView, reading: ReadingPane, asked: QueryParameters) -> OtherAttempt | None:
    """The attempt that the address names as `against`; None where it names none."""
    number = asked.whole("against", 0, least=1, most=1_000_000)
    if not number:
        return None
    tried = reading.tried
    other = opened.attempt(tried.case.id, tried.model, tried.tier, number)
    row = next((row for row in reading.attempts if row.number == number), None)
    if other is None or row is None:
        raise ViewerRequestError(404, f"no attempt {number} of this model at this case to compare with")
    left, right = (plain(each.reply.answer.text) if each.reply else "" for each in (other, tried))
    pairs = side_by_side(left, right) if is_comparable(left, right) else None
    return OtherAttempt(number, row.outcome, pairs)


def number_to_read(run_cache: RunCache, name: str, asked: QueryParameters) -> int:
    """The number of the attempt that an address names, or of the one that is shown where it names none."""
    opened = run_cache.run(name)
    reading = _reading_pane(opened, run_cache.table(opened), MatrixQuery(), asked)
    if reading is None:
        raise ViewerRequestError(404, "no attempt is named")
    return reading.row.number


class AttemptLink(NamedTuple):
    """Another attempt of the run."""

    href: str
    title: str


def _attempt_link(opened: RunView, place: int, by: int) -> AttemptLink | None:
    place += by
    if not 0 <= place < len(opened.rows):
        return None
    row = opened.rows[place]
    case, column = opened.cases[row.case], opened.columns[row.column]
    values: dict[str, str | int] = {"case": case.id, "model": column.model, "tier": column.tier, "number": row.number}
    title = f"{line(case.id, 60)}, {line(reports.model_label(*column), 60)}, attempt {row.number}"
    return AttemptLink(url_path(["runs", opened.name, "attempt"], values), title)


def _next_wrong(opened: RunView, place: int) -> AttemptLink | None:
    for further in range(place + 1, len(opened.rows)):
        if opened.rows[further].outcome == "wrong":
            return _attempt_link(opened, further, 0)
    return None


class ClassBarSegment(NamedTuple):
    """The responses of one class in a suite, as a piece of a bar."""

    name: str
    responses: int
    tone: str
    x: float
    width: float


class SuiteScoreRow(NamedTuple):
    """One suite under one model."""

    score: SuiteScore
    scale: rendering.IntervalScale | None
    pieces: tuple[ClassBarSegment, ...]


class SuiteView(NamedTuple):
    """All suites under one model."""

    name: str
    overall: str
    rows: tuple[SuiteScoreRow, ...]
    beneath: tuple[tuple[str, str], ...]


def suites(run_cache: RunCache, name: str) -> str:
    """What the suites of a run score, and of which classes their responses are."""
    opened = run_cache.run(name)
    models = [model for model in run_cache.summary(opened).models if model.suites]
    views = []
    for model, table in zip(models, suite_tables(models), strict=True):
        if model.suites is not None:
            rows = tuple(_suite_row(score) for score in model.suites.suites)
            views.append(SuiteView(table.model, reports.rate(model.suites.overall), rows, table.beneath))
    return rendered("suites.html.j2", **run_page_context(run_cache, opened, "suites"), tables=views)


def _suite_row(score: SuiteScore) -> SuiteScoreRow:
    total = sum(score.classes.values())
    pieces, x = [], 0.0
    for name, count in score.classes.items():
        width = 100 * count / total
        tone = name if name in RESPONSE_CLASSES else "other"
        pieces.append(ClassBarSegment(name, count, tone, round(x, 2), round(width, 2)))
        x += width
    return SuiteScoreRow(score, rendering.scale(score.score), tuple(pieces))


def tiers(run_cache: RunCache, name: str) -> str:
    """What the tiers of a run achieve and cost, as tables and charts."""
    opened = run_cache.run(name)
    analysis = tier_analysis(run_cache, opened)
    return rendered(
        "tiers.html.j2",
        **run_page_context(run_cache, opened, "tiers"),
        analysis=analysis,
        tables=tier_tables(analysis),
        charts=tier_charts(run_cache, opened),
    )
