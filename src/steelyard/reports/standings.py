"""Where models stand, as a table for a spreadsheet, a page or a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steelyard.analysis.counts import Standing, Standings
from steelyard.analysis.estimates import Estimate
from steelyard.reports.figures import dollars, points
from steelyard.reports.tables import CsvValue, bullets, code, csv_text, json_report, markdown_table
from steelyard.text import line


def markdown(standings: Standings) -> str:
    """The same as a table in GitHub's Markdown, with what there is to know beneath it."""
    head, rows = standings_rows(standings)
    parts = [markdown_table(head, ([code(row[0]), *row[1:]] for row in rows))]
    if not standings.conclusive:
        parts.append("**Cannot tell**: more than 5% of the cases of some model have no outcome.")
    if standings.notes:
        parts.append(bullets(standings.notes))
    return "\n\n".join(parts) + "\n"


def table_csv(standings: Standings, *, brief: bool = False) -> str:
    """LLM and pass@k as numbers, then, unless in brief, their intervals and what they rest on.

    What cannot be estimated is empty.
    """
    ends = [f"pass@{k} {end}" for k in standings.k for end in ("low", "high")]
    rest = [] if brief else [*ends, "problems", "attempts", "correct", "unscored"]
    rows = []
    for model in standings.models:
        estimates = [model.pass_at[k] for k in standings.k]
        row: list[CsvValue] = [model.model, *(estimate.value for estimate in estimates)]
        if not brief:
            row += [end for estimate in estimates for end in (estimate.low, estimate.high)]
            row += [model.cases, model.attempts, model.correct, len(model.unscored)]
        rows.append(row)
    return csv_text(["LLM", *(f"pass@{k}" for k in standings.k), *rest], rows)


def levels_csv(levels: Mapping[str, Standings]) -> str:
    """The same for several levels of success, one below the other; the first column says which."""
    head = ""
    rows = []
    for level, standings in levels.items():
        head, *lines = table_csv(standings).splitlines()
        rows += [f"{level},{line}" for line in lines]
    return "\n".join([f"level,{head}", *rows, ""])


STANDINGS_FORMATS: dict[str, Callable[[Standings], str]] = {"json": json_report, "csv": table_csv, "markdown": markdown}


def standings_rows(standings: Standings) -> tuple[list[str], list[list[str]]]:
    """The head and the rows that a person reads; a star marks a pass@k that rests on fewer cases than there are."""
    models = standings.models
    starred = {k for k in standings.k if any(_is_thin(model, model.pass_at[k], standings) for model in models)}
    head = ["LLM", *(f"pass@{k}{'*' if k in starred else ''}" for k in standings.k)]
    with_score = any(model.score for model in models)
    with_cost = any(model.cost_of_pass for model in models)
    head += ["score"] * with_score + ["cost of pass"] * with_cost + ["problems", "attempts"]
    rows = []
    for model in models:
        row = [line(model.model), *(points(model.pass_at[k]) for k in standings.k)]
        row += [points(model.score) if model.score else "-"] * with_score
        row += [dollars(model.cost_of_pass) if model.cost_of_pass else "unknown"] * with_cost
        row += [f"{model.cases:,}", f"{model.attempts:,}"]
        rows.append(row)
    return head, rows


def _is_thin(model: Standing, estimate: Estimate, standings: Standings) -> bool:
    """Whether it rests on fewer cases than have an outcome."""
    counted = model.cases if standings.missing == "zero" else model.cases - len(model.unscored)
    return estimate.value is not None and estimate.cases < counted
