"""What tiers achieve and cost, as a page for a browser and as tables for a paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup, escape

from steelyard.reports.charts.spec import Chart
from steelyard.reports.charts.svg import svg_element
from steelyard.reports.charts.tier_details import detail_charts
from steelyard.reports.charts.tiers import charts
from steelyard.reports.page import style
from steelyard.reports.tables import ReportTable
from steelyard.reports.tiers import INCONCLUSIVE_TEXT, TIER_ANALYSIS_FORMATS, fitting_parts, tier_tables
from steelyard.text import line
from steelyard.tiers.results import ExperimentAnalysis

# nothing on the page runs or is fetched
PAGE_HEAD = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>Tiers</title>
<style>
{}</style>
</head>
<body class="report">
<header class="top">
<p class="brand">steelyard</p>
<h1>Tiers</h1>
</header>
<main>
""")


def html_page(analysis: ExperimentAnalysis) -> str:
    """One page with all tables and charts; it needs no other file."""
    parts = [PAGE_HEAD.format(style())]
    if not analysis.conclusive:
        parts.append(Markup("<p><strong>{}</strong></p>\n").format(INCONCLUSIVE_TEXT))
    for table in tier_tables(analysis):
        parts.append(Markup("<section>\n<h2>{}</h2>\n").format(line(table.title)))
        if table.head:
            parts.append(_html_table(table.head, table.rows))
        parts += [*_html_list(table.sentences), Markup("</section>\n")]
    drawn = [*charts(analysis), *detail_charts(analysis)]
    if drawn:
        figures = Markup("").join(_figure(chart) for chart in drawn)
        parts.append(Markup('<section>\n<h2>Charts</h2>\n<div class="charts">\n{}</div>\n</section>\n').format(figures))
    if analysis.warnings:
        parts += [Markup("<section>\n<h2>Warnings</h2>\n"), *_html_list(analysis.warnings), Markup("</section>\n")]
    if analysis.sources:
        inputs = [f"{source.digest} {source.name}" for source in analysis.sources]
        parts += [Markup("<section>\n<h2>Inputs</h2>\n"), *_html_list(inputs), Markup("</section>\n")]
    return Markup("").join([*parts, Markup("</main>\n</body>\n</html>\n")])


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    names = Markup("").join(Markup('<th scope="col">{}</th>').format(name) for name in head)
    lines = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>\n').format(
            row[0], Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row[1:])
        )
        for row in rows
    )
    return Markup(
        '<div class="scroll hug" tabindex="0"><table class="figures">\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>'
        "</table></div>\n"
    ).format(names, lines)


def _html_list(sentences: Sequence[str]) -> Iterator[Markup]:
    if sentences:
        items = Markup("").join(Markup("<li>{}</li>\n").format(line(sentence)) for sentence in sentences)
        yield Markup("<ul>\n{}</ul>\n").format(items)


def _figure(chart: Chart) -> Markup:
    return Markup(
        '<figure class="chart">\n<figcaption><h3>{}</h3><p class="soft small">{}</p></figcaption>\n'
        '<div class="drawing">{}</div>\n<details class="numbers"><summary>The numbers</summary>\n{}</details>\n</figure>\n'
    ).format(escape(chart.title), chart.subtitle, svg_element(chart), _html_table(chart.head, chart.rows))


LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "∞": r"$\infty$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
"""Characters with a special meaning in LaTeX."""
LATEX_COLUMNS = 80
"""How many characters of a footnote's size fit the width of a page of LaTeX's article class."""
LATEX_COLUMN_GAP = 3
"""What stands between two columns there, in such characters."""
_LATEX_SPECIAL = re.compile("|".join(map(re.escape, LATEX_CHARACTERS)))


def latex_text(text: str) -> str:
    r"""The text as LaTeX that shows nothing but itself; what it would not typeset without further packages is `?`.

    >>> latex_text("50% of a_b {x} \\input")
    '50\\% of a\\_b \\{x\\} \\textbackslash{}input'
    """
    plain = "".join(one if one.isascii() or one == "∞" or one.isalpha() else "?" for one in line(text))
    return _LATEX_SPECIAL.sub(lambda found: LATEX_CHARACTERS[found[0]], plain)


def latex_tables(analysis: ExperimentAnalysis) -> str:
    """The tables for a paper, one environment each, for a document to include; they need no package."""
    parts = [f"% {latex_text(source.name)} {source.digest}" for source in analysis.sources]
    if not analysis.conclusive:
        parts.append(rf"\textbf{{{latex_text(INCONCLUSIVE_TEXT)}}}")
    for table in tier_tables(analysis):
        if table.head:
            parts += [r"\begin{table}", r"\centering\footnotesize", rf"\caption{{{latex_text(table.title)}}}"]
            parts += [*_latex_columns(table), r"\end{table}"]
        else:
            parts.append(rf"\paragraph{{{latex_text(table.title)}}}")
        parts += [f"{latex_text(sentence)}\\par" for sentence in table.sentences]
    if analysis.warnings:
        parts += [r"\paragraph{Warnings}", *(f"{latex_text(warning)}\\par" for warning in analysis.warnings)]
    return "\n".join(parts) + "\n"


def _latex_columns(table: ReportTable) -> Iterator[str]:
    """A table, or several beneath each other where one would be wider than a page."""
    for place, (head, rows) in enumerate(fitting_parts(table, LATEX_COLUMNS, gap=LATEX_COLUMN_GAP)):
        lines = [" & ".join(map(latex_text, row)) + r" \\" for row in (head, *rows)]
        yield from ([r"\par\medskip"] if place else [])
        yield rf"\begin{{tabular}}{{{'l' + 'r' * (len(head) - 1)}}}"
        yield from (r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", r"\end{tabular}")


TIER_FORMATS: dict[str, Callable[[ExperimentAnalysis], str]] = {
    **TIER_ANALYSIS_FORMATS,
    "html": html_page,
    "latex": latex_tables,
}
