"""Pages about runs, ready to read: what each shows, worked out here and put into words by its template."""

from __future__ import annotations

import hashlib
import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2
from markupsafe import Markup, escape

from steelyard.analysis.estimates import Estimate, difference, share
from steelyard.analysis.suites import RESPONSE_CLASSES
from steelyard.reports import figures as reports
from steelyard.reports import html
from steelyard.reports.gate import VERDICT_WORDS, reasons
from steelyard.reports.tiers import tier_tables
from steelyard.text import line, plain
from steelyard.viewer import sparklines, text_diff
from steelyard.viewer.compare_runs import CASE_CHANGE_STATES, SAME
from steelyard.viewer.matrix import MATRIX_SORTS, OUTCOME_FILTERS, PAGE_SIZES, MatrixQuery, page_slice
from steelyard.viewer.query_params import QueryParameters, ViewerRequestError, url_path
from steelyard.viewer.run_cache import displayed_path, eval_sets, run_histories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from steelyard.analysis.suite_scores import SuiteScore
    from steelyard.analysis.summary import AttemptText, ModelHeadline, ModelSummary, Summary
    from steelyard.comparison.sides import Trials
    from steelyard.records import Case
    from steelyard.tiers.rubrics import JudgingResult
    from steelyard.viewer.compare_runs import ComparedCase, SideComparison
    from steelyard.viewer.matrix import CaseMatrix, MatrixCell
    from steelyard.viewer.run_cache import EarlierRun, RunCache, RunViewSide
    from steelyard.viewer.run_list import ListedRun
    from steelyard.viewer.run_view import AttemptRow, RunView

RUNS_PER_PAGE = 50
MAX_TREND_CARDS = 6
"""Trends that are drawn; the list is for finding runs."""
MAX_TREND_RUNS = 24
"""Runs that a trend goes back."""
MAX_COMPARISON_CHOICES = 100
"""Runs that can be chosen for a comparison without typing; any other is reached from the list."""
MAX_NEARBY_ATTEMPTS = 60
"""Attempts that are within reach of the one that is being read."""
MAX_FILTER_WORDS = 200
"""Words that a filter offers."""
MAX_SHOWN_TEXT_CHARACTERS = 200_000
"""Characters of one text on a page: of longer ones the beginning and the end are shown, and the API gives all of it."""


class PageUrl:
    """Where a reader is, and what the address would be with something else in it."""

    def __init__(self, path: Sequence[str], values: Mapping[str, Any]) -> None:
        self._path = path
        self.values = values

    def __call__(self, _mark: str = "", **changes: Any) -> str:
        return url_path(self._path, {**self.values, **changes}, _mark)

    def numbered(self, number: int) -> str:
        """Where another attempt of the same cell is read."""
        return self("pane", number=number)


class ModelRow(NamedTuple):
    """One model of a run in the list."""

    name: str
    headline: ModelHeadline
    scale: sparklines.IntervalScale | None
    earlier: EarlierRun | None
    change: Estimate | None
    """Of pass@1 since the run before it of the same eval set."""


class RunRow(NamedTuple):
    """One run in the list."""

    listed: ListedRun
    eval_sets: tuple[str, ...]
    models: tuple[ModelRow, ...]


class TrendCard(NamedTuple):
    """One eval set under one model over time."""

    eval_set: str
    model: str
    drawing: sparklines.TrendLine
    points: tuple[EarlierRun, ...]
    change: Estimate | None
    """Since the run before the last."""


def runs(shelf: RunCache, asked: QueryParameters) -> str:
    """The list of runs: filtered, with how the same eval set went over time."""
    text, model = asked.text("q").strip(), asked.text("model")
    eval_set, state = asked.text("eval_set"), asked.choice("state", ("done", "growing", "stopped", "broken"))
    listing = shelf.listing()
    past = run_histories(listing.runs)
    wanted = [
        run
        for run in listing.runs
        if (not state or run.state == state)
        and (not eval_set or eval_set in eval_sets(run))
        and (not model or any(model == reports.model_label(one.model, one.tier) for one in run.models))
        and (not text or text.casefold() in _listed_words(run))
    ]
    here = page_slice(range(len(wanted)), asked.whole("page", 1, least=1, most=10_000), RUNS_PER_PAGE)
    trends = [
        TrendCard(
            " + ".join(sets),
            name,
            sparklines.trend([_pass_at_1(point) for point in points]),
            tuple(points),
            _change(points[-2], points[-1].headline),
        )
        for (sets, name), whole in sorted(past.items(), key=lambda item: item[1][-1].run.started_at, reverse=True)
        if len(points := whole[-MAX_TREND_RUNS:]) > 1
        and (not eval_set or eval_set in sets)
        and (not model or model == name)
    ]
    values = {"q": text, "model": model, "eval_set": eval_set, "state": state}
    return _rendered(
        "runs.html.j2",
        pulse="/pulse",
        version=listing.version,
        pending=listing.pending,
        problem=listing.problem,
        total=len(listing.runs),
        rows=[_run_row(wanted[place], past) for place in here.cases],
        page=here,
        here=PageUrl([], values),
        values=values,
        trends=trends[:MAX_TREND_CARDS],
        models=sorted({reports.model_label(one.model, one.tier) for run in listing.runs for one in run.models}),
        eval_sets=sorted({name for run in listing.runs for name in eval_sets(run)}),
        states=sorted({run.state for run in listing.runs}),
    )


def _listed_words(run: ListedRun) -> str:
    models = [reports.model_label(one.model, one.tier) for one in run.models]
    return "\n".join([run.name, run.started_at, *eval_sets(run), *models]).casefold()


def _pass_at_1(point: EarlierRun) -> Estimate:
    return point.headline.pass_at_1 or Estimate(value=None)


def _run_row(run: ListedRun, past: Mapping[tuple[tuple[str, ...], str], Sequence[EarlierRun]]) -> RunRow:
    rows = []
    for headline in run.models:
        name = reports.model_label(headline.model, headline.tier)
        points = past.get((eval_sets(run), name), ())
        places = [place for place, point in enumerate(points) if point.run.name == run.name]
        earlier = points[places[0] - 1] if places and places[0] else None
        rows.append(ModelRow(name, headline, sparklines.scale(headline.pass_at_1), earlier, _change(earlier, headline)))
    return RunRow(run, eval_sets(run), tuple(rows))


def _change(earlier: EarlierRun | None, headline: ModelHeadline) -> Estimate | None:
    before = earlier.headline.pass_at_1 if earlier else None
    return difference(before, headline.pass_at_1) if before and headline.pass_at_1 else None


class CellView(NamedTuple):
    """A cell as it is drawn."""

    cell: MatrixCell
    bars: sparklines.OutcomeBars
    label: str
    """The most frequent kind of failure."""
    reason: str
    """What was said of one that failed so."""
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
    """One attempt in the reading pane, and what lies around it."""

    case: Case
    name: str
    row: AttemptRow
    tried: AttemptText
    heard: Sequence[JudgingResult]
    cell: MatrixCell
    rate: Estimate
    attempts: tuple[AttemptRow, ...]
    """Those of this cell, the nearest where there are many."""
    more: int
    """How many there are besides."""
    siblings: tuple[SiblingCell, ...]
    previous: int | None
    next: int | None


def run(shelf: RunCache, name: str, asked: QueryParameters) -> str:
    """A run: headline numbers, the matrix as it is asked for, and the attempt that is being read."""
    opened = shelf.run(name)
    table = shelf.table(opened)
    names = [reports.model_label(seat.model, seat.tier) for seat in opened.seats]
    only = tuple(place for place, one in enumerate(names) if one in asked.texts("only"))
    query = MatrixQuery(
        text=asked.text("q").strip(),
        outcome=asked.choice("outcome", OUTCOME_FILTERS),
        label=asked.text("label"),
        tag=asked.text("tag"),
        suite=asked.text("suite"),
        seats=only,
        different=asked.flag("different"),
        sort=asked.choice("sort", MATRIX_SORTS, "order"),
    )
    in_replies = asked.flag("replies")
    size = asked.whole("size", PAGE_SIZES[1], least=1, most=PAGE_SIZES[-1])
    said = shelf.said(opened, query.text) if query.text and in_replies else frozenset()
    here = page_slice(table.found(query, said), asked.whole("page", 1, least=1, most=1_000_000), size)
    shown = only or tuple(range(len(names)))
    reading = _reading_pane(opened, table, query, asked)
    summary = shelf.summary(opened)
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
    return _rendered(
        "run.html.j2",
        **_run_page_context(shelf, opened, "matrix"),
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


def _line(opened: RunView, table: CaseMatrix, place: int, seats: Sequence[int]) -> CaseRowView:
    cells = []
    for seat in seats:
        cell = table.cells[place][seat]
        rows = [table.rows[number] for number in cell.places]
        # what a model did wrong says more than what is still owed
        failed = [row for row in rows if row.outcome == "wrong"] or [row for row in rows if row.outcome == "missing"]
        labels = [row.label for row in failed]
        most = max(dict.fromkeys(labels), key=labels.count, default="")
        said = next((row.reason for row in failed if row.label == most), "")
        drawn = sparklines.bars([row.outcome for row in rows])
        reason = said.removeprefix(f"{most}: ")
        cells.append(CellView(cell, drawn, most, reason, opened.seats[seat].model, opened.seats[seat].tier))
    return CaseRowView(opened.cases[place], tuple(cells))


def _reading_pane(opened: RunView, table: CaseMatrix, query: MatrixQuery, asked: QueryParameters) -> ReadingPane | None:
    """The attempt that the address names; where it names none, nothing is read."""
    if not asked.text("case"):
        return None
    case_id, model, tier = asked.text("case"), asked.text("model"), asked.text("tier")
    cases = [place for place, case in enumerate(opened.cases) if case.id == case_id]
    seats = [place for place, seat in enumerate(opened.seats) if (seat.model, seat.tier) == (model, tier)]
    if not cases or not seats:
        raise ViewerRequestError(404, f'no attempts of "{line(model, 80)}" at "{line(case_id, 80)}" in this run')
    cell = table.cells[cases[0]][seats[0]]
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
        heard=opened.heard(tried),
        cell=cell,
        rate=share(cell.correct, cell.attempts),
        attempts=tuple(near),
        more=len(rows) - len(near),
        siblings=tuple(
            SiblingCell(reports.model_label(*seat), *seat, table.cells[cases[0]][place], place == seats[0])
            for place, seat in enumerate(opened.seats)
        ),
        previous=rows[at - 1].number if at else None,
        next=rows[at + 1].number if at + 1 < len(rows) else None,
    )


def _worth_reading(rows: Sequence[AttemptRow], table: CaseMatrix, query: MatrixQuery) -> list[AttemptRow]:
    """The attempts of a cell, what was asked for and failed first."""
    return sorted(rows, key=lambda row: (not table.is_shown(row, query), row.outcome == "correct", row.number))


def _run_page_context(shelf: RunCache, opened: RunView, where: str) -> dict[str, Any]:
    """What the head of every page about a run needs."""
    listing = shelf.listing()
    listed = next((one for one in listing.runs if one.name == opened.name), None)
    earlier = None
    if listed is not None:
        past = run_histories(listing.runs)
        earlier = next((row.earlier for row in _run_row(listed, past).models if row.earlier), None)
    return {
        "opened": opened,
        "folder": displayed_path(opened.folder),
        "info": opened.info,
        "where": where,
        "state": "growing" if opened.is_growing else listed.state if listed else "done",
        "eval_sets": eval_sets(listed) if listed else (),
        "earlier": earlier,
        "has_suites": any(case.suite for case in opened.cases),
        "has_tiers": bool(opened.info.experiment or opened.info.panel) or len(opened.seats) > 1,
        "pulse": url_path(["runs", opened.name, "pulse"]),
        "version": opened.version,
    }


class HeadlineRow(NamedTuple):
    """One model above the matrix."""

    name: str
    model: ModelSummary
    scale: sparklines.IntervalScale | None
    first: tuple[int, Estimate] | None
    """pass@k at the smallest k."""
    others: tuple[tuple[int, Estimate], ...]


def _headline_context(summary: Summary) -> dict[str, Any]:
    rows = []
    for model in summary.models:
        sizes = sorted(model.pass_at.items())
        first = sizes[0] if sizes else None
        name = reports.model_label(model.model, model.tier)
        rows.append(HeadlineRow(name, model, sparklines.scale(first[1]) if first else None, first, tuple(sizes[1:])))
    every = reports.metric_rows(summary.models)
    return {
        "summary": summary,
        "headline": rows,
        "figures": every,
        "footnotes": reports.footnotes(every),
        "verified": reports.verification_text(summary.models),
        "concerns": reports.flagged_attempts(summary.models),
    }


class ViewedRunProgress(NamedTuple):
    """How far a run is."""

    done: int
    planned: int


def _progress(opened: RunView, table: CaseMatrix) -> ViewedRunProgress | None:
    """How many attempts are judged of those that were planned; None where nobody knows how many are."""
    if opened.info.samples is None:
        return None
    planned = opened.info.samples * len(opened.cases) * len(opened.seats)
    done = sum(cell.attempts for cells in table.cells for cell in cells)
    return ViewedRunProgress(done, max(planned, done)) if planned else None


def attempt(shelf: RunCache, name: str, asked: QueryParameters) -> str:
    """Everything about one attempt."""
    opened = shelf.run(name)
    table = shelf.table(opened)
    reading = _reading_pane(opened, table, MatrixQuery(), asked)
    if reading is None:
        raise ViewerRequestError(404, "name an attempt: ?case=CASE&model=MODEL&number=1")
    place = table.rows.index(reading.row, reading.cell.places.start)
    return _rendered(
        "attempt_page.html.j2",
        **_run_page_context(shelf, opened, "attempt"),
        reading=reading,
        before=_attempt_link(opened, place, -1),
        after=_attempt_link(opened, place, 1),
        next_wrong=_next_wrong(opened, place),
    )


class AttemptLink(NamedTuple):
    """Another attempt of the run."""

    href: str
    told: str


def _attempt_link(opened: RunView, place: int, by: int) -> AttemptLink | None:
    place += by
    if not 0 <= place < len(opened.rows):
        return None
    row = opened.rows[place]
    case, seat = opened.cases[row.case], opened.seats[row.seat]
    values: dict[str, str | int] = {"case": case.id, "model": seat.model, "tier": seat.tier, "number": row.number}
    told = f"{line(case.id, 60)}, {line(reports.model_label(*seat), 60)}, attempt {row.number}"
    return AttemptLink(url_path(["runs", opened.name, "attempt"], values), told)


def _next_wrong(opened: RunView, place: int) -> AttemptLink | None:
    for further in range(place + 1, len(opened.rows)):
        if opened.rows[further].outcome == "wrong":
            return _attempt_link(opened, further, 0)
    return None


class SideChoice(NamedTuple):
    """A run that can be compared, and its models."""

    name: str
    when: str
    models: tuple[str, ...]


class SideBySideAttempts(NamedTuple):
    """An attempt of each side at one case, beside each other."""

    change: ComparedCase
    left: AttemptText | None
    right: AttemptText | None
    left_rows: tuple[AttemptRow, ...]
    right_rows: tuple[AttemptRow, ...]
    pairs: Sequence[text_diff.TextDiffRow] | None
    """None where the texts are too long to be compared."""
    what: str
    """`reply` or `code`."""


def compare(shelf: RunCache, asked: QueryParameters) -> str:
    """Two runs, or two models: the gate's verdict, then case by case, culprits first, and two replies side by side."""
    listing = shelf.listing()
    names, hint = _sides(listing.runs, asked)
    alpha, margin = asked.share("alpha", 0.05), asked.share("margin", 0.05)
    state = asked.choice("state", ("all", "changed", *CASE_CHANGE_STATES), "changed")
    what = asked.choice("what", ("reply", "code"), "reply")
    values = {
        "baseline": names[0],
        "current": names[1],
        "alpha": "" if alpha == 0.05 else f"{alpha:g}",
        "margin": "" if margin == 0.05 else f"{margin:g}",
        "state": "" if state == "changed" else state,
        "what": "" if what == "reply" else what,
    }
    choices = [_choice(one) for one in listing.runs[:MAX_COMPARISON_CHOICES] if one.state != "broken" and one.models]
    context: dict[str, Any] = {
        "choices": choices,
        "known": {side for one in choices for side in (one.name, *(f"{one.name}@{model}" for model in one.models))},
        "hint": hint,
        "values": values,
        "here": PageUrl(["compare"], values),
        "state": state,
        "what": what,
        "states": CASE_CHANGE_STATES,
        "compared": None,
    }
    if not all(names):
        return _rendered("compare.html.j2", **context)
    baseline, current = (shelf.side(name) for name in names)
    found = shelf.compared(baseline, current, alpha=alpha, margin=margin)
    wanted = [
        one
        for one in found.changes
        if state == "all" or one.state == state or (state == "changed" and one.state != SAME)
    ]
    here = page_slice(range(len(wanted)), asked.whole("page", 1, least=1, most=1_000_000), PAGE_SIZES[1])
    values["page"] = "" if here.number == 1 else str(here.number)
    beside = _side_by_side_attempts(shelf, found, (baseline, current), asked, what)
    if beside is not None:
        values |= {"case": beside.change.case, "of": beside.change.model}
        values |= {"left": str(beside.left.number)} if beside.left else {}
        values |= {"right": str(beside.right.number)} if beside.right else {}
    counts = {one: sum(change.state == one for change in found.changes) for one in CASE_CHANGE_STATES}
    return _rendered(
        "compare.html.j2",
        **context
        | {
            "compared": found,
            "decision": found.gated.decision,
            "told": [(model, list(reasons(model, found.gated.decision))) for model in found.gated.decision.models],
            "words": VERDICT_WORDS,
            "warnings": found.gated.warnings,
            "pairing": found.gated.pairing,
            "baseline": baseline,
            "current": current,
            "counts": counts,
            "means": {one.name: _means(one.cases) for one in found.gated.pairing.models},
            "alpha": found.gated.alpha,
            "page": here,
            "changes": [wanted[place] for place in here.cases],
            "beside": beside,
        },
    )


def _sides(runs: Sequence[ListedRun], asked: QueryParameters) -> tuple[tuple[str, str], str]:
    """The two sides that are named, or ticked in the list; and what to do where that are not two."""
    ticked = [one.name for one in reversed(runs) if one.name in asked.texts("run")]
    if len(ticked) == 2:
        return (ticked[0], ticked[1]), ""
    names = asked.text("baseline"), asked.text("current")
    if ticked:
        return (ticked[0], ""), "Two runs can be compared, no more and no less; choose the other one."
    if any(names) and not all(names):
        return names, "Choose the other side as well."
    return names, ""


def _means(cases: Sequence[tuple[Trials, Trials]]) -> tuple[float, float] | None:
    """The mean share of passes over the cases that both sides judged, before and after."""
    judged = [(old, new) for old, new in cases if old.attempts and new.attempts]
    if not judged:
        return None
    before = math.fsum(old.passes / old.attempts for old, _ in judged) / len(judged)
    return before, math.fsum(new.passes / new.attempts for _, new in judged) / len(judged)


def _choice(run: ListedRun) -> SideChoice:
    models = tuple(reports.model_label(one.model, one.tier) for one in run.models)
    return SideChoice(run.name, run.started_at, models if len(models) > 1 else ())


def _side_by_side_attempts(
    shelf: RunCache, found: SideComparison, sides: tuple[RunViewSide, RunViewSide], asked: QueryParameters, what: str
) -> SideBySideAttempts | None:
    case, of = asked.text("case"), asked.text("of")
    change = next((one for one in found.changes if one.case == case and (not of or one.model == of)), None)
    if change is None:
        return None
    # where one model stands for another, the comparison calls it by both names
    old, arrow, new = change.model.partition(" -> ")
    named = zip(sides, (old, new if arrow else old), strict=True)
    rows = [_attempts(shelf, side.opened, case, side.model or name) for side, name in named]
    # what was right before and is wrong now is what a reader looks for, or the other way round
    wanted = ("correct", "wrong") if change.delta <= 0 else ("wrong", "correct")
    tried = [
        _chosen_attempt(side.opened, of_case, asked.whole(which, 0, least=1, most=1_000_000), outcome)
        for side, of_case, which, outcome in zip(sides, rows, ("left", "right"), wanted, strict=True)
    ]
    left, right = (_text(one, what) for one in tried)
    pairs = text_diff.side_by_side(left, right) if text_diff.is_comparable(left, right) else None
    return SideBySideAttempts(change, tried[0], tried[1], tuple(rows[0]), tuple(rows[1]), pairs, what)


def _attempts(shelf: RunCache, opened: RunView, case_id: str, name: str) -> list[AttemptRow]:
    """The attempts of one model at one case, each by its name."""
    cells = shelf.table(opened).cells
    return [
        opened.rows[number]
        for place, case in enumerate(opened.cases)
        if case.id == case_id
        for seat, cell in zip(opened.seats, cells[place], strict=True)
        if reports.model_label(*seat) == name
        for number in cell.places
    ]


def _chosen_attempt(opened: RunView, rows: Sequence[AttemptRow], number: int, outcome: str) -> AttemptText | None:
    ranked = sorted(rows, key=lambda row: (row.number != number, row.outcome != outcome, row.number))
    if not ranked:
        return None
    seat = opened.seats[ranked[0].seat]
    return opened.attempt(opened.cases[ranked[0].case].id, seat.model, seat.tier, ranked[0].number)


def _text(tried: AttemptText | None, what: str) -> str:
    if tried is None:
        return ""
    if what == "code" and tried.verdict is not None and tried.verdict.found.code is not None:
        return plain(tried.verdict.found.code)
    return plain(tried.reply.answer.text) if tried.reply else ""


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
    scale: sparklines.IntervalScale | None
    pieces: tuple[ClassBarSegment, ...]


class SuiteView(NamedTuple):
    """All suites under one model."""

    name: str
    overall: str
    rows: tuple[SuiteScoreRow, ...]
    beneath: tuple[tuple[str, str], ...]


def suites(shelf: RunCache, name: str) -> str:
    """What the suites of a run score, and of which classes their responses are."""
    opened = shelf.run(name)
    models = [model for model in shelf.summary(opened).models if model.suites]
    views = []
    for model, table in zip(models, reports.suite_tables(models), strict=True):
        if model.suites is not None:
            rows = tuple(_suite_row(score) for score in model.suites.suites)
            views.append(SuiteView(table.model, reports.rate(model.suites.overall), rows, table.beneath))
    return _rendered("suites.html.j2", **_run_page_context(shelf, opened, "suites"), tables=views)


def _suite_row(score: SuiteScore) -> SuiteScoreRow:
    total = sum(score.classes.values())
    pieces, x = [], 0.0
    for name, count in score.classes.items():
        width = 100 * count / total
        tone = name if name in RESPONSE_CLASSES else "other"
        pieces.append(ClassBarSegment(name, count, tone, round(x, 2), round(width, 2)))
        x += width
    return SuiteScoreRow(score, sparklines.scale(score.score), tuple(pieces))


def tiers(shelf: RunCache, name: str) -> str:
    """What the tiers of a run achieve and cost, as tables and charts."""
    opened = shelf.run(name)
    analysis = shelf.analysis(opened)
    return _rendered(
        "tiers.html.j2",
        **_run_page_context(shelf, opened, "tiers"),
        analysis=analysis,
        tables=tier_tables(analysis),
        charts=shelf.charts(opened),
    )


def error_page(status: int, message: str) -> str:
    """A page that says what is wrong, and the way back."""
    return _rendered("trouble.html.j2", status=status, message=message)


def loading_page(name: str) -> str:
    """The page of a run while it is read for the first time."""
    return _rendered("being_read.html.j2", name=name)


def login_page() -> str:
    """The page that asks for the key."""
    return _rendered("locked.html.j2")


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """The files that pages refer to, by name, each with its type."""
    viewer, shared = files("steelyard.viewer") / "static", files("steelyard.reports")
    return {
        "page.css": ((shared / "page.css").read_bytes(), "text/css; charset=utf-8"),
        "viewer.css": ((viewer / "viewer.css").read_bytes(), "text/css; charset=utf-8"),
        "mark.svg": ((viewer / "mark.svg").read_bytes(), "image/svg+xml"),
        "viewer.js": ((viewer / "viewer.js").read_bytes(), "text/javascript; charset=utf-8"),
    }


@cache
def _static(name: str) -> str:
    """The address of a static file, another one for another content."""
    content, _ = static_files()[name]
    return f"/static/{name}?v={hashlib.blake2b(content, digest_size=6).hexdigest()}"


def _counted_option(entry: tuple[str, int]) -> tuple[str, str]:
    """A word that can be chosen, with how often it occurs."""
    return entry[0], f"{line(entry[0], 40)} ({entry[1]:,})"


def _breakable(name: str) -> Markup:
    """A long name that is parted after its slashes before it is parted anywhere else."""
    return escape(name).replace("/", Markup("/<wbr>"))


def _signed(value: float) -> str:
    """A change in points, never with a minus before nothing."""
    return f"{round(value * 100, 1) + 0.0:+.1f}"


def _direction(change: Estimate) -> str:
    """Which way something went, `even` where that may be chance."""
    return "up" if (change.low or 0) > 0 else "down" if (change.high or 0) < 0 else "even"


def _readable_timestamp(text: str) -> str:
    """A moment as people read it; whatever else stands there is left as it is."""
    return line(text, 40).replace("T", " ")[:16] if len(text) >= 16 and text[10] == "T" else line(text)


@cache
def _environment() -> jinja2.Environment:
    environment = html.environment(jinja2.PackageLoader("steelyard.viewer", "templates"))
    filters: dict[str, Callable[..., Any]] = {
        "breakable": _breakable,
        "counted_option": _counted_option,
        "moment": _readable_timestamp,
        "moved": _direction,
        "pair": lambda value: (value, line(value, 60)),
        "points": reports.points,
        "rate": reports.rate,
        "share": lambda value: f"{100 * value:.3g}%",
        "signed": _signed,
    }
    environment.filters |= filters
    environment.globals |= {
        "address": url_path,
        "named": reports.model_label,
        "shown": MAX_SHOWN_TEXT_CHARACTERS,
        "static": _static,
    }
    return environment


def prepare() -> None:
    """Compile the templates, so that the first who opens a page does not wait for that."""
    environment = _environment()
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)


def _rendered(template: str, **context: Any) -> str:
    # half of a surrogate pair is no text, and a name on disk may hold one
    return _environment().get_template(template).render(**context).encode("utf-8", "replace").decode()
