"""What commands print, and where."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli import arguments
from steelyard.cli.progress import ProgressDisplay
from steelyard.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.summary import RunResults
    from steelyard.comparison.gate import Decision
    from steelyard.engine.run import Run
    from steelyard.engine.session import RunOptions
    from steelyard.errors import Problem
    from steelyard.records import Case
    from steelyard.reports.html import BaselineReport
    from steelyard.settings import Settings


def print_to_stderr(text: str) -> None:
    """Print a line on standard error, with nothing in it that a terminal would obey."""
    from steelyard.text import plain

    print(plain(text), file=sys.stderr)


def warn(problems: Sequence[Problem]) -> None:
    """Print problems as warnings."""
    for problem in problems:
        print_to_stderr(f"warning: {problem}")


def is_color_wanted() -> bool:
    """Whether standard output takes colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and "CI" not in os.environ


def terminal_width() -> int:
    """Columns of the terminal."""
    import shutil

    return shutil.get_terminal_size((100, 40)).columns


def settings_and_run_options(options: argparse.Namespace) -> tuple[Settings, RunOptions]:
    """The settings, and how a run is carried out, with its progress shown."""
    return arguments.settings_and_run_options(options, ProgressDisplay() if hasattr(options, "parallelism") else None)


def find_named_run(name: str, settings: Settings) -> Path:
    """The folder of a run that the user named."""
    from steelyard.store.locate import find_run

    return find_run(name, Path(settings.output_dir))


def write_texts(paths: Sequence[str], texts: dict[str, str]) -> None:
    """Write one of several texts to each file, chosen by its suffix."""
    from steelyard.errors import InputError, did_you_mean

    for path in map(Path, paths):
        if path.suffix not in texts:
            raise InputError(f'{path}: unknown kind of report "{path.suffix}" ({did_you_mean(path.suffix, texts)})')
    for path in map(Path, paths):
        try:
            path.write_text(texts[path.suffix], "utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        print_to_stderr(f"wrote {path}")


def write_reports(
    paths: Sequence[str],
    folder: Path,
    by: dict[str, Any],
    results: RunResults | None = None,
    held: BaselineReport | None = None,
) -> None:
    """Write reports of a run; a page is made from its folder, so that a large run need not fit into memory."""
    from steelyard import reports
    from steelyard.analysis import summary
    from steelyard.engine.results.html_page import html_page
    from steelyard.errors import InputError
    from steelyard.store.journal import StoredRun

    formats = {path: reports.report_format_of(path) for path in map(Path, paths)}
    stored = StoredRun(folder)
    for path, name in formats.items():
        if name == "html":
            text = html_page(stored, **by, held=held)
        else:
            results = results or summary.run_results(stored.info, stored.cases, stored.facts(), **by)
            text = reports.render(name, results)
        try:
            path.write_text(text, "utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        print_to_stderr(f"wrote {path}")
    warn(stored.damaged)


def next_commands(folder: Path, done: Run | RunResults) -> list[str]:
    """What a reader most likely wants to type next."""
    from steelyard.analysis.summary import hardest_cases

    commands = []
    if any(model.missing for model in done.summary.models):
        commands.append(f"steelyard resume {folder}")
    if done.info.experiment or done.info.panel:
        commands.append(f"steelyard tiers {folder}")
    worst = hardest_cases(done.summary, 1)
    commands += [f"steelyard show {folder} {case.case} 1" for case in worst]
    return [*commands, f"steelyard report {folder} -o report.html"]


def gate_exit_code(decision: Decision, *, fail: bool) -> int:
    """The exit code of a gate."""
    from steelyard.comparison.gate import CANNOT_TELL as UNDECIDED
    from steelyard.comparison.gate import REGRESSED

    if decision.verdict == REGRESSED:
        return ExitCode.GATE_FAILED
    if decision.verdict == UNDECIDED:
        missing = any(model.data_missing for model in decision.models)
        if not missing and not fail:
            print_to_stderr("warning: too little evidence to tell; passed, because --on-inconclusive is pass")
        return ExitCode.CANNOT_TELL if missing or fail else ExitCode.OK
    return ExitCode.OK


def announced_shard_cases(shard: tuple[int, int], cases: Sequence[Case], means: RunOptions) -> Sequence[Case]:
    """The cases of a shard; says how many they are, and whom a budget is for."""
    from steelyard.engine.shards.deal import shard_cases

    number, of = shard
    mine = shard_cases(cases, number, of)
    print_to_stderr(f"shard {number}/{of}: {len(mine)} of {len(cases)} cases")
    if means.max_cost is not None and of > 1:
        print_to_stderr(
            f"--max-cost holds for each shard alone: {of} shards may spend ${of * means.max_cost:g} together"
        )
    return mine
