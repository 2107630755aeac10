"""A run's summary in GitHub's Markdown, fit for a comment on a pull request."""

from __future__ import annotations

from pathlib import PurePath

from steelyard.analysis.hard_cases import hardest_cases
from steelyard.analysis.summary import RunResults
from steelyard.reports.figures import (
    flagged_attempts,
    footnotes,
    hard_case_reason,
    metric_rows,
    model_label,
    spending_text,
    verification_text,
    witness_text,
)
from steelyard.reports.labels import judged_sentences, judged_table
from steelyard.reports.suite_tables import suite_tables
from steelyard.reports.tables import bullets, code, escaped, markdown_table, warning_parts
from steelyard.text import counted, line

_MAX_REASON_CELL_CHARACTERS = 160


def report(results: RunResults) -> str:
    """Tables with intervals, the cases that failed most and the warnings; no text of an attempt."""
    info, summary = results.info, results.summary
    rows = metric_rows(summary.models)
    sets = ", ".join(code(PurePath(file.path).name) for file in info.eval_sets)
    about = [counted(len(results.cases), "case"), f"rule {code(summary.rule)}", "intervals at 95%"]
    parts = [f"### Run {code(info.id)}", " · ".join([sets, *about] if sets else about)]
    if not summary.conclusive:
        parts.append("**Cannot tell**: more than 5% of cases or attempts of some model have no verdict.")
    names = [code(model_label(model.model, model.tier)) for model in summary.models]
    parts.append(markdown_table(["", *names], [[escaped(row.name), *row.cells] for row in rows]))
    notes = footnotes(rows)
    if notes:
        parts.append(f"\\* rests on fewer cases or attempts than there are:\n{bullets(notes)}")
    for suites in suite_tables(summary.models):
        parts.append("#### Suites" if len(summary.models) == 1 else f"#### Suites of {code(suites.model)}")
        head = ["", *suites.head, *map(escaped, suites.classes)]
        *every, last = suites.rows
        cells = [[code(row[0]), *row[1:]] for row in every] + [[f"**{cell}**" for cell in last]]
        parts.append(markdown_table(head, cells))
        parts.append("\n".join(f"- {name}: {value}" for name, value in suites.beneath))
    if summary.judged is not None:
        head, *judged = judged_table(summary.judged)
        parts.append("#### Judged, with labels of people")
        parts.append(markdown_table(head, [[code(row[0]), *row[1:]] for row in judged]))
        parts.append(bullets(judged_sentences(summary.judged)))
    ways = verification_text(summary.models)
    if ways:
        parts.append(f"Verified: {escaped(ways)}")
    if witnesses := witness_text(summary):
        parts.append(f"References tried here: {witnesses}")
    if spending := spending_text(summary):
        parts.append(f"Money: {spending}")
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
        parts.append(markdown_table(["case", "model", "attempt", "what was seen"], rows_of, "---"))
        if concern.more:
            parts.append(f"and {concern.more:,} more")
    failed = hardest_cases(summary)
    if failed:
        parts.append("#### Failed most")
        parts.append(
            markdown_table(
                ["case", "correct", "best model", "its rate", "why"],
                [
                    [
                        code(hard.case),
                        f"{hard.correct}/{hard.attempts}",
                        code(model_label(hard.best.model, hard.best.tier)),
                        f"{hard.best.correct}/{hard.best.attempts}",
                        code(line(hard_case_reason(hard, len(summary.models)), _MAX_REASON_CELL_CHARACTERS)),
                    ]
                    for hard in failed
                ],
                "---",
            )
        )
    return "\n\n".join([*parts, *warning_parts(summary.warnings)]) + "\n"
