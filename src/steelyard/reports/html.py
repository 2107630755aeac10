"""A run as one page that needs nothing else: no network, no script, and nothing a model wrote is ever markup."""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import jinja2

from steelyard.estimates import Estimate
from steelyard.reports import figures as reports
from steelyard.summary import CaseSummary, ModelSummary, Results, Tried, hardest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.records import Case


class Group(NamedTuple):
    """The attempts of one model at one case: a cell of the matrix, and a heading further down."""

    anchor: str
    """Made of positions, so that nothing a user or a model wrote ends up in a link."""
    name: str
    summary: CaseSummary | None
    attempts: Sequence[Tried]

    @property
    def state(self) -> str:
        """`full`, `part` or `none` of the attempts are correct; `gap` when none was judged."""
        if self.summary is None or not self.summary.attempts:
            return "gap"
        if not self.summary.correct:
            return "none"
        return "full" if self.summary.correct == self.summary.attempts else "part"


class Row(NamedTuple):
    """One case: a row of the matrix, and a section further down."""

    anchor: str
    case: Case
    groups: Sequence[Group]


def report(results: Results) -> str:
    """The page: headline numbers, the matrix of cases and models, then every attempt."""
    models = results.summary.models
    rows = _rows(results)
    anchors = {
        (row.case.id, model.model, model.tier): group.anchor
        for row in rows
        for model, group in zip(models, row.groups, strict=True)
    }
    figures = reports.figures(models)
    return _template().render(
        info=results.info,
        summary=results.summary,
        names=[reports.named(model.model, model.tier) for model in models],
        eval_sets=[PurePath(file.path).name for file in results.info.eval_sets],
        ks=sorted({k for model in models for k in model.pass_at}),
        thin=_thin(models),
        rows=rows,
        figures=figures,
        footnotes=reports.footnotes(figures),
        verified=reports.verified(models),
        suites=reports.suite_tables(models),
        concerns=[
            (
                concern,
                [
                    (
                        doubt,
                        reports.named(model.model, model.tier),
                        anchors.get((doubt.case, model.model, model.tier), ""),
                    )
                    for model, doubt in concern.attempts
                ],
            )
            for concern in reports.concerns(models)
        ],
        failed=[
            (case, reports.named(case.model, case.tier), anchors.get((case.case, case.model, case.tier), ""))
            for case in hardest(results.summary)
        ],
    )


def _rows(results: Results) -> list[Row]:
    attempts: dict[tuple[str, str, str], list[Tried]] = {}
    for tried in results.attempts:
        attempts.setdefault((tried.case.id, tried.model, tried.tier), []).append(tried)
    counts = {(case.case, case.model, case.tier): case for case in results.summary.cases}
    rows = []
    for number, case in enumerate(results.cases, 1):
        groups = []
        for column, model in enumerate(results.summary.models, 1):
            place = (case.id, model.model, model.tier)
            name = reports.named(model.model, model.tier)
            groups.append(Group(f"case-{number}-model-{column}", name, counts.get(place), attempts.get(place, ())))
        rows.append(Row(f"case-{number}", case, groups))
    return rows


def _thin(models: Sequence[ModelSummary]) -> set[int]:
    """Each k for which some model's estimate rests on fewer cases than were asked."""
    return {k for model in models for k, estimate in model.pass_at.items() if estimate.cases < model.cases}


def _percent(share: float) -> str:
    """A position on a scale, as CSS wants it."""
    return f"{min(max(share, 0), 1) * 100:.2f}%"


def _interval(estimate: Estimate) -> str:
    """Only the brackets of a rate."""
    return reports.rate(estimate).partition(" ")[2]


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("steelyard", "reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "case_figures": reports.case_figures,
        "counted": reports.counted,
        "evidence": reports.evidence_text,
        "interval": _interval,
        "line": reports.line,
        "money": reports.money,
        "obstacle": reports.obstacle,
        "outcome": reports.outcome,
        "percent": _percent,
        "plain": reports.plain,
        "price": reports.price,
        "response_class": reports.response_class,
        "seconds": reports.seconds,
        "tests_passed": reports.tests_passed,
        "why": reports.why,
    }
    return environment.get_template("run.html.j2")
