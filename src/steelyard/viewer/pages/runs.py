"""The list of runs, with how each eval set went over time."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from steelyard.analysis.estimates import Estimate, difference
from steelyard.analysis.headlines import ModelHeadline
from steelyard.reports import figures as reports
from steelyard.viewer.matrix import page_slice
from steelyard.viewer.pages import rendering
from steelyard.viewer.pages.rendering import PageUrl, rendered
from steelyard.viewer.query_params import QueryParameters
from steelyard.viewer.run_cache import EarlierRun, RunCache, RunsOverview
from steelyard.viewer.run_list import RUN_STATES, ListedRun

RUNS_PER_PAGE = 50
MAX_TREND_CARDS = 6
"""Trends that are drawn; the list is for finding runs."""
MAX_TREND_RUNS = 24
"""Runs that a trend goes back."""


class ModelRow(NamedTuple):
    """One model of a run in the list."""

    name: str
    headline: ModelHeadline
    scale: rendering.IntervalScale | None
    earlier: EarlierRun | None
    change: Estimate | None
    """Of the figure that decides, since the run before it of the same eval set."""


class RunRow(NamedTuple):
    """One run in the list."""

    listed: ListedRun
    eval_sets: tuple[str, ...]
    models: tuple[ModelRow, ...]

    @property
    def is_scored(self) -> bool:
        """Whether mean scores decide about some model."""
        return any(one.headline.on == "score" for one in self.models)


class TrendCard(NamedTuple):
    """One eval set under one model over time."""

    eval_set: str
    model: str
    drawing: rendering.TrendLine
    points: tuple[EarlierRun, ...]
    change: Estimate | None
    """Since the run before the last."""


def runs(run_cache: RunCache, asked: QueryParameters) -> str:
    """The list of runs: filtered, with how the same eval set went over time."""
    text, model = asked.text("q").strip(), asked.text("model")
    eval_set, state = asked.text("eval_set"), asked.choice("state", RUN_STATES)
    listing = run_cache.listing()
    overview = run_cache.overview(listing)
    wanted = [
        run
        for run in listing.runs
        if (not state or run.state == state)
        and (not eval_set or eval_set in run.eval_sets)
        and (not model or any(model == reports.model_label(one.model, one.tier) for one in run.models))
        and (not text or text.casefold() in _listed_words(run))
    ]
    here = page_slice(range(len(wanted)), asked.whole("page", 1, least=1, most=10_000), RUNS_PER_PAGE)
    trends = (
        TrendCard(
            " + ".join(sets),
            name,
            rendering.trend([_quality(point) for point in points]),
            tuple(points),
            _change(points[-2], points[-1].headline),
        )
        for (sets, name), whole in sorted(
            overview.histories.items(), key=lambda item: item[1][-1].run.started_at, reverse=True
        )
        if len(points := whole[-MAX_TREND_RUNS:]) > 1
        and (not eval_set or eval_set in sets)
        and (not model or model == name)
    )
    values = {"q": text, "model": model, "eval_set": eval_set, "state": state}
    return rendered(
        "runs.html.j2",
        pulse="/pulse",
        version=listing.version,
        pending=listing.pending,
        problem=listing.problem,
        total=len(listing.runs),
        rows=[run_row(wanted[place], overview) for place in here.cases],
        page=here,
        here=PageUrl([], values),
        values=values,
        trends=list(islice(trends, MAX_TREND_CARDS)),
        models=overview.models,
        eval_sets=overview.eval_sets,
        states=overview.states,
    )


def compile_templates() -> None:
    """Compile the templates of this page, so that it opens without delay."""
    rendering.compile_templates("layout.html.j2", "parts.html.j2", "runs.html.j2")


def _listed_words(run: ListedRun) -> str:
    models = [reports.model_label(one.model, one.tier) for one in run.models]
    return "\n".join([run.name, run.started_at, *run.eval_sets, *models]).casefold()


def _quality(point: EarlierRun) -> Estimate:
    return point.headline.quality or Estimate(value=None)


def run_row(run: ListedRun, overview: RunsOverview) -> RunRow:
    """One run in the list, each model beside its result in the run before."""
    rows = []
    for headline in run.models:
        name = reports.model_label(headline.model, headline.tier)
        earlier = overview.earlier.get((run.name, name))
        rows.append(ModelRow(name, headline, rendering.scale(headline.quality), earlier, _change(earlier, headline)))
    return RunRow(run, run.eval_sets, tuple(rows))


def _change(earlier: EarlierRun | None, headline: ModelHeadline) -> Estimate | None:
    before = earlier.headline.quality if earlier and earlier.headline.on == headline.on else None
    return difference(before, headline.quality) if before and headline.quality else None
