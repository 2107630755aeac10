"""What commands print, and where."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli import arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.engine.options import RunOptions
    from steelyard.engine.results.conclusion import Conclusion
    from steelyard.errors import Problem
    from steelyard.settings import Settings


def print_to_stderr(text: str) -> None:
    """Print a line on standard error, with nothing in it that a terminal would obey."""
    from steelyard.text import plain

    print(plain(text), file=sys.stderr)


def warn(problems: Sequence[Problem]) -> None:
    """Print problems as warnings."""
    for problem in problems:
        print_to_stderr(f"warning: {problem}")


def warn_of(notes: Sequence[str]) -> None:
    """Print sentences as warnings."""
    for note in notes:
        print_to_stderr(f"warning: {note}")


def is_color_wanted() -> bool:
    """Whether standard output takes colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and "CI" not in os.environ


def terminal_width() -> int:
    """Columns of the terminal."""
    import shutil

    return shutil.get_terminal_size((100, 40)).columns


def print_report(text: str, report_format: str = "text") -> None:
    """Print a report; on a terminal, lines that are too wide are wrapped."""
    from steelyard.cli.folding import folded

    is_folded = report_format == "text" and sys.stdout.isatty()
    print(folded(text, terminal_width()) if is_folded else text, end="")


def settings_and_run_options(options: argparse.Namespace) -> tuple[Settings, RunOptions]:
    """The settings, and how a run is carried out, with its progress shown."""
    from steelyard.engine.progress import ProgressDisplay

    is_shown = hasattr(options, "parallelism") and not getattr(options, "quiet", False)
    watch = ProgressDisplay() if is_shown else None
    settings, means = arguments.settings_and_run_options(options, watch)
    can_ask = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return settings, means._replace(say=print_to_stderr, ask_user=is_agreed if can_ask else None)


def is_agreed(text: str) -> bool:
    """Whether the user agrees to run what the text names."""
    print_to_stderr(text)
    print("Run it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def find_named_run(name: str, settings: Settings, *, with_comparisons: bool = False) -> Path:
    """The folder of a run that the user named; `with_comparisons`, the latest may be judges' comparisons."""
    from steelyard.store.run_folders import find_run

    return find_run(name, Path(settings.output_dir), with_comparisons=with_comparisons)


def conclude(conclusion: Conclusion) -> int:
    """Print the messages beside the results; returns the exit code."""
    for message in conclusion.messages:
        print_to_stderr(message)
    return conclusion.exit_code


def print_written(paths: Sequence[Path]) -> None:
    """Say which files were written."""
    for path in paths:
        print_to_stderr(f"wrote {path}")
