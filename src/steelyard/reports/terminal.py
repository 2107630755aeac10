"""What a person reads in a terminal: plain lines for any width."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.hard_cases import hardest_cases
from steelyard.analysis.judged_rates import JudgedRates
from steelyard.analysis.summary import AttemptText, ModelSummary, Summary
from steelyard.reports.figures import (
    attempt_failure_reason,
    case_figures,
    flagged_attempts,
    footnotes,
    hard_case_figures,
    hard_case_reason,
    metric_rows,
    model_label,
    outcome,
    quality,
    seconds,
    spending_text,
    tests_passed,
    verification_text,
    verified_text,
    witness_text,
)
from steelyard.reports.labels import judged_sentences, judged_table
from steelyard.reports.suite_tables import SuiteTable, suite_tables
from steelyard.text import line, plain

OUTCOME_STYLES = {"correct": "green", "wrong": "red", "missing": "yellow", "passed": "green", "failed": "red"}
COLUMN_GAP = 2
_MAX_UNFOLDED_NAME_COLUMNS = 20
"""A model's name is folded rather than make its column wider than this, where room is short."""
_CLASS_COLUMN_NAMES = {"policy_violation": "policy", "truncated": "cut off", "wrong_format": "format"}
"""What a column of counts is called, where that is not the class itself."""


def summary_text(
    summary: Summary, *, title: str, next_commands: Sequence[str], width: int, color: bool, details: bool = False
) -> str:
    """What a run found: models side by side, the cases that failed most, warnings, and what to type next.

    `details` adds in which ways attempts were verified, and what passed here before an answer could fail.
    """
    page = TerminalPage(width, color)
    page.say(Text(line(title), style="bold"))
    if not summary.conclusive:
        page.say(
            Text("Cannot tell: more than 5% of cases or attempts of some model have no verdict.", style="bold yellow")
        )
    for models in _side_by_side_groups(summary.models, width):
        page.say()
        _put_models(page, models)
    for table in suite_tables(summary.models):
        page.head("Suites" if len(summary.models) == 1 else f"Suites of {line(table.model)}")
        _put_suites(page, table, width)
    if summary.judged is not None:
        put_judged(page, summary.judged)
    _put_verification(page, summary, details=details)
    several = len(summary.models) > 1
    for concern in flagged_attempts(summary.models):
        page.head(concern.title)
        for model, doubt in concern.attempts:
            whose = f"{line(model_label(model.model, model.tier))} · " if several else ""
            page.bullet("!", Text(f"{whose}{line(doubt.case)} #{doubt.number}: {line(doubt.reason)}", style="yellow"))
        if concern.more:
            page.say(Text(f"    and {concern.more:,} more", style="dim"))
    failed = hardest_cases(summary)
    if failed:
        page.head("Failed most")
    for hard in failed:
        page.hang(f"  {line(hard.case)}", Text(line(hard_case_figures(hard, len(summary.models)))))
        if why := hard_case_reason(hard, len(summary.models)):
            page.fit(Text(f"    {line(why)}", style="dim"))
    if summary.warnings:
        page.head("Warnings")
    for warning in summary.warnings:
        page.bullet("!", Text(line(warning), style="yellow"))
    if next_commands:
        page.head("Next")
    for command in next_commands:
        page.verbatim(command, indent="  ")
    return page.text()


def summary_line(summary: Summary, *, title: str) -> str:
    """A run in one line: each model with its correct attempts and its first pass@k."""
    parts = []
    for model in summary.models:
        name, estimate = model.quality
        correct = "" if model.on == "score" else f"{model.correct}/{model.attempts} correct, "
        missing = f", {model.missing} missing" if model.missing else ""
        label = line(model_label(model.model, model.tier))
        parts.append(f"{label} {correct}{name} {quality(model.on, estimate)}{missing}")
    return f"{line(title)}: {'' if summary.conclusive else 'cannot tell: '}{'; '.join(parts)}"


def put_judged(page: TerminalPage, rates: JudgedRates) -> None:
    """What judges and people say together."""
    page.head(f"Judged by {line(rates.criterion)}, with labels" if rates.criterion else "Judged, with labels of people")
    put_grid(page, judged_table(rates))
    for sentence in judged_sentences(rates):
        page.bullet("-", Text(sentence))


def _put_verification(page: TerminalPage, summary: Summary, *, details: bool) -> None:
    """How many attempts were verified, and with details how."""
    if verified := verified_text(summary.models):
        page.say()
        page.say(Text(verified, style="dim"))
    if details and (ways := verification_text(summary.models)):
        page.say(Text(f"verified: {ways}", style="dim"))
    if details and (witnesses := witness_text(summary)):
        page.say(Text(f"references tried here: {witnesses}", style="dim"))
    if spending := spending_text(summary):
        page.say(Text(f"money: {spending}", style="dim"))


def _side_by_side_groups(models: Sequence[ModelSummary], width: int) -> Iterator[Sequence[ModelSummary]]:
    """The models in groups that fit side by side."""
    rows = metric_rows(models)
    room = width - max(cell_len(row.name) for row in rows)
    group: list[ModelSummary] = []
    left = room
    for position, model in enumerate(models):
        need = COLUMN_GAP + _narrowest(model, [row.cells[position] for row in rows])
        if group and need > left:
            yield group
            group, left = [], room
        group.append(model)
        left -= need
    if group:
        yield group


def _narrowest(model: ModelSummary, cells: Iterable[str]) -> int:
    return max(
        min(cell_len(line(model_label(model.model, model.tier))), _MAX_UNFOLDED_NAME_COLUMNS), *map(cell_len, cells)
    )


def _put_models(page: TerminalPage, models: Sequence[ModelSummary]) -> None:
    rows = metric_rows(models)
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, COLUMN_GAP - 1, 0, 0), header_style="bold"
    )
    table.add_column("", no_wrap=True)
    for position, model in enumerate(models):
        name = Text(line(model_label(model.model, model.tier)), overflow="fold")
        table.add_column(name, min_width=_narrowest(model, [row.cells[position] for row in rows]))
    for row in rows:
        strong = "bold" if row.name.startswith("pass@") else ""
        table.add_row(Text(row.name), *(Text(cell, style=strong) for cell in row.cells))
    page.say(table)
    for note in footnotes(rows):
        page.bullet("*", Text(note, style="dim"), indent="")


def _put_suites(page: TerminalPage, suites: SuiteTable, width: int) -> None:
    """The suites a row each; counts that do not fit beside the scores stand in a block of their own below."""
    heads = [
        "",
        *suites.head,
        *(_CLASS_COLUMN_NAMES.get(name, line(name, _MAX_UNFOLDED_NAME_COLUMNS)) for name in suites.classes),
    ]
    rows = [(f"  {name}", *cells) for name, *cells in suites.rows]
    needs = [max(map(cell_len, column)) for column in zip(heads, *rows, strict=True)]
    # a name may be folded, a number not
    left = width - min(needs[0], _MAX_UNFOLDED_NAME_COLUMNS)
    blocks: list[list[int]] = [[]]
    room = left
    for place, need in enumerate(needs[1:], 1):
        if blocks[-1] and COLUMN_GAP + need > room:
            blocks.append([])
            room = left
        blocks[-1].append(place)
        room -= COLUMN_GAP + need
    for number, block in enumerate(blocks):
        if number:
            page.say()
        table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold")
        table.add_column("", overflow="fold")
        for place in block:
            table.add_column(heads[place], no_wrap=True, justify="left" if heads[place] == "score" else "right")
        for row in rows:
            strong = "bold" if row is rows[-1] else ""
            table.add_row(*(Text(row[place], style=strong) for place in (0, *block)))
        page.say(table)
    put_grid(page, suites.beneath)


def case_text(attempts: Sequence[AttemptText], summary: Summary, *, width: int, color: bool) -> str:
    """One case: a line per attempt, with the reason where it is not correct."""
    page = TerminalPage(width, color)
    known = {(case.case, case.model, case.tier): case for case in summary.cases}
    if attempts:
        case = attempts[0].case
        page.fit(Text.assemble((line(case.id), "bold"), f"  {line(case.name)}" if case.name else ""))
        page.fit(Text(line(case.messages[-1].text if case.messages else ""), "dim"))
        page.say()
    rows = [_attempt_cells(tried) for tried in attempts]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    above = None
    for tried, cells in zip(attempts, rows, strict=True):
        name = line(model_label(tried.model, tried.tier))
        if name != above:
            about = case_figures(known[tried.case.id, tried.model, tried.tier])
            page.hang(name, Text(about, "dim"), style="bold")
        above = name
        row = Text()
        for cell, wide in zip(cells, widths, strict=True):
            row.append(" " * COLUMN_GAP + set_cell_size(cell, wide), style=OUTCOME_STYLES.get(cell, ""))
        row.rstrip()
        page.fit(row)
    return page.text()


def _attempt_cells(tried: AttemptText) -> list[str]:
    tests = tests_passed(tried)
    return [
        f"#{tried.number}",
        outcome(tried),
        "-" if tried.score is None else f"{tried.score:.3f}",
        tests if tests == "-" else f"{tests} tests",
        seconds(tried.reply.answer.latency if tried.reply else None),
        attempt_failure_reason(tried),
    ]


def put_grid(page: TerminalPage, rows: Sequence[Sequence[str]]) -> None:
    """Columns without a header; only the last one wraps."""
    table = Table(box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0))
    for place in range(len(rows[0]) if rows else 0):
        table.add_column(no_wrap=place < len(rows[0]) - 1, overflow="fold")
    for first, *others in rows:
        table.add_row(Text(f"  {first}"), *map(Text, others))
    page.say(table)


class TerminalPage:
    """Lines for a terminal; foreign text is added as `Text`, which has no markup."""

    def __init__(self, width: int, color: bool) -> None:
        self._written = io.StringIO()
        # everything is set here, so that neither the environment nor a real terminal is asked
        self._console = Console(
            file=self._written,
            width=width,
            height=25,
            color_system="standard" if color else None,
            force_terminal=color,
            no_color=not color,
            force_jupyter=False,
            force_interactive=False,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def say(self, what: Text | Table | None = None) -> None:
        self._console.print(Text() if what is None else what, crop=False)

    def fit(self, text: Text) -> None:
        """One line, cut at the width instead of wrapped."""
        text.truncate(self._console.width, overflow="ellipsis")
        if self._console.no_color:  # a list of thousands of runs has nothing else to lay out
            self._written.write(f"{text.plain}\n")
        else:
            self.say(text)

    def hang(self, name: str, about: Text, *, style: str = "") -> None:
        """A name and its description: in one line, or below the name if it does not fit."""
        if cell_len(name) + COLUMN_GAP + about.cell_len <= self._console.width:
            self.fit(Text.assemble((name, style), " " * COLUMN_GAP, about))
            return
        self.fit(Text(name, style))
        indent = len(name) - len(name.lstrip()) + COLUMN_GAP
        self.bullet("", about, indent=" " * (indent - 1))

    def head(self, name: str) -> None:
        self.say()
        self.say(Text(name, style="bold"))

    def bullet(self, mark: str, text: Text, *, indent: str = "  ") -> None:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text(indent + mark), text)
        self.say(grid)

    def verbatim(self, text: str, *, indent: str = "") -> None:
        """Text as it is, line for line, so that it can be copied."""
        for row in plain(text).rstrip("\n").split("\n"):
            self._console.print(Text(indent + row), soft_wrap=True)

    def section(self, name: str, text: str, *, nothing: str = "-") -> None:
        self.head(name)
        self.verbatim(text if text.strip() else nothing, indent="  ")

    def text(self) -> str:
        """All of it, without blanks at the ends of lines."""
        return "".join(f"{row.rstrip()}\n" for row in self._written.getvalue().split("\n")).rstrip("\n") + "\n"
