"""A run's summary in GitHub's Markdown, fit for a comment on a pull request."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from steelyard.analysis.summary import RunResults, hardest_cases
from steelyard.reports.figures import (
    flagged_attempts,
    footnotes,
    metric_rows,
    model_label,
    suite_tables,
    verification_text,
)
from steelyard.text import counted, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MAX_REASON_CELL_CHARACTERS = 160


def report(results: RunResults) -> str:
    """Tables with intervals, the cases that failed most and the warnings; no text of an attempt."""
    info, summary = results.info, results.summary
    rows = metric_rows(summary.models)
    sets = ", ".join(code(PurePath(file.path).name) for file in info.eval_sets)
    about = [counted(len(results.cases), "case"), f"rule {code(summary.rule)}", "intervals at 95%"]
    parts = [f"### Run {code(info.id)}", " · ".join([sets, *about] if sets else about)]
    if not summary.conclusive:
        parts.append("**Cannot tell**: more than 5% of the cases of some model are unscored.")
    names = [code(model_label(model.model, model.tier)) for model in summary.models]
    parts.append(table(["", *names], [[escaped(row.name), *row.cells] for row in rows], "---:"))
    notes = footnotes(rows)
    if notes:
        parts.append(
            "\\* rests on fewer cases or attempts than there are:\n" + "\n".join(f"- {escaped(note)}" for note in notes)
        )
    for suites in suite_tables(summary.models):
        parts.append("#### Suites" if len(summary.models) == 1 else f"#### Suites of {code(suites.model)}")
        head = ["", *suites.head, *map(escaped, suites.classes)]
        *every, last = suites.rows
        cells = [[code(row[0]), *row[1:]] for row in every] + [[f"**{cell}**" for cell in last]]
        parts.append(table(head, cells, "---:"))
        parts.append("\n".join(f"- {name}: {value}" for name, value in suites.beneath))
    ways = verification_text(summary.models)
    if ways:
        parts.append(f"Verified: {escaped(ways)}")
    for concern in flagged_attempts(summary.models):
        parts.append(f"#### {concern.title}")
        rows_of = [
            [
                code(doubt.case),
                code(model_label(model.model, model.tier)),
                f"{doubt.number}",
                code(line(doubt.reason, _MAX_REASON_CELL_CHARACTERS)),
            ]
            for model, doubt in concern.attempts
        ]
        parts.append(table(["case", "model", "attempt", "what was seen"], rows_of, "---"))
        if concern.more:
            parts.append(f"and {concern.more:,} more")
    failed = hardest_cases(summary)
    if failed:
        parts.append("#### Failed most")
        parts.append(
            table(
                ["case", "model", "correct", "score", "flake rate", "why"],
                [
                    [
                        code(case.case),
                        code(model_label(case.model, case.tier)),
                        f"{case.correct}/{case.attempts}",
                        "-" if case.score is None else f"{case.score:.3f}",
                        "-" if case.flake_rate is None else f"{case.flake_rate:.1%}",
                        code(line(case.why, _MAX_REASON_CELL_CHARACTERS)),
                    ]
                    for case in failed
                ],
                "---",
            )
        )
    if summary.warnings:
        parts.append("#### Warnings")
        parts.append("\n".join(f"- {escaped(warning)}" for warning in summary.warnings))
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], alignment: str) -> str:
    """A table whose cells are Markdown already."""
    lines = [head, ["---", *(alignment for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(map(_cell, cells)) + " |" for cells in lines)


def _cell(text: str) -> str:
    # a table splits at every bar, code or not, and reads two backslashes before it as one that is no escape
    return re.sub(r"\\(?=\|)", r"\\ ", text).replace("|", r"\|")


def code(text: str) -> str:
    """The text as a code span, where no markup, mention or link is seen; the fence outruns the backticks inside.

    >>> code("a`b")
    '``a`b``'
    """
    text = line(text)
    if not text:
        return "-"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def escaped(text: str) -> str:
    r"""The text as prose that means nothing but itself: no markup, HTML, links, mentions or references.

    >>> escaped("<b> & *pass@1*")
    '\\<b\\> \\& \\*pass@1\\*'
    """
    text = re.sub(r"^[-+]|^\d+(?=[.)])|[\\`*_\[\]<>#~&$]|:(?=//)|(?<=www)\.", _backslash_escaped, line(text))
    # GitHub looks for mentions and issues after the escapes are gone, so something must stand between
    return re.sub(r"(?<!pass)([@#])(?=\w)", "\\1\u200b", text)


def _backslash_escaped(match: re.Match[str]) -> str:
    # a number cannot be escaped, but the point after it can
    return match[0] + "\\" if match[0].isdigit() else "\\" + match[0]
