"""What the history of a baseline shows: for a terminal, a pull request, a program, and as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steelyard.comparison.history import DriftAlarm, HistoryWatch, ModelHistory, WatchedRun
from steelyard.reports import page
from steelyard.reports.charts.history import history_chart
from steelyard.reports.charts.spec import Chart
from steelyard.reports.comparison import effect_points
from steelyard.reports.figures import rate
from steelyard.reports.tables import aligned_lines, bullets, code, json_report, markdown_table, warning_lines
from steelyard.text import counted, line

HISTORY_WORDS = {"got worse": "GOT WORSE", "no drift seen": "NO DRIFT SEEN", "too short": "TOO SHORT TO SAY"}
MAX_SHOWN_RUNS = 30
"""Runs of a history in a text, the last ones."""


def history_text(watch: HistoryWatch) -> str:
    """The history for a terminal."""
    lines = [HISTORY_WORDS[watch.verdict]]
    for model in watch.models:
        lines += ["", line(model.model), *(f"  {sentence}" for sentence in history_sentences(model))]
        rows = [_cells(number, run) for number, run in _shown(model)]
        lines += ["", *(f"  {row}" for row in aligned_lines([HISTORY_HEAD, *rows]))]
    return "\n".join([*lines, *warning_lines(watch.notes)]) + "\n"


def history_markdown(watch: HistoryWatch) -> str:
    """The same for a comment on a pull request."""
    parts = [f"### {code(watch.baseline)}: {HISTORY_WORDS[watch.verdict]}"]
    for model in watch.models:
        parts += [f"**{code(model.model)}**", bullets(history_sentences(model))]
        rows = [[number, code(name), *cells] for number, name, *cells in (_cells(*each) for each in _shown(model))]
        parts.append(markdown_table(list(HISTORY_HEAD), rows))
    return "\n\n".join([*parts, *([bullets(watch.notes)] if watch.notes else [])]) + "\n"


def history_json(watch: HistoryWatch) -> str:
    """The same for a program."""
    return json_report({"history": watch})


def history_html(watch: HistoryWatch) -> str:
    """The same as a page with charts, without script and without anything to fetch."""
    template = page.environment().get_template("watch.html.j2")
    return template.render(
        style=page.style(),
        watch=watch,
        words=HISTORY_WORDS[watch.verdict],
        models=[(model.model, list(history_sentences(model))) for model in watch.models],
        charts=history_charts(watch),
    )


def history_charts(watch: HistoryWatch, prefix: str = "history") -> list[Chart]:
    """A chart for each model; `prefix` identifies them on the page."""
    charts = [history_chart(model, f"{prefix}-{place}") for place, model in enumerate(watch.models)]
    return [chart for chart in charts if chart is not None]


HISTORY_FORMATS: dict[str, Callable[[HistoryWatch], str]] = {
    "text": history_text,
    "json": history_json,
    "markdown": history_markdown,
    "html": history_html,
}
HISTORY_HEAD = ("run", "name", "started", "pass rate", "p", "evidence")


def history_sentences(model: ModelHistory) -> Iterator[str]:
    """The sentences about one model."""
    if len(model.runs) < 2:
        yield "one run so far; the watch begins with the second"
        return
    for alarm in model.alarms:
        yield from _alarm_sentences(alarm, model)
    worse = model.runs[-1].worse
    if not any(alarm.direction == "worse" for alarm in model.alarms):
        yield (
            f"{counted(len(model.runs), 'run')}; the evidence that they got worse is {worse:.3g}, "
            f"and would be an alarm at {1 / model.level:.3g}"
        )
    yield f"if nothing ever changes, such an alarm is raised with a chance of at most {model.level:.3g}, however many runs follow"


def _alarm_sentences(alarm: DriftAlarm, model: ModelHistory) -> Iterator[str]:
    run = model.runs[alarm.number - 1]
    yield (
        f"got {alarm.direction}: with run {alarm.number} ({line(run.run, 60)}) the evidence reached {1 / model.level:.3g}; "
        f"at most it was {alarm.evidence:.3g}"
    )
    since = f"run {alarm.since} ({line(model.runs[alarm.since - 1].run, 60)})"
    step = f"a step at {since}: {alarm.before:.1%} before, {alarm.after:.1%} since, {effect_points(alarm.effect)}"
    slope = f"a slow drift by {alarm.per_run * 100:+.2f} points per run"
    best, other = (step, slope) if alarm.shape == "change" else (slope, step)
    yield f"it looks most like {best}"
    yield f"it looks less like {other}"
    for case in alarm.cases:
        yield f"case {line(case.case, 80)}: {case.before:.3f} -> {case.after:.3f}, p {case.p:.2g}"


def _shown(model: ModelHistory) -> list[tuple[int, WatchedRun]]:
    return list(enumerate(model.runs, 1))[-MAX_SHOWN_RUNS:]


def _cells(number: int, run: WatchedRun) -> tuple[str, ...]:
    return (
        str(number),
        line(run.run, 60),
        run.at[:16].replace("T", " "),
        rate(run.rate),
        "-" if run.p_worse is None else f"{run.p_worse:.2g}",
        f"{run.worse:.3g}",
    )
